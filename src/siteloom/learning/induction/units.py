"""Units, the things that are learned from: whole pages, or the records of list pages; with their parsed
pages.
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from siteloom.core.model import Failure
from siteloom.core.sequences import evenly_spaced
from siteloom.core.settings import ParseSettings
from siteloom.html.parser import parse
from siteloom.learning.induction.feature_columns import Table
from siteloom.learning.induction.match_cache import NodesByTable
from siteloom.learning.induction.tree_walk import TableBuilder, UnitRows, insides
from siteloom.learning.induction.unit_slices import Nodes
from siteloom.learning.repeated_structure.record_rules import Looks
from siteloom.learning.value_search.labelled_units import PlacedUnit
from siteloom.learning.value_search.value_locations import PlaceIndex
from siteloom.templates.signature import signature
from siteloom.wrappers.rule_evaluation import records
from siteloom.wrappers.rule_features import RecordRule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from siteloom.core.model import Example, Page
    from siteloom.html.parser import Element
    from siteloom.learning.induction.tree_walk import Inside
    from siteloom.learning.induction.unit_slices import Span, WalkedPages
    from siteloom.learning.value_search.labelled_units import Labelled
    from siteloom.wrappers.rule_evaluation import Scope
    from siteloom.wrappers.rule_features import Feature
    from siteloom.wrappers.wrapper import KnownNodes


if TYPE_CHECKING:
    PageKey = tuple[str, bytes, str | None]
    ScopesKey = tuple[Element, tuple[Feature, ...], bool]


def page_key(page: Page) -> PageKey:
    """What a page is known by: whenever it was fetched, the same is read on it."""
    return page.url, page.html, page.charset


class Trees:
    """Trees of pages.

    `most_kept` is how many bytes of pages are kept as trees, those of examples not counted; in memory a tree
    is about ten times as large. Where that has a limit, nothing else is kept either.
    """

    def __init__(self, most_kept: float = math.inf, limits: ParseSettings = ParseSettings()) -> None:
        self._limits = limits.learned
        self.keeps_all = most_kept == math.inf
        self._left = most_kept
        self._roots: dict[PageKey, Element | Failure] = {}
        self.looks = Looks()
        self._places: dict[Element, PlaceIndex] = {}
        self._scopes: dict[ScopesKey, list[Scope]] = {}
        self._signatures: dict[PageKey, bytes | None] = {}

    def root(self, page: Page, *, is_example: bool = False) -> Element | Failure:
        """The tree of a page, or why it has none."""
        key = page_key(page)
        root = self._roots.get(key)
        if root is None:
            root = parse(page, self._limits)
            if is_example or len(page.html) <= self._left:
                self._left -= 0 if is_example else len(page.html)
                self._roots[key] = root
        return root

    def parsed(self, pages: Iterable[Page]) -> Iterator[tuple[Page, Element]]:
        """The pages that can be read, with their trees."""
        for page in pages:
            root = self.root(page)
            if not isinstance(root, Failure):
                yield page, root

    def places(self, root: Element) -> PlaceIndex:
        """Where values stand on a page."""
        if not self.keeps_all:
            return PlaceIndex(root)
        if root not in self._places:
            self._places[root] = PlaceIndex(root)
        return self._places[root]

    def scopes(self, rule: RecordRule, root: Element) -> list[Scope]:
        """The records of a list page."""
        if not self.keeps_all:
            return records(rule, root)
        found = self._scopes_by(rule.features, root, runs_on=rule.runs_on)
        if not found and rule.fallback:
            found = self._scopes_by(rule.fallback, root, runs_on=rule.runs_on)
        return found

    def _scopes_by(self, features: tuple[Feature, ...], root: Element, *, runs_on: bool) -> list[Scope]:
        key = root, features, runs_on
        if key not in self._scopes:
            self._scopes[key] = records(RecordRule(features, runs_on), root)
        return self._scopes[key]

    def signature(self, page: Page) -> bytes | None:
        """The signature of a page."""
        if not self.keeps_all:
            return signature(page.html)
        key = page_key(page)
        if key not in self._signatures:
            self._signatures[key] = signature(page.html)
        return self._signatures[key]


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


def left_out(
    seen: Sequence[SeenPage], looked_at: Sequence[PageUnits], rule: RecordRule, trees: Trees
) -> list[PageUnits]:
    """The units of list pages that there was no time for."""
    numbers = {page.number for page in looked_at}
    found = ((number, trees.root(one.page)) for number, one in enumerate(seen) if number not in numbers)
    return [
        PageUnits(number, root, trees.scopes(rule, root))
        for number, root in found
        if not isinstance(root, Failure)
    ]


def page_units(seen: Sequence[SeenPage], rule: RecordRule | None, trees: Trees) -> Iterator[PageUnits]:
    """The units of pages: of those with examples all, of the others as many as there is time for."""

    def scopes(root: Element) -> Sequence[Scope | None]:
        return [None] if rule is None else trees.scopes(rule, root)

    so_far = sum(
        len(scopes(root)) for _, root in trees.parsed(one.page for one in seen if one.example is not None)
    )
    for number, one in enumerate(seen):
        if one.example is None and so_far >= _MOST_UNITS:
            continue
        root = trees.root(one.page)
        if not isinstance(root, Failure):
            found = scopes(root)
            so_far += len(found) if one.example is None else 0
            yield PageUnits(number, root, found)


class UnitTable:
    """The units of pages in one table, and where they stand in it."""

    def __init__(
        self, table: Table, keys: Mapping[UnitKey, int], tops: Mapping[int, Element], source: RowSource
    ) -> None:
        """`keys` and `tops`, by unit, are those of units whose nodes are known."""
        self.table = table
        self._keys = keys
        self._source = source
        self._nodes = NodesByTable(table, source.nodes, {top: unit for unit, top in tops.items()})

    def add(self, targets: Targets) -> None:
        """Let rules choose from these as well; the nodes of all units must be known."""
        known = self.table.insides
        attributes = [name for name in sorted(targets.attributes) if f"@{name}" not in known]
        tags = targets.tags - known.keys()
        if not (attributes or tags):
            return
        found: defaultdict[str, list[Inside]] = defaultdict(list)
        for unit in range(self.table.units):
            for key, said in insides(self._source.rows(unit), attributes, tags).items():
                found[key] += said
        self.table.add_insides(found)

    def placed(self, key: UnitKey, labelled: Labelled) -> PlacedUnit:
        """What is known of a unit, where it stands."""
        unit = self._keys[key]
        return PlacedUnit(unit, labelled, self._source.rows(unit))

    def known_nodes(self, tags: frozenset[str]) -> KnownNodes:
        """The nodes that rules mean which choose from elements of these tags."""
        return partial(self._nodes.find, tags)


class RowSource(Protocol):
    """Whoever knows the nodes of units, by their numbers."""

    def rows(self, unit: int) -> UnitRows:
        """The rows of the nodes of a unit."""
        ...

    def nodes(self, unit: int) -> Nodes:
        """The nodes of a unit, in the order of their rows."""
        ...


class _WalkedRows(NamedTuple):
    """Rows of units as they were found."""

    found: Mapping[int, UnitRows]

    def rows(self, unit: int) -> UnitRows:
        return self.found[unit]

    def nodes(self, unit: int) -> Nodes:
        return Nodes.of(self.found[unit])


def walked_units(
    pages: Iterable[PageUnits], targets: Targets, needed: Collection[UnitKey], *, with_tails: bool
) -> UnitTable:
    """The units of pages in a table; only of those that are needed the nodes are known afterwards."""
    builder = TableBuilder(targets.attributes, targets.tags)
    found: dict[int, UnitRows] = {}
    keys: dict[UnitKey, int] = {}
    for page in pages:
        for scope in page.scopes:
            rows = builder.add(*_tops(page.root, scope), with_tails=with_tails)
            key = _key(page, scope)
            if key in needed:
                keys[key] = builder.units - 1
                found[builder.units - 1] = rows
    tops = {unit: rows.tops[0] for unit, rows in found.items()}
    return UnitTable(Table(builder), keys, tops, _WalkedRows(found))


class _CutRows:
    """Rows of units that were cut out of pages; they are put together when they are asked for."""

    def __init__(
        self, walked: WalkedPages, units: Sequence[tuple[Element, Scope | None]], spans: Sequence[Span]
    ) -> None:
        self._walked = walked
        self._units = units
        self._spans = spans
        self.table: Table = Table(walked.cut(spans))

    def rows(self, unit: int) -> UnitRows:
        elements, parents, numbers = self.nodes(unit)
        texts = zip(parents, numbers, strict=True)
        return UnitRows(
            tuple(_tops(*self._units[unit])),
            dict(zip(elements, count(int(self.table.first_elements[unit])), strict=False)),
            dict(zip(texts, count(int(self.table.first_texts[unit])), strict=False)),
        )

    def nodes(self, unit: int) -> Nodes:
        return self._walked.nodes(self._units[unit][0], self._spans[unit])


def cut_units(pages: Iterable[PageUnits], walked: WalkedPages) -> UnitTable:
    """The units of pages in a table, where pages are walked through that were not before."""
    keys: dict[UnitKey, int] = {}
    units: list[tuple[Element, Scope | None]] = []
    for page in pages:
        walked.add(page.root)
        for scope in page.scopes:
            keys[_key(page, scope)] = len(units)
            units.append((page.root, scope))
    cut = _CutRows(walked, units, [walked.span(*unit) for unit in units])
    tops = {unit: root if scope is None else scope.start for unit, (root, scope) in enumerate(units)}
    return UnitTable(cut.table, keys, tops, cut)


def _key(page: PageUnits, scope: Scope | None) -> UnitKey:
    return page.number, None if scope is None else scope.start


def _tops(root: Element, scope: Scope | None) -> list[Element]:
    return [root] if scope is None else scope.tops
