"""A page held against what is known of it: what is kept, edited, mistaken or lost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom import Page, Wrapper
from siteloom.core.model import Failure
from siteloom.html.parser import parse
from siteloom.maintenance.page_comparison import FreshPage, Pair, pairs
from tests.maintenance.inns import INNS, LIST, WRAPPER, Inn, html, list_page

ONE = INNS[0]


def fresh(page: Page, wrapper: Wrapper = WRAPPER) -> FreshPage:
    root = parse(page)
    assert not isinstance(root, Failure)
    return FreshPage(page, root, wrapper.records_of(page, root))


def pair(now: str, **before: str | Sequence[str]) -> Pair:
    """What was known of a page, and the page as it is now."""
    known = {name: (texts,) if isinstance(texts, str) else tuple(texts) for name, texts in before.items()}
    page = fresh(Page.from_text(ONE.url, now))
    (found,) = pairs([known], page, ["name"], is_list=False)
    return found


def named(name: str, extra: str = "") -> str:
    return f"<h1>{name}</h1><p>{extra}</p>"


# ---- one value


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("The Blue Fern", "The Blue Fern"),
        ("The Blue Fern", "THE BLUE FERN"),
        ("The Blue Fern", " The&nbsp; Blue\n Fern "),
        ("Ada's", "Ada\u2019s"),
        ("Tea - Room", "Tea \u2013 Room"),
        ("Straße", "STRASSE"),
        ("Bluefern", "Blue\u00adfern"),
    ],
)
def test_a_value_is_kept_however_it_is_written(before: str, now: str) -> None:
    found = pair(named(now), name=before)
    assert found.is_unchanged("name")
    assert not found.is_mistaken("name")
    assert not found.is_lost("name")


def test_another_value_is_a_mistake() -> None:
    found = pair(named("The Old Mill"), name="The Blue Fern")
    assert not found.is_unchanged("name")
    assert not found.is_edited("name")
    assert found.is_mistaken("name")


def test_a_value_that_the_site_has_edited_is_none() -> None:
    found = pair(named("The Blue Ferns Inn"), name="The Blue Fern Inn")
    assert not found.is_unchanged("name")
    assert found.is_edited("name")
    assert not found.is_mistaken("name")


def test_what_is_like_the_old_value_is_a_mistake_if_that_still_stands_on_the_page() -> None:
    found = pair(named("About The Blue Fern today", "The Blue Fern"), name="The Blue Fern")
    assert not found.is_edited("name")
    assert found.is_mistaken("name")


def test_half_of_the_words_must_stay() -> None:
    assert pair(named("a b c x"), name="a b c d").is_edited("name")  # 3 of 5
    assert pair(named("a b"), name="a").is_edited("name")  # the old value has gained a word
    assert pair(named("a b x"), name="a b c").is_edited("name")  # 2 of 4
    assert not pair(named("a x y"), name="a b c").is_edited("name")  # 1 of 5


def test_nothing_found_is_lost_and_not_mistaken() -> None:
    found = pair("<p>The Blue Fern</p>", name="The Blue Fern")
    assert found.is_lost("name")
    assert not found.is_mistaken("name")
    assert found.now("name") == ()


def test_what_was_not_known_is_neither_lost_nor_mistaken() -> None:
    found = pair(named("The Blue Fern"), phone="0117 496 1000")
    assert not found.is_lost("name")
    assert not found.is_mistaken("name")
    assert found.is_lost("phone")


# ---- several values


def dishes(*names: str) -> str:
    return f"<ul>{''.join(f'<li>{name}</li>' for name in names)}</ul>"


def test_several_values_are_kept_in_any_order() -> None:
    assert pair(dishes("PIE", "Soup"), dishes=["Soup", "Pie"]).is_unchanged("dishes")


@pytest.mark.parametrize(
    ("now", "is_kept"),
    [
        (("a1", "b2"), True),
        (("a1", "b2", "x", "y", "z"), True),
        (("a1",), False),
        (("x", "y", "z", "a1"), False),
    ],
)
def test_half_of_several_values_are_enough(now: Sequence[str], is_kept: bool) -> None:
    found = pair(dishes(*now), dishes=["a1", "b2", "c3", "d4"])
    assert found.is_unchanged("dishes") is is_kept
    assert found.is_mistaken("dishes") is not is_kept


def test_a_few_values_may_be_added_but_not_a_whole_menu() -> None:
    assert pair(dishes("Soup", "Pie", "Cake"), dishes=["Soup"]).is_unchanged("dishes")
    assert not pair(dishes("Soup", "Pie", "Cake", "Tea"), dishes=["Soup"]).is_unchanged("dishes")


# ---- what came of the old values


def test_a_finding_tells_where_the_old_value_stands() -> None:
    found = pair("<body><p>x</p><p>The Blue Fern</p></body>", name="The Blue Fern")
    assert found.finding("name") == "'The Blue Fern' still stands at /html[1]/body[1]/p[2]/text()[1]"


def test_a_finding_tells_that_nothing_is_left() -> None:
    assert pair(named("x"), phone="0117 496 1000").finding("phone") == "no longer on the page"


def test_a_finding_tells_what_was_withheld() -> None:
    found = pair("<h1>x</h1><b>Price:</b><i>on request</i>", price="£12")
    assert found.is_lost("price")
    assert found.finding("price") == "'on request' was withheld: not a price"


@pytest.mark.parametrize(
    ("text", "is_there"), [("blue", True), ("Fern", True), ("mill", False), ("", False), (" ", False)]
)
def test_a_page_has_what_stands_anywhere_on_it(text: str, is_there: bool) -> None:
    page = fresh(Page.from_text(ONE.url, "<p>The blue <a href='/x' title='Fern'>one</a></p>"))
    assert page.has(text) is is_there


WORDS = st.sampled_from(["blue", "Fern", "mill", "OLD", "7"])
names = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)


@given(names, names, st.booleans())
def test_a_value_is_kept_or_edited_or_mistaken_or_lost_and_only_one_of_these(
    before: str, now: str, is_there: bool
) -> None:
    found = pair(named(now) if is_there else "<p>x</p>", name=before)
    states = [found.is_lost("name"), found.is_mistaken("name")]
    if is_there:
        states += [found.is_unchanged("name"), found.is_edited("name") and not found.is_unchanged("name")]
    assert states.count(True) == 1


# ---- the records of lists


def known_of(inns: Sequence[Inn]) -> list[dict[str, tuple[str, ...]]]:
    return [{"name": (one.name,), "phone": (one.phone,), "price": (one.price,)} for one in inns]


def list_pairs(before: Sequence[Inn], page: Page) -> list[Pair]:
    return pairs(known_of(before), fresh(page, LIST), ["name", "phone"], is_list=True)


def test_records_of_a_list_are_told_by_what_tells_them_apart() -> None:
    found = list_pairs(INNS[:5], list_page(INNS[4::-1]))
    assert [one.before["name"] for one in found] == [(one.name,) for one in INNS[:5]]
    assert all(
        one.is_unchanged("name") and one.is_unchanged("phone") and one.is_unchanged("price") for one in found
    )


def test_records_that_a_list_does_not_have_any_more_are_left_out() -> None:
    found = list_pairs(INNS[:5], list_page([*INNS[2:5], *INNS[10:13]]))
    assert [one.before["name"] for one in found] == [(one.name,) for one in INNS[2:5]]


def test_a_record_that_stands_on_the_page_and_is_not_found_is_lost() -> None:
    extra = f"<div class=other>{INNS[0].name}, {INNS[0].phone}</div>"
    found = list_pairs(INNS[:3], list_page(INNS[1:3], extra=extra))
    assert [one.is_lost("name") for one in found] == [True, False, False]
    assert found[0].after is None


def test_of_records_with_the_same_key_the_first_counts() -> None:
    page = list_page([INNS[0]], extra=list_page([INNS[0]]).html.decode().replace("0117", "0999"))
    (found,) = list_pairs(INNS[:1], page)
    assert found.now("phone") == (INNS[0].phone,)


def test_without_a_constant_attribute_records_of_lists_cannot_be_told() -> None:
    assert pairs(known_of(INNS[:3]), fresh(list_page(INNS[:3]), LIST), [], is_list=True) == []


def test_a_page_that_is_no_list_has_one_record() -> None:
    known = {"name": (ONE.name,), "phone": (ONE.phone,)}
    (found,) = pairs([known], fresh(Page.from_text(ONE.url, html(ONE))), ["name"], is_list=False)
    assert found.is_unchanged("phone")
    assert found.after is not None
    assert found.after.values["dishes"] == ONE.dishes
