"""From a few examples to a wrapper."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from siteloom.clustering import footprint
from siteloom.dom import normalize, parse
from siteloom.errors import ContradictoryExamples, ExampleError, UsageError
from siteloom.learning import search, vertex
from siteloom.learning.attribute import Units, learn_attribute
from siteloom.learning.labelled import PlacedUnit, forms, resolve
from siteloom.learning.places import PlaceIndex, fold
from siteloom.learning.records import find_records, record_rule
from siteloom.learning.report import Judged, report
from siteloom.learning.schema import given_schema, inferred
from siteloom.learning.table import Table, TableBuilder
from siteloom.model import Attribute, Failure
from siteloom.signature import signature
from siteloom.spacing import evenly_spaced
from siteloom.typed import order_of_dates
from siteloom.wrapper.contract import learned_contract
from siteloom.wrapper.language import AttributeRules, possible_shapes
from siteloom.wrapper.selection import records
from siteloom.wrapper.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from siteloom.dom import Element
    from siteloom.learning.attribute import RuleSet
    from siteloom.learning.labelled import Form, Labelled
    from siteloom.learning.report import LearningReport
    from siteloom.learning.search import Covering, Problem
    from siteloom.learning.table import Flags, UnitRows
    from siteloom.model import Example, Footprint, Page, Record
    from siteloom.wrapper.language import RecordRule
    from siteloom.wrapper.selection import Scope

Method = Literal["united", "vertex"]
METHODS: tuple[Method, ...] = get_args(Method)
_COVER: dict[Method, Callable[[Problem], Covering]] = {"united": search.cover, "vertex": vertex.cover}

Schema: TypeAlias = "Mapping[str, Attribute | Mapping[str, object]] | None"
"""What is known of attributes before learning: {"cuisine": {"multi": True}}."""

MOST_UNLABELLED = 200
"""Of the pages without examples so many are looked at: time grows with them, and rules hardly change."""

# A text on fewer units belongs to records, not to the template.
_LABEL_SHARE = 0.2
_LEAST_LABEL_UNITS = 3
_LIST_PAGES = 20  # are enough to see how records differ
_MOST_UNITS = 1_000  # list pages have many records each
_KEPT_TREES = 10_000_000  # bytes of their pages; in memory a tree is about ten times as large
_ANCHORS = frozenset({"text-before", "before", "first-text"})


class Learned(NamedTuple):
    """A wrapper and what came of learning it; `urls` are those of the pages seen that it is for."""

    wrapper: Wrapper
    report: LearningReport
    urls: tuple[str, ...]


def learn(
    examples: Sequence[Example],
    unlabelled: Iterable[Page] = (),
    schema: Schema = None,
    method: Method = "united",
) -> Wrapper:
    """Learn a wrapper from pages with known values, helped by pages of the same template without.

    The schema says what is known of the attributes; the rest is inferred. The method
    is `united`, or `vertex` for one XPath an attribute as in the paper on Vertex.
    """
    return learn_wrapper(examples, unlabelled, schema, method).wrapper


def learn_wrapper(
    examples: Sequence[Example],
    unlabelled: Iterable[Page] = (),
    schema: Schema = None,
    method: Method = "united",
) -> Learned:
    """Learn a wrapper, and say what it does on the pages."""
    if method not in METHODS:
        raise UsageError(f"No method {method!r} to learn by: use one of {', '.join(METHODS)}.")
    attributes = given_schema(schema)
    examples = list(examples)
    _check(examples)
    roots = [_example_root(example) for example in examples]
    known_urls = {example.page.url for example in examples}
    others = _Others(
        evenly_spaced([page for page in unlabelled if page.url not in known_urls], MOST_UNLABELLED)
    )
    rule, labelled = (
        _labelled_records(examples, roots, others)
        if examples[0].records
        else (None, _labelled_pages(examples, roots))
    )
    if not any(values for one in labelled for values in one.labelled.values.values()):
        raise ExampleError("The examples have no values: at least one page must have one.")
    names = list(dict.fromkeys(name for one in labelled for name in one.labelled.values))
    if unknown := set(attributes) - {name for one in labelled for name in one.labelled.values}:
        raise UsageError(f"The schema tells of {min(unknown)}, which no example has: check its name.")
    chosen = {name: forms(name, [one.labelled for one in labelled]) for name in names}
    table, placed = _table(labelled, roots, others, rule, chosen)
    example_values = {
        normalize(value.text)
        for one in labelled
        for values in one.labelled.values.values()
        for value in values
    }
    units = Units(table, placed, _labels(table, example_values | _texts_with_values(labelled)))
    learned = {
        name: learn_attribute(
            name, chosen[name], units, attributes.get(name, Attribute()).multi, _COVER[method]
        )
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
    return _finished(draft, [example.page for example in examples], labelled, roots, others)


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


def _texts_with_values(labelled: Iterable[_LabelledUnit]) -> set[str]:
    """The whole texts that hold values of examples, which are no labels then, whatever they look like."""
    return {
        place.whole
        for one in labelled
        for values in one.labelled.values.values()
        for value in values
        for place in value.places
    }


def check_example(example: Example) -> None:
    """Raise what is wrong with a single example."""
    _check([example])
    root = _example_root(example)
    if example.records:
        _labelled_records([example], [root], _Others(()))
    else:
        _labelled_pages([example], [root])


class _Others:
    """The pages without examples. They are looked at more than once, so as many trees as fit are kept."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self._pages = pages
        self._kept: dict[int, Element | Failure] = {}
        self._left = _KEPT_TREES

    def roots(self, most: int = MOST_UNLABELLED) -> Iterator[tuple[Page, Element]]:
        """The pages that parse, with their trees; or those of some, evenly spaced."""
        for number in evenly_spaced(range(len(self._pages)), most):
            page = self._pages[number]
            root = self._kept.get(number)
            if root is None:
                root = parse(page)
                if len(page.html) <= self._left:
                    self._left -= len(page.html)
                    self._kept[number] = root
            if not isinstance(root, Failure):
                yield page, root


