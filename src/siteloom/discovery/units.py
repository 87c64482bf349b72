"""What the rows of a table are made of: whole pages, or the records that list pages repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from siteloom.discovery.listing import main_listing
from siteloom.dom import node_path, parse
from siteloom.model import Failure
from siteloom.spacing import evenly_spaced
from siteloom.template.page_texts import TextCollector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.config import ParseSettings
    from siteloom.dom import Element
    from siteloom.model import Page
    from siteloom.template.page_texts import PageTexts

_LONGEST_TEXT = 20_000  # characters of a text node: articles and descriptions are values here
_LOOKED_AT = 60  # pages tell whether a cluster has lists


@dataclass(frozen=True, slots=True)
class Units:
    """Pages, or records of list pages: the page of each unit, and its elements if it is a part.

    `texts` are those of the units, which are its pages.
    """

    pages: Sequence[Page]
    page_of: tuple[int, ...]
    elements: tuple[tuple[Element, ...], ...]
    texts: PageTexts
    failures: tuple[Failure, ...]
    limits: ParseSettings

    @property
    def are_parts(self) -> bool:
        """Whether units are parts of pages."""
        return bool(self.elements)

    def url(self, unit: int) -> str:
        """The address of the page."""
        return self.pages[self.page_of[unit]].url

    def tops(self, unit: int) -> tuple[Element, ...]:
        """The elements of a unit; of a page, which is parsed again as no tree is kept, the root."""
        if self.elements:
            return self.elements[unit]
        root = parse(self.pages[self.page_of[unit]], self.limits, collect_ids=False)
        assert not isinstance(root, Failure), "it was read before"
        return (root,)

    def node(self, unit: int, row: int) -> str:
        """The path of the node that a row of the texts is about, from the root of its page."""
        path = self.texts.path_text(int(self.texts.path[row]))
        if not self.elements:
            return path
        top, _, below = path[1:].partition("/")
        number = int(top[top.rindex("[") + 1 : -1])
        return f"{node_path(self.elements[unit][number - 1])}/{below}"


def units_of(pages: Sequence[Page], limits: ParseSettings) -> Units:
    """The units of pages that were made from one template."""
    some = (parse(page, limits, collect_ids=False) for page in evenly_spaced(pages, _LOOKED_AT))
    is_listing = main_listing([root for root in some if not isinstance(root, Failure)]) is not None
    return _parts(pages, limits) if is_listing else _whole_pages(pages, limits)


def _whole_pages(pages: Sequence[Page], limits: ParseSettings) -> Units:
    collector = TextCollector(_LONGEST_TEXT)
    failures, page_of = [], []
    for number, page in enumerate(pages):
        root = parse(page, limits, collect_ids=False)
        if isinstance(root, Failure):
            failures.append(root)
        else:
            collector.add(root)
            page_of.append(number)
    return Units(pages, tuple(page_of), (), collector.collected(), tuple(failures), limits)


def _parts(pages: Sequence[Page], limits: ParseSettings) -> Units:
    parsed = [parse(page, limits, collect_ids=False) for page in pages]
    readable = [number for number, root in enumerate(parsed) if not isinstance(root, Failure)]
    roots = [root for root in parsed if not isinstance(root, Failure)]
    listing = main_listing(roots)
    if listing is None:  # of all pages, fewer have lists than of those looked at
        return _whole_pages(pages, limits)
    collector = TextCollector(_LONGEST_TEXT)
    for part in listing.parts:
        collector.add(*part.elements)
    return Units(
        pages,
        tuple(readable[part.page] for part in listing.parts),
        tuple(part.elements for part in listing.parts),
        collector.collected(),
        tuple(root for root in parsed if isinstance(root, Failure)),
        limits,
    )
