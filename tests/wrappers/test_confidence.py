"""Confidence: what speaks for a value raises it, what speaks against it lowers it."""

from __future__ import annotations

import json
from importlib.resources import files
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import siteloom
from siteloom.core.model import Attribute, Page
from siteloom.wrappers import value_contract as module
from siteloom.wrappers.rule_features import AttributeRules, Feature, Rule, RuleSupport, Scorer, ValuePart
from siteloom.wrappers.value_contract import Signs, confidence, signs

SHARES = st.floats(0, 1)
ANY_SIGNS = st.builds(Signs, SHARES, SHARES, SHARES, SHARES, SHARES)
EVIDENCE = RuleSupport(examples=3, wrong=0, filled=1.0, repeated=0.0)


def rule(css_class: str, evidence: RuleSupport = EVIDENCE, scorer: Scorer | None = None) -> Rule:
    return Rule("text", (Feature("class", 0, css_class),), ValuePart(), evidence, scorer)


@given(ANY_SIGNS, st.sampled_from(["filled", "agreeing"]), SHARES)
def test_what_speaks_for_a_value_never_lowers_its_confidence(found: Signs, name: str, share: float) -> None:
    more = found._replace(**{name: max(share, getattr(found, name))})
    assert confidence(more) >= confidence(found)


@given(ANY_SIGNS, st.sampled_from(["imprecise", "several", "disagreeing"]), SHARES)
def test_what_speaks_against_a_value_never_raises_it(found: Signs, name: str, share: float) -> None:
    more = found._replace(**{name: max(share, getattr(found, name))})
    assert confidence(more) <= confidence(found)


@given(ANY_SIGNS)
def test_it_is_a_probability_and_never_certain(found: Signs) -> None:
    assert 0 < confidence(found) < 1


def test_agreement_and_disagreement_matter() -> None:
    silent = Signs(filled=1, imprecise=0, several=0, agreeing=0, disagreeing=0)
    agreed = confidence(silent._replace(agreeing=1))
    assert agreed > confidence(silent) > confidence(silent._replace(disagreeing=1))


def test_the_shipped_weights_are_those_of_the_signs() -> None:
    content = files("siteloom.wrappers").joinpath("confidence.json").read_text(encoding="utf-8")
    assert set(json.loads(content)["weights"]) == {"intercept", *Signs._fields}


def test_the_weights_are_read_once() -> None:
    module.weights.cache_clear()
    module.confidence.cache_clear()  # other tests may have asked for the same
    with patch.object(module, "files", wraps=files) as reading:
        confidence(Signs(1, 0, 0, 0, 0))
        confidence(Signs(0, 1, 0, 0, 0))
    assert reading.call_count == 1


def test_voters_count_by_their_share() -> None:
    found = signs(rule("a"), is_one_of_several=True, agreeing=1, disagreeing=1, voters=2)
    assert found == Signs(filled=1, imprecise=0, several=1, agreeing=0.5, disagreeing=0.5)


def test_without_voters_nobody_agrees_or_disagrees() -> None:
    found = signs(rule("a"), is_one_of_several=False, agreeing=0, disagreeing=0, voters=0)
    assert found == Signs(filled=1, imprecise=0, several=0, agreeing=0, disagreeing=0)


@pytest.mark.parametrize(
    "unsure",
    [
        rule("a", RuleSupport(examples=3, wrong=1, filled=1.0, repeated=0.0)),
        rule("a", scorer=Scorer((), 0.0)),
    ],
)
def test_rules_that_select_more_than_values_are_imprecise(unsure: Rule) -> None:
    assert signs(unsure, is_one_of_several=False, agreeing=0, disagreeing=0, voters=0).imprecise == 1


def confidences(rules: AttributeRules, html: str) -> dict[str, float]:
    record = siteloom.Wrapper({"a": rules}).extract(Page.from_text("http://a/", html))
    return dict(zip(record.values["a"], record.confidence["a"], strict=True))


def expected(**others: float) -> float:
    return confidence(Signs(**{**dict.fromkeys(Signs._fields, 0.0), "filled": 1.0, **others}))


def test_a_voter_that_finds_nothing_disagrees() -> None:
    rules = AttributeRules(Attribute(multi=False), (rule("a"),), (rule("b"), rule("c")), 1.0)
    html = "<p class=a>x</p><p class=b>x</p>"
    assert confidences(rules, html) == {"x": expected(agreeing=0.5, disagreeing=0.5)}


def test_voters_say_nothing_against_values_of_further_rules() -> None:
    rules = AttributeRules(Attribute(multi=True), (rule("a"), rule("d")), (rule("b"),), 1.0)
    html = "<p class=a>x</p><p class=b>x</p><p class=d>y</p>"
    assert confidences(rules, html) == {
        "x": expected(several=1, agreeing=1),
        "y": expected(several=1),
    }


def test_a_voter_that_steps_in_is_no_witness_for_itself() -> None:
    rules = AttributeRules(Attribute(multi=False), (rule("a"),), (rule("b"), rule("c")), 1.0)
    html = "<p class=b>x</p><p class=c>x</p>"
    assert confidences(rules, html) == {"x": expected(agreeing=0.5, disagreeing=0.5)}
