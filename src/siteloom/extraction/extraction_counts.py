"""ExtractionCounts: pages, records, values and failures by wrapper, site and attribute, as a typed object."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# There are few shapes of URLs unless each URL has one of its own; then this many are distinguished.
MOST_SHAPES = 1_000
OTHER_SHAPES = "other URLs"


@dataclass(slots=True)
class PageCounts:
    """Pages: of a run, or of one site in it.

    `passed_url` and `passed_signature` count the wrappers that the URL and the signature of pages left to
    choose from, `failures` the pages without a record by reason, `unmatched` the pages without a wrapper.
    """

    pages: int = 0
    passed_url: int = 0
    passed_signature: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    unmatched: int = 0

    def add(self, counts: PageCounts) -> None:
        """Add other counts."""
        self.pages += counts.pages
        self.passed_url += counts.passed_url
        self.passed_signature += counts.passed_signature
        self.failures.update(counts.failures)
        self.unmatched += counts.unmatched


@dataclass(slots=True)
class WrapperCounts:
    """Records of one wrapper.

    `incomplete` records lack a mandatory attribute. By attribute: `filled` records have a value, of
    `withheld` ones a value was left out, and of `breaching` ones a value breaks the value contract.
    """

    records: int = 0
    incomplete: int = 0
    filled: Counter[str] = field(default_factory=Counter)
    withheld: Counter[str] = field(default_factory=Counter)
    breaching: Counter[str] = field(default_factory=Counter)

    def add(self, counts: WrapperCounts) -> None:
        """Add other counts."""
        self.records += counts.records
        self.incomplete += counts.incomplete
        self.filled.update(counts.filled)
        self.withheld.update(counts.withheld)
        self.breaching.update(counts.breaching)

    @property
    def attributes(self) -> list[str]:
        """The attributes that have a value in some record, or of which one was withheld."""
        return sorted(self.filled.keys() | self.withheld.keys())


@dataclass(slots=True)
class ExtractionCounts:
    """Everything that is counted while pages are extracted.

    `total` counts all pages, `sites` those of each site that has wrappers, `wrappers` the records of each
    wrapper. `skipped` counts documents that are not pages, by reason, and `unmatched_shapes` pages without a
    wrapper by the shape of their URL. `site_pages` are the pages of a site whose URL is that of a wrapper,
    and `fruitless` those of them that gave no record.
    """

    total: PageCounts = field(default_factory=PageCounts)
    records: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    unmatched_shapes: Counter[str] = field(default_factory=Counter)
    site_pages: Counter[str] = field(default_factory=Counter)
    fruitless: Counter[str] = field(default_factory=Counter)
    sites: defaultdict[str, PageCounts] = field(default_factory=lambda: defaultdict(PageCounts))
    wrappers: defaultdict[str, WrapperCounts] = field(default_factory=lambda: defaultdict(WrapperCounts))

    @property
    def pages(self) -> int:
        """How many pages were read."""
        return self.total.pages

    @property
    def failures(self) -> Counter[str]:
        """How many pages gave no record, by reason."""
        return self.total.failures

    @property
    def failed(self) -> int:
        """How many pages gave no record."""
        return self.total.failures.total()

    def of_wrapper(self, name: str) -> WrapperCounts:
        """The counts of a wrapper, which are zero if it gave no record."""
        return self.wrappers.get(name) or WrapperCounts()

    def most_records(self) -> list[tuple[str, WrapperCounts]]:
        """The wrappers that gave records, those with the most first."""
        giving = [(name, counts) for name, counts in self.wrappers.items() if counts.records]
        return sorted(giving, key=lambda pair: (-pair[1].records, pair[0]))

    def add_unmatched(self, shape: str, count: int = 1, most_shapes: int = MOST_SHAPES) -> None:
        """Count pages without a wrapper whose URL has a shape; of too many shapes only the first are kept."""
        if shape not in self.unmatched_shapes and len(self.unmatched_shapes) >= most_shapes:
            shape = OTHER_SHAPES
        self.unmatched_shapes[shape] += count
        self.total.unmatched += count

    def add(self, counts: ExtractionCounts, most_shapes: int = MOST_SHAPES) -> None:
        """Add the counts of other pages; the most frequent shapes of URLs are kept."""
        unmatched = self.total.unmatched
        self.total.add(counts.total)
        self.total.unmatched = unmatched
        for shape, count in most_first(counts.unmatched_shapes):
            self.add_unmatched(shape, count, most_shapes)
        self.records += counts.records
        self.skipped.update(counts.skipped)
        self.site_pages.update(counts.site_pages)
        self.fruitless.update(counts.fruitless)
        for site, of_site in counts.sites.items():
            self.sites[site].add(of_site)
        for name, of_wrapper in counts.wrappers.items():
            self.wrappers[name].add(of_wrapper)

    def to_rows(self) -> list[list[Any]]:
        """The counts as JSON can hold them: rows of a key and a count, as version 1.0 wrote them."""
        return [[*key, count] for key, count in sorted(self._items()) if count]

    def _items(self) -> Iterator[tuple[tuple[str, ...], int]]:
        yield ("records",), self.records
        yield from _page_items(self.total, ())
        for key, counter in (
            ("skipped", self.skipped),
            ("unmatched", self.unmatched_shapes),
            ("pages of", self.site_pages),
            ("fruitless", self.fruitless),
        ):
            yield from (((key, name), count) for name, count in counter.items())
        for site, of_site in self.sites.items():
            yield from _page_items(of_site, ("on", site))
            yield ("on", site, "unmatched"), of_site.unmatched
        for name, of_wrapper in self.wrappers.items():
            yield ("records of", name), of_wrapper.records
            yield ("incomplete", name), of_wrapper.incomplete
            for key, counter in (
                ("filled", of_wrapper.filled),
                ("withheld", of_wrapper.withheld),
                ("breaching", of_wrapper.breaching),
            ):
                yield from (((key, name, attribute), count) for attribute, count in counter.items())

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[Any]]) -> ExtractionCounts:
        """The counts that `to_rows` wrote; rows with unknown keys are left out."""
        counts = cls()
        for *key, count in rows:
            counts._add_row(tuple(key), count)
        return counts

    def _add_row(self, key: tuple[str, ...], count: int) -> None:
        match key:
            case ("records",):
                self.records += count
            case ("skipped", reason):
                self.skipped[reason] += count
            case ("unmatched", shape):
                self.unmatched_shapes[shape] += count
                self.total.unmatched += count
            case ("pages of", site):
                self.site_pages[site] += count
            case ("fruitless", site):
                self.fruitless[site] += count
            case ("records of", name):
                self.wrappers[name].records += count
            case ("incomplete", name):
                self.wrappers[name].incomplete += count
            case ("filled", name, attribute):
                self.wrappers[name].filled[attribute] += count
            case ("withheld", name, attribute):
                self.wrappers[name].withheld[attribute] += count
            case ("breaching", name, attribute):
                self.wrappers[name].breaching[attribute] += count
            case ("on", site, *of_site):
                _add_page_row(self.sites[site], tuple(of_site), count)
            case _:
                _add_page_row(self.total, key, count)


def sum_of(parts: Iterable[ExtractionCounts]) -> ExtractionCounts:
    """The sum of the counts of several groups of pages."""
    total = ExtractionCounts()
    for counts in parts:
        total.add(counts)
    return total


def most_first(counter: Counter[str]) -> list[tuple[str, int]]:
    """Names with their counts, the most frequent first and equally frequent ones by name."""
    return sorted(counter.items(), key=lambda pair: (-pair[1], pair[0]))


def _page_items(counts: PageCounts, prefix: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    yield (*prefix, "pages"), counts.pages
    yield (*prefix, "passed url"), counts.passed_url
    yield (*prefix, "passed signature"), counts.passed_signature
    yield from (((*prefix, "failed", reason), count) for reason, count in counts.failures.items())


def _add_page_row(counts: PageCounts, key: tuple[str, ...], count: int) -> None:
    match key:
        case ("pages",):
            counts.pages += count
        case ("passed url",):
            counts.passed_url += count
        case ("passed signature",):
            counts.passed_signature += count
        case ("failed", reason):
            counts.failures[reason] += count
        case ("unmatched",):
            counts.unmatched += count
