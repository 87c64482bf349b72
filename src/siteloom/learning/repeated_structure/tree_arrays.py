"""The pages of a cluster as lists of numbers: what elements look like, and which texts vary."""

from __future__ import annotations

import re
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from siteloom.html.page_text_arrays import Numbered
from siteloom.html.visible_text import HIDDEN, attribute_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from siteloom.html.parser import Element

DIGITS = re.compile(r"\d+")
"""Numbers in classes and ids count things, and tell nothing about what they are."""

WITHOUT_SHAPE = frozenset({"br", "wbr"})
"""Elements that only end lines."""

_NOT_SHOWN = HIDDEN | {"datalist", "select"}  # choices of a form repeat, but are no records
_CELLS = frozenset({"td", "th"})
_TEXT = "#text"
_NO_PATH = -1
# Classes that tell the place of a record among the others.
_STRIPES = frozenset("odd even alt alternate first last active current selected hover".split())
_SHAPE_DEPTH = 4  # levels below a record in which records are compared, as in learning.records
_TEMPLATE_SHARE = 0.5  # a text on more of the pages that have its path is template, as a path on more is

_Inner: TypeAlias = "tuple[str, int]"
"""A tag inside an element, and its shape."""


class Looks:
    """Styles and shapes of elements; a shape is a number for the tags inside, in order, each look once."""

    def __init__(self) -> None:
        self._shapes = Numbered()
        self._inner: list[tuple[_Inner, ...]] = []
        self._steps: dict[tuple[str, str | None, str | None], tuple[str, str]] = {}
        self._paths: dict[tuple[int, int], frozenset[str]] = {}
        self._leads: dict[tuple[int, int], str] = {}
        self.empty = self.shape([])
        self.text_inside = _TEXT, self.empty
        self.text_alone = self.shape([self.text_inside])

    def steps(self, element: Element, tag: str) -> tuple[str, str]:
        """The style of an element (tag and classes), and its step in a path, which tells the id as well.

        Classes of the body are left out: they often name the page.
        """
        key = tag, element.get("class"), element.get("id")
        if key not in self._steps:
            words = () if tag == "body" else attribute_words(DIGITS.sub("", key[1] or ""))
            style = ".".join((tag, *(word for word in words if word not in _STRIPES)))
            name = "" if tag == "body" else DIGITS.sub("", key[2] or "")
            self._steps[key] = style, f"{style}#{name}" if name else style
        return self._steps[key]

    def shape(self, inner: Sequence[_Inner]) -> int:
        """The shape of an element with this inside."""
        distinct = tuple(dict.fromkeys(inner))
        shape = self._shapes[distinct]
        if shape == len(self._inner):
            self._inner.append(distinct)
        return shape

    def paths(self, shape: int, depth: int = _SHAPE_DEPTH) -> frozenset[str]:
        """The paths of tags down from an element of this shape."""
        key = shape, depth
        if key not in self._paths:
            paths: set[str] = set()
            for step, inside in self._inner[shape]:
                paths.add(step)
                if depth > 1:
                    paths.update(f"{step}/{path}" for path in self.paths(inside, depth - 1))
            self._paths[key] = frozenset(paths)
        return self._paths[key]

    def lead(self, shape: int) -> str:
        """The path to the first text of an element of this shape; empty if it has none near."""
        return self._lead(shape, _SHAPE_DEPTH + 1)

    def _lead(self, shape: int, depth: int) -> str:
        key = shape, depth
        if key not in self._leads:
            self._leads[key] = self._found_lead(shape, depth)
        return self._leads[key]

    def _found_lead(self, shape: int, depth: int) -> str:
        for step, inside in self._inner[shape] if depth else ():
            if step == _TEXT:
                return step
            if below := self._lead(inside, depth - 1):
                return f"{step}/{below}"
        return ""

    def is_plain(self, shape: int) -> bool:
        """Whether there is nothing but text in an element of this shape."""
        return all(step == _TEXT for step, _ in self._inner[shape])


class _OpenElement(NamedTuple):
    """An element that the walk is inside of."""

    element: Element
    tag: str
    children: Iterator[Element]
    number: int
    inner: list[_Inner]


