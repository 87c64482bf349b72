"""Which wrapper a page is for, found out before the page is parsed.

First the URL: wrappers are looked up by its site, and their patterns are tried
in one call, so wrappers of other sites cost nothing. Then, only if some are
left, the signature: a wrapper *fits* if one of its masks covers the signature, or if it
is an accepted one. Where none fits, the nearest may be near enough.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.model import Failure, Footprint
from siteloom.core.urls import site_of
from siteloom.templates.signature import SIGNATURE_BYTES, Mask, Signatures, scan
from siteloom.templates.url_patterns import PatternSet, matches
from siteloom.wrappers.safe_patterns import tells_pages_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from siteloom.core.model import Page
    from siteloom.html.page_scan import PageScan
    from siteloom.wrappers.wrapper import Wrapper

NO_WRAPPER_FOR_SITE = "no wrapper for the site"
NO_WRAPPER_FOR_URL = "no wrapper for the URL"
NO_TAGS = "no tags"
UNLIKE = "unlike the pages of its wrapper"

# How many bytes of an accepted signature a page must have if the wrapper does not fit. Of 45,274 pages of
# 32 real sites, 39 have less than 4 bytes of their own wrapper, and one has 3 of another's: 4 is the least
# that keeps sites apart. Templates of one site share what stands around their content, and pages of one may
# have 7 bytes of another: to keep these apart is up to the URL pattern.
BYTES_NEEDED = 4
# A pattern without a literal besides the host cannot do that. Then as many bytes must agree as make two
# masks one cluster; lists of the built-in guide have up to 5 bytes of its restaurants.
_BYTES_NEEDED_IF_ONLY_HOST = 6

_MOST_CONSIDERED = 20  # a person reads no more


class NamedWrapper(NamedTuple):
    """A wrapper under its name; `version` and `site` are those in the store, if it comes from there.

    It pickles as its JSON, which is smaller than a wrapper that is ready for use.
    """

    name: str
    version: int | None
    wrapper: Wrapper
    site: str | None = None

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites that it is for."""
        return (self.site,) if self.site else tuple(self.wrapper.footprint.sites)

    @property
    def is_for_pages(self) -> bool:
        """Whether it can be chosen for any page: without a footprint it cannot."""
        return bool(self.wrapper.footprint.sites and self.wrapper.footprint.url_patterns)

    def __reduce__(self) -> tuple[Callable[..., NamedWrapper], tuple[object, ...]]:
        """The wrapper as JSON, which any process can read."""
        return _unpickled, (self.name, self.version, self.wrapper.to_json(), self.site)

    def __str__(self) -> str:
        """The name, and the version if there is one."""
        return self.name if self.version is None else f"{self.name}, version {self.version}"


def _unpickled(name: str, version: int | None, text: str, site: str | None) -> NamedWrapper:
    from siteloom.wrappers.wrapper import Wrapper  # noqa: PLC0415 - matching needs no rules

    with warnings.catch_warnings(action="ignore"):  # the process that read the wrapper first showed them
        return NamedWrapper(name, version, Wrapper.from_json(text), site)


class Match(NamedTuple):
    """The wrapper of a page, or why it has none.

    `chosen` are several only if nothing tells which is better; then the one that
    extracts most mandatory attributes should be taken. `passed_url` counts the
    wrappers that the URL left, `passed_signature` those of them that fit: if none
    does although one is chosen, that is merely the nearest. `scan` is what the
    bytes of the page told, None where they were not needed.
    """

    chosen: tuple[NamedWrapper, ...]
    failure: Failure | None
    scan: PageScan | None
    passed_url: int
    passed_signature: int

    @property
    def signature(self) -> bytes | None:
        """The page's signature, if it was needed."""
        return self.scan.least_bytes if self.scan else None


class Considered(NamedTuple):
    """How a wrapper did for a page, and in plain words why.

    `url_pattern` is the first that matches. `mask` is the best that covers the page's signature, with the
    number of pages that chose it. `agreement` is how many bytes the nearest accepted signature has
    in common with it. Wrappers that did equally well have the same `rank`, from 1 on.
    """

    wrapper: NamedWrapper
    url_pattern: str | None
    mask: str | None
    mask_pages: int
    wildcards: int
    is_accepted: bool
    agreement: int
    rank: int
    verdict: str


