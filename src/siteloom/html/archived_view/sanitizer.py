"""Write an archived page as harmless XHTML with numbered elements, and rewrite the addresses of its
images and styles.

archived_tree(root, "https://shop.example/p/1", resource=address_in_the_archive)

A browser would build another tree from the page's HTML than lxml: it adds table bodies and moves misnested
elements. So the tree that learning uses is written as XML, which can be parsed in one way only. Every element
of the page has its number in `data-siteloom`. Markup not known to be harmless is left out or replaced by an
element without meaning; the number of text children stays the same, so that they can be counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urljoin, urlsplit

from lxml import etree

from siteloom.html.archived_view.allowed_markup import (
    ADDRESS_ATTRIBUTES,
    CONTROLS,
    CUSTOM_ELEMENT,
    FRAMED,
    HTML_ELEMENTS,
    INPUT_TYPES,
    MATHML,
    MATHML_ATTRIBUTES,
    MATHML_ELEMENTS,
    MIRRORED_ATTRIBUTES,
    NAMED_FREELY,
    PLAIN_ATTRIBUTES,
    SVG,
    SVG_ATTRIBUTES,
    SVG_ELEMENTS,
    TYPED,
    UNSEEN,
    XHTML,
    broken_out_of,
    copyable_uses,
    reference,
)
from siteloom.html.archived_view.stylesheets import harmless_css
from siteloom.html.node_paths import elements_in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from siteloom.html.parser import Element


# Browsers drop the former anywhere in an address, and the latter at its ends.
_DROPPED = re.compile("[\t\n\r]")
_TRIMMED = "".join(map(chr, range(0x21)))

_IMAGE_IN_ADDRESS = re.compile("data:image/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Converts the addresses in one document to addresses that may be loaded.

    `base` is the base of relative ones; `resource` returns the address of the archive's copy, or None if
    there is none; with `remote`, such are loaded from the web.
    """

    base: str
    resource: Callable[[str], str | None]
    remote: bool = False

    def harmless(self, address: str) -> str | None:
        """Return the address to load instead of one in the document; None if it must not be loaded."""
        address = _DROPPED.sub("", address).strip(_TRIMMED)
        if _IMAGE_IN_ADDRESS.match(address):
            return address
        absolute = self.absolute(address)
        if absolute is None:
            return None
        archived = self.resource(absolute)
        if archived is None and self.remote and urlsplit(absolute).scheme in {"http", "https"}:
            return absolute
        return archived

    def absolute(self, address: str) -> str | None:
        """Return an absolute address without its fragment; None for an invalid or empty one."""
        address = address.strip(_TRIMMED).replace(" ", "%20")
        try:
            return urldefrag(urljoin(self.base, address)).url if address else None
        except ValueError:  # like http://[
            return None


NEUTRAL = "siteloom-element"
"""The element that replaces elements that may not be shown."""

# Links have no address, so they lead nowhere, not even by a middle click, and their text can be selected by
# dragging. This style makes them look like links; as the first layer, it yields to all styles of the page.
_LINKS = (
    "@layer siteloom { :where(a, area)[data-siteloom-href]"
    " { color: var(--siteloom-link, LinkText); text-decoration: underline; cursor: pointer } }"
)

# Mirrored attributes are for a person to read.
_LONGEST_MIRRORED = 2_000

_NOT_IN_XML = "\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff"
_ODD_IN_TEXT = re.compile(f"[&<>\r{_NOT_IN_XML}]")
_ODD_IN_ATTRIBUTE = re.compile(f'[&<>"\r\n\t{_NOT_IN_XML}]')
_REFERENCES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "\r": "&#13;",
    "\n": "&#10;",
    "\t": "&#9;",
}

_PLAIN_IDENTIFIER = re.compile("[A-Za-z0-9 .:/+,()_-]*")
_HEXADECIMAL = re.compile("[0-9A-Fa-f]{6}")
_COLOR = re.compile("#?[0-9A-Za-z]+")
_PIXELS = re.compile(r"\d{1,5}(?=(?:px)?\s*\Z)")
_LETTERS = re.compile("[A-Za-z]+")


def archived_tree(
    root: Element, page_url: str, *, resource: Callable[[str], str | None], remote: bool = False
) -> bytes:
    """Write the tree of a page as well-formed, harmless XHTML in UTF-8.

    `resource` returns the address of the archive's copy of a stylesheet or image, or None if it has none;
    with `remote`, such are loaded from the web.
    """
    addresses = Addresses(_base_url(root, page_url), resource, remote)
    return _Writer(root, addresses).written().encode()


