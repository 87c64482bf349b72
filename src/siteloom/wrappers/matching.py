"""Match a page to its wrapper before the page is parsed.

First by URL: wrappers are looked up by site and their patterns are tried in one call, so wrappers of other
sites cost nothing. Then, only if several remain, by signature: a wrapper *fits* if one of its masks covers
the signature, or if the signature is one it accepts. If none fits, the nearest is used if it is near enough.
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
# that separates sites. Templates of one site share the markup around their content, and pages of one may
# have 7 bytes of another: only the URL pattern can separate these.
BYTES_NEEDED = 4
# A pattern without a literal besides the host cannot do that. Then as many bytes must agree as clustering
# needs to merge two masks; lists of the built-in guide have up to 5 bytes of its restaurants.
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

    `chosen` holds several wrappers only if they match equally well; then use the one that
    extracts most mandatory attributes. `passed_url` counts the wrappers that match by URL,
    `passed_signature` those of them that fit: if none fits although one is chosen, that is
    merely the nearest. `scan` is the scan of the page's bytes, None if it was not needed.
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


class MatchCandidate(NamedTuple):
    """How well a wrapper matches a page, with the reason in plain words.

    `url_pattern` is the first that matches. `mask` is the best that covers the page's signature, with the
    number of pages behind it. `agreement` is how many bytes the nearest accepted signature has
    in common with the page's. Wrappers that match equally well have the same `rank`, from 1 on.
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
    """Finds the wrapper of a page among many; build it once for many pages."""

    def __init__(self, wrappers: Iterable[NamedWrapper]) -> None:
        self._candidates = [_Candidate(named_wrapper) for named_wrapper in wrappers]
        by_site: dict[str, list[_Candidate]] = defaultdict(list)
        for candidate in self._candidates:
            for site in set(candidate.footprint.sites):
                by_site[site].append(candidate)
        self._sites = {site: _Site(candidates) for site, candidates in by_site.items()}

    def match(self, page: Page) -> Match:
        """Return the wrapper that matches a page, or why none does."""
        site_name = site_of(page.url)
        site = self._sites.get(site_name)
        if site is None:
            return Match((), Failure(page.url, NO_WRAPPER_FOR_SITE, site_name), None, 0, 0)
        passed = site.passing(page.url)
        if not passed:
            return Match((), Failure(page.url, NO_WRAPPER_FOR_URL), None, 0, 0)
        scanned = scan(page.html)
        page_signature = scanned.least_bytes
        if page_signature is None:
            return Match((), Failure(page.url, NO_TAGS), scanned, len(passed), 0)
        fits = [
            (fit, url_match.candidate.named)
            for url_match in passed
            if (fit := url_match.candidate.fit(page_signature)) is not None
        ]
        if fits:
            return Match(_best_ranked(fits), None, scanned, len(passed), len(fits))
        agreements = [(url_match.candidate.agreement(page_signature), url_match) for url_match in passed]
        near = [
            (-agreement, url_match.candidate.named)
            for agreement, url_match in agreements
            if agreement >= url_match.needed
        ]
        if near:
            return Match(_best_ranked(near), None, scanned, len(passed), 0)
        agreement, nearest = max(agreements, key=lambda pair: pair[0])
        detail = f"{_agreeing(agreement)} with {nearest.candidate.named}, {nearest.needed} must"
        return Match((), Failure(page.url, UNLIKE, detail), scanned, len(passed), 0)

    def by_url(self, url: str) -> list[NamedWrapper]:
        """Return the wrappers with a pattern that matches a URL; the page itself decides which applies."""
        site = self._sites.get(site_of(url))
        return [url_match.candidate.named for url_match in site.passing(url)] if site else []

    def explain(self, page: Page) -> tuple[MatchCandidate, ...]:
        """Return how well each wrapper of the page's site matches, best first.

        If no wrapper is for its site, all are considered, but only the 20 best are returned.
        """
        site_name = site_of(page.url)
        site = self._sites.get(site_name)
        page_signature = scan(page.html).least_bytes
        trials = sorted(
            (
                _trial(candidate, page.url if site else None, page_signature)
                for candidate in (site.candidates if site else self._candidates)
            ),
            key=lambda trial: trial.rank_key,
        )
        rank_keys = [trial.rank_key for trial in trials]
        return tuple(
            MatchCandidate(
                trial.candidate.named,
                trial.url_patterns[0] if trial.url_patterns else None,
                trial.mask.text if trial.mask else None,
                trial.mask.pages if trial.mask else 0,
                trial.mask.wildcards if trial.mask else 0,
                trial.is_accepted,
                trial.agreement,
                1 + rank_keys.index(trial.rank_key),
                _verdict(trial, trials, site_name, has_tags=page_signature is not None),
            )
            for trial in (trials if site else trials[:_MOST_CONSIDERED])
        )


class _Mask(NamedTuple):
    """A mask as numbers: it covers a signature that equals `value` in all `fixed_bits`."""

    text: str
    pages: int
    wildcards: int
    fixed_bits: int
    value: int


