"""The units to learn from, whole pages or the records of list pages, and caches of their parsed trees."""

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
from siteloom.learning.induction.tree_walk import TableBuilder, UnitRows, inner_texts
from siteloom.learning.induction.unit_slices import Nodes
from siteloom.learning.repeated_structure.record_rules import ElementFeatureCache
from siteloom.learning.value_search.labelled_units import PlacedUnit
from siteloom.learning.value_search.value_locations import ValueIndex
from siteloom.templates.signature import signature
from siteloom.wrappers.rule_evaluation import records
from siteloom.wrappers.rule_features import RecordRule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from siteloom.core.model import Example, Page
    from siteloom.html.parser import Element
    from siteloom.learning.induction.tree_walk import InnerText
    from siteloom.learning.induction.unit_slices import Span, WalkedPages
    from siteloom.learning.value_search.labelled_units import LabelledValues
    from siteloom.wrappers.rule_evaluation import Scope
    from siteloom.wrappers.rule_features import Feature
    from siteloom.wrappers.wrapper import KnownNodes


if TYPE_CHECKING:
    PageKey = tuple[str, bytes, str | None]
    ScopesKey = tuple[Element, tuple[Feature, ...], bool]


def page_key(page: Page) -> PageKey:
    """Return the identity of a page's content, regardless of when it was fetched."""
    return page.url, page.html, page.charset


class Trees:
    """A cache of the trees of pages and of what is derived from them.

    Trees of `max_tree_bytes` bytes of pages are cached, not counting those of examples; in memory a tree is
    about ten times as large as its page. With a limit, nothing else is cached.
    """

    def __init__(self, max_tree_bytes: float = math.inf, limits: ParseSettings = ParseSettings()) -> None:
        self._limits = limits.learned
        self.keeps_all = max_tree_bytes == math.inf
        self._free_bytes = max_tree_bytes
        self._roots: dict[PageKey, Element | Failure] = {}
        self.looks = ElementFeatureCache()
        self._value_indices: dict[Element, ValueIndex] = {}
        self._scopes: dict[ScopesKey, list[Scope]] = {}
        self._signatures: dict[PageKey, bytes | None] = {}

    def root(self, page: Page, *, is_example: bool = False) -> Element | Failure:
        """Return the tree of a page, or the failure to parse it."""
        key = page_key(page)
        root = self._roots.get(key)
        if root is None:
            root = parse(page, self._limits)
            if is_example or len(page.html) <= self._free_bytes:
                self._free_bytes -= 0 if is_example else len(page.html)
                self._roots[key] = root
        return root

    def parsed(self, pages: Iterable[Page]) -> Iterator[tuple[Page, Element]]:
        """Yield the readable pages with their trees."""
        for page in pages:
            root = self.root(page)
            if not isinstance(root, Failure):
                yield page, root

    def value_index(self, root: Element) -> ValueIndex:
        """Return the index of value locations on a page."""
        if not self.keeps_all:
            return ValueIndex(root)
        if root not in self._value_indices:
            self._value_indices[root] = ValueIndex(root)
        return self._value_indices[root]

    def scopes(self, rule: RecordRule, root: Element) -> list[Scope]:
        """Return the scopes of the records of a list page."""
        if not self.keeps_all:
            return records(rule, root)
        scopes = self._scopes_by(rule.features, root, runs_on=rule.runs_on)
        if not scopes and rule.fallback:
            scopes = self._scopes_by(rule.fallback, root, runs_on=rule.runs_on)
        return scopes

    def _scopes_by(self, features: tuple[Feature, ...], root: Element, *, runs_on: bool) -> list[Scope]:
        key = root, features, runs_on
        if key not in self._scopes:
            self._scopes[key] = records(RecordRule(features, runs_on), root)
        return self._scopes[key]

    def signature(self, page: Page) -> bytes | None:
        """Return the signature of a page."""
        if not self.keeps_all:
            return signature(page.html)
        key = page_key(page)
        if key not in self._signatures:
            self._signatures[key] = signature(page.html)
        return self._signatures[key]


MOST_UNLABELLED = 200
"""Pages without examples to sample: more take more time and hardly change the rules."""

_MOST_UNITS = 1_000  # list pages have many records each


class SampledPage(NamedTuple):
    """A page to learn from, with the number of its example if it has one."""

    page: Page
    example: int | None


class Targets(NamedTuple):
    """The nodes, besides texts, that rules choose from: HTML attributes, and elements of some tags."""

    attributes: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()


class PageUnits(NamedTuple):
    """The number of a sampled page, and the scopes of its units; None stands for the whole page."""

    number: int
    root: Element
    scopes: Sequence[Scope | None]


UnitKey: TypeAlias = "tuple[int, Element | None]"
"""The key of a unit: the number of its sampled page, and the first element of its record if it is one."""


def sample_pages(examples: Sequence[Example], pages: Sequence[Page]) -> list[SampledPage]:
    """Return examples of other pages, then a sample of the pages.

    If an example shows another version of a page, only the version of the example is used.
    """
    known_urls = {example.page.url for example in examples}
    example_of = {page_key(example.page): number for number, example in reversed([*enumerate(examples)])}
    unlabelled = [number for number, page in enumerate(pages) if page.url not in known_urls]
    looked_at = set(evenly_spaced(unlabelled, MOST_UNLABELLED))
    own = [
        SampledPage(page, example_of.pop(page_key(page), None))
        for number, page in enumerate(pages)
        if number in looked_at or page_key(page) in example_of
    ]
    covered_examples = {page.example for page in own}
    foreign = [
        SampledPage(example.page, number)
        for number, example in enumerate(examples)
        if number not in covered_examples
    ]
    return [*foreign, *own]


