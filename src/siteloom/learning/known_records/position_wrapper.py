"""Positions as a wrapper: rules that take what stands at an absolute path."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from siteloom.core.model import Attribute, Failure
from siteloom.core.settings import ParseSettings
from siteloom.html.parser import parse
from siteloom.templates.footprint import footprint
from siteloom.templates.signature import signature
from siteloom.wrappers.rule_features import AttributeRules, Feature, Rule, RuleSupport, ValuePart
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.core.model import Page
    from siteloom.html.parser import Element
    from siteloom.learning.known_records.findattrpos import FoundPositions

_STEP = re.compile(r"/([^/]+)\[([0-9]+)\]")
_MOST_SHOWN = 20  # pages on which texts are counted as rules count them


def positions_wrapper(
    found: FoundPositions, pages: Sequence[Page], limits: ParseSettings = ParseSettings()
) -> Wrapper:
    """A wrapper that takes what stands at the positions; `pages` are those they were found on."""
    shown = list(dict.fromkeys(agreement.page for agreement in found.agreements))[:_MOST_SHOWN]
    roots = [root for page in shown if not isinstance(root := parse(pages[page], limits), Failure)]
    return Wrapper(
        {
            attribute: AttributeRules(
                Attribute(multi=False),
                (_rule(position, roots, RuleSupport(found.support, 0, found.filled[attribute], 0.0)),),
                (),
                found.filled[attribute],
            )
            for attribute, position in found.positions.items()
        },
        footprint=footprint([(page.url, signature(page.html)) for page in pages]),
    )


def _rule(position: str, roots: Iterable[Element], evidence: RuleSupport) -> Rule:
    """The rule of a position: every tag down to it with its number."""
    path, _, text = position.partition("/text()")
    steps = [(tag, int(number)) for tag, number in _STEP.findall(path)]
    features = [
        feature
        for distance, (tag, number) in enumerate(reversed(steps))
        for feature in (Feature("tag", distance, tag), Feature("position", distance, str(number)))
    ]
    if not text:
        return Rule("element", tuple(features), ValuePart(), evidence)
    seen = Counter(
        number for root in roots if (number := _number_seen(_at(root, steps), int(text[1:-1]))) is not None
    )
    features.insert(0, Feature("text-number", 0, str(seen.most_common(1)[0][0])))
    return Rule("text", tuple(features), ValuePart(), evidence)


def _at(root: Element, steps: Sequence[tuple[str, int]]) -> Element | None:
    """The element to which the steps lead from the root, which is the first of them."""
    element: Element | None = root
    for tag, number in steps[1:]:
        if element is None:
            return None
        element = next(islice(element.iterchildren(tag), number - 1, number), None)
    return element


def _number_seen(parent: Element | None, number: int) -> int | None:
    """The number among the texts that are seen, of which rules tell, of a text counted as XPath does."""
    if parent is None:
        return None
    texts = [text for text in (parent.text, *(child.tail for child in parent)) if text]
    return sum(not text.isspace() for text in texts[:number]) if len(texts) >= number else None
