"""The pages of a store without template: each version counted once in its site's segment table, then cleaned.

A page is judged when all pages of its site are counted. So that it need not be parsed a second time, its
segments wait in a temporary file meanwhile. What is done with the pages of a site, wherever they are from, is
here, too: counting them in order, judging them, and what is written of them.
"""

from __future__ import annotations

import marshal
import tempfile
from array import array
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from os import SEEK_END
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from siteloom.core.model import Failure
from siteloom.core.settings import ParseSettings
from siteloom.core.table_files import Column, Fields, ListOf
from siteloom.extraction.main_text import (
    are_repeated,
    check_extractor,
    html_of,
    main_text_of,
    remove_template,
    text_of,
)
from siteloom.html.parser import parse
from siteloom.html.time_limit import within
from siteloom.templates.template_text import NO_SEGMENTS, LivingTime, SegmentTable, blocks_by, merged
from siteloom.templates.text_blocks import PageSegments, Segmenter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from siteloom.core.model import Page
    from siteloom.html.parser import Element
    from siteloom.store.packs.page_reader import BlockPart, VersionPlace
    from siteloom.store.store import Store
    from siteloom.templates.template_text import SegmentCounts, SegmentRule
    from siteloom.templates.text_blocks import Block

# Within so many pages no segment is old enough to be forgotten, so that counts of parts add up.
_COUNTED_AT_A_TIME = 1_000

# Temporary files are often in memory, so there is an end to this one: further pages are parsed again. It has
# room for 44,000 pages such as those of SWDE.
_MOST_WAITING = 500_000_000  # bytes
_LENGTH_BYTES = 4

_SHOWN_TEXTS = 3

TOO_MUCH_TEXT = "too much text"
"""The reason of pages of which too much would be written."""


CleanedForm: TypeAlias = Literal["blocks", "text", "html", "main"]
"""What is made of a page: its text without template, that beside all its blocks, its HTML without template,
or the main text that `main_text` finds, which needs an extra."""

TREE_FORMS: tuple[CleanedForm, ...] = ("html", "main")
"""Those that are made of the tree of a page, and not of its segments alone."""

_BLOCK = Fields((Column("path"), Column("text"), Column("is_template", "flag")))
CLEANED_COLUMNS: dict[CleanedForm, tuple[Column, ...]] = {
    "blocks": (Column("url"), Column("text"), Column("blocks", ListOf(_BLOCK))),
    "text": (Column("url"), Column("text")),
    "html": (Column("url"), Column("html")),
    "main": (Column("url"), Column("text")),
}
"""What is written of cleaned pages."""


class CleanedPage(NamedTuple):
    """A page without template: its text, or its HTML; and its blocks, if they were looked at."""

    site: str
    url: str
    blocks: tuple[Block, ...]
    text: str | None
    html: str | None

    def row(self, form: CleanedForm) -> dict[str, object]:
        """What is written of it."""
        row: dict[str, object] = {"url": self.url, "text": self.text, "html": self.html}
        if form == "blocks":
            row["blocks"] = [
                {"path": block.path, "text": block.text, "is_template": block.is_template}
                for block in self.blocks
            ]
        return row


class Verdicts(NamedTuple):
    """Of each segment of a page whether it is template, and for `main` whether other pages repeat it."""

    template: Sequence[bool]
    repeated: Sequence[bool]


@dataclass(slots=True)
class SiteTally:
    """What was found on a site."""

    pages: int = 0
    blocks: int = 0
    template_blocks: int = 0
    characters: int = 0
    template_characters: int = 0
    texts: list[str] = field(default_factory=list)  # of template, from the first page with any

    def add(self, blocks: tuple[Block, ...]) -> None:
        """Count the blocks of a page."""
        self.blocks += len(blocks)
        template = [block.text for block in blocks if block.is_template]
        self.template_blocks += len(template)
        self.characters += sum(len(block.text) for block in blocks)
        self.template_characters += sum(map(len, template))
        if not self.texts:
            self.texts = list(dict.fromkeys(template))[:_SHOWN_TEXTS]