def archived_css(
    css: str, css_url: str, *, resource: Callable[[str], str | None], remote: bool = False
) -> str:
    """Return an archived stylesheet made harmless; for `resource` and `remote` see `archived_tree`."""
    return harmless_css(css, Addresses(css_url, resource, remote).harmless)


def archived_doctype(root: Element) -> str:
    """Return the doctype, by which browsers choose the layout mode; empty for quirks mode."""
    # For a page without a doctype, the parser reports HTML 4.0 Transitional, which also means quirks mode.
    declared = root.getroottree().docinfo.internalDTD
    if declared is None or (declared.name or "").lower() != "html":
        return ""
    public, system = declared.external_id, declared.system_url
    if not _PLAIN_IDENTIFIER.fullmatch(public or "") or not _PLAIN_IDENTIFIER.fullmatch(system or ""):
        return ""
    if public:
        return f'<!DOCTYPE html PUBLIC "{public}"' + (f' "{system}">' if system else ">")
    return f'<!DOCTYPE html SYSTEM "{system}">' if system else "<!DOCTYPE html>"


def _base_url(root: Element, page_url: str) -> str:
    """Return the base address of a page."""
    for base in root.iter("base"):
        href = base.get("href")
        if href is not None:
            try:
                return urljoin(page_url, href.strip())
            except ValueError:  # like http://[
                return page_url
    return page_url


class _Writer:
    """Writes one page."""

    def __init__(self, root: Element, addresses: Addresses) -> None:
        self._root = root
        self._address = addresses.harmless
        self._broken_out_of = broken_out_of(root)
        self._copyable_uses = copyable_uses(root)
        self._pieces: list[str] = []

    def written(self) -> str:
        elements = elements_in_order(self._root)  # kept alive, so that lxml creates no second proxies
        numbers = {element: number for number, element in enumerate(elements)}
        pieces = self._pieces
        open_elements: list[tuple[str, str]] = [("", "")]  # the name and the namespace of each
        walk = etree.iterwalk(self._root, events=("start", "end", "comment", "pi"))
        for event, node in walk:
            if event == "start":
                name, space = self._name(node, open_elements[-1])
                declared = "" if space == open_elements[-1][1] else f' xmlns="{space}"'
                pieces.append(f'<{name}{declared} data-siteloom="{numbers[node]}"')
                pieces += self._attributes(node, name, space)
                pieces.append(">" if node is not self._root else f"><style>{_LINKS}</style>")
                open_elements.append((name, space))
                tag = node.tag
                if tag in UNSEEN or tag == "iframe":
                    walk.skip_subtree()
                elif tag == "style":
                    pieces.append(_text(self._stylesheet(node)))
                elif node.text:
                    pieces.append(_text(node.text))
                continue
            # Comments and instructions stay to separate the texts around them.
            pieces.append(f"</{open_elements.pop()[0]}>" if event == "end" else "<!---->")
            if node.tail and node is not self._root:
                pieces.append(_text(node.tail))
        return "".join(pieces)

    def _name(self, element: Element, parent: tuple[str, str]) -> tuple[str, str]:
        """Return the name under which an element is shown, and its namespace."""
        tag: Any = element.tag
        parent_name, space = parent
        if space == SVG and parent_name in {"foreignObject", "desc", "title"}:
            space = XHTML
        if tag == "svg" and space != SVG and element not in self._broken_out_of:
            return "svg", SVG
        if space == SVG and tag in SVG_ELEMENTS:
            return SVG_ELEMENTS[tag], SVG
        if tag == "math" or (space == MATHML and tag in MATHML_ELEMENTS):
            return tag, MATHML
        if tag in HTML_ELEMENTS or CUSTOM_ELEMENT.fullmatch(tag):
            return tag, XHTML
        if tag == "link" and self._stylesheet_address(element) is not None:
            return tag, XHTML
        return NEUTRAL, XHTML

    def _attributes(self, element: Element, name: str, space: str) -> Iterator[str]:
        attributes = element.attrib
        tag: Any = element.tag
        if name == NEUTRAL and (tag in UNSEEN or tag == "link"):
            yield ' hidden=""'
            yield from _mirrored_attributes(attributes)
            return
        if not attributes:
            if tag in CONTROLS:
                yield ' form=""'
            return
        if space == XHTML:
            yield from self._html_attributes(element, name)
        else:
            yield from self._foreign_attributes(element, space)
        yield from _mirrored_attributes(attributes)

    def _html_attributes(self, element: Element, name: str) -> Iterator[str]:
        attributes = element.attrib
        tag: Any = element.tag
        added = _box(element) if tag in FRAMED else _link_color(element) if tag == "body" else ""
        if added and "style" not in attributes:
            yield _attribute("style", added)
        for key, value in attributes.items():
            if key == "style":
                yield _attribute("style", added + harmless_css(value, self._address))
            elif key in PLAIN_ATTRIBUTES:
                # In a form, an image's id can hide properties of the form from scripts.
                if key != "id" or tag != "img" or not _LETTERS.fullmatch(value):
                    yield _attribute(key, value)
            elif NAMED_FREELY.fullmatch(key):
                yield _attribute(key, value)
        if name in CONTROLS:
            yield ' form=""'  # detached from any form, so that it neither submits nor changes one
        if name == "input":
            kind = attributes.get("type", "text").strip().lower()
            yield _attribute("type", kind if kind in INPUT_TYPES else "text")
        elif name in TYPED and "type" in attributes:
            yield _attribute("type", attributes["type"])
        elif name in {"link", "style"} and "media" in attributes:
            yield _attribute("media", attributes["media"])
        if name == "link":
            yield ' rel="stylesheet"'
            yield _attribute("href", self._stylesheet_address(element) or "")
        elif name in ADDRESS_ATTRIBUTES:
            yield from self._loaded(ADDRESS_ATTRIBUTES[name], attributes.get(ADDRESS_ATTRIBUTES[name]))

    def _foreign_attributes(self, element: Element, space: str) -> Iterator[str]:
        attributes = element.attrib
        allowed = SVG_ATTRIBUTES if space == SVG else MATHML_ATTRIBUTES
        for key, value in attributes.items():
            if key in allowed:
                yield _attribute(allowed[key], harmless_css(value, self._address))
            elif NAMED_FREELY.fullmatch(key):
                yield _attribute(key, value)
        if space == SVG:
            target = reference(element)
            if element.tag == "image":
                yield from self._loaded("href", target)
            elif target is not None and target.startswith("#") and self._may_refer(element):
                yield _attribute("href", target)

    def _may_refer(self, element: Element) -> bool:
        """Return whether an element of a drawing may refer to a part of the page."""
        return element in self._copyable_uses if element.tag == "use" else element.tag != "a"

    def _loaded(self, name: str, address: str | None) -> Iterator[str]:
        harmless = None if address is None else self._address(address)
        if harmless is not None:
            yield _attribute(name, harmless)

    def _stylesheet_address(self, link: Element) -> str | None:
        words = (link.get("rel") or "").lower().split()
        if "stylesheet" not in words or "alternate" in words:
            return None
        address = self._address(link.get("href") or "")
        return None if address is None or address.startswith("data:") else address

    def _stylesheet(self, style: Element) -> str:
        is_css = (style.get("type") or "text/css").strip().lower() == "text/css"
        return harmless_css(style.text or "", self._address) if is_css else ""


