"""Models of AutoScraper: ways down the tree, step by step, each by tag, class and style.

They are followed as `get_result_exact` does, to the one element that they lead to. Rules of one alias are
ways to one attribute; a rule without an alias is an attribute under its own name.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.html.visible_text import attribute_words, normalize
from siteloom.sources.other_tools.tool_model import (
    PeerExample,
    PeerModel,
    each_once,
    html_attribute_of,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from siteloom.html.parser import Element

TOOL = "AutoScraper"

_DOCUMENT = "[document]"  # what Beautiful Soup calls the page, above its html


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
        """The attributes that it has rules for."""
        return list(dict.fromkeys(rule.name for rule in self.rules))

    def on(self, root: Element) -> PeerExample:
        """What the rules find on a page."""
        found: dict[str, list[str]] = {}
        for rule in self.rules:
            element = _followed(root, rule.steps)
            if element is not None:
                found.setdefault(rule.name, []).append(_text(element, rule))
        values = {name: each_once(texts) for name, texts in found.items()}
        return PeerExample({name: texts for name, texts in values.items() if texts})


def is_model(found: object) -> bool:
    """Whether JSON is a model; those of early versions are the bare list of rules."""
    rules = found.get("stack_list") if isinstance(found, dict) else found
    return isinstance(rules, list) and all(isinstance(rule, dict) and "content" in rule for rule in rules)


def read_auto_scraper(found: Mapping[str, Any] | Sequence[Any]) -> PeerModel:
    """The rules of a model."""
    left_out: list[str] = []
    rules: list[_Rule] = []
    for number, stack in enumerate(found["stack_list"] if isinstance(found, dict) else found, 1):
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
    """The steps below html. How many there are like it stands with the element above."""
    steps = [step for step in content if step[0] != _DOCUMENT]
    return tuple(
        _Step(str(step[0]), {name: _wanted(value) for name, value in step[1].items()}, _number(above[2]))
        for above, step in pairwise(steps)
    )


def _wanted(value: Any) -> str | list[str]:
    return value if isinstance(value, str) else [str(word) for word in value]


def _number(value: Any) -> int:
    if int(value) < 0:
        raise ValueError("there is nothing before the first")
    return int(value)


def _followed(root: Element, steps: Sequence[_Step]) -> Element | None:
    element = root
    for step in steps:
        alike = [child for child in element if child.tag == step.tag and _has(child, step.html_attributes)]
        if not alike:
            return None
        element = alike[min(len(alike) - 1, step.number)]
    return element


def _has(element: Element, html_attributes: Mapping[str, str | list[str]]) -> bool:
    """Whether an element has attributes as Beautiful Soup compares them: any of the classes, or none."""
    for name, wanted in html_attributes.items():
        given = html_attribute_of(element, name)
        if isinstance(wanted, str):
            is_alike = given == wanted if wanted else not given.strip()
        else:
            is_alike = bool(set(attribute_words(given)) & set(wanted))
        if not is_alike:
            return False
    return True


def _text(element: Element, rule: _Rule) -> str:
    if not rule.own_text_only or rule.html_attribute:
        return shown(element, rule.html_attribute)
    return normalize("".join(text for text in (element.text, *(child.tail for child in element)) if text))
