"""Explanations: plain words that leave nothing out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from siteloom.core.model import Attribute
from siteloom.wrappers.explanation import contract_words, explain, rule_words
from siteloom.wrappers.rule_features import (
    AttributeRules,
    Feature,
    RecordRule,
    Rule,
    RuleSupport,
    Scorer,
    Shape,
    ValuePart,
)
from siteloom.wrappers.value_contract import Contract
from siteloom.wrappers.wrapper import Wrapper
from tests.wrappers.strategies import rules, wrappers

EVIDENCE = RuleSupport(5, 0, 0.97, 0.0)
SHAPES = {
    "price": "made of digits and a currency sign",
    "digits": "made of digits without letters",
    "mixed": "made of digits and letters",
    "words": "made of words without digits",
}


def rule(*features: tuple[str, int, str], target: str = "text", part: ValuePart = ValuePart()) -> Rule:
    return Rule(target, tuple(Feature(*feature) for feature in features), part, EVIDENCE)  # type: ignore[arg-type]


def shown(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def said(feature: Feature) -> str:
    return SHAPES[feature.value] if feature.kind == "shape" else shown(feature.value)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (rule(("tag", 0, "h1")), "the text inside the heading `h1`"),
        (
            rule(("text-before", 0, "Phone:"), ("class", 0, "contact")),
            "the text right after 'Phone:' inside the element with class `contact`",
        ),
        (rule(("id", 0, "site"), target="@href"), "the link address of the element with id `site`"),
        (
            rule(("attribute", 0, "itemprop=image"), ("tag", 0, "img"), target="@src"),
            "the HTML attribute `src` of the image `img` with the mark `itemprop=image`",
        ),
        (
            rule(("class", 0, "p"), part=ValuePart(left="Our price:")),
            "the part after 'Our price:' in the text inside the element with class `p`",
        ),
        (
            rule(("id", 0, "p"), target="element", part=ValuePart(left="from", right="each", separator=",")),
            "the part between 'from' and 'each' in the whole text of the element with id `p`, split at ','",
        ),
        (
            rule(("prefix", 0, "Phone:"), ("tag", 0, "p"), part=ValuePart(left="Phone:")),
            "the text that begins with 'Phone:' (without these words) inside the paragraph `p`",
        ),
        (
            rule(("prefix", 0, "Phone:"), part=ValuePart(pattern=r"\d{3}-\d{4}")),
            r"the first part that matches `\d{3}-\d{4}` in the text that begins with 'Phone:'",
        ),
        (
            rule(("class", 1, "row"), ("tag", 0, "td"), ("position", 0, "2")),
            (
                "the text inside the table cell `td` that is the 2nd of its kind among its neighbours, "
                "which is inside the element with class `row`"
            ),
        ),
        (
            rule(("class-word", 1, "row")),
            "the text two levels inside the element with `row` among its classes",
        ),
        (
            rule(("tag", 0, "b"), ("id", 3, "facts"), ("class", 3, "x y")),
            (
                "the text inside the element `b`, which is three levels inside "
                "the element with id `facts` and class `x y`"
            ),
        ),
        (
            rule(("shape", 0, "digits"), ("before", 1, "Call us"), ("first-text", 1, "Tel.")),
            (
                "the text made of digits without letters two levels inside "
                "the element that comes right after 'Call us' and whose first text is 'Tel.'"
            ),
        ),
        (
            rule(("text-number", 0, "3"), ("text-before", 0, "Fax:")),
            "the text right after 'Fax:', that is the 3rd text in its element",
        ),
        (
            rule(("shape", 0, "price"), ("tag", 1, "li"), target="element", part=ValuePart(right="incl.")),
            (
                "the part before 'incl.' in the whole text of the element inside the list item `li`, "
                "if it is made of digits and a currency sign"
            ),
        ),
        (
            rule(("shape", 0, "words"), ("text-before", 0, "Fax:"), ("tag", 0, "dd")),
            "the text made of words without digits, right after 'Fax:', inside the description `dd`",
        ),
        (rule(), "the text anywhere"),
        (rule(("tag", 20, "div")), "the text 21 levels inside the box `div`"),
        (
            rule(("position", 0, "112")),
            "the text inside the element that is the 112th of its kind among its neighbours",
        ),
        (
            rule(("tag", 0, "td"), ("position", 0, "1"), ("tag", 1, "tr"), ("last-position", 1, "1")),
            (
                "the text inside the table cell `td` that is the 1st of its kind among its neighbours, "
                "which is inside the table row `tr` that is the last of its kind among its neighbours"
            ),
        ),
        (
            rule(("last-position", 0, "2"), ("before", 0, "Fax:")),
            (
                "the text inside the element that is the 2nd last of its kind among its neighbours "
                "and that comes right after 'Fax:'"
            ),
        ),
        (rule(("id", 0, "\x1b[31m\ud800é")), "the text inside the element with id `\\x1b[31m\\ud800é`"),
    ],
)
def test_rules_in_words(found: Rule, words: str) -> None:
    assert rule_words(found) == words


def test_rules_of_several_values_in_words() -> None:
    found = rule(("class", 0, "tag"), ("tag", 0, "a"), ("tag", 1, "article"), ("id", 2, "kitchen"))
    assert rule_words(found, multi=True) == (
        "each text inside a link `a` with class `tag`, which is inside an element `article`, "
        "which is inside the element with id `kitchen`"
    )


def test_what_a_classifier_does_is_said() -> None:
    found = replace(rule(("tag", 0, "b")), scorer=Scorer((("position 2", 1.0),), 0.0))
    assert rule_words(found) == (
        "the text inside the element `b`; of all of these, the most probable one counts that is "
        "probably a value (at least 50 %), judged by where it stands and what it is made of"
    )


def test_a_whole_wrapper_in_words() -> None:
    voter = rule(("class", 0, "tel"))
    wrapper = Wrapper(
        {
            "phone": AttributeRules(
                Attribute(multi=False, mandatory=True, constant=True, type="text"),
                (rule(("text-before", 0, "Phone:")),),
                (voter, rule(("id", 0, "tel"), target="@href", part=ValuePart(left="tel:"))),
                0.97,
            ),
            "cuisine": AttributeRules(
                Attribute(multi=True, mandatory=False, constant=False),
                (
                    Rule("text", (Feature("class", 0, "tag"),), ValuePart(), RuleSupport(1, 1, 1.0, 0.004)),
                    Rule("text", (Feature("class", 0, "kind"),), ValuePart(), RuleSupport(7, 2, 0.0, 0.0)),
                ),
                (voter,),
                0.996,
            ),
            "opened": AttributeRules(
                Attribute(type="date"),
                (rule(("prefix", 0, "Opened")), rule(("class", 0, "since"))),
                (),
                1.0,
                day_first=True,
            ),
            "fax": AttributeRules(Attribute(), (), (), 0.0),
        },
        frozenset({"Phone:", "Fax:"}),
        RecordRule(
            (Feature("tag", 0, "li"), Feature("id", 1, "hits")),
            runs_on=False,
            fallback=(Feature("tag", 0, "li"),),
            least=2,
        ),
        "lxml 6.1.3 / libxml2 2.14.6",
    )
    assert (
        explain(wrapper)
        == """\
