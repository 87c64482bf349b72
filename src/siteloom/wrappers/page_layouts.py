"""Choose the layout of a page among several, by what the rules of each layout extract from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.wrappers.value_contract import breach

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from siteloom.core.model import Record
    from siteloom.templates.signature import Signatures
    from siteloom.wrappers.rule_features import AttributeRules

    Attributes = Mapping[str, AttributeRules]

MOST_EARLIER = 2
"""How many earlier layouts are kept. A site that is being rebuilt serves two, seldom three, at a time."""


# How many more bytes of a signature must agree to prefer an earlier layout. Pages of one template differ by
# two (the wildcards of its mask).
_MORE_BYTES = 3


def most_alike(signatures: Sequence[Signatures | None], page_signature: bytes) -> int:
    """Return the number of the layout whose pages have the most similar signature; the first if in doubt.

    None stands for a layout without known pages.
    """
    layout_pages = [pages for pages in signatures if pages is not None]
    if len(layout_pages) < len(signatures):
        return 0
    agreements = [pages.agreement(page_signature) for pages in layout_pages]
    best = agreements.index(max(agreements))
    return best if agreements[best] - agreements[0] >= _MORE_BYTES else 0


def likely_layouts(
    layouts: Sequence[Attributes], records_by_layout: Sequence[Sequence[Record]], *, are_lists: bool
) -> list[int]:
    """Return the numbers of the layouts that a page may have: those whose rules find most, newest first.

    For list pages, these are the layouts that give most values.
    """
    gains: list[float]
    if are_lists:
        gains = [sum(len(record.values) for record in records) for records in records_by_layout]
    else:
        gains = [
            _gain(newest=(layouts[0], records_by_layout[0][0]), earlier=(attributes, record))
            for attributes, (record,) in zip(layouts, records_by_layout, strict=True)
        ]
    return [number for number, gain in enumerate(gains) if gain == max(gains)]


def _gain(newest: tuple[Attributes, Record], earlier: tuple[Attributes, Record]) -> float:
    """Estimate how many more attributes an earlier layout gets right than the newest one.

    Where both find valid values, the newest is preferred: their confidences differ for other reasons.
    """
    gain = 0.0
    for name in newest[0].keys() & earlier[0].keys():
        is_value_new, new = _value(name, *newest)
        is_value_old, old = _value(name, *earlier)
        if not (is_value_new and is_value_old):
            gain += old - new
    return gain


def _value(name: str, attributes: Attributes, record: Record) -> tuple[bool, float]:
    """Return whether there is a valid value, and the probability that the result is right.

    A missing value is as probable as it is on other pages. A value that breaks its contract counts as wrong.
    """
    if name not in record.values:
        return False, 1 - attributes[name].filled
    if is_breaching(attributes, record, name):
        return False, 0.0
    return True, min(origin.confidence for origin in record.provenance[name])


def is_breaching(attributes: Attributes, record: Record, name: str) -> bool:
    """Return whether a value of an attribute breaks the attribute's contract."""
    rules = attributes.get(name)  # an earlier layout may have other attributes
    contract = rules.contract if rules is not None else None
    if contract is None:
        return False
    texts = record.values[name]
    typed = record.typed.get(name) or (None,) * len(texts)
    return any(breach(contract, text, kind) for text, kind in zip(texts, typed, strict=True))
