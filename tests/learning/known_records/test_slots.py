"""Where attributes stand, and what is not believed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.model import Page, Seed
from siteloom.learning.known_records.aligned_pages import KnownPages, known_pages, known_records
from siteloom.learning.known_records.attribute_slots import kappa, shuffled
from siteloom.learning.known_records.record_page_alignment import Pairs
from tests.learning.known_records import sites

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.learning.known_records.attribute_slots import Slot


def known(pages: Sequence[Page], seeds: Sequence[Seed] | None = None) -> KnownPages:
    found = known_pages(
        known_records(sites.seeds() if seeds is None else seeds, sites.CORE), sites.texts_of(pages)
    )
    assert isinstance(found, KnownPages), found
    return found


def shown(found: KnownPages, slot: Slot) -> dict[int, str]:
    """What stands at a position that is on a page once."""
    rows = found.positions.rows_at(slot.position).tolist()
    texts = {int(found.texts.page[row]): found.texts.texts[found.texts.text[row]] for row in rows}
    assert len(texts) == len(rows)
    return texts


def believed(found: KnownPages, name: str) -> list[Slot]:
    return [slot for slot in found.slots[name] if slot.is_believed]


@pytest.mark.parametrize("name", sites.ATTRIBUTES)
def test_the_position_of_an_attribute_shows_it_on_all_pages(name: str) -> None:
    found = known(sites.pages())
    (slot,) = found.slots[name]

    assert slot.is_believed
    assert shown(found, slot) == {number: one.values[name] for number, one in enumerate(sites.ON_SITE)}
    assert (slot.pages, slot.agreeing, slot.agreeing_pages.tolist()) == (30, 30, found.pages.tolist())
    assert slot.by_chance < 15
    assert slot.bits > 0


def test_what_tells_records_apart_is_rarely_right_by_chance() -> None:
    found = known(sites.pages())

    assert found.slots["phone"][0].by_chance < found.slots["cuisine"][0].by_chance
    assert found.slots["name"][0].kappa > 0.9


def test_a_city_is_no_address() -> None:
    found = known(sites.pages(without=("address",)))

    assert believed(found, "address") == []
    assert believed(found, "name")


def test_values_of_the_menu_are_not_those_of_the_page() -> None:
    found = known(sites.pages(without=("cuisine",)))

    assert believed(found, "cuisine") == []
    assert len(believed(found, "phone")) == 1


@pytest.mark.parametrize("name", ["address", "phone", "cuisine"])
def test_an_attribute_that_most_pages_lack_is_found_on_the_others(name: str) -> None:
    pages = [sites.page(number, without=(name,) if number % 3 else ()) for number in range(40)]
    found = known(pages)

    first = believed(found, name)[0]
    assert shown(found, first) == {
        number: one.values[name] for number, one in enumerate(sites.ON_SITE) if number % 3 == 0
    }


def test_pages_of_another_layout_have_a_position_of_their_own() -> None:
    pages = sites.pages()
    for number in range(0, 40, 2):
        phone = sites.ON_SITE[number].phone
        pages[number] = sites.changed(
            pages[number], f"<b>Phone</b> <span>{phone}</span>", f"<i><u>{phone}</u></i>"
        )
    found = known(pages)

    slots = believed(found, "phone")
    assert len(slots) == 2
    assert {**shown(found, slots[0]), **shown(found, slots[1])} == {
        number: one.phone for number, one in enumerate(sites.ON_SITE)
    }


def with_titles() -> list[Seed]:
    """Records with an attribute that is like their name."""
    return [
        Seed({**seed.values, "title": (f"{seed.values['name'][0]} Restaurant",)}) for seed in sites.seeds()
    ]


def test_two_attributes_do_not_share_a_position() -> None:
    found = known(sites.pages(), with_titles())

    slots = [*believed(found, "name"), *believed(found, "title")]
    rows = [set(found.positions.rows_at(slot.position).tolist()) for slot in slots]
    assert len(slots) == 1 or not set.intersection(*rows)
    assert believed(found, "phone")


def test_two_attributes_that_are_alike_have_a_place_each_if_there_are_two() -> None:
    pages = [
        sites.changed(page, "<p>Open daily</p>", f"<p class='again'>{one.name} Restaurant</p>")
        for page, one in zip(sites.pages(), sites.ON_SITE, strict=True)
    ]
    found = known(pages, with_titles())

    (name,), (title,) = believed(found, "name"), believed(found, "title")
    rows = [set(found.positions.rows_at(slot.position).tolist()) for slot in (name, title)]
    assert not rows[0] & rows[1]


def mostly_outdated(name: str) -> list[Seed]:
    """Records of all restaurants; of those on the site, three in ten still have what it says."""
    seeds = [Seed({name: (value,) for name, value in one.values.items()}) for one in sites.EVERY]
    for number, seed in enumerate(seeds[:40]):
        if number % 10 not in (0, 4, 7):
            seeds[number] = Seed({**seed.values, name: seeds[100 + number].values[name]})
    return seeds


def test_thin_agreement_is_enough_for_values_of_a_kind_only() -> None:
    """Other phones of the same restaurant are phones, too; what stands in place of a name may be anything."""
    phones = known(sites.pages(), mostly_outdated("phone")).slots["phone"]
    names = known(sites.pages(), mostly_outdated("name")).slots["name"]

    assert [(slot.is_believed, slot.agreeing, slot.pages) for slot in phones] == [(True, 12, 40)]
    assert [slot.is_believed for slot in names] == [False]


def test_agreement_is_beyond_chance() -> None:
    assert kappa(30, 0, 30) == 1
    assert kappa(10, 10, 30) == 0
    assert kappa(20, 10, 30) == pytest.approx(0.5)
    assert kappa(5, 10, 30) < 0
    assert kappa(0, 0, 0) == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))).map(sorted), st.integers(0, 5))
def test_shuffled_pairs_have_the_same_pages_and_records(pairs: list[tuple[int, int]], number: int) -> None:
    page, record = np.array(pairs, np.int32).reshape(-1, 2).T
    other = shuffled(Pairs(page, record), np.random.default_rng(number))

    assert other.page.tolist() == sorted(other.page.tolist())
    assert set(other.page.tolist()) == set(page.tolist())
    assert Counter(other.record.tolist()) == Counter(record.tolist())


def test_shuffled_records_are_on_other_pages() -> None:
    numbers = np.arange(100, dtype=np.int32)
    other = shuffled(Pairs(numbers, numbers), np.random.default_rng(0))

    assert np.mean(other.page == other.record) < 0.1
