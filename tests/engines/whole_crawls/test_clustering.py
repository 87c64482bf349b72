"""The clusters of a crawl: those of its sites as they are found one by one, whatever the shards."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow.parquet as pq
import pytest

import siteloom
from siteloom.core.errors import SourceError, UsageError
from siteloom.core.model import Clustering, Failure, Page, Skipped
from siteloom.core.settings import ParseSettings, StoreSettings
from siteloom.core.urls import site_of
from siteloom.engines.local_engine import LocalEngine
from siteloom.engines.whole_crawls import cluster_crawl, cluster_text_max
from siteloom.engines.whole_crawls.cluster_crawl import BulkMethod, checked_bulk_method, cluster_in_bulk
from siteloom.engines.whole_crawls.crawl_run import BulkRun
from siteloom.engines.whole_crawls.output_folder import OutputFolder
from siteloom.html.time_limit import Lost
from siteloom.operations.page_import import import_pages
from siteloom.sources.page_source import SourceItem
from siteloom.store.workspace_folder import open_store
from siteloom.templates.clustering.methods import describe
from siteloom.templates.clustering.text import text_clusters
from tests.apps.cli.changing import done, inside
from tests.apps.cli.command import one_sentence
from tests.apps.cli.verbs.test_learn import within
from tests.engines.whole_crawls import crawls
from tests.engines.whole_crawls.results import results

PARTS = 3
DEEP = Page(f"https://www.{crawls.DIRECTORY}/deep", b"<div>" * 3_000)
UNREADABLE = Failure("https://nowhere.example/1", "cut off", "it ends in the middle")


@dataclass(frozen=True)
class Shard:
    """Some pages, and how often they were read."""

    items: tuple[SourceItem, ...]
    reads: list[int]

    def read(self) -> Iterator[SourceItem]:
        self.reads.append(1)
        return iter(self.items)

    def shards(self) -> Sequence[Shard]:
        return (self,)


@cache
def crawl() -> tuple[tuple[SourceItem, ...], ...]:
    """Some pages are there again, in all ways in which that can be; others make no tree, or have no tags."""
    first, second, third, fourth = crawls.files()
    old, changed, again, undated = first[0], first[1], first[2], first[3]
    assert old.fetched_at is not None
    assert again.fetched_at is not None
    earlier = replace(old, html=b"<p>as it was", fetched_at=old.fetched_at - timedelta(days=9))
    other = replace(changed, html=b"<p>the same time, and later in the crawl")
    newer = replace(again, html=b"<p>newer, but not the newest", fetched_at=again.fetched_at + timedelta(1))
    newest = replace(again, fetched_at=again.fetched_at + timedelta(2))  # its first content once more
    without_time = replace(undated, html=undated.html + b"<p>", fetched_at=None)
    odd: list[SourceItem] = [
        Page(f"https://{crawls.OTHER}/empty", b""),
        Page(f"https://{crawls.OTHER}/text", b"no tags at all"),
        DEEP,
        Skipped("https://elsewhere.example/logo.png", "an image"),
        UNREADABLE,
    ]
    return ((*first, *odd), second, (*third, without_time, newer, earlier), (), (other, newest, *fourth))


def shards() -> list[Shard]:
    return [Shard(items, []) for items in crawl()]


def run_into(folder: Path) -> BulkRun:
    return BulkRun(LocalEngine(), OutputFolder(str(folder)), "clusters", PARTS, lambda *_: lambda _: None)


def in_bulk(folder: Path, method: BulkMethod = "vertex", of: Sequence[Shard] | None = None) -> dict[str, Any]:
    return cluster_in_bulk(run_into(folder), shards() if of is None else of, method, ParseSettings())


def by_site(cluster_crawl: Clustering, pages: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """What the folder of a run should hold."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in cluster_crawl.clusters:
        row = {
            "id": one.id,
            "signature": one.mask,
            "size": one.size,
            "importance": one.importance,
            "url_patterns": list(one.url_patterns),
            "pages": [pages[member] for member in one.members],
            "mask_pages": one.mask_pages,
            "accepted": list(one.accepted),
            "template": [
                {"tags": path.tags, "text": path.text, "support": path.support}
                for path in one.template.essential
            ],
            "template_pages": one.template.pages,
        }
        found.setdefault(one.site, []).append(row)
    for page in cluster_crawl.unclustered:
        rows = found.setdefault(site_of(pages[page]), [])
        if not rows or rows[-1]["id"] is not None:
            rows.append({**dict.fromkeys(COLUMNS), "size": 0, "pages": []})
        rows[-1]["size"] += 1
        rows[-1]["pages"].append(pages[page])
    return found


