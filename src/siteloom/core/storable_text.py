"""Texts that every database accepts.

PostgreSQL rejects NUL, and no database accepts half of a surrogate pair; addresses in broken crawls have
both.
"""

from __future__ import annotations

import re

_REFUSED = re.compile("[\0\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Return whether every database accepts the text as it is."""
    return _REFUSED.search(text) is None


def storable_json(text: str) -> str:
    """Escape each character of a JSON text that a database would reject."""
    return _REFUSED.sub(lambda refused: f"\\u{ord(refused[0]):04x}", text)


def storable(text: str) -> str:
    """Replace each character of a text that a database would reject."""
    return _REFUSED.sub("\N{REPLACEMENT CHARACTER}", text)
