"""From the pages of a cluster to a table, with no examples: all that varies, in columns with names."""

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
_ADDRESS = "url"  # of the page, beside the columns wherever rows are written
_TYPED = 50  # values tell the type of a column
_SHORT = 100  # characters; longer texts tell much, but are no fields of a record


@dataclass(frozen=True, slots=True)
class DiscoveredColumn:
    """A column: its name, where its values stand, and how much they tell.

    In a list page the XPath begins at a record, else at the page. `filled` is the
    share of rows that have a value. `type` is what the values have in common.
    """

    label: str
    xpath: str
    informativeness: float
    filled: float
    type: ValueType


@dataclass(frozen=True, slots=True)
class DiscoveredRow:
    """The values of a page, or of one record of a list page, by the labels of columns.

    Values are texts as seen, white space normalised; what is absent is left out.
    `nodes` tells where each stands.
    """

    url: str
    values: Mapping[str, tuple[str, ...]]
    nodes: Mapping[str, tuple[str, ...]]

    def __getitem__(self, label: str) -> tuple[str, ...]:
        """The values of a column, none if there are none."""
        return self.values.get(label, ())


@dataclass(frozen=True, slots=True)
class DiscoveredTable:
    """All that varies between the pages of a cluster, the most telling columns first.

    Rows are pages in their order, or the records of list pages; these are the
    elements that `record_xpath` finds, which is empty if rows are pages. A column has a
    `label`, an `xpath` (from the page, or from a record), `informativeness`, `filled` (the share
    of rows that have a value) and a `type`. A row has its `url`, its `values` (tuples of texts
    by label; what is absent is left out, and `row[label]` is empty then) and `nodes`, the path
    of each value's node. `record_likeness` is how many telling values a row has, `failures` are
    the pages that could not be read. `siteloom.learning.discovery.columns_to_wrapper.accept_columns`
    makes examples for
    `learn` of columns.
    """

    columns: tuple[DiscoveredColumn, ...]
    rows: tuple[DiscoveredRow, ...]
    record_xpath: str
    failures: tuple[Failure, ...]
    record_likeness: float
    """How many telling values a row has on average, long texts left out: of no record, few."""


class TableOutline(NamedTuple):
    """What a table of pages would have, as far as it is known without its names."""

    record_likeness: float
    columns: int
    are_lists: bool


def discover(pages: Iterable[Page], *, limits: ParseSettings = ParseSettings()) -> DiscoveredTable:
    """A table of all that varies between pages that were made from one template.

    Pages that list things give a row for each of them, others a row a page.
    """
    units, columns = _units_and_columns(pages, limits)
    descriptions = describe_columns(columns, units)
    _, *labels = unique([_ADDRESS, *(description.name for description in descriptions)])
    rows = [
        DiscoveredRow(units.url(unit), *_cells(units, unit, zip(labels, columns, strict=True)))
        for unit in range(len(units.page_of))
    ]
    return DiscoveredTable(
        tuple(
            DiscoveredColumn(
                label,
                description.xpath,
                column.informativeness,
                len(column.strand.rows) / len(rows),
                _type_of(column, units.texts),
            )
            for label, description, column in zip(labels, descriptions, columns, strict=True)
        ),
        tuple(rows),
        record_xpath([elements[0] for elements in units.elements]) if units.are_parts else "",
        units.failures,
        _record_likeness(columns, units),
    )


def outline(pages: Iterable[Page], *, limits: ParseSettings = ParseSettings()) -> TableOutline:
    """How a table of pages would be: enough to choose between clusters."""
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
    """Whether most texts of a column are short."""
    lengths = [
        [len(texts.texts[text]) for text in texts.text[list(rows)].tolist()]
        for rows in column.strand.rows.values()
    ]
    all_lengths = (
        [sum(item_lengths) for item_lengths in lengths] if column.form == "prose" else list(chain(*lengths))
    )
    return sum(length <= _SHORT for length in all_lengths) * 2 > len(all_lengths)


def _is_navigation(column: ColumnCandidate, units: Units) -> bool:
    """Whether the addresses of a column are mostly those of other pages of the site."""
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