COLUMNS = (
    "id signature size importance url_patterns pages mask_pages accepted template template_pages".split()
)


def written(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of each site, the clusters by their numbers and what is in none behind them."""
    found: dict[str, list[dict[str, Any]]] = {}
    for file in folder.glob("site=*/*.parquet"):
        site = file.parent.name.removeprefix("site=")
        found.setdefault(site, []).extend(pq.ParquetFile(file).read().to_pylist())
    for rows in found.values():
        rows.sort(key=lambda row: (row["id"] is None, int((row["id"] or "/0").rpartition("/")[2])))
    return found


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> list[Page]:
    """The pages that a store has of the crawl, by site."""
    store = open_store(StoreSettings(workspace=str(tmp_path_factory.mktemp("store"))), create=True)
    try:
        import_pages(store, shards())
        return [page for site in store.sites() for page in store.pages(site.name)]
    finally:
        store.close()


@pytest.mark.parametrize("method", ["vertex", "paths"])
def test_the_clusters_are_those_of_the_same_pages_in_a_store(
    tmp_path: Path, stored: list[Page], method: BulkMethod
) -> None:
    counts = in_bulk(tmp_path, method)
    expected = siteloom.cluster(stored, method)
    assert written(tmp_path) == by_site(expected, [page.url for page in stored])
    assert counts["looked_at"] == len(stored)
    assert counts["clusters"] == len(expected.clusters) >= len(crawls.SITES)
    assert counts["unclustered"] == len(expected.unclustered) >= 2
    assert counts["plainly"] / len(stored) == pytest.approx(expected.plain_coverage)
    assert counts["skipped"] == 1


def test_pages_that_give_nothing_are_told_with_the_reason(tmp_path: Path) -> None:
    counts = in_bulk(tmp_path, "paths")
    failures = {failure.url: failure.reason for failure in run_into(tmp_path).failures()}
    assert failures[UNREADABLE.url] == UNREADABLE.reason
    assert DEEP.url in failures
    assert counts["failed"] == Counter(failures.values())


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed just before it said that it is done."""
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BulkRun, "finish", _raise_interrupted)
        with pytest.raises(InterruptedError):
            in_bulk(folder)
    return folder


