"""Learning the rules of one attribute, whatever the form of its values."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.learning.labelled import Form
from siteloom.learning.parts import Cut, learn_part
from siteloom.learning.search import Covering, Instance, Problem, cover
from siteloom.learning.table import target_rows
from siteloom.learning.walking import NONE
from siteloom.wrapper.language import Evidence, Feature, Part, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from siteloom.learning.labelled import KnownValue, PlacedUnit
    from siteloom.learning.places import Place
    from siteloom.learning.search import Found
    from siteloom.learning.table import Flags, Rows, Table
    from siteloom.learning.walking import Ints

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


def _part(found: Found, posed: _Posed) -> Part | None:
    """How the values are cut out of the nodes that were found."""
    if posed.form.is_whole:
        return Part()
    problem = posed.problem
    hits = problem.hits(found.features)
    cuts = [cut for row in hits.tolist() for cut in posed.cuts.get(row, ())]
    texts = problem.rows.table.words.texts
    others = problem.rows.value[hits[problem.is_unlabelled[problem.rows.unit[hits]]]]
    return learn_part(cuts, [texts[value] for value in others[:_MOST_TEXTS].tolist()])


def _rule(features: set[Feature], found: Found, part: Part, posed: _Posed) -> Rule:
    return Rule(
        target=posed.form.target,
        features=tuple(sorted(features)),
        part=part,
        evidence=Evidence(
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
