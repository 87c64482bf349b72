"""Scorers: choosing among nodes by where they stand and what they are made of."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from siteloom.core.model import Attribute, Page
from siteloom.html.parser import Element
from siteloom.learning.induction.feature_columns import Table, target_rows
from siteloom.learning.induction.tree_walk import TableBuilder
from siteloom.wrappers.feature_index import Occurrences, Search
from siteloom.wrappers.rule_evaluation import Node, NodePosition, node_position, select, select_in
from siteloom.wrappers.rule_evaluation import Scope as RecordScope
from siteloom.wrappers.rule_evaluation import _behind as behind
from siteloom.wrappers.rule_features import AttributeRules, Feature, Rule, Scorer, ValuePart
from siteloom.wrappers.value_from_node import WEAK_NAME, chosen, probability, score, weak_features, winners
from siteloom.wrappers.wrapper import Wrapper
from tests.html.trees import tree
from tests.wrappers.pages import EVIDENCE, scopes
from tests.wrappers.reference import Scope

SECOND = Scorer((("position 2", 4.0),), -2.0)


def everything(target: str, root: Element, record: RecordScope | None = None) -> list[Node]:
    rule = Rule(target, (), ValuePart(), EVIDENCE)
    return (
        select_in(rule, record)
        if record
        else select(Search(rule.target, None, (), rule.features), Occurrences(root, {}, {}))
    )


def test_weak_features_of_a_text() -> None:
    assert weak_features("$5 OFF", NodePosition(2, 1, 7)) == {
        "position 2": 1,
        "text-number 1": 1,
        "depth 7": 1,
        "length 3": 1,
        "shape price": 1,
        "digits": 1 / 6,
        "letters": 3 / 6,
        "capitals": 3 / 6,
    }


@given(st.text(), st.builds(NodePosition, *[st.integers(0, 9_999)] * 3))
def test_all_names_of_weak_features_are_known(text: str, place: NodePosition) -> None:
    assert all(WEAK_NAME.fullmatch(name) for name in weak_features(text, place))


@pytest.mark.parametrize(
    ("total", "expected"), [(0.0, 0.5), (1e6, 1.0), (-1e6, 0.0), (1.0, 0.7310585786300049)]
)
def test_probabilities_are_those_of_the_logistic_function(total: float, expected: float) -> None:
    assert probability(Scorer((), total), {}) == pytest.approx(expected)


def test_the_most_probable_one_wins_if_it_is_probable_at_all() -> None:
    assert winners(Scorer((), 0.0), [0.4, 0.6, 0.9, 0.9]) == [2]
    assert winners(Scorer((), 0.0, takes_all=True), [0.4, 0.6, 0.9, 0.5]) == [1, 2, 3]
    assert winners(Scorer((), 0.0), [0.49, 0.1]) == []
    assert winners(Scorer((), 0.0), []) == []


def test_chosen_nodes() -> None:
    nodes = everything("text", tree("<p>a</p><p>b</p><p>c</p>"))
    assert [node.text for node in chosen(SECOND, nodes)] == ["b"]
    assert score(SECOND, nodes[0]) < 0.5 < score(SECOND, nodes[1])


def test_a_wrapper_takes_what_its_scorer_chooses() -> None:
    rule = Rule("text", (Feature("tag", 0, "p"),), ValuePart(), EVIDENCE, SECOND)
    wrapper = Wrapper({"name": AttributeRules(Attribute(multi=False), (rule,), (), 1.0)})

    def names(html: str, wrapper: Wrapper = wrapper) -> tuple[str, ...]:
        page = Page("http://a.example/", f"<body>{html}</body>".encode())
        return tuple(wrapper.extract(page).values.get("name", ()))

    assert names("<p>a</p><p>b</p><p>c</p>") == ("b",)
    assert names("<p>a</p>") == ()
    assert names("<p>a</p><p>Name:</p>", replace(wrapper, labels=frozenset({"Name:"}))) == ()
    every = replace(rule, scorer=Scorer((("position 2", -4.0),), 2.0, takes_all=True))
    many = Wrapper({"name": AttributeRules(Attribute(multi=True), (every,), (), 1.0)})
    assert names("<p>a</p><p>b</p><p>c</p>", many) == ("a", "c")


def test_a_scorer_chooses_only_among_nodes_that_hold_values() -> None:
    rule = Rule("text", (Feature("tag", 0, "p"),), ValuePart(), EVIDENCE, Scorer((("position 1", 4.0),), 2.0))

    def name(html: str, found: AttributeRules) -> tuple[str, ...]:
        page = Page("http://a.example/", f"<body>{html}</body>".encode())
        return tuple(Wrapper({"name": found}).extract(page).values.get("name", ()))

    found = AttributeRules(Attribute(multi=False), (rule,), (), 1.0)
    assert name("<p>$5</p><p>b</p>", found) == ("$5",)
    assert name("<p>$5</p><p>b</p>", replace(found, shapes=("words",))) == ("b",)
    after_colon = replace(rule, part=ValuePart(left=":"))
    assert name("<p>a</p><p>by: b</p>", replace(found, rules=(after_colon,))) == ("b",)


@given(scopes())
def test_nodes_stand_where_the_table_of_learning_says(scope: Scope) -> None:
    assume(not scope.is_record or scope.top.tag != "html")  # no record holds a head
    builder = TableBuilder(frozenset({"href", "data-x"}))
    builder.add(scope.top)
    table = Table(builder)
    record = RecordScope(scope.top, behind(scope.top)) if scope.is_record else None
    for target in ("text", *table.inner_texts):
        rows = target_rows(table, target)
        found = [(table.words.texts[rows.value[row]], rows.node_position(row)) for row in range(len(rows))]
        nodes = [node for node in everything(target, scope.top, record) if node.text]
        assert found == [(node.text, node_position(node, record)) for node in nodes]
