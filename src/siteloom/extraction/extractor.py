"""From pages to records: each page finds its wrapper, or it is told why it has none."""

from __future__ import annotations

import json
import logging
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from siteloom.core.errors import TooMuchFound
from siteloom.core.model import DamagedPage, Failure, Page, Skipped
from siteloom.core.settings import ParseSettings
from siteloom.core.urls import site_of, url_shape
from siteloom.extraction.record_rows import record_row
from siteloom.html.parser import parse
from siteloom.html.time_limit import within
from siteloom.sources.page_source import SourceWithSites
from siteloom.wrappers.matching import Matcher, NamedWrapper
from siteloom.wrappers.page_layouts import is_breaching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from siteloom.core.model import Record
    from siteloom.html.time_limit import Lost
    from siteloom.sources.page_source import PageSource, SourceItem
    from siteloom.wrappers.matching import Match
    from siteloom.wrappers.named_wrappers import WrapperText
    from siteloom.wrappers.wrapper import Wrapper

_log = logging.getLogger(__name__)

NO_VALUES = "no values"
LACKING = "most mandatory attributes missing"
BROKEN = "extraction failed"

# So many shapes of URLs are told apart; there are few unless each URL has one of its own.
_MOST_SHAPES = 1_000
_OTHER_SHAPES = "other URLs"
_UNMATCHED = "unmatched"
_ON_SITE = "on"

Tally: TypeAlias = Counter[tuple[str, ...]]
"""What was counted, by what: `pages`, `records`, `passed url`, `passed signature`; `failed` and a reason;
`skipped` and a reason; `unmatched` and a shape of URLs; `pages of` a site that have the URL of a wrapper, and
those of them that gave no record as `fruitless`; `records of` and a wrapper; `filled`, `withheld` and
`breaching` (for values that break their contract), a wrapper and an attribute; `incomplete` and a wrapper for
records without a mandatory attribute. After `on` and a site with wrappers stands what `tally_on` gives."""


class Extracted(NamedTuple):
    """What came of a page: records of one wrapper, or a failure."""

    match: Match
    wrapper: NamedWrapper | None
    records: tuple[Record, ...]
    failure: Failure | None


class RecordLine(NamedTuple):
    """A record as a line of JSON, and what it is found by."""

    url: str
    wrapper: str
    version: int | None
    content: str


class ShardResult(NamedTuple):
    """What came of a shard of pages."""

    lines: list[RecordLine]
    failures: list[Failure]
    tally: Tally


def tally_rows(tally: Tally) -> list[list[Any]]:
    """A tally as JSON can hold it."""
    return [[*key, count] for key, count in sorted(tally.items())]


def tally_from(rows: Iterable[Sequence[Any]]) -> Tally:
    """The tally that `tally_rows` wrote."""
    return Counter({tuple(key): count for *key, count in rows})


def add_tally(total: Tally, tally: Tally, most_shapes: int = _MOST_SHAPES) -> None:
    """Add a tally to the total, which stays small even if each URL has a shape of its own."""
    shapes = sum(key[0] == _UNMATCHED for key in total)
    for key, count in tally.items():
        if key[0] == _UNMATCHED and key not in total:
            if shapes >= most_shapes:
                total[_UNMATCHED, _OTHER_SHAPES] += count
                continue
            shapes += 1
        total[key] += count


def counted_by_name(tally: Tally, what: str) -> list[tuple[str, int]]:
    """What was counted under names, the most first."""
    found = [(key[1], count) for key, count in tally.items() if key[0] == what]
    return sorted(found, key=lambda one: (-one[1], one[0]))


def tally_on(tally: Tally, site: str) -> Tally:
    """What was counted on the pages of a site: `pages`, the wrappers they `passed`, `failed`, `unmatched`."""
    return Counter({key[2:]: count for key, count in tally.items() if key[:2] == (_ON_SITE, site)})


