"""What came of relearning, as a line of output: what a person wants to see before saying yes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from siteloom.wrapper.explain import rule_words

if TYPE_CHECKING:
    from siteloom.relearning.outcome import Relearned
    from siteloom.wrapper import Wrapper
    from siteloom.wrapper.language import AttributeRules


def relearned_row(old: Wrapper, found: Relearned) -> dict[str, Any]:
    """The outcome, what became of each attribute, and the difference: rules and values before and after."""
    return {
        "outcome": found.outcome,
        "confidence": round(found.confidence, 4),
        "reason": found.reason,
        "attributes": {name: asdict(one) for name, one in found.attributes.items()},
        "diff": {
            "rules": rule_diff(old, found.wrapper),
            "values": [asdict(one) for one in found.values],
        },
        "annotate": [
            {"url": one.page.url, "values": one.values}
            if not one.records
            else {"url": one.page.url, "records": list(one.records)}
            for one in found.annotate
        ],
    }


def rule_diff(old: Wrapper, new: Wrapper) -> list[dict[str, Any]]:
    """The rules of each attribute whose rules differ, before and after, in words."""
    names = dict.fromkeys((*old.attributes, *new.attributes))
    before = {name: _words(old.attributes.get(name)) for name in names}
    after = {name: _words(new.attributes.get(name)) for name in names}
    return [
        {"attribute": name, "before": before[name], "after": after[name]}
        for name in names
        if before[name] != after[name]
    ]


def _words(rules: AttributeRules | None) -> list[str]:
    if rules is None:
        return []
    return [rule_words(rule, multi=bool(rules.attribute.multi)) for rule in rules.rules]
