"""Words for people: which differ between two texts."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

# What stands between backticks is shown as code, so it stays in one piece.
_WORD = re.compile(r"\s+|`[^`]*`|[^\s`]+|`")


class Stretch(NamedTuple):
    """A part of a text, and whether the other text has something else in its place."""

    text: str
    is_changed: bool


class MarkedPair(NamedTuple):
    """Two texts in stretches; one that is missing has none."""

    before: list[Stretch]
    after: list[Stretch]


def marked(before: str, after: str) -> MarkedPair:
    """Two texts with the words marked that differ."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    pair = MarkedPair([], [])
    for kind, old_start, old_end, new_start, new_end in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        for stretches, words in ((pair.before, old[old_start:old_end]), (pair.after, new[new_start:new_end])):
            if words:
                stretches.append(Stretch("".join(words), kind != "equal"))
    return pair


def marked_lists(before: Sequence[str], after: Sequence[str]) -> list[MarkedPair]:
    """The texts of two lists side by side."""
    return [marked(old, new) for old, new in zip_longest(before, after, fillvalue="")]
