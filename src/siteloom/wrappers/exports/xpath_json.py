"""A wrapper as plain data with XPath in it, which a short program in any language can evaluate.

`siteloom.wrappers.exports.standalone_extractor` is such a program; docs/reference/wrapper-exports.md
says what the data means.
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
    """The document of a wrapper as JSON; what cannot be seen in it is escaped."""
    text = json.dumps(wrapper_document(wrapper), ensure_ascii=False, indent=2)
    return "".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in text) + "\n"


def as_texts(wrapper: Wrapper) -> Wrapper:
    """The wrapper as if each attribute were a mere text: its values are those that exports give.

    To read texts as prices, dates and the like takes more than an export can hold.
    """
    attributes = {
        name: replace(found, attribute=replace(found.attribute, type=None))
        for name, found in wrapper.attributes.items()
    }
    return replace(wrapper, attributes=attributes, earlier=tuple(map(as_texts, wrapper.earlier)))


def wrapper_document(wrapper: Wrapper) -> dict[str, Any]:
    """All that it takes to extract what the wrapper `as_texts` extracts.

    What only serves to choose among layouts is left out where there is one.
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
        known = weights()
        document["confidence"] = {name: known[name] for name in _SIGNS_OF_VALUES}
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
        name: _attribute(found, rule, has_layouts=has_layouts) for name, found in layout.attributes.items()
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


def _attribute(found: AttributeRules, records: RecordRule | None, *, has_layouts: bool) -> dict[str, Any]:
    known = found.attribute
    content: dict[str, Any] = {}
    if known.multi:
        content["multi"] = True
    if known.mandatory:
        content["mandatory"] = True
    if known.type is not None and known.type != "text":
        content["type"] = known.type
    if set(found.shapes) != set(SHAPES):
        content["shapes"] = list(found.shapes)
    content["rules"] = [_rule(rule, found, records, has_layouts=has_layouts) for rule in found.rules]
    if found.voters and (found.do_voters_step_in or has_layouts):
        content["voters"] = [_rule(rule, found, records, has_layouts=has_layouts) for rule in found.voters]
    if found.do_voters_step_in:
        content["voters_step_in"] = True
    if has_layouts:
        content["filled"] = found.filled
        if found.contract is not None:
            content["contract"] = _contract(found.contract)
    return content


def _rule(
    rule: Rule, found: AttributeRules, records: RecordRule | None, *, has_layouts: bool
) -> dict[str, Any]:
    if records is not None and records.runs_on:
        xpath = rule_xpath_in_run(rule, BY_NAME)
    else:
        xpath = rule_xpath(rule, records is not None, BY_NAME)
    content: dict[str, Any] = {
        "words": rule_words(rule, multi=bool(found.attribute.multi)),
        "xpath": xpath,
        "target": rule.target,
    }
    if part := {key: text for key, text in asdict(rule.part).items() if text}:
        content["part"] = part
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
    """What the rule itself adds to the confidence in its values."""
    own = signs(rule, is_one_of_several=False, agreeing=0, disagreeing=0, voters=0)
    known = weights()
    return known["filled"] * own.filled + known["imprecise"] * own.imprecise


def _contract(contract: Contract) -> dict[str, Any]:
    shortest, longest = possible_lengths(contract)
    content: dict[str, Any] = {"shortest": shortest, "longest": longest}
    for key in ("always", "never", "choices"):
        if found := getattr(contract, key):
            content[key] = list(found)
    return content
