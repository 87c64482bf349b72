"""What comes of wrapping a site from known records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from siteloom.core.model import Example, Failure
from siteloom.wrappers.wrapper import Wrapper

Verdict = Literal["accepted", "suggested", "refused"]


class SeedMatch(NamedTuple):
    """A value of a seed that was found on a page.

    `seed` is the number of the seed among those given, `value` is the seed's as it,
    or another that says the same, writes it (several values may stand joined), and
    `text` the page's; `position` is where it stands.
    """

    seed: int
    url: str
    attribute: str
    position: str
    value: str
    text: str
    similarity: float


class Disagreement(NamedTuple):
    """A value on a page that was held back where the seed of the page says something else."""

    seed: int
    url: str
    attribute: str
    value: str
    text: str


class AttributeEvidence(NamedTuple):
    """Why an attribute is extracted, suggested for annotation, or refused.

    Of `pairs` held-back pairs of a seed and its page, the share `agreement` has what the seed says, and
    the share `shuffled` has what another seed says: what chance alone would give. `filled` is the share
    of pages that have a value.
    """

    verdict: Verdict
    pairs: int
    agreement: float
    shuffled: float
    filled: float
    reason: str


@dataclass(frozen=True, slots=True)
class Bootstrapped:
    """What comes of wrapping a site from known records.

    `wrapper` is None if the evidence does not suffice, and `reason` then says why. `suggestions` are
    pages with values that are likely right, for a person to check and complete: with them, attributes
    that are only suggested can be learned. `pages` counts those that could be read; `failures` are the
    others. `disagreements` are the values that a wrapper finds, but the seeds do not say.

    `attributes` has the evidence for each: its `verdict` (`accepted`, `suggested`, `refused`), on how many
    `pairs` of a record and its page it was tried, the share that agrees (`agreement`) and the share that
    chance alone gives (`shuffled`), the share of pages with a value (`filled`), and a `reason`. `evidence`
    has each known value that was found: the number of its `seed`, `url`, `attribute`, `position`, `value`,
    `text` and `similarity`. `urls` are the pages that are made like those of known records.
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
