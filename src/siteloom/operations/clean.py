"""clean: pages without the text of their template.

Each version of a page is counted once in the segment table of its site, and pages are cleaned when all of the
site are counted. Their segments wait in a temporary file meanwhile, so that no page is parsed twice.
"""

from __future__ import annotations

import marshal
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import IO, TYPE_CHECKING

from siteloom.core.model import Failure
from siteloom.core.settings import ParseSettings
from siteloom.extraction.clean_pages import (
    COUNTED_AT_A_TIME,
    TREE_FORMS,
    CleanedForm,
    CleanedPage,
    SiteTally,
    Waiting,
    clean_segments,
    clean_tree,
    count_pages,
    judge,
    page_segments,
    parse_segments,
    plain_segments,
    segments_of_plain,
)
from siteloom.extraction.main_text import check_extractor
from siteloom.html.time_limit import within
from siteloom.templates.template_text import SegmentRule, SegmentTable
from siteloom.templates.text_blocks import PageSegments, Segmenter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from siteloom.core.model import Page
    from siteloom.core.table_files import RowWriter
    from siteloom.operations.context import Context
    from siteloom.store.packs.page_reader import BlockPart, VersionPlace
    from siteloom.store.store import Store
# Temporary files are often in memory, so there is an end to this one: further pages are parsed again. It has
# room for 44,000 pages such as those of SWDE.
_MOST_WAITING = 500_000_000  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanRequest:
    """Which pages to clean, what is made of each, and when a text is template.

    The row of each page goes to `output` as soon as the page is cleaned.
    """

    site: str | None = None
    form: CleanedForm = "blocks"
    rule: SegmentRule = "share"
    output: RowWriter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanResult:
    """How much of the text of each site is template, and why pages could not be cleaned."""

    pages: int
    sites: Mapping[str, SiteTally]
    text_share: float
    failures: Mapping[str, int] = field(default_factory=dict)


def clean(context: Context, request: CleanRequest) -> CleanResult:
    """Count the pages that are new in the tables of their sites, then take the template out of all pages."""
    store, progress = context.store, context.progress
    if request.site is not None:
        store.require_sites([request.site])
    failures = Counter(context.unread)
    sites: dict[str, SiteTally] = {}
    progress.start("Looking at")
    for cleaned in clean_store(
        store,
        site=request.site,
        rule=request.rule,
        form=request.form,
        limits=context.settings.parse,
        counted=progress.advance,
    ):
        progress.advance()
        if isinstance(cleaned, Failure):
            failures[cleaned.reason] += 1
            continue
        tally = sites.setdefault(cleaned.site, SiteTally())
        tally.pages += 1
        tally.add(cleaned.blocks)
        if request.output is not None:
            request.output.write(cleaned.row(request.form))
    characters = sum(tally.characters for tally in sites.values())
    template = sum(tally.template_characters for tally in sites.values())
    return CleanResult(
        pages=sum(tally.pages for tally in sites.values()),
        sites=sites,
        text_share=1 - template / characters if characters else 0.0,
        failures=failures,
    )


class _WaitingPages:
    """The URLs and the segments of pages, by place, in a temporary file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._waiting = Waiting(file)
        self._starts: dict[tuple[str, int, int], tuple[str, int]] = {}

    def put(self, place: VersionPlace, url: str, segments: PageSegments) -> None:
        """Let the segments of a page wait, as long as there is room."""
        if self._waiting.end < _MOST_WAITING:
            plain = plain_segments(segments._replace(paths=[]))  # these were for counting
            self._starts[place.file, place.offset, place.slot] = url, self._waiting.put(marshal.dumps(plain))

    def get(self, file: str, offset: int, slot: int) -> tuple[str, PageSegments] | None:
        """The URL and the segments of the page at a place, if they wait."""
        found = self._starts.get((file, offset, slot))
        if found is None:
            return None
        url, start = found
        segments = segments_of_plain(marshal.loads(self._waiting.get(start)))  # noqa: S302 - our own
        assert isinstance(segments, PageSegments)
        return url, segments


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

    First the versions that came since the last time are counted; `counted` is called for each of them.
    """
    if form == "main":
        check_extractor()
    for name in store.page_urls.sites() if site is None else [site]:
        with tempfile.TemporaryFile(prefix="siteloom-") as file:
            waiting = None if form in TREE_FORMS else _WaitingPages(file)
            _count(store, name, limits, waiting, counted)
            table = segment_table(store, name, rule)
            for block in store.newest_blocks(name):
                for found in _block_pages(store, block, waiting):
                    url = found[0] if isinstance(found, tuple) else found.url
                    cleaning = partial(_cleaned, found, name, table, rule, form, limits)
                    yield within(limits.max_seconds, url, cleaning)


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
    waiting: _WaitingPages | None,
    advance: Callable[[int], None],
) -> None:
    segmenter = Segmenter()

    def segments_at(places: Sequence[VersionPlace]) -> Iterator[PageSegments | Failure]:
        for place, page in zip(places, store.pages_in(places), strict=True):
            found = page_segments(page, limits, segmenter)
            if waiting is not None and not isinstance(found, Failure):
                waiting.put(place, page.url, found)
            yield found
            advance(1)

    while True:
        counted = store.counted_segments(site)
        versions = store.uncounted_versions(site, counted.counted_to, COUNTED_AT_A_TIME)
        if not versions:
            return
        counts = count_pages(segments_at([version.place for version in versions]))
        # If another process was faster, what it left is counted in the next round.
        store.add_segments(site, counts, counted=counted, counted_to=versions[-1].id)


def _block_pages(
    store: Store, block: BlockPart, waiting: _WaitingPages | None
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
    rule: SegmentRule,
    form: CleanedForm,
    limits: ParseSettings,
) -> CleanedPage | Failure:
    if isinstance(page, tuple):
        return clean_segments(site, *page, table)
    parted = parse_segments(page, limits, table.segments_of)
    if isinstance(parted, Failure):
        return parted
    root, segments = parted
    if form not in TREE_FORMS:
        return clean_segments(site, page.url, segments, table)
    return clean_tree(site, page.url, root, segments, judge(segments, table, form), rule, form)
