"""What a person types, as terms to look for.

All words must be there. Words in quotes must stand side by side, and what has a minus before it must not be
there. Whatever else is typed are words, too: there is no wrong query but one without any word.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from siteloom.errors import UsageError
from siteloom.words import terms

_QUOTES = '"\u201c\u201d\u201e'  # as typed, and as text programs turn them
# A quote may be left open; a minus counts at the beginning of a word only.
_PART = re.compile(
    rf"(?P<minus>(?<!\S)-)?(?:[{_QUOTES}](?P<phrase>[^{_QUOTES}]*)[{_QUOTES}]?|(?P<word>[^\s{_QUOTES}]+))"
)

# No one types more; whoever pastes a whole text is served with the beginning of it.
_MOST_PHRASES = 32
_MOST_TERMS = 64


class Query(NamedTuple):
    """What is asked for: phrases of one or more terms that must be there, and such that must not."""

    wanted: tuple[tuple[str, ...], ...]
    unwanted: tuple[tuple[str, ...], ...]


def parse_query(text: str) -> Query:
    """The query that a person types."""
    wanted: dict[tuple[str, ...], None] = {}
    unwanted: dict[tuple[str, ...], None] = {}
    for part in _PART.finditer(text):
        # A word may have several terms, as in O'Brien, and these stand side by side, too.
        phrase = tuple(terms(part["word"] if part["phrase"] is None else part["phrase"]))[:_MOST_TERMS]
        if phrase:
            (unwanted if part["minus"] else wanted)[phrase] = None
    if not wanted:
        hint = " besides what is excluded" if unwanted else ""
        raise UsageError(f"There is no word to look for{hint}: give at least one.")
    return Query(tuple(wanted)[:_MOST_PHRASES], tuple(unwanted)[:_MOST_PHRASES])
