"""Learning from the pages of one template, as often as their examples change.

    session = LearningSession(pages)
    learned = session.learn(examples)
    session.records(pages[0].url)

What hangs on the pages alone is made once: their trees, where values stand on them, and the table that
rules are tried on. Of the rest that is made again of which the examples say something else than before.
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
from siteloom.learning.induction.attribute_schema import given_schema
from siteloom.learning.induction.example_labels import label
from siteloom.learning.induction.match_cache import KeptFinds
from siteloom.learning.induction.unit_slices import WalkedPages
from siteloom.learning.induction.units import (
    Targets,
    Trees,
    cut_units,
    left_out,
    page_units,
    seen_pages,
    walked_units,
)
from siteloom.learning.induction.wrapper_assembly import Judged, finished
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
    from siteloom.learning.induction.rule_search import Covering, Problem
    from siteloom.learning.induction.units import PageUnits, SeenPage, UnitKey, UnitTable
    from siteloom.learning.induction.wrapper_assembly import Learned, Settled
    from siteloom.learning.value_search.labelled_units import Form, KnownValue
    from siteloom.wrappers.rule_evaluation import Node, Scope
    from siteloom.wrappers.rule_features import RecordRule, Rule
    from siteloom.wrappers.wrapper import KnownNodes

Method = Literal["united", "vertex"]
METHODS: tuple[Method, ...] = get_args(Method)
_COVER: dict[Method, Callable[[Problem], Covering]] = {
    "united": rule_search.cover,
    "vertex": vertex_algorithm.cover,
}

Schema: TypeAlias = Mapping[str, Attribute | Mapping[str, object]] | None
"""What is known of attributes before learning: {"cuisine": {"multi": True}}."""

# A text on fewer units belongs to records, not to the template.
_LABEL_SHARE = 0.2
_LEAST_LABEL_UNITS = 3
_ANCHORS = frozenset({"text-before", "before", "first-text"})


class ScopedRecord(NamedTuple):
    """A record, and the part of a list page that it is; None is all of a page."""

    scope: Scope | None
    record: Record


class _Question(NamedTuple):
    """All that the rules of an attribute hang on."""

    forms: Sequence[Form]
    is_multi: bool | None
    method: Method
    table: Table
    tags: frozenset[str]
    labels: tuple[int, ...]
    known: tuple[tuple[int, tuple[KnownValue, ...]], ...]


class _KeptTable:
    """A table of units, the same as long as these are the same."""

    def __init__(self, walked: WalkedPages) -> None:
        self._walked = walked
        self._pages: list[PageUnits] | None = None
        self._units: UnitTable | None = None

    def units(self, pages: list[PageUnits], targets: Targets) -> UnitTable:
        """The units of these pages, of which rules can choose such targets."""
        if self._units is None or self._pages != pages:
            self._pages, self._units = pages, cut_units(pages, self._walked)
        self._units.add(targets)
        return self._units


class _Tables(NamedTuple):
    """Units in a table that is learned from, and the nodes of these and of all others that are known."""

    learned_from: UnitTable
    known: KnownNodes


class _Last(NamedTuple):
    """What was learned last: the wrapper, and how it finds the record of a part of a page."""

    wrapper: Wrapper
    record_of: RecordOf


class LearningSession:
    """Pages of one template, from which wrappers are learned with one set of examples after the other.

    Examples are of these pages, or of others. What was learned before changes nothing in what is learned
    now. Of more than `most_kept` bytes of pages the trees are not kept, and little else is.
    """

    def __init__(
        self, pages: Iterable[Page], most_kept: float = math.inf, limits: ParseSettings = ParseSettings()
    ) -> None:
        self.pages = tuple(pages)
        self._trees = Trees(most_kept, limits)
        walked = WalkedPages()
        self._looked_at = _KeptTable(walked)
        self._left_out = _KeptTable(walked)
        self._finds = KeptFinds()
        self._settled: Settled = {}
        self._rules_of: dict[str, tuple[_Question, RuleSet]] = {}
        self._last: _Last | None = None
        self._records: dict[str, tuple[ScopedRecord, ...]] = {}

    @property
    def roots(self) -> dict[str, Element | Failure]:
        """The tree of each page, or why it has none, by its URL; trees must not be changed."""
        return {page.url: self._trees.root(page) for page in self.pages}

    def prepare(self) -> None:
        """Make what hangs on the pages alone, so that it takes no time when something is learned.

        Where the records of list pages are is not known before.
        """
        self._tables(seen_pages((), self.pages), None, Targets(), ())
        for page in self.pages:
            self._trees.signature(page)
        # Of the others it takes no time that is felt, when something is said of them; and people begin here.
        for _, root in islice(self._trees.parsed(self.pages), 1):
            self._trees.places(root)

    def learn(self, examples: Sequence[Example], schema: Schema = None, method: Method = "united") -> Learned:
        """Learn a wrapper, and say what it does on the pages."""
        if method not in METHODS:
            raise UsageError(f"No method {method!r} to learn by: use one of {', '.join(METHODS)}.")
        attributes = given_schema(schema)
        examples = list(examples)
        seen = seen_pages(examples, self.pages)
        others = [one.page for one in seen if one.example is None]
        rule, labelled = label(examples, others, self._trees)
        if not any(values for one in labelled for values in one.labelled.values.values()):
            raise ExampleError("The examples have no values: at least one page must have one.")
        names = list(dict.fromkeys(name for one in labelled for name in one.labelled.values))
        if unknown := set(attributes) - set(names):
            raise UsageError(f"The schema tells of {min(unknown)}, which no example has: check its name.")
        chosen = {name: forms(name, [one.labelled for one in labelled]) for name in names}
        targets = _targets(labelled, chosen)
        keys = _keys(labelled, seen)
        table, known = self._tables(seen, rule, targets, keys)
        example_values = {
            normalize(value.text)
            for one in labelled
            for values in one.labelled.values.values()
            for value in values
        }
        units = Units(
            table.table,
            [table.placed(key, one.labelled) for key, one in zip(keys, labelled, strict=True)],
            _labels(table.table, example_values | _texts_with_values(labelled)),
            targets.tags,
        )
        learned = {
            name: self._rules(name, chosen[name], units, attributes.get(name, Attribute()).multi, method)
            for name in names
        }
        draft = Wrapper(
            attributes={
                name: AttributeRules(
                    replace(attributes.get(name, Attribute()), multi=found.is_multi),
                    found.rules,
                    found.voters,
                    filled=0.0,
                    shapes=possible_shapes(
                        value.text for one in labelled for value in one.labelled.values.get(name, ())
                    ),
                )
                for name, found in learned.items()
            },
            labels=_label_texts(units, learned.values()) - example_values,
            record_rule=rule,
        )
        record_of = self._record_of(draft, known)
        judged = [
            Judged(
                one.labelled.url,
                {name: tuple(value.text for value in values) for name, values in one.labelled.values.items()},
                record_of(one.root, one.labelled.url, one.scope),
            )
            for one in labelled
        ]
        found_on = [
            (page, tuple(record for _, record in self._found(root, page.url, draft, record_of)))
            for page, root in self._trees.parsed(others)
        ]
        result = finished(
            draft,
            judged,
            [example.page for example in examples],
            found_on,
            self._trees.signature,
            self._settled,
        )
        self._last = _Last(result.wrapper, self._record_of(result.wrapper, known))
        self._records = {}
        return result

    def records(self, url: str) -> tuple[Record, ...]:
        """What the wrapper that was learned last finds on a page; nothing on one that cannot be read."""
        return tuple(record for _, record in self.scoped_records(url))

    def scoped_records(self, url: str) -> tuple[ScopedRecord, ...]:
        """The same, with the part of the page that each record is; None is all of it."""
        if self._last is None:
            raise UsageError("No wrapper was learned yet: learn one first.")
        if url not in self._records:
            root = next((self._trees.root(page) for page in self.pages if page.url == url), None)
            if root is None:
                raise UsageError(f"The page {url} is none of those that are learned from.")
            self._records[url] = (
                () if isinstance(root, Failure) else tuple(self._found(root, url, *self._last))
            )
        return self._records[url]

    def _found(
        self, root: Element, url: str, wrapper: Wrapper, record_of: RecordOf
    ) -> Iterator[ScopedRecord]:
        """What `Wrapper.records` gives, with the parts of the page."""
        rule = wrapper.record_rule
        if rule is None:
            yield ScopedRecord(None, record_of(root, url, None))
            return
        for scope in self._trees.scopes(rule, root):
            record = record_of(root, url, scope)
            if len(record.values) >= rule.least:
                yield ScopedRecord(scope, record)

    def _record_of(self, wrapper: Wrapper, known: KnownNodes) -> RecordOf:
        find: RecordOf = (
            self._finds.record_of(wrapper, known)
            if self._trees.keeps_all
            else partial(wrapper.record_of, known_nodes=known)
        )

        def record_of(root: Element, url: str, scope: Scope | None) -> Record:
            try:
                return find(root, url, scope)
            except TooMuchFound:  # a page that is past all measure says nothing of the others
                return Record(url, {}, {}, {})

        return record_of

    def _tables(
        self,
        seen: Sequence[SeenPage],
        rule: RecordRule | None,
        targets: Targets,
        needed: Sequence[UnitKey],
    ) -> _Tables:
        """The units of the pages in tables; those there are, if they are of the same units."""
        found = page_units(seen, rule, self._trees)
        if not self._trees.keeps_all:
            with_tails = rule is not None and rule.runs_on
            table = walked_units(found, targets, needed, with_tails=with_tails)
            return _Tables(table, table.known_nodes(targets.tags))
        pages = list(found)
        table = self._looked_at.units(pages, targets)
        known = table.known_nodes(targets.tags)
        if rule is not None and (others := left_out(seen, pages, rule, self._trees)):
            known = _first_known(known, self._left_out.units(others, targets).known_nodes(targets.tags))
        return _Tables(table, known)

    def _rules(
        self, name: str, forms: Sequence[Form], units: Units, is_multi: bool | None, method: Method
    ) -> RuleSet:
        """The rules of an attribute; those there are, if nothing that they hang on has changed."""
        known = tuple(
            (one.unit, one.labelled.values[name]) for one in units.placed if name in one.labelled.values
        )
        labels = tuple(np.flatnonzero(units.labels).tolist())
        question = _Question(forms, is_multi, method, units.table, units.tags, labels, known)
        before = self._rules_of.get(name)
        if before is None or before[0] != question:
            before = question, learn_attribute(name, forms, units, is_multi, _COVER[method])
            self._rules_of[name] = before
        return before[1]


def _first_known(one: KnownNodes, other: KnownNodes) -> KnownNodes:
    """The nodes that one of two knows."""

    def known(rule: Rule, root: Element, scope: Scope | None) -> list[Node] | None:
        nodes = one(rule, root, scope)
        return other(rule, root, scope) if nodes is None else nodes

    return known


def _targets(labelled: Iterable[LabelledUnit], chosen: Mapping[str, Sequence[Form]]) -> Targets:
    """What rules are to choose from."""
    targets = {form.target for found in chosen.values() for form in found}
    tags = {
        str(place.element.tag)
        for one in labelled
        for values in one.labelled.values.values()
        for value in values
        for place in value.places
        if place.target == "element"
    }
    return Targets(
        frozenset(target[1:] for target in targets if target.startswith("@")),
        frozenset(tags) if "element" in targets else frozenset(),
    )


def _keys(labelled: Iterable[LabelledUnit], seen: Sequence[SeenPage]) -> list[UnitKey]:
    """By what labelled units are known."""
    number_of = {one.example: number for number, one in enumerate(seen)}
    return [(number_of[one.example], None if one.scope is None else one.scope.start) for one in labelled]


def _label_texts(units: Units, learned: Iterable[RuleSet]) -> frozenset[str]:
    """The texts that name values: labels of the template, and what rules find values by."""
    words = units.table.words.texts
    of_template = (words[number] for number in np.flatnonzero(units.labels).tolist())
    anchors = (
        feature.value
        for found in learned
        for rule in (*found.rules, *found.voters)
        for feature in rule.features
        if feature.kind in _ANCHORS
    )
    return frozenset(of_template).union(anchors)


def _texts_with_values(labelled: Iterable[LabelledUnit]) -> set[str]:
    """The whole texts that hold values of examples, which are no labels then, whatever they look like."""
    return {
        place.whole
        for one in labelled
        for values in one.labelled.values.values()
        for value in values
        for place in value.places
    }


def _labels(table: Table, example_values: set[str]) -> Flags:
    """Which texts name values and are none: those on many units that end in a colon.

    That a text stands on every page says nothing: a menu of all cuisines does, too.
    """
    words = table.words.texts
    is_label = np.zeros(len(words), np.bool_)
    least = max(_LEAST_LABEL_UNITS, _LABEL_SHARE * table.units)
    for number in np.flatnonzero(table.units_with_text >= least).tolist():
        text = words[number]
        is_label[number] = text.endswith(":") and text not in example_values
    return is_label
