"""Seeds in the store, and what became of sites that were to be wrapped from them."""

from __future__ import annotations

import dataclasses
import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import Overtaken, StoreError
from siteloom.core.model import Seed
from siteloom.store.queries import seeds as seeds_of_store
from siteloom.store.queries.seeds import SeedCounts, SiteState, StoredSiteOutcome
from siteloom.store.store import Store
from tests.store.helpers import day

ANY_TEXT = "a\0b \ud800 c\udfff \N{SNAKE} \x1b \u2028 'quoted' \\u0041 \\"


def seed(name: str, source: str = "guide", **others: object) -> Seed:
    return Seed({"name": (name,)}, source, **others)  # type: ignore[arg-type]


def add(store: Store, seeds: Iterable[Seed]) -> SeedCounts:
    with store.recording("seeds", {}) as run:
        return store.add_seeds(run.id, seeds)


def replace(store: Store, seeds: Iterable[Seed], sources: Sequence[str] = ()) -> SeedCounts:
    with store.recording("seeds", {}) as run:
        return store.replace_seeds(run.id, seeds, sources)


def names(store: Store, *sources: str) -> list[str]:
    return [found.values["name"][0] for found in store.seeds(sources or None)]


def test_seeds_come_back_as_they_were_given_in_their_order(store: Store) -> None:
    given = [
        Seed({"name": ("Oak",), "cuisine": ("Thai", "Greek")}, "guide", "http://a.example/1", 0.75),
        Seed({"phone": ("1",), "a": ("2",)}),
        seed("\N{SNAKE}", "b"),
    ]
    assert add(store, given) == (3, 0, 0)
    found = list(store.seeds())
    assert found == given
    assert [list(one.values) for one in found] == [list(one.values) for one in given]


def test_any_text_can_be_kept(store: Store) -> None:
    given = Seed({ANY_TEXT: (ANY_TEXT,)}, ANY_TEXT, ANY_TEXT)
    assert [add(store, [given]) for _ in range(2)] == [(1, 0, 0), (0, 1, 0)]
    (found,) = store.seeds([ANY_TEXT])
    assert found.values == given.values
    assert replace(store, [], [ANY_TEXT]) == (0, 0, 1)


def test_the_same_again_changes_nothing(store: Store) -> None:
    given = [
        seed("Oak"),
        seed("Elm"),
        seed("Oak"),
        seed("Oak", "other"),
        seed("Oak", url="http://a.example/"),
    ]
    assert replace(store, given) == (4, 1, 0)
    before = [*store.seeds()], store.seed_sources()
    assert replace(store, given) == (0, 5, 0)
    assert add(store, reversed(given)) == (0, 5, 0)
    assert ([*store.seeds()], store.seed_sources()) == before


def test_the_order_of_attributes_makes_no_other_seed_but_that_of_values_does(store: Store) -> None:
    add(store, [Seed({"a": ("1", "2"), "b": ("3",)})])
    assert add(store, [Seed({"b": ("3",), "a": ("1", "2")})]) == (0, 1, 0)
    assert add(store, [Seed({"a": ("2", "1"), "b": ("3",)})]) == (1, 0, 0)


def test_what_is_met_again_has_the_confidence_of_the_last_time(store: Store) -> None:
    add(store, [seed("Oak", confidence=0.5)])
    assert add(store, [seed("Oak", confidence=0.75)]) == (0, 1, 0)
    assert [found.confidence for found in store.seeds()] == [0.75]


def test_what_a_source_no_longer_has_is_removed(store: Store) -> None:
    replace(store, [seed("Oak"), seed("Elm"), seed("Fir", "other")])
    assert replace(store, [seed("Elm"), seed("Ash")]) == (1, 1, 1)
    assert names(store, "guide") == ["Elm", "Ash"]
    assert names(store) == ["Elm", "Fir", "Ash"]
    assert replace(store, []) == (0, 0, 0)
    assert replace(store, [], ["guide"]) == (0, 0, 2)
    assert names(store) == ["Fir"]


def test_a_source_may_be_replaced_twice_in_one_run(store: Store) -> None:
    with store.recording("seeds", {}) as run:
        store.replace_seeds(run.id, [seed("Oak"), seed("Fir")])
        assert store.replace_seeds(run.id, [seed("Oak"), seed("Elm")]) == (1, 1, 1)
        store.add_seeds(run.id, [seed("Ash")])
    assert names(store) == ["Oak", "Elm", "Ash"]


