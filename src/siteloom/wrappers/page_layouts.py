"""Which of several layouts a page has, told by what the rules of each find on it."""

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
"""So many earlier layouts are kept. A site that is being rebuilt serves two, seldom three, at a time."""


# So many more bytes of a signature must agree for a page to be of one layout rather than of another. Pages of
# one template differ by two (the wildcards of its mask).
_MORE_BYTES = 3


def most_alike(signatures: Sequence[Signatures | None], found: bytes) -> int:
    """Which of some layouts has pages with a signature most like that of a page; the first if in doubt.

    None stands for a layout of whose pages nothing is known.
    """
    known = [pages for pages in signatures if pages is not None]
    if len(known) < len(signatures):
        return 0
    agreements = [pages.agreement(found) for pages in known]
    best = agreements.index(max(agreements))
    return best if agreements[best] - agreements[0] >= _MORE_BYTES else 0


def likely_layouts(
    layouts: Sequence[Attributes], found: Sequence[Sequence[Record]], *, are_lists: bool
) -> list[int]:
    """The numbers of the layouts that a page may have: those whose rules find most, the newest first.

    `found` are the records by each of the layouts. Of lists, those count that give most values.
    """
    gains: list[float]
    if are_lists:
        gains = [sum(len(record.values) for record in records) for records in found]
    else:
        gains = [
            _gain(newest=(layouts[0], found[0][0]), earlier=(attributes, record))
            for attributes, (record,) in zip(layouts, found, strict=True)
        ]
    return [number for number, gain in enumerate(gains) if gain == max(gains)]


def _gain(newest: tuple[Attributes, Record], earlier: tuple[Attributes, Record]) -> float:
    """How many more attributes are probably right by the rules of an earlier layout.

    Where both find values that may be right, the newest is preferred: how sure they are differs for
    other reasons.
    """
    gain = 0.0
    for name in newest[0].keys() & earlier[0].keys():
        is_value_new, new = _value(name, *newest)
        is_value_old, old = _value(name, *earlier)
        if not (is_value_new and is_value_old):
            gain += old - new
    return gain


def _value(name: str, attributes: Attributes, record: Record) -> tuple[bool, float]:
    """Whether there is a value that may be right, and how probable it is that what is found is right.

    That a page has no value is as probable as that others have none. A value that breaks its contract
    is worth nothing.
    """
    if name not in record.values:
        return False, 1 - attributes[name].filled
    if is_breaching(attributes, record, name):
        return False, 0.0
    return True, min(origin.confidence for origin in record.provenance[name])


def is_breaching(attributes: Attributes, record: Record, name: str) -> bool:
    """Whether a value of an attribute breaks the attribute's contract."""
    rules = attributes.get(name)  # an earlier layout may have other attributes
    contract = rules.contract if rules is not None else None
    if contract is None:
        return False
    texts = record.values[name]
    typed = record.typed.get(name) or (None,) * len(texts)
    return any(breach(contract, text, kind) for text, kind in zip(texts, typed, strict=True))