class _LabelledUnit(NamedTuple):
    """A page or a record of one, by the number of its example, with what is known about it."""

    example: int
    labelled: Labelled
    scope: Scope | None


def _check(examples: Sequence[Example]) -> None:
    """Raise what is wrong with examples as a whole."""
    if not examples:
        raise ExampleError("There are no examples: give at least one page with its values.")
    for example in examples:
        if not (example.values or example.records):
            raise ExampleError(
                f"The example of {example.page.url} has no values: give some, or leave it out."
            )
        if example.nodes and example.records:
            raise UsageError(f"The example of {example.page.url} has nodes for records: give values instead.")
    if any(example.records for example in examples) and any(example.values for example in examples):
        raise UsageError(
            "Some examples are lists of records and some are not: learn a wrapper for each kind."
        )
    seen: dict[tuple[str, bytes], Example] = {}
    for example in examples:
        before = seen.setdefault((example.page.url, example.page.html), example)
        for name in example.values.keys() & before.values.keys():
            one, other = list(before.values[name]), list(example.values[name])
            if set(map(fold, one)) != set(map(fold, other)):
                raise ContradictoryExamples(
                    f"Two examples of {example.page.url} disagree: {name} is {one} here, {other} there."
                )


def _example_root(example: Example) -> Element:
    root = parse(example.page)
    if isinstance(root, Failure):
        raise ExampleError(f"The example {root.url} cannot be read: {root.reason}.")
    return root


def _labelled_pages(examples: Sequence[Example], roots: Sequence[Element]) -> list[_LabelledUnit]:
    return [
        _LabelledUnit(
            number, resolve(example.page.url, PlaceIndex(root), example.values, example.nodes), None
        )
        for number, (example, root) in enumerate(zip(examples, roots, strict=True))
    ]


def _labelled_records(
    examples: Sequence[Example], roots: Sequence[Element], others: _Others
) -> tuple[RecordRule, list[_LabelledUnit]]:
    """The rule for records of list pages, and the records that are known."""
    indices = [PlaceIndex(root) for root in roots]
    found = [
        find_records(example.page.url, root, example.records, index)
        for example, root, index in zip(examples, roots, indices, strict=True)
    ]
    runs_on = any(one.runs_on for one in found)
    rule = record_rule(
        [start for one in found for start in one.starts],
        [root for _, root in others.roots(_LIST_PAGES)],
        runs_on=runs_on,
        least=(_fewest_attributes(examples) + 1) // 2,
    )
    labelled = []
    for number, (example, one) in enumerate(zip(examples, found, strict=True)):
        scopes = {scope.start: scope for scope in records(rule, roots[number])}
        for start, values in zip(one.starts, example.records, strict=True):
            if start not in scopes:
                raise ExampleError(f"The records given for {example.page.url} do not look alike.")
            inside = {element for top in scopes[start].tops for element in top.iter()}
            if runs_on and (parent := start.getparent()) is not None:
                inside.add(parent)
            known = resolve(example.page.url, indices[number], values, {}, inside.__contains__)
            labelled.append(_LabelledUnit(number, known, scopes[start]))
    return rule, labelled


def _fewest_attributes(examples: Sequence[Example]) -> int:
    return min(sum(bool(texts) for texts in record.values()) for one in examples for record in one.records)


