"""Layouts of CSS selectors, as people write them or point-and-click tools generate them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from lxml import etree

from siteloom.core.errors import MissingExtra
from siteloom.html.visible_text import normalize
from siteloom.sources.other_tools.tool_model import PeerExample, distinct_texts, shown

if TYPE_CHECKING:
    import re

    from siteloom.html.parser import Element
    from siteloom.sources.other_tools.tool_model import Values

ITSELF = "_parent_"
"""Web Scraper's selector of the scope element itself."""


class Field(NamedTuple):
    """How the values of an attribute are found: the text of elements, or an HTML attribute of them.

    Results of the first selector come first, wherever they are on the page. With a pattern, a value is its
    match in the text.
    """

    name: str
    selectors: tuple[str, ...]
    html_attribute: str = ""
    several: bool = False
    pattern: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class SelectorLayout:
    """Fields of a page; with a `scope`, of the first such element, or of each if the layout is a list."""

    fields: tuple[Field, ...]
    scope: str = ""
    is_list: bool = False

    @property
    def attributes(self) -> list[str]:
        """The attributes that the layout has rules for."""
        return list(dict.fromkeys(field.name for field in self.fields))

    def on(self, root: Element) -> PeerExample:
        """Apply the selectors to a page."""
        # A selector may refer to elements around the scope, so it is applied to the whole page.
        elements_by_selector = {
            selector: _selected(root, selector) for field in self.fields for selector in field.selectors
        }
        if not self.scope:
            return PeerExample(self._values(elements_by_selector, None))
        scopes = _selected(root, self.scope)
        if self.is_list:
            all_values = (self._values(elements_by_selector, scope) for scope in scopes)
            return PeerExample({}, tuple(filter(None, all_values)))
        return PeerExample(self._values(elements_by_selector, scopes[0]) if scopes else {})

    def _values(self, elements_by_selector: dict[str, list[Element]], scope: Element | None) -> Values:
        values: dict[str, tuple[str, ...]] = {}
        for field in self.fields:
            inside = [
                element
                for selector in field.selectors
                for element in _inside(scope, selector, elements_by_selector[selector])
            ]
            if not field.several:
                inside = inside[:1]
            if texts := distinct_texts(_text(element, field) for element in inside):
                values[field.name] = texts
        return values


def _inside(scope: Element | None, selector: str, elements: list[Element]) -> list[Element]:
    if scope is None:
        return elements
    if selector == ITSELF:
        return [scope]
    return [element for element in elements if any(ancestor is scope for ancestor in element.iterancestors())]


def _text(element: Element, field: Field) -> str:
    text = shown(element, field.html_attribute)
    if field.pattern is None:
        return text
    match = field.pattern.search(text)
    return normalize(match[0]) if match else ""


def why_not_css(selector: str) -> str:
    """Return why a selector cannot be used; empty if it can."""
    if selector == ITSELF:
        return ""
    if not selector.strip():
        return "it is empty"
    try:
        _compiled(selector)
    except ValueError as error:
        return str(error).rstrip(".")
    return ""


def _selected(root: Element, selector: str) -> list[Element]:
    """Return the elements of a page that a selector selects, in document order."""
    if selector == ITSELF:
        return []
    result = _compiled(selector)(root)
    return [element for element in result if isinstance(element.tag, str)] if isinstance(result, list) else []


@lru_cache(maxsize=256)
def _compiled(selector: str) -> etree.XPath:
    try:
        import cssselect  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("Reading CSS selectors", "crawl") from error
    try:
        compiled = etree.XPath(cssselect.HTMLTranslator().css_to_xpath(selector))
        compiled(etree.Element("html"))  # an unknown prefix raises only now
    except (cssselect.SelectorError, etree.XPathError) as error:
        raise ValueError(str(error)) from error
    return compiled
