"""What counts as template text: the segment table, how many pages of a site contain each segment, and the
rule that judges it.

For each segment, a text at a path of tags, the table knows on how many pages it stood. A block of a page is
template if most of its characters are in template segments. What was not met for a long time is forgotten,
the sooner the fewer pages it stood on, so the table stays small on an endless stream of pages (Wang, Fang,
Cheng, Guo and Xu, WWW 2008). Time is counted in pages.
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
    """For how many pages a segment is remembered since it was met last.

    That is `once` if it stood on one page, and comes near to `longest` with the number of its pages, by a
    logistic curve; the paper has the form of the curve, and no numbers.
    """

    once: int = 1_000
    longest: int = 20_000
    rate: float = 0.5

    def __post_init__(self) -> None:
        if self.once < 1 or self.longest < 1:
            raise UsageError(
                "The living time of a segment is one page at the least, "
                f"and not {min(self.once, self.longest)}."
            )

    def after(self, pages: int) -> float:
        """The living time of a segment that stood on a number of pages."""
        return self.longest / (1 + (self.longest / self.once - 1) * exp(-self.rate * (pages - 1)))


class SegmentCounts(NamedTuple):
    """What is known of the segments of a number of pages, by their keys, ascending.

    A row with the path 0 is of a path that bears text; others are of segments, at the path that the row
    `paths` names. `counts` are pages. `born` is how many pages had the path before the first one with the
    segment, `last` how many had when it was met last, which was on the page `last_pages`.
    """

    pages: int
    keys: NDArray[np.uint64]
    paths: NDArray[np.uint64]
    counts: NDArray[np.int64]
    born: NDArray[np.int64]
    last: NDArray[np.int64]
    last_pages: NDArray[np.int64]


_NO_KEYS = np.empty(0, np.uint64)
_NO_NUMBERS = np.empty(0, np.int64)

NO_SEGMENTS = SegmentCounts(0, _NO_KEYS, _NO_KEYS, _NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS)


def merged(earlier: SegmentCounts, later: SegmentCounts, living: LivingTime | None) -> SegmentCounts:
    """The counts of some pages and of others that came after them, less what is due to be forgotten.

    It is as if a table had seen the ones and then the others, if it had forgotten nothing in between.
    """
    path_pages = _looked_up(earlier, np.where(later.paths == 0, later.keys, later.paths))
    known = _places(earlier, later.keys)
    is_known = known >= 0
    known = known[is_known]
    counts, last, last_pages = earlier.counts.copy(), earlier.last.copy(), earlier.last_pages.copy()
    counts[known] += later.counts[is_known]
    last[known] = (later.last + path_pages)[is_known]
    last_pages[known] = later.last_pages[is_known] + earlier.pages
    is_new = ~is_known
    keys = np.concatenate([earlier.keys, later.keys[is_new]])
    order = np.argsort(keys, kind="stable")
    is_segment = (later.paths != 0)[is_new]
    all_ = SegmentCounts(
        earlier.pages + later.pages,
        keys[order],
        np.concatenate([earlier.paths, later.paths[is_new]])[order],
        np.concatenate([counts, later.counts[is_new]])[order],
        np.concatenate([earlier.born, later.born[is_new] + path_pages[is_new] * is_segment])[order],
        np.concatenate([last, later.last[is_new] + path_pages[is_new] * is_segment])[order],
        np.concatenate([last_pages, later.last_pages[is_new] + earlier.pages])[order],
    )
    return all_ if living is None else _without_forgotten(all_, living)


def _without_forgotten(counts: SegmentCounts, living: LivingTime) -> SegmentCounts:
    distinct, row = np.unique(counts.counts, return_inverse=True)
    living_times = np.array([living.after(pages) for pages in distinct.tolist()])
    is_kept = counts.pages - counts.last_pages <= living_times[row] if distinct.size else distinct > 0
    return SegmentCounts(
        counts.pages,
        counts.keys[is_kept],
        counts.paths[is_kept],
        counts.counts[is_kept],
        counts.born[is_kept],
        counts.last[is_kept],
        counts.last_pages[is_kept],
    )


def _places(counts: SegmentCounts, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The rows of some keys, -1 where there is none."""
    if not counts.keys.size:
        return np.full(keys.size, -1, np.int64)
    place = np.minimum(np.searchsorted(counts.keys, keys), counts.keys.size - 1)
    return np.where(counts.keys[place] == keys, place, -1)