def _table(
    labelled: Sequence[_LabelledUnit],
    roots: Sequence[Element],
    others: _Others,
    rule: RecordRule | None,
    chosen: Mapping[str, Sequence[Form]],
) -> tuple[Table, list[PlacedUnit]]:
    """All units in one table, and where the labelled ones stand in it."""
    targets = {form.target for found in chosen.values() for form in found}
    tags = {
        str(place.element.tag)
        for one in labelled
        for values in one.labelled.values.values()
        for value in values
        for place in value.places
        if place.target == "element"
    }
    builder = TableBuilder(
        attributes=frozenset(target[1:] for target in targets if target.startswith("@")),
        tags=frozenset(tags) if "element" in targets else frozenset(),
    )

    def add(root: Element, scope: Scope | None) -> UnitRows:
        if scope is None:
            return builder.add(root)
        return builder.add(*scope.tops, with_tails=rule is not None and rule.runs_on)

    placed = [
        PlacedUnit(number, one.labelled, add(roots[one.example], one.scope))
        for number, one in enumerate(labelled)
    ]
    if rule is not None:
        known = {one.scope.start for one in labelled if one.scope is not None}
        for root in roots:
            for scope in records(rule, root):
                if scope.start not in known:
                    add(root, scope)
    for _, root in others.roots():
        if builder.units >= _MOST_UNITS:
            break
        scopes: Iterable[Scope | None] = [None] if rule is None else records(rule, root)
        for unlabelled in scopes:
            add(root, unlabelled)
    return Table(builder), placed


def _labels(table: Table, example_values: set[str]) -> Flags:
    """Which texts name values and are none: those on many units that end in a colon.

    That a text stands on every page says nothing: a menu of all cuisines does, too.
    """
    words = table.words.texts
    pairs = np.unique(table.text_unit.astype(np.int64) << 32 | table.text_value)
    units = np.bincount(pairs & 0xFFFFFFFF, minlength=len(words))
    is_frequent = units >= max(_LEAST_LABEL_UNITS, _LABEL_SHARE * table.units)
    is_label = np.zeros(len(words), np.bool_)
    for number in np.flatnonzero(is_frequent).tolist():
        text = words[number]
        is_label[number] = text.endswith(":") and text not in example_values
    return is_label


def _finished(
    draft: Wrapper,
    example_pages: Sequence[Page],
    labelled: Sequence[_LabelledUnit],
    roots: Sequence[Element],
    others: _Others,
) -> Learned:
    """The wrapper with what it does on all pages, seen as it will be used."""
    judged = [
        Judged(
            one.labelled.url,
            {name: tuple(value.text for value in values) for name, values in one.labelled.values.items()},
            draft.record_of(roots[one.example], one.labelled.url, one.scope),
        )
        for one in labelled
    ]
    records_of_pages = [(page, tuple(draft.records(root, page.url))) for page, root in others.roots()]
    extracted = [record for _, found in records_of_pages for record in found]
    attributes = {}
    for name, rules in draft.attributes.items():
        texts = [text for record in extracted for text in record.values.get(name, ())]
        texts += [text for one in judged for text in one.known.get(name, ())]
        filled = sum(name in record.values for record in extracted) / len(extracted) if extracted else 1.0
        attribute = inferred(
            rules.attribute,
            is_multi=bool(rules.attribute.multi),
            is_absent_somewhere=any(one.known.get(name) == () for one in judged),
            filled=filled,
            texts=texts,
            sources={rule.target for rule in rules.rules},
        )
        day_first = order_of_dates(texts) if attribute.type == "date" else None
        attributes[name] = replace(
            rules,
            attribute=attribute,
            filled=round(filled, 4),
            day_first=day_first,
            contract=learned_contract(texts, attribute.type),
        )
    wrapper = replace(draft, attributes=attributes)
    alike = [page for page, found in records_of_pages if _does_belong(found, wrapper)]
    pages = [*example_pages, *alike]
    wrapper = replace(wrapper, footprint=_footprint(pages))
    return Learned(wrapper, report(wrapper, judged, extracted), tuple(page.url for page in pages))


def _does_belong(found: Sequence[Record], wrapper: Wrapper) -> bool:
    """Whether a page is one of those that the wrapper is for, by the records that it finds there."""
    if wrapper.record_rule is not None:
        return bool(found)
    (record,) = found
    mandatory = {name for name, rules in wrapper.attributes.items() if rules.attribute.mandatory}
    if mandatory:
        return mandatory <= record.values.keys()
    return 2 * len(record.values) >= len(wrapper.attributes)


def _footprint(pages: Iterable[Page]) -> Footprint:
    return footprint([(page.url, signature(page.html)) for page in pages])
