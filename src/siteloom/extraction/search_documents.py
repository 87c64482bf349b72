"""What pages and records are searched by: their texts, told apart by how much each tells.

The title of a page says most, its headings more than its other text. Template text is left out. What stands
at the same place on many pages of the site is not template, but tells little; neither does a value that many
records have.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from siteloom.core.model import IndexDocument, Passage
from siteloom.html.visible_text import normalize
from siteloom.templates.text_blocks import marks_in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from siteloom.core.model import Field
    from siteloom.html.parser import Element
    from siteloom.templates.template_text import SegmentCounts, SegmentTable

_HEADINGS = frozenset({"h1", "h2", "h3"})
# A text on so many pages, and on such a share of those that have its path, hardly tells them apart.
_COMMON_PAGES = 5  # as for template text
_COMMON_SHARE = 0.2
# By these names records are called, if they have such.
_NAMES = ("name", "title", "headline")


def common_segments(counts: SegmentCounts) -> frozenset[int]:
    """The segments of a site that many of its pages have, template or not."""
    is_segment = counts.paths != 0
    keys, pages = counts.keys[is_segment], counts.counts[is_segment]
    path_pages = counts.counts[np.searchsorted(counts.keys[:-1], counts.paths[is_segment])]
    return frozenset(keys[(pages >= _COMMON_PAGES) & (pages >= _COMMON_SHARE * path_pages)].tolist())


def page_document(
    site: str, url: str, root: Element, table: SegmentTable, common: AbstractSet[int]
) -> IndexDocument:
    """A page as it is searched, by what its site's table says is template, and which segments are common."""
    title = root.find(".//title")
    words = "" if title is None else normalize("".join(title.itertext()))
    titles = (Passage(words, "title"),) if words else ()
    return IndexDocument("page", site, url, (*titles, *_texts(root, table, common)))


def _texts(root: Element, table: SegmentTable, common: AbstractSet[int]) -> Iterator[Passage]:
    """What is not template, a line for each block; passages end where the field changes.

    Template text inside of a sentence stays with it, but as what tells little.
    """
    segments = table.segments_of(root)
    blocks = table.judged(segments)
    fields: list[Field] = [
        "text" if _HEADINGS.isdisjoint(block.path.split("/")) else "heading" for block in blocks
    ]
    pieces: list[tuple[Field, str]] = []
    last_block = -1
    marks = marks_in_order(segments, blocks)
    for key, text, block, is_template in zip(
        segments.keys, segments.texts, segments.blocks, marks, strict=True
    ):
        if not (is_template and blocks[block].is_template):
            field: Field = "common" if is_template or key in common else fields[block]
            pieces.append((field, text if block == last_block else f"\n{text.lstrip()}"))
            last_block = block
    for field, run in groupby(pieces, key=itemgetter(0)):
        yield Passage("".join(text for _, text in run), field)


def unreadable_document(site: str, url: str) -> IndexDocument:
    """A page that has no text to be found by."""
    return IndexDocument("page", site, url, ())


class AttributeCounts:
    """How many records of each wrapper have which values: what most have tells little of any."""

    def __init__(self) -> None:
        self._records: Counter[tuple[str, str]] = Counter()
        self._values: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)

    def add(self, wrapper: str, values: Mapping[str, Iterable[str]]) -> None:
        """Count the values of a record."""
        for attribute, texts in values.items():
            self._records[wrapper, attribute] += 1
            self._values[wrapper, attribute].update({hash(text) for text in texts})

    def is_common(self, wrapper: str, attribute: str, text: str) -> bool:
        """Whether a value is one of those that many records have."""
        having = self._values[wrapper, attribute][hash(text)]
        return having >= _COMMON_PAGES and having >= _COMMON_SHARE * self._records[wrapper, attribute]


def record_document(site: str, row: Mapping[str, Any], counts: AttributeCounts) -> IndexDocument:
    """A record as it is searched: its name as a title, its other values as headings, but for common ones."""
    wrapper, values = row["wrapper"], row["values"]
    name = next((name for name in _NAMES if values.get(name)), next(iter(values), ""))
    passages = []
    for attribute in sorted(values, key=lambda attribute: attribute != name):
        for text in values[attribute]:
            is_common = counts.is_common(wrapper, attribute, text)
            field: Field = "title" if attribute == name else "common" if is_common else "heading"
            passages.append(Passage(normalize(text), field, attribute))
    return IndexDocument("record", site, row["url"], tuple(passages))
