"""Walk the trees into rows of numbers; the texts of attributes and whole elements.

A *unit* is what gives one record: a page, or one record of a list page.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from lxml import etree

from siteloom.html.node_paths import TextPosition
from siteloom.html.visible_text import BREAKS, HIDDEN, NOT_CONTENT, attribute_words, normalize
from siteloom.wrappers.rule_features import TELLING_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from siteloom.html.parser import Element


LONGEST_TEXT = 5_000
"""Whole texts of elements that are longer are no values and hold none that could be found by anchors."""


class InnerText(NamedTuple):
    """What an element of a unit says in one of its HTML attributes, or as a whole; None if that is too long.

    `row` is that of the element.
    """

    row: int
    text: str | None


def inner_texts(
    rows: UnitRows, attributes: Collection[str], tags: Collection[str]
) -> dict[str, list[InnerText]]:
    """What HTML attributes say in a unit, by `@` and name, and what elements say as a whole, by tag."""
    texts = {attribute_key(name): _attribute_values(rows, name) for name in attributes}
    if tags:
        of_elements = _InnerTexts(tags)
        for top in rows.tops:
            of_elements.add_tree(top, rows.elements)
        texts |= of_elements.texts
    return texts


def attribute_key(attribute: str) -> str:
    """By what the values of an HTML attribute are known."""
    return f"@{attribute}"


def _attribute_values(rows: UnitRows, name: str) -> list[InnerText]:
    values = (
        (row, normalize(value)) for element, row in rows.elements.items() if (value := element.get(name))
    )
    return [InnerText(row, text if len(text) <= LONGEST_TEXT else None) for row, text in values if text]


class _InnerTexts:
    """What `visible_text` says of all elements of some tags, found in one walk."""

    def __init__(self, tags: Collection[str]) -> None:
        self.texts: dict[str, list[InnerText]] = {tag: [] for tag in tags}
        self._pieces: list[str] = []
        self._length = 0  # of all pieces, blanks not counted that may fall away
        self._starts: list[tuple[int, int]] = []  # of each open element: the pieces before it, their length

    def add_tree(self, top: Element, rows: dict[Element, int]) -> None:
        """Walk through an element that has these rows inside."""
        walk = etree.iterwalk(top, events=("start", "end", "comment", "pi"))
        for event, node in walk:
            if event == "start":
                if node not in rows:
                    walk.skip_subtree()
                    continue
                self._begin(str(node.tag))
                text = node.text
            else:
                if event == "end" and (row := rows.get(node)) is not None:
                    self._end(str(node.tag), row)
                text = None if node is top else node.tail
            if text:
                self._add(text)

    def _begin(self, tag: str) -> None:
        self._starts.append((len(self._pieces), self._length))
        if tag in BREAKS:
            self._add_blank()

    def _add(self, text: str) -> None:
        if text[0].isspace():
            self._add_blank()
        if words := normalize(text):
            self._pieces.append(words)
            self._length += len(words)
            if text[-1].isspace():
                self._add_blank()

    def _end(self, tag: str, row: int) -> None:
        start, length = self._starts.pop()
        if tag in self.texts:
            is_short = self._length - length <= LONGEST_TEXT
            text = normalize("".join(self._pieces[start:])) if is_short else None
            if text != "":
                self.texts[tag].append(InnerText(row, text if text and len(text) <= LONGEST_TEXT else None))
        if tag in HIDDEN:  # it is seen only when it is looked at by itself
            del self._pieces[start:]
            self._length = length
        elif tag in BREAKS:
            self._add_blank()

    def _add_blank(self) -> None:
        if self._pieces and self._pieces[-1] != " ":
            self._pieces.append(" ")


if TYPE_CHECKING:
    Ints = NDArray[np.int32]

NONE = -1

ATTRIBUTE_COLUMN = "attribute:"
"""How the names of columns of telling HTML attributes begin."""

ELEMENT_COLUMNS = (
    *("tag", "id", "class", *(ATTRIBUTE_COLUMN + name for name in TELLING_ATTRIBUTES)),
    *("position", "before", "first-text", "last-position"),
)
COLUMN = {name: number for number, name in enumerate(ELEMENT_COLUMNS)}
WALKED_COLUMNS = len(ELEMENT_COLUMNS) - 2
"""So many columns of elements are known as soon as these begin."""

TAG, CLASS, POSITION, BEFORE = (COLUMN[name] for name in ("tag", "class", "position", "before"))
_TELLING_COLUMN = {name: COLUMN[ATTRIBUTE_COLUMN + name] for name in TELLING_ATTRIBUTES}
_NO_ATTRIBUTES = (NONE,) * (2 + len(TELLING_ATTRIBUTES))


class _TextNumbers(dict[str, int]):
    """A number for each text that was asked for; a known one is found without any Python code."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self.texts)
        self.texts.append(text)
        return number


