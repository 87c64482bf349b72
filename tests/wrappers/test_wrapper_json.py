"""Wrappers as text: what is written comes back exactly, and only what is sound is read."""

from __future__ import annotations

import json
import re
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import WrapperError
from siteloom.core.model import Attribute, Footprint
from siteloom.html.parser import PARSER
from siteloom.templates.url_patterns import url_patterns
from siteloom.wrappers.rule_features import (
    SHAPES,
    AttributeRules,
    Feature,
    RecordRule,
    Rule,
    RuleSupport,
    Scorer,
    ValuePart,
)
from siteloom.wrappers.safe_patterns import pattern_fault, url_pattern_fault
from siteloom.wrappers.value_from_node import part_values
from siteloom.wrappers.wrapper import Wrapper
from siteloom.wrappers.wrapper_json import from_json, to_json
from tests.wrappers.strategies import patterns, texts, wrappers

EVIDENCE = RuleSupport(5, 0, 0.97, 0.0)
RULE = Rule("text", (Feature("text-before", 0, "Phone:"),), ValuePart(), EVIDENCE)
TYPICAL = Wrapper(
    {
        "phone": AttributeRules(
            Attribute(multi=False, mandatory=True, type="text"),
            (Rule("text", (Feature("prefix", 0, "☎ Phone:"),), ValuePart(left="Phone:"), EVIDENCE),),
            (Rule("@href", (Feature("class", 0, "tel"), Feature("id", 2, "card")), ValuePart(), EVIDENCE),),
            0.97,
        ),
        "date": AttributeRules(Attribute(), (), (), 0.0, day_first=True),
    },
    frozenset({"Phone:", "Address:"}),
    RecordRule((Feature("tag", 0, "li"),), runs_on=False),
    "lxml 6.1.3 / libxml2 2.14.6",
    Footprint(
        ("shop.example",),
        (r"^https?://shop\.example/p/[^/?#]+$",),
        (("0102030405**07**", 31), ("ff02030405060708", 2)),
        ("0102030405060708", "0102030405060709"),
    ),
)
TYPICAL_TEXT = """\
{
  "format": "siteloom wrapper",
  "version": 1,
  "parser": "lxml 6.1.3 / libxml2 2.14.6",
  "attributes": {
    "phone": {
      "multi": false,
      "mandatory": true,
      "type": "text",
      "filled": 0.97,
      "rules": [
        {
          "target": "text",
          "features": [
            {"kind": "prefix", "distance": 0, "value": "☎ Phone:"}
          ],
          "part": {"left": "Phone:"},
          "evidence": {"examples": 5, "wrong": 0, "filled": 0.97, "repeated": 0.0}
        }
      ],
      "voters": [
        {
          "target": "@href",
          "features": [
            {"kind": "class", "distance": 0, "value": "tel"},
            {"kind": "id", "distance": 2, "value": "card"}
          ],
          "evidence": {"examples": 5, "wrong": 0, "filled": 0.97, "repeated": 0.0}
        }
      ]
    },
    "date": {
      "day_first": true,
      "filled": 0.0,
      "rules": []
    }
  },
  "record_rule": {
    "features": [
      {"kind": "tag", "distance": 0, "value": "li"}
    ],
    "runs_on": false
  },
  "labels": [
    "Address:",
    "Phone:"
  ],
  "footprint": {
    "sites": [
      "shop.example"
    ],
    "url_patterns": [
      "^https?://shop\\\\.example/p/[^/?#]+$"
    ],
    "masks": [
      {"mask": "0102030405**07**", "pages": 31},
      {"mask": "ff02030405060708", "pages": 2}
    ],
    "accepted": [
      "0102030405060708", "0102030405060709"
    ]
  }
}
"""


def read(text: str) -> Wrapper:
    """A wrapper, whatever parser it was learned with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return Wrapper.from_json(text)


def with_rule(rule: Rule) -> Wrapper:
    return Wrapper({"phone": AttributeRules(Attribute(), (rule,), (), 1.0)})


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    """The typical wrapper's text after a change."""
    content = json.loads(TYPICAL_TEXT)
    change(content)
    return json.dumps(content)


