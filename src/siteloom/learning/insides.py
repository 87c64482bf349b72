"""What HTML attributes say in a unit, and what elements say as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lxml import etree

from siteloom.dom import normalize
from siteloom.dom.text import BREAKS, HIDDEN

if TYPE_CHECKING:
    from collections.abc import Collection

    from siteloom.dom import Element
    from siteloom.learning.walking import UnitRows

LONGEST_TEXT = 5_000
"""Whole texts of elements that are longer are no values and hold none that could be found by anchors."""


class Inside(NamedTuple):
    """What an element of a unit says in one of its HTML attributes, or as a whole; None if that is too long.

    `row` is that of the element.
    """

    row: int
    text: str | None


def insides(rows: UnitRows, attributes: Collection[str], tags: Collection[str]) -> dict[str, list[Inside]]:
    """What HTML attributes say in a unit, by `@` and name, and what elements say as a whole, by tag."""
    found = {attribute_key(name): _attribute_values(rows, name) for name in attributes}
    if tags:
        texts = _InsideTexts(tags)
        for top in rows.tops:
            texts.add_tree(top, rows.elements)
        found |= texts.found
    return found


def attribute_key(attribute: str) -> str:
    """By what the values of an HTML attribute are known."""
    return f"@{attribute}"


def _attribute_values(rows: UnitRows, name: str) -> list[Inside]:
    found = (
        (row, normalize(value)) for element, row in rows.elements.items() if (value := element.get(name))
    )
    return [Inside(row, text if len(text) <= LONGEST_TEXT else None) for row, text in found if text]


class _InsideTexts:
    """What `visible_text` says of all elements of some tags, found in one walk."""

    def __init__(self, tags: Collection[str]) -> None:
        self.found: dict[str, list[Inside]] = {tag: [] for tag in tags}
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
        if tag in self.found:
            is_short = self._length - length <= LONGEST_TEXT
            text = normalize("".join(self._pieces[start:])) if is_short else None
            if text != "":
                self.found[tag].append(Inside(row, text if text and len(text) <= LONGEST_TEXT else None))
        if tag in HIDDEN:  # it is seen only when it is looked at by itself
            del self._pieces[start:]
            self._length = length
        elif tag in BREAKS:
            self._add_blank()

    def _add_blank(self) -> None:
        if self._pieces and self._pieces[-1] != " ":
            self._pieces.append(" ")
