"""The pages of a store without template: each version counted once in its site's segment table, then cleaned.

A page is judged when all pages of its site are counted. So that it need not be parsed a second time, its
segments wait in a temporary file meanwhile.
"""

from __future__ import annotations

import marshal
import tempfile
from os import SEEK_END
from typing import IO, TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from siteloom.cleaning import check_extractor, html_of, main_text_of, remove_template, text_of
from siteloom.config import ParseSettings
from siteloom.dom import parse
from siteloom.model import Failure
from siteloom.template import PageSegments, SegmentTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from siteloom.model import Page
    from siteloom.store import BlockPart, Place, Store
    from siteloom.template import Block, SegmentRule

# Within so many pages no segment is old enough to be forgotten, so that counts of parts add up.
_COUNTED_AT_A_TIME = 1_000

# Temporary files are often in memory, so there is an end to this one: further pages are parsed again. It has
# room for 35,000 pages such as those of SWDE.
_MOST_WAITING = 500_000_000  # bytes
_LENGTH_BYTES = 4


CleanedForm: TypeAlias = Literal["blocks", "text", "html", "main"]
"""What is made of a page: its text without template, that beside all its blocks, its HTML without template,
or the main text that `main_text` finds, which needs an extra."""


class CleanedPage(NamedTuple):
    """A page without template: its text, or its HTML; and its blocks, if they were looked at."""

    site: str
    url: str
    blocks: tuple[Block, ...]
    text: str | None
    html: str | None


class _Waiting:
    """The segments of pages, by place, in a temporary file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._offsets: dict[tuple[str, int, int], int] = {}

    def put(self, place: Place, url: str, segments: PageSegments) -> None:
        """Let the segments of a page wait, as long as there is room."""
        end = self._file.seek(0, SEEK_END)
        if end < _MOST_WAITING:
            self._offsets[place.file, place.offset, place.slot] = end
            packed = marshal.dumps((url, *segments._replace(paths=[])))  # these were for counting
            self._file.write(len(packed).to_bytes(_LENGTH_BYTES) + packed)

    def get(self, file: str, offset: int, slot: int) -> tuple[str, PageSegments] | None:
        """The URL and the segments of the page at a place, if they wait."""
        start = self._offsets.get((file, offset, slot))
        if start is None:
            return None
        self._file.seek(start)
        length = int.from_bytes(self._file.read(_LENGTH_BYTES))
        url, *segments = marshal.loads(self._file.read(length))  # noqa: S302 - written by this very process
        return url, PageSegments(*segments)


def clean_store(
    store: Store,
    *,
    site: str | None = None,
    rule: SegmentRule = "share",
    form: CleanedForm = "text",
    limits: ParseSettings = ParseSettings(),
    counted: Callable[[int], None] = lambda _: None,
) -> Iterator[CleanedPage | Failure]:
    """The newest version of every page, or of one site's, cleaned; site by site, in the order of the packs.

    First the versions that came since the last time are counted, of which `counted` is told.
    """
    if form == "main":
        check_extractor()
    for name in [found.name for found in store.sites()] if site is None else [site]:
        with tempfile.TemporaryFile(prefix="siteloom-") as file:
            waiting = _Waiting(file) if form in ("text", "blocks") else None
            _count(store, name, limits, waiting, counted)
            table = segment_table(store, name, rule)
            for block in store.newest_blocks(name):
                for found in _block_pages(store, block, waiting):
                    yield _cleaned(found, name, table, form, limits)


def count_versions(
    store: Store,
    site: str,
    limits: ParseSettings = ParseSettings(),
    counted: Callable[[int], None] = lambda _: None,
) -> None:
    """Count the versions of a site's pages that came since the last time; unreadable pages add nothing."""
    _count(store, site, limits, None, counted)


def segment_table(store: Store, site: str, rule: SegmentRule = "share") -> SegmentTable:
    """The segment table of a site, with all pages that were counted so far."""
    return SegmentTable.from_counts(store.counted_segments(site).counts, rule)


def _count(
    store: Store,
    site: str,
    limits: ParseSettings,
    waiting: _Waiting | None,
    advance: Callable[[int], None],
) -> None:
    while True:
        counted = store.counted_segments(site)
        versions = store.uncounted_versions(site, counted.counted_to, _COUNTED_AT_A_TIME)
        if not versions:
            return
        table = SegmentTable(living=None)
        pages = store.pages_in(version.place for version in versions)
        for version, page in zip(versions, pages, strict=True):
            root = parse(page, limits, collect_ids=False)
            if not isinstance(root, Failure):
                segments = table.segments_of(root)
                table.count(segments)
                if waiting is not None:
                    waiting.put(version.place, page.url, segments)
            advance(1)
        # If another process was faster, what it left is counted in the next round.
        store.add_segments(site, table.counts(), counted=counted, counted_to=versions[-1].id)


def _block_pages(
    store: Store, block: BlockPart, waiting: _Waiting | None
) -> Iterator[Page | tuple[str, PageSegments]]:
    """The pages of a block, or their URLs and segments where these wait."""
    found = {
        slot: None if waiting is None else waiting.get(block.file, block.offset, slot) for slot in block.slots
    }
    others = store.pages_of_block(block._replace(slots=tuple(slot for slot in found if found[slot] is None)))
    for parted in found.values():
        yield next(others) if parted is None else parted


def _cleaned(
    page: Page | tuple[str, PageSegments],
    site: str,
    table: SegmentTable,
    form: CleanedForm,
    limits: ParseSettings,
) -> CleanedPage | Failure:
    if isinstance(page, tuple):
        url, segments = page
        blocks = table.judged(segments)
        return CleanedPage(site, url, blocks, text_of(blocks), None)
    root = parse(page, limits, collect_ids=False)
    if isinstance(root, Failure):
        return root
    if form == "main":
        return CleanedPage(site, page.url, (), main_text_of(root, table), None)
    segments = table.segments_of(root)
    blocks = table.judged(segments)
    if form == "html":
        remove_template(root, segments, blocks)
        return CleanedPage(site, page.url, blocks, None, html_of(root))
    return CleanedPage(site, page.url, blocks, text_of(blocks), None)