def rule_of(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = content["attributes"]["phone"]["rules"][0]
    return found


def feature_of(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = rule_of(content)["features"][0]
    return found


def scorer(**changes: object) -> dict[str, Any]:
    return {
        "intercept": 0,
        "takes_all": False,
        "weights": [{"name": "position 2", "weight": 1.5, **changes}],
    }


def refusal(text: str) -> str:
    with pytest.raises(WrapperError) as caught:
        from_json(text)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    message.encode()
    return message


@given(wrappers)
def test_every_wrapper_comes_back_exactly(wrapper: Wrapper) -> None:
    text = to_json(wrapper)
    found = Wrapper.from_json(text)
    assert found == wrapper
    assert list(found.attributes) == list(wrapper.attributes)
    assert to_json(found) == text
    assert all(character.isprintable() or character == "\n" for character in text)


def test_the_text_can_be_reviewed() -> None:
    assert to_json(TYPICAL) == TYPICAL_TEXT
    assert read(TYPICAL_TEXT) == TYPICAL


def test_the_wrapper_that_reads_and_writes_itself_is_the_same() -> None:
    wrapper = replace(TYPICAL, parser=PARSER)
    assert Wrapper.from_json(wrapper.to_json()) == wrapper


def test_shapes_are_written_unless_values_may_be_of_any() -> None:
    prices = AttributeRules(Attribute(), (RULE,), (), 1.0, ("price",), day_first=False)
    text = to_json(Wrapper({"price": prices}))
    assert json.loads(text)["attributes"]["price"]["shapes"] == ["price"]
    assert read(text).attributes["price"] == prices
    assert "shapes" not in to_json(Wrapper({"price": replace(prices, shapes=SHAPES)}))


def test_the_fallback_and_the_least_of_a_record_rule_are_written_where_there_are_any() -> None:
    rule = RecordRule(
        (Feature("class-word", 0, "hit"),), runs_on=False, fallback=(Feature("tag", 0, "li"),), least=2
    )
    text = to_json(Wrapper({}, record_rule=rule))
    assert (
        """
    "runs_on": false,
    "fallback": [
      {"kind": "tag", "distance": 0, "value": "li"}
    ],
    "least": 2
"""
        in text
    )
    assert read(text).record_rule == rule
    plain = to_json(Wrapper({}, record_rule=replace(rule, fallback=(), least=1)))
    assert "fallback" not in plain
    assert "least" not in plain


def test_a_scorer_can_be_reviewed_too() -> None:
    scoring = Scorer((("position 2", 1.5), ("digits", -0.25)), -0.5, takes_all=True)
    text = to_json(with_rule(replace(RULE, scorer=scoring)))
    assert (
        """
          "scorer": {
            "intercept": -0.5,
            "takes_all": true,
            "weights": [
              {"name": "position 2", "weight": 1.5},
              {"name": "digits", "weight": -0.25}
            ]
          }
"""
        in text
    )
    assert read(text).attributes["phone"].rules[0].scorer == scoring


def test_an_empty_wrapper() -> None:
    text = to_json(Wrapper({}))
    assert json.loads(text)["attributes"] == {}
    assert Wrapper.from_json(text) == Wrapper({})


@given(st.text(st.characters(categories=["Cs"]), max_size=6))
def test_lone_surrogates_stay_and_pairs_become_what_they_mean(text: str) -> None:
    written = to_json(Wrapper({}, frozenset({text})))
    written.encode()
    meant = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert Wrapper.from_json(written).labels == {meant}


def test_floats_keep_all_their_digits() -> None:
    share = 0.1 + 0.2
    rule = replace(RULE, evidence=RuleSupport(1, 0, share, 5e-324))
    (found,) = Wrapper.from_json(to_json(with_rule(rule))).attributes["phone"].rules
    assert found.evidence == RuleSupport(1, 0, share, 5e-324)


def test_what_could_not_be_read_is_not_written() -> None:
    with pytest.raises(WrapperError, match="a number from 0 to 1 as 'filled'"):
        to_json(with_rule(replace(RULE, evidence=RuleSupport(1, 0, float("nan"), 0.0))))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "This is no wrapper, for it is not valid JSON (line 1)."),
        ("{\n\n'a': 1}", "This is no wrapper, for it is not valid JSON (line 3)."),
        ("[" * 100_000, "This is no wrapper, for it is not valid JSON."),
        ('{"version": ' + "9" * 10_000 + "}", "This is no wrapper, for it is not valid JSON."),
        ("[]", 'This is no wrapper: a wrapper file says "format": "siteloom wrapper".'),
        ('{"format": "cookies"}', 'This is no wrapper: a wrapper file says "format": "siteloom wrapper".'),
        (
            '{"format": "siteloom wrapper", "version": 2, "anything": []}',
            (
                "This wrapper was written by a newer Siteloom (version 2 of the format, 1 is known here): "
                "update Siteloom."
            ),
        ),
        (
            '{"format": "siteloom wrapper", "version": true}',
            "The wrapper cannot be read: the file has no version that is known here, which is 1.",
        ),
        (
            '{"format": "siteloom wrapper", "version": 1, "attributes": {}}',
            "The wrapper cannot be read: the file lacks 'parser'.",
        ),
        (
            '{"format": "siteloom wrapper", "format": "siteloom wrapper"}',
            "The wrapper cannot be read: the key 'format' stands twice in the same object.",
        ),
    ],
    ids=range(10),
)
def test_what_is_no_wrapper_of_this_version(text: str, message: str) -> None:
    assert refusal(text) == message


