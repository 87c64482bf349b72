"""What forgetting costs: a table of text segments beside one that never forgets, on long streams of pages."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import UnreadablePage
from siteloom.templates.template_text import SegmentTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evals.swde import SwdeSite
    from siteloom.templates.text_blocks import PageSegments

STREAM = 100_000
"""The pages of a stream that is made up from those of a site."""

_COMPARED_EVERY = 10  # pages; judging all of them twice would take most of the time
_LARGEST_KEY = 2**64 - 1
_MIXING = 0x9E3779B97F4A7C15  # of splitmix64


class Storage(NamedTuple):
    """Two tables after a stream of pages: the number of rows of each, the largest it ever was for the first.

    Of `judged` segments `missed` are template by the table that never forgets, and not by the other;
    `taken` are template by the other alone.
    """

    stream: str
    pages: int
    rows: int
    rows_of_all: int
    judged: int
    missed: int
    taken: int

    @property
    def share(self) -> float:
        """The rows of the table over those of the one that never forgets."""
        return self.rows / max(1, self.rows_of_all)

    @property
    def misjudged(self) -> float:
        """The share of segments that both judge differently."""
        return (self.missed + self.taken) / max(1, self.judged)


def compared(stream: str, pages: Iterable[PageSegments]) -> Storage:
    """Both tables over a stream, each page judged as it arrives."""
    table, keeping = SegmentTable(), SegmentTable(living=None)
    rows = judged = missed = taken = 0
    for segments in pages:
        table.count(segments)
        keeping.count(segments)
        rows = max(rows, len(table))
        if table.pages % _COMPARED_EVERY == 0:
            for one, other in zip(table.judged(segments), keeping.judged(segments), strict=True):
                judged += len(one.are_template)
                pairs = Counter(zip(one.are_template, other.are_template, strict=True))
                missed += pairs[False, True]
                taken += pairs[True, False]
    return Storage(stream, table.pages, rows, len(keeping), judged, missed, taken)


def sites_in_turn(sites: Sequence[SwdeSite], pages: int) -> Iterator[PageSegments]:
    """One page of each site after the other, until so many of each were given."""
    parting = SegmentTable()
    numbers = [iter(site.evenly_spaced(pages)) for site in sites]
    ended = 0
    while ended < len(sites):
        ended = 0
        for site, left in zip(sites, numbers, strict=True):
            number = next(left, None)
            if number is None:
                ended += 1
            elif (segments := _parted(parting, site, number)) is not None:
                yield segments


def endless(site: SwdeSite, pages: int = STREAM) -> Iterator[PageSegments]:
    """A stream as if the site had ever more pages: its own, in another order each time, with new texts.

    Segments that stand on one page alone are what makes it a page of its own: each time around they become
    other segments at the same place. All others come back as they are.
    """
    parting = SegmentTable()
    own = [
        segments for number in sorted(site.truth) if (segments := _parted(parting, site, number)) is not None
    ]
    on_pages = Counter(key for page in own for key in set(page.keys))
    shuffled = random.Random(1)
    given = turn = 0
    while given < pages:
        for page in shuffled.sample(own, min(len(own), pages - given)):
            yield page._replace(
                keys=[_renewed(key, turn) if on_pages[key] == 1 else key for key in page.keys]
            )
            given += 1
        turn += 1


def _parted(parting: SegmentTable, site: SwdeSite, number: str) -> PageSegments | None:
    try:
        return parting.segments(site.page(number))
    except UnreadablePage:
        return None


def _renewed(key: int, turn: int) -> int:
    return (key + turn * _MIXING) & _LARGEST_KEY
