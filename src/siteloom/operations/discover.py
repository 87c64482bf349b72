"""Tables of what varies in a store: whose pages, what they show, and columns kept as annotations."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import SourceError
from siteloom.core.sequences import evenly_spaced
from siteloom.core.settings import ParseSettings
from siteloom.core.wording import shortened
from siteloom.learning.discovery.columns_to_wrapper import accept_columns
from siteloom.learning.discovery.table_discovery import discover

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from siteloom.core.model import Cluster, Page
    from siteloom.learning.discovery.columns_to_wrapper import AcceptedColumns
    from siteloom.learning.discovery.table_discovery import DiscoveredColumn, DiscoveredTable
    from siteloom.store.queries.clusters import PageAddress
    from siteloom.store.store import Store

AUTHOR = "discover"
"""Whom annotations are of that were made of columns."""

_NO_NAME = re.compile(r"\W+")


class TablePages(NamedTuple):
    """The pages to make a table of: those of a cluster, or all there are, which is no cluster."""

    name: str
    site: str
    addresses: tuple[PageAddress, ...]
    is_cluster: bool = True

    def read(self, store: Store) -> Iterator[Page]:
        """The pages in their newest versions."""
        return store.pages_at(self.addresses)


def pages_of(cluster: Cluster, addresses: tuple[PageAddress, ...]) -> TablePages:
    """The pages of a cluster; its members are numbers of addresses."""
    return TablePages(cluster.id, cluster.site, tuple(addresses[member] for member in cluster.members))


def discover_table(
    store: Store,
    pages: TablePages,
    *,
    limits: ParseSettings = ParseSettings(),
    on_page: Callable[[int], None] = lambda _: None,
) -> DiscoveredTable:
    """The table of some pages of a store; it has rows, or else a SourceError tells why not."""
    table = discover(_counted(pages.read(store), on_page), limits=limits)
    if not table.rows:
        reasons = Counter(failure.reason for failure in table.failures)
        raise SourceError(f"None of the pages of {pages.name} can be read: {'; '.join(reasons)}.")
    return table


def _counted(pages: Iterator[Page], on_page: Callable[[int], None]) -> Iterator[Page]:
    for page in pages:
        yield page
        on_page(1)


def cell_text(values: tuple[str, ...], longest: int) -> str:
    """The values of a cell as one text, cut if it is longer."""
    return shortened(", ".join(values), longest)


def example_cells(table: DiscoveredTable, column: DiscoveredColumn, most: int, longest: int) -> list[str]:
    """Some different cells of a column, from all over the table."""
    cells = (cell_text(row[column.label], longest) for row in table.rows)
    return evenly_spaced(list(dict.fromkeys(filter(None, cells))), most)


def attribute_name(label: str) -> str:
    """What the attribute of a column is called unless a person says otherwise."""
    return _NO_NAME.sub("_", label.lower()).strip("_") or label


def keep_columns(
    store: Store,
    pages: TablePages,
    table: DiscoveredTable,
    names: Mapping[str, str],
    *,
    limits: ParseSettings = ParseSettings(),
) -> AcceptedColumns:
    """Keep values of columns as annotations; `names` has the label of a column for each attribute.

    The table is the one of these pages, which are those of a cluster. What is annotated already is kept.
    """
    annotated = store.examples(pages.site)
    accepted = accept_columns(table, pages.read(store), names, annotated, limits=limits)
    of_url = {address.url: address for address in pages.addresses}
    for example in accepted.examples:
        if example not in annotated:
            store.save_example(of_url[example.page.url], example, AUTHOR)
    return accepted
