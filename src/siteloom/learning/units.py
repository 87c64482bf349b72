"""The units of the pages that are learned from, in one table."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from siteloom.learning.known_nodes import NodesByTable
from siteloom.learning.labelled import PlacedUnit
from siteloom.learning.table import Table, TableBuilder, insides
from siteloom.learning.trees import page_key
from siteloom.model import Failure
from siteloom.spacing import evenly_spaced

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from siteloom.dom import Element
    from siteloom.learning.labelled import Labelled
    from siteloom.learning.table import Inside, UnitRows
    from siteloom.learning.trees import Trees
    from siteloom.model import Example, Page
    from siteloom.wrapper.language import RecordRule
    from siteloom.wrapper.selection import Scope
    from siteloom.wrapper.wrapper import KnownNodes

MOST_UNLABELLED = 200
"""Of the pages without examples so many are looked at: time grows with them, and rules hardly change."""

_MOST_UNITS = 1_000  # list pages have many records each


class SeenPage(NamedTuple):
    """A page that is looked at, with the number of its example if it has one."""

    page: Page
    example: int | None


class Targets(NamedTuple):
    """What rules choose from besides texts: the values of HTML attributes, and elements of some tags."""

    attributes: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()


class PageUnits(NamedTuple):
    """A page by its number among those seen, with the parts of it that are units; None is all of it."""

    number: int
    root: Element
    scopes: Sequence[Scope | None]


UnitKey: TypeAlias = "tuple[int, Element | None]"
"""A unit by the number of its page among those seen, and the element that begins it if it is a record."""


def seen_pages(examples: Sequence[Example], pages: Sequence[Page]) -> list[SeenPage]:
    """The pages to look at: examples of other pages, and then the pages, as many as there is time for.

    Of a page that an example shows as it was at another time, only that is looked at.
    """
    known_urls = {example.page.url for example in examples}
    example_of = {page_key(example.page): number for number, example in reversed([*enumerate(examples)])}
    unlabelled = [number for number, page in enumerate(pages) if page.url not in known_urls]
    looked_at = set(evenly_spaced(unlabelled, MOST_UNLABELLED))
    own = [
        SeenPage(page, example_of.pop(page_key(page), None))
        for number, page in enumerate(pages)
        if number in looked_at or page_key(page) in example_of
    ]
    taken = {one.example for one in own}
    foreign = [
        SeenPage(example.page, number) for number, example in enumerate(examples) if number not in taken
    ]
    return [*foreign, *own]


def page_units(seen: Sequence[SeenPage], rule: RecordRule | None, trees: Trees) -> Iterator[PageUnits]:
    """The units of pages: of those with examples all, of the others as many as there is time for."""

    def scopes(root: Element) -> Sequence[Scope | None]:
        return [None] if rule is None else trees.scopes(rule, root)

    count = sum(
        len(scopes(root)) for _, root in trees.parsed(one.page for one in seen if one.example is not None)
    )
    for number, one in enumerate(seen):
        if one.example is None and count >= _MOST_UNITS:
            continue
        root = trees.root(one.page)
        if not isinstance(root, Failure):
            found = scopes(root)
            count += len(found) if one.example is None else 0
            yield PageUnits(number, root, found)


class UnitTable:
    """The units of pages in one table, and where they stand in it.

    Only of the units that are `needed` the nodes are known afterwards; without these, of all.
    """

    def __init__(
        self,
        pages: Iterable[PageUnits],
        targets: Targets,
        *,
        with_tails: bool,
        needed: Collection[UnitKey] | None = None,
    ) -> None:
        builder = TableBuilder(targets.attributes, targets.tags)
        self._rows: dict[int, UnitRows] = {}
        self._units: dict[UnitKey, int] = {}
        numbers: dict[Element, int] = {}
        for page in pages:
            for scope in page.scopes:
                tops = [page.root] if scope is None else scope.tops
                rows = builder.add(*tops, with_tails=with_tails)
                key = page.number, None if scope is None else scope.start
                if needed is None or key in needed:
                    unit = builder.units - 1
                    self._rows[unit] = rows
                    self._units[key] = numbers[tops[0]] = unit
        self.table = Table(builder)
        self._nodes = NodesByTable(self.table, self._rows, numbers)

    def add(self, targets: Targets) -> None:
        """Let rules choose from these as well."""
        known = self.table.insides
        attributes = [name for name in sorted(targets.attributes) if f"@{name}" not in known]
        tags = targets.tags - known.keys()
        if not (attributes or tags):
            return
        found: defaultdict[str, list[Inside]] = defaultdict(list)
        for rows in self._rows.values():
            for key, said in insides(rows, attributes, tags).items():
                found[key] += said
        self.table.add_insides(found)

    def placed(self, key: UnitKey, labelled: Labelled) -> PlacedUnit:
        """What is known of a unit, where it stands."""
        unit = self._units[key]
        return PlacedUnit(unit, labelled, self._rows[unit])

    def known_nodes(self, tags: frozenset[str]) -> KnownNodes:
        """The nodes that rules mean which choose from elements of these tags."""
        return partial(self._nodes.find, tags)
