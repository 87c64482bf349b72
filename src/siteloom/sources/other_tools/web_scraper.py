"""Read sitemaps of the browser extension Web Scraper (webscraper.io): a tree of CSS selectors.

A selector applies to the start page (`_root`), to the pages that a link leads to, or to an element. So the
selectors of the start page are one layout, those of a link another, those in an element a list.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.sources.other_tools.css_selectors import Field, SelectorLayout, why_not_css
from siteloom.sources.other_tools.tool_model import PeerModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TOOL = "Web Scraper"

_ROOT = "_root"
_LINKS = ("SelectorLink", "SelectorPopupLink")
_LEADING_ON = ("SelectorPagination", "SelectorSitemapXmlLink")  # to other pages, and no more
_ELEMENTS = ("SelectorElement", "SelectorElementScroll", "SelectorElementClick")
_PIECE = re.compile(r""" "[^"]*+" | '[^']*+' | [^"'(),]++ | . """, re.DOTALL | re.VERBOSE)


class _Selector(NamedTuple):
    id: str
    type: str
    css: tuple[str, ...]  # results of the first are preferred
    several: bool
    parents: tuple[str, ...]
    regex: str
    html_attribute: str


def is_sitemap(content: Mapping[str, Any]) -> bool:
    """Return whether a JSON object is a sitemap."""
    return isinstance(content.get("selectors"), list) and bool(
        {"startUrl", "startUrls", "_id"} & set(content)
    )


def read_sitemap(content: Mapping[str, Any]) -> PeerModel:
    """Read the layouts of a sitemap."""
    left_out: list[str] = []
    selectors = [
        selector for selector in map(_selector, content["selectors"]) if _is_usable(selector, left_out)
    ]
    by_id = {selector.id: selector for selector in selectors}
    pages = {_ROOT, *(selector.id for selector in selectors if selector.type in (*_LINKS, *_LEADING_ON))}
    parents = {parent for selector in selectors for parent in selector.parents}
    layouts: list[SelectorLayout] = []
    for parent_id in (_ROOT, *by_id):
        inside = [selector for selector in selectors if parent_id in selector.parents]
        element = by_id.get(parent_id)
        if element is not None and element.type in _ELEMENTS:
            if not pages.intersection(element.parents):
                left_out.append(
                    f"{parent_id} is an element in an element, of which only the outer one is taken."
                )
                continue
            fields = _fields(inside, parents, left_out, in_element=True)
            layout = SelectorLayout(fields, ", ".join(element.css), element.several)
        else:
            layout = SelectorLayout(_fields(inside, parents, left_out, in_element=False))
        if layout.fields and layout not in layouts:
            layouts.append(layout)
    return PeerModel(TOOL, tuple(layouts), (), tuple(dict.fromkeys(left_out)))


def _selector(content: Any) -> _Selector:
    fields = content if isinstance(content, dict) else {}
    parents = fields.get("parentSelectors")
    return _Selector(
        _text(fields.get("id")),
        _text(fields.get("type")),
        _split_selector(_text(fields.get("selector"))),
        fields.get("multiple") is True,
        tuple(map(_text, parents)) if isinstance(parents, list) else (),
        _text(fields.get("regex")),
        _text(fields.get("extractAttribute")),
    )


def _split_selector(css: str) -> tuple[str, ...]:
    """Split a selector at the commas that are not in quotes or parentheses."""
    selectors: list[list[str]] = [[]]
    depth = 0
    for piece in _PIECE.findall(css):
        depth += (piece == "(") - (piece == ")")
        if piece == "," and depth == 0:
            selectors.append([])
        else:
            selectors[-1].append(piece)
    return tuple(filter(None, ("".join(pieces).strip() for pieces in selectors)))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _is_usable(selector: _Selector, left_out: list[str]) -> bool:
    if not selector.id or not selector.type:
        left_out.append("A selector without an id or a type is none.")
        return False
    if selector.type in _LEADING_ON:  # it only leads to further pages
        return True
    for css in selector.css or ("",):
        if why := why_not_css(css):
            left_out.append(f"{selector.id} has a selector that cannot be read, {css!r}: {why}.")
            return False
    return True


def _fields(
    selectors: Sequence[_Selector], parents: set[str], left_out: list[str], *, in_element: bool
) -> tuple[Field, ...]:
    return tuple(
        field
        for selector in selectors
        for field in _fields_of(selector, selector.id in parents and not in_element, left_out)
    )


def _fields_of(selector: _Selector, leads_on: bool, left_out: list[str]) -> Iterator[Field]:
    """Yield the attributes of a selector, named like the columns of Web Scraper."""
    if selector.type in (*_ELEMENTS, *_LEADING_ON):
        return
    name, css, several = selector.id, selector.css, selector.several
    if selector.type in _LINKS:
        if leads_on:
            left_out.append(f"{name} leads to other pages, and is taken for no value.")
            return
        yield Field(name, css, "", several)
        yield Field(f"{name}-href", css, "href", several)
    elif selector.type == "SelectorImage":
        yield Field(f"{name}-src", css, "src", several)
    elif selector.type == "SelectorElementAttribute" and selector.html_attribute:
        yield Field(name, css, selector.html_attribute, several)
    elif selector.type == "SelectorGroup":
        yield Field(name, css, selector.html_attribute, several=True)
    elif selector.type == "SelectorText":
        pattern = _pattern(selector, left_out)
        if pattern is not None or not selector.regex:
            yield Field(name, css, "", several, pattern)
    else:
        left_out.append(f"{name} is a {selector.type}, which has no like among examples.")


def _pattern(selector: _Selector, left_out: list[str]) -> re.Pattern[str] | None:
    if not selector.regex:
        return None
    try:
        return re.compile(selector.regex)
    except re.error as error:
        left_out.append(f"{selector.id} has a regex that cannot be read, {selector.regex!r}: {error}.")
        return None
