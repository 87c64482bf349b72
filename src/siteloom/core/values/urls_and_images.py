"""Addresses, of pages and of images, made absolute."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from siteloom.core.values.value_types import Image

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_LENGTH = 8192

_IGNORED = str.maketrans("", "", "\t\r\n")  # as browsers do
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SPACE = re.compile(r"\s")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_KEPT = re.compile(r"(?:mailto:[^@\s]+@[^@\s]+|tel:[+\d][\d().\-;=a-z ]*)", re.IGNORECASE)
_RELATIVE = re.compile(
    r"""
      (?:\.{0,2}/|[?\#]).*
    | [^\s/.:?\#]+/\S*
    | [^\s/:?\#]+\.(?:[sx]?html?|php\d?|aspx?|jsp|cgi|do|pdf|xml|txt|jpe?g|png|gif|webp|avif|svg)(?:[?\#]\S*)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""An address on the same site; `example.com` is none, and only endings tell it from `index.html`."""

_IMAGE_FILE = re.compile(r"\.(?:jpe?g|png|gif|webp|avif|svg|bmp|ico)(?:[?#]|$)", re.IGNORECASE)
# Where the address of an image stands. `src` may hold a stand-in until the page is scrolled, a data:
# address, which is passed over because of its scheme.
_IMAGE_ATTRIBUTES = ("src", "data-src", "data-lazy-src", "data-original", "content", "href", "data")
_LINK_ATTRIBUTES = (*_IMAGE_ATTRIBUTES, "action", "cite", "poster", "data-href", "data-url")


def url(text: str, base_url: str, html_attributes: Mapping[str, str]) -> str | None:
    """The absolute address that a text is; failing that, the one that its element links to."""
    is_link = any(html_attributes.get(name, "").strip() == text for name in _LINK_ATTRIBUTES)
    if is_link or looks_like_url(text, relative=True):
        return _absolute(text, base_url, is_link=is_link)
    return _absolute(html_attributes.get("href", ""), base_url, is_link=True)


def image(text: str, base_url: str, html_attributes: Mapping[str, str]) -> Image | None:
    """The image of an element, or the one whose address the text is."""
    sources = [html_attributes[name] for name in _IMAGE_ATTRIBUTES if name in html_attributes]
    sources.sort(key=lambda source: source.strip() != text)  # the one that was extracted comes first
    addresses = [_absolute(source, base_url, is_link=True) for source in sources]
    if not sources and looks_like_url(text, relative=True):
        addresses = [_absolute(text, base_url, is_link=False)]
    for address in addresses:
        if address is not None and address.startswith(("http://", "https://")):
            return Image(address, html_attributes.get("alt"))
    return None


def looks_like_url(text: str, *, relative: bool) -> bool:
    """Whether a text is an address; with `relative`, one of the same site is enough."""
    text = text.strip()
    if not text or len(text) > MAX_LENGTH or _SPACE.search(text):
        return False
    if text.lower().startswith(("http://", "https://", "ftp://", "//", "www.")):
        return "." in text or "localhost" in text
    return _KEPT.fullmatch(text) is not None or (relative and _RELATIVE.fullmatch(text) is not None)


def looks_like_image(text: str) -> bool:
    """Whether a text is the address of an image file."""
    return looks_like_url(text, relative=True) and _IMAGE_FILE.search(text) is not None


def _absolute(text: str, base_url: str, *, is_link: bool) -> str | None:
    """An address resolved against its page's; a link to `www.example.com` is relative, the text is not."""
    text = text.translate(_IGNORED).strip()
    if not text or len(text) > MAX_LENGTH or _CONTROL.search(text):
        return None
    if _KEPT.fullmatch(text):
        return text
    try:
        if not is_link and text.lower().startswith("www."):
            text = f"{urlsplit(base_url).scheme or 'http'}://{text}"
        if _SCHEME.match(text) is None and not base_url:
            return None
        address = _SPACE.sub("%20", urljoin(base_url, text))
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:  # http://[ and the like
        return None
    if parts.scheme == "file":  # a saved page's links are files beside it
        return address if base_url.startswith("file:") else None
    return address if parts.scheme in {"http", "https", "ftp"} and host and "%20" not in host else None
