"""Split a page into blocks, the texts of layout elements, and blocks into segments at any markup.

The text of a layout element inside another is a separate block, however deeply layouts are nested.
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
"""Elements that a browser lays out as separate boxes, such as paragraphs, list items, tables and divisions.
So a line that repeats on every page is separated from the text around it, and the remaining text keeps its
lines. The options of a list are one block, and a line break inside a text begins none."""

# The template repeats on every page; other texts fill the cache until it is cleared.
_MAX_CACHED = 100_000
_LONGEST_CACHED = 500  # characters; longer texts hardly ever repeat


def _meanings() -> TagMeanings:
    sets = ((BREAKS, BREAKS_LINE), (LAYOUT, IS_LAYOUT), (HIDDEN, IS_HIDDEN))
    meaning_by_hash = sorted(
        (int(name_hash(tag)), sum(meaning for tags, meaning in sets if tag in tags))
        for tag in BREAKS | LAYOUT | HIDDEN
    )
    names, meanings = zip(*meaning_by_hash, strict=True)
    return TagMeanings(np.array(names, np.uint64), np.array(meanings, np.uint8))


_MEANINGS = _meanings()

_MIN_TEMPLATE_SHARE = 0.7  # of a template block's characters are in template segments, as in the paper


class Block(NamedTuple):
    """The text of one layout element of a page, in segments, with flags for template segments.

    A segment begins with a blank where one separates it from the previous segment. By the rule of the paper,
    all segments of a template block are template.
    """

    path: str
    segments: tuple[str, ...]
    are_template: tuple[bool, ...]
    is_template: bool

    @property
    def text(self) -> str:
        """The visible text, in normal form."""
        return "".join(self.segments).strip()

    @property
    def content(self) -> str:
        """The text without the template.

        A content block keeps all its text, since a sentence needs each of its words. A template block keeps
        the segments that are not template, since a value may follow a longer label.
        """
        if not self.is_template:
            return self.text
        if all(self.are_template):  # as most are
            return ""
        marked = zip(self.segments, self.are_template, strict=True)
        return "".join([segment for segment, is_template in marked if not is_template]).strip()


class PageSegments(NamedTuple):
    """The segments of a page, in document order, before they are judged.

    Each has the hash of its text and path together, the hash of its path, its number of characters in normal
    form, its text as in a `Block`, and the number of its block. Blocks are numbered from 0 in the order in
    which their texts begin; `block_paths` has their paths.
    """

    keys: list[int]
    paths: list[int]
    lengths: list[int]
    texts: list[str]
    blocks: list[int]
    block_paths: list[str]


def marked_blocks(
    page: PageSegments, marks: Sequence[bool], *, marks_whole_blocks: bool = False
) -> tuple[Block, ...]:
    """Return the blocks of a page, given which segments are template.

    With `marks_whole_blocks`, all segments of a template block become template.
    """
    texts, lengths = page.texts, page.lengths
    sizes = [0] * len(page.block_paths)
    for block in page.blocks:
        sizes[block] += 1
    order: Sequence[int] = range(len(marks))
    if page.blocks != sorted(page.blocks):  # a block may continue after nested layout elements
        order = sorted(order, key=page.blocks.__getitem__)
    blocks = []
    start = 0
    for path, size in zip(page.block_paths, sizes, strict=True):
        if size == 1:  # as most are
            index = order[start]
            mark = marks[index]
            blocks.append(Block(path=path, segments=(texts[index],), are_template=(mark,), is_template=mark))
        else:
            indices = order[start : start + size]
            characters = sum([lengths[index] for index in indices])
            template_characters = sum([lengths[index] for index in indices if marks[index]])
            is_template = template_characters > _MIN_TEMPLATE_SHARE * characters
            block_marks = (
                (True,) * size
                if is_template and marks_whole_blocks
                else tuple([marks[index] for index in indices])
            )
            blocks.append(
                Block(
                    path=path,
                    segments=tuple([texts[index] for index in indices]),
                    are_template=block_marks,
                    is_template=is_template,
                )
            )
        start += size
    return tuple(blocks)


def marks_in_order(page: PageSegments, blocks: Sequence[Block]) -> Iterator[bool]:
    """Return the template flag of each segment of a page in document order, taken from its blocks."""
    marks = [iter(block.are_template) for block in blocks]
    return (next(marks[block]) for block in page.blocks)


# The references that the serializer writes in texts; control characters, invalid in XML, become the third.
_REFERENCES = (("&lt;", "<"), ("&gt;", ">"), ("&#xFFFD;", "\ufffd"), ("&#13;", "\r"), ("&amp;", "&"))


def _unescaped(text: str) -> str:
    """Resolve the references that the serializer writes."""
    if "&" not in text:
        return text
    for reference, character in _REFERENCES:
        text = text.replace(reference, character)
    return text


class Segmenter:
    """Splits pages into blocks and segments, and caches texts that repeat across pages."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[str, str]] = {}  # each also with a blank before it
        self._paths: dict[int, str] = {}

    def segments(self, root: Element) -> PageSegments:
        """Return the segments of a page."""
        if len(self._texts) + len(self._paths) > _MAX_CACHED:
            self._texts.clear()
            self._paths.clear()
        xml = etree.tostring(root, encoding="utf-8", with_tail=False)
        scan = scan_texts(xml, _MEANINGS)
        keys = scan.keys.tolist()
        texts = self._texts
        ranges = zip(keys, scan.are_apart.tolist(), scan.starts.tolist(), scan.ends.tolist(), strict=True)
        layouts = zip(scan.layout_paths.tolist(), scan.layouts.tolist(), strict=True)
        return PageSegments(
            keys=keys,
            paths=scan.paths.tolist(),
            lengths=scan.lengths.tolist(),
            texts=[
                (texts.get(key) or self._text(key, xml[start:end]))[apart]
                for key, apart, start, end in ranges
            ],
            blocks=scan.blocks.tolist(),
            block_paths=[
                self._paths.get(key) or self._path(key=key, element=layout, xml=xml, scan=scan)
                for key, layout in layouts
            ],
        )

    def _text(self, key: int, written: bytes) -> tuple[str, str]:
        text = normalize(_unescaped(written.decode()))
        text_and_separated = text, f" {text}"
        if len(text) <= _LONGEST_CACHED:
            self._texts[key] = text_and_separated
        return text_and_separated

    def _path(self, key: int, element: int, xml: bytes, scan: TextScan) -> str:
        tags = []
        while element != NO_ELEMENT:
            tags.append(xml[scan.names[element] : scan.name_ends[element]].decode())
            element = int(scan.parents[element])
        path = self._paths[key] = "/".join(reversed(tags))
        return path