def filled_attributes(tally: Tally) -> list[tuple[str, str, int, int]]:
    """For each wrapper and attribute, how many records have it and of how many it was withheld."""
    names = sorted({key[1:] for key in tally if key[0] in ("filled", "withheld")})
    return [
        (wrapper, attribute, tally["filled", wrapper, attribute], tally["withheld", wrapper, attribute])
        for wrapper, attribute in names
    ]


class Extractor:
    """Wrappers made ready for many pages."""

    def __init__(self, wrappers: Iterable[NamedWrapper], limits: ParseSettings = ParseSettings()) -> None:
        self._matcher = Matcher(wrappers)
        self._limits = limits

    def extract(self, page: Page) -> Extracted:
        """The records of a page by the wrapper that it is for, if it gives no more than it may, and in time.

        If several wrappers are equally good, the one that finds most mandatory attributes is taken.
        """
        match = self._matcher.match(page)
        if match.failure is not None:
            return Extracted(match, None, (), match.failure)
        found = within(self._limits.max_seconds, page.url, lambda: self._extracted(page, match))
        return Extracted(match, None, (), found) if isinstance(found, Failure) else found

    def _extracted(self, page: Page, match: Match) -> Extracted | Failure:
        root = parse(
            page,
            self._limits,
            scan=match.scan,
            collect_ids=any(named.wrapper.looks_for_ids for named in match.chosen),
        )
        if isinstance(root, Failure):
            return root
        tried = []
        for named in match.chosen:
            found = named.wrapper.records(root, page.url, match.signature, self._limits)
            try:
                tried.append((named, tuple(found)))
            except TooMuchFound as error:
                return Failure(page.url, error.reason, error.detail)
        named, records = max(tried, key=lambda one: _mandatory_found(*one)) if len(tried) > 1 else tried[0]
        is_nearest = match.passed_signature == 0
        return Extracted(match, named, records, _fault(page.url, named, records, is_nearest=is_nearest))


def _fault(url: str, named: NamedWrapper, records: Sequence[Record], *, is_nearest: bool) -> Failure | None:
    """Why the records of a page are none.

    Values that stand alone where others always stand with them are more likely those of something else: half
    of the mandatory attributes must be there, and more on a page that is merely the nearest to those known.
    """
    if not any(record.values for record in records):
        return Failure(url, NO_VALUES, f"found by {named}")
    mandatory = len(_mandatory(named.wrapper))
    found = _mandatory_found(named, records)
    if mandatory and 2 * found < mandatory + is_nearest:
        return Failure(url, LACKING, f"{found} of {mandatory} found by {named}")
    return None


def _mandatory_found(named: NamedWrapper, records: Sequence[Record]) -> int:
    return max((len(record.values.keys() & _mandatory(named.wrapper)) for record in records), default=0)


def _mandatory(wrapper: Wrapper) -> set[str]:
    return {name for name, rules in wrapper.attributes.items() if rules.attribute.mandatory}


