"""A workspace in which much has happened: wrappers, records of several runs, an alarm, a repair that waits.

Tests of pages that show such things get copies of it, and pictures are taken of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.core.model import Seed
from siteloom.core.settings import StoreSettings
from siteloom.operations.cluster import cluster_store
from siteloom.operations.page_import import import_pages
from siteloom.operations.relearn import mend_wrappers
from siteloom.operations.search import update_index
from siteloom.operations.watch import check_watches, watch_wrappers
from siteloom.sources.example_files import ExampleLine
from siteloom.sources.page_source import Items
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.demo.sites import directory, guide, of_kind
from tests.maintenance.guide import restaurants
from tests.operations.calls import annotate_pages, extract_records, learn_wrappers
from tests.operations.contexts import context_of

GUIDE = "larkmoor-guide.example"
DIRECTORY = "tableatlas.example"
EXAMPLES = 4
_BEGIN = datetime(2026, 10, 1, 6, tzinfo=UTC)
_SURE = 1.01  # no repair is so sure that it is put in force by itself


class _Days:
    """A clock that goes on by two seconds whenever it is read, and by days when it is turned."""

    def __init__(self) -> None:
        self.now = _BEGIN

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=2)
        return self.now

    def turn(self, days: int) -> None:
        self.now += timedelta(days=days)


def lived_in_workspace(folder: Path) -> Path:
    """Make the workspace, which takes some seconds; returns its folder.

    Of the guide, restaurants and lists have wrappers, and events have none. The restaurants are watched; they
    were redesigned, which was noticed, and a repair waits for review. The directory has no wrapper. Records
    of the guide are known as seeds.
    """
    clock = _Days()
    with closing(open_store(StoreSettings(str(folder)), create=True, clock=clock)) as store:
        places, lists = restaurants()[:24], of_kind(guide(), "list")[:8]
        _ingest(
            store,
            [*places, *of_kind(guide(), "event")[:10], *lists, *of_kind(directory(), "restaurant")[:14]],
        )
        cluster_store(store, "vertex")
        annotate_pages(store, [ExampleLine(one.page.url, one.truth, (), {}) for one in places[:EXAMPLES]])
        annotate_pages(store, [ExampleLine(lists[0].page.url, {}, lists[0].records[:3], {})])
        for name in _annotated_clusters(store):
            learn_wrappers(store, name)
        for _ in range(3):
            clock.turn(days=7)
            extract_records(store, GUIDE)
        watch_wrappers(store)
        check_watches(store)
        update_index(context_of(store))
        clock.turn(days=7)
        known = [
            Seed({name: values for name, values in one.truth.items() if values}, "guide", one.page.url)
            for one in places
        ]
        with store.recording("seeds", {}) as run:
            store.add_seeds(run.id, known)
        fresh = {one.entity: one for one in of_kind(guide("redesign"), "restaurant")}
        _ingest(store, [_at(clock(), fresh[one.entity]) for one in places])
        check_watches(store)
        mend_wrappers(store, accept=_SURE)
        extract_records(store, GUIDE)
    return folder


@contextmanager
def lived_in_store(folder: Path) -> Iterator[Store]:
    """The same, open."""
    with closing(open_store(StoreSettings(str(lived_in_workspace(folder))))) as store:
        yield store


def _annotated_clusters(store: Store) -> list[str]:
    return [one.name for one in store.cluster_summaries() if one.annotated]


def _ingest(store: Store, pages: Sequence[BuiltinPage]) -> None:
    import_pages(store, [Items([one.page for one in pages])])


def _at(time: datetime, one: BuiltinPage) -> BuiltinPage:
    return replace(one, page=replace(one.page, fetched_at=time))