def test_an_import_that_breaks_off_removes_nothing_and_can_be_done_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeds_of_store, "_WRITTEN_AT_A_TIME", 3)
    old = [seed(f"old {number}") for number in range(5)]
    new = [*old[:2], *(seed(f"new {number}") for number in range(8))]
    replace(store, old)

    def broken() -> Iterator[Seed]:
        yield from new[:7]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        replace(store, broken())
    assert set(names(store)) >= {one.values["name"][0] for one in old}
    assert replace(store, new) == (4, 6, 3)
    assert sorted(names(store)) == sorted(one.values["name"][0] for one in new)


def test_seeds_may_come_from_the_store_itself_while_they_are_written(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeds_of_store, "_WRITTEN_AT_A_TIME", 3)
    monkeypatch.setattr(seeds_of_store, "_READ_AT_A_TIME", 2)
    add(store, [seed(str(number)) for number in range(10)])
    copies = (dataclasses.replace(one, source="copy") for one in store.seeds(["guide"]))
    assert replace(store, copies) == (10, 0, 0)
    assert names(store, "copy") == names(store, "guide") == [str(number) for number in range(10)]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 6])
def test_seeds_are_read_a_few_at_a_time(store: Store, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(seeds_of_store, "_READ_AT_A_TIME", 2)
    given = [seed(str(number), "even" if number % 2 == 0 else "odd") for number in range(count)]
    add(store, given)
    assert list(store.seeds()) == given
    assert list(store.seeds(["odd"])) == given[1::2]
    assert list(store.seeds(["odd", "even", "none"])) == given
    assert list(store.seeds([])) == []


def test_sources_in_numbers(store: Store) -> None:
    assert store.seed_sources() == []
    given = [
        Seed({"name": ("Oak",), "phone": ("1", "2")}, "b", confidence=0.5),
        Seed({"name": ("Elm",)}, "b"),
        Seed({"phone": ("3",)}, "B"),
    ]
    for number, one in enumerate(given):
        add(dataclasses.replace(store, clock=partial(day, number)), [one])
    assert store.seed_sources() == [
        ("B", 1, {"phone": 1}, 1.0, day(2)),
        ("b", 2, {"name": 2, "phone": 1}, 0.75, day(1)),
    ]


def test_a_source_is_withdrawn_with_all_that_came_from_it(store: Store) -> None:
    add(store, [seed("Oak"), seed("Elm"), seed("Oak", "other")])
    assert [store.withdraw_seeds("guide") for _ in range(2)] == [2, 0]
    assert [found.source for found in store.seeds()] == ["other"]
    assert add(store, [seed("Oak")]) == (1, 0, 0)


def test_the_name_of_a_source_may_not_be_very_long(store: Store) -> None:
    with pytest.raises(StoreError, match="longer than 300 bytes"):
        add(store, [seed("Oak", "x" * 301)])
    add(store, [seed("Oak", "x" * 300)])


def grow(store: Store, seeds: Iterable[Seed], sources: Sequence[str] = ()) -> SeedCounts:
    with store.recording("bootstrap", {}) as run:
        return store.replace_seeds(run.id, seeds, sources, is_grown=True)


def test_imported_and_extracted_seeds_do_not_touch_each_other(store: Store) -> None:
    store.save_site_outcome("guide", "wrapped", 1, 1)
    replace(store, [seed("Oak"), seed("Elm")])
    assert grow(store, [seed("Oak"), seed("Fir")]) == (2, 0, 0)
    assert names(store) == ["Oak", "Elm", "Oak", "Fir"]
    assert [len(list(store.seeds(is_grown=is_grown))) for is_grown in (False, True)] == [2, 2]
    assert replace(store, [seed("Ash")]) == (1, 0, 2)
    assert grow(store, [seed("Fir")]) == (0, 1, 1)
    assert names(store) == ["Fir", "Ash"]
    assert grow(store, [], ["guide"]) == (0, 0, 1)
    assert names(store) == ["Ash"]


def test_extracted_seeds_count_only_while_their_site_is_wrapped(store: Store) -> None:
    add(store, [seed("Oak", "table")])
    grow(store, [seed("Elm")])
    states: list[SiteState] = ["wrapped", "poor", "failed", "withdrawn"]
    for state in states:
        store.save_site_outcome("guide", state, 1, 1)
        counting = {"guide", "table"} if state == "wrapped" else {"table"}
        assert {found.source for found in store.seeds()} == counting
        assert {one.source for one in store.seed_sources()} == counting
        assert names(store, "guide") == (["Elm"] if state == "wrapped" else [])


def test_extracted_seeds_are_not_withdrawn_alone(store: Store) -> None:
    store.save_site_outcome("guide", "wrapped", 1, 1)
    grow(store, [seed("Elm")])
    with pytest.raises(StoreError, match=r"siteloom bootstrap --withdraw guide\.$"):
        store.withdraw_seeds("guide")
    add(store, [seed("Oak")])
    assert store.withdraw_seeds("guide") == 1
    assert names(store) == ["Elm"]


Given = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 4)), max_size=12)