def _mask(text: str, pages: int) -> _Mask:
    mask = Mask.from_text(text)
    fixed_bytes = bytes(
        0 if byte_number in mask.wildcards else 0xFF for byte_number in range(SIGNATURE_BYTES)
    )
    return _Mask(text, pages, len(mask.wildcards), int.from_bytes(fixed_bytes), int.from_bytes(mask.value))


class _Candidate:
    """A wrapper whose footprint is prepared for comparison."""

    def __init__(self, named: NamedWrapper) -> None:
        self.named = named
        self.footprint = named.wrapper.footprint
        masks = (_mask(*mask) for mask in self.footprint.masks)
        self._masks = sorted(masks, key=lambda mask: (-mask.pages, mask.wildcards))
        accepted = [bytes.fromhex(text) for text in self.footprint.accepted]
        self._accepted = frozenset(accepted)
        self.agreement = Signatures(accepted).agreement

    def fit(self, page_signature: bytes) -> tuple[int, int] | None:
        """Rank a signature that fits, smallest best: by the pages of the mask, then by its wildcards."""
        if mask := self.covering(page_signature):
            return -mask.pages, mask.wildcards
        return (0, 0) if self.has_accepted(page_signature) else None

    def covering(self, page_signature: bytes) -> _Mask | None:
        """Return the mask with the most pages that covers a signature."""
        number = int.from_bytes(page_signature)
        return next((mask for mask in self._masks if number & mask.fixed_bits == mask.value), None)

    def has_accepted(self, page_signature: bytes) -> bool:
        """Return whether a known page has exactly this signature."""
        return page_signature in self._accepted


class _UrlMatch(NamedTuple):
    """A wrapper that matches by URL, and how many bytes must agree if its masks do not fit."""

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

    def passing(self, url: str) -> list[_UrlMatch]:
        """Return the wrappers with a pattern that matches a URL, in their order."""
        needed: dict[int, int] = {}
        for pattern_number in self._patterns.matching(url):
            bytes_required, numbers = self._owners[pattern_number]
            for candidate_number in numbers:
                needed[candidate_number] = min(bytes_required, needed.get(candidate_number, bytes_required))
        return [
            _UrlMatch(self.candidates[candidate_number], needed[candidate_number])
            for candidate_number in sorted(needed)
        ]


def bytes_needed(pattern: str) -> int:
    """Return how many bytes of an accepted signature a page must share if its URL matches a pattern."""
    return BYTES_NEEDED if tells_pages_apart(pattern) else _BYTES_NEEDED_IF_ONLY_HOST


def _best_ranked(ranked: Sequence[tuple[tuple[int, int] | int, NamedWrapper]]) -> tuple[NamedWrapper, ...]:
    """Return all that share the best rank."""
    best = min(rank for rank, _ in ranked)
    return tuple(named for rank, named in ranked if rank == best)


def _agreeing(count: int) -> str:
    return f"{count} of {SIGNATURE_BYTES} bytes agree"


class _Trial(NamedTuple):
    """A wrapper compared with a page; `url_patterns` are those that match."""

    candidate: _Candidate
    url_patterns: Sequence[str]
    mask: _Mask | None
    is_accepted: bool
    agreement: int

    @property
    def needed(self) -> int:
        return min(map(bytes_needed, self.url_patterns))

    @property
    def rank_key(self) -> tuple[_Stage, int, int]:
        """The smallest is best: the stage reached, then how well it matches at that stage."""
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


def _trial(candidate: _Candidate, url: str | None, page_signature: bytes | None) -> _Trial:
    """Compare a wrapper with a page; without a URL if that is of another site."""
    patterns = () if url is None else candidate.footprint.url_patterns
    return _Trial(
        candidate,
        [pattern for pattern in patterns if url is not None and matches(pattern, url)],
        candidate.covering(page_signature) if page_signature else None,
        page_signature is not None and candidate.has_accepted(page_signature),
        candidate.agreement(page_signature) if page_signature else 0,
    )


def _verdict(trial: _Trial, trials: Sequence[_Trial], site: str, *, has_tags: bool) -> str:
    """Explain why a wrapper won or lost against the others, of which the first is the best."""
    best = trials[0]
    stage = trial.rank_key[0]
    if stage == _Stage.OTHER_URL:
        return _verdict_on_url(trial.candidate.footprint, site)
    if not has_tags:
        return "Its URL pattern matches, but the page has no tags."
    if stage == _Stage.UNLIKE:
        return (
            f"Its URL pattern matches, but {_agreeing(trial.agreement)} with the signatures of its pages, "
            f"and {trial.needed} must."
        )
    if trial.rank_key == best.rank_key:
        equals = sum(other.rank_key == best.rank_key for other in trials) - 1
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
    """Describe how well a wrapper fits that fits or is near."""
    if trial.mask is not None:
        built = "page is" if trial.mask.pages == 1 else "pages are"
        alike = _agreeing(SIGNATURE_BYTES - trial.mask.wildcards)
        return f"{trial.mask.pages:,} of its {built} built like this one ({alike})"
    if trial.is_accepted:
        return "one of its pages is built just like this one"
    return f"one of its pages is built somewhat like this one ({_agreeing(trial.agreement)})"
