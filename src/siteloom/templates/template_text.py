"""Identify template text with a segment table, which counts the pages of a site that contain each segment.

A segment is a text at a path of tags. A block of a page is template if most of its characters are in template
segments. A segment that was not met for a long time is forgotten, sooner if fewer pages had it, so the table
stays small on an endless stream of pages (Wang, Fang, Cheng, Guo and Xu, WWW 2008). Time is counted in pages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, floor
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from siteloom.core.errors import UnreadablePage, UsageError
from siteloom.core.model import Failure, Page
from siteloom.html.parser import Element, parse
from siteloom.templates.text_blocks import Block, PageSegments, Segmenter, marked_blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class LivingTime:
    """The number of pages for which a segment is remembered after it was last met.

    It is `once` for a segment of one page, and approaches `longest` with the number of its pages on a
    logistic curve; the paper has the form of the curve, but no numbers.
    """

    once: int = 1_000
    longest: int = 20_000
    rate: float = 0.5

    def __post_init__(self) -> None:
        if self.once < 1 or self.longest < 1:
            raise UsageError(
                f"The living time of a segment must be at least one page, not {min(self.once, self.longest)}."
            )

    def for_pages(self, pages: int) -> float:
        """Return the living time of a segment that a number of pages had."""
        return self.longest / (1 + (self.longest / self.once - 1) * exp(-self.rate * (pages - 1)))


class SegmentCounts(NamedTuple):
    """The counts of the segments of a number of pages, by their keys, ascending.

    A row with the path 0 is a path that has text; other rows are segments, with the key of their path in
    `paths`. `counts` are numbers of pages. `born` is the number of pages with the path before the first one
    with the segment, `latest` that number when the segment was last met, on the page `last_pages`.
    """

    pages: int
    keys: NDArray[np.uint64]
    paths: NDArray[np.uint64]
    counts: NDArray[np.int64]
    born: NDArray[np.int64]
    latest: NDArray[np.int64]
    last_pages: NDArray[np.int64]


_NO_KEYS = np.empty(0, np.uint64)
_NO_NUMBERS = np.empty(0, np.int64)

NO_SEGMENTS = SegmentCounts(
    pages=0,
    keys=_NO_KEYS,
    paths=_NO_KEYS,
    counts=_NO_NUMBERS,
    born=_NO_NUMBERS,
    latest=_NO_NUMBERS,
    last_pages=_NO_NUMBERS,
)


def merge_counts(earlier: SegmentCounts, later: SegmentCounts, living: LivingTime | None) -> SegmentCounts:
    """Merge the counts of some pages with those of later pages, and drop segments due to be forgotten.

    The result is that of one table for all pages, if it forgets nothing in between.
    """
    path_pages = _look_up(earlier, np.where(later.paths == 0, later.keys, later.paths))
    known_rows = _rows_of(earlier, later.keys)
    is_in_earlier = known_rows >= 0
    known_rows = known_rows[is_in_earlier]
    counts, latest, last_pages = earlier.counts.copy(), earlier.latest.copy(), earlier.last_pages.copy()
    counts[known_rows] += later.counts[is_in_earlier]
    latest[known_rows] = (later.latest + path_pages)[is_in_earlier]
    last_pages[known_rows] = later.last_pages[is_in_earlier] + earlier.pages
    is_new = ~is_in_earlier
    keys = np.concatenate([earlier.keys, later.keys[is_new]])
    order = np.argsort(keys, kind="stable")
    is_segment = (later.paths != 0)[is_new]
    merged_counts = SegmentCounts(
        pages=earlier.pages + later.pages,
        keys=keys[order],
        paths=np.concatenate([earlier.paths, later.paths[is_new]])[order],
        counts=np.concatenate([counts, later.counts[is_new]])[order],
        born=np.concatenate([earlier.born, later.born[is_new] + path_pages[is_new] * is_segment])[order],
        latest=np.concatenate([latest, later.latest[is_new] + path_pages[is_new] * is_segment])[order],
        last_pages=np.concatenate([last_pages, later.last_pages[is_new] + earlier.pages])[order],
    )
    return merged_counts if living is None else _drop_forgotten(merged_counts, living)


def _drop_forgotten(counts: SegmentCounts, living: LivingTime) -> SegmentCounts:
    distinct, row = np.unique(counts.counts, return_inverse=True)
    living_times = np.array([living.for_pages(pages) for pages in distinct.tolist()])
    is_remembered = counts.pages - counts.last_pages <= living_times[row] if distinct.size else distinct > 0
    return SegmentCounts(
        pages=counts.pages,
        keys=counts.keys[is_remembered],
        paths=counts.paths[is_remembered],
        counts=counts.counts[is_remembered],
        born=counts.born[is_remembered],
        latest=counts.latest[is_remembered],
        last_pages=counts.last_pages[is_remembered],
    )


def _rows_of(counts: SegmentCounts, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the rows of some keys, -1 for missing keys."""
    if not counts.keys.size:
        return np.full(keys.size, -1, np.int64)
    rows = np.minimum(np.searchsorted(counts.keys, keys), counts.keys.size - 1)
    return np.where(counts.keys[rows] == keys, rows, -1)