IN_RULE = "attribute 'phone', rule 1"
IN_FEATURE = f"{IN_RULE}, feature 1"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.update(run="rm"), "the file has the unknown key 'run'"),
        (lambda w: w.update(parser=None), "the name of the parser must be a text"),
        (lambda w: w.update(labels="Phone:"), "labels must be a list"),
        (lambda w: w["labels"].append(3), "label 3 must be a text"),
        (lambda w: w.update(attributes=[]), "the key 'attributes' must be an object"),
        (lambda w: w["attributes"].update(phone=7), "attribute 'phone' must be an object"),
        (
            lambda w: w["attributes"]["phone"].update(multi="no"),
            "attribute 'phone' must have true or false as 'multi'",
        ),
        (
            lambda w: w["attributes"]["phone"].update(type="telephone"),
            (
                "attribute 'phone' has the unknown type 'telephone', for there are "
                "text, number, price, date, url, image, rating"
            ),
        ),
        (
            lambda w: w["attributes"]["phone"].update(filled=1.1),
            "attribute 'phone' must have a number from 0 to 1",
        ),
        (lambda w: w["attributes"]["phone"].update(rules={}), "attribute 'phone', rules must be a list"),
        (lambda w: w["attributes"]["phone"].pop("rules"), "attribute 'phone' lacks 'rules'"),
        (lambda w: w.update(record_rule=None), "the record rule must be an object"),
        (
            lambda w: w["record_rule"].update(runs_on=0),
            "the record rule must have true or false as 'runs_on'",
        ),
        (
            lambda w: w["record_rule"]["features"].append({"kind": "shape", "distance": 0, "value": "price"}),
            "the record rule, feature 2 asks for 'shape', which is not asked where records begin",
        ),
        (
            lambda w: w["record_rule"]["features"].append(
                {"kind": "first-text", "distance": 0, "value": "A"}
            ),
            "the record rule, feature 2 asks for 'first-text', which is not asked where records begin",
        ),
        (
            lambda w: w["record_rule"]["features"].append(
                {"kind": "text-before", "distance": 0, "value": "A"}
            ),
            "the record rule, feature 2 asks for 'text-before', which is not asked where records begin",
        ),
        (
            lambda w: w["record_rule"].update(fallback=[{"kind": "shape", "distance": 0, "value": "price"}]),
            "the record rule, fallback feature 1 asks for 'shape', which is not asked where records begin",
        ),
        (
            lambda w: w["record_rule"].update(fallback={}),
            "the record rule, fallback features must be a list",
        ),
        (
            lambda w: w["record_rule"].update(least=0),
            "the record rule must have a whole number from 1 on as 'least'",
        ),
        (
            lambda w: w["record_rule"].update(least=True),
            "the record rule must have a whole number from 1 on as 'least'",
        ),
        (
            lambda w: w["record_rule"].update(most=3),
            "the record rule has the unknown key 'most'",
        ),
        (
            lambda w: w["attributes"]["phone"].update(shapes="price"),
            "attribute 'phone', shapes must be a list",
        ),
        (
            lambda w: w["attributes"]["phone"].update(shapes=["price", ["round"]]),
            "attribute 'phone', shape 2 is ['round'], but there are only price, digits, mixed, words",
        ),
        (
            lambda w: w["attributes"]["phone"].update(shapes=["price", "price"]),
            "attribute 'phone' names a shape twice",
        ),
        (lambda w: rule_of(w).update(target="@on click"), f"{IN_RULE} has the unknown target '@on click'"),
        (
            lambda w: rule_of(w).update(target="element"),
            f"{IN_RULE} asks for 'prefix', which only texts have",
        ),
        (lambda w: rule_of(w).update(part={"middle": "x"}), f"{IN_RULE}, part has the unknown key 'middle'"),
        (lambda w: rule_of(w).update(part={"left": 3}), f"{IN_RULE}, part, left must be a text"),
        (
            lambda w: rule_of(w).update(part={"left": "a", "pattern": "a"}),
            f"{IN_RULE}, part has both a pattern and anchors",
        ),
        (
            lambda w: rule_of(w).update(scorer=scorer(weight=float("nan"))),
            f"{IN_RULE}, scorer, weight 1 must have a number of at most 1,000,000 as 'weight'",
        ),
        (
            lambda w: rule_of(w).update(scorer=scorer(name="colour")),
            f"{IN_RULE}, scorer, weight 1 is for 'colour', which no node has",
        ),
        (
            lambda w: rule_of(w).update(scorer={**scorer(), "intercept": 10**400}),
            f"{IN_RULE}, scorer must have a number of at most 1,000,000 as 'intercept'",
        ),
        (
            lambda w: rule_of(w)["evidence"].update(examples=2.5),
            f"{IN_RULE}, evidence must have a whole number from 0 on as 'examples'",
        ),
        (
            lambda w: feature_of(w).update(kind="colour"),
            f"{IN_FEATURE} has the unknown kind 'colour', for there are text-before, prefix,",
        ),
        (lambda w: feature_of(w).update(kind=["id"]), f"{IN_FEATURE} has the unknown kind ['id']"),
        (lambda w: feature_of(w).update(distance=-1), f"{IN_FEATURE} must have a whole number from 0 on"),
        (lambda w: feature_of(w).update(distance=True), f"{IN_FEATURE} must have a whole number from 0 on"),
        (
            lambda w: feature_of(w).update(distance=1),
            f"{IN_FEATURE} has a distance, but 'prefix' is always at 0",
        ),
        (
            lambda w: feature_of(w).update(kind="id", distance=10**9),
            f"{IN_FEATURE} has a distance above 2048, which no page has",
        ),
        (lambda w: feature_of(w).update(value=3), f"{IN_FEATURE}, value must be a text"),
        (
            lambda w: feature_of(w).update(kind="position", value="0"),
            f"{IN_FEATURE} has the value '0', which is no number from 1 on",
        ),
        (
            lambda w: feature_of(w).update(kind="last-position", value="last"),
            f"{IN_FEATURE} has the value 'last', which is no number from 1 on",
        ),
        (
            lambda w: feature_of(w).update(kind="shape", value="round"),
            f"{IN_FEATURE} has the unknown value 'round', for there are price, digits, mixed, words",
        ),
        (
            lambda w: feature_of(w).update(kind="attribute", value="or 1=1"),
            f"{IN_FEATURE} has the value 'or 1=1', which is not of the form name=value",
        ),
        (
            lambda w: feature_of(w).update(kind="\ud800\x1b[31m" * 20),
            f"{IN_FEATURE} has the unknown kind '\\ud800\\x1b[31m",
        ),
        (lambda w: w.update(footprint=[]), "the footprint must be an object"),
        (lambda w: w["footprint"].pop("masks"), "the footprint lacks 'masks'"),
        (lambda w: w["footprint"].update(hosts=[]), "the footprint has the unknown key 'hosts'"),
        (lambda w: w["footprint"].update(sites="shop.example"), "the footprint, sites must be a list"),
        (lambda w: w["footprint"].update(sites=[1]), "the footprint, site 1 must be a text"),
        (
            lambda w: w["footprint"].update(url_patterns=["^x$", ".*"]),
            r"the footprint, URL pattern 2 is not of the form ^https?://www\.shop\.example/",
        ),
        (
            lambda w: w["footprint"].update(url_patterns=[f"^{'x' * 20_000}$"]),
            "the footprint, URL pattern 1 has more than 20,000 characters",
        ),
        (
            lambda w: w["footprint"].update(masks=["0102030405060708"]),
            "the footprint, mask 1 must be an object",
        ),
        (
            lambda w: w["footprint"]["masks"][1].update(mask="**" * 3 + "01" * 5),
            "the footprint, mask 2 is '******0101010101', not a signature in which at most two bytes",
        ),
        (
            lambda w: w["record_rule"].update(features=[{"kind": "position", "distance": 0, "value": "1"}]),
            "the record rule asks for 'position' without the 'tag' of the same element",
        ),
        (
            lambda w: w["attributes"]["phone"]["rules"][0].update(
                features=[
                    {"kind": "tag", "distance": 1, "value": "p"},
                    {"kind": "last-position", "distance": 0, "value": "1"},
                ]
            ),
            f"{IN_RULE} asks for 'last-position' without the 'tag' of the same element",
        ),
        (
            lambda w: w["footprint"]["masks"][0].update(mask="0102030405060*08"),
            "the footprint, mask 1 is '0102030405060*08', not a signature",
        ),
        (
            lambda w: w["footprint"]["masks"][0].update(pages=0),
            "the footprint, mask 1 must have a whole number from 1 on as 'pages'",
        ),
        (
            lambda w: w["footprint"].update(accepted=["0102030405060708", "010203040506070G"]),
            "the footprint, accepted signature 2 is '010203040506070G', not eight bytes in hexadecimal",
        ),
        (
            lambda w: w["footprint"].update(accepted=["0102030405060708\n"]),
            "the footprint, accepted signature 1 is '0102030405060708\\n', not eight bytes",
        ),
    ],
    ids=range(60),
)
def test_what_is_wrong_is_said_with_its_place(
    change: Callable[[dict[str, Any]], object], message: str
) -> None:
    assert refusal(changed(change)).startswith(f"The wrapper cannot be read: {message}")


