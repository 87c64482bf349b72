"""The field test: what a wrapper finds on new versions of pages against what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from siteloom import Page
from siteloom.core.model import Failure
from siteloom.html.parser import parse
from siteloom.learning.value_search.value_locations import ValueIndex
from siteloom.maintenance.moved_values import near_values
from siteloom.maintenance.old_wrapper_fit import FieldTest as Held
from siteloom.maintenance.old_wrapper_fit import KnownPage, field_test
from siteloom.maintenance.watched_pages import contracts
from tests.maintenance.inns import INNS, WRAPPER, Inn, page, rows

TWENTY = INNS[:20]
Facts = list[tuple[str, str]]


def known(one: Inn) -> dict[str, tuple[str, ...]]:
    return {"name": (one.name,), "phone": (one.phone,), "owner": (one.owner,), "price": (one.price,)}


def held(facts: Callable[[Inn], Facts], inns: Sequence[Inn] = TWENTY) -> Held:
    learned = contracts(WRAPPER, map(known, INNS))
    attributes = {
        name: replace(rules, contract=learned.get(name)) for name, rules in WRAPPER.attributes.items()
    }
    return field_test(
        replace(WRAPPER, attributes=attributes), [known_page(page(one, facts(one)), one) for one in inns]
    )


def known_page(fresh: Page, one: Inn) -> KnownPage:
    root = parse(fresh)
    assert not isinstance(root, Failure)
    return KnownPage(fresh, root, ValueIndex(root), [known(one)])


def counts(found: Held, name: str) -> tuple[int, int, int, int]:
    return (
        len(found.correct(name)),
        len(found.misplaced(name)),
        len(found.vanished(name)),
        len(found.replaced(name)),
    )


def test_what_is_found_as_it_was_known_is_right() -> None:
    found = held(rows)
    for name in ("name", "phone", "owner", "price"):
        assert counts(found, name) == (20, 0, 0, 0)
        assert not found.is_broken(name)
        assert not found.has_vanished(name)
        assert not found.has_changed(name)


def test_what_stands_elsewhere_is_misplaced() -> None:
    found = held(lambda one: rows(one, "Ring us"))
    assert counts(found, "phone") == (0, 20, 0, 0)
    assert found.is_broken("phone")
    assert not found.has_vanished("phone")


def test_what_stands_nowhere_has_vanished() -> None:
    found = held(lambda one: rows(one)[1:])
    assert counts(found, "phone") == (0, 0, 20, 0)
    assert found.has_vanished("phone")
    assert not found.is_broken("phone")


def test_what_the_site_has_replaced_by_its_like_has_changed() -> None:
    found = held(lambda one: [("Phone:", f"0{200 + one.number} 77 {one.number + 1000}"), *rows(one)[1:]])
    assert counts(found, "phone") == (0, 0, 0, 20)
    assert found.has_changed("phone")
    assert not found.is_broken("phone")


def test_what_is_unlike_all_before_has_not() -> None:
    found = held(lambda one: [("Phone:", f"see page {one.number}"), *rows(one)[1:]])
    assert counts(found, "phone") == (0, 0, 0, 20)
    assert not found.has_changed("phone")


def test_the_old_value_of_a_changing_attribute_may_be_on_the_page_by_chance() -> None:
    found = held(lambda one: [*rows(one)[:2], ("Before:", one.price), ("Price:", f"£{one.number + 40}.10")])
    assert counts(found, "price") == (0, 0, 0, 0)
    lost = held(lambda one: [*rows(one)[:2], ("From", one.price)])
    assert counts(lost, "price") == (0, 20, 0, 0)


@pytest.mark.parametrize(("moved", "is_broken"), [(1, False), (2, True)])
def test_more_than_one_in_twenty_must_fail(moved: int, is_broken: bool) -> None:
    found = held(lambda one: rows(one, "Ring us" if one.number < moved else "Phone:"))
    assert counts(found, "phone") == (20 - moved, moved, 0, 0)
    assert found.is_broken("phone") is is_broken


def test_if_most_of_what_is_not_found_is_not_there_the_rest_is_there_by_chance() -> None:
    found = held(lambda one: rows(one, "Ring us") if one.number < 4 else rows(one)[1:])
    assert counts(found, "phone") == (0, 4, 16, 0)
    assert not found.is_broken("phone")
    assert found.has_vanished("phone")


def test_pages_on_which_nothing_known_stands_are_left_out() -> None:
    stranger = known_page(Page.from_text(INNS[30].url, "<h1>Gone</h1>"), INNS[30])
    found = field_test(WRAPPER, [stranger, known_page(page(INNS[1]), INNS[1])])
    assert [pair.before["name"] for pair in found.pairs] == [(INNS[1].name,)]


# ---- values near the old ones


def near(facts: Callable[[Inn], Facts], inns: Sequence[Inn] = TWENTY) -> dict[str, str]:
    found = held(facts, inns)
    rules = replace(found.wrapper.attributes["price"], shapes=("price",))
    return near_values(rules, "price", found.vanished("price"))


def dearer(one: Inn, by: int = 1) -> str:
    return f"£{10 + one.number % 23 + by}.75"


def test_a_new_price_near_the_old_one_is_found_where_all_pages_have_it() -> None:
    found = near(lambda one: [*rows(one)[:2], ("From", dearer(one))])
    assert found == {one.url: dearer(one) for one in TWENTY}


@pytest.mark.parametrize(
    "facts",
    [
        lambda one: [*rows(one)[:2], ("From", dearer(one)), ("Child", dearer(one, 2))],  # which of two?
        lambda one: [*rows(one)[:2], ("From", dearer(one, 60))],  # not near
        lambda one: (
            [*rows(one)[:2], ("From", dearer(one))] if one.number % 3 else rows(one)[:2]
        ),  # not on all
        lambda one: [*rows(one)[:2], ("From", dearer(one).replace("£", "$"))],  # of another currency
        lambda one: rows(one)[:2],
    ],
    ids=["two", "far", "some", "currency", "none"],
)
def test_in_doubt_no_value_is_near(facts: Callable[[Inn], Facts]) -> None:
    assert near(facts) == {}


def test_four_pages_are_too_few_to_tell() -> None:
    assert near(lambda one: [*rows(one)[:2], ("From", dearer(one))], TWENTY[:4]) == {}
    assert len(near(lambda one: [*rows(one)[:2], ("From", dearer(one))], TWENTY[:5])) == 5
