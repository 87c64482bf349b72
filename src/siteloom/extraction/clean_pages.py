"""Judge the segments of pages, and make pages without template: the part that needs no store.

A page is judged when all pages of its site are counted. What is done with the pages of a site, wherever they
are from, is here: counting them in order, judging them, and what is written of them.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from os import SEEK_END
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from siteloom.core.model import Failure
from siteloom.core.table_files import Column, Fields, ListOf
from siteloom.extraction.main_text import (
    are_repeated,
    html_of,
    main_text_of,
    remove_template,
    text_of,
)
from siteloom.html.parser import parse
from siteloom.html.time_limit import within
from siteloom.templates.template_text import NO_SEGMENTS, LivingTime, SegmentTable, blocks_by, merge_counts
from siteloom.templates.text_blocks import PageSegments, Segmenter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from siteloom.core.model import Page
    from siteloom.core.settings import ParseSettings
    from siteloom.html.parser import Element
    from siteloom.templates.template_text import SegmentCounts, SegmentRule
    from siteloom.templates.text_blocks import Block

# Within so many pages no segment is old enough to be forgotten, so that counts of parts add up.
COUNTED_AT_A_TIME = 1_000

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
    parted = within(limits.max_seconds, page.url, partial(parse_segments, page, limits, segmenter.segments))
    return parted if isinstance(parted, Failure) else parted[1]


def parse_segments(
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
        some = chain([first], islice(left, COUNTED_AT_A_TIME - 1))
        counts = merge_counts(counts, count_pages(some), LivingTime())
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
