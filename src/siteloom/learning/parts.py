"""Learning how a value is cut out of the text of its node."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING, NamedTuple

from siteloom.wrapper.language import Part
from siteloom.wrapper.parts import part_values
from siteloom.wrapper.pattern_grammar import pattern_fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_LONGEST_ANCHOR = 60
_MOST_ANCHORS = 8  # of those that most texts have, from long to short, so many are tried
_USUAL = 0.5  # an anchor that fewer of the texts have belongs to single records

# A word, a number, blanks, or one other character.
_TOKEN = re.compile(r"[^\W\d_]+|\d+|\s+|.", re.DOTALL)


class Cut(NamedTuple):
    """A value in the text of its node."""

    whole: str
    start: int
    end: int

    @property
    def value(self) -> str:
        """The value as it stands in the text."""
        return self.whole[self.start : self.end]


def learn_part(cuts: Iterable[Cut], other_texts: Sequence[str]) -> Part | None:
    """The part that gives exactly the values of each text, or None if there is none.

    `other_texts` are of nodes that the same rule selects on other pages.
    """
    by_text: defaultdict[str, list[Cut]] = defaultdict(list)
    for cut in sorted(set(cuts), key=lambda cut: (cut.whole, cut.start, cut.end)):
        by_text[cut.whole].append(cut)
    wanted = {whole: [cut.value for cut in found] for whole, found in by_text.items()}
    spans = [Cut(whole, found[0].start, found[-1].end) for whole, found in by_text.items()]
    separators = _separators(by_text.values())
    for part in _parts(spans, separators, other_texts):
        if all(part_values(part, whole) == values for whole, values in wanted.items()):
            return part
    return None


def _parts(spans: Sequence[Cut], separators: Sequence[str], other_texts: Sequence[str]) -> Iterator[Part]:
    """Parts to try, the most telling first."""
    texts = [*other_texts, *(span.whole for span in spans)]
    lefts = _usual(_common_ends([span.whole[: span.start] for span in spans]), texts)
    rights = _usual(_common_starts([span.whole[span.end :] for span in spans]), texts)
    for separator in separators:
        for left, right in product(lefts, rights):
            yield Part(left=left, right=right, separator=separator)
    for pattern in _patterns([span.value for span in spans]):
        if not pattern_fault(pattern):
            yield Part(pattern=pattern)


def _separators(found: Iterable[list[Cut]]) -> list[str]:
    """What stands between the values of a text; nothing if it has only one."""
    between = {cuts[0].whole[first.end : second.start] for cuts in found for first, second in pairwise(cuts)}
    if not between:
        return [""]
    shortest = min(between, key=len)
    return [shortest, stripped] if (stripped := shortest.strip()) else [shortest]


def _common_starts(contexts: Sequence[str]) -> list[str]:
    """What all contexts begin with, from long to short, cut between words; nothing is the last."""
    shared = contexts[0]
    for context in contexts[1:]:
        length = 0
        while length < min(len(shared), len(context)) and shared[length] == context[length]:
            length += 1
        shared = shared[:length]
    ends, end = [], 0
    for token in _TOKEN.findall(shared):
        end += len(token)
        # A word that the contexts share only the beginning of is no anchor.
        if all(
            len(context) <= end or not (context[end - 1].isalnum() and context[end].isalnum())
            for context in contexts
        ):
            ends.append(end)
    found = [shared[:end] for end in ends if end <= _LONGEST_ANCHOR and not shared[:end].isspace()]
    return [*found[::-1], ""]


def _common_ends(contexts: Sequence[str]) -> list[str]:
    return [found[::-1] for found in _common_starts([context[::-1] for context in contexts])]


def _usual(anchors: list[str], texts: Sequence[str]) -> list[str]:
    """The longest anchors that most texts have, and no anchor at all."""
    usual = (anchor for anchor in anchors if sum(anchor in text for text in texts) >= _USUAL * len(texts))
    return [*islice(filter(None, usual), _MOST_ANCHORS), ""]


def _patterns(values: Sequence[str]) -> Iterator[str]:
    """Regular expressions of token classes that all values match."""
    classes = {"".join(_token_class(token) for token in _TOKEN.findall(value)) for value in values}
    if len(classes) == 1:
        yield from classes
    if all(re.fullmatch(r"\d[\d.,]*", value) for value in values):
        yield r"\d[\d.,]*"
    if all(re.fullmatch(r"[$€£¥] ?\d[\d.,]*", value) for value in values):
        yield r"[$€£¥] ?\d[\d.,]*"


def _token_class(token: str) -> str:
    if token.isdigit():
        return r"\d+"
    if token.isalpha():
        return r"[^\W\d_]+"
    return " " if token.isspace() else re.escape(token)