@given(st.data())
def test_a_damaged_wrapper_is_refused_or_read_but_never_fails_otherwise(data: st.DataObject) -> None:
    content = json.loads(TYPICAL_TEXT)
    place: Any = content
    while isinstance(place, dict | list) and place:
        key: Any = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
            break
        place = place[key]
    if place:
        plain = st.none() | st.booleans() | st.integers() | st.floats() | texts
        place[key] = data.draw(plain | st.lists(plain) | st.dictionaries(texts, plain))
    with suppress(WrapperError):
        read(json.dumps(content))


@pytest.mark.parametrize(
    "pattern",
    [
        r"(\d++)",
        r"(?:a)",
        r"(?=a)",
        "a|b",
        r"(a)\1",
        r"\1",
        r"\d+\d",
        r"\d*\s*\d",
        r"\d+,?\d+",
        r"\d+\s{0}\d",
        r"\d+\w",
        r"\w+\d",
        ".*x",
        "a?a",
        "a{1,3}a",
        "a{,3}[a-z]",
        r"\s* ",
        "[0-9]+[a-z]",  # harmless, but not known to be
        "a*?",
        r"\b",
        "^a",
        "a$",
        "(a+)+b",
        "a**",
        r"\A",
        r"\Z",
        r"[a-z",
        "[z-a]",
        "[[a]]",
        "[a--b]",
        "a{3,1}+",
        "a{99999}",
        "\\",
        "a" * 501,
    ],
)
def test_patterns_that_are_not_read(pattern: str) -> None:
    message = refusal(changed(lambda content: rule_of(content).update(part={"pattern": pattern})))
    assert message.startswith(f"The wrapper cannot be read: {IN_RULE}, part has ")
    assert "pattern" in message


