"""Turn positions into a wrapper with rules for absolute paths."""

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
_MAX_SAMPLE_PAGES = 20  # pages to count visible texts on


def positions_wrapper(
    positions: FoundPositions, pages: Sequence[Page], limits: ParseSettings = ParseSettings()
) -> Wrapper:
    """Return a wrapper that extracts the texts at the positions, which were found on these pages."""
    sample_pages = list(dict.fromkeys(agreement.page for agreement in positions.agreements))[
        :_MAX_SAMPLE_PAGES
    ]
    roots = [root for page in sample_pages if not isinstance(root := parse(pages[page], limits), Failure)]
    return Wrapper(
        {
            attribute: AttributeRules(
                attribute=Attribute(multi=False),
                rules=(
                    _rule(
                        position,
                        roots,
                        RuleSupport(
                            examples=positions.support,
                            wrong=0,
                            filled=positions.filled[attribute],
                            repeated=0.0,
                        ),
                    ),
                ),
                voters=(),
                filled=positions.filled[attribute],
            )
            for attribute, position in positions.positions.items()
        },
        footprint=footprint([(page.url, signature(page.html)) for page in pages]),
    )


def _rule(position: str, roots: Iterable[Element], evidence: RuleSupport) -> Rule:
    """Return the rule of a position: every tag on its path with its number."""
    path, _, text = position.partition("/text()")
    steps = [(tag, int(number)) for tag, number in _STEP.findall(path)]
    features = [
        feature
        for distance, (tag, number) in enumerate(reversed(steps))
        for feature in (Feature("tag", distance, tag), Feature("position", distance, str(number)))
    ]
    if not text:
        return Rule(target="element", features=tuple(features), part=ValuePart(), evidence=evidence)
    number_counts = Counter(
        number
        for root in roots
        if (number := _visible_number(_element_at(root, steps), int(text[1:-1]))) is not None
    )
    features.insert(0, Feature("text-number", 0, str(number_counts.most_common(1)[0][0])))
    return Rule(target="text", features=tuple(features), part=ValuePart(), evidence=evidence)


def _element_at(root: Element, steps: Sequence[tuple[str, int]]) -> Element | None:
    """Return the element that the steps lead to; the first step is the root itself."""
    element: Element | None = root
    for tag, number in steps[1:]:
        if element is None:
            return None
        element = next(islice(element.iterchildren(tag), number - 1, number), None)
    return element


def _visible_number(parent: Element | None, number: int) -> int | None:
    """Convert the number of a text as XPath counts it to that among visible texts, as rules count it."""
    if parent is None:
        return None
    texts = [text for text in (parent.text, *(child.tail for child in parent)) if text]
    return sum(not text.isspace() for text in texts[:number]) if len(texts) >= number else None
