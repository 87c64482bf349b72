"""entities: find the records of several sites that are about the same thing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from siteloom.core.errors import UsageError
from siteloom.learning.known_records.entity_linking import (
    AttributeSpread,
    Entity,
    attribute_spread,
    entity_row,
    link,
    sources_of,
)
from siteloom.operations.request_fields import NOT_STORED, Flag, Texts
from siteloom.operations.seeds import check_core, seed_names
from siteloom.sources.rows_to_seeds import seed_of
from siteloom.store.queries.entities import LinkedEntity

if TYPE_CHECKING:
    from siteloom.core.model import Seed
    from siteloom.operations.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEntitiesRequest:
    """By which attributes things are known, and whether known records count beside those of the sites."""

    core: Texts = ()
    seeds: Flag = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEntitiesResult:
    """How many things so many records are about, and how many of them are on several sites.

    `spread` counts things by the number of their sources, `sources` counts records by source, and
    `attributes` says in how many things the sources differ. The members of `linked` are indices into the
    records.
    """

    run: int | None = None
    records: int
    entities: int
    on_several: int
    spread: tuple[tuple[int, int], ...] = ()
    sources: Mapping[str, int] = field(default_factory=dict)
    attributes: tuple[AttributeSpread, ...] = ()
    linked: tuple[Entity, ...] = field(default=(), metadata=NOT_STORED)


def link_entities(context: Context, request: LinkEntitiesRequest) -> LinkEntitiesResult:
    """Link the newest records of all sites, and store the entities, those on most sources first."""
    store, progress = context.store, context.progress
    progress.start("Reading", unit="record")
    records = list(_records(context, with_seeds=request.seeds))
    _check_sources(records, with_seeds=request.seeds)
    progress.start(f"Comparing {len(records):,} records")
    result = link_records(records, request.core)
    entities = sorted(result.linked, key=lambda entity: -len(sources_of(entity, records)))
    numbers = {
        "core": list(request.core),
        "with_seeds": request.seeds,
        "records": result.records,
        "entities": result.entities,
        "spread": result.spread,
        "sources": result.sources,
        "attributes": [attribute._asdict() for attribute in result.attributes],
    }
    progress.start(f"Storing {len(entities):,} entities")
    with store.recording("entities", {"core": list(request.core), "seeds": request.seeds}) as run:
        store.entities.replace(run.id, numbers, _rows(entities, records))
        run.counts.update(records=result.records, entities=result.entities)
    return replace(result, run=run.id, linked=tuple(entities))


def link_records(records: Sequence[Seed], core: Sequence[str]) -> LinkEntitiesResult:
    """Link records, and store nothing; each core attribute must be one that a record has."""
    check_core(core, seed_names(records))
    entities = link(records, core)
    spread = sorted(Counter(len(sources_of(entity, records)) for entity in entities).items())
    return LinkEntitiesResult(
        records=len(records),
        entities=len(entities),
        on_several=sum(count for sources, count in spread if sources > 1),
        spread=tuple(spread),
        sources=Counter(seed.source for seed in records),
        attributes=tuple(attribute_spread(entities)),
        linked=tuple(entities),
    )


def _records(context: Context, *, with_seeds: bool) -> Iterator[Seed]:
    """The newest records of all sites, and known records of sources that are none of these sites."""
    sources: set[str] = set()
    for site, row in context.store.records_in_force():
        context.progress.advance()
        sources.add(site)
        if (seed := seed_of(row, site)).values:
            yield seed
    for seed in context.store.seeds() if with_seeds else ():
        if seed.source not in sources:
            yield seed


def _check_sources(records: Sequence[Seed], *, with_seeds: bool) -> None:
    sources = {seed.source for seed in records}
    if len(sources) < 2:
        here = f"there are only those of {sources.pop()}" if sources else "there are none"
        needed = "records or seeds" if with_seeds else "records"
        raise UsageError(f"To find the same thing on several sites, {needed} of two are needed: {here}.")


def _rows(entities: Sequence[Entity], records: Sequence[Seed]) -> Iterator[LinkedEntity]:
    for number, entity in enumerate(entities, 1):
        row = entity_row(number, entity, records)
        seeds = [records[member] for member in entity.members]
        texts = {text: None for seed in seeds for values in seed.values.values() for text in values}
        members = [{"source": seed.source, "url": seed.url, "values": seed.values} for seed in seeds]
        yield LinkedEntity(
            number, len(row["sources"]), tuple(row["conflicts"]), tuple(texts), {**row, "members": members}
        )
