"""Runs of stages into a folder: what is done is done once, and nothing else is touched."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import OutputError, SourceError
from siteloom.core.model import Failure
from siteloom.core.table_files import Column, arrow_schema, arrow_table
from siteloom.engines.engine import group_batches
from siteloom.engines.local_engine import LocalEngine
from siteloom.engines.whole_crawls.crawl_run import (
    BulkRun,
    Counts,
    Outbox,
    partition_count,
    partition_of,
    place_of,
    row_schema,
    shard_and_item,
)
from siteloom.engines.whole_crawls.output_folder import OutputFolder
from siteloom.html.time_limit import Lost
from tests.engines.whole_crawls.results import marks, results

PARTS = 3
WORDS = ["a b", "b c b", "", "c a"]
Step = Callable[[int], None]


class Counting:
    """Sends the words of a shard; of shards that are broken it says so."""

    def __init__(self, done: list[int], broken: frozenset[int] = frozenset()) -> None:
        self._done = done
        self._broken = broken

    def __call__(self, shard: str, lost: Lost, step: Step, out: Outbox) -> None:  # noqa: ARG002 - none
        if out.number in self._broken:
            raise OutputError("The disk is full.")
        self._done.append(out.number)
        for number, word in enumerate(shard.split()):
            out.send(word, place_of(out.number, number), length=len(word))
        if not shard:
            out.failures.append(Failure(f"shard {out.number}", "empty"))
        out.counts["words"] = len(shard.split())


class Writing:
    """Writes where each word of a part was."""

    def __init__(self, done: list[str]) -> None:
        self._done = done

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        schema = arrow_schema((Column("place", "integer"),))
        out.counts["words"] = []
        for word, found in group_batches("key", batches):
            places = [place for batch in found for place in batch.column("place").to_pylist()]
            out.write(word, arrow_table(schema, [{"place": place} for place in places]))
            out.counts["words"].append(word)
            self._done.append(word)


def begin(folder: Path, fingerprint: str = "this") -> BulkRun:
    return BulkRun(LocalEngine(1), OutputFolder(str(folder)), fingerprint, PARTS, lambda *_: lambda _: None)


def count(run: BulkRun, done: list[int], broken: frozenset[int] = frozenset()) -> list[Counts]:
    schema = row_schema(("length", pa.int64()))
    return run.shards("count", lambda: Counting(done, broken), WORDS, schema)


def finish(run: BulkRun, done: list[int], written: list[str]) -> Counts:
    counted = count(run, done)
    listed = run.partitions("list", lambda: Writing(written), of="count")
    return run.finish(
        {"words": sum(one["words"] for one in counted), "different": sum(len(one["words"]) for one in listed)}
    )


def test_a_run_without_pages_is_not_done(tmp_path: Path) -> None:
    assert begin(tmp_path).finish({"pages": 0}) == {"pages": 0}
    assert begin(tmp_path).finished is None


def test_rows_of_a_key_meet_in_the_order_of_places(tmp_path: Path) -> None:
    done: list[int] = []
    run = begin(tmp_path)
    assert run.finished is None
    assert finish(run, done, []) == {"words": 7, "different": 3} == begin(tmp_path).finished
    found = {name.split("/")[0]: rows for name, rows in results(tmp_path).items() if name.startswith("site=")}
    assert found == {
        "site=a": [{"place": place_of(0, 0)}, {"place": place_of(3, 1)}],
        "site=b": [{"place": place_of(0, 1)}, {"place": place_of(1, 0)}, {"place": place_of(1, 2)}],
        "site=c": [{"place": place_of(1, 1)}, {"place": place_of(3, 0)}],
    }
    assert list(run.failures()) == [Failure("shard 2", "empty")]
    assert [file.name for file in (tmp_path / "_run").iterdir()] == ["plan.json"]
    assert done == [0, 1, 2, 3]


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    finish(begin(tmp_path / "undisturbed"), [], [])
    done: list[int] = []
    with pytest.raises(OutputError, match="disk"):
        count(begin(tmp_path / "out"), done, broken=frozenset([2]))
    assert sorted(marks(tmp_path / "out", "count")) == ["00000000.json", "00000001.json"]
    assert [one["words"] for one in count(begin(tmp_path / "out"), done)] == [2, 3, 0, 2]
    assert done == [0, 1, 2, 3]
    written: list[str] = []
    finish(begin(tmp_path / "out"), done, written)
    assert done == [0, 1, 2, 3]
    assert sorted(written) == ["a", "b", "c"]
    assert results(tmp_path / "out") == results(tmp_path / "undisturbed")


def test_a_shard_whose_mark_is_missing_is_done_again_and_gives_the_same(tmp_path: Path) -> None:
    run = begin(tmp_path / "out")
    count(run, [])
    run.partitions("list", lambda: Writing([]), of="count")
    removed = tmp_path / "out" / "_run" / "list" / f"{partition_of('b', PARTS):08}.json"
    removed.unlink()
    written: list[str] = []
    done: list[int] = []
    assert finish(begin(tmp_path / "out"), done, written) == {"words": 7, "different": 3}
    assert done == []
    assert written == sorted(word for word in "abc" if partition_of(word, PARTS) == partition_of("b", PARTS))


def test_a_folder_with_something_else_or_of_another_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(OutputError, match=r"mine holds something else already: give another -o\."):
        begin(tmp_path / "mine")
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    begin(tmp_path / "out")
    begin(tmp_path / "out")
    with pytest.raises(OutputError, match="holds the results of another run, of other pages or with other"):
        begin(tmp_path / "out", "that")


def test_a_stage_that_sends_nothing_leaves_nothing_to_do(tmp_path: Path) -> None:
    run = begin(tmp_path)
    run.shards("count", lambda: Counting([]), ["", ""], row_schema(("length", pa.int64())))
    assert run.partitions("list", lambda: Writing([]), of="count") == []
    assert json.loads((tmp_path / "_run" / "count" / "00000001.json").read_text())["rows"] == 0


@given(st.text(), st.integers(1, 5_000), st.integers(0, 2**31 - 1), st.integers(0, 2**32 - 1))
def test_parts_and_places_say_what_they_were_made_of(key: str, parts: int, shard: int, item: int) -> None:
    assert 0 <= partition_of(key, parts) < parts
    assert shard_and_item(place_of(shard, item)) == (shard, item)
    assert place_of(shard, item) < place_of(shard + 1, 0)


def test_parts_grow_with_shards() -> None:
    assert [partition_count(shards) for shards in (0, 1, 2, 3, 1_000, 10**7)] == [1, 1, 1, 2, 500, 4_096]


def test_what_was_killed_at_the_very_start_or_end_is_taken_up(tmp_path: Path) -> None:
    (tmp_path / "_run").mkdir()
    (tmp_path / "_run" / ".plan.json.tmp").touch()
    run = begin(tmp_path)
    finish(run, [], [])
    (tmp_path / "_run" / "count").mkdir()
    (tmp_path / "_run" / "count" / "00000000.parquet").touch()
    assert begin(tmp_path).finished is not None
    assert not (tmp_path / "_run" / "count").exists()
    (tmp_path / "other" / "_run").mkdir(parents=True)
    (tmp_path / "other" / "_run" / "thesis.txt").touch()
    with pytest.raises(OutputError, match="something else"):
        begin(tmp_path / "other")


def test_failures_of_a_killed_attempt_are_gone(tmp_path: Path) -> None:
    folder = OutputFolder(str(tmp_path))
    killed = Outbox(folder, "count", 0, PARTS)
    killed.failures.append(Failure("http://a.example/", "process lost"))
    killed.close(None)
    assert len(folder.names("_failures")) == 1
    Outbox(folder, "count", 0, PARTS).close(None)
    assert folder.names("_failures") == []


def test_parts_without_rows_are_not_looked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def only_a(run: BulkRun) -> list[Counts]:
        run.shards("count", lambda: Counting([]), ["a", "a"], row_schema(("length", pa.int64())))
        return run.partitions("list", lambda: Writing([]), of="count")

    found = only_a(begin(tmp_path))
    assert found == [{"words": ["a"]}]
    # No row is read again.
    monkeypatch.setattr(LocalEngine, "regroup", None)
    assert only_a(begin(tmp_path)) == found


def test_what_another_process_has_finished_is_not_done_again(tmp_path: Path) -> None:
    slow = begin(tmp_path)
    count(slow, [])
    finish(begin(tmp_path), [], [])
    with pytest.raises(OutputError, match="Another process has finished"):
        slow.partitions("list", lambda: Writing([]), of="count")
    with pytest.raises(OutputError, match="Another process has finished"):
        slow.stored_contents("wanted").read(0)
    assert begin(tmp_path).finished == {"words": 7, "different": 3}


class Faltering:
    """Fails at first, as a disk may; the third time all is well."""

    tries = 0

    def __call__(self, shard: str, lost: Lost, step: Step, out: Outbox) -> None:  # noqa: ARG002 - none
        Faltering.tries += 1
        if Faltering.tries < 3:
            raise SourceError("a.warc cannot be reached.")
        out.failures.append(Failure(shard, "of the third"))


def test_what_may_be_well_again_is_tried_three_times(tmp_path: Path) -> None:
    Faltering.tries = 0
    run = begin(tmp_path)
    run.shards("falter", Faltering, ["a"])
    assert Faltering.tries == 3
    assert [failure.reason for failure in run.failures()] == ["of the third"]
    Faltering.tries = -1
    with pytest.raises(SourceError, match="cannot be reached"):
        run.shards("falter again", Faltering, ["a"])
    assert marks(tmp_path, "falter again") == {}