class Words:
    """Numbers for texts; those given at the start are all different and have theirs in their order."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._numbers = _TextNumbers()
        self._numbers.update(zip(texts, range(len(texts)), strict=True))
        self.texts = self._numbers.texts
        self.texts += texts
        self.number: Callable[[str], int] = self._numbers.__getitem__
        """The number of a text, a new one if it has none yet."""

    def find(self, text: str) -> int:
        """The number of a text, or NONE if it occurs nowhere."""
        return self._numbers.get(text, NONE)


@dataclass(slots=True)
class _OpenElement:
    """An element whose end has not come yet.

    Its row, its children by tag (most elements have none), its text nodes and
    visible texts so far; in one that is hidden no text is visible.
    """

    element: Element | None
    row: int
    is_hidden: bool
    children: dict[str, int] | None = None
    text_nodes: int = 0
    visible_texts: int = 0


class UnitRows(NamedTuple):
    """The rows of a unit's nodes: of elements, and of texts by their parent and number (as XPath counts).

    Both are in document order, and in that of the rows. `tops` are the unit's topmost elements.
    """

    tops: tuple[Element, ...]
    elements: dict[Element, int]
    texts: dict[tuple[Element | None, int], int]


class Walked(NamedTuple):
    """Units one after the other, as a walk through them finds them."""

    words: Words
    first_elements: Ints  # of each unit
    first_texts: Ints  # of each unit
    elements: Ints  # by columns, all but first-text and last-position
    parents: Ints
    spans: Ints  # of each element its first text, and the end of those that it has
    texts: Ints  # by columns: unit, parent, value, number in the parent
    class_words: Mapping[int, list[int]]  # of each class that occurs


class TableBuilder:
    """Takes in one unit after the other; trees are not kept.

    `attributes` are the HTML attributes whose values are to be chosen from, and
    `tags` the elements whose whole visible text is.
    """

    def __init__(self, attributes: Collection[str] = (), tags: Collection[str] = ()) -> None:
        self.words = Words()
        self.units = 0
        self.elements = array("i")  # one after the other, their columns but first-text and last-position
        self.span_starts: list[int] = []  # of each element: its first text...
        self.span_ends: list[int] = []  # ... and the end of those that it has
        self.unit_starts: list[int] = []  # the first text of each unit
        self.first_elements: list[int] = []  # of each unit
        self.parents: list[int] = []
        self.class_words: dict[int, list[int]] = {}  # of each class that occurs
        self.texts = array("i")  # one after the other: unit, parent, value, number in the parent
        self.text_count = 0
        self.inner_texts: dict[str, list[InnerText]] = {
            key: [] for key in (*map(attribute_key, attributes), *tags)
        }
        self._attributes = attributes
        self._tags = tags
        self._last_text = NONE  # of the unit
        self._classes: dict[str, int] = {}

    def add(self, *roots: Element, with_tails: bool = False) -> UnitRows:
        """Take in a unit: these elements, and `with_tails` the texts behind them."""
        rows = UnitRows(roots, {}, {})
        outside = _OpenElement(roots[0].getparent(), NONE, is_hidden=False)
        self.unit_starts.append(self.text_count)
        self.first_elements.append(len(self.parents))
        self._last_text = NONE
        for root in roots:
            self._add_tree(root, outside, rows)
            if with_tails and outside.element is not None:
                for node in _with_comments(root):
                    if node.tail:
                        outside.text_nodes = TextPosition(outside.element, node).number - 1
                        self._add_text(outside, node.tail, rows)
        for key, texts in inner_texts(rows, self._attributes, self._tags).items():
            self.inner_texts[key] += texts
        self.units += 1
        return rows

    @property
    def walked(self) -> Walked:
        """All units that were taken in so far."""
        return Walked(
            self.words,
            np.array(self.first_elements, np.int32),
            np.array(self.unit_starts, np.int32),
            np.array(self.elements, np.int32).reshape(-1, WALKED_COLUMNS).T,
            np.array(self.parents, np.int32),
            np.array([self.span_starts, self.span_ends], np.int32),
            np.array(self.texts, np.int32).reshape(-1, 4).T,
            self.class_words,
        )

    def _add_tree(self, root: Element, outside: _OpenElement, rows: UnitRows) -> None:
        opened = [outside]
        above = outside
        walk = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
        for event, node in walk:
            if event == "start":
                tag = str(node.tag)
                if tag in NOT_CONTENT:
                    walk.skip_subtree()
                    opened.append(above)
                    above = outside
                    continue
                rows.elements[node] = row = len(self.parents)
                self._add_element(tag, node.items(), above)
                opened.append(above)
                above = _OpenElement(node, row, above.is_hidden or tag in HIDDEN)
                text = node.text
            else:
                if event == "end":
                    if above.row != NONE:
                        self.span_ends[above.row] = self.text_count
                    above = opened.pop()
                if node is root:
                    continue
                text = node.tail
            if text:
                self._add_text(above, text, rows)

    def _add_element(self, tag: str, attributes: list[tuple[str, str]], parent: _OpenElement) -> None:
        number = self.words.number
        if parent.children is None:
            parent.children = {}
        parent.children[tag] = place = parent.children.get(tag, 0) + 1
        # Whoever numbers the words of a part of a page must come to the same order: that of the columns.
        tag_number = number(tag)
        names = self._named(attributes) if attributes else _NO_ATTRIBUTES
        position = number(f"{tag} {place}")  # no tag has a blank
        # Nothing may follow in the unit, but before the element there is a text all the same.
        self.elements.extend((tag_number, *names, position, self._last_text))
        self.parents.append(parent.row)
        self.span_starts.append(self.text_count)
        self.span_ends.append(self.text_count)

    def _named(self, attributes: list[tuple[str, str]]) -> list[int]:
        """The columns of an element that its HTML attributes give: id, class, and those that tell."""
        number = self.words.number
        names = [*_NO_ATTRIBUTES]
        class_ = ""
        telling = []
        for name, value in attributes:
            if name == "class":
                class_ = value
            elif name == "id":
                if value:
                    names[0] = number(value)
            elif name in _TELLING_COLUMN and value:
                telling.append((_TELLING_COLUMN[name] - 1, value))
        if class_:
            names[1] = self._class_number(class_)
        for column, value in sorted(telling):
            names[column] = number(" ".join(attribute_words(value)))
        return names

    def _class_number(self, value: str) -> int:
        """The number of all class names together; NONE if there are none."""
        class_number = self._classes.get(value)
        if class_number is None:
            number = self.words.number
            words = attribute_words(value)
            class_number = self._classes[value] = number(" ".join(words)) if words else NONE
            if words:
                self.class_words[class_number] = list(map(number, dict.fromkeys(words)))
        return class_number

    def _add_text(self, parent: _OpenElement, text: str, rows: UnitRows) -> None:
        parent.text_nodes += 1
        if not parent.is_hidden and (words := normalize(text)):
            parent.visible_texts += 1
            rows.texts[parent.element, parent.text_nodes] = self.text_count
            self._last_text = value = self.words.number(words)
            self.texts.extend((self.units, parent.row, value, parent.visible_texts))
            self.text_count += 1


def _with_comments(element: Element) -> Iterator[Element]:
    """An element and the comments behind it, up to the next element."""
    node: Element | None = element
    while node is not None and (node is element or not isinstance(node.tag, str)):
        yield node
        node = node.getnext()
