"""From examples to units whose values are known, and to where these stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import ContradictoryExamples, ExampleError, UsageError
from siteloom.core.model import Failure
from siteloom.core.sequences import evenly_spaced
from siteloom.learning.repeated_structure.record_rules import find_records, record_rule
from siteloom.learning.value_search.labelled_units import resolve
from siteloom.learning.value_search.text_equality import fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.core.model import Example, Page
    from siteloom.html.parser import Element
    from siteloom.learning.induction.units import Trees
    from siteloom.learning.value_search.labelled_units import Labelled
    from siteloom.wrappers.rule_evaluation import Scope
    from siteloom.wrappers.rule_features import RecordRule

_LIST_PAGES = 20  # are enough to see how records differ


class LabelledUnit(NamedTuple):
    """A page or a record of one, by the number of its example, with what is known about it."""

    example: int
    root: Element
    labelled: Labelled
    scope: Scope | None


class LabelledUnits(NamedTuple):
    """All that is known from examples; of list pages also the rule that finds their records."""

    rule: RecordRule | None
    units: list[LabelledUnit]


def label(examples: Sequence[Example], others: Sequence[Page], trees: Trees) -> LabelledUnits:
    """Find what the examples say on their pages; `others` are pages without examples."""
    _check(examples)
    roots = [_example_root(example, trees) for example in examples]
    if examples[0].records:
        return _labelled_records(examples, roots, others, trees)
    units = [
        LabelledUnit(
            number, root, resolve(example.page.url, trees.places(root), example.values, example.nodes), None
        )
        for number, (example, root) in enumerate(zip(examples, roots, strict=True))
    ]
    return LabelledUnits(None, units)


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
            raise UsageError(
                f"The example of {example.page.url} has nodes for values, but records: give record_nodes."
            )
        if example.record_nodes and len(example.record_nodes) != len(example.records):
            raise UsageError(
                f"The example of {example.page.url} has nodes for {len(example.record_nodes)} records, "
                f"but {len(example.records)} records: give nodes for each, {{}} where they are not known."
            )
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


def _example_root(example: Example, trees: Trees) -> Element:
    root = trees.root(example.page, is_example=True)
    if isinstance(root, Failure):
        why = f"{root.reason} ({root.detail})" if root.detail else root.reason
        raise ExampleError(f"The example {root.url} cannot be read: {why}.")
    return root


def _labelled_records(
    examples: Sequence[Example], roots: Sequence[Element], others: Sequence[Page], trees: Trees
) -> LabelledUnits:
    """The rule for records of list pages, and the records that are known."""
    indices = [trees.places(root) for root in roots]
    found = [
        find_records(example.page.url, root, example.records, index, example.record_nodes)
        for example, root, index in zip(examples, roots, indices, strict=True)
    ]
    runs_on = any(one.runs_on for one in found)
    rule = record_rule(
        [start for one in found for start in one.starts],
        [root for _, root in trees.parsed(evenly_spaced(others, _LIST_PAGES))],
        runs_on=runs_on,
        least=(_fewest_attributes(examples) + 1) // 2,
        records=trees.scopes,
        looks=trees.looks if trees.keeps_all else None,
    )
    units = []
    for number, (example, one) in enumerate(zip(examples, found, strict=True)):
        scopes = {scope.start: scope for scope in trees.scopes(rule, roots[number])}
        nodes = example.record_nodes or [{}] * len(example.records)
        for start, values, exact in zip(one.starts, example.records, nodes, strict=True):
            if start not in scopes:
                raise ExampleError(f"The records given for {example.page.url} do not look alike.")
            inside = {element for top in scopes[start].tops for element in top.iter()}
            if runs_on and (parent := start.getparent()) is not None:
                inside.add(parent)
            known = resolve(example.page.url, indices[number], values, exact, inside.__contains__)
            units.append(LabelledUnit(number, roots[number], known, scopes[start]))
    return LabelledUnits(rule, units)


def _fewest_attributes(examples: Sequence[Example]) -> int:
    return min(sum(bool(texts) for texts in record.values()) for one in examples for record in one.records)
