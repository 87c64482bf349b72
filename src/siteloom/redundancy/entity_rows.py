"""Entities as rows and in numbers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.output import Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.model import Seed
    from siteloom.redundancy.linking import Entity, Stated

ENTITY_COLUMNS = (
    Column("entity", "integer"),
    Column("sources", "texts"),
    Column("urls", "texts"),
    Column("values"),
    Column("conflicts"),
)
"""What is written of an entity."""

DEEP_COLUMNS = ("values", "conflicts")
"""Those of them that are more than a text or texts."""


class AttributeSpread(NamedTuple):
    """Of how many entities an attribute is known, by several sources, and of how many these differ."""

    name: str
    entities: int
    shared: int
    differing: int


def entity_row(number: int, entity: Entity, seeds: Sequence[Seed]) -> dict[str, Any]:
    """An entity as it is written."""
    told = [seeds[member] for member in entity.members]
    return {
        "entity": number,
        "sources": _distinct(seed.source for seed in told),
        "urls": _distinct(seed.url for seed in told if seed.url),
        "values": {name: _stated(agreed.values) for name, agreed in entity.values.items()},
        "conflicts": {
            name: _stated(agreed.conflicts) for name, agreed in entity.values.items() if agreed.conflicts
        },
    }


def sources_of(entity: Entity, seeds: Sequence[Seed]) -> set[str]:
    """The sources that tell of an entity."""
    return {seeds[member].source for member in entity.members}


def attribute_spread(entities: Iterable[Entity]) -> list[AttributeSpread]:
    """The attributes of entities in numbers, in the order in which they come."""
    told: Counter[str] = Counter()
    shared: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    for entity in entities:
        for name, agreed in entity.values.items():
            told[name] += 1
            stating = {source for one in (*agreed.values, *agreed.conflicts) for source in one.sources}
            shared[name] += len(stating) > 1
            differing[name] += bool(agreed.conflicts)
    return [AttributeSpread(name, count, shared[name], differing[name]) for name, count in told.items()]


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _stated(values: Iterable[Stated]) -> list[dict[str, object]]:
    return [{"value": one.text, "sources": list(one.sources), "confidence": one.confidence} for one in values]
