"""A page as blocks of text: what stands in one layout element, parted into segments by any markup.

The text of a layout element inside another is a block of its own, however deeply layouts are nested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from lxml import etree

from siteloom.html.tag_scanner import name_hash
from siteloom.html.text_scanner import BREAKS_LINE, IS_HIDDEN, IS_LAYOUT, NO_ELEMENT, TagMeanings, scan_texts
from siteloom.html.visible_text import BREAKS, HIDDEN, normalize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from siteloom.html.parser import Element
    from siteloom.html.text_scanner import TextScan

LAYOUT = BREAKS - {"br", "hr", "optgroup", "option"}
"""Elements that a browser lays out as a box of their own, paragraphs and list items as well as the tables and
divisions of old: so a line that comes back on every page is told from the text around it, and what is left is
in lines. The options of a list are one block, and a line break inside a text begins none."""

# A site's template comes back on every page; all else fills up what is remembered, until all is forgotten.
_MOST_REMEMBERED = 100_000
_LONGEST_REMEMBERED = 500  # characters; longer texts hardly ever come back


def _meanings() -> TagMeanings:
    sets = ((BREAKS, BREAKS_LINE), (LAYOUT, IS_LAYOUT), (HIDDEN, IS_HIDDEN))
    found = sorted(
        (int(name_hash(tag)), sum(meaning for tags, meaning in sets if tag in tags))
        for tag in BREAKS | LAYOUT | HIDDEN
    )
    names, meanings = zip(*found, strict=True)
    return TagMeanings(np.array(names, np.uint64), np.array(meanings, np.uint8))


_MEANINGS = _meanings()

_LEAST_PART = 0.7  # of the characters of a template block are in template segments; the paper's


class Block(NamedTuple):
    """The text of one layout element of a page, in segments, and which of them are template text.

    A segment begins with a blank where one parts it from the segment before. By the rule of the paper, all of
    a template block is template.
    """

    path: str
    segments: tuple[str, ...]
    are_template: tuple[bool, ...]
    is_template: bool

    @property
    def text(self) -> str:
        """What a person reads there, in normal form."""
        return "".join(self.segments).strip()

    @property
    def content(self) -> str:
        """What is not template.

        Of a content block that is all, since a sentence needs each of its words; of a template block the
        segments that are not, since a value may stand behind a label that is longer than it.
        """
        if not self.is_template:
            return self.text
        if all(self.are_template):  # as most are
            return ""
        marked = zip(self.segments, self.are_template, strict=True)
        return "".join([segment for segment, is_template in marked if not is_template]).strip()


class PageSegments(NamedTuple):
    """The segments of a page, in document order, before they are judged.

    Of each: the hash of its text and path together, the hash of its path, its characters in normal form, its
    text as in a `Block`, and the number of the block it belongs to; blocks are numbered from 0 in the order
    in which their texts begin, and have the paths that `block_paths` tells.
    """

    keys: list[int]
    paths: list[int]
    lengths: list[int]
    texts: list[str]
    blocks: list[int]
    block_paths: list[str]


def marked_blocks(page: PageSegments, marks: Sequence[bool], *, is_all: bool = False) -> tuple[Block, ...]:
    """The blocks of a page by which of its segments are template; with `is_all`, all of such a block is."""
    texts, lengths = page.texts, page.lengths
    sizes = [0] * len(page.block_paths)
    for block in page.blocks:
        sizes[block] += 1
    order: Sequence[int] = range(len(marks))
    if page.blocks != sorted(page.blocks):  # a text stands around other layout elements
        order = sorted(order, key=page.blocks.__getitem__)
    blocks = []
    start = 0
    for path, size in zip(page.block_paths, sizes, strict=True):
        if size == 1:  # as most are
            place = order[start]
            mark = marks[place]
            blocks.append(Block(path, (texts[place],), (mark,), mark))
        else:
            places = order[start : start + size]
            characters = sum([lengths[place] for place in places])
            in_template = sum([lengths[place] for place in places if marks[place]])
            is_template = in_template > _LEAST_PART * characters
            of_block = (True,) * size if is_template and is_all else tuple([marks[place] for place in places])
            blocks.append(Block(path, tuple([texts[place] for place in places]), of_block, is_template))
        start += size
    return tuple(blocks)


def marks_in_order(page: PageSegments, blocks: Sequence[Block]) -> Iterator[bool]:
    """Of each segment of a page, in document order, whether it is template; as its blocks have it."""
    marks = [iter(block.are_template) for block in blocks]
    return (next(marks[block]) for block in page.blocks)


# All that the serializer writes in texts; control characters, which XML cannot hold, become the third.
_REFERENCES = (("&lt;", "<"), ("&gt;", ">"), ("&#xFFFD;", "\ufffd"), ("&#13;", "\r"), ("&amp;", "&"))


def _unescaped(text: str) -> str:
    """A text without the references that the serializer writes."""
    if "&" not in text:
        return text
    for reference, character in _REFERENCES:
        text = text.replace(reference, character)
    return text


class Segmenter:
    """Parts pages into blocks and segments; what comes back from page to page is made once."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[str, str]] = {}  # each also with a blank before it
        self._paths: dict[int, str] = {}

    def segments(self, root: Element) -> PageSegments:
        """The segments of a page."""
        if len(self._texts) + len(self._paths) > _MOST_REMEMBERED:
            self._texts.clear()
            self._paths.clear()
        xml = etree.tostring(root, encoding="utf-8", with_tail=False)
        scan = scan_texts(xml, _MEANINGS)
        keys = scan.keys.tolist()
        texts = self._texts
        ranges = zip(keys, scan.are_apart.tolist(), scan.starts.tolist(), scan.ends.tolist(), strict=True)
        layouts = zip(scan.layout_paths.tolist(), scan.layouts.tolist(), strict=True)
        return PageSegments(
            keys,
            scan.paths.tolist(),
            scan.lengths.tolist(),
            [(texts.get(key) or self._text(key, xml[start:end]))[apart] for key, apart, start, end in ranges],
            scan.blocks.tolist(),
            [self._paths.get(key) or self._path(key, layout, xml, scan) for key, layout in layouts],
        )

    def _text(self, key: int, written: bytes) -> tuple[str, str]:
        text = normalize(_unescaped(written.decode()))
        both = text, f" {text}"
        if len(text) <= _LONGEST_REMEMBERED:
            self._texts[key] = both
        return both

    def _path(self, key: int, element: int, xml: bytes, scan: TextScan) -> str:
        tags = []
        while element != NO_ELEMENT:
            tags.append(xml[scan.names[element] : scan.name_ends[element]].decode())
            element = int(scan.parents[element])
        path = self._paths[key] = "/".join(reversed(tags))
        return path
