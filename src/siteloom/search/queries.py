"""What a person types, as terms to look for.

All words must be there, whatever parts them. Words in quotes must stand side by side, and what has a minus
before it must not be there. Whatever else is typed are words, too: only a query without any
is wrong.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from siteloom.errors import UsageError
from siteloom.words import terms, words

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        typed = part["word"] if part["phrase"] is None else part["phrase"]
        if part["minus"]:
            unwanted[tuple(terms(typed))[:_MOST_TERMS]] = None
        elif part["phrase"] is None:
            wanted.update(dict.fromkeys(_parted(typed)))
        else:
            wanted[tuple(terms(typed))[:_MOST_TERMS]] = None
    wanted.pop((), None)
    unwanted.pop((), None)
    if not wanted:
        hint = " besides what is excluded" if unwanted else ""
        raise UsageError(f"There is no word to look for{hint}: give at least one.")
    return Query(tuple(wanted)[:_MOST_PHRASES], tuple(unwanted)[:_MOST_PHRASES])


def _parted(typed: str) -> Iterator[tuple[str, ...]]:
    """What is typed without a blank, such as O'Brien, by what parts words; what nothing parts is a phrase."""
    phrase: list[str] = []
    end = 0
    for word in words(typed):
        if word.start > end:
            yield tuple(phrase[:_MOST_TERMS])
            phrase = []
        phrase += word.terms
        end = word.end
    yield tuple(phrase[:_MOST_TERMS])
