"""What the demo shows of that which needs no annotation: tables, clean text, search."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.builtin import BuiltinPage
    from siteloom.cli.shell import Shell
    from siteloom.discovery import DiscoveredTable

_COLUMNS_SHOWN = 12
_HELD = 0.95  # of the pages that have an attribute, on which its column must have the values


def show_discovered(shell: Shell, directory: Sequence[BuiltinPage]) -> None:
    """The tables of the directory's restaurants and of its lists, and which columns are which attributes."""
    from siteloom.cli.discover import examples_of
    from siteloom.discovery import discover

    places = [page for page in directory if page.kind == "restaurant"]
    table = discover(page.page for page in places)
    held = _held(table, places)
    rows = [
        (
            column.label,
            column.type,
            f"{column.filled:.0%}",
            examples_of(table, column),
            held.get(column.label),
        )
        for column in table.columns[:_COLUMNS_SHOWN]
    ]
    columns = ("column", "type", "filled", "for example", "by the truth")
    shell.show(f"{len(table.rows):,} pages, {len(table.columns)} columns", columns, rows)
    attributes = {name for page in places for name, values in page.truth.items() if values}
    lists = [page for page in directory if page.kind == "list"]
    records = sum(len(page.records) for page in lists)
    items = discover(page.page for page in lists)
    shell.say(
        f"    {len(held)} of {len(attributes)} attributes have a column. Lists are told from other pages: "
        f"those of the directory give {len(items.rows):,} rows\n    for {records:,} records. siteloom "
        "discover --accept COLUMN makes an attribute of a column, and learns a wrapper."
    )


def _held(table: DiscoveredTable, pages: Sequence[BuiltinPage]) -> dict[str, str]:
    """The attribute that a column holds, by its label; of several columns, the first."""
    held: dict[str, str] = {}
    for name in sorted({name for page in pages for name in page.truth}):
        rows = [
            (row, page.truth[name])
            for row, page in zip(table.rows, pages, strict=True)
            if page.truth.get(name)
        ]
        for column in table.columns:
            right = sum(set(values) <= set(row[column.label]) for row, values in rows)
            if rows and right >= _HELD * len(rows):
                held.setdefault(column.label, name)
                break
    return held
