"""Entities in the store: kept as a whole, found by words and by what sources differ in."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.settings import StoreSettings
from siteloom.store.queries.entities import EntityFilter, LinkedEntity, StoredEntity, _entity, _row
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.store.helpers import day

ODD = "100% _sure_ \\ 'quoted' \0 \ud800 \N{SNAKE}"


def entity(number: int, name: str, sources: int = 1, *conflicting: str) -> LinkedEntity:
    return LinkedEntity(number, sources, conflicting, (name,), {"entity": number, "name": name})


def keep(store: Store, *entities: LinkedEntity) -> None:
    with store.recording("entities", {}) as run:
        store.entities.replace(run.id, {"entities": len(entities)}, entities)


def numbers(found: list[StoredEntity]) -> list[int]:
    return [one.number for one in found]


def test_nothing_is_linked_in_a_new_store(store: Store) -> None:
    assert store.entities.last_linking() is None
    assert store.entities.get(1) is None
    assert store.entities.count() == 0
    assert list(store.entities.each_entity()) == []


def test_entities_take_the_place_of_those_before(store: Store) -> None:
    keep(store, entity(1, "Oak"), entity(2, "Elm"), entity(3, "Ash"))
    later = dataclasses.replace(store, clock=lambda: day(3))
    keep(later, entity(1, "Fir", 2, "phone"))
    linking = store.entities.last_linking()
    assert linking is not None
    assert (linking.content, linking.at) == ({"entities": 1}, day(3))
    assert list(store.entities.each_entity()) == [
        StoredEntity(1, 2, ("phone",), {"entity": 1, "name": "Fir"})
    ]
    assert store.entities.get(1) == StoredEntity(1, 2, ("phone",), {"entity": 1, "name": "Fir"})
    assert store.entities.get(2) is None


def test_what_is_stopped_half_way_leaves_those_before(store: Store) -> None:
    keep(store, entity(1, "Oak"))

    def stopping() -> object:
        yield entity(1, "Elm")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), store.recording("entities", {}) as run:
        store.entities.replace(run.id, {}, stopping())  # type: ignore[arg-type]
    assert [one.content["name"] for one in store.entities.each_entity()] == ["Oak"]
    linking = store.entities.last_linking()
    assert linking is not None
    assert linking.content == {"entities": 1}


def test_others_can_write_while_entities_are_still_made(store: Store, store_settings: StoreSettings) -> None:
    with closing(open_store(store_settings)) as other:

        def made() -> Iterator[LinkedEntity]:
            yield entity(1, "Oak")
            other.jobs.add("learn", {}, "ana")
            yield entity(2, "Elm")

        with store.recording("entities", {}) as run:
            store.entities.replace(run.id, {}, made())
    assert store.entities.count() == 2


def test_they_come_by_number_page_by_page(store: Store) -> None:
    keep(store, *(entity(number, f"Inn {number}", 8 - number) for number in range(1, 8)))
    every = EntityFilter()
    assert numbers(store.entities.page(every, 0, 3)) == [1, 2, 3]
    assert numbers(store.entities.page(every, 3, 9)) == [4, 5, 6, 7]
    assert store.entities.page(every, 7, 9) == []
    assert store.entities.count(EntityFilter(least_sources=2)) == 6
    assert [one.number for one in store.entities.each_entity()] == list(range(1, 8))


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (EntityFilter(("OAK",)), [1, 2]),
        (EntityFilter(("oak", "hill")), [2]),
        (EntityFilter(("%",)), [3]),
        (EntityFilter(("_",)), [3]),
        (EntityFilter(("straße",)), [4]),
        (EntityFilter(("STRASSE",)), [4]),
        (EntityFilter((ODD,)), [3]),
        (EntityFilter(has_conflicts=True), [2, 4]),
        (EntityFilter(attribute="phone"), [2]),
        (EntityFilter(attribute="phone number"), [4]),
        (EntityFilter(attribute="p%"), []),
        (EntityFilter(attribute="Phone"), []),
        (EntityFilter(attribute="PHONE", has_conflicts=True), []),
        (EntityFilter(("oak",), has_conflicts=True), [2]),
    ],
)
def test_entities_are_found(store: Store, wanted: EntityFilter, found: list[int]) -> None:
    keep(
        store,
        entity(1, "Oak Inn"),
        entity(2, "Oak Hill", 1, "phone", "price"),
        entity(3, ODD),
        entity(4, "Große Straße", 1, "phone number"),
    )
    assert numbers(store.entities.page(wanted, 0, 9)) == found
    assert [one.number for one in store.entities.each_entity(wanted)] == found
    assert store.entities.count(wanted) == len(found)


def test_many_are_read_a_few_at_a_time(store: Store) -> None:
    keep(store, *(entity(number, f"Inn {number}") for number in range(1, 2_502)))
    assert [one.number for one in store.entities.each_entity()] == list(range(1, 2_502))
    assert store.entities.count() == 2_501


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), unique=True))
def test_any_names_of_attributes_come_back(names: list[str]) -> None:
    row = _row(LinkedEntity(1, 1, tuple(names), (), {"a": names}))
    kept = _entity(_Row(row))  # type: ignore[arg-type]
    assert kept.conflicting == tuple(names)
    assert kept.content == json.loads(json.dumps({"a": names}))


class _Row:
    def __init__(self, values: dict[str, object]) -> None:
        self.__dict__.update(values)
