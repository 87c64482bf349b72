"""Records of a crawl in a folder: those that `siteloom extract` gives, by site."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from siteloom import Page
from siteloom.core.settings import ParseSettings
from siteloom.engines.local_engine import LocalEngine
from siteloom.engines.whole_crawls.crawl_run import BulkRun
from siteloom.engines.whole_crawls.extract_crawl import extract_in_bulk
from siteloom.engines.whole_crawls.output_folder import OutputFolder
from siteloom.extraction.extraction_counts import ExtractionCounts, most_first
from siteloom.html.time_limit import LOST
from siteloom.sources.page_source import Items
from siteloom.wrappers.matching import NamedWrapper
from tests.apps.cli.command import Command, one_sentence
from tests.engines.whole_crawls import crawls
from tests.engines.whole_crawls.results import results


@pytest.fixture
def extract(crawl: Path, tmp_path: Path) -> Command:
    """A folder beside which the crawl is."""
    for file in crawl.iterdir():
        (tmp_path / file.name).hardlink_to(file)
    return Command(tmp_path)


WRAPPERS = [
    option for name in ("guide", "directory", "redesigned") for option in ("--wrapper", f"{name}.json")
]
NO_FOLDER = "--engine local writes a folder of Parquet files: give -o FOLDER."
NO_MASTER = "No master of Spark answers at spark://127.0.0.1:1: see whether it runs, and what its address is."
WARCS = ("extract", "*.warc.gz", *WRAPPERS)


@pytest.mark.parametrize("files", ["*.warc.gz", "*.parquet"])
def test_the_records_are_those_of_the_verb_by_site(extract: Command, files: str) -> None:
    bulk = extract("extract", files, *WRAPPERS, "--engine", "local", "-o", "out", "--failures", "bulk.jsonl")
    assert bulk.returncode == 0, bulk.stderr
    plain = extract("extract", files, *WRAPPERS, "-o", "plain.parquet", "--failures", "plain.jsonl")
    assert plain.returncode == 0, plain.stderr
    found = results(extract.folder / "out")
    rows = [row for name in found if name.startswith("site=") for row in found[name]]
    assert sorted(rows, key=str) == sorted(
        pq.read_table(extract.folder / "plain.parquet").to_pylist(), key=str
    )
    assert {name.split("/")[0] for name in found if name.startswith("site=")} == {
        f"site={site}" for site in (crawls.GUIDE, crawls.DIRECTORY, crawls.REDESIGNED)
    }
    failures = lines(extract.folder / "bulk.jsonl")
    assert failures == lines(extract.folder / "plain.jsonl")
    assert crawls.broken().url in [one["url"] for one in failures]
    assert LOST not in [one["reason"] for one in failures]


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_pages_without_a_folder_are_failures_and_few_shapes_of_others_are_counted(tmp_path: Path) -> None:
    urls = [f"http://{'a' * 251}/", *(f"http://b.example/{'x' * length}/page" for length in range(1, 41))]
    urls.append("http://b.example/x/page")
    pages = Items(tuple(Page(url, b"<p>text") for url in urls))
    run = BulkRun(LocalEngine(1), OutputFolder(str(tmp_path)), "this", 1, lambda *_: lambda _: None)
    wrappers = [NamedWrapper(name, None, one) for name, one in crawls.wrappers().items()]
    counts = ExtractionCounts.from_rows(extract_in_bulk(run, [pages], wrappers, ParseSettings())["tally"])
    assert [failure.url for failure in run.failures() if failure.reason == "bad site name"] == urls[:1]
    unmatched = most_first(counts.unmatched_shapes)
    assert unmatched[:2] == [("other URLs", 8), ("b.example/x/*", 2)]
    assert len(unmatched) == 33
    assert sum(count for _, count in unmatched) == 41


def test_a_run_that_is_done_is_told_and_another_is_refused(extract: Command) -> None:
    first = extract(*WARCS, "--engine", "local", "-o", "out")
    assert first.returncode == 0
    done = {file: file.stat().st_mtime_ns for file in (extract.folder / "out").rglob("*")}
    again = extract(*WARCS, "--engine", "local", "-o", "out")
    stages, results = first.stderr.split("Extracted", 1)
    assert stages.splitlines() == ["Stage extract: 0 of 4 done.", "Stage records: 0 of 2 done."]
    assert again.stderr == f"out is done already: this is what came of it.\nExtracted{results}"
    assert done == {file: file.stat().st_mtime_ns for file in (extract.folder / "out").rglob("*")}
    other = extract("extract", "*.parquet", *WRAPPERS, "--engine", "local", "-o", "out")
    assert "out holds the results of another run, of other pages or with other choices" in one_sentence(other)
    mine = extract(*WARCS, "--engine", "local", "-o", ".")
    assert one_sentence(mine).endswith(" holds something else already: give another -o.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--engine", "nonsense", "-o", "out"), "There is no engine nonsense: use local or spark."),
        (("--master", "yarn", "-o", "out"), "--master is for --engine spark: add that, or leave it out."),
        (
            ("--engine", "local", "--spark-conf", "a=b", "-o", "out"),
            "--spark-conf is for --engine spark: add that, or leave it out.",
        ),
        (("--engine", "local"), NO_FOLDER),
        (("--engine", "local", "-o", "a.csv"), NO_FOLDER),
        (
            ("--engine", "local", "-o", "out", "--join", "name"),
            "--join, --site and --unordered do not go with --engine: leave them out.",
        ),
        (
            ("--engine", "spark", "--spark-conf", "memory", "-o", "out"),
            "--spark-conf memory is no setting: write it as KEY=VALUE.",
        ),
        (
            ("--engine", "spark", "--master", "spark://127.0.0.1:1", "-o", "out"),
            NO_MASTER,
        ),
        (
            ("--engine", "local", "-o", "nothing://there"),
            "nothing://there cannot be opened: Protocol not known: nothing.",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_a_sentence(extract: Command, options: tuple[str, ...], message: str) -> None:
    assert one_sentence(extract(*WARCS, *options)) == message
    assert not (extract.folder / "out").exists()


def test_without_java_spark_says_so(extract: Command) -> None:
    result = extract(
        *WARCS, "--engine", "spark", "-o", "out", environment={"PATH": str(extract.folder), "JAVA_HOME": ""}
    )
    assert one_sentence(result) == (
        "The engine spark needs Java: install version 17 or newer, or set JAVA_HOME."
    )
