"""Shards are done in processes, whatever happens to these."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import EngineError
from siteloom.engines.engine import split_batch
from siteloom.engines.local_engine import LocalEngine, run_shards
from tests.engines import works
from tests.engines.works import DEADLY, FATAL, POISON
from tests.patience import SECONDS, wait_until

SHARDS = [[number, number + 1] for number in range(0, 12, 2)]
ALL = range(len(SHARDS))


def run(
    start: Callable[[], Any], shards: Sequence[Any], wanted: Iterable[int], jobs: int
) -> Generator[tuple[int, Any], None, None]:
    return run_shards(start, ((number, shards[number]) for number in wanted), jobs)


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    assert multiprocessing.active_children() == []
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("wanted", [ALL, [1, 4, 5]])
def test_the_same_comes_of_any_number_of_processes(jobs: int, wanted: list[int]) -> None:
    found = dict(run(works.squares, SHARDS, wanted, jobs))
    assert found == {number: [one * one for one in SHARDS[number]] for number in wanted}


def test_for_nothing_no_process_is_started_and_for_a_single_shard_one() -> None:
    assert list(run(works.squares, SHARDS, [], 8)) == []
    for number, _ in run(works.squares, SHARDS, [3], 8):
        assert len(multiprocessing.active_children()) == 1
        assert number == 3


def test_shards_are_asked_for_when_a_process_is_free_for_them() -> None:
    asked: list[int] = []

    def shards() -> Iterator[tuple[int, list[int]]]:
        for number in range(30):
            asked.append(number)
            yield number, [number + 100]

    for done, _ in enumerate(run_shards(works.squares, shards(), 2), 1):
        assert len(asked) <= done + 3
    assert asked == list(range(30))


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_comes_out_as_it_is(jobs: int) -> None:
    with pytest.raises(works.Refused) as caught:
        list(run(works.refuses, [[1], [3], [5]], range(3), jobs))
    assert str(caught.value) == "3 is refused: no luck."
    assert caught.value.number == 3
    if jobs == 2:  # where it happened is told
        assert "works.py" in "".join(caught.value.__notes__)


def test_an_error_that_cannot_be_made_again_is_told() -> None:
    with pytest.raises(EngineError, match=r"failed with NotForTravel\('4 is stuck'\)\."):
        list(run(works.refuses, [[1], [4]], range(2), 2))


def test_an_error_at_the_start_and_a_result_that_cannot_be_sent_are_told() -> None:
    with pytest.raises(works.Refused):
        list(run(works.cannot_start, SHARDS, ALL, 2))
    with pytest.raises(TypeError, match="pickle"):
        list(run(works.gives_what_cannot_be_sent, SHARDS, ALL, 2))


# ---- processes that die


def test_a_step_at_which_processes_die_twice_is_lost_and_nothing_else() -> None:
    shards = [[1, 2], [3, DEADLY, 5, FATAL, 7], [8], [DEADLY], [9, 10]]
    found = dict(run(works.squares, shards, range(5), 2))
    killed = -len("was ended by SIGKILL")
    assert found == {
        0: [1, 4],
        1: [9, killed, 25, -len("ended with status 3"), 49],
        2: [64],
        3: [killed],
        4: [81, 100],
    }
    told = dict(run(works.lost_steps, [[1], [DEADLY, FATAL]], range(2), 2))
    assert told == {0: {}, 1: {0: "was ended by SIGKILL", 1: "ended with status 3"}}


@pytest.mark.parametrize("shard", [[1, POISON], [DEADLY] * 30], ids=["at one step", "at every step"])
def test_if_processes_die_one_after_the_other_it_is_an_error(shard: list[int]) -> None:
    with pytest.raises(EngineError) as caught:
        list(run(works.squares, [[1], shard], range(2), 2))
    assert str(caught.value) == (
        "Worker processes die one after the other, the last of them was ended by SIGKILL: "
        "see whether there is memory enough, and run the same command again to go on."
    )


@pytest.mark.parametrize("dies", [works.dies_once, works.dies_once_at_a_step])
def test_a_process_that_dies_once_loses_nothing(
    dies: Callable[[Path], Callable[[], Any]], tmp_path: Path
) -> None:
    found = dict(run(dies(tmp_path / "marker"), SHARDS, ALL, 2))
    assert (tmp_path / "marker").exists()
    assert found == {number: [one * one for one in SHARDS[number]] for number in ALL}


def test_a_process_that_dies_in_the_midst_of_its_answer_loses_nothing(tmp_path: Path) -> None:
    found = {}
    for number, result in run(works.dies_while_answering(tmp_path / "marker"), [[0], [1]], [0, 1], 2):
        found[number] = set(result)
        while not (tmp_path / "marker").exists():
            time.sleep(0.01)
        if len(found) == 1:
            time.sleep(0.6)  # meanwhile the other waits for its answer to be taken, and dies
    assert found == {0: {0}, 1: {1}}


def test_a_step_that_takes_too_long_is_lost_at_once_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("siteloom.engines.local_engine._MOST_DEATHS", 2)
    began = tmp_path / "began"
    ((_, lost),) = run(works.stuck(began), [[2, 1, 4, 3, 5]], [0], 2)
    assert lost == dict.fromkeys([1, 3, 4], "was ended by SIGVTALRM")
    assert began.read_text().split() == ["0", "1", "2", "3"]


# ---- ends


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "forgotten"])
def test_processes_end_with_the_generator(is_closed: bool) -> None:
    results = run(works.squares, SHARDS, ALL, 2)
    next(results)
    assert len(multiprocessing.active_children()) == 2
    if is_closed:
        results.close()
    else:
        del results


def test_ctrl_c_does_not_reach_the_processes() -> None:
    assert dict(run(works.tells_mask, [[1], [2]], range(2), 2)) == {0: True, 1: True}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_ctrl_c_while_a_process_is_started_is_just_that(monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    def press() -> None:
        signal.raise_signal(signal.SIGINT)

    if moment == "before":
        monkeypatch.setattr("multiprocessing.resource_tracker.ensure_running", press)
    else:
        process = multiprocessing.get_context("spawn").Process
        start = process.start

        def pressed_start(self: object) -> None:
            press()
            start(self)  # type: ignore[arg-type]

        monkeypatch.setattr(process, "start", pressed_start)
    with pytest.raises(KeyboardInterrupt):
        next(run(works.squares, SHARDS, ALL, 2))


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends between opening and reading
        return False
    return state != "Z"


def test_processes_end_when_the_first_one_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from tests.engines.test_local_engine import run; "
        "from tests.engines import works\n"
        "if __name__ == '__main__':\n"
        "    list(run(works.waits_for(Path(sys.argv[1])), [[0], [-1]], range(2), 2))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], cwd=Path(__file__).parents[2], stderr=subprocess.PIPE
    )
    files = [tmp_path / "0.begun", tmp_path / "-1.begun"]
    wait_until(lambda: all(file.exists() and file.read_text() for file in files))
    workers = [int(file.read_text()) for file in files]
    assert all(map(is_running, workers))
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=SECONDS)
    try:
        wait_until(lambda: not any(map(is_running, workers)))
    finally:
        (tmp_path / "go").touch()  # so that none stays for ever


# ---- parts


class Rows(NamedTuple):
    """Rows in memory, as those of files."""

    tables: dict[str, Any]
    schema: Any

    @property
    def files(self) -> Sequence[str]:
        return list(self.tables)

    def read(self, file: str, parts: frozenset[int]) -> Iterator[Any]:
        wanted = pc.is_in(self.tables[file]["part"], pa.array(sorted(parts), pa.int32()))
        yield from self.tables[file].filter(wanted).to_batches()


ROWS = st.lists(st.tuples(st.integers(0, 3), st.text(max_size=2), st.integers(0, 99)), max_size=40)


@given(st.lists(ROWS, max_size=20), st.sets(st.integers(0, 5), min_size=1))
def test_rows_of_a_part_come_in_order_and_in_small_batches(
    files: list[list[tuple[int, str, int]]], parts: set[int]
) -> None:
    schema = pa.schema(
        [("part", pa.int32()), ("key", pa.string()), ("place", pa.int64()), ("x", pa.binary())]
    )
    of_files = {
        str(number): pa.Table.from_pylist(
            [{"part": p, "key": f"{p}{k}", "place": place, "x": k.encode() * 40} for p, k, place in rows],
            schema,
        )
        for number, rows in enumerate(files)
    }
    told: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("siteloom.engines.local_engine.BYTES_OF_A_BATCH", 400)
        found = LocalEngine(1).regroup(works.batches, Rows(of_files, schema), sorted(parts), told.append)
    everything = [row for rows in files for row in rows]
    assert {part for part, _ in found} == parts & {part for part, _, _ in everything}
    for part, batches in found:
        rows = [(row["key"], row["place"]) for batch in batches for row in batch.to_pylist()]
        assert rows == sorted((f"{p}{k}", place) for p, k, place in everything if p == part)
        assert all(batch.num_rows == 1 or batch.nbytes <= 400 for batch in batches)
    assert sum(told) == len(parts)


def test_large_batches_are_cut() -> None:
    batch = pa.RecordBatch.from_pydict({"x": [b"x" * 30_000_000] * 3 + [b""] * 1_200})
    pieces = list(split_batch(batch))
    assert sum(piece.num_rows for piece in pieces) == 1_203
    assert all(piece.num_rows <= 500 and piece.nbytes <= 64_000_000 for piece in pieces)


# ---- how much is under way


def test_no_shard_is_begun_too_far_ahead_of_one_that_is_not_done(tmp_path: Path) -> None:
    begun: list[str] = []

    def look_and_let_go() -> None:
        wait_until(lambda: len(list(tmp_path.iterdir())) >= 17)
        time.sleep(0.3)  # for those that should not begin
        begun[:] = [file.name for file in tmp_path.iterdir()]
        (tmp_path / "go").touch()

    threading.Thread(target=look_and_let_go).start()
    shards = [[number] for number in range(40)]
    found = [number for number, _ in run(works.waits_for(tmp_path), shards, range(40), 2)]
    assert sorted(begun) == sorted(f"{number}.begun" for number in range(17))  # 8 for each process
    assert sorted(found) == list(range(40))
    assert found.index(0) == 16


def test_what_was_given_is_forgotten() -> None:
    tracemalloc.start()
    for _, result in run(works.large, [[0]] * 12, range(12), 2):
        assert len(result) == 8_000_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40_000_000
