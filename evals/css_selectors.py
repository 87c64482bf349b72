"""What people write by hand: one CSS selector by ids and classes for each attribute.

The selector of an element goes from the nearest element with an id or a class, itself or an ancestor, down to
it. What it selects is read as a whole, or its own texts one by one; then all of that is taken or, as people
do where there is one value, the first, the second and so on. Of all selectors of elements that hold a value
of an example, the one is taken that gives exactly the values on most of the examples, then the first value,
then the shortest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from lxml import etree
from lxml.cssselect import CSSSelector, SelectorError

from evals.learners import Answers, Found
from siteloom.core.model import Failure
from siteloom.html.parser import parse
from siteloom.html.visible_text import normalize, text_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from siteloom.core.model import Example, Page
    from siteloom.html.parser import Element

NAME = "css"


class Selector(NamedTuple):
    """A CSS selector, whether elements are read as a whole, and which of the texts is taken; None: all."""

    css: str
    is_whole: bool
    place: int | None


class CssSelectors:
    """The selectors that do best on the examples."""

    def __init__(self) -> None:
        self._roots: dict[str, Element | None] = {}
        self._compiled: dict[str, CSSSelector | None] = {}

    def __call__(
        self,
        examples: Sequence[Example],
        unlabelled: Sequence[Page],  # noqa: ARG002 - it has no use for them
        pages: Sequence[Page],
    ) -> Answers:
        """Learn, then extract from `pages`."""
        attributes = {attribute for example in examples for attribute in example.values}
        chosen = {attribute: self._best(attribute, examples) for attribute in attributes}
        return Answers(
            [
                Found(
                    {
                        name: self._values(selector, page)
                        for name, selector in chosen.items()
                        if selector is not None
                    },
                    {},
                )
                for page in pages
            ]
        )

    def _best(self, attribute: str, examples: Sequence[Example]) -> Selector | None:
        """The selector that does best on the examples, if there is any."""
        wanted = [(example.page, example.values[attribute]) for example in examples]
        candidates = dict.fromkeys(
            selector for page, values in wanted for selector in self._holding(page, values)
        )

        def quality(selector: Selector) -> tuple[int, int, int]:
            found = [(self._values(selector, page), values) for page, values in wanted]
            exact = sum(set(texts) == set(values) for texts, values in found)
            first = sum(bool(texts) and texts[0] in values for texts, values in found)
            return exact, first, -len(selector.css)

        return max(candidates, key=quality, default=None)

    def _holding(self, page: Page, values: Sequence[str]) -> Iterator[Selector]:
        """The selectors that give a value, of the elements with a text or a whole text that is one."""
        root = self._root(page)
        if root is None or not values:
            return
        for css in dict.fromkeys(_css_holding(root, values)):
            for is_whole in (True, False):
                every = Selector(css, is_whole, None)
                yield every
                for place, text in enumerate(self._values(every, page)):
                    if text in values:
                        yield every._replace(place=place)

    def _values(self, selector: Selector, page: Page) -> list[str]:
        root, select = self._root(page), self._select(selector.css)
        if root is None or select is None:
            return []
        found = (text for element in select(root) for text in _texts(element, selector.is_whole))
        texts = [text for text in found if text]
        return texts if selector.place is None else texts[selector.place : selector.place + 1]

    def _root(self, page: Page) -> Element | None:
        if page.url not in self._roots:
            root = parse(page)
            self._roots[page.url] = None if isinstance(root, Failure) else root
        return self._roots[page.url]

    def _select(self, css: str) -> CSSSelector | None:
        """The selector made ready, or None if it is none: ids and classes may be of any characters."""
        if css not in self._compiled:
            try:
                self._compiled[css] = CSSSelector(css, translator="html")
            except (SelectorError, etree.XPathError):
                self._compiled[css] = None
        return self._compiled[css]


def _css_holding(root: Element, values: Sequence[str]) -> Iterator[str]:
    for node in text_nodes(root):
        if normalize(node.text) in values:
            yield css_of(node.parent)
        element: Element | None = node.parent
        while element is not None and _whole(element) in values:
            yield css_of(element)
            element = element.getparent()


def css_of(element: Element) -> str:
    """The way to an element from the nearest id or class."""
    steps: list[str] = []
    above: Element | None = element
    while above is not None:
        own = "".join(f".{_escaped(name)}" for name in above.get("class", "").split())
        if identity := above.get("id", "").strip():
            own = f"#{_escaped(identity)}"
        steps.append(str(above.tag) + own)
        if own:
            break
        above = above.getparent()
    return " > ".join(reversed(steps))


def _escaped(name: str) -> str:
    """A name as it is written in CSS; what it begins with must be no digit."""
    text = re.sub(r"([^\w-])", r"\\\1", name)
    return f"\\3{text[0]} {text[1:]}" if text[0].isdecimal() else text


def _texts(element: Element, is_whole: bool) -> Iterator[str]:
    if is_whole:
        yield _whole(element)
    else:
        yield from (normalize(str(text)) for text in element.xpath("text()"))


def _whole(element: Element) -> str:
    return normalize(str(element.xpath("string()")))
