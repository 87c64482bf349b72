"""Sitemaps of the browser extension Web Scraper (webscraper.io): a tree of CSS selectors.

A selector stands on the start page (`_root`), on the pages that a link leads to, or in an element. So the
selectors of the start page are one layout, those behind a link another, those in an element a list.
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
    css: tuple[str, ...]  # one after the other: what the first finds is wanted most
    several: bool
    parents: tuple[str, ...]
    regex: str
    html_attribute: str


def is_sitemap(found: Mapping[str, Any]) -> bool:
    """Whether an object of JSON is a sitemap."""
    return isinstance(found.get("selectors"), list) and bool({"startUrl", "startUrls", "_id"} & set(found))


def read_sitemap(found: Mapping[str, Any]) -> PeerModel:
    """The layouts of a sitemap."""
    left_out: list[str] = []
    selectors = [each for each in map(_selector, found["selectors"]) if _is_usable(each, left_out)]
    by_id = {each.id: each for each in selectors}
    pages = {_ROOT, *(each.id for each in selectors if each.type in (*_LINKS, *_LEADING_ON))}
    parents = {parent for each in selectors for parent in each.parents}
    layouts: list[SelectorLayout] = []
    for place in (_ROOT, *by_id):
        inside = [each for each in selectors if place in each.parents]
        element = by_id.get(place)
        if element is not None and element.type in _ELEMENTS:
            if not pages.intersection(element.parents):
                left_out.append(f"{place} is an element in an element, of which only the outer one is taken.")
                continue
            fields = _fields(inside, parents, left_out, in_element=True)
            layout = SelectorLayout(fields, ", ".join(element.css), element.several)
        else:
            layout = SelectorLayout(_fields(inside, parents, left_out, in_element=False))
        if layout.fields and layout not in layouts:
            layouts.append(layout)
    return PeerModel(TOOL, tuple(layouts), (), tuple(dict.fromkeys(left_out)))


def _selector(found: Any) -> _Selector:
    given = found if isinstance(found, dict) else {}
    parents = given.get("parentSelectors")
    return _Selector(
        _text(given.get("id")),
        _text(given.get("type")),
        _parts(_text(given.get("selector"))),
        given.get("multiple") is True,
        tuple(map(_text, parents)) if isinstance(parents, list) else (),
        _text(given.get("regex")),
        _text(given.get("extractAttribute")),
    )


def _parts(css: str) -> tuple[str, ...]:
    """What stands between the commas of a selector that are in no quotes and no parentheses."""
    parts: list[list[str]] = [[]]
    depth = 0
    for piece in _PIECE.findall(css):
        depth += (piece == "(") - (piece == ")")
        if piece == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(piece)
    return tuple(filter(None, ("".join(pieces).strip() for pieces in parts)))


def _text(found: object) -> str:
    return found if isinstance(found, str) else ""


def _is_usable(selector: _Selector, left_out: list[str]) -> bool:
    if not selector.id or not selector.type:
        left_out.append("A selector without an id or a type is none.")
        return False
    if selector.type in _LEADING_ON:  # what they lead to is a page like others; how does not matter here
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
        for each in selectors
        for field in _fields_of(each, each.id in parents and not in_element, left_out)
    )


def _fields_of(selector: _Selector, leads_on: bool, left_out: list[str]) -> Iterator[Field]:
    """The attributes of a selector, called as Web Scraper calls its columns."""
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
