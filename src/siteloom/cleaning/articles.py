"""The main text of a page: what an extractor that reads one page at a time finds once the site's own is gone.

Such an extractor (trafilatura) tells prose from lists of links, but not that a teaser or a notice stands on
other pages, too; a table of segments knows that, but not what the page is about. Together:

1. Blocks are hidden from the extractor that are template, or repeated: mostly segments of several pages.
2. It reads what is left.
3. The headline is put before it, where the extractor took it for no part of the text.
4. Where the extractor finds next to nothing, what it was given stands in for it; so it does on a page that
   has more tags than the extractor can read in good time.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING

from siteloom.cleaning.html import html_of, remove_template
from siteloom.cleaning.text import text_of
from siteloom.dom import normalize
from siteloom.errors import MissingExtra, SiteloomError
from siteloom.template.blocks import marked_blocks, marks_in_order
from siteloom.template.segment_table import readable_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.dom import Element
    from siteloom.model import Page
    from siteloom.template import Block, PageSegments, SegmentTable

# What stands on three pages is part of none of them; on two it may be, if a page has two addresses.
_REPEATED_PAGES = 3

# A page whose own text is repeated for the most part was itself seen several times, so that tells nothing.
_SEEN_BEFORE = 0.5

# Of a page's own text: where trafilatura works, on news, shops and directories, it keeps a fifth at least.
_LEAST_KEPT = 0.1

# Its time grows with the square of the tags, and it is in C for so long that nothing stops it: half a million
# links take a hundred seconds and 3 GB.
_MOST_TAGS = 200_000

_HEADLINE_WORDS = 3  # fewer are a section's name as often as not
_WORD = re.compile(r"\w+")


def main_text(page: Page, table: SegmentTable) -> str:
    """The main text of a page, its paragraphs in lines; the page is not taken into the table.

    It needs the extra `text`, and raises `MissingExtra` without it.
    """
    check_extractor()
    root = readable_tree(page)
    segments = table.segments_of(root)
    return main_text_of(root, segments, table.judged(segments), are_repeated(segments, table))


def are_repeated(page: PageSegments, table: SegmentTable) -> list[bool]:
    """Of each segment of a page whether it stands on so many pages that it is part of none of them."""
    return [table.pages_with(key) >= _REPEATED_PAGES for key in page.keys]


def main_text_of(
    root: Element, segments: PageSegments, by_template: Sequence[Block], repeated: Sequence[bool]
) -> str:
    """The same of a page that is parsed and judged already; its tree is of no use afterwards."""
    from trafilatura import extract  # noqa: PLC0415 - an extra

    blocks = _blocks(segments, by_template, repeated)
    title = _words(root.findtext(".//title") or "")
    remove_template(root, segments, blocks)
    html = html_of(root)
    own = text_of(blocks)
    text = (extract(html, include_comments=False) or "") if html.count("<") <= _MOST_TAGS else ""
    if len(text) < _LEAST_KEPT * len(own):
        return own
    headline = _headline(title, blocks)
    return text if not headline or _words(headline) in _words(text) else f"{headline}\n{text}"


def check_extractor() -> None:
    """Raise the error that says what is missing, if the extractor cannot be used."""
    try:
        import trafilatura  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        feature = "The main text of a page"
        if find_spec("trafilatura") is None:
            raise MissingExtra(feature, "text") from error
        reason = normalize(str(error)).removesuffix(".")
        raise SiteloomError(f"{feature} needs trafilatura, which cannot be imported: {reason}.") from error


def _blocks(
    segments: PageSegments, by_template: Sequence[Block], repeated: Sequence[bool]
) -> Sequence[Block]:
    """The blocks of a page, where what is repeated counts as template; unless the page itself is repeated."""
    marked = zip(marks_in_order(segments, by_template), repeated, strict=True)
    by_pages = marked_blocks(segments, [any(marks) for marks in marked])
    own = of_others = 0
    for block, same in zip(by_template, by_pages, strict=True):
        if not block.is_template:
            own += len(block.text)
            of_others += len(same.text) if same.is_template else 0
    return by_template if of_others > _SEEN_BEFORE * own else by_pages


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