def _mirrored_attributes(attributes: Any) -> Iterator[str]:
    """Yield copies of attributes that are not shown themselves."""
    for name in MIRRORED_ATTRIBUTES:
        value = attributes.get(name)
        if value is not None:
            yield _attribute(f"data-siteloom-{name}", value if len(value) <= _LONGEST_MIRRORED else "")


def _box(element: Element) -> str:
    """Return a style that leaves room for a frame, by default in the browsers' default size."""
    sizes = []
    for side, default in (("width", "300"), ("height", "150")):
        size = _PIXELS.match(element.get(side) or default)
        sizes.append(f"{side}:{size[0] if size else default}px")
    return f"display:inline-block;{';'.join(sizes)};outline:1px dashed;"


def _link_color(body: Element) -> str:
    """Return a style for the color that old pages set for all their links."""
    color = (body.get("link") or "").strip()
    if _HEXADECIMAL.fullmatch(color):
        color = "#" + color
    return f"--siteloom-link:{color};" if _COLOR.fullmatch(color) else ""


def _attribute(name: str, value: str) -> str:
    if _ODD_IN_ATTRIBUTE.search(value):
        value = _ODD_IN_ATTRIBUTE.sub(_escaped, value)
    return f' {name}="{value}"'


def _text(text: str) -> str:
    return _ODD_IN_TEXT.sub(_escaped, text) if _ODD_IN_TEXT.search(text) else text


def _escaped(match: re.Match[str]) -> str:
    """Escape a character for XML; a forbidden one becomes a replacement of the same length."""
    return _REFERENCES.get(match[0], "\ufffd")
