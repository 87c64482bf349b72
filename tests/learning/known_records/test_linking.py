"""Records of several sources that tell of the same things are linked, and only those."""

from __future__ import annotations

from collections import Counter
from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from siteloom.apps.demo.sites import directory_site, guide_site
from siteloom.core.model import Seed
from siteloom.learning.known_records.entity_linking import Entity, SourcedValue, link

STREETS = ("Elm Street", "Harbour Road", "Station Lane", "Mill Close", "Queens Parade", "Abbey Row")
FIRST = ("Blue", "Golden", "Silver", "Crooked", "Hungry", "Wild", "Quiet", "Lucky", "Royal", "Rusty")
SECOND = ("Fern", "Lantern", "Kettle", "Heron", "Orchard", "Anchor", "Badger", "Thistle", "Pepper", "Barrel")
CUISINES = ("Thai", "Italian", "Indian", "French")


def restaurant(number: int) -> dict[str, tuple[str, ...]]:
    """One of a hundred restaurants, each with another name, address and phone."""
    return {
        "name": (f"{FIRST[number % 10]} {SECOND[number // 10 % 10]}",),
        "address": (f"{17 * number % 199 + 1} {STREETS[number % 6]}",),
        "phone": (f"(415) 555-{1000 + 37 * number:04}",),
        "cuisine": (CUISINES[number % 4],),
    }


def site(name: str, numbers: range, **changed: tuple[str, ...]) -> list[Seed]:
    return [Seed({**restaurant(number), **changed}, name, f"https://{name}/{number}") for number in numbers]


def linked(seeds: list[Seed], *core: str) -> list[tuple[int, ...]]:
    return [entity.members for entity in link(seeds, core)]


def with_members(entities: list[Entity], *members: int) -> Entity:
    (found,) = [entity for entity in entities if entity.members == members]
    return found


def test_restaurants_on_five_sites_are_as_many_as_there_are() -> None:
    seeds = [seed for name in "abcde" for seed in site(name, range(40))]
    assert linked(seeds) == [tuple(range(number, 200, 40)) for number in range(40)]


def test_a_phone_that_one_of_five_sites_has_otherwise_is_a_conflict_with_its_source() -> None:
    seeds = [seed for name in "abcde" for seed in site(name, range(40))]
    wrong = Seed({**seeds[47].values, "phone": ("(212) 555-9999",)}, "b", "https://b/7", 0.9)
    seeds[47] = wrong
    found = with_members(link(seeds), 7, 47, 87, 127, 167).values["phone"]
    assert found.values == (SourcedValue("(415) 555-1259", ("a", "c", "d", "e"), 1.0),)
    assert found.conflicts == (SourcedValue("(212) 555-9999", ("b",), 0.9),)


def test_values_that_are_written_in_another_way_agree() -> None:
    here = site("a", range(40))
    there = [
        Seed(
            {
                "name": (" ".join(reversed(seed.values["name"][0].upper().split())),),
                "phone": (seed.values["phone"][0].replace("(", "").replace(") ", "-"),),
            },
            "b",
        )
        for seed in here
    ]
    assert linked(here + there) == [(number, number + 40) for number in range(40)]
    assert not any(agreed.conflicts for one in link(here + there) for agreed in one.values.values())


def test_branches_of_a_chain_are_not_glued_together() -> None:
    branches = [
        {**restaurant(number), "name": ("Noodle Bar",), "cuisine": ("Asian",)} for number in range(30)
    ]
    here = [Seed(values, "a") for values in branches]
    there = [Seed(values, "b") for values in branches]
    # One that tells too little to be any branch in particular.
    vague = Seed({"name": ("Noodle Bar",), "cuisine": ("Asian",)}, "c")
    assert linked([*here, *there, vague]) == [*((number, number + 30) for number in range(30)), (60,)]


def test_places_with_the_same_name_are_apart_if_their_phones_differ() -> None:
    namesakes = {"name": ("Cafe Brazil",), "cuisine": ("Brazilian",)}
    here = Seed({**namesakes, "phone": ("303-480-1877",), "address": ("4408 Lowell Blvd., Denver",)}, "a")
    there = Seed({**namesakes, "phone": ("212-957-4300",), "address": ("328 W 46th St, Manhattan",)}, "b")
    again = Seed({**namesakes, "phone": ("(303) 480-1877",)}, "c")
    others = [seed for name in "abc" for seed in site(name, range(60))]
    assert linked([here, there, again, *others])[:2] == [(0, 2), (1,)]


def test_two_records_of_a_source_are_one_only_if_nothing_differs() -> None:
    seeds = [*site("a", range(40)), *site("a", range(40)), *site("b", range(40))]
    assert linked(seeds) == [(number, number + 40, number + 80) for number in range(40)]
    # The same place again under another name: one of the two is that of the other source.
    seeds = [
        *site("a", range(40)),
        Seed({**restaurant(3), "name": ("Cellar Club",)}, "a"),
        *site("b", range(40)),
    ]
    groups = linked(seeds)
    assert (3, 44) in groups
    assert (40,) in groups


def test_books_with_other_numbers_are_other_editions() -> None:
    numbers = ("978-0-306-40615-7", "978-3-16-148410-0")
    book = {"title": ("Knots and Splices",), "author": ("Ada Ropewalk",), "publisher": ("Harbour Press",)}
    seeds = [
        Seed({**book, "isbn": (number,)}, source) for source, number in zip("ab", numbers, strict=True)
    ] + [Seed({"title": (restaurant(n)["name"]), "author": restaurant(n)["address"]}, "c") for n in range(40)]
    assert (0,) in linked(seeds)
    assert (1,) in linked(seeds)


