"""The three tests, each on what it is for: values lost, other values, pages unlike all before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from siteloom import Page
from siteloom.core.model import Attribute, Change
from siteloom.maintenance.change_tests import check, monitor
from siteloom.maintenance.watched_pages import Past, Watch, watch
from siteloom.templates.signature import signature
from tests.maintenance import guide
from tests.maintenance.inns import INNS, LIST, WRAPPER, Inn, list_page, page, pages, rows, with_footprint

TWENTY = INNS[:20]
Facts = list[tuple[str, str]]


def watching(inns: Sequence[Inn] = TWENTY) -> Watch:
    found = watch(WRAPPER, pages(inns), name="inns")
    assert len(found.bellwethers) == len(inns)
    return found


def visited(
    watched: Watch, facts: Callable[[Inn, int], Facts | None], inns: Sequence[Inn] = TWENTY
) -> list[Page]:
    """The pages as they are now: with other facts, or as they were where there are none."""
    assert {one.page.url for one in watched.bellwethers} == {one.url for one in inns}
    return [page(one, facts(one, number)) for number, one in enumerate(inns)]


def told(changes: Sequence[Change]) -> list[tuple[str, tuple[str, ...], float]]:
    return [(change.test, change.attributes, change.share) for change in changes]


def without(label: str) -> Callable[[Inn, int], Facts]:
    return lambda one, _: [row for row in rows(one) if row[0] != label]


def relabelled(old: str, new: str) -> Callable[[Inn, int], Facts]:
    return lambda one, _: [(new if label == old else label, text) for label, text in rows(one)]


# ---- null


def test_a_value_that_is_lost_on_all_pages_is_a_change() -> None:
    (change,) = monitor(watching(), visited(watching(), without("Phone:")))
    assert (change.wrapper, change.test, change.attributes, change.share) == ("inns", "null", ("phone",), 1.0)
    assert len(change.evidence) == 5
    for found in change.evidence:
        (one,) = (one for one in TWENTY if one.url == found.url)
        assert (found.attribute, found.before, found.after) == ("phone", (one.phone,), ())
        assert found.finding == "no longer on the page"


def test_evidence_tells_where_a_lost_value_still_stands() -> None:
    (change,) = monitor(watching(), visited(watching(), relabelled("Phone:", "Ring us")))
    (one,) = (one for one in TWENTY if one.url == change.evidence[0].url)
    assert change.evidence[0].finding == (
        f"{one.phone!r} still stands at /html[1]/body[1]/dl[1]/dd[1]/text()[1]"
    )


def no_facts(one: Inn, number: int) -> Facts:
    return []


def test_all_attributes_that_are_lost_are_named_in_one_change() -> None:
    (change,) = monitor(watching(), visited(watching(), no_facts))
    assert (change.test, change.attributes, change.share) == ("null", ("phone", "owner", "price"), 1.0)
    assert {found.attribute for found in change.evidence} == {"phone", "owner", "price"}


def test_the_share_is_that_of_the_pages_that_had_a_value() -> None:
    def facts(one: Inn, number: int) -> Facts:
        return rows(one) if number % 2 else rows(one)[1:]

    half = [page(one, facts(one, number)) for number, one in enumerate(TWENTY)]
    started = watch(WRAPPER, half, name="inns")
    had = [number for number in range(20) if number % 2]
    lost = [
        page(one, rows(one)[1:] if number in had[:6] else facts(one, number))
        for number, one in enumerate(TWENTY)
    ]
    assert told(monitor(started, lost)) == [("null", ("phone",), 0.6)]


# ---- value


def test_two_fields_that_are_swapped_are_a_change() -> None:
    def swapped(one: Inn, _: int) -> Facts:
        return [("Phone:", one.owner), ("Owner:", one.phone), ("Price:", one.price)]

    (change,) = monitor(watching(), visited(watching(), swapped))
    assert (change.test, change.attributes, change.share) == ("value", ("phone", "owner"), 1.0)
    first = change.evidence[0]
    (one,) = (one for one in TWENTY if one.url == first.url)
    assert (first.before, first.after) == ((one.phone,), (one.owner,))
    assert first.finding.startswith(f"{one.phone!r} still stands at ")


def test_a_constant_attribute_that_is_of_another_page_now_is_a_change() -> None:
    def shifted(one: Inn, number: int) -> Facts:
        return [("Phone:", one.phone), ("Owner:", INNS[number + 1].owner), ("Price:", one.price)]

    (change,) = monitor(watching(), visited(watching(), shifted))
    assert (change.test, change.attributes, change.share) == ("value", ("owner",), 1.0)
    assert {found.finding for found in change.evidence} == {"no longer on the page"}


def test_the_phone_of_another_page_is_a_change_although_both_have_the_same_area_code() -> None:
    """Half of its words are the same, but nobody has edited the numbers of all pages."""

    def shifted(one: Inn, number: int) -> Facts:
        return [("Phone:", INNS[number + 1].phone), *rows(one)[1:]]

    assert told(monitor(watching(), visited(watching(), shifted))) == [("value", ("phone",), 1.0)]


def test_a_changing_attribute_that_gives_what_is_unlike_all_before_is_a_change() -> None:
    """A price of another kind: the contract alone can tell."""

    def other_price(one: Inn, number: int) -> Facts:
        return [*rows(one)[:2], ("Price:", f"£{number + 5}00,000")]

    (change,) = monitor(watching(), visited(watching(), other_price))
    assert (change.test, change.attributes, change.share) == ("value", ("price",), 1.0)
    assert change.evidence[0].finding.endswith("instead of 10.5 to 29.5")


def test_a_changing_attribute_with_the_text_of_another_field_is_a_change() -> None:
    untyped = replace(
        WRAPPER,
        attributes={
            **WRAPPER.attributes,
            "price": replace(WRAPPER.attributes["price"], attribute=Attribute(False, constant=False)),
        },
    )
    started = watch(untyped, pages(TWENTY), name="inns")
    mixed_up = visited(started, lambda one, _: [*rows(one)[:2], ("Price:", one.owner)])
    (change,) = monitor(started, mixed_up)
    assert (change.test, change.attributes, change.share) == ("value", ("price",), 1.0)
    assert {found.finding for found in change.evidence} == {"no digits"}


def test_a_changing_attribute_that_is_the_same_everywhere_is_a_change_if_it_was_not() -> None:
    (change,) = monitor(
        watching(), visited(watching(), lambda one, _: [*rows(one)[:2], ("Price:", "£17.20")])
    )
    assert (change.test, change.attributes, change.share) == ("value", ("price",), 1.0)
    assert {found.finding for found in change.evidence} == {"the same value on nearly all pages"}


def test_new_prices_are_none() -> None:
    fresh = visited(watching(), lambda one, number: [*rows(one)[:2], ("Price:", f"£{number + 12}.90")])
    assert monitor(watching(), fresh) == []


# ---- shingle


def test_a_redesign_is_seen_by_all_tests_that_it_fails() -> None:
    found = monitor(guide.watched(), guide.pages("redesign"))
    assert [(change.test, change.attributes, change.share) for change in found] == [
        ("shingle", guide.NAMES, 1.0),
        ("null", guide.NAMES, 1.0),
    ]
    assert {one.finding for one in found[0].evidence} == {"unlike the pages that the wrapper is for"}
    assert {(one.attribute, one.before, one.after) for one in found[0].evidence} == {("", (), ())}
    assert len({one.url for one in found[0].evidence}) == 5


def test_a_mild_change_is_seen_where_it_is() -> None:
    (change,) = monitor(guide.watched(), guide.pages("mild-change"))
    assert (change.wrapper, change.test, change.attributes, change.share) == (
        "guide",
        "null",
        ("phone",),
        1.0,
    )
    assert all("still stands at" in found.finding for found in change.evidence)


def with_signatures(inns: Sequence[Inn]) -> Watch:
    accepted = [found.hex() for one in inns if (found := signature(page(one).html))]
    return watch(with_footprint(WRAPPER, accepted), pages(inns), name="inns")


_TAGS = ("section", "article", "aside", "nav", "em", "h4", "table", "form", "p", "i")
NEW_FRAME = "".join(
    f"<{one}><{other}><{third}>x</{third}></{other}></{one}>"
    for one in _TAGS[:6]
    for other in _TAGS[2:8]
    for third in _TAGS[4:]
)


def test_pages_that_look_different_and_give_what_they_gave_have_drifted() -> None:
    started = with_signatures(TWENTY)
    found = check(started, [page(one, extra=NEW_FRAME) for one in TWENTY])
    assert found.changes == ()
    assert set(found.drifted) == {one.url for one in TWENTY}
    assert check(started, pages(TWENTY)).drifted == ()


def test_pages_that_look_different_and_give_something_else_are_a_change() -> None:
    started = with_signatures(TWENTY)
    fresh = [
        page(one, rows(one)[1:] if number < 8 else None, extra=NEW_FRAME) for number, one in enumerate(TWENTY)
    ]
    found = check(started, fresh)
    assert told(found.changes) == [("shingle", ("phone",), 0.4), ("null", ("phone",), 0.4)]
    assert len(found.drifted) == 12


def test_a_wrapper_without_a_footprint_fails_no_shingle_test() -> None:
    fresh = [page(one, rows(one)[1:], extra=NEW_FRAME) for one in TWENTY]
    assert [change.test for change in monitor(watching(), fresh)] == ["null"]


# ---- what still stands on the page


@pytest.mark.parametrize(("count", "is_change"), [(2, False), (3, True)])
def test_what_still_stands_and_is_not_found_is_a_change_on_fewer_pages(count: int, is_change: bool) -> None:
    moved = relabelled("Phone:", "Ring us")
    fresh = visited(watching(), lambda one, number: moved(one, number) if number < count else None)
    assert bool(monitor(watching(), fresh)) is is_change
    gone = visited(watching(), lambda one, number: rows(one)[1:] if number < count else None)
    assert monitor(watching(), gone) == []


def test_what_stands_inside_another_text_may_be_there_by_chance() -> None:
    fresh = [
        page(one, rows(one)[1:], extra=f"<p>Old number: {one.phone}, out of use</p>")
        if one.number < 3
        else page(one)
        for one in TWENTY
    ]
    assert monitor(watching(), fresh) == []


# ---- rules that die


def two_rules(count: int) -> tuple[Watch, Callable[[Inn, int], Facts]]:
    """A watch of inns of which so many have a mobile phone, which another rule finds."""

    def facts(one: Inn, number: int) -> Facts:
        return rows(one, "Mobile:" if number < count else "Phone:")

    started = watch(
        WRAPPER, [page(one, facts(one, number)) for number, one in enumerate(TWENTY)], name="inns"
    )
    return started, facts


@pytest.mark.parametrize("count", [3, 6])
def test_a_rule_that_dies_is_a_change_however_few_pages_it_is_for(count: int) -> None:
    started, facts = two_rules(count)
    fresh = visited(started, lambda one, number: facts(one, number)[1 if number < count else 0 :])
    assert told(monitor(started, fresh)) == [("null", ("phone",), count / 20)]


def test_as_few_lost_values_of_several_rules_are_none() -> None:
    started, facts = two_rules(6)
    fresh = visited(
        started, lambda one, number: facts(one, number)[1 if number in (4, 5, 6, 7, 8, 9) else 0 :]
    )
    assert monitor(started, fresh) == []


def test_a_rule_of_two_pages_tells_nothing() -> None:
    started, facts = two_rules(2)
    fresh = visited(started, lambda one, number: facts(one, number)[1 if number < 2 else 0 :])
    assert monitor(started, fresh) == []


def test_a_rule_that_finds_something_else_is_a_change_too() -> None:
    started, facts = two_rules(5)
    fresh = visited(
        started,
        lambda one, number: (
            [("Mobile:", f"0{number}23 555 77{number}"), *rows(one)[1:]] if number < 5 else facts(one, number)
        ),
    )
    assert told(monitor(started, fresh)) == [("value", ("phone",), 0.25)]


# ---- thresholds


def lost_on(count: int) -> Callable[[Inn, int], Facts | None]:
    return lambda one, number: rows(one)[1:] if number < count else None


@pytest.mark.parametrize(
    ("count", "threshold", "is_change"),
    [(6, 0.3, False), (7, 0.3, True), (2, 0.1, False), (3, 0.1, True), (10, 0.5, False), (11, 0.5, True)],
)
def test_what_stands_on_more_than_the_threshold_is_a_change(
    count: int, threshold: float, is_change: bool
) -> None:
    fresh = visited(watching(), lost_on(count))
    assert bool(monitor(watching(), fresh, threshold)) is is_change


def test_the_default_is_three_of_ten() -> None:
    assert monitor(watching(), visited(watching(), lost_on(6))) == []
    assert told(monitor(watching(), visited(watching(), lost_on(7)))) == [("null", ("phone",), 0.35)]


def test_one_page_alone_is_no_change_of_a_site() -> None:
    three = TWENTY[:3]
    started = watching(three)
    assert monitor(started, visited(started, lost_on(1), three)) == []
    assert monitor(started, visited(started, lost_on(2), three)) != []


def test_where_only_one_page_is_watched_it_alone_tells() -> None:
    one = TWENTY[:1]
    started = watching(one)
    assert told(monitor(started, visited(started, lost_on(1), one))) == [("null", ("phone",), 1.0)]


def test_a_site_that_often_loses_values_raises_an_alarm_later() -> None:
    restless = replace(watching(), past={"phone": Past(filled=200, lost=50, compared=150)})
    for count, is_change in ((6, False), (10, False), (12, True)):
        fresh = visited(watching(), lost_on(count))
        assert bool(monitor(restless, fresh)) is is_change


def test_a_site_that_never_loses_a_value_raises_an_alarm_earlier() -> None:
    quiet = replace(watching(), past={"phone": Past(filled=200, compared=200)})
    fresh = visited(watching(), lost_on(4))
    assert monitor(watching(), fresh) == []
    assert told(monitor(quiet, fresh)) == [("null", ("phone",), 0.2)]
    assert monitor(quiet, visited(watching(), lost_on(3))) == []  # half of the default is the least


def test_a_short_past_tells_nothing() -> None:
    new = replace(watching(), past={"phone": Past(filled=49, lost=40, compared=9)})
    assert monitor(new, visited(watching(), lost_on(7))) != []


def test_visits_that_are_well_are_remembered_and_others_are_not() -> None:
    started = watching()
    seen = check(started, visited(started, lost_on(5)))
    assert seen.changes == ()
    assert seen.watch.past["phone"] == Past(filled=20, lost=5, compared=15)
    assert seen.watch.past["name"] == Past(filled=20, compared=20)
    ill = check(seen.watch, visited(started, lost_on(20)))
    assert ill.changes
    assert ill.watch == seen.watch


def test_a_site_that_loses_a_quarter_of_its_phones_each_time_comes_to_be_known() -> None:
    """After some visits, 35 % are nothing unusual any more."""
    started = watching()
    watched = started
    for visit in range(4):
        lost = {(number * 7 + visit) % 20 for number in range(5)}
        fresh = visited(started, lambda one, number, lost=lost: rows(one)[1:] if number in lost else None)  # type: ignore[misc]
        found = check(watched, fresh)
        assert found.changes == ()
        watched = found.watch
    assert watched.past["phone"].lost == 20
    seven = visited(started, lost_on(7))
    assert monitor(started, seven) != []
    assert monitor(watched, seven) == []


# ---- constant and changing


def test_values_that_change_from_version_to_version_are_learned_to_be_changing() -> None:
    def on_visit(visit: int) -> list[Page]:
        return [
            page(one, [rows(one)[0], ("Owner:", INNS[(number * 3 + visit) % 40].owner), rows(one)[2]])
            for number, one in enumerate(TWENTY)
        ]

    attributes = dict(WRAPPER.attributes)
    attributes["owner"] = replace(attributes["owner"], attribute=Attribute(multi=False))
    unsure = replace(WRAPPER, attributes=attributes)
    once = watch(unsure, on_visit(0))
    assert [change.attributes for change in monitor(once, on_visit(5))] == [("owner",)]
    several = watch(unsure, [*on_visit(0), *on_visit(2), *on_visit(4)])
    assert several.past["owner"] == Past(filled=40, compared=40, mistaken=40)
    assert several.past["phone"] == Past(filled=40, compared=40)
    assert monitor(several, on_visit(5)) == []
    # What stays as it is is still looked at.
    others = [page(one, [("Phone:", f"0{n}23 555 77{n}"), *rows(one)[1:]]) for n, one in enumerate(TWENTY)]
    assert told(monitor(several, others)) == [("value", ("phone",), 1.0)]


# ---- what is watched after a visit


def test_pages_on_which_all_is_well_are_watched_as_they_are_now() -> None:
    started = watching()
    dearer = visited(
        started, lambda one, number: [*rows(one)[number < 2 :][:-1], ("Price:", f"£{number + 12}.90")]
    )
    after = check(started, dearer).watch
    prices = {one.page.url: one.records[0]["price"] for one in after.bellwethers}
    assert prices[TWENTY[5].url] == ("£17.90",)
    assert prices[TWENTY[0].url] == (TWENTY[0].price,)  # its phone is lost, so it stays as it was
    pages_now = {one.page.url: one.page.html for one in after.bellwethers}
    assert pages_now[TWENTY[5].url] == dearer[5].html
    assert pages_now[TWENTY[0].url] == page(TWENTY[0]).html


# ---- lists


def lists(offset: int = 0) -> list[Page]:
    return [list_page(INNS[start + offset : start + 8], number=start) for start in range(0, 40, 8)]


def test_lists_whose_records_come_and_go_are_well() -> None:
    started = watch(LIST, lists(), name="lists")
    fresh = [
        list_page([*reversed(INNS[start + 2 : start + 8]), INNS[start - 1]], number=start)
        for start in range(0, 40, 8)
    ]
    assert monitor(started, fresh) == []


def test_lists_whose_records_lose_a_value_are_a_change() -> None:
    started = watch(LIST, lists(), name="lists")
    fresh = [Page(one.url, one.html.replace(b"Phone:", b"Ring:")) for one in lists()]
    assert told(monitor(started, fresh)) == [("null", ("phone",), 1.0)]


def test_lists_whose_records_cannot_be_found_any_more_are_a_change() -> None:
    started = watch(LIST, lists(), name="lists")
    fresh = [Page(one.url, one.html.replace(b"class=card", b"class=tile")) for one in lists()]
    assert told(monitor(started, fresh)) == [("null", ("name", "phone", "price"), 1.0)]


def test_a_lost_value_on_one_page_of_a_list_is_no_change_however_many_records_it_has() -> None:
    started = watch(LIST, lists(), name="lists")
    fresh = lists()
    fresh[0] = Page(fresh[0].url, fresh[0].html.replace(b"Phone:", b"Ring:"))
    assert monitor(started, fresh, threshold=0.15) == []
