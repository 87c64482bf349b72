"""From the text of a node to the values in it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from siteloom.wrapper.language import Part


# What a text is searched for a pattern at most. From each place of a text a match may
# run on to its end, so the time grows with the square of its length.
SEARCHED = 5_000


def part_values(part: Part, text: str) -> list[str]:
    """The values that a part takes from a text in normal form."""
    found = _cut(part, text)
    pieces = found.split(part.separator) if part.separator else [found]
    return [value for piece in pieces if (value := piece.strip())]


def _cut(part: Part, text: str) -> str:
    if part.pattern:
        match = _compiled(part.pattern).search(text, 0, SEARCHED)
        return match[0] if match else ""
    if part.left:
        _, left, text = text.partition(part.left)
        if not left:
            return ""
    if part.right:
        text, right, _ = text.partition(part.right)
        if not right:
            return ""
    return text


@lru_cache(maxsize=1_024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
