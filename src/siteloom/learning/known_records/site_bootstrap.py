"""Learn the wrapper of a site from known records, without annotated pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from siteloom.core.errors import UsageError
from siteloom.core.model import Failure, Page, Seed
from siteloom.core.settings import ParseSettings
from siteloom.html.page_text_arrays import TextCollector
from siteloom.html.parser import parse
from siteloom.learning.induction.learning_session import Schema
from siteloom.learning.known_records.aligned_pages import NoOverlap, known_pages, known_records
from siteloom.learning.known_records.bootstrap_result import AttributeEvidence, Bootstrapped, SeedMatch
from siteloom.learning.known_records.findattrpos import find_attribute_positions
from siteloom.learning.known_records.position_wrapper import positions_wrapper
from siteloom.learning.known_records.trial_wrapper import learn_and_try
from siteloom.sources.rows_to_seeds import seed_of

if TYPE_CHECKING:
    from siteloom.html.page_text_arrays import PageTexts
    from siteloom.learning.known_records.aligned_pages import KnownRecords

Method = Literal["bits", "findattrpos", "findattrposw"]
METHODS: tuple[Method, ...] = get_args(Method)

_NOT_TRIED = "it was not tried on other pages than those that suggested it"

SeedLike: TypeAlias = "Seed | Mapping[str, object]"


def bootstrap(
    seeds: Iterable[SeedLike],
    pages: Iterable[Page],
    core: Sequence[str],
    schema: Schema = None,
    method: Method = "bits",
    *,
    limits: ParseSettings = ParseSettings(),
) -> Bootstrapped:
    """Learn a wrapper for the pages of a site from records that are known from elsewhere.

    A seed is a `Seed` or a mapping of attributes to one or several texts, with an optional `_source`. There
    is no wrapper unless it finds all `core` attributes. The `schema` is that of `learn`. Methods are `bits`,
    and `findattrpos` and `findattrposw` as in the paper on content redundancy.
    """
    return SiteBootstrap(seeds=seeds, core=core, schema=schema, method=method, limits=limits)(pages)


class SiteBootstrap:
    """Known records, prepared for the pages of any number of sites: see `bootstrap`."""

    def __init__(
        self,
        seeds: Iterable[SeedLike],
        core: Sequence[str],
        schema: Schema = None,
        method: Method = "bits",
        limits: ParseSettings = ParseSettings(),
    ) -> None:
        if method not in METHODS:
            raise UsageError(f"No method {method!r} to bootstrap by: use one of {', '.join(METHODS)}.")
        self._seeds = [as_seed(seed) for seed in seeds]
        self._core = core if isinstance(core, str) else tuple(core)
        _check_seeds(self._seeds, self._core)
        self._schema: Schema = schema
        self._method: Method = method
        self._limits = limits

    @cached_property
    def records(self) -> KnownRecords:
        """The seeds, prepared to be compared with pages."""
        return known_records(self._seeds, self._core)

    def __call__(self, pages: Iterable[Page]) -> Bootstrapped:
        """Bootstrap the pages of one site."""
        read = _parse_pages(pages, self._limits)
        if read.failures and not read.pages:
            reason = none_readable(len(read.failures), read.failures[0].reason)
            return _refused(NoOverlap(reason), self._seeds, read)
        if self._method == "bits":
            return _bootstrap_by_bits(
                seeds=self._seeds,
                records=self.records,
                read=read,
                core=self._core,
                schema=self._schema,
                limits=self._limits,
            )
        return _bootstrap_by_positions(
            seeds=self._seeds, read=read, core=self._core, method=self._method, limits=self._limits
        )


def none_readable(pages: int, reason: str) -> str:
    """Return the message that none of the pages can be read, with the reason of the first failure."""
    subject = "The only page cannot" if pages == 1 else f"None of the {pages:,} pages can"
    return f"{subject} be read: {reason}."


def as_seed(seed: SeedLike) -> Seed:
    """Return a record as a `Seed`; it may be a mapping of attributes to values."""
    return seed if isinstance(seed, Seed) else seed_of(seed)


def _check_seeds(seeds: Sequence[Seed], core: Sequence[str]) -> None:
    if isinstance(core, str) or not core:
        raise UsageError('Name the attributes that must be found: core=("name", "address").')
    names = {name for seed in seeds for name, texts in seed.values.items() if texts}
    if not names:
        raise UsageError("The seeds have no values: give records with at least two attributes.")
    if missing := [name for name in core if name not in names]:
        raise UsageError(
            f"No seed has the attribute {missing[0]}, which must be found: the seeds have "
            f"{', '.join(sorted(names))}."
        )


class _ParsedPages(NamedTuple):
    """The readable pages with their texts, and the failures of the others."""

    pages: tuple[Page, ...]
    texts: PageTexts
    failures: tuple[Failure, ...]


def _parse_pages(pages: Iterable[Page], limits: ParseSettings) -> _ParsedPages:
    collector = TextCollector()
    readable: list[Page] = []
    failures: list[Failure] = []
    for page in pages:
        root = parse(page, limits.learned)
        if isinstance(root, Failure):
            failures.append(root)
        else:
            collector.add(root)
            readable.append(page)
    return _ParsedPages(tuple(readable), collector.collected(), tuple(failures))


def _bootstrap_by_bits(
    seeds: Sequence[Seed],
    records: KnownRecords,
    read: _ParsedPages,
    core: Sequence[str],
    schema: Schema,
    limits: ParseSettings,
) -> Bootstrapped:
    site_pages = known_pages(records, read.texts)
    if isinstance(site_pages, NoOverlap):
        return _refused(site_pages, seeds, read)
    result = learn_and_try(known_pages=site_pages, pages=read.pages, schema=schema, limits=limits)
    missing = [name for name in core if result.attributes[name].verdict != "accepted"]
    matched = len({match.seed for match in result.evidence})
    reason = ""
    if missing:
        shown = ", ".join(missing)
        reason = (
            f"Not enough overlap: {matched:,} of {len(seeds):,} known records were found on "
            f"{len(site_pages.pages):,} of {len(read.pages):,} pages, but not {shown}"
            f" ({result.attributes[missing[0]].reason})."
        )
    return Bootstrapped(
        wrapper=None if missing else result.wrapper,
        reason=reason,
        evidence=result.evidence,
        attributes=result.attributes,
        suggestions=result.suggestions,
        urls=result.urls,
        seeds=len(seeds),
        seeds_matched=matched,
        pages=len(read.pages),
        pages_matched=len(site_pages.pages),
        failures=read.failures,
        disagreements=result.disagreements,
    )


def _refused(overlap: NoOverlap, seeds: Sequence[Seed], read: _ParsedPages) -> Bootstrapped:
    return Bootstrapped(
        wrapper=None,
        reason=overlap.reason,
        evidence=(),
        attributes={},
        suggestions=(),
        urls=(),
        seeds=len(seeds),
        seeds_matched=overlap.seeds,
        pages=len(read.pages),
        pages_matched=overlap.pages,
        failures=read.failures,
    )


def _bootstrap_by_positions(
    seeds: Sequence[Seed],
    read: _ParsedPages,
    core: Sequence[str],
    method: Literal["findattrpos", "findattrposw"],
    limits: ParseSettings,
) -> Bootstrapped:
    positions = find_attribute_positions(seeds, read.texts, method)
    evidence = tuple(
        SeedMatch(
            seed=agreement.seed,
            url=read.pages[agreement.page].url,
            attribute=agreement.attribute,
            position=positions.positions[agreement.attribute],
            value=agreement.value,
            text=agreement.text,
            similarity=agreement.similarity,
        )
        for agreement in positions.agreements
    )
    names = dict.fromkeys(name for seed in seeds for name in seed.values)
    attributes = {
        name: AttributeEvidence(
            verdict="accepted",
            pairs=positions.support,
            agreement=1.0,
            shuffled=0.0,
            filled=positions.filled[name],
            reason=_NOT_TRIED,
        )
        if name in positions.positions
        else AttributeEvidence(
            verdict="refused",
            pairs=0,
            agreement=0.0,
            shuffled=0.0,
            filled=0.0,
            reason="in no set of positions with enough pages",
        )
        for name in names
    }
    matched, pages = len({match.seed for match in evidence}), len({match.url for match in evidence})
    missing = [name for name in core if name not in positions.positions]
    reason = (
        f"Not enough overlap: no positions of {', '.join(missing)} agree with the other attributes on enough "
        f"of the {len(read.pages):,} pages."
        if missing
        else ""
    )
    return Bootstrapped(
        wrapper=None if missing else positions_wrapper(positions, read.pages, limits),
        reason=reason,
        evidence=evidence,
        attributes=attributes,
        suggestions=(),
        urls=tuple(page.url for page in read.pages),
        seeds=len(seeds),
        seeds_matched=matched,
        pages=len(read.pages),
        pages_matched=pages,
        failures=read.failures,
    )
