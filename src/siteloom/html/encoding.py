"""Determine the encoding of a page in the same order as browsers.

Byte-order mark, then the HTTP header, then `<meta>`, then the bytes themselves.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

from siteloom.html.tag_scanner import name_hash, scan_tags

if TYPE_CHECKING:
    from collections.abc import Iterator

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# By the WHATWG standard, browsers read these labels as the larger encoding that contains them; Python's
# codecs of the same name are the narrow ones.
_WIDER_CODEC = {
    "big5": "big5hkscs",
    "euc_kr": "cp949",
    "gbk": "gb18030",
    "iso8859-11": "cp874",
    "shift_jis": "cp932",
}

# The standard strips exactly these around labels.
_SPACES = "\t\n\f\r "

# The standard has browsers look at the first 1,024 bytes and start again when
# a later <meta> disagrees. Heads longer than the second number are rare.
_FIRST_LOOK_BYTES = 1_024
_META_SEARCH_BYTES = 16_384

_ZERO, _ESCAPE = 0x00, 0x1B

_META = name_hash("meta")
_ATTRIBUTE = re.compile(
    rb"""([^\s/>] [^\s/>=]*+) (?: \s*+ = \s*+ (?: "([^"]*+)" | '([^']*+)' | ([^\s>]*+) ) )?+""", re.VERBOSE
)
_CHARSET_IN_CONTENT = re.compile(rb"""charset \s*+ = \s*+ ["']?+ ([^\s;"']++)""", re.IGNORECASE | re.VERBOSE)
_XML_DECLARATION = re.compile(rb"""<\?xml\s [^>]*? \bencoding \s*+ = \s*+ ["'] ([^"'>]++)""", re.VERBOSE)


def decode(html: bytes, charset: str | None = None) -> str:
    """Decode a page; invalid bytes become U+FFFD, a byte-order mark is dropped."""
    body, encoding = _body_and_encoding(html, charset)
    return body.decode(encoding, "replace")


def in_utf8(html: bytes, charset: str | None = None) -> bytes:
    """Convert a page to UTF-8, as most pages are already.

    The text is that of `decode`, except that a page in plain ASCII is read as ASCII, whatever it declares.
    """
    if html.isascii() and has_plain_markup(html):
        return html
    body, encoding = _body_and_encoding(html, charset)
    if encoding == "utf-8":
        try:
            body.decode()
        except UnicodeDecodeError:
            pass
        else:
            return body
    return body.decode(encoding, "replace").encode("utf-8", "replace")


def has_plain_markup(html: bytes) -> bool:
    """Return whether the tags of a page are written as in ASCII, whatever its encoding.

    Of the encodings of the web, only ISO-2022-JP, after an escape, and UTF-16, which writes ASCII with zeros,
    use ASCII bytes differently.
    """
    return _ESCAPE not in html and _ZERO not in html


def _body_and_encoding(html: bytes, charset: str | None) -> tuple[bytes, str]:
    """Return a page without its byte-order mark, and its encoding."""
    mark, encoding = _byte_order_mark(html)
    return html[len(mark) :], encoding or _codec(charset) or declared_encoding(html) or _detect(html)


def declared_encoding(html: bytes) -> str | None:
    """Return the codec of the page's `<meta>`, or else of its XML declaration, or None."""
    for label in _labels(html):
        codec = _codec(label.decode("ascii", "replace"))
        # A label that is readable as ASCII cannot be in UTF-16, so the standard reads it as UTF-8.
        if codec is not None:
            return "utf-8" if codec.startswith("utf-16") else codec
    return None


def _labels(html: bytes) -> Iterator[bytes]:
    yield from _meta_labels(html[:_FIRST_LOOK_BYTES])
    head = html[:_META_SEARCH_BYTES]
    if b"charset" in head.lower():
        yield from _meta_labels(head)
    if declaration := _XML_DECLARATION.match(head):
        yield declaration[1]


def _meta_labels(head: bytes) -> Iterator[bytes]:
    tags = scan_tags(head)
    is_meta = (tags.name == _META) & ~tags.is_end
    for start, end in zip(tags.start[is_meta], tags.end[is_meta], strict=True):
        attributes: dict[bytes, bytes] = {}
        for name, *values in _ATTRIBUTE.findall(head, start + len("<meta"), end - 1):
            attributes.setdefault(name.lower(), b"".join(values))  # the first of a name counts
        if b"charset" in attributes:
            yield attributes[b"charset"]
        elif attributes.get(b"http-equiv", b"").lower() == b"content-type":
            yield from _CHARSET_IN_CONTENT.findall(attributes.get(b"content", b""))[:1]


def _byte_order_mark(html: bytes) -> tuple[bytes, str | None]:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if html.startswith(mark):
            return mark, encoding
    return b"", None


def _codec(label: str | None) -> str | None:
    """Return Python's codec for an encoding label of the web, or None for an unknown label."""
    # The encoding standard has only ASCII labels, and Resiliparse 2 raises an error for a lone surrogate.
    if not label or not label.isascii():
        return None
    name = map_encoding_to_html5(label.strip(_SPACES), fallback_utf8=False)
    return None if name is None else _WIDER_CODEC.get(name, name)


def _detect(html: bytes) -> str:
    # UTF-8 first: text in another encoding that happens to be valid UTF-8 is
    # vanishingly rare, and statistics on few non-ASCII bytes are unreliable.
    try:
        html.decode("utf-8")
    except UnicodeDecodeError:
        return _codec(detect_encoding(html)) or "cp1252"
    return "utf-8"
