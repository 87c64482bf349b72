"""Rules that are CSS selectors, as people write or click them together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from lxml import etree

from siteloom.core.errors import MissingExtra
from siteloom.html.visible_text import normalize
from siteloom.sources.other_tools.tool_model import PeerExample, each_once, shown

if TYPE_CHECKING:
    import re

    from siteloom.html.parser import Element
    from siteloom.sources.other_tools.tool_model import Values

ITSELF = "_parent_"
"""The selector of the element that others are looked for in, as Web Scraper writes it."""


class Field(NamedTuple):
    """Where the values of an attribute stand: all the text of elements, or an HTML attribute of them.

    What the first selector finds comes first, wherever on the page it stands. With a pattern, a value is what
    it matches in there.
    """

    name: str
    selectors: tuple[str, ...]
    html_attribute: str = ""
    several: bool = False
    pattern: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class SelectorLayout:
    """Fields of a page; or, with a `scope`, of the first such element, or of each if it is a list."""

    fields: tuple[Field, ...]
    scope: str = ""
    is_list: bool = False

    @property
    def attributes(self) -> list[str]:
        """The attributes that it has rules for."""
        return list(dict.fromkeys(field.name for field in self.fields))

    def on(self, root: Element) -> PeerExample:
        """What the selectors find on a page."""
        # A selector may name what is around the scope, so it is looked for in the whole page.
        found = {selector: _selected(root, selector) for field in self.fields for selector in field.selectors}
        if not self.scope:
            return PeerExample(self._values(found, None))
        scopes = _selected(root, self.scope)
        if self.is_list:
            all_values = (self._values(found, scope) for scope in scopes)
            return PeerExample({}, tuple(filter(None, all_values)))
        return PeerExample(self._values(found, scopes[0]) if scopes else {})

    def _values(self, found: dict[str, list[Element]], scope: Element | None) -> Values:
        values: dict[str, tuple[str, ...]] = {}
        for field in self.fields:
            inside = [element for each in field.selectors for element in _inside(scope, each, found[each])]
            if not field.several:
                inside = inside[:1]
            if texts := each_once(_text(element, field) for element in inside):
                values[field.name] = texts
        return values


def _inside(scope: Element | None, selector: str, found: list[Element]) -> list[Element]:
    if scope is None:
        return found
    if selector == ITSELF:
        return [scope]
    return [element for element in found if any(above is scope for above in element.iterancestors())]


def _text(element: Element, field: Field) -> str:
    text = shown(element, field.html_attribute)
    if field.pattern is None:
        return text
    match = field.pattern.search(text)
    return normalize(match[0]) if match else ""


def why_not_css(selector: str) -> str:
    """Why a selector cannot be used; empty if it can."""
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
    """The elements of a page that a selector means, in their order."""
    if selector == ITSELF:
        return []
    found = _compiled(selector)(root)
    return [element for element in found if isinstance(element.tag, str)] if isinstance(found, list) else []


@lru_cache(maxsize=256)
def _compiled(selector: str) -> etree.XPath:
    try:
        import cssselect  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("Reading CSS selectors", "crawl") from error
    try:
        compiled = etree.XPath(cssselect.HTMLTranslator().css_to_xpath(selector))
        compiled(etree.Element("html"))  # a prefix that stands for nothing is told only now
    except (cssselect.SelectorError, etree.XPathError) as error:
        raise ValueError(str(error)) from error
    return compiled
