"""Export a wrapper as plain data with XPath expressions, which a short program in any language can evaluate.

`siteloom.wrappers.exports.standalone_extractor` is such a program; docs/reference/wrapper-exports.md
describes the data.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from siteloom.wrappers.explanation import record_words, rule_words
from siteloom.wrappers.rule_features import SHAPES
from siteloom.wrappers.rule_xpath import BY_NAME, ODD_BLANKS, record_xpath, rule_xpath, rule_xpath_in_run
from siteloom.wrappers.value_contract import possible_lengths, signs, weights

if TYPE_CHECKING:
    from siteloom.wrappers.rule_features import AttributeRules, RecordRule, Rule
    from siteloom.wrappers.value_contract import Contract
    from siteloom.wrappers.wrapper import Wrapper

FORMAT = "siteloom xpath"
VERSION = 1

_SIGNS_OF_VALUES = ("intercept", "several", "agreeing", "disagreeing")  # the others belong to rules


def to_xpath_json(wrapper: Wrapper) -> str:
    """Return the document of a wrapper as JSON, with unprintable characters escaped."""
    text = json.dumps(wrapper_document(wrapper), ensure_ascii=False, indent=2)
    return (
        "".join(
            character if character.isprintable() or character == "\n" else json.dumps(character)[1:-1]
            for character in text
        )
        + "\n"
    )


def as_texts(wrapper: Wrapper) -> Wrapper:
    """Return the wrapper with every attribute as plain text, which extracts the same values as its exports.

    Reading texts as prices, dates and the like takes more code than an export can hold.
    """
    attributes = {
        name: replace(rules, attribute=replace(rules.attribute, type=None))
        for name, rules in wrapper.attributes.items()
    }
    return replace(wrapper, attributes=attributes, earlier=tuple(map(as_texts, wrapper.earlier)))


def wrapper_document(wrapper: Wrapper) -> dict[str, Any]:
    """Return everything needed to extract what the wrapper `as_texts` extracts.

    Data that only serves to choose between layouts is left out if there is only one.
    """
    has_layouts = bool(wrapper.earlier)
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "parser": wrapper.parser,
        "sites": list(wrapper.footprint.sites),
        "url_patterns": list(wrapper.footprint.url_patterns),
        "variables": {"odd": ODD_BLANKS, "plain": " " * len(ODD_BLANKS)},
    }
    if has_layouts:
        sign_weights = weights()
        document["confidence"] = {name: sign_weights[name] for name in _SIGNS_OF_VALUES}
    document["layouts"] = [_layout(layout, has_layouts=has_layouts) for layout in wrapper.layouts]
    if has_layouts:
        for layout, signatures in zip(document["layouts"], wrapper.layout_signatures, strict=True):
            layout["signatures"] = sorted(signatures)
    return document


def _layout(layout: Wrapper, *, has_layouts: bool) -> dict[str, Any]:
    content: dict[str, Any] = {}
    rule = layout.record_rule
    if rule is not None:
        content["records"] = _records(rule)
    if layout.labels:
        content["labels"] = sorted(layout.labels)
    content["attributes"] = {
        name: _attribute(rules, rule, has_layouts=has_layouts) for name, rules in layout.attributes.items()
    }
    return content


def _records(rule: RecordRule) -> dict[str, Any]:
    content: dict[str, Any] = {"words": record_words(rule), "xpath": record_xpath(rule.features, BY_NAME)}
    if rule.fallback:
        content["fallback"] = record_xpath(rule.fallback, BY_NAME)
    if rule.runs_on:
        content["runs_on"] = True
    content["least"] = rule.least
    return content


def _attribute(rules: AttributeRules, records: RecordRule | None, *, has_layouts: bool) -> dict[str, Any]:
    attribute = rules.attribute
    content: dict[str, Any] = {}
    if attribute.multi:
        content["multi"] = True
    if attribute.mandatory:
        content["mandatory"] = True
    if attribute.type is not None and attribute.type != "text":
        content["type"] = attribute.type
    if set(rules.shapes) != set(SHAPES):
        content["shapes"] = list(rules.shapes)
    content["rules"] = [_rule(rule, rules, records, has_layouts=has_layouts) for rule in rules.rules]
    if rules.voters and (rules.do_voters_step_in or has_layouts):
        content["voters"] = [_rule(rule, rules, records, has_layouts=has_layouts) for rule in rules.voters]
    if rules.do_voters_step_in:
        content["voters_step_in"] = True
    if has_layouts:
        content["filled"] = rules.filled
        if rules.contract is not None:
            content["contract"] = _contract(rules.contract)
    return content


def _rule(
    rule: Rule, attribute_rules: AttributeRules, records: RecordRule | None, *, has_layouts: bool
) -> dict[str, Any]:
    if records is not None and records.runs_on:
        xpath = rule_xpath_in_run(rule, BY_NAME)
    else:
        xpath = rule_xpath(rule, records is not None, BY_NAME)
    content: dict[str, Any] = {
        "words": rule_words(rule, multi=bool(attribute_rules.attribute.multi)),
        "xpath": xpath,
        "target": rule.target,
    }
    if part_content := {key: text for key, text in asdict(rule.part).items() if text}:
        content["part"] = part_content
    if rule.scorer is not None:
        content["scorer"] = {
            "intercept": rule.scorer.intercept,
            "takes_all": rule.scorer.takes_all,
            "weights": [[name, weight] for name, weight in rule.scorer.weights],
        }
    if has_layouts:
        content["score"] = _score(rule)
    return content


def _score(rule: Rule) -> float:
    """Return what the rule itself contributes to the confidence in its values."""
    own = signs(rule, is_one_of_several=False, agreeing=0, disagreeing=0, voters=0)
    sign_weights = weights()
    return sign_weights["filled"] * own.filled + sign_weights["imprecise"] * own.imprecise


def _contract(contract: Contract) -> dict[str, Any]:
    shortest, longest = possible_lengths(contract)
    content: dict[str, Any] = {"shortest": shortest, "longest": longest}
    for key in ("always", "never", "choices"):
        if claims := getattr(contract, key):
            content[key] = list(claims)
    return content