class Matcher:
    """Finds the wrapper of a page among many; made once for many pages."""

    def __init__(self, wrappers: Iterable[NamedWrapper]) -> None:
        self._candidates = [_Candidate(named) for named in wrappers]
        by_site: dict[str, list[_Candidate]] = defaultdict(list)
        for candidate in self._candidates:
            for site in set(candidate.footprint.sites):
                by_site[site].append(candidate)
        self._sites = {site: _Site(candidates) for site, candidates in by_site.items()}

    def match(self, page: Page) -> Match:
        """The wrapper that a page is for."""
        name = site_of(page.url)
        site = self._sites.get(name)
        if site is None:
            return Match((), Failure(page.url, NO_WRAPPER_FOR_SITE, name), None, 0, 0)
        passed = site.passing(page.url)
        if not passed:
            return Match((), Failure(page.url, NO_WRAPPER_FOR_URL), None, 0, 0)
        scanned = scan(page.html)
        found = scanned.least_bytes
        if found is None:
            return Match((), Failure(page.url, NO_TAGS), scanned, len(passed), 0)
        fits = [(fit, one.candidate.named) for one in passed if (fit := one.candidate.fit(found)) is not None]
        if fits:
            return Match(_first(fits), None, scanned, len(passed), len(fits))
        agreements = [(one.candidate.agreement(found), one) for one in passed]
        near = [(-most, one.candidate.named) for most, one in agreements if most >= one.needed]
        if near:
            return Match(_first(near), None, scanned, len(passed), 0)
        most, nearest = max(agreements, key=lambda pair: pair[0])
        detail = f"{_agreeing(most)} with {nearest.candidate.named}, {nearest.needed} must"
        return Match((), Failure(page.url, UNLIKE, detail), scanned, len(passed), 0)

    def by_url(self, url: str) -> list[NamedWrapper]:
        """The wrappers that have a pattern for a URL: the page at it decides which of them it is for."""
        site = self._sites.get(site_of(url))
        return [one.candidate.named for one in site.passing(url)] if site else []

    def explain(self, page: Page) -> tuple[Considered, ...]:
        """How each wrapper of the page's site did, the best first.

        If no wrapper is of its site, all are considered, but only the 20 most alike are told of.
        """
        name = site_of(page.url)
        site = self._sites.get(name)
        found = scan(page.html).least_bytes
        trials = sorted(
            (
                _tried(candidate, page.url if site else None, found)
                for candidate in (site.candidates if site else self._candidates)
            ),
            key=lambda trial: trial.standing,
        )
        standings = [trial.standing for trial in trials]
        return tuple(
            Considered(
                trial.candidate.named,
                trial.url_patterns[0] if trial.url_patterns else None,
                trial.mask.text if trial.mask else None,
                trial.mask.pages if trial.mask else 0,
                trial.mask.wildcards if trial.mask else 0,
                trial.is_accepted,
                trial.agreement,
                1 + standings.index(trial.standing),
                _verdict(trial, trials, name, has_tags=found is not None),
            )
            for trial in (trials if site else trials[:_MOST_CONSIDERED])
        )


class _Mask(NamedTuple):
    """A mask as numbers: it covers a signature that has `value` in all bits that are `kept`."""

    text: str
    pages: int
    wildcards: int
    kept: int
    value: int


def _mask(text: str, pages: int) -> _Mask:
    mask = Mask.from_text(text)
    kept = bytes(0 if place in mask.wildcards else 0xFF for place in range(SIGNATURE_BYTES))
    return _Mask(text, pages, len(mask.wildcards), int.from_bytes(kept), int.from_bytes(mask.value))


class _Candidate:
    """A wrapper whose footprint is made ready for comparing."""

    def __init__(self, named: NamedWrapper) -> None:
        self.named = named
        self.footprint = named.wrapper.footprint
        masks = (_mask(*mask) for mask in self.footprint.masks)
        self._masks = sorted(masks, key=lambda mask: (-mask.pages, mask.wildcards))
        accepted = [bytes.fromhex(text) for text in self.footprint.accepted]
        self._accepted = frozenset(accepted)
        self.agreement = Signatures(accepted).agreement

    def fit(self, found: bytes) -> tuple[int, int] | None:
        """How well a signature fits, the least best: by the pages of the mask, then by its wildcards."""
        if mask := self.covering(found):
            return -mask.pages, mask.wildcards
        return (0, 0) if self.has_accepted(found) else None

    def covering(self, found: bytes) -> _Mask | None:
        """The mask of most pages that covers a signature."""
        number = int.from_bytes(found)
        return next((mask for mask in self._masks if number & mask.kept == mask.value), None)

    def has_accepted(self, found: bytes) -> bool:
        """Whether a page had this very signature."""
        return found in self._accepted


class _Passed(NamedTuple):
    """A wrapper that the URL has left, and how many bytes must agree if it does not fit."""

    candidate: _Candidate
    needed: int