def _raise_interrupted(*_: object) -> None:
    raise InterruptedError


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run gives that was never stopped."""
    folder = tmp_path_factory.mktemp("whole")
    in_bulk(folder)
    return results(folder)


@pytest.mark.parametrize(
    ("stage", "mark"), [("signatures", 2), ("clusters", 1), ("wanted", 0), ("pages", 4), ("templates", 0)]
)
def test_a_run_that_was_stopped_goes_on_with_the_rest(
    tmp_path: Path, stopped: Path, whole: dict[str, Any], stage: str, mark: int
) -> None:
    copytree(stopped, tmp_path, dirs_exist_ok=True)
    (tmp_path / "_run" / stage / f"{mark:08}.json").unlink()
    again = shards()
    in_bulk(tmp_path, of=again)
    assert results(tmp_path) == whole
    reads = [number for number, shard in enumerate(again) if shard.reads]
    assert reads == ([mark] if stage in ("signatures", "pages") else [])


def test_a_page_at_which_the_process_died_is_left_out(tmp_path: Path) -> None:
    class Losing(LocalEngine):
        def run(self, start: Any, shards: Any, on_done: Any = lambda _: None) -> Any:
            work = start()
            return [(number, work(shard, Lost({1: "was killed"}), on_done)) for number, shard in shards]

    run = BulkRun(Losing(), OutputFolder(str(tmp_path)), "clusters", PARTS, lambda *_: lambda _: None)
    cluster_in_bulk(run, shards(), "vertex", ParseSettings())
    pages = {page for rows in written(tmp_path).values() for row in rows for page in row["pages"]}
    lost = {failure.url for failure in run.failures() if failure.reason == "process lost"}
    assert len(lost) == 4
    assert crawl()[1][1].url in lost - pages


def test_pages_that_cannot_be_read_again_are_an_error_and_not_left_out(
    tmp_path: Path, stopped: Path, whole: dict[str, Any]
) -> None:
    copytree(stopped, tmp_path, dirs_exist_ok=True)
    (tmp_path / "_run" / "pages" / "00000001.json").unlink()
    short = [Shard(items[:2], []) for items in crawl()]
    with pytest.raises(SourceError, match="pages that were read before cannot be read again"):
        in_bulk(tmp_path, of=short)
    in_bulk(tmp_path)
    assert results(tmp_path) == whole


def test_a_cluster_that_cannot_be_described_is_told_and_there(
    tmp_path: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(paths: Any, roots: Any, size: int) -> Any:
        if not described:
            described.append(size)
            raise RuntimeError("odd tree")
        return describe(paths, roots, size)

    described: list[int] = []
    monkeypatch.setattr(cluster_crawl, "describe", fails)
    counts = in_bulk(tmp_path)
    assert counts["failed"]["processing failed"] == 1
    rows = {row["id"]: row for of_site in written(tmp_path).values() for row in of_site}
    (bare,) = [row for row in rows.values() if row["id"] is not None and row["template_pages"] is None]
    assert (bare["size"], bare["importance"]) == (described[0], None)
    assert bare["id"] in [failure.url for failure in run_into(tmp_path).failures()]
    assert counts["clusters"] == json.loads(whole["_SUCCESS"])["clusters"]


def test_pages_that_cannot_be_compared_are_failures_and_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(documents: Any, method: Any) -> Any:
        if not failed:
            failed.append(len(documents))
            raise RuntimeError("odd paths")
        return text_clusters(documents, method)

    failed: list[int] = []
    monkeypatch.setattr(cluster_text_max, "text_clusters", fails)
    counts = in_bulk(tmp_path, "text-max")
    assert counts["failed"]["processing failed"] == failed[0]
    assert counts["clusters"] >= 1


def test_where_each_template_shares_a_band_the_clusters_are_those_of_text_max(
    tmp_path: Path, stored: list[Page]
) -> None:
    counts = in_bulk(tmp_path, "text-max")
    expected = siteloom.cluster(stored, "text-max")
    assert written(tmp_path) == by_site(expected, [page.url for page in stored])
    assert counts["looked_at"] == len(stored)
    assert counts["clusters"] == len(expected.clusters) >= 4
    assert counts["unclustered"] == len(expected.unclustered) >= 3


def test_a_band_of_too_many_pages_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_text_max, "_MOST_PAGES", 5)
    counts = in_bulk(tmp_path, "text-max")
    rows = [row for of_site in written(tmp_path).values() for row in of_site]
    assert sum(row["size"] for row in rows) == counts["looked_at"]
    assert max(row["size"] for row in rows if row["id"] is not None) <= 5


@pytest.mark.parametrize("method", ["text-mdl", "text-hash", "rtdm"])
def test_methods_that_compare_every_two_pages_are_refused(method: str) -> None:
    with pytest.raises(UsageError, match=r"with --engine, use vertex, paths or text-max\.$"):
        checked_bulk_method(method)


def test_the_verb_tells_what_came_of_it_and_does_so_again(tmp_path: Path) -> None:
    crawls.write_parquet(tmp_path)
    with inside(tmp_path):
        command = ("cluster", "*.parquet", "--engine", "local", "-o", "clusters")
        told, again = done(*command), done(*command)
        plainly = done("cluster", "*.parquet")
    assert "58 pages are in clusters, those of each site in a folder of its own." in told
    assert told.splitlines()[-2] == plainly.splitlines()[-1]  # how many pages are in a cluster
    assert again.splitlines()[-2:] == told.splitlines()[-2:]
    assert "clusters is done already" in again
    assert {row["site"] for row in pq.read_table(tmp_path / "clusters").to_pylist()} == set(crawls.SITES)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--site", crawls.GUIDE), "cluster takes the pages of all sites: leave --site out."),
        (("--method", "rtdm"), "with --engine, use vertex, paths or text-max."),
        (("--method", "magic"), "There is no method 'magic'"),
    ],
)
def test_mistakes_are_told_in_a_sentence(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    crawls.write_parquet(tmp_path)
    with inside(tmp_path):
        command = ("cluster", "crawl-0.parquet", "--engine", "local", "-o", "clusters", *arguments)
        assert told in one_sentence(within(*command))
    assert not (tmp_path / "clusters").exists()
