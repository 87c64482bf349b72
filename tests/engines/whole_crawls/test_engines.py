"""The same comes of the same work on all engines, whatever is killed meanwhile.

All tests that start Spark are here: there is one session at a time in a process, and Java takes seconds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from siteloom.apps.cli.main import app
from siteloom.core.settings import ParseSettings
from siteloom.engines.engine import Engine
from siteloom.engines.local_engine import LocalEngine
from siteloom.engines.spark_engine import SparkEngine
from siteloom.engines.whole_crawls.bootstrap_crawl import bootstrap_in_bulk
from siteloom.engines.whole_crawls.clean_crawl import clean_in_bulk
from siteloom.engines.whole_crawls.cluster_crawl import cluster_in_bulk
from siteloom.engines.whole_crawls.crawl_run import BulkRun, Counts, partition_count, row_schema
from siteloom.engines.whole_crawls.extract_crawl import extract_in_bulk
from siteloom.engines.whole_crawls.output_folder import OutputFolder, site_folder
from siteloom.sources.open_sources import open_sources
from siteloom.sources.page_source import PageSource
from siteloom.wrappers.matching import NamedWrapper
from tests.engines import works
from tests.engines.test_local_engine import is_running
from tests.engines.whole_crawls import crawls, part_works
from tests.engines.whole_crawls.part_works import Files
from tests.engines.whole_crawls.results import marks, results
from tests.engines.whole_crawls.spark_cluster import SETTINGS, Cluster, environment, running_cluster
from tests.engines.works import DEADLY, FATAL
from tests.patience import SECONDS, wait_until

PARTS = 2  # each costs, and the sites of the crawl are in both
SHARDS = [(number, [number, number + 1]) for number in range(6)]
SQUARES = {number: [one * one for one in shard] for number, shard in SHARDS}

FILES, COPIES = 4, 3
ROW_FILES = 4


# ---- engines


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


# Sessions are started one after the other, so tests of one stand together. Those of shards on processes are
# with the local engine; a session within this process differs only in how it is started and interrupted.
ON_MANY = pytest.mark.parametrize("engine", ["processes", "Spark cluster"], indirect=True)
IN_HERE = pytest.mark.parametrize("engine", ["Spark in here"], indirect=True)
ON_CLUSTER = pytest.mark.parametrize("engine", ["Spark cluster"], indirect=True)


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    match request.param:
        case "one process":
            yield LocalEngine(1)
        case "processes":
            yield LocalEngine(2)
        case "Spark in here":
            with spark("local[1]") as engine:
                yield engine
        case _:
            with spark(request.getfixturevalue("cluster").url) as engine:
                yield engine


def spark(master: str, settings: Mapping[str, str] | None = None) -> SparkEngine:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment().items():
            patch.setenv(name, value)
        return SparkEngine(master, {**SETTINGS, **(settings or {})})


# ---- shards


@ON_CLUSTER
def test_shards_give_the_same(engine: Engine) -> None:
    told: list[int] = []
    assert dict(engine.run(works.squares, SHARDS, told.append)) == SQUARES
    assert sum(told) == len(SHARDS)
    assert min(told) >= 0
    assert engine.run(works.squares, [], told.append) == []


@ON_CLUSTER
def test_what_kills_its_process_is_left_out_and_nothing_else(engine: Engine) -> None:
    shards = [(0, [1, 2]), (7, [3, DEADLY, 5, FATAL, 7])]
    assert dict(engine.run(works.lost_steps, shards, on_done)) == {
        0: {},
        7: {1: "was ended by SIGKILL", 3: "ended with status 3"},
    }


@ON_CLUSTER
def test_what_is_killed_once_is_done_again_with_nothing_left_out(engine: Engine, tmp_path: Path) -> None:
    assert dict(engine.run(works.dies_once_at_a_step(tmp_path / "marker"), SHARDS, on_done)) == SQUARES
    assert (tmp_path / "marker").exists()


@ON_CLUSTER
def test_an_error_comes_out_as_it_is(engine: Engine, rows: Files) -> None:
    with pytest.raises(works.Refused, match=r"^3 is refused: no luck\.") as caught:
        engine.run(works.refuses, [(0, [1]), (1, [3]), (2, [5])], on_done)
    assert caught.value.number == 3
    with pytest.raises(works.Refused, match=r"^1 is refused: no luck\."):
        engine.regroup(part_works.refuses, rows, range(PARTS), on_done)
    with pytest.raises(works.Refused):
        engine.run(works.cannot_start, SHARDS, on_done)


# ---- parts


@pytest.fixture
def rows(tmp_path: Path) -> Files:
    """Files of rows of parts 0 and 1; those of a key are in all files, and not in order."""
    schema = row_schema(("content", pa.binary()))
    for number in range(ROW_FILES):
        table = [
            {"part": part, "key": key, "place": place * 100 - number, "content": bytes([0, place, 255])}
            for part, key in ((0, "a"), (0, "ä"), (0, "\uffff"), (0, "\U0001f600"), (1, "Z"))
            for place in range(5)
        ]
        pq.write_table(pa.Table.from_pylist(table, schema), tmp_path / f"{number}.parquet")
    return Files([str(tmp_path / f"{number}.parquet") for number in range(ROW_FILES)], schema)


@ON_MANY
def test_parts_give_the_same(engine: Engine, rows: Files) -> None:
    told: list[int] = []
    found = dict(engine.regroup(part_works.listing, rows, range(PARTS), told.append))
    places = sorted(
        (place * 100 - number, bytes([0, place, 255])) for number in range(ROW_FILES) for place in range(5)
    )
    assert found == {0: [(key, places) for key in ("a", "ä", "\uffff", "\U0001f600")], 1: [("Z", places)]}
    assert sum(told) == PARTS
    assert min(told) >= 0
    assert engine.regroup(part_works.listing, rows, [1, 2], on_done) == [(1, [("Z", places)])]
    assert engine.regroup(part_works.listing, rows._replace(files=[]), range(PARTS), on_done) == []


# ---- stages


def extract(run: BulkRun, shards: Sequence[PageSource]) -> Counts:
    wrappers = [NamedWrapper(name, None, one) for name, one in crawls.wrappers().items()]
    return extract_in_bulk(run, shards, wrappers, ParseSettings())


def cluster_by_tags(run: BulkRun, shards: Sequence[PageSource]) -> Counts:
    return cluster_in_bulk(run, shards, "vertex", ParseSettings())


def clean(run: BulkRun, shards: Sequence[PageSource]) -> Counts:
    return clean_in_bulk(run, shards, "share", "text", ParseSettings())


def bootstrap(run: BulkRun, shards: Sequence[PageSource]) -> Counts:
    return bootstrap_in_bulk(run, shards, crawls.known_records(), ("name", "address"))


STAGES: dict[str, Callable[[BulkRun, Sequence[PageSource]], Counts]] = {
    "extract": extract,
    "cluster by tags": cluster_by_tags,
    "clean": clean,
    "bootstrap": bootstrap,
}


def bulk_run(engine: Engine, folder: Path, parts: int = PARTS) -> BulkRun:
    return BulkRun(engine, OutputFolder(str(folder)), "a run", parts, lambda *_: on_done)


@pytest.fixture(scope="module")
def expected(crawl: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """What comes of a stage in one process."""

    @cache
    def find(stage: str) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp(stage) / "out"
        STAGES[stage](bulk_run(LocalEngine(1), folder), shards_of(crawl))
        return results(folder)

    return find


def shards_of(crawl: Path) -> list[PageSource]:
    names = ["crawl-0.warc.gz", "crawl-1.warc.gz", "crawl-2.parquet", "crawl-3.parquet"]
    opened = open_sources([str(crawl / name) for name in names])
    return [shard for source in opened for shard in source.shards()]


@ON_CLUSTER
@pytest.mark.parametrize("stage", [name for name in STAGES if name != "extract"])  # which is below
def test_stages_give_the_same(
    engine: Engine, stage: str, crawl: Path, expected: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    STAGES[stage](bulk_run(engine, tmp_path / "out"), shards_of(crawl))
    assert results(tmp_path / "out") == expected(stage)
    assert len(expected(stage)) > len(crawls.SITES)


# ---- what is killed


@ON_CLUSTER
def test_a_killed_worker_of_the_cluster_loses_nothing(
    engine: Engine, cluster: Cluster, crawl: Path, expected: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    def kill() -> None:
        process = tmp_path / "process"
        wait_until(process.exists)
        cluster.kill_worker_above(int(process.read_text()))

    first, *others = shards_of(crawl)
    killer = threading.Thread(target=kill)
    killer.start()
    extract(bulk_run(engine, tmp_path / "out"), [part_works.WaitingSource(first, tmp_path), *others])
    killer.join()
    assert results(tmp_path / "out") == expected("extract")


def kill_when_some_shards_are_done(command: Sequence[str], folder: Path) -> None:
    """Kill a command that extracts to `out` when it has done some shards. It leaves no process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "siteloom", *command],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    wait_until(lambda: len(marks(folder / "out", "extract")) > 1 or process.poll() is not None)
    process.kill()
    said, _ = process.communicate(timeout=SECONDS)
    assert said.splitlines() == ["Stage extract: 0 of 12 done."]  # Java says nothing of itself
    wait_until(lambda: processes_of(process.pid) == [])