def unsampled_units(
    sampled_pages: Sequence[SampledPage], used_pages: Sequence[PageUnits], rule: RecordRule, trees: Trees
) -> list[PageUnits]:
    """Return the units of list pages that are not among the used pages."""
    numbers = {page.number for page in used_pages}
    trees_by_number = (
        (number, trees.root(page.page)) for number, page in enumerate(sampled_pages) if number not in numbers
    )
    return [
        PageUnits(number, root, trees.scopes(rule, root))
        for number, root in trees_by_number
        if not isinstance(root, Failure)
    ]


def page_units(
    sampled_pages: Sequence[SampledPage], rule: RecordRule | None, trees: Trees
) -> Iterator[PageUnits]:
    """Yield the units of pages: of all pages with examples, and of others up to a limit."""

    def scopes(root: Element) -> Sequence[Scope | None]:
        return [None] if rule is None else trees.scopes(rule, root)

    unit_count = sum(
        len(scopes(root))
        for _, root in trees.parsed(page.page for page in sampled_pages if page.example is not None)
    )
    for number, page in enumerate(sampled_pages):
        if page.example is None and unit_count >= _MOST_UNITS:
            continue
        root = trees.root(page.page)
        if not isinstance(root, Failure):
            page_scopes = scopes(root)
            unit_count += len(page_scopes) if page.example is None else 0
            yield PageUnits(number, root, page_scopes)


class UnitTable:
    """The units of pages in one table, with their positions in it."""

    def __init__(
        self, table: Table, keys: Mapping[UnitKey, int], tops: Mapping[int, Element], source: RowSource
    ) -> None:
        """`keys` has the numbers, and `tops` the first elements, of units whose nodes are known."""
        self.table = table
        self._keys = keys
        self._source = source
        self._nodes = NodesByTable(table, source.nodes, {top: unit for unit, top in tops.items()})

    def add(self, targets: Targets) -> None:
        """Add targets that rules can choose from; the nodes of all units must be known."""
        columns = self.table.inner_texts
        attributes = [name for name in sorted(targets.attributes) if f"@{name}" not in columns]
        tags = targets.tags - columns.keys()
        if not (attributes or tags):
            return
        new_texts: defaultdict[str, list[InnerText]] = defaultdict(list)
        for unit in range(self.table.units):
            for key, texts in inner_texts(self._source.rows(unit), attributes, tags).items():
                new_texts[key] += texts
        self.table.add_inner_texts(new_texts)

    def placed(self, key: UnitKey, labelled: LabelledValues) -> PlacedUnit:
        """Return a labelled unit with its number and rows in the table."""
        unit = self._keys[key]
        return PlacedUnit(unit, labelled, self._source.rows(unit))

    def known_nodes(self, tags: frozenset[str]) -> KnownNodes:
        """Return a lookup of the nodes that rules select, for elements with these tags."""
        return partial(self._nodes.find, tags)


class RowSource(Protocol):
    """A source of the nodes of units, by the number of the unit."""

    def rows(self, unit: int) -> UnitRows:
        """Return the rows of the nodes of a unit."""
        ...

    def nodes(self, unit: int) -> Nodes:
        """Return the nodes of a unit, in the order of their rows."""
        ...


class _WalkedRows(NamedTuple):
    """Rows of units that a table builder returned."""

    rows_by_unit: Mapping[int, UnitRows]

    def rows(self, unit: int) -> UnitRows:
        return self.rows_by_unit[unit]

    def nodes(self, unit: int) -> Nodes:
        return Nodes.of(self.rows_by_unit[unit])


def walked_units(
    pages: Iterable[PageUnits], targets: Targets, needed: Collection[UnitKey], *, with_tails: bool
) -> UnitTable:
    """Put the units of pages into a table; only the nodes of the `needed` units stay known."""
    builder = TableBuilder(targets.attributes, targets.tags)
    rows_by_unit: dict[int, UnitRows] = {}
    keys: dict[UnitKey, int] = {}
    for page in pages:
        for scope in page.scopes:
            rows = builder.add(*_tops(page.root, scope), with_tails=with_tails)
            key = _unit_key(page, scope)
            if key in needed:
                keys[key] = builder.units - 1
                rows_by_unit[builder.units - 1] = rows
    tops = {unit: rows.tops[0] for unit, rows in rows_by_unit.items()}
    return UnitTable(table=Table(builder), keys=keys, tops=tops, source=_WalkedRows(rows_by_unit))


class _CutRows:
    """Rows of units that are slices of walked pages; they are assembled on demand."""

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
    """Put the units of pages into a table; pages that are not walked yet are walked first."""
    keys: dict[UnitKey, int] = {}
    units: list[tuple[Element, Scope | None]] = []
    for page in pages:
        walked.add(page.root)
        for scope in page.scopes:
            keys[_unit_key(page, scope)] = len(units)
            units.append((page.root, scope))
    cut = _CutRows(walked, units, [walked.span(*unit) for unit in units])
    tops = {unit: root if scope is None else scope.start for unit, (root, scope) in enumerate(units)}
    return UnitTable(table=cut.table, keys=keys, tops=tops, source=cut)


def _unit_key(page: PageUnits, scope: Scope | None) -> UnitKey:
    return page.number, None if scope is None else scope.start


def _tops(root: Element, scope: Scope | None) -> list[Element]:
    return [root] if scope is None else scope.tops
