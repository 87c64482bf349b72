"""The result of wrapping a site from known records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from siteloom.core.model import Example, Failure
from siteloom.wrappers.wrapper import Wrapper

Verdict = Literal["accepted", "suggested", "refused"]


class SeedMatch(NamedTuple):
    """A value of a seed that was found on a page.

    `seed` is the number of the input seed, `value` its value as written in the seed or an equal one (several
    values may be joined), and `text` the matching text of the page; `position` is the path of its node.
    """

    seed: int
    url: str
    attribute: str
    position: str
    value: str
    text: str
    similarity: float


class Disagreement(NamedTuple):
    """A value on a held-back page that differs from the seed of the page."""

    seed: int
    url: str
    attribute: str
    value: str
    text: str


class AttributeEvidence(NamedTuple):
    """Why an attribute is extracted, suggested for annotation, or refused.

    Of `pairs` held-back pairs of a seed and its page, the share `agreement` agrees with the seed, and the
    share `shuffled` agrees with the seed of another page, as by chance. `filled` is the share of pages that
    have a value.
    """

    verdict: Verdict
    pairs: int
    agreement: float
    shuffled: float
    filled: float
    reason: str


@dataclass(frozen=True, slots=True)
class Bootstrapped:
    """The result of wrapping a site from known records.

    `wrapper` is None if the evidence does not suffice, and `reason` says why. `suggestions` are pages with
    probably right values, for a person to check and complete; from them, suggested attributes can be learned.
    `pages` counts the readable pages; `failures` has the others. `disagreements` are values that the wrapper
    finds but that differ from the seeds.

    `attributes` has the evidence for each attribute: its `verdict` (`accepted`, `suggested`, `refused`), the
    number of `pairs` of a record and its page that it was tried on, the share that agrees (`agreement`), the
    share that agrees by chance (`shuffled`), the share of pages with a value (`filled`), and a `reason`.
    `evidence` has each known value that was found: the number of its `seed`, `url`, `attribute`, `position`,
    `value`, `text` and `similarity`. `urls` are the pages with the same template as those of known records.
    """

    wrapper: Wrapper | None
    reason: str
    evidence: tuple[SeedMatch, ...]
    attributes: Mapping[str, AttributeEvidence]
    suggestions: tuple[Example, ...]
    urls: tuple[str, ...]
    seeds: int
    seeds_matched: int
    pages: int
    pages_matched: int
    failures: tuple[Failure, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