def processes_of(session: int) -> list[int]:
    """The processes of a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            state, _, _, of, *_ = stat.read_text().rpartition(")")[2].split()
            if int(of) == session and state != "Z":
                found.append(int(stat.parent.name))
    return found


@pytest.mark.parametrize("engine", ["one process"], indirect=True)
def test_after_a_killed_driver_the_same_command_goes_on(
    engine: Engine, crawl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # workers must find the files that are named from here
    for copy in range(COPIES):
        for file in crawl.glob("*.warc.gz"):
            (tmp_path / f"{copy}-{file.name}").hardlink_to(file)
    alone = bulk_run(engine, tmp_path / "undisturbed", partition_count(FILES * COPIES))
    extract(alone, [shard for source in open_sources([f"{tmp_path}/*.gz"]) for shard in source.shards()])

    wrappers = [f"--wrapper={crawl / name}.json" for name in crawls.wrappers()]
    conf = [f"--spark-conf={name}={value}" for name, value in SETTINGS.items()]
    # Executors of a cluster would cost as much again, and know no more of the folder.
    on_spark = ["--engine", "spark", "--master", "local[1]", *conf]
    command = ["extract", "*.warc.gz", *wrappers, *on_spark, "-o", "out"]
    kill_when_some_shards_are_done(command, tmp_path)
    done = marks(tmp_path / "out", "extract")
    assert 0 < len(done) < FILES * COPIES

    at_the_end: dict[str, int] = {}
    clear = BulkRun._clear
    monkeypatch.setattr(
        BulkRun, "_clear", lambda run: (at_the_end.update(marks(tmp_path / "out", "extract")), clear(run))
    )
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert done.items() <= at_the_end.items()  # nothing is done again
    assert results(tmp_path / "out") == results(tmp_path / "undisturbed")


# ---- Spark within this process


@IN_HERE
def test_without_a_cluster_the_same_is_given_and_spark_reads_it(
    engine: SparkEngine, crawl: Path, expected: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    extract(bulk_run(engine, tmp_path / "out"), shards_of(crawl))
    assert results(tmp_path / "out") == expected("extract")
    sites = ["bücher.example", "例え.テスト", "a b+c%41=d", "[::1]:80"]
    for site in sites:
        table = pa.table({"site's own": [site]})
        OutputFolder(str(tmp_path / "out")).write_rows(f"{site_folder(site)}/more.parquet", table)
    read = engine._session.read.option("mergeSchema", "true").parquet(str(tmp_path / "out"))
    rows = [row for row in read.select("site", "site's own").distinct().collect() if row[1] is not None]
    assert sorted(rows) == [(site, site) for site in sorted(sites)]


@IN_HERE
def test_ctrl_c_ends_a_run_at_once_and_the_tasks_with_it(engine: Engine, tmp_path: Path) -> None:
    process = tmp_path / "process"

    def press() -> None:
        wait_until(process.exists)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        engine.run(part_works.waits_to_be_killed(tmp_path), SHARDS, on_done)
    wait_until(lambda: not is_running(int(process.read_text())))
    assert dict(engine.run(works.squares, SHARDS, on_done)) == SQUARES


def on_done(count: int) -> None:
    pass
