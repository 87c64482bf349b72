"""Select the strands that become columns: varying ones without duplicates, the most informative first."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain
from statistics import median
from typing import TYPE_CHECKING, Literal, NamedTuple

from siteloom.learning.discovery.text_strands import Strand, find_strands

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from siteloom.html.page_text_arrays import PageTexts

_LEAST_UNITS = 2
_LEAST_FILLED = 0.05  # of the units; sparser columns are mostly empty
_CONSTANT = 0.9  # share of a column's units with the same content, from which it is not informative
_MENU_SHARE = 0.3  # mean share of other units with the same list item, from which a list is navigation
_SAME_SHARE = 0.95  # share of units with equal content, from which two columns are duplicates

_ATTRIBUTE_WORTH = 0.5  # less than visible texts, which people look for first

# Running text is so many strands of long texts under one heading, none of which half of the units have. Other
# long strands there, such as the first paragraph, belong to it too.
_PIECES_OF_PROSE = 3
_IRREGULAR_SHARE = 0.5
_LONG_TEXT = 40  # characters


Form = Literal["text", "prose", "attribute"]
"""The form of a column: texts, one running text, or an HTML attribute."""


class ColumnCandidate(NamedTuple):
    """A possible column: its strand, its form, and its informativeness."""

    strand: Strand
    form: Form
    informativeness: float

    @property
    def weight(self) -> float:
        """The weight of the column; it is lower for long lists, which are rarely values."""
        units = self.strand.rows
        items = 1.0 if self.form == "prose" else sum(map(len, units.values())) / len(units)
        information = len(units) * self.informativeness / float(items**0.5)
        return information * _ATTRIBUTE_WORTH if self.form == "attribute" else information


def find_columns(texts: PageTexts, max_columns: int) -> list[ColumnCandidate]:
    """Return the columns of some units, the most informative first."""
    strands_of_units = find_strands(texts)
    strands: Iterable[tuple[Strand, Form]] = chain(
        _prose_joined(strands_of_units.texts, texts),
        ((strand, "attribute") for strand in strands_of_units.attributes),
    )
    candidates = [
        ColumnCandidate(strand, form, _informativeness(strand, form, texts))
        for strand, form in strands
        if _is_informative(strand, form, texts)
    ]
    # The first of several equal columns is kept: the page title is preferred to the last breadcrumb.
    candidates.sort(key=lambda column: (-column.weight, not _is_title(column.strand, texts)))
    return list(_skip_duplicates(candidates, texts, max_columns))


def _is_title(strand: Strand, texts: PageTexts) -> bool:
    row = next(iter(strand.rows.values()))[0]
    return "/h1[" in texts.path_text(int(texts.path[row]))


def _contents(strand: Strand, form: Form, texts: PageTexts) -> Counter[object]:
    """Count the units that have each content; running text counts as a whole."""
    rows = strand.rows.values()
    if form == "prose":
        return Counter(tuple(texts.text[list(numbers)].tolist()) for numbers in rows)
    return Counter(chain.from_iterable(set(texts.text[list(numbers)].tolist()) for numbers in rows))


def _informativeness(strand: Strand, form: Form, texts: PageTexts) -> float:
    """Return the informativeness, as for a path: see `siteloom.templates.essential_paths`."""
    contents = _contents(strand, form, texts)
    return 1 - contents.total() / (texts.pages * len(contents))


def _is_informative(strand: Strand, form: Form, texts: PageTexts) -> bool:
    units = len(strand.rows)
    if units < max(_LEAST_UNITS, _LEAST_FILLED * texts.pages):
        return False
    contents = _contents(strand, form, texts)
    (_, highest_count), *_ = contents.most_common(1)
    is_list = contents.total() > units
    others_with_item = contents.total() / len(contents) - 1
    is_menu = is_list and others_with_item >= _MENU_SHARE * (units - 1)
    return highest_count < _CONSTANT * units and not is_menu


def _prose_joined(strands: Sequence[Strand], texts: PageTexts) -> Iterator[tuple[Strand, Form]]:
    """Yield the strands with their forms, joining those that are pieces of one running text."""
    by_anchor: dict[int | None, list[Strand]] = defaultdict(list)
    for strand in strands:
        by_anchor[strand.anchor].append(strand)
    for anchor, own in by_anchor.items():
        reached = len(set(chain.from_iterable(strand.rows for strand in own)))
        pieces = [strand for strand in own if len(strand.rows) < _IRREGULAR_SHARE * reached]
        if anchor is None or sum(_is_long(strand, texts) for strand in pieces) < _PIECES_OF_PROSE:
            yield from ((strand, "text") for strand in own)
            continue
        pieces += [
            strand
            for strand in own
            if strand not in pieces and _is_long(strand, texts) and not _is_title(strand, texts)
        ]
        joined: dict[int, list[int]] = defaultdict(list)
        for piece in pieces:
            for unit, rows in piece.rows.items():
                joined[unit] += rows
        yield Strand(anchor, {unit: tuple(sorted(joined[unit])) for unit in sorted(joined)}), "prose"
        yield from ((strand, "text") for strand in own if strand not in pieces)


def _is_long(strand: Strand, texts: PageTexts) -> bool:
    rows = [number for numbers in strand.rows.values() for number in numbers]
    return median(len(texts.texts[number]) for number in texts.text[rows].tolist()) >= _LONG_TEXT


def _skip_duplicates(
    candidates: Iterable[ColumnCandidate], texts: PageTexts, max_columns: int
) -> Iterator[ColumnCandidate]:
    """Yield the first columns, without those that duplicate an earlier one."""
    distinct_cells: list[dict[int, tuple[int, ...]]] = []
    for candidate in candidates:
        if len(distinct_cells) == max_columns:
            return
        cells = {unit: tuple(texts.text[list(rows)].tolist()) for unit, rows in candidate.strand.rows.items()}
        if any(_are_same(cells, earlier_cells) for earlier_cells in distinct_cells):
            continue
        distinct_cells.append(cells)
        yield candidate


def _are_same(cells: dict[int, tuple[int, ...]], other_cells: dict[int, tuple[int, ...]]) -> bool:
    min_equal = _SAME_SHARE * len(cells)
    if len(other_cells) < min_equal:
        return False
    misses = 0
    for unit, cell in cells.items():
        misses += other_cells.get(unit) != cell
        if misses > len(cells) - min_equal:
            return False
    return True