def _look_up(counts: SegmentCounts, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the counts of some keys, 0 for missing keys."""
    rows = _rows_of(counts, keys)
    values = np.zeros(keys.size, np.int64)
    values[rows >= 0] = counts.counts[rows[rows >= 0]]
    return values


SegmentRule: TypeAlias = Literal["share", "paper"]
"""The rule for template segments. By "paper", five pages or more have the segment; by "share", also nine in
ten of the pages that have its path. The paper's rule treats values that vary little, such as genres, as
template."""

_LEAST_PAGES = 5  # the paper's
_LEAST_SHARE = 0.9

# A rare path may belong to a value, such as the style of one advertiser: it must be on one page in twenty, or
# on this many pages.
_LEAST_PATH_SHARE = 0.05
_MANY_PAGES = 100

# A menu may appear late or disappear: then the share counts from its first page to its last. But crawls have
# runs of similar pages with equal values (such as hundreds of jobs of one employer in SWDE): so these pages
# must be half of all pages with the path and at least this many, or very many.
_LONG_TIME = 300
_VERY_LONG_TIME = 1_000

_SATURATED = 200  # number of pages from which the living time hardly grows


class _Entry:
    """A segment, or a path that has text, like a row of `SegmentCounts`."""

    __slots__ = ("born", "last_page", "latest", "pages", "path")

    def __init__(self, path: int, pages: int, born: int, latest: int, last_page: int) -> None:
        self.path = path
        self.pages = pages
        self.born = born
        self.latest = latest
        self.last_page = last_page


def readable_tree(page: Page) -> Element:
    """Return the tree of a page; raise UnreadablePage if it has none."""
    root = parse(page, collect_ids=False)
    if isinstance(root, Failure):
        raise UnreadablePage(root.url, root.reason)
    return root


class SegmentTable:
    """The text segments of one site; each added page is split into blocks immediately.

    By the rule `paper`, every segment on five pages is template. With `living=None` nothing is ever
    forgotten. `siteloom.extraction.main_text` has `clean_text(page, table)`, `without_template(page, table)`
    (HTML) and `main_text(page, table)`, which needs the extra `text`. Unreadable pages raise
    `UnreadablePage`.
    """

    def __init__(self, rule: SegmentRule = "share", *, living: LivingTime | None = LivingTime()) -> None:
        if rule not in (rules := get_args(SegmentRule)):
            raise UsageError(f"The rule {rule!r} is not known: it is one of {', '.join(rules)}.")
        self._rule = rule
        self._living = living
        self._pages = 0
        self._entries: dict[int, _Entry] = {}
        self._due: defaultdict[int, list[int]] = defaultdict(list)  # keys to look at, by page
        self._segmenter = Segmenter()
        self._verdicts: dict[int, bool] = {}  # since the last page was added
        self._lives = (
            [] if living is None else [floor(living.for_pages(max(1, n))) for n in range(_SATURATED)]
        )

    def __len__(self) -> int:
        """The number of segments and paths that are remembered."""
        return len(self._entries)

    @property
    def pages(self) -> int:
        """The number of pages that were added."""
        return self._pages

    def add(self, page: Page) -> tuple[Block, ...]:
        """Add a page, and return its blocks, judged by all pages so far."""
        segments = self.segments(page)
        self.count(segments)
        return self.judged(segments)

    def blocks(self, page: Page) -> tuple[Block, ...]:
        """Return the blocks of a page, judged by the current table, without adding the page."""
        return self.judged(self.segments(page))

    def segments(self, page: Page) -> PageSegments:
        """Return the segments of a page, to be counted and judged; raise UnreadablePage if it has no tree."""
        return self.segments_of(readable_tree(page))

    def segments_of(self, root: Element) -> PageSegments:
        """Return the segments of a parsed page."""
        return self._segmenter.segments(root)

    def count(self, page: PageSegments) -> None:
        """Add the segments of a page, and forget segments that are due."""
        self._pages = now = self._pages + 1
        self._verdicts.clear()
        entries = self._entries
        born: list[int] = []
        for key, path_key in zip(page.keys, page.paths, strict=True):
            entry = entries.get(key)
            if entry is not None and entry.last_page == now:
                continue
            path = entries.get(path_key)
            if path is None:
                path = entries[path_key] = _Entry(0, 1, 0, 1, now)
                born.append(path_key)
            elif path.last_page != now:
                path.pages += 1
                path.latest = path.pages
                path.last_page = now
            if entry is None:
                entries[key] = _Entry(path_key, 1, path.pages - 1, path.pages, now)
                born.append(key)
            else:
                entry.pages += 1
                entry.latest = path.pages
                entry.last_page = now
        if self._living is not None:
            if born:
                self._due[now + self._lives[1] + 1] += born
            self._forget()

    def judged(self, page: PageSegments) -> tuple[Block, ...]:
        """Return the blocks of a page, judged by the current table."""
        return blocks_by(self._rule, page, self.marks(page))

    def marks(self, page: PageSegments) -> list[bool]:
        """Return for each segment of a page whether it is template, by the current table."""
        verdicts = self._verdicts
        return [
            verdict if (verdict := verdicts.get(key)) is not None else self._judge(key) for key in page.keys
        ]

    def _judge(self, key: int) -> bool:
        entry = self._entries.get(key)
        if entry is None:  # unknown segments are not cached
            return False
        verdict = self._verdicts[key] = self._is_template(entry)
        return verdict

    def pages_with(self, key: int) -> int:
        """Return the number of pages that had a segment."""
        entry = self._entries.get(key)
        return 0 if entry is None else entry.pages

    def _is_template(self, entry: _Entry) -> bool:
        if entry.pages < _LEAST_PAGES:
            return False
        if self._rule == "paper":
            return True
        path = self._entries[entry.path]
        if path.pages < min(_MANY_PAGES, _LEAST_PATH_SHARE * self._pages):
            return False
        if entry.pages >= _LEAST_SHARE * path.pages:
            return True
        lifetime = entry.latest - entry.born
        is_long = lifetime >= _VERY_LONG_TIME or (lifetime >= _LONG_TIME and 2 * lifetime >= path.pages)
        return is_long and entry.pages >= _LEAST_SHARE * lifetime

    def _forget(self) -> None:
        """Drop keys that are due, and reschedule keys that were met again."""
        for key in self._due.pop(self._pages, ()):
            entry = self._entries[key]
            due = entry.last_page + self._lives[min(entry.pages, _SATURATED - 1)] + 1
            if due <= self._pages:
                del self._entries[key]
            else:
                self._due[due].append(key)

    def counts(self) -> SegmentCounts:
        """Return the contents of the table, to be stored or merged."""
        keys = np.fromiter(self._entries, np.uint64, len(self._entries))
        order = np.argsort(keys)
        entries = self._entries.values()

        def numbers(column: Iterable[int]) -> NDArray[np.int64]:
            return np.fromiter(column, np.int64, keys.size)[order]

        return SegmentCounts(
            pages=self._pages,
            keys=keys[order],
            paths=np.fromiter((entry.path for entry in entries), np.uint64, keys.size)[order],
            counts=numbers(entry.pages for entry in entries),
            born=numbers(entry.born for entry in entries),
            latest=numbers(entry.latest for entry in entries),
            last_pages=numbers(entry.last_page for entry in entries),
        )

    @classmethod
    def from_counts(
        cls, counts: SegmentCounts, rule: SegmentRule = "share", *, living: LivingTime | None = LivingTime()
    ) -> SegmentTable:
        """Restore a table from its contents."""
        table = cls(rule, living=living)
        table._pages = counts.pages
        columns = [column.tolist() for column in counts[1:]]
        table._entries = dict(zip(columns[0], map(_Entry, *columns[1:]), strict=True))
        if living is not None:
            lives = np.array(table._lives)[np.minimum(counts.counts, _SATURATED - 1)]
            dues = np.maximum(counts.last_pages + lives, counts.pages) + 1
            for key, due in zip(columns[0], dues.tolist(), strict=True):
                table._due[due].append(key)
        return table


def blocks_by(rule: SegmentRule, page: PageSegments, marks: Sequence[bool]) -> tuple[Block, ...]:
    """Return the blocks of a page, given which of its segments are template."""
    return marked_blocks(page, marks, marks_whole_blocks=rule == "paper")
