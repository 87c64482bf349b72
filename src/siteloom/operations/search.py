"""Search in a store: the index brought up to date, then asked."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from siteloom.core.errors import UsageError
from siteloom.core.model import Failure
from siteloom.core.settings import ParseSettings
from siteloom.core.wording import some_names
from siteloom.extraction.search_documents import (
    AttributeCounts,
    common_segments,
    page_document,
    record_document,
    unreadable_document,
)
from siteloom.extraction.search_query import LOOKED_AT, best_first, parse_query, shown_hit
from siteloom.html.parser import parse
from siteloom.html.time_limit import within
from siteloom.operations.clean import count_versions, segment_table
from siteloom.store.queries.clusters import PageAddress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from siteloom.core.model import FoundDocument, IndexDocument, Page
    from siteloom.extraction.search_query import Hit, Query
    from siteloom.store.queries.runs import RunRecorder
    from siteloom.store.queries.search_index import NewestVersion
    from siteloom.store.store import Store
    from siteloom.templates.template_text import SegmentTable

_log = logging.getLogger(__name__)

_GROWN = 2  # so many times as large, a table knows more of the template


class IndexUpdate(NamedTuple):
    """What an update of the index did, in pages and records; and how many could not be read, by reason."""

    added_pages: int = 0
    removed_pages: int = 0
    added_records: int = 0
    removed_records: int = 0
    failures: Mapping[str, int] = MappingProxyType({})


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


MOST_FOUND = 200
"""So many finds are looked through at a time: more than anyone does, and few enough to count them at once."""


class Facets(NamedTuple):
    """How many finds are of each site, cluster and kind; of records, with the words in each attribute."""

    site: Counter[str]
    cluster: Counter[str]
    kind: Counter[Literal["page", "record"]]
    attribute: Counter[str]


class SearchPage(NamedTuple):
    """Some hits of those that were looked through, of which the facets tell."""

    hits: tuple[Hit, ...]
    has_all_words: bool
    looked_through: int
    facets: Facets


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
        added_pages = 0
        for site, missing in groupby(index.unindexed_pages(), key=attrgetter("site")):
            added, replaced = _index_site(store, site, list(missing), limits, run, on_page)
            added_pages += added
            removed_pages += replaced
        added_records = removed_records = 0
        if not index.has_newest_records():
            added_records, removed_records = index.replace_records(_record_documents(store))
        failures = dict(run.failures_by_reason)
        added_pages -= sum(failures.values())
        update = IndexUpdate(added_pages, removed_pages, added_records, removed_records, failures)
        run.counts.update({name: count for name, count in update._asdict().items() if name != "failures"})
    _log.info("index: %s", update)
    return update


def _index_site(
    store: Store,
    site: str,
    missing: list[NewestVersion],
    limits: ParseSettings,
    run: RunRecorder,
    on_page: Callable[[int], None],
) -> tuple[int, int]:
    """Index pages of a site; returns how many, and how many of them had been before.

    A young table knows little of the template. So when it has grown to the double, all pages are indexed
    anew; those that are missing come last, so that it begins again if it is killed. As each time there are
    twice as many, this takes no longer than indexing all of them once more.
    """
    index = store.search_index
    count_versions(store, site, limits, on_page)
    table = segment_table(store, site)
    counted = table.counts().pages
    is_grown = counted >= _GROWN * index.counted_pages(site)
    outdated = index.indexed_pages(site) if is_grown else []
    pages = outdated + missing
    index.add_pages(_page_documents(store, site, pages, table, limits, run, on_page))
    if is_grown:
        index.set_counted_pages(site, counted)
    return len(pages), len(outdated)


def _page_documents(
    store: Store,
    site: str,
    versions: Sequence[NewestVersion],
    table: SegmentTable,
    limits: ParseSettings,
    run: RunRecorder,
    on_page: Callable[[int], None],
) -> Iterator[tuple[NewestVersion, IndexDocument]]:
    common = common_segments(table.counts())
    addresses = [PageAddress(version.site, version.url) for version in versions]
    for version, page in zip(versions, store.pages_at(addresses), strict=True):
        found = within(limits.max_seconds, page.url, partial(_document, page, site, table, common, limits))
        if isinstance(found, Failure):
            run.fail(found)
            yield version, unreadable_document(site, page.url)
        else:
            yield version, found
        on_page(1)


def _document(
    page: Page, site: str, table: SegmentTable, common: AbstractSet[int], limits: ParseSettings
) -> IndexDocument | Failure:
    root = parse(page, limits, collect_ids=False)
    return root if isinstance(root, Failure) else page_document(site, page.url, root, table, common)


def _record_documents(store: Store) -> Iterator[IndexDocument]:
    """The records that hold now; they are read twice, to count values first."""
    counts = AttributeCounts()
    for _, row in store.records_in_force():
        counts.add(row["wrapper"], row["values"])
    for site, row in store.records_in_force():
        yield record_document(site, row, counts)


def search_store(store: Store, search: Search, limit: int = 10) -> SearchResult:
    """What the index has for a search; it is not brought up to date before."""
    query, found, has_all_words = _find(store, search, limit)
    return SearchResult(_shown(found[:limit], query, search), has_all_words)


def look_through(store: Store, search: Search, first: int, count: int) -> SearchPage:
    """Some of the best finds, from the first on, and what there is among all that are looked through."""
    query, found, has_all_words = _find(store, search, MOST_FOUND)
    hits = _shown(found[first : first + count], query, search)
    return SearchPage(hits, has_all_words, len(found), _facets(found, query, search))


def _find(store: Store, search: Search, limit: int) -> tuple[Query, list[FoundDocument], bool]:
    """What is asked for, finds up to the limit or a few more, and whether they have all words."""
    query = check_search(store, search)
    if search.attribute is not None:
        _check(search.attribute, "attribute", store.search_index.attributes())
    for takes_any in (False, True):
        found = store.search_index.search(
            query.wanted,
            query.unwanted,
            takes_any=takes_any,
            site=search.site,
            cluster=search.cluster,
            attribute=search.attribute,
            kind=search.kind,
            limit=max(limit, LOOKED_AT),
        )
        if found:
            break
    return query, best_first(found, query.wanted, search.attribute), not takes_any


def _shown(found: Sequence[FoundDocument], query: Query, search: Search) -> tuple[Hit, ...]:
    return tuple(shown_hit(*one, query.wanted, search.attribute) for one in found)


def _facets(found: Sequence[FoundDocument], query: Query, search: Search) -> Facets:
    records = _shown([one for one in found if one.document.kind == "record"], query, search)
    return Facets(
        Counter(one.document.site for one in found),
        Counter(one.cluster for one in found if one.cluster is not None),
        Counter(one.document.kind for one in found),
        Counter(attribute for hit in records for attribute in hit.attributes),
    )


def check_search(store: Store, search: Search) -> Query:
    """Refuse a search that can find nothing, whatever is indexed; returns what is asked for."""
    query = parse_query(search.text)
    if search.kind == "page" and search.attribute is not None:
        raise UsageError("Only records have attributes: leave out the attribute, or search records.")
    if search.site is not None:
        _check(search.site, "site", store.page_urls.sites())
    if search.cluster is not None:
        store.require_cluster(search.cluster)
    return query


def _check(name: str, what: str, known: Sequence[str]) -> None:
    if name not in known:
        raise UsageError(
            f"There is no {what} {name} to search in: there are {some_names(known) or 'none yet'}."
        )
