"""What is right, what broke, and what an alarm was worth: the same for all evaluations of change."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from siteloom.html.visible_text import normalize

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.core.model import Attribute, Record

# An attribute is broken if it is wrong on more than this share of the pages on which it was right before ...
BROKEN = 0.05
# ... and so badly that it must be noticed if on more than this; between the two, both answers will do.
BADLY_BROKEN = 0.3


class Answer(NamedTuple):
    """What was found on a page, and what is there; an attribute without truth is unknown."""

    found: Mapping[str, Sequence[str]]
    truth: Mapping[str, Sequence[str]]

    def is_right(self, attribute: str) -> bool:
        """Whether exactly the true values were found, in any order; nothing where there is none is right."""
        return _texts(self.found.get(attribute, ())) == _texts(self.truth[attribute])


class Score(NamedTuple):
    """`counted` are the attributes of pages that have a true value or for which one was found.

    `missing` have a true value and nothing was found, `spurious` the other way round.
    """

    right: int
    counted: int
    missing: int
    spurious: int

    @property
    def share(self) -> float:
        """The share that is right."""
        return self.right / max(1, self.counted)


def answers(
    records: Iterable[Record], truths: Mapping[str, Mapping[str, Sequence[str]]]
) -> dict[str, Answer]:
    """What was found and what is true, by address."""
    return {record.url: Answer(record.values, truths[record.url]) for record in records}


def score(of_pages: Mapping[str, Answer], attributes: Iterable[str]) -> Score:
    """How much is right."""
    right = counted = missing = spurious = 0
    for attribute in attributes:
        for answer in of_pages.values():
            if attribute not in answer.truth:
                continue
            is_there, is_found = bool(answer.truth[attribute]), bool(answer.found.get(attribute))
            counted += is_there or is_found
            right += is_there and answer.is_right(attribute)
            missing += is_there and not is_found
            spurious += is_found and not is_there
    return Score(right, counted, missing, spurious)


def kept_urls(
    attributes: Iterable[str],
    old: Mapping[str, Mapping[str, Sequence[str]]],
    new: Mapping[str, Mapping[str, Sequence[str]]],
) -> set[str]:
    """The pages of both visits whose true values are there and the same at both."""
    return {
        url
        for url in old.keys() & new.keys()
        if all(old[url].get(name) and old[url].get(name) == new[url].get(name) for name in attributes)
    }


def same_share(attributes: Iterable[str], before: Mapping[str, Answer], now: Mapping[str, Answer]) -> float:
    """Of what was found on pages that are there again, the share that is found again, whatever is true."""
    known = [
        (url, name)
        for name in attributes
        for url, answer in before.items()
        if url in now and answer.found.get(name)
    ]
    same = sum(_texts(before[url].found[name]) == _texts(now[url].found.get(name, ())) for url, name in known)
    return same / max(1, len(known))


def broken_share(attribute: str, before: Mapping[str, Answer], now: Mapping[str, Answer]) -> float:
    """Of the pages that are there again and whose values were right before, the share that is wrong now."""
    known = [
        url
        for url, answer in before.items()
        if url in now
        and answer.truth.get(attribute)
        and answer.is_right(attribute)
        and attribute in now[url].truth
    ]
    return sum(not now[url].is_right(attribute) for url in known) / max(1, len(known))


def broken_shares(
    schema: Iterable[str], before: Mapping[str, Answer], now: Mapping[str, Answer]
) -> dict[str, float]:
    """The share that broke of each attribute that broke."""
    shares = {attribute: broken_share(attribute, before, now) for attribute in schema}
    return {attribute: share for attribute, share in shares.items() if share > BROKEN}


def fill_drop(attribute: str, before: Mapping[str, Answer], now: Mapping[str, Answer]) -> float:
    """By how much the share of pages with a value has dropped."""
    return _filled(attribute, before) - _filled(attribute, now)


def constants(schema: Mapping[str, Attribute]) -> list[str]:
    """The attributes whose values stay as they are."""
    return [name for name, attribute in schema.items() if attribute.constant is not False]


def _filled(attribute: str, of_pages: Mapping[str, Answer]) -> float:
    return sum(bool(answer.found.get(attribute)) for answer in of_pages.values()) / max(1, len(of_pages))


def _texts(values: Iterable[str]) -> set[str]:
    return {normalize(value) for value in values}
