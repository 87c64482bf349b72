"""Search in a store: the index brought up to date, then asked."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

from siteloom.cleaning_runs import count_versions, segment_table
from siteloom.config import ParseSettings
from siteloom.dom import parse
from siteloom.errors import UsageError
from siteloom.model import Failure
from siteloom.search import (
    AttributeCounts,
    common_segments,
    page_document,
    parse_query,
    record_document,
    shown_hit,
    unreadable_document,
)
from siteloom.store import PageAddress
from siteloom.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from siteloom.model import IndexDocument
    from siteloom.search import Hit
    from siteloom.store import RunRecorder, Store, UnindexedPage

_log = logging.getLogger(__name__)

_NAMES_TOLD = 5


class IndexUpdate(NamedTuple):
    """What an update of the index did, in pages and records."""

    added_pages: int = 0
    removed_pages: int = 0
    added_records: int = 0
    removed_records: int = 0


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for: words as a person types them, and where.

    With an attribute, only records are found, by the words in its values.
    """

    text: str
    site: str | None = None
    cluster: str | None = None
    attribute: str | None = None
    kind: Literal["page", "record"] | None = None


class SearchResult(NamedTuple):
    """The best hits first; they have some of the words only if nothing has all of them."""

    hits: tuple[Hit, ...]
    has_all_words: bool


def update_index(
    store: Store,
    *,
    limits: ParseSettings = ParseSettings(),
    on_page: Callable[[int], None] = lambda _: None,
) -> IndexUpdate:
    """Index the pages and records that are new, and take out those that are outdated.

    Nothing is written, and no lock taken, if there is nothing to do. It raises StoreBusy if
    another process is writing; what is indexed can be searched all the same. `on_page` is told of
    pages that are looked at: a new one is counted for the template of its site first, then indexed.
    """
    index = store.search_index
    if index.is_current():
        return IndexUpdate()
    with store.recording("search", {}) as run:
        index.make_ready()
        removed_pages = index.remove_outdated_pages()
        missing = index.unindexed_pages()
        index.add_pages(_page_documents(store, missing, limits, run, on_page))
        added_records = removed_records = 0
        if not index.has_newest_records():
            added_records, removed_records = index.replace_records(_record_documents(store))
        update = IndexUpdate(len(missing), removed_pages, added_records, removed_records)
        run.counts.update(update._asdict())
    _log.info("index: %s", update)
    return update


def _page_documents(
    store: Store,
    missing: Sequence[UnindexedPage],
    limits: ParseSettings,
    run: RunRecorder,
    on_page: Callable[[int], None],
) -> Iterator[tuple[UnindexedPage, IndexDocument]]:
    for site, of_site in groupby(missing, key=attrgetter("site")):
        count_versions(store, site, limits, on_page)
        table = segment_table(store, site)
        common = common_segments(table.counts())
        places = list(of_site)
        addresses = [PageAddress(place.site, place.url) for place in places]
        for place, page in zip(places, store.pages_at(addresses), strict=True):
            root = parse(page, limits, collect_ids=False)
            if isinstance(root, Failure):
                run.fail(root)
                yield place, unreadable_document(site, page.url)
            else:
                yield place, page_document(site, page.url, root, table, common)
            on_page(1)


def _record_documents(store: Store) -> Iterator[IndexDocument]:
    """The records of the newest run of extract; they are read twice, to count values first."""
    if store.last_extract_run() is None:
        return
    counts = AttributeCounts()
    for row in map(json.loads, store.records()):
        counts.add(row["wrapper"], row["values"])
    sites = {wrapper.name: wrapper.site for wrapper in store.wrappers()}
    for row in map(json.loads, store.records()):
        yield record_document(sites.get(row["wrapper"]) or site_of(row["url"]), row, counts)


def search_store(store: Store, search: Search, limit: int = 10) -> SearchResult:
    """What the index has for a search; it is not brought up to date before."""
    query = parse_query(search.text)
    _check_names(store, search)
    for takes_any in (False, True):
        found = store.search_index.search(
            query.wanted,
            query.unwanted,
            takes_any=takes_any,
            site=search.site,
            cluster=search.cluster,
            attribute=search.attribute,
            kind=search.kind,
            limit=limit,
        )
        if found:
            break
    hits = [shown_hit(*one, query.wanted, search.attribute) for one in found]
    return SearchResult(tuple(hits), not takes_any)


def _check_names(store: Store, search: Search) -> None:
    if search.kind == "page" and search.attribute is not None:
        raise UsageError("Only records have attributes: leave out --in pages, or --attribute.")
    if search.site is not None:
        _check(search.site, "site", [site.name for site in store.sites()])
    if search.cluster is not None and not store.has_cluster(search.cluster):
        raise UsageError(f"There is no cluster {search.cluster}: siteloom cluster lists them.")
    if search.attribute is not None:
        _check(search.attribute, "attribute", store.search_index.attributes())


def _check(name: str, what: str, known: Sequence[str]) -> None:
    if name not in known:
        some = ", ".join(known[:_NAMES_TOLD]) + (", ..." if len(known) > _NAMES_TOLD else "")
        raise UsageError(f"There is no {what} {name} to search in: there are {some or 'none yet'}.")
