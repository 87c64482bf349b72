"""Units cut out of pages that were walked through already: the records of list pages, or whole pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.learning.induction.tree_walk import (
    BEFORE,
    CLASS,
    NONE,
    POSITION,
    TAG,
    WALKED_COLUMNS,
    TableBuilder,
    Walked,
    Words,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from siteloom.html.parser import Element
    from siteloom.learning.induction.feature_columns import Flags
    from siteloom.learning.induction.tree_walk import Ints, UnitRows
    from siteloom.wrappers.rule_evaluation import Scope

    Turns = NDArray[np.int64]


class Span(NamedTuple):
    """Where a unit stands among the rows of all pages: its elements, and its texts."""

    elements: slice
    texts: slice


class Nodes(NamedTuple):
    """The nodes of a unit in document order: its elements, and its texts by parent and number.

    No pairs are made of these: to look over so many of them takes the garbage collector long.
    """

    elements: list[Element]
    text_parents: list[Element | None]
    text_numbers: list[int]

    @staticmethod
    def of(rows: UnitRows) -> Nodes:
        """The nodes that have these rows."""
        return Nodes(
            list(rows.elements),
            [parent for parent, _ in rows.texts],
            [number for _, number in rows.texts],
        )


class _Walk(NamedTuple):
    """A page that was walked through: the rows of its elements, its nodes, and where it stands."""

    rows: dict[Element, int]
    nodes: Nodes
    span: Span


class WalkedPages:
    """Pages, each of which is walked through once, however often units are cut out of them."""

    def __init__(self) -> None:
        self._builder = TableBuilder()
        self._walks: dict[Element, _Walk] = {}
        self._walked: Walked | None = None

    def add(self, root: Element) -> None:
        """Walk through a page, if that was not done before."""
        if root not in self._walks:
            first_element, first_text = len(self._builder.parents), self._builder.text_count
            rows = self._builder.add(root)
            span = Span(
                slice(first_element, len(self._builder.parents)), slice(first_text, self._builder.text_count)
            )
            self._walks[root] = _Walk(rows.elements, Nodes.of(rows), span)
            self._walked = None

    def span(self, root: Element, scope: Scope | None) -> Span:
        """Where a page stands, or a record of it; what a record runs on through has texts in between."""
        walk = self._walks[root]
        if scope is None:
            return walk.span
        rows, starts, ends = walk.rows, self._builder.span_starts, self._builder.span_ends
        first = rows[scope.start]
        parent = scope.start.getparent()
        if scope.end is None or parent is None:
            return Span(slice(first, walk.span.elements.stop), slice(starts[first], walk.span.texts.stop))
        if scope.end.preceding is None:  # up to the next record
            following = rows[scope.end.parent]
            return Span(slice(first, following), slice(starts[first], starts[following]))
        last = rows[scope.end.preceding]  # up to the end of this one
        return Span(slice(first, self._end(last, walk)), slice(starts[first], ends[last]))

    def nodes(self, root: Element, span: Span) -> Nodes:
        """The nodes of a unit of a page."""
        _, nodes, of_page = self._walks[root]
        elements = _shifted(span.elements, -of_page.elements.start)
        texts = _shifted(span.texts, -of_page.texts.start)
        return Nodes(nodes.elements[elements], nodes.text_parents[texts], nodes.text_numbers[texts])

    def cut(self, spans: Sequence[Span]) -> Walked:
        """These units, as if nothing but them had been walked through."""
        walked = self._walked = self._walked or self._builder.walked
        elements, first_elements = _united([span.elements for span in spans])
        texts, first_texts = _united([span.texts for span in spans])
        element_units = _units(first_elements, len(elements))
        text_units = _units(first_texts, len(texts))
        # What stands where a unit begins is moved to where the unit has its place now.
        element_shift = np.array([span.elements.start for span in spans], np.int32) - first_elements
        text_shift = np.array([span.texts.start for span in spans], np.int32) - first_texts
        parents, is_top = _own_parents(walked.parents[elements], element_units, element_shift, first_elements)
        text_parents, is_outside = _own_parents(
            walked.texts[1][texts], text_units, element_shift, first_elements
        )
        starts_and_ends = walked.spans[:, elements] - text_shift[element_units]
        columns = walked.elements[:, elements]
        columns[BEFORE, starts_and_ends[0] == first_texts[element_units]] = NONE
        tops = np.flatnonzero(is_top)
        columns[POSITION, tops] = _positions(walked.words, columns[TAG, tops], element_units[tops])
        numbers = walked.texts[3][texts]
        outside = np.flatnonzero(is_outside)
        numbers[outside] = _counted(text_units[outside])
        values = walked.texts[2][texts]
        new = _Numbering(walked.words, walked.class_words, columns, starts_and_ends[0], values)
        return Walked(
            new.words,
            first_elements,
            first_texts,
            new.of(columns),
            parents,
            starts_and_ends,
            np.stack([text_units, text_parents, new.of(values), numbers]),
            new.class_words,
        )

    def _end(self, row: int, walk: _Walk) -> int:
        """The end of the rows inside an element: the next row has a parent that stands before it."""
        walked = self._walked = self._walked or self._builder.walked
        stop = walk.span.elements.stop
        behind = walked.parents[row + 1 : stop] < row
        return row + 1 + int(behind.argmax()) if behind.any() else stop


class _Numbering:
    """Numbers for the words of units, given in the order in which a walk through these comes upon them."""

    def __init__(
        self,
        words: Words,
        class_words: Mapping[int, list[int]],
        columns: Ints,
        texts_before: Ints,
        values: Ints,
    ) -> None:
        never = np.iinfo(np.int64).max
        first = np.full(len(words.texts) + 1, never, np.int64)  # the last is for NONE
        # One after the other, with room for the columns of an element and the words of its class.
        room = WALKED_COLUMNS + max(map(len, class_words.values()), default=0) + 1
        turns = (np.arange(columns.shape[1], dtype=np.int64) + texts_before) * room
        text_turns = np.arange(len(values), dtype=np.int64)
        text_turns = (text_turns + np.searchsorted(texts_before, text_turns, side="right")) * room
        _note_first(first, values, text_turns)
        for number, column in enumerate(columns):
            if number != BEFORE:  # has no texts but those of the unit
                _note_first(first, column, turns + number + (number > CLASS) * (room - WALKED_COLUMNS))
        classes = np.unique(columns[CLASS]).tolist()
        first_of_class = np.full(len(first), never, np.int64)
        _note_first(first_of_class, columns[CLASS], turns + CLASS)
        for class_ in classes:
            for place, word in enumerate(class_words.get(class_, ()), 1):
                first[word] = min(first[word], first_of_class[class_] + place)
        first[NONE] = never
        order = np.argsort(first)[: int((first != never).sum())]
        self._new = np.full(len(first), NONE, np.int32)
        self._new[order] = np.arange(len(order))
        self.words = Words([words.texts[number] for number in order.tolist()])
        self.class_words = {
            int(self._new[class_]): self._new[class_words[class_]].tolist()
            for class_ in classes
            if class_ in class_words
        }

    def of(self, numbers: Ints) -> Ints:
        """The new numbers for old ones."""
        return self._new[numbers]


def _note_first(first: Turns, numbers: Ints, turns: Turns) -> None:
    """Note when numbers come for the first time, if that is earlier than what is noted; turns only rise."""
    found = np.full(len(first), np.iinfo(np.int64).max, np.int64)
    found[numbers[::-1]] = turns[::-1]  # of several for one place the last is kept
    np.minimum(first, found, out=first)


def _shifted(span: slice, by: int) -> slice:
    return slice(span.start + by, span.stop + by)


def _united(spans: Sequence[slice]) -> tuple[Ints, Ints]:
    """All rows of these spans one after the other, and where each span begins among them."""
    lengths = np.array([span.stop - span.start for span in spans], np.int32)
    first = (np.cumsum(lengths) - lengths).astype(np.int32)
    starts = np.array([span.start for span in spans], np.int32)
    rows = np.arange(int(lengths.sum()), dtype=np.int32) + np.repeat(starts - first, lengths)
    return rows, first


def _units(first: Ints, count: int) -> Ints:
    """The unit of each of so many rows."""
    lengths = np.diff(np.append(first, count))
    return np.repeat(np.arange(len(first), dtype=np.int32), lengths)


def _own_parents(parents: Ints, units: Ints, shift: Ints, first: Ints) -> tuple[Ints, Flags]:
    """The parents of nodes where they stand now, NONE if they are outside of the unit, and which are so."""
    own = parents - shift[units]
    is_outside = own < first[units]
    return np.where(is_outside, NONE, own).astype(np.int32), is_outside


def _positions(words: Words, tags: Ints, units: Ints) -> list[int]:
    """The positions of the topmost elements of units, among those of the same tag."""
    counts: dict[tuple[int, int], int] = {}
    found = []
    for tag_and_unit in zip(tags.tolist(), units.tolist(), strict=True):
        counts[tag_and_unit] = place = counts.get(tag_and_unit, 0) + 1
        found.append(words.number(f"{words.texts[tag_and_unit[0]]} {place}"))
    return found


def _counted(units: Ints) -> Ints:
    """The number of each among those of the same unit, from 1; units come in their order."""
    _, first, place = np.unique(units, return_index=True, return_inverse=True)
    return np.arange(len(units)) - first[place] + 1
