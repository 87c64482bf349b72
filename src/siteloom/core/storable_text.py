"""Texts that every database accepts.

PostgreSQL refuses NUL, and no database takes half of a surrogate pair; pages
of broken crawls have both in their addresses.
"""

from __future__ import annotations

import re

_REFUSED = re.compile("[\0\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Whether every database takes the text as it is."""
    return _REFUSED.search(text) is None


def storable_json(text: str) -> str:
    """The JSON with an escape for each character that a database would refuse."""
    return _REFUSED.sub(lambda refused: f"\\u{ord(refused[0]):04x}", text)


def storable(text: str) -> str:
    """The text with a replacement character for each that a database would refuse."""
    return _REFUSED.sub("\N{REPLACEMENT CHARACTER}", text)
