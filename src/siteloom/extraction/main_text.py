"""Clean text, clean HTML and main text of a page.

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
from collections import defaultdict
from importlib.util import find_spec
from typing import TYPE_CHECKING

from lxml import etree

from siteloom.core.errors import MissingExtra, SiteloomError
from siteloom.html.node_paths import TextPosition, texts_from
from siteloom.html.visible_text import normalize
from siteloom.templates.template_text import readable_tree
from siteloom.templates.text_blocks import marked_blocks, marks_in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from siteloom.core.model import Page
    from siteloom.html.parser import Element
    from siteloom.templates.template_text import SegmentTable
    from siteloom.templates.text_blocks import Block, PageSegments


def without_template(page: Page, table: SegmentTable) -> str:
    """The HTML of a page without template text; elements that held nothing else are gone with it.

    What is kept is the text that `clean_text` keeps, where it stood, also inside of template; and images and
    all else that is no text.
    """
    root = readable_tree(page)
    segments = table.segments_of(root)
    remove_template(root, segments, table.judged(segments))
    return html_of(root)


def html_of(root: Element) -> str:
    """The tree of a page as HTML."""
    return etree.tostring(root, encoding="unicode", method="html", doctype="<!DOCTYPE html>")


def remove_template(root: Element, segments: PageSegments, blocks: Sequence[Block]) -> None:
    """Take the template out of the tree of a page, whose segments and blocks these are."""
    spots = list(texts_from(TextPosition(root, None)))
    emptied: set[Element] = set()
    for spot, block, mark in zip(spots, segments.blocks, marks_in_order(segments, blocks), strict=True):
        if mark and blocks[block].is_template:
            if spot.preceding is None:
                spot.parent.text = " "
            else:
                spot.preceding.tail = " "
            emptied.add(spot.parent)
    while emptied:
        inside: defaultdict[Element, set[Element]] = defaultdict(set)
        for element in emptied:
            above = element.getparent()
            if above is not None and element.tag != "body" and _is_empty(element):
                inside[above].add(element)
        for above, children in inside.items():
            _remove(children, above)
        emptied = set(inside)  # they may be without content, too, by now


def _remove(children: AbstractSet[Element], parent: Element) -> None:
    """Remove some children of an element; the texts behind them stay."""
    last: Element | None = None
    texts = [parent.text or ""]
    for child in [*parent, None]:
        if child is not None and child in children:
            texts.append(child.tail or "")
            parent.remove(child)
            continue
        if len(texts) > 1:
            if last is None:
                parent.text = "".join(texts)
            else:
                last.tail = "".join(texts)
        if child is not None:
            last, texts = child, [child.tail or ""]


def _is_empty(element: Element) -> bool:
    if element.text and not element.text.isspace():
        return False
    return all(
        not isinstance(child.tag, str) and (not child.tail or child.tail.isspace()) for child in element
    )


def clean_text(page: Page, table: SegmentTable) -> str:
    """The text of a page without template, a line for each block; the page is not taken into the table."""
    return text_of(table.blocks(page))


def text_of(blocks: Iterable[Block]) -> str:
    """What is no template of some blocks, a line for each that has any."""
    return "\n".join(text for block in blocks if (text := block.content))


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
