"""Changes of any site's markup that leave its texts alone: other names, other tags, more levels, a banner.

Pages before and after are written out by the same serialiser, so that nothing differs but the change.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from lxml import etree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from siteloom.core.model import Page
    from siteloom.html.parser import Element

UNCHANGED = "unchanged"

_NAMES = ("class", "id")
_WRAPPED = ("h1", "h2", "table", "ul", "dl", "td", "dd")
_OTHER_TAGS = {
    "table": "div",
    "tr": "section",
    "td": "article",
    "th": "header",
    "h1": "h2",
    "b": "em",
    "strong": "em",
    "span": "i",
    "li": "p",
    "ul": "div",
    "dl": "div",
    "dt": "div",
    "dd": "div",
    "font": "span",
}
_BANNER = """\
<div class="promo"><p>Big sale! <a href="/sale">See all offers</a> until $5.00</p>\
<ul><li>1</li><li>2</li></ul></div>"""


def with_changed_markup(page: Page, change: str) -> Page:
    """A page after a change."""
    root = etree.HTML(page.html, etree.HTMLParser(encoding=page.charset or "utf-8"))
    CHANGES[change](root)
    return replace(page, html=etree.tostring(root, method="html", encoding="utf-8"), charset="utf-8")


def _renamed(root: Element) -> None:
    _rename(root, lambda _: True)


def _half_renamed(root: Element) -> None:
    _rename(root, lambda name: int(_digest(f"half {name}"), 16) % 2 == 0)


def _rename(root: Element, is_renamed: Callable[[str], bool]) -> None:
    for element in root.iter(etree.Element):
        for attribute in _NAMES:
            if names := element.get(attribute, "").split():
                new = [f"x{_digest(name)}" if is_renamed(name) else name for name in names]
                element.set(attribute, " ".join(new))


def _wrapped(root: Element) -> None:
    for element in list(root.iter(*_WRAPPED)):
        box = etree.Element("div")
        box.text, element.text = element.text, None
        box.extend(list(element))
        element.append(box)


def _retagged(root: Element) -> None:
    for element in list(root.iter(*_OTHER_TAGS)):
        element.tag = _OTHER_TAGS[str(element.tag)]


def _with_banner(root: Element) -> None:
    body = root.find("body")
    if body is not None:
        body.insert(0, etree.fromstring(_BANNER))


def _all(root: Element) -> None:
    for change in (_renamed, _retagged, _wrapped, _with_banner):
        change(root)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:6]


CHANGES: Mapping[str, Callable[[Element], None]] = {
    UNCHANGED: lambda _: None,
    "all classes and ids renamed": _renamed,
    "half of them renamed": _half_renamed,
    "contents wrapped": _wrapped,
    "other tags": _retagged,
    "a banner": _with_banner,
    "all at once": _all,
}
"""What is done to the tree of a page, by name; the first is the control."""