def _looked_up(counts: SegmentCounts, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The counts of some keys, 0 where there is none."""
    places = _places(counts, keys)
    found = np.zeros(keys.size, np.int64)
    found[places >= 0] = counts.counts[places[places >= 0]]
    return found


SegmentRule: TypeAlias = Literal["share", "paper"]
"""When a segment is template: "paper", if it stood on five pages or more; "share", if also on nine in ten of
the pages that have its path. The paper's rule takes values that vary little, such as genres, for template."""

_LEAST_PAGES = 5  # the paper's
_LEAST_SHARE = 0.9

# A path that few pages have may be one that a value brings with it, such as the style of one advertiser: it
# must be on one page in twenty, or on as many as here.
_LEAST_PATH_SHARE = 0.05
_MANY_PAGES = 100

# A menu may come late, or be gone: then the share counts from its first page to its last. But crawls list
# similar pages one after the other, with equal values (such as hundreds of jobs of one employer in SWDE): so
# these must be half of all pages with the path and as many as here, or very many.
_LONG_TIME = 300
_VERY_LONG_TIME = 1_000

_SATURATED = 200  # pages from which on the living time hardly grows


class _Entry:
    """A segment, or a path that bears text: as a row of `SegmentCounts`."""

    __slots__ = ("born", "last", "last_page", "pages", "path")

    def __init__(self, path: int, pages: int, born: int, last: int, last_page: int) -> None:
        self.path = path
        self.pages = pages
        self.born = born
        self.last = last
        self.last_page = last_page


def readable_tree(page: Page) -> Element:
    """The tree of a page; UnreadablePage is raised where there is none."""
    root = parse(page, collect_ids=False)
    if isinstance(root, Failure):
        raise UnreadablePage(root.url, root.reason)
    return root


class SegmentTable:
    """The text segments of one site; pages are added one by one, each told apart into blocks at once.

    By the rule `paper`, all that stands on five pages is template. With `living=None` nothing is ever
    forgotten. `siteloom.extraction.main_text` has `clean_text(page, table)`, `without_template(page,
    table)` (HTML) and
    `main_text(page, table)`, which needs the extra `text`. A page that cannot be read raises
    `UnreadablePage`.
    """

    def __init__(self, rule: SegmentRule = "share", *, living: LivingTime | None = LivingTime()) -> None:
        if rule not in (known := get_args(SegmentRule)):
            raise UsageError(f"The rule {rule!r} is not known: it is one of {', '.join(known)}.")
        self._rule = rule
        self._living = living
        self._pages = 0
        self._entries: dict[int, _Entry] = {}
        self._due: defaultdict[int, list[int]] = defaultdict(list)  # keys to look at, by page
        self._segmenter = Segmenter()
        self._verdicts: dict[int, bool] = {}  # since the last page was added
        self._lives = [] if living is None else [floor(living.after(max(1, n))) for n in range(_SATURATED)]

    def __len__(self) -> int:
        """The number of segments and paths that are remembered."""
        return len(self._entries)

    @property
    def pages(self) -> int:
        """How many pages were added."""
        return self._pages

    def add(self, page: Page) -> tuple[Block, ...]:
        """Take in a page; returns its blocks, judged by all pages so far."""
        segments = self.segments(page)
        self.count(segments)
        return self.judged(segments)

    def blocks(self, page: Page) -> tuple[Block, ...]:
        """The blocks of a page, judged by the table as it is now; the page is not taken in."""
        return self.judged(self.segments(page))

    def segments(self, page: Page) -> PageSegments:
        """The segments of a page, to be counted and judged; UnreadablePage is raised where there are none."""
        return self.segments_of(readable_tree(page))

    def segments_of(self, root: Element) -> PageSegments:
        """The same of a page that is parsed already."""
        return self._segmenter.segments(root)

    def count(self, page: PageSegments) -> None:
        """Take in a page by its segments, and forget what is due."""
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
                path.last = path.pages
                path.last_page = now
            if entry is None:
                entries[key] = _Entry(path_key, 1, path.pages - 1, path.pages, now)
                born.append(key)
            else:
                entry.pages += 1
                entry.last = path.pages
                entry.last_page = now
        if self._living is not None:
            if born:
                self._due[now + self._lives[1] + 1] += born
            self._forget()

    def judged(self, page: PageSegments) -> tuple[Block, ...]:
        """The blocks of a page, judged by the table as it is now."""
        return blocks_by(self._rule, page, self.marks(page))

    def marks(self, page: PageSegments) -> list[bool]:
        """Of each segment of a page whether it is template, by the table as it is now."""
        verdicts = self._verdicts
        return [
            verdict if (verdict := verdicts.get(key)) is not None else self._judge(key) for key in page.keys
        ]

    def _judge(self, key: int) -> bool:
        entry = self._entries.get(key)
        if entry is None:  # nor is it remembered that there is none
            return False
        verdict = self._verdicts[key] = self._is_template(entry)
        return verdict

    def pages_with(self, key: int) -> int:
        """On how many of the pages a segment stood."""
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
        lifetime = entry.last - entry.born
        is_long = lifetime >= _VERY_LONG_TIME or (lifetime >= _LONG_TIME and 2 * lifetime >= path.pages)
        return is_long and entry.pages >= _LEAST_SHARE * lifetime

    def _forget(self) -> None:
        """Drop what is due. Each key is looked at once in its time, and again later if it was met since."""
        for key in self._due.pop(self._pages, ()):
            entry = self._entries[key]
            due = entry.last_page + self._lives[min(entry.pages, _SATURATED - 1)] + 1
            if due <= self._pages:
                del self._entries[key]
            else:
                self._due[due].append(key)

    def counts(self) -> SegmentCounts:
        """All that the table knows, to be kept or merged."""
        keys = np.fromiter(self._entries, np.uint64, len(self._entries))
        order = np.argsort(keys)
        entries = self._entries.values()

        def numbers(column: Iterable[int]) -> NDArray[np.int64]:
            return np.fromiter(column, np.int64, keys.size)[order]

        return SegmentCounts(
            self._pages,
            keys[order],
            np.fromiter((entry.path for entry in entries), np.uint64, keys.size)[order],
            numbers(entry.pages for entry in entries),
            numbers(entry.born for entry in entries),
            numbers(entry.last for entry in entries),
            numbers(entry.last_page for entry in entries),
        )

    @classmethod
    def from_counts(
        cls, counts: SegmentCounts, rule: SegmentRule = "share", *, living: LivingTime | None = LivingTime()
    ) -> SegmentTable:
        """The table that knows what another one knew."""
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
    """The blocks of a page by which of its segments are template."""
    return marked_blocks(page, marks, is_all=rule == "paper")