@given(imports=st.lists(Given, max_size=4))
def test_the_last_import_of_a_source_holds(store: Store, imports: list[list[tuple[str, int]]]) -> None:
    for source in "ab":
        store.withdraw_seeds(source)
    held: dict[str, set[int]] = {}
    for one in imports:
        before = {(source, number) for source, numbers in held.items() for number in numbers}
        counts = replace(store, [seed(str(number), source) for source, number in one])
        held |= {source: {number for other, number in one if other == source} for source, _ in one}
        after = {(source, number) for source, numbers in held.items() for number in numbers}
        assert counts == (len(after - before), len(one) - len(after - before), len(before - after))
        assert {(found.source, int(found.values["name"][0])) for found in store.seeds()} == after


def test_memory_does_not_grow_with_the_seeds(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeds_of_store, "_WRITTEN_AT_A_TIME", 500)
    monkeypatch.setattr(seeds_of_store, "_READ_AT_A_TIME", 500)

    def peak(count: int) -> int:
        tracemalloc.start()
        try:
            replace(store, (seed(f"{number:050}") for number in range(count)))
            assert sum(1 for _ in store.seeds()) == count
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)
    assert peak(6_000) < 1.5 * peak(1_000) + 100_000


def test_what_became_of_a_site_takes_the_place_of_what_was_kept_before(store: Store) -> None:
    assert store.site_outcomes() == []
    store.save_site_outcome("b.example", "poor", 1, 5_000_000_000, content={"matched": [3, ANY_TEXT]})
    store.save_site_outcome("B.example", "failed", 1, 7)
    at = store.site_outcomes()[1].at
    assert store.site_outcomes()[1] == StoredSiteOutcome(
        "b.example", "poor", 1, 5_000_000_000, None, None, {"matched": [3, ANY_TEXT]}, at
    )
    store.save_site_outcome("b.example", "wrapped", 2, 9, "b.example/1", 4, {})
    assert [found[:-1] for found in store.site_outcomes()] == [
        ("B.example", "failed", 1, 7, None, None, {}),
        ("b.example", "wrapped", 2, 9, "b.example/1", 4, {}),
    ]


def test_a_wrapped_site_waits_until_it_is_accepted(store: Store) -> None:
    on_day = [dataclasses.replace(store, clock=partial(day, number)) for number in range(3)]
    on_day[0].save_site_outcome("a.example", "wrapped", 1, 9, "a.example/1", 1, {"records": 4})
    on_day[0].save_site_outcome("b.example", "poor", 1, 9)
    assert [one.waits for one in store.site_outcomes()] == [True, False]
    assert on_day[1].accept_site_outcome("a.example", "ana")
    assert not on_day[1].accept_site_outcome("b.example", "ana")
    assert not on_day[1].accept_site_outcome("c.example", "ana")
    accepted, _ = store.site_outcomes()
    assert (accepted.waits, accepted.accepted_by, accepted.at) == (False, "ana", day(0))
    assert accepted.content["records"] == 4
    # Wrapped anew, it waits again, and who has seen the version before has not seen this one.
    on_day[2].save_site_outcome("a.example", "wrapped", 2, 9, "a.example/1", 2, {"records": 5})
    with pytest.raises(Overtaken, match=r"a\.example was wrapped anew since you looked at it \(version 2\)"):
        store.accept_site_outcome("a.example", "ana", 1)
    assert [one.waits for one in store.site_outcomes()] == [True, False]
    assert store.accept_site_outcome("a.example", "ana", 2)
    assert [one.waits for one in store.site_outcomes()] == [False, False]
