"""Whatever order, batching, repetition and interruption: the store ends up holding what was seen."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torture.postgres import PostgresServer

from siteloom.core.model import Page
from siteloom.core.settings import StoreSettings
from siteloom.core.urls import site_of
from siteloom.operations.page_import import import_pages
from siteloom.sources.page_source import Items, SourceItem
from siteloom.store.packs import page_writer
from siteloom.store.packs.page_writer import PageWriter
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.property_tests import fewer_examples
from tests.store.helpers import all_versions, assert_sound, day, newest, page

Ending = Literal["finished", "failed while working", "failed while reading", "Ctrl-C", "abandoned"]


class Interruption(Exception):
    """What ends a run before its end."""


@dataclass(frozen=True)
class Run:
    """Some pages that are read, and how the reading ends."""

    pages: tuple[Page, ...]
    ending: Ending
    jobs: int


@dataclass(frozen=True)
class Sizes:
    """How large things get before they are handed on."""

    lookup: int
    block: int
    pack: int


def fetched_pages() -> st.SearchStrategy[list[Page]]:
    """Pages of a few URLs with a few contents, each fetched at a time of its own."""
    fetches = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=16)
    return fetches.map(
        lambda found: [
            page(f"http://s{url % 3}.example/{url}", f"content {content}", time)
            for time, (url, content) in enumerate(found)
        ]
    )


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Page], list[Run]]:
    """All pages that were ever fetched, and runs that read parts of them in any order, some twice."""
    pages = draw(fetched_pages())
    run = st.builds(
        Run,
        pages=st.lists(st.sampled_from(pages), max_size=12).map(tuple),
        ending=st.sampled_from(Ending.__args__),  # type: ignore[attr-defined]  # typing has no name for it
        jobs=st.integers(1, 3),
    )
    return pages, draw(st.lists(run, max_size=4))


any_sizes = st.builds(
    Sizes, lookup=st.integers(1, 6), block=st.integers(1, 6), pack=st.sampled_from([1, 300, 1_000_000])
)


@dataclass(frozen=True)
class Breaking:
    """A source that breaks when all is read."""

    pages: Sequence[Page]
    error: type[BaseException]

    def read(self) -> Iterator[SourceItem]:
        yield from self.pages
        raise self.error

    def shards(self) -> Sequence[Breaking]:
        return (self,)


def play(store: Store, run: Run) -> Counter[str]:
    """Do a run; returns what it says of what it kept."""
    if run.ending == "abandoned":
        return abandon(store, run)
    seen = 0

    def count(_: SourceItem) -> None:
        nonlocal seen
        seen += 1
        if run.ending == "failed while working" and seen == len(run.pages):
            raise Interruption

    sources: dict[str, Items | Breaking] = {
        "failed while reading": Breaking(run.pages, Interruption),
        "Ctrl-C": Breaking(run.pages, KeyboardInterrupt),
    }
    with suppress(Interruption, KeyboardInterrupt):
        import_pages(store, [sources.get(run.ending, Items(run.pages))], jobs=run.jobs, on_item=count)
    recorded = store.runs(1)[0]
    if recorded.status in ("done", "interrupted"):
        assert sum(recorded.counts.values()) == len(run.pages)
    return Counter(recorded.counts)


def abandon(store: Store, run: Run) -> Counter[str]:
    """A writer that is gone without a word, as after kill -9."""
    counts: Counter[str] = Counter()
    abandoned = PageWriter(store.engine, store.packs_folder, now=day(0), counts=counts, jobs=run.jobs)
    for each in run.pages:
        abandoned.add(each, site_of(each.url))
    abandoned._compressors.shutdown()
    return counts


def assert_history_is_kept(settings: StoreSettings, pages: list[Page], runs: list[Run], sizes: Sizes) -> None:
    expected = {(each.url, each.html) for each in pages}
    counts: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_writer, "_PAGES_LOOKED_UP", sizes.lookup)
        patch.setattr(page_writer, "_PAGES_OF_A_BLOCK", sizes.block)
        patch.setattr(page_writer, "_BYTES_OF_A_PACK", sizes.pack)
        everything = Run(tuple(pages), "finished", 1)
        for run in (*runs, everything, everything):
            with closing(open_store(settings, create=True)) as store:
                before = all_versions(store)
                counts += play(store, run)
                after = all_versions(store)
                assert set(before) <= set(after) <= expected
                assert run.ending not in ("finished", "Ctrl-C") or {
                    (p.url, p.html) for p in run.pages
                } <= set(after)
                assert_sound(store)
    with closing(open_store(settings)) as store:
        assert all_versions(store) == dict.fromkeys(expected, 1)
        last_seen = {each.url: each.html for each in pages}  # they stand in the order of their times
        assert newest(store) == last_seen
        assert sum(site.versions for site in store.sites()) == len(expected)
        assert sum(site.pages for site in store.sites()) == len(last_seen)
    assert (counts["new"], counts["new"] + counts["changed"]) == (len(last_seen), len(expected))


@given(histories(), any_sizes)
def test_nothing_is_lost_and_nothing_double_in_sqlite(
    history: tuple[list[Page], list[Run]], sizes: Sizes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_history_is_kept(StoreSettings(str(Path(folder) / "w")), *history, sizes)


@fewer_examples(3)
@given(histories(), any_sizes)
def test_nothing_is_lost_and_nothing_double_in_postgresql(
    postgres_server: PostgresServer, history: tuple[list[Page], list[Run]], sizes: Sizes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = postgres_server.database_with_tables()
        assert_history_is_kept(StoreSettings(str(Path(folder) / "w"), url), *history, sizes)
