"""From known records to the wrapper of a site, with no page annotated."""

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

_NOT_TRIED = "its pages were chosen by it, and it was tried on no others"

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

    A seed is a `Seed`, or maps attributes to a text or several, and `_source`, if it likes,
    to where it is known from. The wrapper must find the `core` attributes, else there is none.
    The `schema` is that of `learn`. Methods are `bits`, and `findattrpos` and `findattrposw`
    as in the paper on content redundancy.
    """
    return SiteBootstrap(seeds, core, schema, method, limits)(pages)


class SiteBootstrap:
    """Known records made ready for the pages of any number of sites: see `bootstrap`."""

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
        """The seeds as pages are compared with them."""
        return known_records(self._seeds, self._core)

    def __call__(self, pages: Iterable[Page]) -> Bootstrapped:
        """What comes of the pages of a site."""
        read = _parse_pages(pages, self._limits)
        if read.failures and not read.pages:
            reason = none_readable(len(read.failures), read.failures[0].reason)
            return _refused(NoOverlap(reason), self._seeds, read)
        if self._method == "bits":
            return _bootstrap_by_bits(self._seeds, self.records, read, self._core, self._schema, self._limits)
        return _bootstrap_by_positions(self._seeds, read, self._core, self._method, self._limits)


def none_readable(pages: int, reason: str) -> str:
    """Why nothing comes of so many pages, of which the first cannot be read for a reason."""
    subject = "The only page cannot" if pages == 1 else f"None of the {pages:,} pages can"
    return f"{subject} be read: {reason}."


def as_seed(seed: SeedLike) -> Seed:
    """A record, also as a mapping of attributes to values."""
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
    """The pages that can be parsed, with their texts, and those that cannot."""

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
    known = known_pages(records, read.texts)
    if isinstance(known, NoOverlap):
        return _refused(known, seeds, read)
    result = learn_and_try(known, read.pages, schema, limits)
    missing = [name for name in core if result.attributes[name].verdict != "accepted"]
    matched = len({match.seed for match in result.evidence})
    reason = ""
    if missing:
        shown = ", ".join(missing)
        reason = (
            f"Not enough overlap: {matched:,} of {len(seeds):,} known records were found on "
            f"{len(known.pages):,} of {len(read.pages):,} pages, but not {shown}"
            f" ({result.attributes[missing[0]].reason})."
        )
    return Bootstrapped(
        None if missing else result.wrapper,
        reason,
        result.evidence,
        result.attributes,
        result.suggestions,
        result.urls,
        len(seeds),
        matched,
        len(read.pages),
        len(known.pages),
        read.failures,
        result.disagreements,
    )


def _refused(overlap: NoOverlap, seeds: Sequence[Seed], read: _ParsedPages) -> Bootstrapped:
    return Bootstrapped(
        None,
        overlap.reason,
        (),
        {},
        (),
        (),
        len(seeds),
        overlap.seeds,
        len(read.pages),
        overlap.pages,
        read.failures,
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
            agreement.seed,
            read.pages[agreement.page].url,
            agreement.attribute,
            positions.positions[agreement.attribute],
            agreement.value,
            agreement.text,
            agreement.similarity,
        )
        for agreement in positions.agreements
    )
    names = dict.fromkeys(name for seed in seeds for name in seed.values)
    attributes = {
        name: AttributeEvidence("accepted", positions.support, 1.0, 0.0, positions.filled[name], _NOT_TRIED)
        if name in positions.positions
        else AttributeEvidence("refused", 0, 0.0, 0.0, 0.0, "in no set of positions with enough pages")
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
        None if missing else positions_wrapper(positions, read.pages, limits),
        reason,
        evidence,
        attributes,
        (),
        tuple(page.url for page in read.pages),
        len(seeds),
        matched,
        len(read.pages),
        pages,
        read.failures,
    )
