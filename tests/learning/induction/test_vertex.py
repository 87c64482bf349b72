"""Algorithm 3 of Vertex finds the best precise XPath, or lets a classifier choose."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from siteloom.core.model import Example, Page
from siteloom.learning.induction.feature_columns import ColumnFeature
from siteloom.learning.induction.learner import learn
from siteloom.learning.induction.rule_search import CandidateRule, CoverProblem
from siteloom.learning.induction.vertex_algorithm import cover, fit, search
from siteloom.wrappers.value_from_node import probability
from siteloom.wrappers.wrapper import Wrapper
from tests.learning.induction.problems import problem

Readable = tuple[str, int, str]


def readable(problem: CoverProblem, features: Sequence[ColumnFeature]) -> set[Readable]:
    return {
        (feature.kind, feature.distance, feature.value)
        for found in features
        for feature in problem.rows.rule_features(found)
    }


def selected(problem: CoverProblem, rule: CandidateRule, unit: int) -> list[str]:
    """The texts that the features of a rule select on a page."""
    rows = problem.hits(rule.features)
    rows = rows[problem.rows.unit[rows] == unit]
    return [problem.rows.table.words.texts[value] for value in problem.rows.value[rows].tolist()]


# ---- one rule


def price_page(price: str, rating: str) -> str:
    return f"<div id=price><p><span>{price}</span></p></div><p><span>{rating}</span></p>"


def test_a_near_imprecise_xpath_does_not_shadow_a_far_precise_one() -> None:
    # The defect of the printed algorithm: span at 0 has precision 0.5 and comes first.
    found = problem(
        [(price_page("$5", "3 of 5"), ["$5"]), (price_page("$7", "4 of 5"), ["$7"])],
        [price_page("$9", "2 of 5"), price_page("$8", "1 of 5")],
    )
    (rule,), voters = cover(found)
    assert readable(found, rule.features) == {("id", 2, "price")}
    assert (rule.wrong, set(rule.covered), rule.filled, rule.scorer) == (0, {0, 1}, 1.0, None)
    assert voters == []


def test_the_nearest_feature_wins_and_then_the_best_supported() -> None:
    def page(name: str, near: str = "name") -> str:
        return f"<div class=head><h1 class={near}>{name}</h1></div><p>more</p>"

    near = problem([(page("A"), ["A"]), (page("B"), ["B"])], [page("C"), page("D")])
    assert [feature.distance for feature in cover(near).rules[0].features] == [0]
    # On half of the other pages the class is another one, the tag is not.
    half = problem([(page("A"), ["A"]), (page("B"), ["B"])], [page("C"), page("D", "title")])
    assert readable(half, cover(half).rules[0].features) == {("tag", 0, "h1")}


def test_what_several_nodes_of_another_page_have_is_not_taken() -> None:
    def page(name: str, more: str = "") -> str:
        return f"<div id=main><b>{name}</b></div><div>{more}</div>"

    one = page("Name", "<b>1</b><b>2</b>")
    found = problem([(page("A"), ["A"]), (page("B"), ["B"])], [one, one])
    (rule,), _ = cover(found)
    assert ("id", 1, "main") in readable(found, rule.features)
    assert selected(found, rule, 2) == ["Name"]


def test_of_an_ambiguous_value_the_node_with_the_best_rule_is_taken() -> None:
    def page(name: str, menu: str) -> str:
        return f"<p><i>{menu}</i><i>{name}</i></p><h1>{name}</h1>"

    found = problem([(page("A", "B"), ["A"]), (page("B", "C"), ["B"])], [page("C", "A"), page("D", "B")])
    (rule,), _ = cover(found)
    assert readable(found, rule.features) == {("tag", 0, "h1")}


def test_positions_shapes_and_rare_or_long_texts_are_no_features_of_a_rule() -> None:
    long = "x" * 51

    def page(value: str, word: str) -> str:
        return f"<p>{long}</p><p>{value}</p><p>{word}</p>"

    found = problem([(page("1", "a"), ["1"]), (page("2", "b"), ["2"])], [page("3", "c")])
    (rule,), _ = cover(found)
    assert {kind for kind, _, _ in readable(found, rule.features)} <= {"tag"}
    assert rule.scorer is not None
    last = problem([(page("1", "a"), ["a"]), (page("2", "b"), ["b"])], [page("3", "c")])
    (rule,), _ = cover(last)
    assert {kind for kind, _, _ in readable(last, rule.features)} <= {"tag"}


def test_several_values_of_a_page_are_found_by_one_rule() -> None:
    def page(*names: str) -> str:
        return "<ul>" + "".join(f"<li><a>{name}</a></li>" for name in names) + "</ul><p>more</p>"

    found = problem(
        [(page("A", "B"), ["A", "B"]), (page("C"), ["C"])], [page("D", "E"), page("F")], is_multi=True
    )
    (rule,), _ = cover(found)
    assert selected(found, rule, 0) == ["A", "B"]
    assert selected(found, rule, 2) == ["D", "E"]
    assert (rule.wrong, set(rule.covered), rule.scorer) == (0, {0, 1, 2}, None)


# ---- several rules


def test_without_a_common_feature_each_tag_path_has_a_rule() -> None:
    # The document's own element is five levels up, out of reach.
    first = "<section><p><b><i><u>{}</u></i></b></p></section><h6>more</h6>"
    second = "<article><ol><li><em><a>{}</a></em></li></ol></article><h6>more</h6>"
    found = problem(
        [(first.format("A"), ["A"]), (second.format("B"), ["B"]), (second.format("C"), ["C"])],
        [first.format(name) for name in "DEF"] + [second.format("G")],
    )
    rules, voters = cover(found)
    assert [set(rule.covered) for rule in rules] == [{0}, {1, 2}]  # by support, not by examples
    assert [rule.filled for rule in rules] == [0.75, 0.25]
    assert voters == []


# ---- the classifier


def pair(first: str, second: str) -> str:
    return f"<div><p>{first}</p><p>{second}</p></div>"


def test_a_classifier_tells_nodes_apart_that_have_the_same_features() -> None:
    found = problem(
        [(pair("old", "A"), ["A"]), (pair("gone", "B"), ["B"]), (pair("no", "C"), ["C"])],
        [pair("yes", "D"), "<div><p>alone</p></div>"],
    )
    (rule,), _ = cover(found)
    assert rule.scorer is not None
    assert not rule.scorer.takes_all
    assert (rule.wrong, set(rule.covered), rule.repeated) == (0, {0, 1, 2}, 0.0)
    assert rule.filled == 0.5  # nothing is probable where there is but one


def test_a_wrapper_with_a_classifier_extracts_and_is_kept() -> None:
    def page(number: int, html: str) -> Page:
        return Page(f"http://a.example/{number}", f"<body>{html}</body>".encode())

    examples = [
        Example(page(number, pair(old, name)), {"name": [name]})
        for number, (old, name) in enumerate([("old", "Ann"), ("gone", "Bob"), ("no", "Cid")])
    ]
    wrapper = learn(examples, [page(8, pair("yes", "Eve"))], method="vertex")
    assert wrapper.attributes["name"].rules[0].scorer is not None
    for kept in (wrapper, Wrapper.from_json(wrapper.to_json())):
        assert kept.extract(page(9, pair("off", "Dan"))).values == {"name": ("Dan",)}
        assert kept.extract(page(9, "<div><p>alone</p></div>")).values == {}


def test_a_classifier_of_several_values_takes_all_that_are_probable() -> None:
    def page(*values: str) -> str:
        return "<div>" + "".join(f"<p>{value}</p>" for value in values) + "</div>"

    found = problem(
        [(page("Ann", "12", "Bob"), ["Ann", "Bob"]), (page("Cid", "34", "Dan"), ["Cid", "Dan"])],
        [page("Eve", "56", "Fay")],
        is_multi=True,
    )
    (rule,), _ = cover(found)
    assert rule.scorer is not None
    assert rule.scorer.takes_all
    assert (rule.wrong, set(rule.covered), rule.filled, rule.repeated) == (0, {0, 1, 2, 3}, 1.0, 1.0)


def test_what_looks_the_same_is_as_probable_as_it_is_frequent() -> None:
    same = {"a": 1.0, "b": 0.5}
    scorer = fit([same] * 4, [True, False, False, False], takes_all=False)
    assert probability(scorer, same) == pytest.approx(0.25, abs=0.01)


def test_a_classifier_is_the_same_each_time_and_not_carried_away() -> None:
    candidates = [{f"position {number % 7}": 1.0, "digits": number / 50} for number in range(50)]
    is_right = [number % 7 == 2 for number in range(50)]
    scorer = fit(candidates, is_right, takes_all=False)
    assert scorer == fit(candidates, is_right, takes_all=False)
    assert [probability(scorer, weak) >= 0.5 for weak in candidates] == is_right
    assert all(abs(weight) < 20 for _, weight in scorer.weights)


# ---- pruning


@st.composite
def cells(draw: st.DrawFn, text: str, *, has_all: bool = False) -> str:
    """A text with some of the few features that there are, so that nodes differ in little."""

    def some(*features: str) -> str:
        return " ".join(feature for feature in features if has_all or draw(st.booleans()))

    outer, inner = some("id=x", "itemprop=a", "class=r"), some("id=y", "itemprop=b", "class=s")
    return f"<div {outer}><{draw(st.sampled_from('bi'))} {inner}>{text}</div>"


@st.composite
def problems(draw: st.DrawFn) -> CoverProblem:
    def page(*before: str) -> str:
        return "<p>page</p>" + "".join((*before, *draw(st.lists(cells("w"), max_size=4))))

    labelled = [(page(draw(cells("v", has_all=True))), ["v"]) for _ in range(draw(st.integers(1, 2)))]
    unlabelled = [page() for _ in range(draw(st.integers(0, 5)))]
    return problem(labelled, unlabelled, is_multi=draw(st.booleans()))


@given(problems())
def test_pruning_loses_nothing(found: CoverProblem) -> None:
    (row,) = found.instances[0].rows
    # Anchors would decide too often: what comes first has them.
    marks = ("tag", "id", "class", "attribute:itemprop")
    common = frozenset(feature for feature in found.features(row) if feature.column in marks)
    assume(common)
    chosen = search(found, common, most_features=3)
    every = [judged(found, features) for size in (1, 2, 3) for features in combinations(sorted(common), size)]
    assert (chosen.is_imprecise, *chosen.choice[:4]) == min(every)
    assert judged(found, chosen.features) == min(every)


def judged(problem: CoverProblem, features: tuple[ColumnFeature, ...]) -> tuple[bool, float, int, float, int]:
    """The measures of features, straight from their definitions."""
    rows = problem.hits(features).tolist()
    known = [row for row in rows if not problem.is_unlabelled[problem.rows.unit[row]]]
    others = [int(problem.rows.unit[row]) for row in rows if problem.is_unlabelled[problem.rows.unit[row]]]
    imprecision = sum(map(problem.is_wrong_row, known)) / len(known)
    is_imprecise = bool(imprecision) or (not problem.is_multi and len(others) != len(set(others)))
    unlabelled = int(problem.is_unlabelled.sum())
    lack = 1 - len(set(others)) / unlabelled if unlabelled else 0.0
    distance = max(feature.distance for feature in features)
    return is_imprecise, imprecision, distance, lack, len(features)