@pytest.mark.parametrize(
    ("pattern", "text", "value"),
    [
        (r"\d{3}-\d{4}", "call 555-0199 now", "555-0199"),
        (r"\$\d++", "Our price: $1299 only", "$1299"),
        (r"[A-Z][a-z]++ \d{1,2}+, \d{4}", "on April 3, 2011.", "April 3, 2011"),
        (r"\w++@\w++\.[a-z]{2,}+", "to me@site.example", "me@site.example"),
        (r"\([^)]*+\)", "Name (the 2nd)", "(the 2nd)"),
        (r"\d+ [^\W\d_]+\, [^\W\d_]+", "at 12 Elm, Larkmoor", "12 Elm, Larkmoor"),
        (r"[$€£¥] ?\d[\d.,]*", "now $ 1,299.50 only", "$ 1,299.50"),
        (r"\d{1,2}/\d{1,2}/\d{4}", "on 3/14/2011", "3/14/2011"),
        (re.escape("a.b [c] #1"), "a.b [c] #1!", "a.b [c] #1"),
    ],
)
def test_patterns_that_are_read_and_used(pattern: str, text: str, value: str) -> None:
    wrapper = read(changed(lambda content: rule_of(content).update(part={"pattern": pattern})))
    (rule,) = wrapper.attributes["phone"].rules
    assert part_values(rule.part, text) == [value]