This wrapper looks for 4 attributes on each page.
A page has several records. Each begins at a list item `li` inside the element with id `hits`, and
  is all that is inside it; in each, the attributes are looked for by themselves. If a page has no
  such element, each begins at a list item `li`. What has values of fewer than two attributes is no
  record.

phone (text, one value, mandatory, stays as it is)
  The text right after 'Phone:'.
  Why: it found 5 example values and nothing else on those pages, and has a value on 97 % of the
    other pages.
  2 independent rules are asked whether they agree:
    - The text inside the element with class `tel`.
    - The part after 'tel:' in the link address of the element with id `tel`.

cuisine (several values, optional, may change)
  The values of all these rules are taken:
    1. Each text inside an element with class `tag`.
      Why: it found 1 example value and 1 other thing on those pages, and has a value on all other
        pages, on less than 1 % more than one.
    2. Each text inside an element with class `kind`.
      Why: it found 7 example values and 2 other things on those pages, and has no value on other
        pages.
  Together they find a value on more than 99 % of the other pages.
  1 independent rule is asked whether it agrees:
    - Each text inside an element with class `tel`.

opened (date, one value)
  The first of these rules that finds a value counts:
    1. The text that begins with 'Opened'.
      Why: it found 5 example values and nothing else on those pages, and has a value on 97 % of the
        other pages.
    2. The text inside the element with class `since`.
      Why: it found 5 example values and nothing else on those pages, and has a value on 97 % of the
        other pages.
  Together they find a value on all other pages.
  Dates such as 03/04/2011 are read with the day first.

