"""Learning from the pages of one template, as often as their examples change.

    session = LearningSession(pages)
    learned = session.learn(examples)
    session.records(pages[0].url)

Results that depend only on the pages are computed once: their trees, the locations of values, and the table
that rules are tried on. Only parts affected by changed examples are rebuilt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from siteloom.core.errors import ExampleError, TooMuchFound, UsageError
from siteloom.core.model import Attribute, Failure, Record
from siteloom.core.settings import ParseSettings
from siteloom.html.visible_text import normalize
from siteloom.learning.induction import rule_search, vertex_algorithm
from siteloom.learning.induction.attribute_rules import Units, learn_attribute
from siteloom.learning.induction.attribute_schema import parse_schema
from siteloom.learning.induction.example_labels import label
from siteloom.learning.induction.match_cache import MatchCache
from siteloom.learning.induction.unit_slices import WalkedPages
from siteloom.learning.induction.units import (
    Targets,
    Trees,
    cut_units,
    page_units,
    sample_pages,
    unsampled_units,
    walked_units,
)
from siteloom.learning.induction.wrapper_assembly import UnitResult, finalize
from siteloom.learning.value_search.labelled_units import forms
from siteloom.wrappers.rule_features import AttributeRules, possible_shapes
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from siteloom.core.model import Example, Page
    from siteloom.html.parser import Element
    from siteloom.learning.induction.attribute_rules import RuleSet
    from siteloom.learning.induction.example_labels import LabelledUnit
    from siteloom.learning.induction.feature_columns import Flags, Table
    from siteloom.learning.induction.match_cache import RecordOf
    from siteloom.learning.induction.rule_search import Covering, CoverProblem
    from siteloom.learning.induction.units import PageUnits, SampledPage, UnitKey, UnitTable
    from siteloom.learning.induction.wrapper_assembly import AttributeCache, InductionResult
    from siteloom.learning.value_search.labelled_units import Form, LocatedValue
    from siteloom.wrappers.rule_evaluation import Node, Scope
    from siteloom.wrappers.rule_features import RecordRule, Rule
    from siteloom.wrappers.wrapper import KnownNodes

Method = Literal["united", "vertex"]
METHODS: tuple[Method, ...] = get_args(Method)
_COVER: dict[Method, Callable[[CoverProblem], Covering]] = {
    "united": rule_search.cover,
    "vertex": vertex_algorithm.cover,
}

Schema: TypeAlias = Mapping[str, Attribute | Mapping[str, object]] | None
"""Declared properties of attributes: {"cuisine": {"multi": True}}."""

# A text on fewer units belongs to records, not to the template.
_LABEL_SHARE = 0.2
_LEAST_LABEL_UNITS = 3
_ANCHORS = frozenset({"text-before", "before", "first-text"})


class ScopedRecord(NamedTuple):
    """A record and its scope, the part of a list page that it covers; None stands for the whole page."""

    scope: Scope | None
    record: Record


class _RuleCacheKey(NamedTuple):
    """Everything the rules of an attribute depend on."""

    forms: Sequence[Form]
    is_multi: bool | None
    method: Method
    table: Table
    tags: frozenset[str]
    labels: tuple[int, ...]
    labelled_values: tuple[tuple[int, tuple[LocatedValue, ...]], ...]


class _TableCache:
    """Keeps one table of units; it is rebuilt when the units change."""

    def __init__(self, walked: WalkedPages) -> None:
        self._walked = walked
        self._pages: list[PageUnits] | None = None
        self._units: UnitTable | None = None

    def units(self, pages: list[PageUnits], targets: Targets) -> UnitTable:
        """Return the units of these pages as a table from which rules can choose these targets."""
        if self._units is None or self._pages != pages:
            self._pages, self._units = pages, cut_units(pages, self._walked)
        self._units.add(targets)
        return self._units


class _Tables(NamedTuple):
    """The table to learn from, and a lookup of the known nodes of its units and of unsampled ones."""

    learned_from: UnitTable
    known_nodes: KnownNodes


class _CurrentWrapper(NamedTuple):
    """The wrapper that was learned last, and the function that extracts the record of a scope with it."""

    wrapper: Wrapper
    record_of: RecordOf


class LearningSession:
    """Pages of one template, from which wrappers are learned with one set of examples after another.

    Examples may be of these pages or of others. Earlier results never change what is learned later.
    Trees of at most `max_tree_bytes` bytes of pages are cached; with a limit, little else is cached.
    """

    def __init__(
        self, pages: Iterable[Page], max_tree_bytes: float = math.inf, limits: ParseSettings = ParseSettings()
    ) -> None:
        self.pages = tuple(pages)
        self._trees = Trees(max_tree_bytes, limits)
        walked = WalkedPages()
        self._sampled_table = _TableCache(walked)
        self._unsampled_table = _TableCache(walked)
        self._match_cache = MatchCache()
        self._attribute_cache: AttributeCache = {}
        self._rule_cache: dict[str, tuple[_RuleCacheKey, RuleSet]] = {}
        self._current: _CurrentWrapper | None = None
        self._records: dict[str, tuple[ScopedRecord, ...]] = {}

    @property
    def roots(self) -> dict[str, Element | Failure]:
        """The tree of each page by URL, or the failure to parse it; callers must not change the trees."""
        return {page.url: self._trees.root(page) for page in self.pages}

    def prepare(self) -> None:
        """Compute in advance what depends only on the pages, so that learning takes less time.

        The records of list pages cannot be found in advance.
        """
        self._tables(sampled_pages=sample_pages((), self.pages), rule=None, targets=Targets(), needed=())
        for page in self.pages:
            self._trees.signature(page)
        # People start at the first page; indexing another page on demand is not noticeable.
        for _, root in islice(self._trees.parsed(self.pages), 1):
            self._trees.value_index(root)

    def learn(
        self, examples: Sequence[Example], schema: Schema = None, method: Method = "united"
    ) -> InductionResult:
        """Learn a wrapper, and report what it does on the pages."""
        if method not in METHODS:
            raise UsageError(f"No method {method!r} to learn by: use one of {', '.join(METHODS)}.")
        attributes = parse_schema(schema)
        examples = list(examples)
        sampled_pages = sample_pages(examples, self.pages)
        unlabelled_pages = [page.page for page in sampled_pages if page.example is None]
        rule, labelled = label(examples, unlabelled_pages, self._trees)
        if not any(values for unit in labelled for values in unit.labelled.values.values()):
            raise ExampleError("The examples have no values: at least one page must have one.")
        names = list(dict.fromkeys(name for unit in labelled for name in unit.labelled.values))
        if unknown := set(attributes) - set(names):
            raise UsageError(f"The schema tells of {min(unknown)}, which no example has: check its name.")
        chosen = {name: forms(name, [unit.labelled for unit in labelled]) for name in names}
        targets = _rule_targets(labelled, chosen)
        keys = _unit_keys(labelled, sampled_pages)
        table, known_nodes = self._tables(
            sampled_pages=sampled_pages, rule=rule, targets=targets, needed=keys
        )
        example_values = {
            normalize(value.text)
            for unit in labelled
            for values in unit.labelled.values.values()
            for value in values
        }
        units = Units(
            table=table.table,
            placed=[table.placed(key, unit.labelled) for key, unit in zip(keys, labelled, strict=True)],
            labels=_flag_labels(table.table, example_values | _texts_with_values(labelled)),
            tags=targets.tags,
        )
        learned = {
            name: self._cached_rules(
                name=name,
                forms=chosen[name],
                units=units,
                is_multi=attributes.get(name, Attribute()).multi,
                method=method,
            )
            for name in names
        }
        draft = Wrapper(
            attributes={
                name: AttributeRules(
                    replace(attributes.get(name, Attribute()), multi=rule_set.is_multi),
                    rule_set.rules,
                    rule_set.voters,
                    filled=0.0,
                    shapes=possible_shapes(
                        value.text for unit in labelled for value in unit.labelled.values.get(name, ())
                    ),
                )
                for name, rule_set in learned.items()
            },
            labels=_label_texts(units, learned.values()) - example_values,
            record_rule=rule,
        )
        record_of = self._record_of(draft, known_nodes)
        unit_results = [
            UnitResult(
                unit.labelled.url,
                {
                    name: tuple(value.text for value in values)
                    for name, values in unit.labelled.values.items()
                },
                record_of(unit.root, unit.labelled.url, unit.scope),
            )
            for unit in labelled
        ]
        records_by_page = [
            (
                page,
                tuple(
                    record
                    for _, record in self._scoped_records(
                        root=root, url=page.url, wrapper=draft, record_of=record_of
                    )
                ),
            )
            for page, root in self._trees.parsed(unlabelled_pages)
        ]
        result = finalize(
            draft=draft,
            unit_results=unit_results,
            example_pages=[example.page for example in examples],
            records_by_page=records_by_page,
            signature=self._trees.signature,
            cache=self._attribute_cache,
        )
        self._current = _CurrentWrapper(result.wrapper, self._record_of(result.wrapper, known_nodes))
        self._records = {}
        return result

    def records(self, url: str) -> tuple[Record, ...]:
        """Return the records that the current wrapper finds on a page; none on an unreadable page."""
        return tuple(record for _, record in self.scoped_records(url))

    def scoped_records(self, url: str) -> tuple[ScopedRecord, ...]:
        """Return the records that the current wrapper finds on a page, each with its scope on the page."""
        if self._current is None:
            raise UsageError("No wrapper was learned yet: learn one first.")
        if url not in self._records:
            root = next((self._trees.root(page) for page in self.pages if page.url == url), None)
            if root is None:
                raise UsageError(f"The page {url} is not one of the pages of this session.")
            self._records[url] = (
                () if isinstance(root, Failure) else tuple(self._scoped_records(root, url, *self._current))
            )
        return self._records[url]

    def _scoped_records(
        self, root: Element, url: str, wrapper: Wrapper, record_of: RecordOf
    ) -> Iterator[ScopedRecord]:
        """Yield the records of `Wrapper.records`, each with its scope."""
        rule = wrapper.record_rule
        if rule is None:
            yield ScopedRecord(None, record_of(root, url, None))
            return
        for scope in self._trees.scopes(rule, root):
            record = record_of(root, url, scope)
            if len(record.values) >= rule.least:
                yield ScopedRecord(scope, record)

    def _record_of(self, wrapper: Wrapper, known_nodes: KnownNodes) -> RecordOf:
        find_record: RecordOf = (
            self._match_cache.record_of(wrapper, known_nodes)
            if self._trees.keeps_all
            else partial(wrapper.record_of, known_nodes=known_nodes)
        )

        def record_of(root: Element, url: str, scope: Scope | None) -> Record:
            try:
                return find_record(root, url, scope)
            except TooMuchFound:  # one oversized page must not stop learning from the others
                return Record(url, values={}, typed={}, provenance={})

        return record_of

    def _tables(
        self,
        sampled_pages: Sequence[SampledPage],
        rule: RecordRule | None,
        targets: Targets,
        needed: Sequence[UnitKey],
    ) -> _Tables:
        """Return the units of the pages as a table, reused if the units are unchanged."""
        units = page_units(sampled_pages, rule, self._trees)
        if not self._trees.keeps_all:
            with_tails = rule is not None and rule.runs_on
            table = walked_units(units, targets, needed, with_tails=with_tails)
            return _Tables(table, table.known_nodes(targets.tags))
        pages = list(units)
        table = self._sampled_table.units(pages, targets)
        known_nodes = table.known_nodes(targets.tags)
        if rule is not None and (
            unsampled := unsampled_units(
                sampled_pages=sampled_pages, used_pages=pages, rule=rule, trees=self._trees
            )
        ):
            known_nodes = _first_known_nodes(
                known_nodes, self._unsampled_table.units(unsampled, targets).known_nodes(targets.tags)
            )
        return _Tables(table, known_nodes)

    def _cached_rules(
        self, name: str, forms: Sequence[Form], units: Units, is_multi: bool | None, method: Method
    ) -> RuleSet:
        """Return the rules of an attribute, reused if nothing they depend on has changed."""
        labelled_values = tuple(
            (unit.unit, unit.labelled.values[name]) for unit in units.placed if name in unit.labelled.values
        )
        labels = tuple(np.flatnonzero(units.labels).tolist())
        key = _RuleCacheKey(
            forms=forms,
            is_multi=is_multi,
            method=method,
            table=units.table,
            tags=units.tags,
            labels=labels,
            labelled_values=labelled_values,
        )
        cached = self._rule_cache.get(name)
        if cached is None or cached[0] != key:
            cached = (
                key,
                learn_attribute(name=name, forms=forms, units=units, is_multi=is_multi, cover=_COVER[method]),
            )
            self._rule_cache[name] = cached
        return cached[1]


def _first_known_nodes(primary: KnownNodes, secondary: KnownNodes) -> KnownNodes:
    """Return a lookup that asks the secondary one where the primary one does not know the nodes."""

    def find_nodes(rule: Rule, root: Element, scope: Scope | None) -> list[Node] | None:
        nodes = primary(rule, root, scope)
        return secondary(rule, root, scope) if nodes is None else nodes

    return find_nodes


def _rule_targets(labelled: Iterable[LabelledUnit], chosen: Mapping[str, Sequence[Form]]) -> Targets:
    """Return the nodes, besides texts, that the rules must choose from."""
    targets = {form.target for attribute_forms in chosen.values() for form in attribute_forms}
    tags = {
        str(location.element.tag)
        for unit in labelled
        for values in unit.labelled.values.values()
        for value in values
        for location in value.locations
        if location.target == "element"
    }
    return Targets(
        frozenset(target[1:] for target in targets if target.startswith("@")),
        frozenset(tags) if "element" in targets else frozenset(),
    )


def _unit_keys(labelled: Iterable[LabelledUnit], sampled_pages: Sequence[SampledPage]) -> list[UnitKey]:
    """Return the keys of labelled units in the table."""
    number_of = {page.example: number for number, page in enumerate(sampled_pages)}
    return [(number_of[unit.example], None if unit.scope is None else unit.scope.start) for unit in labelled]


def _label_texts(units: Units, learned: Iterable[RuleSet]) -> frozenset[str]:
    """Return the texts that name values: labels of the template, and anchors of rules."""
    words = units.table.words.texts
    of_template = (words[number] for number in np.flatnonzero(units.labels).tolist())
    anchors = (
        feature.value
        for rule_set in learned
        for rule in (*rule_set.rules, *rule_set.voters)
        for feature in rule.features
        if feature.kind in _ANCHORS
    )
    return frozenset(of_template).union(anchors)


def _texts_with_values(labelled: Iterable[LabelledUnit]) -> set[str]:
    """Return the texts that contain values of examples; these are never labels."""
    return {
        location.text
        for unit in labelled
        for values in unit.labelled.values.values()
        for value in values
        for location in value.locations
    }


def _flag_labels(table: Table, example_values: set[str]) -> Flags:
    """Return a flag for each text: whether it is a label, which is on many units and ends in a colon.

    Frequency alone does not make a label: a menu of all cuisines is on every page, too.
    """
    words = table.words.texts
    is_label = np.zeros(len(words), np.bool_)
    min_units = max(_LEAST_LABEL_UNITS, _LABEL_SHARE * table.units)
    for number in np.flatnonzero(table.units_with_text >= min_units).tolist():
        text = words[number]
        is_label[number] = text.endswith(":") and text not in example_values
    return is_label