class Waiting:
    """What waits in a file, each by the offset at which it was put."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.end = 0

    def put(self, content: bytes) -> int:
        """Let something wait."""
        start = self._file.seek(0, SEEK_END)
        self._file.write(len(content).to_bytes(_LENGTH_BYTES) + content)
        self.end = self._file.tell()
        return start

    def get(self, start: int) -> bytes:
        """What was put at an offset."""
        self._file.seek(start)
        return self._file.read(int.from_bytes(self._file.read(_LENGTH_BYTES)))


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


def plain_segments(page: PageSegments | Failure) -> tuple[Any, ...]:
    """The segments of a page, or why it has none, as `marshal` takes it."""
    if isinstance(page, Failure):
        return page.url, page.reason, page.detail
    return (
        array("Q", page.keys).tobytes(),
        array("Q", page.paths).tobytes(),
        array("I", page.lengths).tobytes(),
        page.texts,
        array("I", page.blocks).tobytes(),
        page.block_paths,
    )


def segments_of_plain(plain: Sequence[Any]) -> PageSegments | Failure:
    """What `plain_segments` was given."""
    if len(plain) != len(PageSegments._fields):
        return Failure(*plain)
    keys, paths, lengths, texts, blocks, block_paths = plain
    return PageSegments(
        _numbers("Q", keys),
        _numbers("Q", paths),
        _numbers("I", lengths),
        texts,
        _numbers("I", blocks),
        block_paths,
    )


def _numbers(kind: Literal["Q", "I"], content: bytes) -> list[int]:
    return array(kind, content).tolist()


def page_segments(page: Page, limits: ParseSettings, segmenter: Segmenter) -> PageSegments | Failure:
    """The segments of a page, or why it has none."""
    parted = within(limits.max_seconds, page.url, partial(_parted, page, limits, segmenter.segments))
    return parted if isinstance(parted, Failure) else parted[1]


def _parted(
    page: Page, limits: ParseSettings, segments_of: Callable[[Element], PageSegments]
) -> tuple[Element, PageSegments] | Failure:
    """The tree of a page and its segments, if it has no more of them than may come of a page.

    Each block is told by its path, so that blocks deep in a page take many times what the page does.
    """
    root = parse(page, limits, collect_ids=False)
    if isinstance(root, Failure):
        return root
    segments = segments_of(root)
    if sum(segments.lengths) + sum(map(len, segments.block_paths)) > limits.max_characters:
        detail = f"with the paths of its blocks more than {limits.max_characters:,} characters"
        return Failure(page.url, TOO_MUCH_TEXT, detail)
    return root, segments


def count_pages(pages: Iterable[PageSegments | Failure]) -> SegmentCounts:
    """The counts of some pages, so few that nothing is forgotten; those without segments add nothing."""
    table = SegmentTable(living=None)
    for page in pages:
        if not isinstance(page, Failure):
            table.count(page)
    return table.counts()


def count_site(pages: Iterable[PageSegments | Failure]) -> SegmentCounts:
    """The counts of all versions of a site's pages, in the order in which they came; as a store has them."""
    counts = NO_SEGMENTS
    left = iter(pages)
    for first in left:
        some = chain([first], islice(left, _COUNTED_AT_A_TIME - 1))
        counts = merged(counts, count_pages(some), LivingTime())
    return counts


def judge(segments: PageSegments, table: SegmentTable, form: CleanedForm) -> Verdicts:
    """What a form that is made of trees needs to know of the segments of a page."""
    return Verdicts(table.marks(segments), are_repeated(segments, table) if form == "main" else ())


def clean_segments(site: str, url: str, segments: PageSegments, table: SegmentTable) -> CleanedPage:
    """A page as text and blocks."""
    blocks = table.judged(segments)
    return CleanedPage(site, url, blocks, text_of(blocks), None)


def clean_tree(
    site: str,
    url: str,
    root: Element,
    segments: PageSegments,
    verdicts: Verdicts,
    rule: SegmentRule,
    form: CleanedForm,
) -> CleanedPage:
    """A page in a form that is made of its tree, which is of no use afterwards."""
    blocks = blocks_by(rule, segments, verdicts.template)
    if form == "main":
        return CleanedPage(site, url, (), main_text_of(root, segments, blocks, verdicts.repeated), None)
    remove_template(root, segments, blocks)
    return CleanedPage(site, url, blocks, None, html_of(root))


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
        versions = store.uncounted_versions(site, counted.counted_to, _COUNTED_AT_A_TIME)
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
    parted = _parted(page, limits, table.segments_of)
    if isinstance(parted, Failure):
        return parted
    root, segments = parted
    if form not in TREE_FORMS:
        return clean_segments(site, page.url, segments, table)
    return clean_tree(site, page.url, root, segments, judge(segments, table, form), rule, form)