fax (one value)
  Not found: no rule could be learned.

Never values, for they only name some: 'Fax:', 'Phone:'.

Learned with lxml 6.1.3 / libxml2 2.14.6.
"""
    )


def test_where_no_rule_could_be_learned_voters_may_find_a_value_all_the_same() -> None:
    voters = (rule(("class", 0, "tel")), rule(("id", 0, "tel")))
    found = AttributeRules(Attribute(), (), voters, 0.0, ("price",))
    words = explain(Wrapper({"a": found}))
    assert "  No rule could be learned.\n  Only texts made of digits and a currency sign count.\n" in words
    assert "agree is taken" in words
    for never in (replace(found, voters=voters[:1]), replace(found, attribute=Attribute(multi=True))):
        assert "Not found: no rule could be learned." in (words := explain(Wrapper({"a": never})))
        assert "taken" not in words


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (("price",), "Only texts made of digits and a currency sign count."),
        (
            ("digits", "mixed"),
            "Only texts made of digits without letters or made of digits and letters count.",
        ),
        (("digits", "mixed", "words"), "Texts made of digits and a currency sign do not count."),
        (("price", "digits", "mixed"), "Texts made of words without digits do not count."),
        ((), "No text counts as a value."),
    ],
)
def test_what_values_are_made_of_is_said(shapes: tuple[Shape, ...], words: str) -> None:
    found = AttributeRules(Attribute(), (rule(("tag", 0, "b")),), (), 1.0, shapes)
    assert words in explain(Wrapper({"a": found}))
    assert "count" not in explain(Wrapper({"a": replace(found, rules=())}))


def test_nothing_is_said_where_values_may_be_of_any_shape() -> None:
    found = AttributeRules(Attribute(), (rule(("tag", 0, "b")),), (), 1.0)
    assert "count" not in explain(Wrapper({"a": found}))


@pytest.mark.parametrize(
    ("contract", "words"),
    [
        (Contract(5, 4, 12), ["4 to 12 characters long"]),
        (Contract(5, 6, 6, least=2.5, most=30), ["6 characters long", "from 2.5 to 30"]),
        (
            Contract(25, 3, 4, ("capitals",), ("digits", "@"), ("Bar", "Café")),
            [
                "3 to 4 characters long",
                "one of 'Bar', 'Café'",
                "always with capitals",
                "never with digits and @",
            ],
        ),
    ],
)
def test_what_right_values_are_like_is_said(contract: Contract, words: list[str]) -> None:
    assert contract_words(contract) == words


def test_records_that_run_on_and_many_labels() -> None:
    labels = frozenset(f"Label {number:02}" for number in range(12))
    words = explain(Wrapper({}, labels, RecordRule((Feature("class", 0, "hit"),), runs_on=True)))
    assert words.startswith("This wrapper looks for 0 attributes on each page.\n")
    assert "Each begins at an element with class `hit`, and goes on up to the next one" in " ".join(
        words.split()
    )
    assert "'Label 09' and 2 more." in " ".join(words.split())
    assert "What has no value is no record." in " ".join(words.split())


@given(rules())
def test_every_feature_and_anchor_of_a_rule_is_mentioned(found: Rule) -> None:
    words = rule_words(found)
    assert all(said(feature) in words for feature in found.features)
    part = found.part
    assert all(shown(text) in words for text in (part.left, part.right, part.pattern, part.separator))


@given(wrappers)
def test_every_wrapper_is_explained_in_full(wrapper: Wrapper) -> None:
    text = explain(wrapper)
    text.encode()
    assert all(character.isprintable() or character == "\n" for character in text)
    words = "".join(text.split())
    for name, attribute in wrapper.attributes.items():
        assert "".join(shown(name).split()) in words
        for each in (*attribute.rules, *attribute.voters):
            for feature in each.features:
                assert "".join(said(feature).split()) in words
    record_rule = wrapper.record_rule
    for feature in (*record_rule.features, *record_rule.fallback) if record_rule else ():
        assert "".join(said(feature).split()) in words
