"""search: find pages and records by words. Bring the index up to date."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

from siteloom.core.errors import UsageError
from siteloom.core.model import Failure
from siteloom.core.wording import some_names
from siteloom.extraction.search_documents import (
    AttributeCounts,
    common_segments,
    page_document,
    record_document,
    unreadable_document,
)
from siteloom.extraction.search_query import Hit, best_first, parse_query, shown_hit
from siteloom.html.parser import parse
from siteloom.html.time_limit import within
from siteloom.operations.clean import count_versions, segment_table
from siteloom.store.queries.clusters import PageAddress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from siteloom.core.model import FoundDocument, IndexDocument, Page
    from siteloom.core.settings import ParseSettings
    from siteloom.extraction.search_query import Query
    from siteloom.operations.context import Context
    from siteloom.store.queries.runs import RunRecorder
    from siteloom.store.queries.search_index import NewestVersion
    from siteloom.store.store import Store
    from siteloom.templates.template_text import SegmentTable

_log = logging.getLogger(__name__)

_REINDEXED_AT = 2  # so many times as large, a table knows more of the template


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateIndexRequest:
    """The index is always brought up to date as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateIndexResult:
    """How many pages and records were indexed or removed from the index, and why pages could not be read.

    Nothing was to be done if there was no `run`.
    """

    run: int | None = None
    added_pages: int = 0
    removed_pages: int = 0
    added_records: int = 0
    removed_records: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """Words as a person types them, where to search for them, and which of the hits to return.

    With an attribute, only records are found, by the words in its values.
    """

    text: str
    site: str | None = None
    cluster: str | None = None
    attribute: str | None = None
    kind: Literal["page", "record"] | None = None
    first: int = 0
    count: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """How many hits there are in each site, cluster and kind, and with the words in each attribute."""

    site: Mapping[str, int]
    cluster: Mapping[str, int]
    kind: Mapping[str, int]
    attribute: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The hits that were asked for, the best first.

    They have some of the words only if nothing has all of them. The facets count the `total` of hits that
    were ranked; there are more if that `is_limited`. Without `is_index_current` there are pages or records
    that were not searched.
    """

    hits: tuple[Hit, ...]
    has_all_words: bool
    total: int
    is_limited: bool
    is_index_current: bool
    facets: Facets


MOST_RANKED = 200
"""So many hits are ranked and counted: more than anyone looks through. More only if they are asked for."""


def update_index(context: Context, _: UpdateIndexRequest = UpdateIndexRequest()) -> UpdateIndexResult:
    """Index the pages and records that are new, and remove those that are outdated.

    Nothing is written, and no lock taken, if there is nothing to do. It raises StoreBusy if another process
    is writing; what is indexed can be searched all the same.
    """
    store, progress, limits = context.store, context.progress, context.settings.parse
    index = store.search_index
    if index.is_current():
        return UpdateIndexResult()
    # Each page is counted for the template of its site, then indexed. There are more if a site is reindexed.
    progress.start("Indexing", 2 * index.unindexed_count() or None, unit="step")
    with store.recording("search", {}) as run:
        index.make_ready()
        removed_pages = index.remove_outdated_pages()
        added_pages = 0
        for site, missing in groupby(index.unindexed_pages(), key=attrgetter("site")):
            added, replaced = _index_site(store, site, list(missing), limits, run, progress.advance)
            added_pages += added
            removed_pages += replaced
        added_records = removed_records = 0
        if not index.has_newest_records():
            added_records, removed_records = index.replace_records(_record_documents(store))
        failures = dict(run.failures_by_reason)
        counts = {
            "added_pages": added_pages - sum(failures.values()),
            "removed_pages": removed_pages,
            "added_records": added_records,
            "removed_records": removed_records,
        }
        run.counts.update(counts)
    _log.info("index: %s, failures: %s", counts, failures)
    return UpdateIndexResult(run=run.id, failures=failures, **counts)


def _index_site(
    store: Store,
    site: str,
    missing: list[NewestVersion],
    limits: ParseSettings,
    run: RunRecorder,
    on_page: Callable[[int], None],
) -> tuple[int, int]:
    """Index pages of a site; returns how many, and how many of them had been before.

    A young table knows little of the template. So when it has doubled, all pages are indexed
    anew; those that are missing come last, so that it begins again if it is killed. As each time there are
    twice as many, this takes no longer than indexing all of them once more.
    """
    index = store.search_index
    count_versions(store, site, limits, on_page)
    table = segment_table(store, site)
    counted = table.counts().pages
    is_reindexed = counted >= _REINDEXED_AT * index.counted_pages(site)
    outdated = index.indexed_pages(site) if is_reindexed else []
    pages = outdated + missing
    index.add_pages(_page_documents(store, site, pages, table, limits, run, on_page))
    if is_reindexed:
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


def search(context: Context, request: SearchRequest) -> SearchResult:
    """Find pages and records by words in the index, which is not brought up to date before."""
    index = context.store.search_index
    query = check_search(context.store, request)
    if request.attribute is not None:
        _check(request.attribute, "attribute", index.attributes())
    limit = max(request.first + request.count, MOST_RANKED)
    for takes_any in (False, True):
        documents = index.search(
            query.wanted,
            query.unwanted,
            takes_any=takes_any,
            site=request.site,
            cluster=request.cluster,
            attribute=request.attribute,
            kind=request.kind,
            limit=limit,
        )
        if documents:
            break
    ranked = best_first(documents, query.wanted, request.attribute)
    return SearchResult(
        hits=_shown(ranked[request.first : request.first + request.count], query, request),
        has_all_words=not takes_any,
        total=len(ranked),
        is_limited=len(ranked) >= limit,
        is_index_current=index.is_current(),
        facets=_facets(ranked, query, request),
    )


def _shown(ranked: Sequence[FoundDocument], query: Query, request: SearchRequest) -> tuple[Hit, ...]:
    return tuple(shown_hit(*document, query.wanted, request.attribute) for document in ranked)


def _facets(ranked: Sequence[FoundDocument], query: Query, request: SearchRequest) -> Facets:
    records = _shown([one for one in ranked if one.document.kind == "record"], query, request)
    return Facets(
        site=Counter(one.document.site for one in ranked),
        cluster=Counter(one.cluster for one in ranked if one.cluster is not None),
        kind=Counter(one.document.kind for one in ranked),
        attribute=Counter(attribute for hit in records for attribute in hit.attributes),
    )


def check_search(store: Store, request: SearchRequest) -> Query:
    """Refuse a search that can find nothing, whatever is indexed; returns the words to look for."""
    query = parse_query(request.text)
    if request.kind == "page" and request.attribute is not None:
        raise UsageError("Only records have attributes: leave out the attribute, or search records.")
    if request.site is not None:
        _check(request.site, "site", store.page_urls.sites())
    if request.cluster is not None:
        store.require_cluster(request.cluster)
    return query


def _check(name: str, kind: str, names: Sequence[str]) -> None:
    if name not in names:
        raise UsageError(
            f"There is no {kind} {name} to search in: there are {some_names(names) or 'none yet'}."
        )