class PageTree:
    """A page as lists: for each shown element in document order what it looks like, and where its texts are.

    Texts are told by numbers of path and text; an image is a text of no length.
    """

    def __init__(self, root: Element, looks: Looks, path_numbers: Numbered, text_numbers: Numbered) -> None:
        self.elements: list[Element] = []
        self.styles: list[str] = []
        self.paths: list[int] = []
        self.shapes: list[int] = []
        self.children: dict[int, list[int]] = {}  # of elements that have any
        self.first_text: list[int] = []
        self.text_end: list[int] = []  # behind the text that follows the element in its parent
        self.texts: list[int] = []
        self.lengths: list[int] = []
        self.is_linked: list[bool] = []
        self._read(root, looks, path_numbers, text_numbers)

    def has_text(self, number: int) -> bool:
        """Whether an element begins with a text, which may stand in others inside."""
        first_element = self.first_text[number]
        return first_element < self.text_end[number] and self.lengths[first_element] > 0

    def _read(self, root: Element, looks: Looks, path_numbers: Numbered, text_numbers: Numbered) -> None:
        open_links = 0

        def add_text(raw: str, path: int) -> None:
            text = raw.strip()
            self.texts.append(text_numbers[path, text])
            self.lengths.append(len(text))
            self.is_linked.append(open_links > 0)

        def opened(element: Element, tag: str, above: int) -> int:
            nonlocal open_links
            style, step = looks.steps(element, tag)
            path = path_numbers[above, step]
            self.elements.append(element)
            self.styles.append(style)
            self.paths.append(path)
            self.shapes.append(looks.empty)
            self.first_text.append(len(self.texts))
            self.text_end.append(0)
            open_links += tag == "a"
            if tag == "img":
                self.texts.append(text_numbers[path, element.get("src", "")])
                self.lengths.append(0)
                self.is_linked.append(False)
            elif (text := element.text) and not text.isspace():
                add_text(text, path)
                self.shapes[-1] = looks.text_alone
            return len(self.elements) - 1

        def close(number: int, element: Element, tag: str, above: _OpenElement) -> None:
            nonlocal open_links
            open_links -= tag == "a"
            if tag in _CELLS:  # columns differ in what they hold, wide cells from columns
                wide = "-" if element.get("colspan", "1") != "1" else ""
                above.inner.append((f"{tag}{len(self.children[above.number])}{wide}", self.shapes[number]))
            elif tag not in WITHOUT_SHAPE:
                above.inner.append((tag, self.shapes[number]))
            if (tail := element.tail) and not tail.isspace():
                add_text(tail, self.paths[above.number])
                above.inner.append(looks.text_inside)
            self.text_end[number] = len(self.texts)

        def with_inner(number: int, element: Element, tag: str) -> _OpenElement:
            self.children[number] = []
            has_text = self.shapes[number] == looks.text_alone
            return _OpenElement(element, tag, iter(element), number, [looks.text_inside] if has_text else [])

        stack = [with_inner(opened(root, str(root.tag), _NO_PATH), root, str(root.tag))]
        while stack:
            top = stack[-1]
            for child in top.children:
                tag: object = child.tag
                if not isinstance(tag, str) or tag in _NOT_SHOWN:
                    if (tail := child.tail) and not tail.isspace():
                        add_text(tail, self.paths[top.number])
                        top.inner.append(looks.text_inside)
                    continue
                number = opened(child, tag, self.paths[top.number])
                self.children[top.number].append(number)
                if len(child):
                    stack.append(with_inner(number, child, tag))
                    break
                close(number, child, tag, top)
            else:
                stack.pop()
                self.shapes[top.number] = looks.shape(top.inner)
                if stack:
                    close(top.number, top.element, top.tag, stack[-1])
        self.text_end[0] = len(self.texts)


class SiblingGroup(NamedTuple):
    """Neighbouring siblings as numbers: of their page, and of the elements."""

    page: int
    elements: tuple[int, ...]


class _Sums(NamedTuple):
    """Of a page, for each text, what came before it."""

    chars: list[int]
    linked: list[int]
    fields: list[int]


class ClusterPages:
    """The pages of a cluster, with what varies on them."""

    def __init__(self, roots: Sequence[Element]) -> None:
        self.looks = Looks()
        paths, texts = Numbered(), Numbered()
        self.trees = [PageTree(root, self.looks, paths, texts) for root in roots]
        self._paths: list[tuple[int, str]] = list(paths)
        self._texts: list[tuple[int, str]] = list(texts)
        self.varies = _varying(self.trees, self._texts)
        self._sums = [self._summed(tree) for tree in self.trees]
        self.all_chars = sum(sums.chars[-1] for sums in self._sums)
        self.all_linked = sum(sums.linked[-1] for sums in self._sums)

    def path_and_text(self, number: int) -> tuple[int, str]:
        """The path of a text's parent, and the text, or the address of an image."""
        return self._texts[number]

    def steps(self, path: int) -> tuple[str, ...]:
        """A path from the root on."""
        steps: list[str] = []
        while path != _NO_PATH:
            path, step = self._paths[path]
            steps.append(step)
        return tuple(reversed(steps))

    def tag(self, siblings: SiblingGroup) -> object:
        """The tag of the first sibling."""
        return self.trees[siblings.page].elements[siblings.elements[0]].tag

    def span(self, siblings: SiblingGroup) -> tuple[int, int]:
        """Where the texts of siblings begin and end on their page."""
        tree = self.trees[siblings.page]
        return tree.first_text[siblings.elements[0]], tree.text_end[siblings.elements[-1]]

    def chars(self, siblings: SiblingGroup) -> int:
        """The varying characters in siblings."""
        return self.chars_between(siblings.page, *self.span(siblings))

    def chars_between(self, page: int, start: int, end: int) -> int:
        """The varying characters from a text to another."""
        chars = self._sums[page].chars
        return chars[end] - chars[start]

    def linked(self, siblings: SiblingGroup) -> int:
        """The varying characters that are links."""
        start, end = self.span(siblings)
        linked = self._sums[siblings.page].linked
        return linked[end] - linked[start]

    def fields(self, siblings: SiblingGroup) -> int:
        """The varying texts and images."""
        start, end = self.span(siblings)
        fields = self._sums[siblings.page].fields
        return fields[end] - fields[start]

    def _summed(self, tree: PageTree) -> _Sums:
        varies = [self.varies[text] for text in tree.texts]
        chars = [length * is_counted for length, is_counted in zip(tree.lengths, varies, strict=True)]
        linked = [length * is_counted for length, is_counted in zip(chars, tree.is_linked, strict=True)]
        return _Sums(*([*accumulate(numbers, initial=0)] for numbers in (chars, linked, varies)))


def _varying(trees: Sequence[PageTree], texts: Sequence[tuple[int, str]]) -> list[bool]:
    """Which texts differ from page to page or, of a single page, inside it."""
    of_text: Counter[int] = Counter()
    of_path: Counter[int] = Counter()
    for tree in trees:
        counted = set(tree.texts) if len(trees) > 1 else tree.texts
        of_text.update(counted)
        paths = [texts[text][0] for text in counted]
        of_path.update(set(paths) if len(trees) > 1 else paths)
    return [
        of_text[number] == 1 or of_text[number] <= _TEMPLATE_SHARE * of_path[path]
        for number, (path, _) in enumerate(texts)
    ]
