"""discover: a table of what varies between the pages of a cluster. Accept columns as attributes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import Overtaken, SourceError, UsageError
from siteloom.core.sequences import evenly_spaced
from siteloom.core.wording import plural, shortened
from siteloom.learning.discovery import columns_to_wrapper
from siteloom.learning.discovery.table_discovery import DiscoveredTable, outline
from siteloom.learning.discovery.table_discovery import discover as discover_pages
from siteloom.learning.induction.attribute_schema import checked_name
from siteloom.learning.induction.learner import learn_wrapper
from siteloom.learning.induction.wrapper_assembly import Learned
from siteloom.operations.cluster import ClusterRequest, cluster, stored_clusters
from siteloom.operations.learn import LearnRequest, LearnResult, learn
from siteloom.operations.request_fields import NOT_STORED, ClusterName, Number, Site, TextsByName
from siteloom.store.queries.clusters import PageAddress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from siteloom.core.model import Cluster, Page
    from siteloom.core.settings import ParseSettings
    from siteloom.learning.discovery.columns_to_wrapper import AcceptedColumns
    from siteloom.learning.discovery.table_discovery import DiscoveredColumn
    from siteloom.operations.context import Context
    from siteloom.store.store import Store

AUTHOR = "discover"
"""The author of annotations that were made of columns."""

MOST_PAGES = 500
"""Of so many pages, evenly spaced, a table has the columns that matter, and is made in some seconds."""

_RANKED_BY = 60  # pages of a cluster tell how record-like it is
_SLIVER = 0.1  # of the pages of the largest cluster: of fewer a table rarely tells what the site is about

_ROWS_STORED = 50
_LONGEST_CELL = 120
_EXAMPLES = 2
_LONGEST_EXAMPLE = 60
# The result of a job must stay small: so many bytes of columns and rows, however few rows these are.
_MOST_BYTES = 90_000

_NO_NAME = re.compile(r"\W+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverRequest:
    """Which cluster to make a table of: the most record-like one of a site, or of all, unless it is named.

    Of a cluster with more than `page_limit` pages, so many are read; all if it is None.
    """

    cluster: ClusterName | None = None
    site: Site | None = None
    page_limit: int | None = MOST_PAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSummary:
    """A column: `name` is what its attribute would be called, `filled` the share of rows with a value."""

    label: str
    name: str
    type: str
    filled: float
    xpath: str
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSummary:
    """A row: its page, and a text for each column."""

    url: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCluster:
    """A cluster with how many telling values a row of its table has, and how many columns there are."""

    name: str
    pages: int
    record_likeness: float
    are_lists: bool
    columns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverResult:
    """The columns of a table and its first rows, which are records of lists if these have an XPath.

    Of `of_pages` pages, `pages` were read, of which `failed` could not be. `edition` differs when clusters
    were found anew since, and `state` when pages of the table have changed. The clusters in `ranking` were
    compared to choose one. It is no cluster if the pages of a source have no template in common.
    """

    cluster: str
    site: str
    edition: int | None
    state: str
    pages: int
    of_pages: int
    failed: int
    record_xpath: str
    row_count: int
    columns: tuple[ColumnSummary, ...]
    rows: tuple[RowSummary, ...]
    failures: Mapping[str, int] = field(default_factory=dict)
    is_cluster: bool = True
    table: DiscoveredTable | None = field(default=None, metadata=NOT_STORED)
    addresses: tuple[PageAddress, ...] = field(default=(), metadata=NOT_STORED)
    ranking: tuple[RankedCluster, ...] = field(default=(), metadata=NOT_STORED)


def discover(context: Context, request: DiscoverRequest) -> DiscoverResult:
    """Make a table of what varies between the pages of a cluster."""
    store = context.store
    ranking: list[RankedCluster] = []
    pages = _pages_of_sources(context, request) if context.sources else None
    if pages is None:
        pages = _chosen_cluster(context, request, ranking)
    of_pages = len(pages.addresses)
    if request.page_limit is not None:
        pages = pages._replace(addresses=tuple(evenly_spaced(pages.addresses, request.page_limit)))
    edition = store.cluster_edition(pages.name) if pages.is_cluster else None
    table = _table(context, pages)
    columns = tuple(_column_summary(table, column) for column in table.columns)
    rows = tuple(_first_rows(table, _MOST_BYTES - len(json.dumps([asdict(column) for column in columns]))))
    return DiscoverResult(
        cluster=pages.name,
        site=pages.site,
        edition=edition,
        state=state_of_pages(store, pages.site, (row.url for row in rows)),
        pages=len(pages.addresses),
        of_pages=of_pages,
        failed=len(table.failures),
        record_xpath=table.record_xpath,
        row_count=len(table.rows),
        columns=columns,
        rows=rows,
        failures=Counter(context.unread) + Counter(failure.reason for failure in table.failures),
        is_cluster=pages.is_cluster,
        table=table,
        addresses=pages.addresses,
        ranking=tuple(ranking),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptColumnsRequest:
    """Which columns of the table of a cluster to make attributes: their labels by the names of attributes.

    `edition` is that of the clusters that a person has looked at. `discovered` is the table, if it was made.
    """

    cluster: ClusterName
    names: TextsByName
    edition: Number | None = None
    discovered: DiscoverResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptColumnsResult:
    """The wrapper that was learned from values of the columns, and how well it reproduces them.

    `agreement` is the share of values that it finds just as the column has them, tried on so many pages.
    Attributes in `left_out` have no rule that reproduces enough. What was learned from pages that are no
    cluster is `unclustered`.
    """

    cluster: str
    site: str
    agreement: Mapping[str, float]
    left_out: Mapping[str, float]
    tried: int
    learned: LearnResult | None = None
    unclustered: Learned | None = field(default=None, metadata=NOT_STORED)


def accept_columns(context: Context, request: AcceptColumnsRequest) -> AcceptColumnsResult:
    """Store values of columns as annotations, and learn the wrapper of the cluster from all there are.

    Of pages that are no cluster, a wrapper is learned from the columns alone.
    """
    store, limits = context.store, context.settings.parse
    names = checked_names(request.names)
    discovered = request.discovered
    if discovered is None:
        if request.edition not in (None, store.cluster_edition(request.cluster)):
            raise Overtaken(
                f"The templates were found anew since you looked at {request.cluster}: look at it again."
            )
        discovered = discover(context, DiscoverRequest(cluster=request.cluster))
    table = discovered.table
    assert table is not None
    pages = TablePages(
        discovered.cluster, discovered.site, discovered.addresses, is_cluster=discovered.is_cluster
    )
    context.progress.start("Finding rules for the columns")
    learned: LearnResult | None = None
    unclustered: Learned | None = None
    if pages.is_cluster:
        accepted = _annotated_columns(store, pages, table, names, limits)
        learned = learn(replace(context, sources=()), LearnRequest(cluster=pages.name))
    else:
        examples = store.examples(pages.site)
        sources = list(pages.read(store))
        accepted = columns_to_wrapper.accept_columns(table, sources, names, examples, limits=limits)
        unclustered = learn_wrapper(accepted.examples, sources, limits=limits)
    return AcceptColumnsResult(
        cluster=pages.name,
        site=pages.site,
        agreement=accepted.agreement,
        left_out=accepted.left_out,
        tried=accepted.tried,
        learned=learned,
        unclustered=unclustered,
    )


def checked_names(names: Mapping[str, str]) -> dict[str, str]:
    """The labels of columns by the names of attributes, if these can be called so."""
    if not names:
        raise UsageError("No column was taken: take at least one.")
    checked: dict[str, str] = {}
    for name, label in names.items():
        if checked.setdefault(checked_name(name), label) != label:
            raise UsageError(
                f"Two columns would both be called {checked_name(name)}: give each its own name."
            )
    return checked


def state_of_pages(store: Store, site: str, urls: Iterable[str]) -> str:
    """A text that changes when the newest version of any of the pages does."""
    places = store.newest_places([PageAddress(site, url) for url in dict.fromkeys(urls)])
    return blake2b(repr(places).encode(), digest_size=8).hexdigest()


class TablePages(NamedTuple):
    """The pages to make a table of: those of a cluster, or all there are, which is no cluster."""

    name: str
    site: str
    addresses: tuple[PageAddress, ...]
    is_cluster: bool = True

    def read(self, store: Store) -> Iterator[Page]:
        """The pages in their newest versions."""
        return store.pages_at(self.addresses)


def _cluster_pages(cluster: Cluster, addresses: tuple[PageAddress, ...]) -> TablePages:
    return TablePages(cluster.id, cluster.site, tuple(addresses[member] for member in cluster.members))


def _pages_of_sources(context: Context, request: DiscoverRequest) -> TablePages | None:
    """Find the clusters of the pages of sources; all pages are returned if there are no clusters."""
    result = cluster(context, ClusterRequest())
    addresses, clustering = result.addresses, result.clustering
    assert clustering is not None
    if not addresses:
        raise SourceError("There is no page to discover a table in: the sources have none that can be read.")
    names = {one.id for one in clustering.clusters}
    if request.cluster is not None and request.cluster not in names:
        known = ", ".join(one.id for one in clustering.clusters) or "none at all"
        raise UsageError(f"There is no cluster {request.cluster} of these pages: there are {known}.")
    sites = dict.fromkeys(address.site for address in addresses)
    if request.site is not None and request.site not in sites:
        raise UsageError(f"There is no page of {request.site}: there are pages of {', '.join(sites)}.")
    own = tuple(address for address in addresses if request.site in (None, address.site))
    if not any(request.site in (None, one.site) for one in clustering.clusters):
        name = ", ".join(dict.fromkeys(address.site for address in own))
        return TablePages(name, own[0].site, own, is_cluster=False)
    outside = sum(request.site in (None, addresses[page].site) for page in clustering.unclustered)
    if outside and request.cluster is None:
        pages = plural(outside, "page")
        verb = "is" if outside == 1 else "are"
        context.progress.message(f"{pages} {verb} in no cluster and left out.")
    return None


def _chosen_cluster(context: Context, request: DiscoverRequest, ranking: list[RankedCluster]) -> TablePages:
    """The cluster that was asked for, or else the most record-like; the comparison goes to `ranking`."""
    store, progress = context.store, context.progress
    clusters, addresses = stored_clusters(store, request.cluster)
    choices = [_cluster_pages(one, addresses) for one in clusters if request.site in (None, one.site)]
    if not choices:
        raise UsageError(f"There is no cluster of {request.site}: siteloom cluster lists them.")
    if len(choices) == 1:
        return choices[0]
    progress.start("Looking at", len(choices), unit="cluster")
    outlines = []
    for choice in choices:
        pages = store.pages_at(evenly_spaced(choice.addresses, _RANKED_BY))
        outlines.append(outline(pages, limits=context.settings.parse))
        progress.advance()
    least = _SLIVER * max(len(choice.addresses) for choice in choices)
    ranked = sorted(
        zip(choices, outlines, strict=True),
        key=lambda one: (len(one[0].addresses) < least, -one[1].record_likeness),
    )
    ranking += [
        RankedCluster(
            name=choice.name,
            pages=len(choice.addresses),
            record_likeness=outlined.record_likeness,
            are_lists=outlined.are_lists,
            columns=outlined.columns,
        )
        for choice, outlined in ranked
    ]
    return ranked[0][0]


def _table(context: Context, pages: TablePages) -> DiscoveredTable:
    """The table of some pages; a SourceError says why it has no rows."""
    context.progress.start("Reading", len(pages.addresses))
    table = discover_pages(_counted(context, pages), limits=context.settings.parse)
    if not table.rows:
        reasons = Counter(failure.reason for failure in table.failures)
        raise SourceError(f"None of the pages of {pages.name} can be read: {'; '.join(reasons)}.")
    if not (pages.is_cluster or table.columns):
        raise UsageError("No two of these pages were made alike: there is nothing to compare them by.")
    return table


def _counted(context: Context, pages: TablePages) -> Iterator[Page]:
    for page in pages.read(context.store):
        yield page
        context.progress.advance()


def _column_summary(table: DiscoveredTable, column: DiscoveredColumn) -> ColumnSummary:
    return ColumnSummary(
        label=column.label,
        name=attribute_name(column.label),
        type=column.type,
        filled=column.filled,
        xpath=column.xpath,
        examples=tuple(example_cells(table, column, _EXAMPLES, _LONGEST_EXAMPLE)),
    )


def _first_rows(table: DiscoveredTable, room: int) -> Iterator[RowSummary]:
    """The first rows, each with a text for every column; as many as there is room for, in bytes."""
    for row in table.rows[:_ROWS_STORED]:
        cells = tuple(cell_text(row[column.label], _LONGEST_CELL) for column in table.columns)
        room -= len(json.dumps({"url": row.url, "cells": cells}))
        if room < 0:
            break
        yield RowSummary(url=row.url, cells=cells)


def cell_text(values: tuple[str, ...], longest: int) -> str:
    """The values of a cell as one text, cut if it is longer."""
    return shortened(", ".join(values), longest)


def example_cells(table: DiscoveredTable, column: DiscoveredColumn, most: int, longest: int) -> list[str]:
    """Some different cells of a column, from all over the table."""
    cells = (cell_text(row[column.label], longest) for row in table.rows)
    return evenly_spaced(list(dict.fromkeys(filter(None, cells))), most)


def attribute_name(label: str) -> str:
    """The name of the attribute of a column, unless a person gives it another."""
    return _NO_NAME.sub("_", label.lower()).strip("_") or label


def _annotated_columns(
    store: Store, pages: TablePages, table: DiscoveredTable, names: Mapping[str, str], limits: ParseSettings
) -> AcceptedColumns:
    """Store values of columns as annotations beside those that there are."""
    annotated = store.examples(pages.site)
    accepted = columns_to_wrapper.accept_columns(table, pages.read(store), names, annotated, limits=limits)
    addresses = {address.url: address for address in pages.addresses}
    for example in accepted.examples:
        if example not in annotated:
            store.save_example(addresses[example.page.url], example, AUTHOR)
    return accepted