class _Site:
    """The wrappers of one site."""

    def __init__(self, candidates: Sequence[_Candidate]) -> None:
        self.candidates = candidates
        owners: dict[str, list[int]] = defaultdict(list)
        for number, candidate in enumerate(candidates):
            for pattern in candidate.footprint.url_patterns:
                owners[pattern].append(number)
        self._patterns = PatternSet(owners)
        self._owners = [(bytes_needed(pattern), numbers) for pattern, numbers in owners.items()]

    def passing(self, url: str) -> list[_Passed]:
        """The wrappers that have a pattern for a URL, in their order."""
        needed: dict[int, int] = {}
        for place in self._patterns.matching(url):
            least, numbers = self._owners[place]
            for number in numbers:
                needed[number] = min(least, needed.get(number, least))
        return [_Passed(self.candidates[number], needed[number]) for number in sorted(needed)]


def bytes_needed(pattern: str) -> int:
    """How many bytes of an accepted signature a page must have whose URL has a pattern."""
    return BYTES_NEEDED if tells_pages_apart(pattern) else _BYTES_NEEDED_IF_ONLY_HOST


def _first(ranked: Sequence[tuple[tuple[int, int] | int, NamedWrapper]]) -> tuple[NamedWrapper, ...]:
    """All that rank as the first does."""
    best = min(rank for rank, _ in ranked)
    return tuple(named for rank, named in ranked if rank == best)


def _agreeing(count: int) -> str:
    return f"{count} of {SIGNATURE_BYTES} bytes agree"


class _Trial(NamedTuple):
    """What a wrapper has to do with a page; `url_patterns` are those that match."""

    candidate: _Candidate
    url_patterns: Sequence[str]
    mask: _Mask | None
    is_accepted: bool
    agreement: int

    @property
    def needed(self) -> int:
        return min(map(bytes_needed, self.url_patterns))

    @property
    def standing(self) -> tuple[_Stage, int, int]:
        """The least is the best: how far it came, and how well it did there."""
        if not self.url_patterns:
            return _Stage.OTHER_URL, -self.agreement, 0
        if self.mask:
            return _Stage.FITS, -self.mask.pages, self.mask.wildcards
        if self.is_accepted:
            return _Stage.FITS, 0, 0
        return (_Stage.NEAR if self.agreement >= self.needed else _Stage.UNLIKE), -self.agreement, 0


class _Stage(IntEnum):
    FITS = 0
    NEAR = 1
    UNLIKE = 2
    OTHER_URL = 3


def _tried(candidate: _Candidate, url: str | None, found: bytes | None) -> _Trial:
    """A wrapper on a page; without a URL if that is of another site."""
    patterns = () if url is None else candidate.footprint.url_patterns
    return _Trial(
        candidate,
        [pattern for pattern in patterns if url is not None and matches(pattern, url)],
        candidate.covering(found) if found else None,
        found is not None and candidate.has_accepted(found),
        candidate.agreement(found) if found else 0,
    )


def _verdict(trial: _Trial, trials: Sequence[_Trial], site: str, *, has_tags: bool) -> str:
    """Why a wrapper won or lost against the others, of which the first is the best."""
    best = trials[0]
    stage = trial.standing[0]
    if stage == _Stage.OTHER_URL:
        return _verdict_on_url(trial.candidate.footprint, site)
    if not has_tags:
        return "Its URL pattern matches, but the page has no tags."
    if stage == _Stage.UNLIKE:
        return (
            f"Its URL pattern matches, but {_agreeing(trial.agreement)} with the signatures of its pages, "
            f"and {trial.needed} must."
        )
    if trial.standing == best.standing:
        equals = sum(other.standing == best.standing for other in trials) - 1
        together = f" as well as {equals} more, of which what they extract decides" if equals else ""
        return f"Chosen{together}: {_merit(trial)}."
    return f"Not chosen: {_merit(trial)}, but of {best.candidate.named} {_merit(best)}."


def _verdict_on_url(footprint: Footprint, site: str) -> str:
    if footprint == Footprint():
        return "It has no footprint and so is for no page: learn it again."
    if site not in footprint.sites:
        return f"It is for {', '.join(footprint.sites)}, not for {site}."
    return "None of its URL patterns matches."


def _merit(trial: _Trial) -> str:
    """What speaks for a wrapper that fits or is near."""
    if trial.mask is not None:
        built = "page is" if trial.mask.pages == 1 else "pages are"
        alike = _agreeing(SIGNATURE_BYTES - trial.mask.wildcards)
        return f"{trial.mask.pages:,} of its {built} built like this one ({alike})"
    if trial.is_accepted:
        return "one of its pages is built just like this one"
    return f"one of its pages is built somewhat like this one ({_agreeing(trial.agreement)})"
