"""Arbitrary wrappers: every one that the language allows."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from siteloom.core.model import Attribute, ValueType
from siteloom.wrappers.rule_features import (
    ELEMENT_KINDS,
    NUMBERED,
    RECORD_KINDS,
    SHAPES,
    TEXT_KINDS,
    AttributeRules,
    Feature,
    Kind,
    RecordRule,
    Rule,
    RuleSupport,
    Scorer,
    Shape,
    ValuePart,
)
from siteloom.wrappers.value_from_node import WEAK_NAME
from siteloom.wrappers.wrapper import Wrapper

# Lone surrogates included, but only those that cannot make a pair.
texts = st.text(st.characters(exclude_categories=()), max_size=12).filter(
    lambda text: text == text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)
shares = st.floats(0, 1)
counts = st.integers(0, 10**12)
names = st.from_regex(r"[a-z][a-z-]{0,8}", fullmatch=True)
# What can stand in a pattern; plain quantifiers only where nothing like it follows.
PIECES = (
    *(r"\d++", r"\d{3}", r"[A-Za-z]{2,}+", r"\s*+", r"\.", r"\$", "-", "a", ".", r"[^\]\-,]?+"),
    *(r"\d+,", r"\d*\s+[^\W\d_]+-", " ?[$€]", "[0-9.,]*x"),
)
patterns = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


@st.composite
def features(draw: st.DrawFn, kinds: tuple[Kind, ...] = get_args(Kind)) -> Feature:
    kind = draw(st.sampled_from(kinds))
    distance = draw(st.integers(0, 2_048)) if kind in ELEMENT_KINDS else 0
    if kind == "shape":
        return Feature(kind, distance, draw(st.sampled_from(get_args(Shape))))
    if kind in NUMBERED:
        return Feature(kind, distance, str(draw(st.integers(1, 999_999_999))))
    if kind == "attribute":
        return Feature(kind, distance, f"{draw(names)}={draw(texts)}")
    return Feature(kind, distance, draw(texts))


def several_features(kinds: tuple[Kind, ...]) -> st.SearchStrategy[tuple[Feature, ...]]:
    return st.lists(features(kinds), max_size=4).map(_with_tags)


def _with_tags(drawn: list[Feature]) -> tuple[Feature, ...]:
    """Features with the tag of each element whose position is one of them."""
    tagged = {feature.distance for feature in drawn if feature.kind == "tag"}
    counted = {feature.distance for feature in drawn if feature.kind in ("position", "last-position")}
    return (*drawn, *(Feature("tag", distance, "p") for distance in sorted(counted - tagged)))


anchored = st.builds(ValuePart, left=texts, right=texts, separator=texts)
matching = st.builds(ValuePart, pattern=patterns, separator=texts)
evidences = st.builds(RuleSupport, counts, counts, shares, shares)
NOT_OF_TEXTS: tuple[Kind, ...] = tuple(kind for kind in get_args(Kind) if kind not in TEXT_KINDS)


weights = st.floats(-1_000_000, 1_000_000)
weak_names = st.from_regex(WEAK_NAME, fullmatch=True, alphabet=st.characters(codec="ascii"))
scorers = st.builds(
    Scorer,
    weights=st.lists(st.tuples(weak_names, weights), max_size=4).map(tuple),
    intercept=weights,
    takes_all=st.booleans(),
)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    target = draw(st.sampled_from(["text", "element", "@href", "@data-price", "@content"]))
    kinds: tuple[Kind, ...] = get_args(Kind) if target == "text" else NOT_OF_TEXTS
    return Rule(
        target,
        draw(several_features(kinds)),
        draw(anchored | matching),
        draw(evidences),
        draw(st.none() | scorers),
    )


maybe = st.none() | st.booleans()
attributes = st.builds(
    Attribute,
    multi=maybe,
    mandatory=maybe,
    constant=maybe,
    type=st.none() | st.sampled_from(get_args(ValueType)),
)
many_rules = st.lists(rules(), max_size=3).map(tuple)
shapes = st.just(SHAPES) | st.lists(st.sampled_from(SHAPES), unique=True).map(tuple)
attribute_rules = st.builds(
    AttributeRules,
    attribute=attributes,
    rules=many_rules,
    voters=many_rules,
    filled=shares,
    shapes=shapes,
    day_first=maybe,
)
record_rules = st.builds(
    RecordRule,
    features=several_features(RECORD_KINDS),
    runs_on=st.booleans(),
    fallback=st.just(()) | several_features(RECORD_KINDS),
    least=st.integers(1, 12),
)
wrappers = st.builds(
    Wrapper,
    attributes=st.dictionaries(texts, attribute_rules, max_size=3),
    labels=st.frozensets(texts, max_size=4),
    record_rule=st.none() | record_rules,
)
