"""Learn all rules of one attribute, for every form of its values, and how to extract values from texts."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.learning.induction.feature_columns import target_rows
from siteloom.learning.induction.rule_search import Covering, CoverProblem, Instance, cover
from siteloom.learning.induction.tree_walk import NONE
from siteloom.learning.value_search.labelled_units import Form
from siteloom.wrappers.rule_features import Feature, Rule, RuleSupport, ValuePart
from siteloom.wrappers.safe_patterns import pattern_fault
from siteloom.wrappers.value_from_node import part_values

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from siteloom.learning.induction.feature_columns import Flags, Rows, Table
    from siteloom.learning.induction.rule_search import CandidateRule
    from siteloom.learning.induction.tree_walk import Ints
    from siteloom.learning.value_search.labelled_units import LocatedValue, PlacedUnit
    from siteloom.learning.value_search.value_locations import ValueLocation


_LONGEST_ANCHOR = 60
_MOST_ANCHORS = 8  # anchors to try, from long to short, among those that most texts have
_LEAST_ANCHOR_SHARE = 0.5  # of the texts; a rarer anchor belongs to single records

# A word, a number, blanks, or one other character.
_TOKEN = re.compile(r"[^\W\d_]+|\d+|\s+|.", re.DOTALL)


class ValueSpan(NamedTuple):
    """The span of a value in the text of its node."""

    text: str
    start: int
    end: int

    @property
    def value(self) -> str:
        """The value as written in the text."""
        return self.text[self.start : self.end]


def learn_part(spans: Iterable[ValueSpan], other_texts: Sequence[str]) -> ValuePart | None:
    """Return the part that gives exactly the values of each text, or None if there is none.

    `other_texts` are texts of nodes that the same rule selects on other pages.
    """
    spans_by_text: defaultdict[str, list[ValueSpan]] = defaultdict(list)
    for span in sorted(set(spans), key=lambda span: (span.text, span.start, span.end)):
        spans_by_text[span.text].append(span)
    expected = {text: [span.value for span in in_text] for text, in_text in spans_by_text.items()}
    outer_spans = [
        ValueSpan(text, in_text[0].start, in_text[-1].end) for text, in_text in spans_by_text.items()
    ]
    separators = _separators(spans_by_text.values())
    for candidate in _candidate_parts(outer_spans, separators, other_texts):
        if all(part_values(candidate, text) == values for text, values in expected.items()):
            return candidate
    return None


def _candidate_parts(
    outer_spans: Sequence[ValueSpan], separators: Sequence[str], other_texts: Sequence[str]
) -> Iterator[ValuePart]:
    """Yield the parts to try, the most informative first."""
    texts = [*other_texts, *(span.text for span in outer_spans)]
    lefts = _frequent_anchors(_common_ends([span.text[: span.start] for span in outer_spans]), texts)
    rights = _frequent_anchors(_common_starts([span.text[span.end :] for span in outer_spans]), texts)
    for separator in separators:
        for left_anchor, right_anchor in product(lefts, rights):
            yield ValuePart(left=left_anchor, right=right_anchor, separator=separator)
    for pattern in _patterns([span.value for span in outer_spans]):
        if not pattern_fault(pattern):
            yield ValuePart(pattern=pattern)


def _separators(spans_by_text: Iterable[list[ValueSpan]]) -> list[str]:
    """Return separators between the values of a text; an empty one if no text has several values."""
    between = {
        span.text[span.end : next_span.start]
        for spans in spans_by_text
        for span, next_span in pairwise(spans)
    }
    if not between:
        return [""]
    shortest = min(between, key=len)
    return [shortest, stripped] if (stripped := shortest.strip()) else [shortest]


def _common_starts(contexts: Sequence[str]) -> list[str]:
    """Return common prefixes of the contexts that end between words, from long to short; "" is the last."""
    shared = contexts[0]
    for context in contexts[1:]:
        length = 0
        while length < min(len(shared), len(context)) and shared[length] == context[length]:
            length += 1
        shared = shared[:length]
    ends, end = [], 0
    for token in _TOKEN.findall(shared):
        end += len(token)
        # An anchor must not end inside a word of any context.
        if all(
            len(context) <= end or not (context[end - 1].isalnum() and context[end].isalnum())
            for context in contexts
        ):
            ends.append(end)
    anchors = [shared[:end] for end in ends if end <= _LONGEST_ANCHOR and not shared[:end].isspace()]
    return [*anchors[::-1], ""]


def _common_ends(contexts: Sequence[str]) -> list[str]:
    return [anchor[::-1] for anchor in _common_starts([context[::-1] for context in contexts])]


def _frequent_anchors(anchors: list[str], texts: Sequence[str]) -> list[str]:
    """Return the longest anchors that most texts have, then the empty anchor."""
    threshold = _LEAST_ANCHOR_SHARE * len(texts)
    frequent = (anchor for anchor in anchors if sum(anchor in text for text in texts) >= threshold)
    return [*islice(filter(None, frequent), _MOST_ANCHORS), ""]


def _patterns(values: Sequence[str]) -> Iterator[str]:
    """Yield regular expressions of token classes that all values match."""
    classes = {"".join(_token_class(token) for token in _TOKEN.findall(value)) for value in values}
    if len(classes) == 1:
        yield from classes
    if all(re.fullmatch(r"\d[\d.,]*", value) for value in values):
        yield r"\d[\d.,]*"
    if all(re.fullmatch(r"[$€£¥] ?\d[\d.,]*", value) for value in values):
        yield r"[$€£¥] ?\d[\d.,]*"


def _token_class(token: str) -> str:
    if token.isdigit():
        return r"\d+"
    if token.isalpha():
        return r"[^\W\d_]+"
    return " " if token.isspace() else re.escape(token)


if TYPE_CHECKING:
    Cover = Callable[[CoverProblem], Covering]

_LEAST_LIST_UNITS = 2  # unlabelled units that must show a list before an attribute counts as multi-valued
_MOST_LIST_UNITS = 5
_LONGEST_LIST = 20
_MOST_VOTERS = 2
_MOST_TEXTS = 200  # texts of other pages that are compared when a part is learned


class RuleSet(NamedTuple):
    """The rules of one attribute, and independent rules that vote on their values."""

    rules: tuple[Rule, ...]
    voters: tuple[Rule, ...]
    is_multi: bool


@dataclass(frozen=True, slots=True)
class Units:
    """All units in the table: those with examples, and the texts that are labels of the template.

    Rules for elements choose only from elements with one of the `tags`.
    """

    table: Table
    placed: Sequence[PlacedUnit]
    labels: Flags
    tags: frozenset[str] = frozenset()


def learn_attribute(
    name: str, forms: Sequence[Form], units: Units, is_multi: bool | None, cover: Cover = cover
) -> RuleSet:
    """Learn the rules of an attribute; where `is_multi` is None, it is inferred."""
    labelled_units = [placed for placed in units.placed if name in placed.labelled.values]
    values = [(placed, value) for placed in labelled_units for value in placed.labelled.values[name]]
    has_several = any(len(placed.labelled.values[name]) > 1 for placed in labelled_units)
    uncovered = set(range(len(values)))
    rules: list[Rule] = []
    voters: list[Rule] = []
    for form in forms:
        form_problem = _pose_problem(
            form=form,
            units=units,
            labelled_units=labelled_units,
            values=values,
            uncovered=uncovered,
            is_multi=has_several if is_multi is None else is_multi,
        )
        if form_problem is None:
            continue
        covering = cover(form_problem.problem)
        if is_multi is not False and not has_several and form == Form("text", is_whole=True):
            listed = _cover_lists(problem=form_problem.problem, covering=covering, units=units, cover=cover)
            if listed is not None:
                covering, has_several = listed, True
        for candidate in covering.rules:
            if new := _candidate_rules(candidate, form_problem):
                rules += new
                uncovered -= {
                    form_problem.values[number]
                    for number in candidate.covered
                    if number < len(form_problem.values)
                }
        voters += [
            voter for candidate in covering.voters for voter in _candidate_rules(candidate, form_problem)[:1]
        ]
        if not uncovered:
            break
    return RuleSet(tuple(rules), tuple(voters[:_MOST_VOTERS]), has_several if is_multi is None else is_multi)


class _FormProblem(NamedTuple):
    """The covering problem of one form.

    `values` has, for each instance of the problem, the number of its value. `spans` has, for each row that
    shows values, where they are in its text.
    """

    form: Form
    problem: CoverProblem
    values: list[int]
    spans: Mapping[int, list[ValueSpan]]


def _pose_problem(
    form: Form,
    units: Units,
    labelled_units: Sequence[PlacedUnit],
    values: Sequence[tuple[PlacedUnit, LocatedValue]],
    uncovered: Collection[int],
    is_multi: bool,
) -> _FormProblem | None:
    """Return the problem of finding the uncovered values, or None if none of them has this form."""
    rows = target_rows(units.table, form.target, units.tags)
    row_of = _RowFinder(rows, form.target)
    spans: defaultdict[int, list[ValueSpan]] = defaultdict(list)
    instances: list[Instance] = []
    numbers: list[int] = []
    neutral: list[int] = []
    for number, (placed, value) in enumerate(values):
        locations = [location for location in value.locations if location.target == form.target]
        located = [(row, location) for location in locations if (row := row_of(placed, location)) != NONE]
        # Where the value is only part of a text, the whole text would be wrong: only these rows are neutral.
        matching = [(row, location) for row, location in located if location.is_whole or not form.is_whole]
        neutral += [row for row, _ in matching]
        for row, location in matching:
            spans[row].append(ValueSpan(location.text, location.start, location.end))
        if matching and number in uncovered:
            instances.append(Instance(placed.unit, tuple(dict.fromkeys(row for row, _ in matching))))
            numbers.append(number)
    if not instances:
        return None
    problem = CoverProblem(
        rows=rows,
        instances=instances,
        labelled_units=[placed.unit for placed in labelled_units],
        neutral=neutral,
        is_multi=is_multi,
        labels=units.labels,
    )
    return _FormProblem(form=form, problem=problem, values=numbers, spans=spans)


class _RowFinder:
    """Finds the row of a value location among the rows of its target."""

    def __init__(self, rows: Rows, target: str) -> None:
        self._target = target
        if target != "text":
            self._row = {element: row for row, element in enumerate(rows.element.tolist())}

    def __call__(self, placed: PlacedUnit, location: ValueLocation) -> int:
        if self._target == "text":
            return placed.rows.texts.get((location.element, location.number), NONE)
        return self._row.get(placed.rows.elements.get(location.element, NONE), NONE)


def _candidate_rules(candidate: CandidateRule, form_problem: _FormProblem) -> list[Rule]:
    """Return a candidate as rules, if its values can be extracted from their texts.

    A rule for elements must not select tags that the table leaves out, so it becomes one rule for each tag.
    """
    problem = form_problem.problem
    value_part = _learn_value_part(candidate, form_problem)
    if value_part is None:
        return []
    features = {feature for column in candidate.features for feature in problem.rows.rule_features(column)}
    if form_problem.form.target != "element":
        return [
            _build_rule(
                features=features, candidate=candidate, value_part=value_part, form_problem=form_problem
            )
        ]
    tags = problem.rows.tags(problem.hits(candidate.features))
    return [
        _build_rule(
            features={*features, Feature("tag", 0, tag)},
            candidate=candidate,
            value_part=value_part,
            form_problem=form_problem,
        )
        for tag in tags
    ]


def _learn_value_part(candidate: CandidateRule, form_problem: _FormProblem) -> ValuePart | None:
    """Learn how to extract the values from the texts of the selected nodes."""
    if form_problem.form.is_whole:
        return ValuePart()
    problem = form_problem.problem
    hits = problem.hits(candidate.features)
    spans = [span for row in hits.tolist() for span in form_problem.spans.get(row, ())]
    texts = problem.rows.table.words.texts
    unlabelled_texts = problem.rows.value[hits[problem.is_unlabelled[problem.rows.unit[hits]]]]
    return learn_part(spans, [texts[value] for value in unlabelled_texts[:_MOST_TEXTS].tolist()])


def _build_rule(
    features: set[Feature], candidate: CandidateRule, value_part: ValuePart, form_problem: _FormProblem
) -> Rule:
    return Rule(
        target=form_problem.form.target,
        features=tuple(sorted(features)),
        part=value_part,
        evidence=RuleSupport(
            # The instances after these are lists of other pages that served as examples.
            examples=sum(number < len(form_problem.values) for number in candidate.covered),
            wrong=candidate.wrong,
            filled=round(candidate.filled, 4),
            repeated=round(candidate.repeated, 4),
        ),
        scorer=candidate.scorer,
    )


def _cover_lists(problem: CoverProblem, covering: Covering, units: Units, cover: Cover) -> Covering | None:
    """Return rules for an attribute with several values, if unlabelled units show that it has them.

    No example has more than one value. But where the rules find a value on an unlabelled unit, that value
    may begin a list. If no list on an example continues with a wrong value, the lists serve as examples too.
    """
    following = units.table.continuations()
    lists: dict[int, list[int]] = {}
    for candidate in covering.rules:
        for row in problem.hits(candidate.features).tolist():
            if following[row] == NONE:
                continue
            unit = int(problem.rows.unit[row])
            if not problem.is_unlabelled[unit]:
                if problem.is_wrong_row(int(following[row])):
                    return None
            elif unit not in lists:
                lists[unit] = _list_rows(row, following)
    if len(lists) < _LEAST_LIST_UNITS:
        return None
    longest = sorted(lists, key=lambda unit: (-len(lists[unit]), unit))[:_MOST_LIST_UNITS]
    values = problem.rows.value
    instances = list(problem.instances)
    neutral = list(problem.neutral)
    for unit in longest:
        instances += [Instance(unit, (row,)) for row in lists[unit]]
        shown = np.flatnonzero((problem.rows.unit == unit) & np.isin(values, values[lists[unit]]))
        neutral += shown.tolist()
    united_covering = cover(
        CoverProblem(
            rows=problem.rows,
            instances=instances,
            labelled_units=[*problem.labelled_units, *longest],
            neutral=neutral,
            is_multi=True,
            labels=units.labels,
        )
    )
    return united_covering if united_covering.rules else None


def _list_rows(row: int, following: Ints) -> list[int]:
    chain = [row]
    while following[chain[-1]] != NONE and len(chain) < _LONGEST_LIST:
        chain.append(int(following[chain[-1]]))
    return chain
