"""Discover a table in the pages of a cluster without examples: all varying texts, in named columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import UsageError
from siteloom.core.model import Failure, Page, ValueType
from siteloom.core.sequences import evenly_spaced
from siteloom.core.settings import ParseSettings
from siteloom.core.urls import site_of
from siteloom.core.values.type_inference import infer_type
from siteloom.learning.discovery.column_names import unique
from siteloom.learning.discovery.column_selection import find_columns
from siteloom.learning.discovery.column_xpaths import common_element, describe_columns, record_xpath
from siteloom.learning.repeated_structure.table_units import units_of

if TYPE_CHECKING:
    from siteloom.html.page_text_arrays import PageTexts
    from siteloom.learning.discovery.column_selection import ColumnCandidate
    from siteloom.learning.repeated_structure.table_units import Units

_MOST_COLUMNS = 40  # as many as a person can look through
_ADDRESS = "url"  # the column for the page's URL in all outputs
_TYPED = 50  # values that determine the type of a column
_SHORT = 100  # characters; longer texts are informative, but no fields of a record


@dataclass(frozen=True, slots=True)
class DiscoveredColumn:
    """A column: its name, its XPath, and its informativeness.

    The XPath begins at a record of a list page, or else at the page. `filled` is the share of rows with a
    value. `type` is the common type of the values.
    """

    label: str
    xpath: str
    informativeness: float
    filled: float
    type: ValueType


@dataclass(frozen=True, slots=True)
class DiscoveredRow:
    """The values of a page, or of one record of a list page, by the labels of columns.

    Values are visible texts with normalised white space; columns without values are left out. `nodes` has the
    path of each value's node.
    """

    url: str
    values: Mapping[str, tuple[str, ...]]
    nodes: Mapping[str, tuple[str, ...]]

    def __getitem__(self, label: str) -> tuple[str, ...]:
        """Return the values of a column, an empty tuple if there are none."""
        return self.values.get(label, ())


@dataclass(frozen=True, slots=True)
class DiscoveredTable:
    """All varying texts of the pages of a cluster, the most informative columns first.

    Rows are pages in their order, or the records of list pages; `record_xpath` finds these records, and is
    empty if rows are pages. A column has a `label`, an `xpath` (from the page, or from a record),
    `informativeness`, `filled` (the share of rows with a value) and a `type`. A row has its `url`, its
    `values` (tuples of texts by label; absent ones are left out, and `row[label]` is empty then) and `nodes`,
    the path of each value's node. `record_likeness` is the mean number of informative values per row,
    `failures` are the pages that could not be read.
    `siteloom.learning.discovery.columns_to_wrapper.accept_columns` turns columns into examples for `learn`.
    """

    columns: tuple[DiscoveredColumn, ...]
    rows: tuple[DiscoveredRow, ...]
    record_xpath: str
    failures: tuple[Failure, ...]
    record_likeness: float
    """The mean number of informative values per row, without long texts; it is low if rows are no records."""


class TableOutline(NamedTuple):
    """The measures of a table that need no column names."""

    record_likeness: float
    columns: int
    are_lists: bool


def discover(pages: Iterable[Page], *, limits: ParseSettings = ParseSettings()) -> DiscoveredTable:
    """Discover a table of all varying texts on pages with one template.

    List pages give a row for each of their records, other pages one row each.
    """
    units, columns = _units_and_columns(pages, limits)
    descriptions = describe_columns(columns, units)
    _, *labels = unique([_ADDRESS, *(description.name for description in descriptions)])
    rows = [
        DiscoveredRow(units.url(unit), *_cells(units, unit, zip(labels, columns, strict=True)))
        for unit in range(len(units.page_of))
    ]
    return DiscoveredTable(
        columns=tuple(
            DiscoveredColumn(
                label=label,
                xpath=description.xpath,
                informativeness=column.informativeness,
                filled=len(column.strand.rows) / len(rows),
                type=_type_of(column, units.texts),
            )
            for label, description, column in zip(labels, descriptions, columns, strict=True)
        ),
        rows=tuple(rows),
        record_xpath=record_xpath([elements[0] for elements in units.elements]) if units.are_parts else "",
        failures=units.failures,
        record_likeness=_record_likeness(columns, units),
    )


def outline(pages: Iterable[Page], *, limits: ParseSettings = ParseSettings()) -> TableOutline:
    """Measure the table of some pages, to choose between clusters."""
    units, columns = _units_and_columns(pages, limits)
    return TableOutline(_record_likeness(columns, units), len(columns), units.are_parts)


def _units_and_columns(pages: Iterable[Page], limits: ParseSettings) -> tuple[Units, list[ColumnCandidate]]:
    units = units_of(list(pages), limits.learned)
    if not units.pages:
        raise UsageError("There is no page to discover a table in: give the pages of a cluster.")
    candidates = find_columns(units.texts, _MOST_COLUMNS) if units.page_of else []
    return units, [column for column in candidates if not _is_navigation(column, units)]


def _record_likeness(columns: Iterable[ColumnCandidate], units: Units) -> float:
    return sum(
        len(column.strand.rows) / len(units.page_of) * column.informativeness
        for column in columns
        if _is_field(column, units.texts)
    )


def _is_field(column: ColumnCandidate, texts: PageTexts) -> bool:
    """Return whether most texts of a column are short."""
    lengths = [
        [len(texts.texts[text]) for text in texts.text[list(rows)].tolist()]
        for rows in column.strand.rows.values()
    ]
    all_lengths = (
        [sum(item_lengths) for item_lengths in lengths] if column.form == "prose" else list(chain(*lengths))
    )
    return sum(length <= _SHORT for length in all_lengths) * 2 > len(all_lengths)


def _is_navigation(column: ColumnCandidate, units: Units) -> bool:
    """Return whether the links of a column mostly lead to other pages of the site."""
    if column.form != "attribute":
        return False
    texts = units.texts
    rows = {unit: rows[0] for unit, rows in column.strand.rows.items()}
    if any(texts.leaf(row) != "@href" for row in rows.values()):
        return False
    inside = sum(
        site_of(texts.texts[texts.text[row]]) == site_of(units.url(unit)) for unit, row in rows.items()
    )
    return inside * 2 > len(rows)


def _cells(
    units: Units, unit: int, columns: Iterable[tuple[str, ColumnCandidate]]
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    values, nodes = {}, {}
    for label, column in columns:
        if rows := column.strand.rows.get(unit):
            texts = tuple(units.texts.texts[text] for text in units.texts.text[list(rows)].tolist())
            paths = tuple(units.node(unit, row) for row in rows)
            is_prose = column.form == "prose"
            values[label] = (" ".join(texts),) if is_prose else texts
            nodes[label] = (common_element(paths),) if is_prose else paths
    return values, nodes


def _type_of(column: ColumnCandidate, texts: PageTexts) -> ValueType:
    sampled_rows = evenly_spaced(list(column.strand.rows.values()), _TYPED)
    values = [texts.texts[texts.text[row]] for rows in sampled_rows for row in rows]
    return infer_type(values, [texts.leaf(sampled_rows[0][0])] if column.form == "attribute" else ())
