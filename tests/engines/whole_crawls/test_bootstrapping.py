"""The sites of a crawl wrapped from known records: each comes out as it does by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import siteloom
from siteloom.core.errors import SourceError, UsageError, WrapperError
from siteloom.core.model import Failure, Page, Seed
from siteloom.engines.local_engine import LocalEngine
from siteloom.engines.whole_crawls import bootstrap_crawl
from siteloom.engines.whole_crawls.bootstrap_crawl import NO_OVERLAP, bootstrap_in_bulk, chosen_pages
from siteloom.engines.whole_crawls.crawl_run import BulkRun
from siteloom.engines.whole_crawls.output_folder import OutputFolder
from siteloom.html.page_text_arrays import PageTexts
from siteloom.html.time_limit import LOST, Lost
from siteloom.learning.known_records.aligned_pages import KnownRecords, ShownRecords, shown_records
from siteloom.learning.known_records.site_bootstrap import SiteBootstrap
from siteloom.sources.page_source import SourceItem
from siteloom.wrappers.matching import NamedWrapper
from siteloom.wrappers.named_wrappers import wrappers_of_files
from siteloom.wrappers.wrapper import Wrapper
from tests.apps.cli.changing import done, inside
from tests.apps.cli.command import one_sentence
from tests.apps.cli.verbs.test_learn import within, write_lines
from tests.learning.known_records import sites

EAT, DINE, PARTS, DEEP = "eat.example", "dine.example", "parts.example", "deep.example"
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
SHARDS = 4


@dataclass(frozen=True)
class Shard:
    """Some pages, and how often they were read."""

    pages: tuple[SourceItem, ...]
    reads: list[int]

    def read(self) -> Iterator[SourceItem]:
        self.reads.append(1)
        return iter(self.pages)

    def shards(self) -> Sequence[Shard]:
        return (self,)


@cache
def crawl() -> tuple[tuple[SourceItem, ...], ...]:
    """Two sites about restaurants, one about something else, one that cannot be read; by shard.

    Of one page there is an older version, which has another name of the restaurant.
    """
    eat = [replace(page, fetched_at=NOON) for page in sites.pages()]
    dine = [moved(page, DINE) for page in sites.pages(without=("phone",), promotions=1)]
    parts = [
        Page.from_text(f"https://{PARTS}/{n}", f"<h1>Bolt M{n}</h1><p>Shelf {7 * n}</p>") for n in range(12)
    ]
    deep = [Page(f"https://{DEEP}/{n}", b"<div>" * 3_000) for n in range(3)]
    name = sites.ON_SITE[4].name.encode()
    old = replace(
        eat[4], html=eat[4].html.replace(name, b"Closed"), fetched_at=datetime(2024, 1, 1, tzinfo=UTC)
    )
    items: list[SourceItem] = [*eat, *dine, *parts, *deep, old, Failure("a.warc", "cut off")]
    return tuple(tuple(items[number::SHARDS]) for number in range(SHARDS))


def moved(page: Page, site: str) -> Page:
    return replace(page, url=page.url.replace(EAT, site))


def pages_of(site: str) -> list[Page]:
    """The newest pages of a site in the order of the crawl."""
    pages = [item for shard in crawl() for item in shard if isinstance(item, Page) and site in item.url]
    return [page for page in pages if b"Closed" not in page.html]


def shards() -> list[Shard]:
    return [Shard(pages, []) for pages in crawl()]


def begun(folder: Path, parts: int = 3) -> BulkRun:
    return BulkRun(LocalEngine(1), OutputFolder(str(folder)), "f", parts, lambda *_: lambda _: None)


def wrapped(folder: Path, sources: Sequence[Any] = (), seeds: Sequence[Seed] | None = None) -> dict[str, Any]:
    known = sites.seeds() if seeds is None else seeds
    return bootstrap_in_bulk(begun(folder), sources or shards(), known, sites.CORE)


def row_of(folder: Path, site: str) -> Mapping[str, Any]:
    (file,) = (folder / f"site={site}").iterdir()
    (row,) = pq.ParquetFile(file).read().to_pylist()
    return dict(row)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bootstrap") / "out"
    wrapped(folder)
    return folder


@pytest.mark.parametrize("site", [EAT, DINE])
def test_a_site_is_wrapped_as_by_itself(output: Path, site: str) -> None:
    alone = siteloom.bootstrap(sites.seeds(), pages_of(site), sites.CORE)
    assert alone.wrapper is not None
    row = row_of(output, site)
    assert row["outcome"] == "wrapped"
    assert row["wrapper"] == alone.wrapper.to_json()
    assert (row["seeds_matched"], row["pages"], row["pages_matched"]) == (30, 40, alone.pages_matched)
    assert json.loads(row["evidence"]) == {name: one._asdict() for name, one in alone.attributes.items()}
    assert set(row["attributes"]) == {"name", "address", "cuisine"} | ({"phone"} if site == EAT else set())


@pytest.mark.parametrize("site", [PARTS, DEEP])
def test_a_site_without_overlap_is_refused_for_the_same_reason(output: Path, site: str) -> None:
    alone = siteloom.bootstrap(sites.seeds(), pages_of(site), sites.CORE)
    assert Failure(site, NO_OVERLAP, alone.reason) in list(begun(output).failures())
    assert not (output / f"site={site}").exists()


def test_all_is_counted(output: Path) -> None:
    counts = begun(output).finished
    assert counts is not None
    assert counts["outcomes"] == {"wrapped": 2, "failed": 0, "poor": 2}
    assert (counts["pages"], counts["skipped"], counts["failed"]) == (
        96,
        0,
        {"nested too deeply": 3, "cut off": 1},
    )
    assert [(one["site"], one["outcome"], one["seeds"], one["pages"]) for one in counts["sites"]] == [
        (DINE, "wrapped", 30, 40),
        (EAT, "wrapped", 30, 40),
        (DEEP, "poor", 0, 0),
        (PARTS, "poor", 0, 12),
    ]
    unread = [failure.reason for failure in begun(output).failures() if failure.reason != NO_OVERLAP]
    assert sorted(unread) == [
        "cut off",
        *["nested too deeply"] * 3,
    ]  # each once, though shards are read twice


def test_of_a_large_site_some_pages_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap_crawl, "MOST_PAGES", 60)
    others = [Page.from_text(f"https://{EAT}/about/{n}", f"<p>About {n}</p>") for n in range(200)]
    wrapped(tmp_path, [*shards(), Shard(tuple(others), [])])
    row = row_of(tmp_path, EAT)
    assert (row["outcome"], row["pages"]) == ("wrapped", 60)
    assert row["seeds_matched"] >= 25  # all would be 30


def test_a_folder_of_wrappers_extracts_the_crawl(output: Path, tmp_path: Path) -> None:
    texts = wrappers_of_files([str(output)])
    assert texts == [
        NamedWrapper(site, None, Wrapper.from_json(row_of(output, site)["wrapper"])) for site in (DINE, EAT)
    ]
    assert wrappers_of_files([output.as_uri()]) == texts
    twice = wrappers_of_files([str(output), output.as_uri()])
    assert [one.name for one in twice[::2]] == [f"{output}/{DINE}", f"{output.as_uri()}/{DINE}"]
    with inside(tmp_path):
        rows = [
            {"url": page.url, "html": page.html.decode()} for site in (EAT, DINE) for page in pages_of(site)
        ]
        write_lines(tmp_path / "crawl.jsonl", rows)
        done("extract", "crawl.jsonl", "--wrapper", str(output), "-o", "records.jsonl")
        records = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert len(records) == 80
    assert {record["wrapper"] for record in records} == {EAT, DINE}
    assert {record["values"]["name"][0] for record in records} == {one.name for one in sites.ON_SITE}


def test_folders_without_wrappers_are_told(output: Path, tmp_path: Path) -> None:
    with pytest.raises(WrapperError, match="no folder that siteloom bootstrap has finished"):
        wrappers_of_files([str(output / "_failures")])
    with pytest.raises(WrapperError, match="no folder that siteloom bootstrap has finished"):
        wrappers_of_files(["memory://nothing"])
    begun(tmp_path).finish({"tally": []})  # as extract does
    with pytest.raises(WrapperError, match="no folder that siteloom bootstrap has finished"):
        wrappers_of_files([str(tmp_path)])
    begun(tmp_path).finish({"outcomes": {"wrapped": 0}})
    with pytest.raises(WrapperError, match=r"There is no wrapper in .*: no site could be wrapped\."):
        wrappers_of_files([str(tmp_path)])


def test_what_was_stopped_goes_on_where_it_was(
    output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    sources = shards()
    monkeypatch.setattr(bootstrap_crawl._Choosing, "__call__", stop)
    with pytest.raises(KeyboardInterrupt):
        wrapped(tmp_path, sources)
    monkeypatch.undo()
    monkeypatch.setattr(bootstrap_crawl._Wrapping, "__call__", stop)
    with pytest.raises(KeyboardInterrupt):
        wrapped(tmp_path, sources)
    monkeypatch.undo()
    wrapped(tmp_path, sources)
    assert [len(shard.reads) for shard in sources] == [2] * SHARDS  # to be matched, and to be sent
    for site in (EAT, DINE):
        assert row_of(tmp_path, site) == row_of(output, site)
    assert begun(tmp_path).finished == begun(output).finished
    assert list(begun(tmp_path).failures()) == list(begun(output).failures())


def test_pages_that_are_gone_meanwhile_are_an_error_and_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = shards()
    read = Shard.read
    gone = Failure("a.warc", "connection failed")
    monkeypatch.setattr(Shard, "read", lambda shard: iter([gone]) if shard.reads else read(shard))
    with pytest.raises(SourceError, match=r"cannot be read again: a\.warc, connection failed\."):
        wrapped(tmp_path, sources)


def test_a_page_at_which_processes_die_later_is_told(tmp_path: Path) -> None:
    class LosingLater(LocalEngine):
        def run(self, start: Any, shards: Any, on_done: Any = lambda _: None) -> Any:
            work = start()
            is_later = (tmp_path / "_run" / "wanted").exists()
            lost = {
                number: Lost({0: "was killed"} if is_later and number == 0 else {}) for number, _ in shards
            }
            return [(number, work(shard, lost[number], on_done)) for number, shard in shards]

    run = BulkRun(LosingLater(1), OutputFolder(str(tmp_path)), "f", 3, lambda *_: lambda _: None)
    counts = bootstrap_in_bulk(run, shards(), sites.seeds(), sites.CORE)
    assert counts["failed"] == {"nested too deeply": 3, "cut off": 1, LOST: 1}
    assert [one.url for one in run.failures() if one.reason == LOST] == [pages_of(EAT)[0].url]
    assert row_of(tmp_path, EAT)["pages"] == 39


def test_a_site_at_which_something_breaks_is_that_site_only(
    output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap = SiteBootstrap.__call__

    def breaking(self: Any, pages: Sequence[Page]) -> Any:
        if DINE in pages[0].url:
            raise ZeroDivisionError("of dine")
        return bootstrap(self, pages)

    monkeypatch.setattr(SiteBootstrap, "__call__", breaking)
    counts = wrapped(tmp_path)
    assert counts["outcomes"] == {"wrapped": 1, "failed": 1, "poor": 2}
    row = row_of(tmp_path, DINE)
    assert (row["outcome"], row["reason"], row["wrapper"]) == ("failed", "ZeroDivisionError('of dine')", None)
    assert row_of(tmp_path, EAT) == row_of(output, EAT)


def test_a_page_at_which_the_join_breaks_takes_no_other_with_it(
    output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaking(known: KnownRecords, texts: PageTexts) -> ShownRecords:
        if "Bolt M7" in texts.texts:
            raise ZeroDivisionError
        return shown_records(known, texts)

    monkeypatch.setattr(bootstrap_crawl, "shown_records", breaking)
    counts = wrapped(tmp_path)
    assert counts["failed"] == {"nested too deeply": 3, "cut off": 1, "processing failed": 1}
    assert row_of(tmp_path, EAT) == row_of(output, EAT)


def test_what_is_wrong_with_seeds_is_told_before_any_page_is_read(tmp_path: Path) -> None:
    sources = shards()
    only_names = [Seed({"name": seed.values["name"]}) for seed in sites.seeds()]
    with pytest.raises(UsageError, match="The seeds have only name"):
        bootstrap_in_bulk(begun(tmp_path), sources, only_names, ("name",))
    with pytest.raises(UsageError, match="No seed has the attribute address"):
        bootstrap_in_bulk(begun(tmp_path), sources, only_names, sites.CORE)
    assert not any(shard.reads for shard in sources)


@given(
    st.integers(1, 60),
    st.lists(st.tuples(st.integers(0, 59), st.integers(0, 9), st.floats(4, 40)), max_size=80),
    st.integers(2, 20),
)
def test_chosen_pages_are_few_and_each_record_has_its_turn(
    pages: int, found: list[tuple[int, int, float]], most: int
) -> None:
    of_pages = sorted({(page, record): bits for page, record, bits in found if page < pages}.items())
    shown = ShownRecords(
        np.array([page for (page, _), _ in of_pages], np.int32),
        np.array([record for (_, record), _ in of_pages], np.int32),
        np.array([bits for _, bits in of_pages], np.float64),
    )
    chosen = chosen_pages(pages, shown, most).tolist()
    assert len(chosen) == min(pages, most)
    assert chosen == sorted(set(chosen))
    assert set(chosen) <= set(range(pages))
    best: dict[int, tuple[float, int]] = {}
    for (page, record), bits in of_pages:
        best[record] = max(best.get(record, (0.0, 0)), (bits, -page))
    if len(best) <= most // 2:
        assert {-page for _, page in best.values()} <= set(chosen)


# ---- the command


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crawl")
    pages = [page for site in (EAT, DINE, PARTS, DEEP) for page in pages_of(site)]
    write_lines(folder / "crawl.jsonl", [{"url": page.url, "html": page.html.decode()} for page in pages])
    write_lines(folder / "seeds.jsonl", [dict(seed.values) for seed in sites.seeds()])
    return folder


COMMAND = (
    "bootstrap",
    "crawl.jsonl",
    "--seeds",
    "seeds.jsonl",
    "--core",
    "name,address",
    "--engine",
    "local",
)


def test_a_crawl_is_wrapped_and_extracted_by_two_commands(place: Path) -> None:
    with inside(place):
        told = done(*COMMAND, "-o", "wrappers")
        assert "wrapped: 2, failed: 0, poor: 2" in told
        assert "siteloom extract crawl.jsonl --wrapper wrappers -o FILE" in told
        again = done(*COMMAND, "-o", "wrappers")
        assert "is done already" in again
        assert "wrapped: 2, failed: 0, poor: 2" in again
        of_crawl = ("extract", "crawl.jsonl", "--wrapper", "wrappers", "--engine", "local")
        assert "The records are in records" in done(*of_crawl, "-o", "records")
    assert pq.read_table(place / "records").num_rows == 80


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--rounds", "2"), "--rounds, --suggestions and --evidence do not go with --engine"),
        (("--site", EAT), "do not go with --engine: leave them out."),
        (("--evidence", "e.jsonl"), "do not go with --engine: leave them out."),
        (("--suggestions", "s.jsonl"), "do not go with --engine: leave them out."),
    ],
)
def test_mistakes_are_told_in_a_sentence(place: Path, arguments: tuple[str, ...], told: str) -> None:
    with inside(place):
        assert told in one_sentence(within(*COMMAND, *arguments, "-o", "none"))
        assert not (place / "none").exists()
