"""The texts of a site's pages and where they stand, as arrays.

The same thing stands at the same place on all pages of a template. As blocks
shift, a place is known by its absolute path, by the path of tags and classes
with the text before it, and by that path with its number among the texts there.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from siteloom.dom import normalize
from siteloom.dom.text import BREAKS, HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from siteloom.dom import Element

    Ints = NDArray[np.int32]

TEXT, INNER, ATTRIBUTE = range(3)
"""What a text is: a text node, all texts in an element with several, or an HTML attribute."""

LONGEST_TEXT = 300
"""Longer texts are prose and no values."""

_MOST_PARTS = 8  # an address may have a line each for house, street, district, city, country
_ATTRIBUTES = {"a": ("href",), "img": ("alt", "src"), "time": ("datetime",), "area": ("href", "alt")}
_ELSEWHERE = ("http:", "https:", "mailto:", "tel:")  # other addresses lead around the site
_NONE = -1


class Numbered(dict[Any, int]):
    """A number for each thing that was asked for, in the order of asking."""

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self)
        return number


@dataclass(frozen=True, slots=True)
class PageTexts:
    """The texts of pages that may be values, a row for each in document order.

    Columns are numbers of pages, texts, absolute paths, styled paths (tags and
    classes) and of the text before; `form` tells what a row is (`TEXT`, `INNER`, `ATTRIBUTE`).
    """

    texts: tuple[str, ...]
    page: Ints
    text: Ints
    path: Ints
    styled_path: Ints
    label: Ints
    form: Ints
    paths: tuple[tuple[int, str], ...]
    styled_paths: tuple[tuple[int, str], ...]
    pages: int

    def path_text(self, number: int) -> str:
        """An absolute path as XPath writes it."""
        return "/" + "/".join(_steps(self.paths, number))

    def styled_path_text(self, number: int) -> str:
        """A path of tags and classes as CSS writes it."""
        return " > ".join(_steps(self.styled_paths, number))


def _steps(paths: tuple[tuple[int, str], ...], number: int) -> list[str]:
    steps: list[str] = []
    while number != _NONE:
        number, step = paths[number]
        steps.append(step)
    return steps[::-1]


class TextCollector:
    """Takes in one page after the other, so that no tree need be kept."""

    def __init__(self) -> None:
        self._texts = Numbered()
        self._paths = Numbered()
        self._styled_paths = Numbered()
        self._rows = tuple(array("i") for _ in range(6))
        self._pages = 0

    def add(self, root: Element) -> None:
        """Take in a page."""
        body = next((child for child in root if child.tag == "body"), root)
        for row in _rows(body, self._texts, self._paths, self._styled_paths):
            for column, value in zip(self._rows, (self._pages, *row), strict=True):
                column.append(value)
        self._pages += 1

    def collected(self) -> PageTexts:
        """All that was taken in."""
        page, text, path, styled_path, label, form = (
            np.frombuffer(column, np.int32) if column else np.zeros(0, np.int32) for column in self._rows
        )
        return PageTexts(
            tuple(self._texts),
            page,
            text,
            path,
            styled_path,
            label,
            form,
            tuple(self._paths),
            tuple(self._styled_paths),
            self._pages,
        )


class _Row(NamedTuple):
    text: int
    path: int
    styled_path: int
    label: int
    form: int


class _Open:
    """An element that the walk is inside of."""

    __slots__ = (
        "children",
        "counts",
        "element",
        "first_piece",
        "label",
        "path",
        "styled_path",
        "texts",
        "used",
    )

    def __init__(self, element: Element, path: int, styled_path: int, first_piece: int, label: int) -> None:
        self.element = element
        self.children = iter(element)
        self.path = path
        self.styled_path = styled_path
        self.first_piece = first_piece
        self.label = label  # the text before the element
        self.counts: dict[str, int] = {}
        self.texts = 0  # text nodes of its own so far
        self.used = 0  # of these, texts that are seen


def _rows(
    body: Element, texts: Mapping[str, int], paths: Mapping[Any, int], styled_paths: Mapping[Any, int]
) -> Iterator[_Row]:
    pieces: list[str] = []  # the texts so far, raw, with a blank before those that begin a line
    label = _NONE
    line_ends = True

    def opened(element: Element, above: _Open | None) -> _Open:
        nonlocal line_ends
        tag = element.tag
        if tag in BREAKS:
            line_ends = True
        if above is None:
            number, path, styled_path = 1, paths[_NONE, "html[1]"], styled_paths[_NONE, "html"]
        else:
            number = above.counts[tag] = above.counts.get(tag, 0) + 1
            path, styled_path = above.path, above.styled_path
        style = element.get("class")
        return _Open(
            element,
            paths[path, f"{tag}[{number}]"],
            styled_paths[styled_path, f"{tag}.{style}" if style else tag],
            len(pieces),
            label,
        )

    def text_row(raw: str | None, parent: _Open) -> _Row | None:
        nonlocal label, line_ends
        if not raw:
            return None
        parent.texts += 1
        if raw.isspace():
            pieces[-1:] = [pieces[-1] + " "] if pieces else []
            return None
        pieces.append(" " + raw if line_ends else raw)
        line_ends = False
        if len(raw) > LONGEST_TEXT and len(normalize(raw)) > LONGEST_TEXT:
            label = _NONE
            return None
        text = texts[normalize(raw)]
        row = _Row(
            text,
            paths[parent.path, f"text()[{parent.texts}]"],
            parent.styled_path,
            label,
            TEXT,
        )
        label = text
        return row

    def element_row(done: _Open) -> _Row | None:
        parts = pieces[done.first_piece :] if 2 <= len(pieces) - done.first_piece <= _MOST_PARTS else []
        if not parts or sum(map(len, parts)) > 2 * LONGEST_TEXT:
            return None
        whole = normalize("".join(parts))
        if len(whole) > LONGEST_TEXT:
            return None
        return _Row(texts[whole], done.path, done.styled_path, done.label, INNER)

    stack = [opened(body, None)]
    if (row := text_row(body.text, stack[-1])) is not None:
        yield row
    while stack:
        top = stack[-1]
        child = next(top.children, None)
        if child is None:
            stack.pop()
            if (row := element_row(top)) is not None:
                yield row
            if top.element.tag in BREAKS:
                line_ends = True
            if stack and (row := text_row(top.element.tail, stack[-1])) is not None:
                yield row
            continue
        tag: object = child.tag
        if isinstance(tag, str) and tag not in HIDDEN:
            stack.append(opened(child, top))
            for name in _ATTRIBUTES.get(tag, ()):
                value = normalize(child.get(name) or "")
                if 0 < len(value) <= LONGEST_TEXT and (name != "href" or value.startswith(_ELSEWHERE)):
                    inside = stack[-1]
                    yield _Row(
                        texts[value], paths[inside.path, f"@{name}"], inside.styled_path, label, ATTRIBUTE
                    )
            if (row := text_row(child.text, stack[-1])) is not None:
                yield row
        elif (row := text_row(child.tail, top)) is not None:
            yield row
