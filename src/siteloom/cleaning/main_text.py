"""The main text of a page: what an extractor that reads one page at a time finds once the site's own is gone.

Such an extractor (trafilatura) tells prose from lists of links, but not that a teaser or a notice stands on
other pages, too; a table of segments knows that, but not what the page is about. Together:

1. Blocks are hidden from the extractor that are template, or repeated: mostly segments of several pages.
2. It reads what is left.
3. The headline is put before it, where the extractor took it for no part of the text.
4. Where the extractor finds next to nothing, what it was given stands in for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from siteloom.cleaning.html import html_of, remove_template
from siteloom.cleaning.text import text_of
from siteloom.dom import parse
from siteloom.errors import MissingExtra, UnreadablePage
from siteloom.model import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from siteloom.model import Page
    from siteloom.template import Block, PageSegments, SegmentTable

# What stands on three pages is part of none of them; on two it may be, if a page has two addresses.
_REPEATED_PAGES = 3

# The part of a block's characters that must be repeated: as of template segments in a template block.
_REPEATED_PART = 0.7

# A page whose own text is repeated for the most part was itself seen several times, so that tells nothing.
_SEEN_BEFORE = 0.5

# Of a page's own text: where trafilatura works, on news, shops and directories, it keeps a fifth at least.
_LEAST_KEPT = 0.1

_HEADLINE_WORDS = 3  # fewer are a section's name as often as not
_WORD = re.compile(r"\w+")


def main_text(page: Page, table: SegmentTable) -> str:
    """The main text of a page, its paragraphs in lines; the page is not taken into the table.

    It needs the extra `text`, and raises `MissingExtra` without it.
    """
    extract = _extractor()
    root = parse(page, collect_ids=False)
    if isinstance(root, Failure):
        raise UnreadablePage(root.url, root.reason)
    segments = table.segments_of(root)
    blocks = _blocks(segments, table)
    title = _words(root.findtext(".//title") or "")
    remove_template(root, segments, blocks)
    text = extract(html_of(root))
    own = text_of(blocks)
    if len(text) < _LEAST_KEPT * len(own):
        return own
    headline = _headline(title, blocks)
    return text if not headline or _words(headline) in _words(text) else f"{headline}\n{text}"


def _extractor() -> Callable[[str], str]:
    try:
        import trafilatura  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("The main text of a page", "text") from error
    return lambda html: trafilatura.extract(html, include_comments=False) or ""


def _blocks(segments: PageSegments, table: SegmentTable) -> Sequence[Block]:
    """The blocks of a page, where what is repeated counts as template; unless the page itself is repeated."""
    by_template = table.judged(segments)
    keys: list[list[int]] = [[] for _ in by_template]
    for key, place in zip(segments.keys, segments.blocks, strict=True):
        keys[place].append(key)
    by_pages = [_by_pages(block, of_block, table) for block, of_block in zip(by_template, keys, strict=True)]
    own = repeated = 0
    for block, same in zip(by_template, by_pages, strict=True):
        if not block.is_template:
            own += len(block.text)
            repeated += len(same.text) if same.is_template else 0
    return by_template if repeated > _SEEN_BEFORE * own else by_pages


def _by_pages(block: Block, keys: Sequence[int], table: SegmentTable) -> Block:
    """A block whose segments count as template if they stand on several pages."""
    marks = tuple(
        is_template or table.pages_with(key) >= _REPEATED_PAGES
        for key, is_template in zip(keys, block.are_template, strict=True)
    )
    sizes = [len(segment.strip()) for segment in block.segments]
    repeated = sum(size for size, mark in zip(sizes, marks, strict=True) if mark)
    return block._replace(are_template=marks, is_template=repeated > _REPEATED_PART * sum(sizes))


def _headline(title: str, blocks: Sequence[Block]) -> str:
    """The first text of a page that its title contains, in words; empty if none is."""
    for block in blocks:
        if not block.is_template:
            for segment in block.segments:
                words = _words(segment)
                if words in title and words.count(" ") > _HEADLINE_WORDS:
                    return segment.strip()
    return ""


def _words(text: str) -> str:
    """The words of a text with a blank around each, to look for one text in another."""
    return f" {' '.join(_WORD.findall(text.lower()))} "
