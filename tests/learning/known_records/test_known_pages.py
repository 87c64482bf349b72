"""Pages that show known records, and reasons why there are none."""

from __future__ import annotations

import math
import re

import numpy as np

from siteloom.core.model import Page, Seed
from siteloom.learning.known_records.aligned_pages import (
    LEAST_PAGES,
    KnownPages,
    NoOverlap,
    ShownRecords,
    known_pages,
    known_records,
    shown_records,
)
from siteloom.learning.known_records.record_page_alignment import Pairs
from tests.learning.known_records import sites
from tests.learning.known_records.test_alignment import listed, true_pairs


def found(seeds: list[Seed], pages: list[Page]) -> KnownPages:
    known = known_pages(known_records(seeds, sites.CORE), sites.texts_of(pages))
    assert isinstance(known, KnownPages), known
    return known


def reason(seeds: list[Seed], pages: list[Page]) -> str:
    known = known_pages(known_records(seeds, sites.CORE), sites.texts_of(pages))
    assert isinstance(known, NoOverlap)
    return known.reason


def test_each_page_is_known_by_its_own_record() -> None:
    seeds = sites.seeds()
    known = found(seeds, sites.pages())

    assert set(listed(known.pairs)) == true_pairs(seeds)
    assert known.pages.tolist() == list(range(30))
    assert set(known.slots) == set(sites.ATTRIBUTES)
    assert known.attribute("phone").name == "phone"


def test_lists_among_other_pages_are_left_out() -> None:
    pages = sites.pages()
    mixed = [*pages[:20], *map(sites.list_page, range(15)), *pages[20:]]
    known = found(sites.seeds(), mixed)

    assert {mixed[page].url for page in known.pages.tolist()} == {page.url for page in pages[:30]}
    for slots in known.slots.values():
        assert all("/place/" in mixed[page].url for slot in slots for page in slot.agreeing_pages.tolist())


def test_lists_alone_are_named_in_the_reason() -> None:
    said = reason(sites.seeds(), [sites.list_page(number) for number in range(20)])

    match = re.search(r"and (\d+) pages list several", said)
    assert match is not None
    assert int(match[1]) > 10


def test_one_attribute_is_not_enough() -> None:
    names = [Seed({"name": seed.values["name"]}) for seed in sites.seeds()]

    assert reason(names, sites.pages()).startswith("The seeds have only name: ")


def test_too_few_shared_pages_are_counted() -> None:
    few = sites.seeds([*sites.ON_SITE[: LEAST_PAGES - 1], *sites.EVERY[40:]])
    enough = sites.seeds([*sites.ON_SITE[:LEAST_PAGES], *sites.EVERY[40:]])

    said = reason(few, sites.pages())
    assert said.startswith("Not enough overlap: 9 of 209 known records seem to be on 9 of 40 pages")
    assert "list" not in said
    assert len(found(enough, sites.pages()).pages) == LEAST_PAGES


def test_strangers_share_no_page() -> None:
    said = reason(sites.seeds(sites.EVERY[40:]), sites.pages())

    assert said.startswith("Not enough overlap: 0 of 200 known records seem to be on 0 of 40 pages")


def test_no_pages_have_no_overlap() -> None:
    assert "0 of 0 pages" in reason(sites.seeds(), [])


def test_records_that_share_single_values_are_not_on_the_page() -> None:
    """Each seed has the name of one restaurant of the site and the address and phone of another."""
    mixed = []
    for number, one in enumerate(sites.ON_SITE):
        other, third = sites.ON_SITE[(number + 7) % 40], sites.ON_SITE[(number + 16) % 40]
        mixed.append(
            Seed(
                {
                    "name": sites.seed(one).values["name"],
                    "address": sites.seed(other).values["address"],
                    "phone": sites.seed(third).values["phone"],
                }
            )
        )

    assert reason(mixed, sites.pages()).startswith("Not enough overlap: ")


def test_no_two_attributes_stand_at_the_same_rows() -> None:
    doubled = [
        Seed({**seed.values, "title": seed.values["name"], "fax": seed.values["phone"]})
        for seed in sites.seeds()
    ]
    known = found(doubled, sites.pages())

    taken = np.zeros(len(known.texts.page), np.int64)
    for slots in known.slots.values():
        for slot in slots:
            if slot.is_believed:
                taken[known.positions.rows_at(slot.position)] += 1
    assert taken.max() == 1


def shown_pairs(found: ShownRecords | Pairs) -> set[tuple[int, int]]:
    return set(zip(found.page.tolist(), found.record.tolist(), strict=True))


def test_what_pages_show_is_told_of_each_by_itself_and_has_all_that_is_found_on_their_site() -> None:
    records = known_records(sites.seeds(), sites.CORE)
    pages = [*sites.pages(), *map(sites.list_page, range(5))]
    shown = shown_records(records, sites.texts_of(pages))
    assert np.all(shown.bits > math.log2(records.table.records))
    for number, page in enumerate(pages):
        alone = shown_records(records, sites.texts_of([page]))
        assert {(number, record) for _, record in shown_pairs(alone)} == {
            pair for pair in shown_pairs(shown) if pair[0] == number
        }
    known = known_pages(records, sites.texts_of(pages))
    assert isinstance(known, KnownPages)
    assert len(known.pages) == 30
    assert shown_pairs(known.pairs) <= shown_pairs(shown)


def test_pages_about_other_things_show_nothing() -> None:
    records = known_records(sites.seeds(sites.EVERY[40:]), sites.CORE)
    assert shown_pairs(shown_records(records, sites.texts_of(sites.pages()))) == set()
    assert shown_pairs(shown_records(records, sites.texts_of([]))) == set()
