"""What there is to see of entities, as values: the same thing on several sites, and where these differ."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from siteloom.apps.server.request_types import LARGEST_NUMBER
from siteloom.core.errors import NotFound
from siteloom.operations.seeds import proposed_core, seed_columns
from siteloom.sources.rows_to_seeds import seed_of
from siteloom.store.queries.entities import EntityFilter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteloom.operations.seeds import SeedColumn
    from siteloom.store.queries.entities import StoredEntity
    from siteloom.store.store import Store

PAGE = 50
"""Entities on a page."""

# So many records show by which attributes things are known.
_RECORDS_LOOKED_AT = 10_000


class AttributeOfEntities(BaseModel):
    """An attribute of entities in numbers."""

    name: str
    entities: int = Field(description="Of so many it is known.")
    shared: int = Field(description="Of so many by several sources.")
    differing: int = Field(description="Of so many these differ.")


class LinkingView(BaseModel):
    """What was linked last, in numbers."""

    at: datetime
    core: list[str] = Field(description="The attributes by which things are known.")
    with_seeds: bool
    records: int
    entities: int
    sources: dict[str, int] = Field(description="How many records each source gave.")
    spread: list[tuple[int, int]] = Field(description="On how many sources how many entities are.")
    attributes: list[AttributeOfEntities]
    is_outdated: bool = Field(description="Whether records were extracted since.")


class EntitySummary(BaseModel):
    """An entity in a line."""

    entity: int
    name: str = Field(description="Its values of the core attributes.")
    sources: list[str]
    conflicts: dict[str, list[str]] = Field(description="By attribute, all values that are stated of it.")


class EntitiesView(BaseModel):
    """Some of the entities that were linked last."""

    linking: LinkingView | None = Field(description="None if nothing was linked yet.")
    found: int = Field(description="How many there are.")
    entities: list[EntitySummary]


class StatedValue(BaseModel):
    """A value as a source states it, and the page it stands on, if it is on one."""

    text: str
    url: str


class SideBySide(BaseModel):
    """What the sources of an entity say of an attribute."""

    name: str
    values: list[str] = Field(description="What is taken for right: what most say, if they do.")
    has_majority: bool = Field(description="Whether more sources say so than not.")
    has_conflicts: bool
    by_source: dict[str, list[StatedValue]]
    differing: list[str] = Field(description="The sources that say something else.")


class EntityDetail(BaseModel):
    """An entity with what each source says."""

    entity: int
    name: str
    sources: list[str]
    records: int
    attributes: list[SideBySide] = Field(description="Those in which the sources differ first.")
    linked_at: datetime


def linking_view(store: Store) -> LinkingView | None:
    """What was linked last, in numbers."""
    last = store.entities.last_linking()
    if last is None:
        return None
    newest = store.last_extract_run()
    is_outdated = newest is not None and newest > last.run_id
    return LinkingView(**last.content, at=last.at, is_outdated=is_outdated)


def entities_view(store: Store, wanted: EntityFilter, start: int, limit: int) -> EntitiesView:
    """Some of the entities that were linked last, those that most sources tell of first."""
    linking = linking_view(store)
    if linking is None:
        return EntitiesView(linking=None, found=0, entities=[])
    found = store.entities.page(wanted, start, limit)
    return EntitiesView(
        linking=linking,
        found=linking.entities if wanted == EntityFilter() else store.entities.count(wanted),
        entities=[_summary(one, linking) for one in found],
    )


def entity_detail(store: Store, number: int) -> EntityDetail:
    """An entity with what each source says."""
    linking = linking_view(store)
    found = store.entities.get(number) if linking is not None and number <= LARGEST_NUMBER else None
    if linking is None or found is None:
        raise NotFound(f"There is no entity {number}: they are numbered anew each time records are linked.")
    content = found.content
    names = [*found.conflicting, *(name for name in content["values"] if name not in found.conflicting)]
    return EntityDetail(
        entity=number,
        name=_name(content, linking),
        sources=sorted(content["sources"]),
        records=len(content["members"]),
        attributes=[_side_by_side(name, content) for name in names],
        linked_at=linking.at,
    )


def linked_columns(store: Store) -> tuple[list[SeedColumn], tuple[str, ...]]:
    """The attributes of the records that hold now, and those by which things are likely known."""
    records = islice(store.records_in_force(), _RECORDS_LOOKED_AT)
    columns = seed_columns([seed_of(row, site) for site, row in records])
    return columns, proposed_core(columns)


def _summary(found: StoredEntity, linking: LinkingView) -> EntitySummary:
    content = found.content
    return EntitySummary(
        entity=found.number,
        name=_name(content, linking),
        sources=content["sources"],
        conflicts={
            name: [one["value"] for one in (*content["values"][name], *content["conflicts"][name])]
            for name in found.conflicting
        },
    )


def _name(content: Mapping[str, Any], linking: LinkingView) -> str:
    """What a thing is called: its values of the core attributes, or else the first that it has."""
    values: Mapping[str, list[Mapping[str, str]]] = content["values"]
    called = [values[name][0]["value"] for name in linking.core if values.get(name)]
    if not called:
        called = [stated[0]["value"] for stated in values.values() if stated][:1]
    return ", ".join(called) or f"Entity {content['entity']}"


def _side_by_side(name: str, content: Mapping[str, Any]) -> SideBySide:
    conflicts = content["conflicts"].get(name, [])
    agreeing = {source for one in content["values"][name] for source in one["sources"]}
    by_source: dict[str, list[StatedValue]] = {}
    differing = sorted({source for one in conflicts for source in one["sources"]} - agreeing)
    for member in content["members"]:
        for text in member["values"].get(name, ()):
            stated = StatedValue(text=text, url=member["url"])
            by_source.setdefault(member["source"], []).append(stated)
    return SideBySide(
        name=name,
        values=[one["value"] for one in content["values"][name]],
        has_majority=len(agreeing) > len(differing),
        has_conflicts=bool(conflicts),
        by_source=by_source,
        differing=differing,
    )
