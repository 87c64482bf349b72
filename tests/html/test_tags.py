"""Pages and wrappers with names of elements that lxml gives but does not take."""

from __future__ import annotations

import pytest

from siteloom.core.model import Attribute, Example, Page
from siteloom.html.node_paths import elements_with_tag, siblings_with_tag
from siteloom.learning.induction.learner import learn
from siteloom.wrappers.rule_features import (
    AttributeRules,
    Feature,
    Kind,
    RecordRule,
    Rule,
    RuleSupport,
    ValuePart,
)
from siteloom.wrappers.wrapper import Wrapper
from tests.html.trees import tree

ODD_TAGS = ["c\x01d", "c\ufffed", "o:p", "c{d", 'c"d']


def pages(tag: str, number: int = 6) -> list[Page]:
    """Pages with a name in the second of three elements of a tag."""
    return [
        Page.from_text(
            f"http://a.example/{n}",
            f"<div><{tag}>x{n * 7}</{tag}><{tag} id='{tag[1:]}'>Name {n}</{tag}><{tag}>y{n * 3}</{tag}>",
        )
        for n in range(number)
    ]


@pytest.mark.parametrize("tag", ODD_TAGS)
def test_elements_and_siblings_of_any_tag(tag: str) -> None:
    root = tree(pages(tag)[0].html, "utf-8")
    first, second, third = elements_with_tag(root, tag)
    assert [element.text for element in (first, second, third)] == ["x0", "Name 0", "y0"]
    assert list(siblings_with_tag(second)) == [third]
    assert list(siblings_with_tag(third, preceding=True)) == [second, first]


@pytest.mark.parametrize("tag", ODD_TAGS)
def test_a_wrapper_is_learned_from_pages_with_odd_tags_and_ids(tag: str) -> None:
    some = pages(tag)
    wrapper = learn([Example(page, {"name": [f"Name {n}"]}) for n, page in enumerate(some[:3])], some)
    assert [wrapper.extract(page).values for page in some] == [{"name": (f"Name {n}",)} for n in range(6)]
    assert Wrapper.from_json(wrapper.to_json()) == wrapper


@pytest.mark.parametrize("value", ["", "\0", "\x01", "\ud800", "{x", "{}", "*"])
@pytest.mark.parametrize("kind", ["tag", "id", "class", "before"])
def test_a_wrapper_may_ask_for_what_no_page_has(kind: Kind, value: str) -> None:
    features = (Feature(kind, 0, value),)
    rule = Rule("text", features, ValuePart(), RuleSupport(1, 0, 1.0, 0.0))
    rules = {"a": AttributeRules(Attribute(multi=True), (rule,), (), 1.0)}
    for record_rule in (None, RecordRule(features, runs_on=True, fallback=features)):
        wrapper = Wrapper.from_json(Wrapper(rules, record_rule=record_rule).to_json())
        wrapper.extract_all(pages("b")[0])