class ShardExtraction:
    """The work of `extract` on one shard of pages, for an engine: see `siteloom.engines.engine.Work`."""

    def __init__(self, wrappers: Sequence[WrapperText], limits: ParseSettings) -> None:
        with warnings.catch_warnings(action="ignore"):  # whoever planned the work has told them, once
            loaded = [wrapper.loaded() for wrapper in wrappers]
            self._extractor = Extractor(loaded, limits)
        # Of other sites there may be millions in a crawl.
        self._sites = frozenset(
            site
            for kept, named in zip(wrappers, loaded, strict=True)
            for site in ([kept.site] if kept.site else named.wrapper.footprint.sites)
        )

    def __call__(self, shard: PageSource, lost: Lost, step: Callable[[int], None]) -> ShardResult:
        """The records, failures and counts of all pages of a shard."""
        result = ShardResult([], [], Counter())
        unmatched: Tally = Counter()
        step(0)
        for number, (site, item) in enumerate(_read_with_sites(shard)):
            match item:
                case DamagedPage():
                    on_site = (_ON_SITE, site) if site in self._sites else ()
                    _add(result.tally, on_site, "pages")
                    _fail(result, item.failure, on_site)
                case Page():
                    on_site = (_ON_SITE, site) if site in self._sites else ()
                    _add(result.tally, on_site, "pages")
                    if number in lost.steps:
                        _fail(result, lost.failure(number, item.url), on_site)
                    else:
                        self._extract(item, result, unmatched, on_site)
                case Failure():
                    _fail(result, item)
                case Skipped():
                    result.tally["skipped", item.reason] += 1
                case _:
                    pass  # a stylesheet or an image
            step(number + 1)  # to read it is part of it
        result.tally.update(unmatched)
        return result

    def _extract(self, page: Page, result: ShardResult, unmatched: Tally, on_site: tuple[str, ...]) -> None:
        """Add what comes of a page; what is counted for its site, if that is, has keys that begin so."""
        try:
            found = self._extractor.extract(page)
            lines = [] if found.failure else [_line(found.wrapper, record) for record in found.records]
        except Exception as error:  # noqa: BLE001 - one page must not end the work on millions
            _log.debug("extraction failed on %s", page.url, exc_info=True)
            _fail(result, Failure(page.url, BROKEN, repr(error)), on_site)
            return
        tally = result.tally
        if found.match.passed_url:
            site = site_of(page.url)
            tally["pages of", site] += 1
            if found.failure is not None:
                tally["fruitless", site] += 1
        _add(tally, on_site, "passed url", count=found.match.passed_url)
        _add(tally, on_site, "passed signature", count=found.match.passed_signature)
        if found.failure is not None:
            _fail(result, found.failure, on_site)
            if found.wrapper is None and not found.match.chosen:
                if on_site:
                    tally[*on_site, _UNMATCHED] += 1
                key = (_UNMATCHED, url_shape(page.url))
                is_one_too_many = key not in unmatched and len(unmatched) >= _MOST_SHAPES
                unmatched[(_UNMATCHED, _OTHER_SHAPES) if is_one_too_many else key] += 1
            return
        assert found.wrapper is not None
        _count(tally, found.wrapper, found.records)
        result.lines.extend(lines)


def _read_with_sites(shard: PageSource) -> Iterator[tuple[str, SourceItem]]:
    """What is in a shard, with the sites of pages: in a store they may be kept under another name."""
    if isinstance(shard, SourceWithSites):
        return shard.read_with_sites()
    return ((site_of(item.url), item) for item in shard.read())


def _line(named: NamedWrapper | None, record: Record) -> RecordLine:
    assert named is not None
    row = record_row(record, named.name, named.version)
    return RecordLine(record.url, named.name, named.version, json.dumps(row, ensure_ascii=False))


def _fail(result: ShardResult, failure: Failure, on_site: tuple[str, ...] = ()) -> None:
    result.failures.append(failure)
    _add(result.tally, on_site, "failed", failure.reason)


def _add(tally: Tally, on_site: tuple[str, ...], *key: str, count: int = 1) -> None:
    """Count something in all, and for the site of the page it is about."""
    tally[key] += count
    if on_site:
        tally[*on_site, *key] += count


def _count(tally: Tally, named: NamedWrapper, records: Sequence[Record]) -> None:
    mandatory = _mandatory(named.wrapper)
    tally["records",] += len(records)
    tally["records of", named.name] += len(records)
    for record in records:
        for attribute in record.values:
            tally["filled", named.name, attribute] += 1
            if is_breaching(named.wrapper.attributes, record, attribute):
                tally["breaching", named.name, attribute] += 1
        for attribute in record.withheld:
            tally["withheld", named.name, attribute] += 1
        if not mandatory <= record.values.keys():
            tally["incomplete", named.name] += 1
