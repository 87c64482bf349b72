"""Read addresses of pages and images as absolute URLs."""

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
_CONTACT_ADDRESS = re.compile(r"(?:mailto:[^@\s]+@[^@\s]+|tel:[+\d][\d().\-;=a-z ]*)", re.IGNORECASE)
_RELATIVE = re.compile(
    r"""
      (?:\.{0,2}/|[?\#]).*
    | [^\s/.:?\#]+/\S*
    | [^\s/:?\#]+\.(?:[sx]?html?|php\d?|aspx?|jsp|cgi|do|pdf|xml|txt|jpe?g|png|gif|webp|avif|svg)(?:[?\#]\S*)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A relative address; `example.com` is not one, and only suffixes distinguish it from `index.html`."""

_IMAGE_FILE = re.compile(r"\.(?:jpe?g|png|gif|webp|avif|svg|bmp|ico)(?:[?#]|$)", re.IGNORECASE)
# Attributes with the address of an image. `src` may have a placeholder until the page is scrolled, a data:
# address, which is skipped because of its scheme.
_IMAGE_ATTRIBUTES = ("src", "data-src", "data-lazy-src", "data-original", "content", "href", "data")
_LINK_ATTRIBUTES = (*_IMAGE_ATTRIBUTES, "action", "cite", "poster", "data-href", "data-url")


def url(text: str, base_url: str, html_attributes: Mapping[str, str]) -> str | None:
    """Read a text as an absolute address, or else return the one that its element links to."""
    is_link = any(html_attributes.get(name, "").strip() == text for name in _LINK_ATTRIBUTES)
    if is_link or looks_like_url(text, relative=True):
        return _absolute(text, base_url, is_link=is_link)
    return _absolute(html_attributes.get("href", ""), base_url, is_link=True)


def image(text: str, base_url: str, html_attributes: Mapping[str, str]) -> Image | None:
    """Return the image of an element, or the one whose address is the text."""
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
    """Return whether a text is an address; with `relative`, relative ones count."""
    text = text.strip()
    if not text or len(text) > MAX_LENGTH or _SPACE.search(text):
        return False
    if text.lower().startswith(("http://", "https://", "ftp://", "//", "www.")):
        return "." in text or "localhost" in text
    return _CONTACT_ADDRESS.fullmatch(text) is not None or (
        relative and _RELATIVE.fullmatch(text) is not None
    )


def looks_like_image(text: str) -> bool:
    """Return whether a text is the address of an image file."""
    return looks_like_url(text, relative=True) and _IMAGE_FILE.search(text) is not None


def _absolute(text: str, base_url: str, *, is_link: bool) -> str | None:
    """Resolve an address against its page's; a link to `www.example.com` is relative, the text is not."""
    text = text.translate(_IGNORED).strip()
    if not text or len(text) > MAX_LENGTH or _CONTROL.search(text):
        return None
    if _CONTACT_ADDRESS.fullmatch(text):
        return text
    try:
        if not is_link and text.lower().startswith("www."):
            text = f"{urlsplit(base_url).scheme or 'http'}://{text}"
        if _SCHEME.match(text) is None and not base_url:
            return None
        address = _SPACE.sub("%20", urljoin(base_url, text))
        split_address = urlsplit(address)
        host = split_address.hostname
    except ValueError:  # http://[ and the like
        return None
    if split_address.scheme == "file":  # a saved page's links are files beside it
        return address if base_url.startswith("file:") else None
    return (
        address if split_address.scheme in {"http", "https", "ftp"} and host and "%20" not in host else None
    )