def test_values_of_sites_that_always_differ_say_nothing() -> None:
    here = [Seed({**one.values, "price": (f"${n}.50",)}, "a") for n, one in enumerate(site("a", range(60)))]
    there = [Seed({**one.values, "price": (f"${n + 9}",)}, "b") for n, one in enumerate(site("b", range(60)))]
    assert linked(here + there) == [(number, number + 60) for number in range(60)]


def test_records_that_agree_in_no_core_attribute_are_apart() -> None:
    here = site("a", range(20))
    there = [Seed({**seed.values, "name": (f"Kitchen {n}x",)}, "b") for n, seed in enumerate(here)]
    assert linked(here + there) == [(number, number + 20) for number in range(20)]
    assert len(linked(here + there, "name")) == 40
    assert len(linked(here + there, "name", "phone")) == 20


def test_all_values_of_an_attribute_that_may_have_several_are_kept() -> None:
    here, there = site("a", range(20)), site("b", range(20))
    here[0] = Seed({**restaurant(0), "cuisine": ("Thai", "Vegan")}, "a")
    there[0] = Seed({**restaurant(0), "cuisine": ("Vegan", "Noodles")}, "b")
    agreed = with_members(link(here + there), 0, 20).values["cuisine"]
    assert [(one.text, one.sources) for one in agreed.values] == [
        ("Vegan", ("a", "b")),
        ("Thai", ("a",)),
        ("Noodles", ("b",)),
    ]
    assert agreed.conflicts == ()


def test_the_value_is_that_of_most_sources_and_then_of_the_surest() -> None:
    seeds = [
        Seed({**restaurant(1), "cuisine": (cuisine,)}, source, confidence=confidence)
        for source, cuisine, confidence in (("a", "Thai", 0.5), ("b", "French", 0.9), ("c", "Indian", 0.7))
    ]
    (entity,) = link(seeds)
    assert [one.text for one in (*entity.values["cuisine"].values, *entity.values["cuisine"].conflicts)] == [
        "French",
        "Indian",
        "Thai",
    ]
    assert entity.values["name"].values == (SourcedValue("Golden Fern", ("a", "b", "c"), 0.9),)


def test_records_that_say_nothing_are_apart() -> None:
    seeds = [
        Seed({}, "a"),
        Seed({}, "b"),
        Seed({"name": ("",), "phone": (" - ",)}, "c"),
        Seed({"name": ()}, "d"),
    ]
    assert linked(seeds) == [(0,), (1,), (2,), (3,)]
    assert link([]) == []


def test_many_records_with_one_value_take_no_longer() -> None:
    alone = [Seed({"cuisine": ("Thai",)}, f"s{number % 3}") for number in range(10_000)]
    copies = [Seed(restaurant(5), f"s{number % 3}") for number in range(10_000)]
    among = [Seed({**restaurant(n % 100), "name": (f"n{n}",)}, "s0") for n in range(10_000)]
    started = process_time()
    groups = Counter(len(members) for members in linked([*alone, *copies, *among]))
    assert process_time() - started < 30  # pair by pair, it takes minutes
    assert groups == {1: 20_000, 10_000: 1}


def test_the_restaurants_of_the_built_in_sites_are_matched() -> None:
    pages = [
        (source, page)
        for source, pages in (("guide", guide_site()), ("directory", directory_site()))
        for page in pages
        if page.kind == "restaurant"
    ]
    seeds = [
        Seed({name: tuple(texts) for name, texts in page.truth.items()}, source) for source, page in pages
    ]
    entity_of = [page.entity for _, page in pages]
    found = {
        pair for members in linked(seeds) for pair in ((a, b) for a in members for b in members if a < b)
    }
    right = {
        (a, b)
        for a, key in enumerate(entity_of)
        for b, other in enumerate(entity_of)
        if a < b and key == other
    }
    assert len(found & right) >= 0.95 * len(right)
    assert len(found & right) >= 0.98 * len(found)


texts = st.sampled_from(
    ["", "-", "Blue Fern", "blue fern!", "Fern, Blue", "415 555 1212", "(415) 555-1212", "Thaï"]
)
records = st.builds(
    Seed,
    st.dictionaries(st.sampled_from(["name", "phone", "x"]), st.lists(texts, max_size=3).map(tuple)),
    st.sampled_from(["a", "b", "c"]),
)


@given(st.lists(records, max_size=12))
def test_every_record_is_in_one_entity_and_every_value_has_its_sources(seeds: list[Seed]) -> None:
    entities = link(seeds)
    assert sorted(member for entity in entities for member in entity.members) == list(range(len(seeds)))
    assert [entity.members[0] for entity in entities] == sorted(entity.members[0] for entity in entities)
    for entity in entities:
        told = [seeds[member] for member in entity.members]
        for name, agreed in entity.values.items():
            stated = (*agreed.values, *agreed.conflicts)
            assert {source for one in stated for source in one.sources} == {
                seed.source for seed in told if seed.values.get(name)
            }
            assert {one.text for one in stated} <= {
                text for seed in told for text in seed.values.get(name, ())
            }
        assert set(entity.values) == {name for seed in told for name, given in seed.values.items() if given}


@given(st.lists(st.integers(0, 99), min_size=2, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(numbers: list[int], random: object) -> None:
    seeds = [Seed(restaurant(number), "abcd"[place % 4]) for place, number in enumerate(numbers)]
    order = list(range(len(seeds)))
    random.shuffle(order)  # type: ignore[attr-defined]
    mixed = {frozenset(order[m] for m in members) for members in linked([seeds[place] for place in order])}
    assert mixed == {frozenset(members) for members in linked(seeds)}
