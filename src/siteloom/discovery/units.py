"""What the rows of a table are made of: whole pages, or the records that list pages repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from siteloom.discovery.listing import Listing, main_listing
from siteloom.dom import Element, node_path, parse
from siteloom.model import Failure
from siteloom.spacing import evenly_spaced
from siteloom.template.page_texts import TextCollector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.config import ParseSettings
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
    trees = {
        number: parse(pages[number], limits, collect_ids=False)
        for number in evenly_spaced(range(len(pages)), _LOOKED_AT)
    }
    listing = _listing(trees)
    if listing is not None and len(trees) < len(pages):
        trees = {number: parse(page, limits, collect_ids=False) for number, page in enumerate(pages)}
        listing = _listing(trees)  # None if of all pages fewer have lists than of those looked at
    return _whole_pages(pages, trees, limits) if listing is None else _parts(pages, trees, listing, limits)


_Trees = dict[int, Element | Failure]


def _listing(trees: _Trees) -> Listing | None:
    return main_listing([root for root in trees.values() if not isinstance(root, Failure)])


def _whole_pages(pages: Sequence[Page], trees: _Trees, limits: ParseSettings) -> Units:
    """All pages; those that are no tree yet are parsed one by one, so that few trees are kept."""
    collector = TextCollector(_LONGEST_TEXT)
    failures, page_of = [], []
    for number, page in enumerate(pages):
        root = trees.pop(number, None)
        if root is None:
            root = parse(page, limits, collect_ids=False)
        if isinstance(root, Failure):
            failures.append(root)
        else:
            collector.add(root)
            page_of.append(number)
    return Units(pages, tuple(page_of), (), collector.collected(), tuple(failures), limits)


def _parts(pages: Sequence[Page], trees: _Trees, listing: Listing, limits: ParseSettings) -> Units:
    readable = [number for number, root in trees.items() if not isinstance(root, Failure)]
    collector = TextCollector(_LONGEST_TEXT)
    for part in listing.parts:
        collector.add(*part.elements)
    return Units(
        pages,
        tuple(readable[part.page] for part in listing.parts),
        tuple(part.elements for part in listing.parts),
        collector.collected(),
        tuple(root for root in trees.values() if isinstance(root, Failure)),
        limits,
    )