@given(patterns.filter(bool))
def test_no_pattern_that_is_read_takes_long(pattern: str) -> None:
    started = time.process_time()
    longest = pattern * (499 // len(pattern)) + "!"
    read(changed(lambda content: rule_of(content).update(part={"pattern": longest})))
    part_values(ValuePart(pattern=longest), "1a" * 50 + "1" * 200 + "a" * 200)
    assert time.process_time() - started < 5  # with quantifiers that give back, it would not end


def test_a_pattern_that_may_give_back_is_refused_with_what_to_write() -> None:
    assert pattern_fault(r"\d+\w") == (
        r"has the pattern '\\d+\\w', where '\\d+' may give back what it took: write '\\d++' instead"
    )
    assert not pattern_fault(r"\d++\w")


def test_another_libxml2_is_warned_of() -> None:
    text = to_json(replace(TYPICAL, parser="lxml 4.9.0 / libxml2 2.9.14"))
    with pytest.warns(UserWarning, match="learned with lxml 4.9.0 / libxml2 2.9.14, this is lxml") as caught:
        Wrapper.from_json(text)
    assert str(caught[0].message).endswith(f"this is {PARSER}: check its records, or learn it again.")
    assert caught[0].filename == __file__


def test_another_lxml_with_the_same_libxml2_is_not() -> None:
    libxml2 = PARSER.partition(" / ")[2]
    Wrapper.from_json(
        to_json(replace(TYPICAL, parser=f"lxml 99.0.0 / {libxml2}"))
    )  # warnings are errors here


# ---- footprints

bytes_of_text = st.integers(0, 255).map("{:02x}".format)
signatures = st.lists(bytes_of_text, min_size=8, max_size=8).map("".join)


@st.composite
def masks(draw: st.DrawFn) -> tuple[str, int]:
    pairs = draw(st.lists(bytes_of_text, min_size=8, max_size=8))
    for place in draw(st.sets(st.integers(0, 7), max_size=2)):
        pairs[place] = "**"
    return "".join(pairs), draw(st.integers(1, 10**9))


url_like = st.lists(
    st.sampled_from(
        ["http://", "ftp://", "//", "a.example", "b.example", "/", "/", "?", "&", "=", ".", "-", "x", "12",
         "é", "\n", ":80", "@", "[::1]", "(.*)", "[", "{2}", "^", "$", "|", "\\", "\x00", "\ud800"]
    ),
    max_size=12,
).map("".join)  # fmt: skip
footprints = st.builds(
    Footprint,
    sites=st.lists(texts, max_size=3).map(tuple),
    url_patterns=st.lists(url_like, max_size=8).map(url_patterns),
    masks=st.lists(masks(), max_size=3).map(tuple),
    accepted=st.lists(signatures, max_size=40).map(tuple),
)


@given(footprints)
def test_a_footprint_comes_back_as_it_was(footprint: Footprint) -> None:
    wrapper = Wrapper({}, footprint=footprint)
    text = to_json(wrapper)
    assert read(text) == wrapper
    assert to_json(read(text)) == text


def test_a_wrapper_without_a_footprint_is_for_no_page() -> None:
    without = replace(TYPICAL, footprint=Footprint())
    assert '"footprint"' not in to_json(without)
    assert read(changed(lambda content: content.pop("footprint"))) == without


def test_signatures_stand_sixteen_to_a_line() -> None:
    accepted = tuple(f"{number:016x}" for number in range(40))
    lines = to_json(replace(TYPICAL, footprint=Footprint(accepted=accepted))).splitlines()
    assert sorted(line.count("00") > 0 and line.count('"') // 2 for line in lines)[-3:] == [8, 16, 16]
    assert '    "accepted": [' in lines


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "a",
        "^a",
        "a$",
        "^a$\n",
        "^.*$",
        "^a[^/?#]*b[^/?#]*$",
        "^/[^/?#]+[^/?#]+$",
        "^/[^?#]*/[^/?#]+$",
        "^/[^?#]+x[^?#]+$",
        "^/[^/?#]+x[^?#]+$",
        r"^\?[^&#]*x[^#]*$",
        r"^\?[^#]*&[^&#]*$",
        "^(?:[^/?#]*)*$",
        "^(?:(?:a)?)?$",
        "^/(a+)+$",
        "^/(?:a|b)$",
        "^/(?:a+)?$",
        "^/(?=x)$",
        r"^/(?:\1)?$",
        r"^/\d+$",
        "^/a?$",
        "^/a[^/?#]*+$",
        "^/a[^/?#]{2}$",
        "^/a[a-z]+$",
        "^[^/?#]*[^/?#]*$",
        "^/a$|^/b$",
        "^https?://a|b/$",
        "^#$",
        f"^https?://(?:{'|'.join('abcdefghi')})/$",  # more hosts than are ever written
        f"^https?://a/[^/?#]*{'a' * 129}$",  # a longer literal
    ],
)
def test_url_patterns_that_are_not_read(pattern: str) -> None:
    message = refusal(changed(lambda content: content["footprint"].update(url_patterns=[pattern])))
    assert message.startswith("The wrapper cannot be read: the footprint, URL pattern 1 is not of the form ")


def test_no_url_pattern_takes_long_to_read_or_to_match() -> None:
    started = time.process_time()
    for pattern in (
        "^" + "(?:" * 6_000,
        "^/" + "[^/?#]*" * 2_500,
        "^(?:" + "a|" * 9_000,
        "^/" + "\\" * 19_000,
        "^" + "/a" * 9_000 + "$x",
    ):
        assert url_pattern_fault(pattern)
    for pattern in (
        "^[^/?#]*(?://[^/?#]*)?" + "/[^/?#]*aa" * 500 + "$",
        f"^(?:{'|'.join('aaaaaaaa')})/[^/?#]*{'a' * 128}$",
        f"^a/[^?#]*{'a' * 2_000}$",
    ):
        assert not url_pattern_fault(pattern)
        for url in ("/" + "a" * 20_000, "a/" + "a" * 20_000 + "b", "/aaa" * 5_000):
            assert not re.fullmatch(pattern, url)
    assert time.process_time() - started < 5  # a tenth of a second, in fact
