"""Choosing the pages that are watched."""

from __future__ import annotations

from dataclasses import replace

import pytest

import siteloom
from siteloom import Page
from siteloom.core.errors import UsageError
from siteloom.maintenance.change_tests import check
from siteloom.maintenance.watched_pages import MOST_BELLWETHERS, Watch, watch
from siteloom.templates.signature import signature
from siteloom.wrappers.value_contract import learned_contract
from tests.maintenance import guide
from tests.maintenance.inns import INNS, LIST, WRAPPER, Inn, list_page, page, pages, rows


def with_value(watched: Watch, attribute: str) -> int:
    return sum(any(attribute in record for record in one.records) for one in watched.bellwethers)


def test_a_bellwether_is_a_page_with_what_was_found_on_it_and_by_which_rules() -> None:
    (found,) = watch(WRAPPER, pages(INNS[:1])).bellwethers
    one = INNS[0]
    assert found.page == page(one)
    known = signature(page(one).html)
    assert known is not None
    assert found.signature == known.hex()
    assert found.records == (
        {
            "name": (one.name,),
            "phone": (one.phone,),
            "owner": (one.owner,),
            "price": (one.price,),
            "dishes": one.dishes,
        },
    )
    assert found.rules == ({name: f"{name}#1" for name in WRAPPER.attributes},)


def test_twenty_pages_are_watched_unless_another_number_is_given() -> None:
    assert MOST_BELLWETHERS == 20
    assert len(watch(WRAPPER, pages()).bellwethers) == 20
    for k in (1, 2, 7, 39, 40, 1_000):
        found = watch(WRAPPER, pages(), k).bellwethers
        assert len({one.page.url for one in found}) == len(found) == min(k, 40)


@pytest.mark.parametrize("k", [0, -1])
def test_at_least_one_page_must_be_watched(k: int) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        watch(WRAPPER, pages(), k)


@pytest.mark.parametrize(
    "given",
    [[], [Page("https://inns.example/", b"")], [Page.from_text("https://inns.example/", "<p>Nothing")]],
    ids=["none", "unreadable", "nothing found"],
)
def test_pages_on_which_nothing_is_found_cannot_be_watched(given: list[Page]) -> None:
    with pytest.raises(UsageError) as caught:
        watch(WRAPPER, given)
    assert str(caught.value) == (
        f"None of the {len(given)} pages can be watched: the wrapper finds on none of them all that its "
        "records must have."
    )


def test_only_pages_with_all_mandatory_attributes_are_watched() -> None:
    lacking = [Page(one.url, one.html.replace(b"h1>", b"h2>")) for one in pages(INNS[:10])]
    found = watch(WRAPPER, [*lacking, *pages(INNS[10:15])])
    assert {one.page.url for one in found.bellwethers} == {one.url for one in INNS[10:15]}


def test_a_rare_attribute_is_on_five_of_the_watched_pages_if_there_are() -> None:
    def rare(one: Inn) -> Page:
        return page(one, rows(one) if one.number in (3, 8, 14, 22, 29, 35) else rows(one)[1:])

    found = watch(WRAPPER, map(rare, INNS))
    assert with_value(found, "phone") >= 5
    assert len(found.bellwethers) == 20


def test_several_rare_attributes_are_all_watched() -> None:
    def rare(one: Inn) -> Page:
        return page(one, [row for number, row in enumerate(rows(one)) if one.number % 8 == number])

    found = watch(WRAPPER, map(rare, INNS))
    assert [with_value(found, name) for name in ("phone", "owner", "price")] == [5, 5, 5]


def test_pages_that_differ_are_watched_before_pages_that_are_alike() -> None:
    odd = page(INNS[39], extra="<section><table><tr><td>Rooms: 7</td></tr></table></section>")
    found = watch(WRAPPER, [*pages(INNS[:39]), odd], k=4)
    assert odd in [one.page for one in found.bellwethers]


def test_of_several_versions_of_a_page_the_last_is_watched() -> None:
    old = [page(one, [*rows(one)[:2], ("Price:", "£1.00")]) for one in INNS]
    found = watch(WRAPPER, [*old, *pages()])
    assert len({one.page.url for one in found.bellwethers}) == 20
    assert all(one.page in pages() for one in found.bellwethers)


def test_the_choice_is_the_same_each_time() -> None:
    assert watch(WRAPPER, pages()) == watch(WRAPPER, pages())


def test_contracts_are_learned_from_all_pages_that_were_looked_at() -> None:
    found = watch(WRAPPER, pages())
    assert found.contracts["phone"] == learned_contract([one.phone for one in INNS])
    assert found.contracts["price"] == learned_contract([one.price for one in INNS], "price")
    assert found.contracts["dishes"].values == 160
    assert watch(WRAPPER, pages(INNS[:4]), k=1).contracts.keys() == {"dishes"}


def test_the_contract_that_more_values_were_learned_from_counts() -> None:
    def knowing(values: int) -> Watch:
        known = learned_contract(["0117 496 0000"] * values)
        attributes = dict(WRAPPER.attributes)
        attributes["phone"] = replace(attributes["phone"], contract=known)
        return watch(replace(WRAPPER, attributes=attributes), pages())

    assert knowing(200).contracts["phone"].values == 200
    assert knowing(7).contracts["phone"].values == 40


def test_lists_are_watched_too() -> None:
    lists = [list_page(INNS[start : start + 4], number=start) for start in range(0, 40, 4)]
    found = watch(LIST, [*lists, list_page([], number=99)], name="lists")
    assert len(found.bellwethers) == 10
    assert all(len(one.records) == len(one.rules) == 4 for one in found.bellwethers)


def test_watching_the_guide_is_public() -> None:
    assert siteloom.watch is watch
    found = guide.watched()
    assert len(found.bellwethers) == 20
    assert all(with_value(found, name) >= 5 for name in guide.NAMES)
    assert check(found, guide.pages()).changes == ()
