"""The units that become rows of a table: whole pages, or the repeated records of list pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from siteloom.core.model import Failure
from siteloom.core.sequences import evenly_spaced
from siteloom.html.node_paths import NodePaths, find
from siteloom.html.page_text_arrays import TextCollector
from siteloom.html.parser import parse
from siteloom.learning.repeated_structure.repeated_records import find_listed_records, main_listing
from siteloom.learning.repeated_structure.similar_siblings import USUAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from siteloom.core.model import Page
    from siteloom.core.settings import ParseSettings
    from siteloom.html.page_text_arrays import PageTexts
    from siteloom.html.parser import Element
    from siteloom.learning.repeated_structure.repeated_records import Listing

_LONGEST_TEXT = 20_000  # characters of a text node: articles and descriptions are values here
_BATCH_PAGES = 60
"""Pages that show whether a cluster has lists, and pages whose trees are kept at a time."""


@dataclass(frozen=True, slots=True)
class Units:
    """Pages, or records of list pages: the page of each unit, and its nodes if it is part of a page.

    `texts` are those of the units, with each unit as a page. Only a few trees are kept: `some_elements` has
    the elements of the units on these pages.
    """

    pages: Sequence[Page]
    page_of: tuple[int, ...]
    nodes: tuple[tuple[str, ...], ...]
    some_elements: Mapping[int, tuple[Element, ...]]
    texts: PageTexts
    failures: tuple[Failure, ...]
    limits: ParseSettings

    @property
    def are_parts(self) -> bool:
        """Whether units are parts of pages."""
        return bool(self.nodes)

    @property
    def elements(self) -> tuple[tuple[Element, ...], ...]:
        """The elements of the units whose trees are kept."""
        return tuple(self.some_elements.values())

    def url(self, unit: int) -> str:
        """Return the URL of the page of a unit."""
        return self.pages[self.page_of[unit]].url

    def tops(self, unit: int) -> tuple[Element, ...]:
        """Return the elements of a unit, or the root of a page; parse the page again if necessary."""
        if unit in self.some_elements:
            return self.some_elements[unit]
        root = parse(self.pages[self.page_of[unit]], self.limits, collect_ids=False)
        assert not isinstance(root, Failure), "it was read before"
        if not self.nodes:
            return (root,)
        return tuple(cast("Element", find(root, node)) for node in self.nodes[unit])

    def node(self, unit: int, row: int) -> str:
        """Return the path of the node of a row of the texts, from the root of its page."""
        path = self.texts.path_text(int(self.texts.path[row]))
        if not self.nodes:
            return path
        top, _, below = path[1:].partition("/")
        number = int(top[top.rindex("[") + 1 : -1])
        return f"{self.nodes[unit][number - 1]}/{below}"


def units_of(pages: Sequence[Page], limits: ParseSettings) -> Units:
    """Return the units of pages with one template."""
    trees = {
        number: parse(pages[number], limits, collect_ids=False)
        for number in evenly_spaced(range(len(pages)), _BATCH_PAGES)
    }
    listing = main_listing([root for root in trees.values() if not isinstance(root, Failure)])
    record_units = (
        None if listing is None else _record_units(pages=pages, trees=trees, listing=listing, limits=limits)
    )
    return _whole_pages(pages, trees, limits) if record_units is None else record_units


_Trees = dict[int, "Element | Failure"]


def _cached_tree(
    pages: Sequence[Page], number: int, trees: _Trees, limits: ParseSettings
) -> Element | Failure:
    return trees[number] if number in trees else parse(pages[number], limits, collect_ids=False)


def _whole_pages(pages: Sequence[Page], trees: _Trees, limits: ParseSettings) -> Units:
    """Return whole pages as units; pages without a tree are parsed one by one, to keep few trees."""
    collector = TextCollector(_LONGEST_TEXT)
    failures, page_of = [], []
    for number in range(len(pages)):
        root = _cached_tree(pages=pages, number=number, trees=trees, limits=limits)
        trees.pop(number, None)
        if isinstance(root, Failure):
            failures.append(root)
        else:
            collector.add(root)
            page_of.append(number)
    return Units(
        pages=pages,
        page_of=tuple(page_of),
        nodes=(),
        some_elements={},
        texts=collector.collected(),
        failures=tuple(failures),
        limits=limits,
    )


def _record_units(
    pages: Sequence[Page], trees: _Trees, listing: Listing, limits: ParseSettings
) -> Units | None:
    """Return the records of all pages as units; None if too few pages have lists."""
    collector = TextCollector(_LONGEST_TEXT)
    failures: list[Failure] = []
    page_of: list[int] = []
    nodes: list[tuple[str, ...]] = []
    some_elements: dict[int, tuple[Element, ...]] = {}
    for numbers in _batches(len(pages)):
        batch = {
            number: _cached_tree(pages=pages, number=number, trees=trees, limits=limits) for number in numbers
        }
        failures += [root for root in batch.values() if isinstance(root, Failure)]
        roots = {number: root for number, root in batch.items() if not isinstance(root, Failure)}
        readable = list(roots)
        paths = NodePaths()
        has_all_trees = len(trees) == len(pages)
        for record in (
            listing.records if has_all_trees else find_listed_records(list(roots.values()), listing.parents)
        ):
            if (page := readable[record.page]) in trees:
                some_elements[len(page_of)] = record.elements
            page_of.append(page)
            nodes.append(tuple(map(paths, record.elements)))
            collector.add(*record.elements)
    if len(set(page_of)) < USUAL * (len(pages) - len(failures)):
        return None
    return Units(
        pages=pages,
        page_of=tuple(page_of),
        nodes=tuple(nodes),
        some_elements=some_elements,
        texts=collector.collected(),
        failures=tuple(failures),
        limits=limits,
    )


def _batches(pages: int) -> Iterator[range]:
    """Yield batches of some dozens of pages, enough to show what varies."""
    count = -(-pages // _BATCH_PAGES)
    for number in range(count):
        yield range(number * pages // count, (number + 1) * pages // count)
