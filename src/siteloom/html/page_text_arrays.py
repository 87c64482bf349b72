"""The texts of a site's pages and where they stand, as arrays.

The same thing stands at the same place on all pages of a template. As blocks
shift, a place is known by its absolute path, by the path of tags and classes
with the text before it, and by that path with its number among the texts there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from siteloom.html.node_paths import is_xpath_name
from siteloom.html.visible_text import BREAKS, HIDDEN, normalize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from siteloom.html.parser import Element

    Ints = NDArray[np.int32]

TEXT, INNER, ATTRIBUTE = range(3)
"""What a text is: a text node, all texts in an element with several, or an HTML attribute."""

LONGEST_TEXT = 300
"""Longer texts are prose and mostly no values."""

_MOST_PARTS = 8  # an address may have a line each for house, street, district, city, country
_ATTRIBUTES = {"a": ("href",), "img": ("alt", "src"), "time": ("datetime",), "area": ("href", "alt")}
_ELSEWHERE = ("http:", "https:", "mailto:", "tel:")  # other addresses lead around the site
_RAW_FACTOR = 20  # by which white space may make a text longer in the source
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

    def leaf(self, row: int) -> str:
        """What a row is, as XPath writes it: `text()[1]`, `@src`, or the element whose texts it has."""
        return self.paths[int(self.path[row])][1]

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
    """Takes in one page after the other, so that no tree need be kept; longer texts are left out."""

    def __init__(self, longest_text: int = LONGEST_TEXT) -> None:
        self._numbers = _Numbers(Numbered(), Numbered(), Numbered())
        self._longest_text = longest_text
        self._rows: list[NDArray[np.int32]] = []

    def add(self, *elements: Element) -> None:
        """Take in a page by its root, or a part of one by neighbouring elements.

        Of several, paths tell by the number of their first step which one it is. A class of the first
        is no part of a style: parts of one sort, such as records of a list, may stand out by it.
        """
        rows = (
            row
            for number, (element, style) in enumerate(zip(elements, _top_styles(elements), strict=True), 1)
            for row in _rows(element, self._numbers, self._longest_text, number, style)
        )
        self._rows.append(np.array(list(rows), np.int32).reshape(-1, _COLUMNS))

    def collected(self) -> PageTexts:
        """All that was taken in."""
        counts = [len(rows) for rows in self._rows]
        text, path, styled_path, label, form = np.concatenate(
            self._rows or [np.zeros((0, _COLUMNS), np.int32)]
        ).T.copy()
        return PageTexts(
            tuple(self._numbers.texts),
            np.repeat(np.arange(len(counts), dtype=np.int32), counts),
            text,
            path,
            styled_path,
            label,
            form,
            tuple(self._numbers.paths),
            tuple(self._numbers.styled_paths),
            len(counts),
        )


class _Numbers(NamedTuple):
    texts: Numbered
    paths: Numbered
    styled_paths: Numbered


class _Open:
    """An element that the walk is inside of."""

    __slots__ = (
        *("children", "counts", "element", "elements", "first_piece", "label"),
        *("path", "styled_path", "texts"),
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
        self.elements = 0  # among its children so far


_Row: TypeAlias = "tuple[int, int, int, int, int]"
"""The numbers of a text, its path, its styled path and the text before it; and its form."""

_COLUMNS = 5


def _top_styles(elements: Sequence[Element]) -> Iterator[str]:
    """The first steps of styled paths; those behind the first are counted, each of its kind."""
    counts: Counter[str] = Counter()
    for number, element in enumerate(elements):
        if number == 0:
            yield str(element.tag)
            continue
        style = _style(element)
        counts[style] += 1
        yield f"{style} ({counts[style] + 1})"


def _style(element: Element) -> str:
    tag, style = str(element.tag), element.get("class")
    return f"{tag}.{style}" if style else tag


def _rows(
    root: Element, numbers: _Numbers, longest_text: int, root_number: int, root_style: str
) -> Iterator[_Row]:
    texts, paths, styled_paths = numbers
    pieces: list[str] = []  # the texts so far, raw, with a blank before those that begin a line
    label = _NONE
    line_ends = True

    def opened(element: Element, tag: str, above: _Open | None) -> _Open:
        nonlocal line_ends
        if tag in BREAKS:
            line_ends = True
        if above is None:
            number, path, styled_path = root_number, _NONE, _NONE
        else:
            number = above.counts[tag] = above.counts.get(tag, 0) + 1
            path, styled_path = above.path, above.styled_path
        # As `node_path` writes steps: XPath cannot say every name.
        step = f"{tag}[{number}]" if above is None or is_xpath_name(tag) else f"*[{above.elements}]"
        styled_step = root_style if above is None else _style(element)
        return _Open(
            element,
            paths[path, step],
            styled_paths[styled_path, styled_step],
            len(pieces),
            label,
        )

    def text_row(raw: str, parent: _Open) -> _Row | None:
        nonlocal label, line_ends
        parent.texts += 1
        if raw.isspace():
            if pieces:
                pieces[-1] += " "
            return None
        pieces.append(" " + raw if line_ends else raw)
        line_ends = False
        whole = normalize(raw)
        if len(whole) > longest_text:
            label = _NONE
            return None
        before, label = label, texts[whole]
        return label, paths[parent.path, f"text()[{parent.texts}]"], parent.styled_path, before, TEXT

    def inner_row(done: _Open) -> _Row | None:
        if not 2 <= len(pieces) - done.first_piece <= _MOST_PARTS:
            return None
        parts = pieces[done.first_piece :]
        if sum(map(len, parts)) > _RAW_FACTOR * longest_text:
            return None
        whole = normalize("".join(parts))
        return (
            (texts[whole], done.path, done.styled_path, done.label, INNER)
            if len(whole) <= longest_text
            else None
        )

    stack = [opened(root, str(root.tag), None)]
    if root.text and (row := text_row(root.text, stack[0])) is not None:
        yield row
    while stack:
        top = stack[-1]
        child = next(top.children, None)
        if child is None:
            stack.pop()
            if (row := inner_row(top)) is not None:
                yield row
            if top.element.tag in BREAKS:
                line_ends = True
            tail = top.element.tail
            if tail and stack and (row := text_row(tail, stack[-1])) is not None:
                yield row
            continue
        tag: object = child.tag
        top.elements += isinstance(tag, str)
        if isinstance(tag, str) and tag not in HIDDEN:
            inside = opened(child, tag, top)
            stack.append(inside)
            for name in _ATTRIBUTES.get(tag, ()):
                value = normalize(child.get(name) or "")
                if 0 < len(value) <= longest_text and (name != "href" or value.startswith(_ELSEWHERE)):
                    yield texts[value], paths[inside.path, f"@{name}"], inside.styled_path, label, ATTRIBUTE
            if child.text and (row := text_row(child.text, inside)) is not None:
                yield row
        elif child.tail and (row := text_row(child.tail, top)) is not None:
            yield row
