"""All rules of one attribute, for every form its values take; how a value is cut out of its text."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.learning.induction.feature_columns import target_rows
from siteloom.learning.induction.rule_search import Covering, Instance, Problem, cover
from siteloom.learning.induction.tree_walk import NONE
from siteloom.learning.value_search.labelled_units import Form
from siteloom.wrappers.rule_features import Feature, Rule, RuleSupport, ValuePart
from siteloom.wrappers.safe_patterns import pattern_fault
from siteloom.wrappers.value_from_node import part_values

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from siteloom.learning.induction.feature_columns import Flags, Rows, Table
    from siteloom.learning.induction.rule_search import Found
    from siteloom.learning.induction.tree_walk import Ints
    from siteloom.learning.value_search.labelled_units import KnownValue, PlacedUnit
    from siteloom.learning.value_search.value_locations import Place


_LONGEST_ANCHOR = 60
_MOST_ANCHORS = 8  # of those that most texts have, from long to short, so many are tried
_USUAL = 0.5  # an anchor that fewer of the texts have belongs to single records

# A word, a number, blanks, or one other character.
_TOKEN = re.compile(r"[^\W\d_]+|\d+|\s+|.", re.DOTALL)


class Cut(NamedTuple):
    """A value in the text of its node."""

    whole: str
    start: int
    end: int

    @property
    def value(self) -> str:
        """The value as it stands in the text."""
        return self.whole[self.start : self.end]


def learn_part(cuts: Iterable[Cut], other_texts: Sequence[str]) -> ValuePart | None:
    """The part that gives exactly the values of each text, or None if there is none.

    `other_texts` are of nodes that the same rule selects on other pages.
    """
    by_text: defaultdict[str, list[Cut]] = defaultdict(list)
    for cut in sorted(set(cuts), key=lambda cut: (cut.whole, cut.start, cut.end)):
        by_text[cut.whole].append(cut)
    wanted = {whole: [cut.value for cut in found] for whole, found in by_text.items()}
    spans = [Cut(whole, found[0].start, found[-1].end) for whole, found in by_text.items()]
    separators = _separators(by_text.values())
    for part in _parts(spans, separators, other_texts):
        if all(part_values(part, whole) == values for whole, values in wanted.items()):
            return part
    return None


def _parts(
    spans: Sequence[Cut], separators: Sequence[str], other_texts: Sequence[str]
) -> Iterator[ValuePart]:
    """Parts to try, the most telling first."""
    texts = [*other_texts, *(span.whole for span in spans)]
    lefts = _usual(_common_ends([span.whole[: span.start] for span in spans]), texts)
    rights = _usual(_common_starts([span.whole[span.end :] for span in spans]), texts)
    for separator in separators:
        for left, right in product(lefts, rights):
            yield ValuePart(left=left, right=right, separator=separator)
    for pattern in _patterns([span.value for span in spans]):
        if not pattern_fault(pattern):
            yield ValuePart(pattern=pattern)


def _separators(found: Iterable[list[Cut]]) -> list[str]:
    """What stands between the values of a text; nothing if it has only one."""
    between = {cuts[0].whole[first.end : second.start] for cuts in found for first, second in pairwise(cuts)}
    if not between:
        return [""]
    shortest = min(between, key=len)
    return [shortest, stripped] if (stripped := shortest.strip()) else [shortest]


def _common_starts(contexts: Sequence[str]) -> list[str]:
    """What all contexts begin with, from long to short, cut between words; nothing is the last."""
    shared = contexts[0]
    for context in contexts[1:]:
        length = 0
        while length < min(len(shared), len(context)) and shared[length] == context[length]:
            length += 1
        shared = shared[:length]
    ends, end = [], 0
    for token in _TOKEN.findall(shared):
        end += len(token)
        # A word that the contexts share only the beginning of is no anchor.
        if all(
            len(context) <= end or not (context[end - 1].isalnum() and context[end].isalnum())
            for context in contexts
        ):
            ends.append(end)
    found = [shared[:end] for end in ends if end <= _LONGEST_ANCHOR and not shared[:end].isspace()]
    return [*found[::-1], ""]


def _common_ends(contexts: Sequence[str]) -> list[str]:
    return [found[::-1] for found in _common_starts([context[::-1] for context in contexts])]


def _usual(anchors: list[str], texts: Sequence[str]) -> list[str]:
    """The longest anchors that most texts have, and no anchor at all."""
    usual = (anchor for anchor in anchors if sum(anchor in text for text in texts) >= _USUAL * len(texts))
    return [*islice(filter(None, usual), _MOST_ANCHORS), ""]


def _patterns(values: Sequence[str]) -> Iterator[str]:
    """Regular expressions of token classes that all values match."""
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
    Cover = Callable[[Problem], Covering]

_LEAST_LIST_UNITS = 2  # unlabelled units that must show a list before one value is taken as one of several
_MOST_LIST_UNITS = 5
_LONGEST_LIST = 20
_MOST_VOTERS = 2
_MOST_TEXTS = 200  # texts of other pages that are looked at when a part is learned


class RuleSet(NamedTuple):
    """What was learned of an attribute."""

    rules: tuple[Rule, ...]
    voters: tuple[Rule, ...]
    is_multi: bool


@dataclass(frozen=True, slots=True)
class Units:
    """All units in the table: those with examples, and the texts that are labels of the template.

    Of elements only those of some `tags` are chosen from.
    """

    table: Table
    placed: Sequence[PlacedUnit]
    labels: Flags
    tags: frozenset[str] = frozenset()


def learn_attribute(
    name: str, forms: Sequence[Form], units: Units, is_multi: bool | None, cover: Cover = cover
) -> RuleSet:
    """The rules of an attribute; `is_multi` is None where that is to be found out."""
    known = [placed for placed in units.placed if name in placed.labelled.values]
    values = [(placed, value) for placed in known for value in placed.labelled.values[name]]
    has_several = any(len(placed.labelled.values[name]) > 1 for placed in known)
    uncovered = set(range(len(values)))
    rules: list[Rule] = []
    voters: list[Rule] = []
    for form in forms:
        posed = _pose(form, units, known, values, uncovered, has_several if is_multi is None else is_multi)
        if posed is None:
            continue
        covering = cover(posed.problem)
        if is_multi is not False and not has_several and form == Form("text", is_whole=True):
            listed = _as_list(posed.problem, covering, units, cover)
            if listed is not None:
                covering, has_several = listed, True
        for found in covering.rules:
            if new := _rules(found, posed):
                rules += new
                uncovered -= {posed.values[number] for number in found.covered if number < len(posed.values)}
        voters += [voter for found in covering.voters for voter in _rules(found, posed)[:1]]
        if not uncovered:
            break
    return RuleSet(tuple(rules), tuple(voters[:_MOST_VOTERS]), has_several if is_multi is None else is_multi)


class _Posed(NamedTuple):
    """What is to be found in one form.

    The problem; for each of its instances the number of the value it stands for;
    and for each row that shows values where these stand in its text.
    """

    form: Form
    problem: Problem
    values: list[int]
    cuts: Mapping[int, list[Cut]]


def _pose(
    form: Form,
    units: Units,
    known: Sequence[PlacedUnit],
    values: Sequence[tuple[PlacedUnit, KnownValue]],
    uncovered: Collection[int],
    is_multi: bool,
) -> _Posed | None:
    """The problem of finding the values that are still uncovered, or None if none has this form."""
    rows = target_rows(units.table, form.target, units.tags)
    row_of = _RowFinder(rows, form.target)
    cuts: defaultdict[int, list[Cut]] = defaultdict(list)
    instances: list[Instance] = []
    numbers: list[int] = []
    neutral: list[int] = []
    for number, (placed, value) in enumerate(values):
        places = [place for place in value.places if place.target == form.target]
        found = [(row, place) for place in places if (row := row_of(placed, place)) != NONE]
        # Where the value is but a part, the whole would be a wrong one: only these rows are neutral.
        here = [(row, place) for row, place in found if place.is_whole or not form.is_whole]
        neutral += [row for row, _ in here]
        for row, place in here:
            cuts[row].append(Cut(place.whole, place.start, place.end))
        if here and number in uncovered:
            instances.append(Instance(placed.unit, tuple(dict.fromkeys(row for row, _ in here))))
            numbers.append(number)
    if not instances:
        return None
    problem = Problem(
        rows,
        instances,
        [placed.unit for placed in known],
        neutral,
        is_multi=is_multi,
        labels=units.labels,
    )
    return _Posed(form, problem, numbers, cuts)


class _RowFinder:
    """The row of a place among those of its target."""

    def __init__(self, rows: Rows, target: str) -> None:
        self._target = target
        if target != "text":
            self._row = {element: row for row, element in enumerate(rows.element.tolist())}

    def __call__(self, placed: PlacedUnit, place: Place) -> int:
        if self._target == "text":
            return placed.rows.texts.get((place.element, place.number), NONE)
        return self._row.get(placed.rows.elements.get(place.element, NONE), NONE)


def _rules(found: Found, posed: _Posed) -> list[Rule]:
    """What was found as a rule, if its values can be cut out; of elements one for each tag that it selects.

    Of elements the table has only those of some tags, and a rule must not select others.
    """
    problem = posed.problem
    part = _part(found, posed)
    if part is None:
        return []
    features = {feature for column in found.features for feature in problem.rows.rule_features(column)}
    if posed.form.target != "element":
        return [_rule(features, found, part, posed)]
    tags = problem.rows.tags(problem.hits(found.features))
    return [_rule({*features, Feature("tag", 0, tag)}, found, part, posed) for tag in tags]


def _part(found: Found, posed: _Posed) -> ValuePart | None:
    """How the values are cut out of the nodes that were found."""
    if posed.form.is_whole:
        return ValuePart()
    problem = posed.problem
    hits = problem.hits(found.features)
    cuts = [cut for row in hits.tolist() for cut in posed.cuts.get(row, ())]
    texts = problem.rows.table.words.texts
    others = problem.rows.value[hits[problem.is_unlabelled[problem.rows.unit[hits]]]]
    return learn_part(cuts, [texts[value] for value in others[:_MOST_TEXTS].tolist()])


def _rule(features: set[Feature], found: Found, part: ValuePart, posed: _Posed) -> Rule:
    return Rule(
        target=posed.form.target,
        features=tuple(sorted(features)),
        part=part,
        evidence=RuleSupport(
            # Those behind them are lists of other pages that were taken for examples.
            examples=sum(number < len(posed.values) for number in found.covered),
            wrong=found.wrong,
            filled=round(found.filled, 4),
            repeated=round(found.repeated, 4),
        ),
        scorer=found.scorer,
    )


def _as_list(problem: Problem, covering: Covering, units: Units, cover: Cover) -> Covering | None:
    """Rules for an attribute with several values, if other units show that it has them.

    No example has more than one value. But where the rules find a value on an
    unlabelled unit, a list may go on from there, and on no example does a list
    go on with something that is no value. Then such lists are examples, too.
    """
    following = units.table.continuations()
    lists: dict[int, list[int]] = {}
    for found in covering.rules:
        for row in problem.hits(found.features).tolist():
            if following[row] == NONE:
                continue
            unit = int(problem.rows.unit[row])
            if not problem.is_unlabelled[unit]:
                if problem.is_wrong_row(int(following[row])):
                    return None
            elif unit not in lists:
                lists[unit] = _chain(row, following)
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
    united = cover(
        Problem(
            problem.rows,
            instances,
            [*problem.labelled_units, *longest],
            neutral,
            is_multi=True,
            labels=units.labels,
        )
    )
    return united if united.rules else None


def _chain(row: int, following: Ints) -> list[int]:
    chain = [row]
    while following[chain[-1]] != NONE and len(chain) < _LONGEST_LIST:
        chain.append(int(following[chain[-1]]))
    return chain
