"""Jobs that make tables without examples, and wrappers of their columns."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from siteloom.apps.server.job_kinds import Argument, JobKind, Report, check_edition
from siteloom.apps.server.operation_jobs import job_context, to_plain
from siteloom.core.errors import UsageError
from siteloom.core.sequences import evenly_spaced
from siteloom.learning.induction.attribute_schema import checked_name
from siteloom.operations.discover import (
    attribute_name,
    cell_text,
    discover_table,
    example_cells,
    keep_columns,
    pages_of,
)
from siteloom.operations.learn import LearnRequest, learn
from siteloom.store.queries.clusters import PageAddress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from siteloom.core.settings import Settings
    from siteloom.learning.discovery.table_discovery import DiscoveredTable
    from siteloom.operations.discover import TablePages
    from siteloom.store.store import Store

# Of so many pages, evenly spaced, a table has the columns that matter, and is made in some seconds.
_MOST_PAGES = 500
_ROWS_KEPT = 50
_LONGEST_CELL = 120
_EXAMPLES = 2
_LONGEST_EXAMPLE = 60
# What a job leaves behind must stay small: so many bytes of columns and rows, however few rows these are.
_MOST_BYTES = 90_000


def discover(
    store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report
) -> dict[str, Any]:
    """Make the table of a cluster, and keep its columns and first rows."""
    pages, of_pages = _pages(store, arguments["cluster"])
    edition = store.cluster_edition(pages.name)
    table = _table(store, settings, pages, report)
    columns = [
        {
            "label": column.label,
            "name": attribute_name(column.label),
            "type": column.type,
            "filled": column.filled,
            "xpath": column.xpath,
            "examples": example_cells(table, column, _EXAMPLES, _LONGEST_EXAMPLE),
        }
        for column in table.columns
    ]
    rows = list(_first_rows(table, _MOST_BYTES - len(json.dumps(columns))))
    return {
        "cluster": pages.name,
        "site": pages.site,
        "edition": edition,
        "state": state_of_pages(store, pages.site, (row["url"] for row in rows)),
        "pages": len(pages.addresses),
        "of_pages": of_pages,
        "failed": len(table.failures),
        "record_xpath": table.record_xpath,
        "row_count": len(table.rows),
        "columns": columns,
        "rows": rows,
    }


def accept_columns(
    store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report
) -> dict[str, Any]:
    """Make attributes of columns: keep values of them as annotations, and learn from all there are."""
    names = checked_names(arguments["names"])
    check_edition(store, arguments)
    pages, _ = _pages(store, arguments["cluster"])
    table = _table(store, settings, pages, report)
    report(0, None, "Finding rules for the columns")
    accepted = keep_columns(store, pages, table, names)
    learned = learn(job_context(store, settings, report), LearnRequest(cluster=pages.name))
    return {
        **to_plain(learned),
        "agreement": accepted.agreement,
        "left_out": accepted.left_out,
        "tried": accepted.tried,
    }


def checked_names(names: Mapping[str, str]) -> dict[str, str]:
    """The labels of columns by the names of attributes, if these can be called so; else one sentence."""
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
    """Changes when pages do: where in the archive the newest version of each stands."""
    places = store.newest_places([PageAddress(site, url) for url in dict.fromkeys(urls)])
    return blake2b(repr(places).encode(), digest_size=8).hexdigest()


def _pages(store: Store, cluster: str) -> tuple[TablePages, int]:
    """Some pages of a cluster, and how many it has."""
    (found,), addresses = store.clusters(cluster)
    pages = pages_of(found, addresses)
    return pages._replace(addresses=tuple(evenly_spaced(pages.addresses, _MOST_PAGES))), len(pages.addresses)


def _table(store: Store, settings: Settings, pages: TablePages, report: Report) -> DiscoveredTable:
    read = 0

    def count(more: int) -> None:
        nonlocal read
        read += more
        report(read, len(pages.addresses), "pages read")

    report(0, len(pages.addresses), "pages read")
    return discover_table(store, pages, limits=settings.parse, on_page=count)


def _first_rows(table: DiscoveredTable, room: int) -> Iterator[dict[str, Any]]:
    """Rows as they are shown, each with a text for every column; as many as there is room for, in bytes."""
    for row in table.rows[:_ROWS_KEPT]:
        cells = [cell_text(row[column.label], _LONGEST_CELL) for column in table.columns]
        kept = {"url": row.url, "cells": cells}
        room -= len(json.dumps(kept))
        if room < 0:
            break
        yield kept


_CLUSTER = {"cluster": Argument("cluster", is_needed=True)}

KINDS = {
    "discover": JobKind(discover, "Make a table", _CLUSTER),
    "accept_columns": JobKind(
        accept_columns,
        "Make attributes of columns",
        {**_CLUSTER, "names": Argument("texts by name", is_needed=True), "edition": Argument("number")},
    ),
}
