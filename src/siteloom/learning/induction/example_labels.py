"""Turn examples into labelled units: find the values of each example on its page."""

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
    from siteloom.learning.value_search.labelled_units import LabelledValues
    from siteloom.wrappers.rule_evaluation import Scope
    from siteloom.wrappers.rule_features import RecordRule

_LIST_PAGES = 20  # list pages that suffice to see how records differ


class LabelledUnit(NamedTuple):
    """A page, or a record of a list page, with its known values; `example` is the number of its example."""

    example: int
    root: Element
    labelled: LabelledValues
    scope: Scope | None


class LabelledUnits(NamedTuple):
    """All labelled units; for list pages also the rule that finds their records."""

    rule: RecordRule | None
    units: list[LabelledUnit]


def label(examples: Sequence[Example], unlabelled_pages: Sequence[Page], trees: Trees) -> LabelledUnits:
    """Find the values of examples on their pages; `unlabelled_pages` are pages without examples."""
    _check_examples(examples)
    roots = [_example_root(example, trees) for example in examples]
    if examples[0].records:
        return _labelled_records(
            examples=examples, roots=roots, unlabelled_pages=unlabelled_pages, trees=trees
        )
    units = [
        LabelledUnit(
            example=number,
            root=root,
            labelled=resolve(
                url=example.page.url,
                index=trees.value_index(root),
                values=example.values,
                nodes=example.nodes,
            ),
            scope=None,
        )
        for number, (example, root) in enumerate(zip(examples, roots, strict=True))
    ]
    return LabelledUnits(None, units)


def _check_examples(examples: Sequence[Example]) -> None:
    """Raise an error if an example is invalid or two examples disagree."""
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
    first_examples: dict[tuple[str, bytes], Example] = {}
    for example in examples:
        first_example = first_examples.setdefault((example.page.url, example.page.html), example)
        for name in example.values.keys() & first_example.values.keys():
            first_texts, texts = list(first_example.values[name]), list(example.values[name])
            if set(map(fold, first_texts)) != set(map(fold, texts)):
                raise ContradictoryExamples(
                    f"Two examples of {example.page.url} disagree: "
                    f"{name} is {first_texts} here, {texts} there."
                )


def _example_root(example: Example, trees: Trees) -> Element:
    root = trees.root(example.page, is_example=True)
    if isinstance(root, Failure):
        why = f"{root.reason} ({root.detail})" if root.detail else root.reason
        raise ExampleError(f"The example {root.url} cannot be read: {why}.")
    return root


def _labelled_records(
    examples: Sequence[Example], roots: Sequence[Element], unlabelled_pages: Sequence[Page], trees: Trees
) -> LabelledUnits:
    """Learn the rule for records of list pages, and label the records of the examples."""
    indices = [trees.value_index(root) for root in roots]
    example_records = [
        find_records(
            url=example.page.url,
            root=root,
            records=example.records,
            index=index,
            nodes=example.record_nodes,
        )
        for example, root, index in zip(examples, roots, indices, strict=True)
    ]
    runs_on = any(records_of_page.runs_on for records_of_page in example_records)
    rule = record_rule(
        [start for records_of_page in example_records for start in records_of_page.starts],
        [root for _, root in trees.parsed(evenly_spaced(unlabelled_pages, _LIST_PAGES))],
        runs_on=runs_on,
        min_attributes=(_fewest_attributes(examples) + 1) // 2,
        records=trees.scopes,
        looks=trees.looks if trees.keeps_all else None,
    )
    units = []
    for number, (example, records_of_page) in enumerate(zip(examples, example_records, strict=True)):
        scopes = {scope.start: scope for scope in trees.scopes(rule, roots[number])}
        nodes = example.record_nodes or [{}] * len(example.records)
        for start, values, exact in zip(records_of_page.starts, example.records, nodes, strict=True):
            if start not in scopes:
                raise ExampleError(f"The records given for {example.page.url} do not look alike.")
            inside = {element for top in scopes[start].tops for element in top.iter()}
            if runs_on and (parent := start.getparent()) is not None:
                inside.add(parent)
            labelled = resolve(
                url=example.page.url,
                index=indices[number],
                values=values,
                nodes=exact,
                is_inside=inside.__contains__,
            )
            units.append(
                LabelledUnit(example=number, root=roots[number], labelled=labelled, scope=scopes[start])
            )
    return LabelledUnits(rule, units)


def _fewest_attributes(examples: Sequence[Example]) -> int:
    return min(
        sum(bool(texts) for texts in record.values()) for example in examples for record in example.records
    )
