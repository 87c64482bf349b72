"""Which addresses of a site are wanted: patterns as people write them.

A `*` stands for anything, and all else for itself: dots and question marks, which addresses are full of, need
no care. A pattern that begins with a slash is one of a path with its query, any other of a whole address. It
takes no longer than to look for its parts one after the other, whatever it is.
"""

from __future__ import annotations

import string
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from siteloom.errors import UsageError

_ANY = "*"


class UrlPatterns(NamedTuple):
    """Which pages are kept, all if `include` is empty, and which are not even fetched."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def keeps(self, url: str) -> bool:
        """Whether a page is one of those that are wanted."""
        return not self.include or any(matches(url, pattern) for pattern in self.include)

    def excludes(self, url: str) -> bool:
        """Whether an address must not be fetched."""
        return any(matches(url, pattern) for pattern in self.exclude)


def checked_pattern(text: str) -> str:
    """A pattern as a person wrote it; a UsageError if no address can match it."""
    written = text.strip()
    if not written:
        raise UsageError("A pattern of addresses must not be empty: write it like '/products/*'.")
    if not written.startswith(("/", _ANY, "http://", "https://")):
        raise UsageError(
            f"No address matches the pattern {text!r} as a whole: "
            f"write '*{written.strip(_ANY)}*' for all that contain it, or '/products/*' for a folder."
        )
    return quote(written, safe=string.printable)  # as links are written that have other letters


def matches(url: str, pattern: str) -> bool:
    """Whether an address is of a pattern, as a whole."""
    text = url.partition("#")[0]
    if pattern.startswith("/"):
        parts = urlsplit(text)
        text = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    first, *rest = pattern.split(_ANY)
    if not rest:
        return text == first
    *inner, last = rest
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    at, end = len(first), len(text) - len(last)
    for part in inner:  # the first place of each leaves the most for those behind it
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
