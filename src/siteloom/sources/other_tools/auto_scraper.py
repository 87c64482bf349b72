"""Read models of AutoScraper: paths down the tree, each step by tag, class and style.

Paths are followed as `get_result_exact` does, to a single element. Rules with the same alias lead to one
attribute; a rule without an alias is an attribute under its own name.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.html.visible_text import attribute_words, normalize
from siteloom.sources.other_tools.tool_model import (
    PeerExample,
    PeerModel,
    distinct_texts,
    html_attribute_of,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from siteloom.html.parser import Element

TOOL = "AutoScraper"

_DOCUMENT = "[document]"  # Beautiful Soup's name for the root above html


class _Step(NamedTuple):
    """A step down: to the `number`-th child (from 0) with a tag and HTML attributes, or the last of them."""

    tag: str
    html_attributes: Mapping[str, str | list[str]]
    number: int


class _Rule(NamedTuple):
    name: str
    steps: tuple[_Step, ...]  # from below html
    html_attribute: str
    own_text_only: bool


@dataclass(frozen=True, slots=True)
class _StepsLayout:
    """All rules of a model."""

    rules: tuple[_Rule, ...]

    @property
    def attributes(self) -> list[str]:
        """The attributes that the layout has rules for."""
        return list(dict.fromkeys(rule.name for rule in self.rules))

    def on(self, root: Element) -> PeerExample:
        """Apply the rules to a page."""
        texts_by_name: dict[str, list[str]] = {}
        for rule in self.rules:
            element = _follow_steps(root, rule.steps)
            if element is not None:
                texts_by_name.setdefault(rule.name, []).append(_text(element, rule))
        values = {name: distinct_texts(texts) for name, texts in texts_by_name.items()}
        return PeerExample({name: texts for name, texts in values.items() if texts})


def is_model(content: object) -> bool:
    """Return whether JSON is a model; in early versions it is a list of rules."""
    rules = content.get("stack_list") if isinstance(content, dict) else content
    return isinstance(rules, list) and all(isinstance(rule, dict) and "content" in rule for rule in rules)


def read_auto_scraper(content: Mapping[str, Any] | Sequence[Any]) -> PeerModel:
    """Read the rules of a model."""
    left_out: list[str] = []
    rules: list[_Rule] = []
    for number, stack in enumerate(content["stack_list"] if isinstance(content, dict) else content, 1):
        name = stack.get("alias") or stack.get("stack_id") or f"rule_{number}"
        try:
            steps = _steps(stack["content"])
        except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError):
            steps = ()
        html_attribute = stack.get("wanted_attr") or ""
        if not steps or not isinstance(html_attribute, str):
            left_out.append(f"Rule {number}, of {name}, says no way to its value that can be read.")
            continue
        rules.append(_Rule(str(name), steps, html_attribute, stack.get("is_non_rec_text") is True))
    layouts = (_StepsLayout(tuple(rules)),) if rules else ()
    return PeerModel(TOOL, layouts, (), tuple(left_out))


def _steps(content: Sequence[Sequence[Any]]) -> tuple[_Step, ...]:
    """Return the steps below html; the number of each is stored with the step above it."""
    steps = [step for step in content if step[0] != _DOCUMENT]
    return tuple(
        _Step(
            str(step[0]), {name: _expected_value(value) for name, value in step[1].items()}, _number(above[2])
        )
        for above, step in pairwise(steps)
    )


def _expected_value(value: Any) -> str | list[str]:
    return value if isinstance(value, str) else [str(word) for word in value]


def _number(value: Any) -> int:
    if int(value) < 0:
        raise ValueError("there is nothing before the first")
    return int(value)


def _follow_steps(root: Element, steps: Sequence[_Step]) -> Element | None:
    element = root
    for step in steps:
        alike = [child for child in element if child.tag == step.tag and _has(child, step.html_attributes)]
        if not alike:
            return None
        element = alike[min(len(alike) - 1, step.number)]
    return element


def _has(element: Element, html_attributes: Mapping[str, str | list[str]]) -> bool:
    """Return whether an element has attributes, as Beautiful Soup compares them: any class, or none."""
    for name, expected in html_attributes.items():
        actual = html_attribute_of(element, name)
        if isinstance(expected, str):
            is_alike = actual == expected if expected else not actual.strip()
        else:
            is_alike = bool(set(attribute_words(actual)) & set(expected))
        if not is_alike:
            return False
    return True


def _text(element: Element, rule: _Rule) -> str:
    if not rule.own_text_only or rule.html_attribute:
        return shown(element, rule.html_attribute)
    return normalize("".join(text for text in (element.text, *(child.tail for child in element)) if text))
