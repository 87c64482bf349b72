"""Relearning: what works is reused, what is broken is repaired by what is known, the rest is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random

import pytest

import siteloom
from siteloom import Example, Page, Record, Wrapper, learn
from siteloom.apps.demo.sites import Layout
from siteloom.maintenance.change_tests import check, monitor
from siteloom.maintenance.repair_result import Relearned
from siteloom.maintenance.watched_pages import watch
from siteloom.maintenance.wrapper_repair import relearn
from siteloom.templates.signature import signature
from tests.apps.demo.sites import guide, of_kind
from tests.maintenance import inns
from tests.maintenance.guide import (
    CHANGING,
    COUNT,
    NAMES,
    changed,
    mistakes,
    pages,
    records,
    restaurants,
    rewritten,
    watched,
    within_frame,
    without_phone,
    wrapper,
)


@cache
def relearned(layout: Layout) -> Relearned:
    return relearn(wrapper(), records(), pages(layout))


def states(found: Relearned) -> dict[str, str]:
    return {name: outcome.state for name, outcome in found.attributes.items() if outcome.state != "kept"}


# ---- reuse


def test_a_wrapper_that_still_works_is_reused() -> None:
    found = relearned("original")
    assert (found.outcome, found.confidence, found.reason) == ("reused", 1.0, "")
    assert found.annotate == ()
    assert found.values == ()
    assert found.wrapper.layouts == (found.wrapper,)
    for name, rules in wrapper().attributes.items():
        assert found.wrapper.attributes[name].rules is rules.rules
        right = sum(bool(one.truth[name]) for one in restaurants())
        outcome = found.attributes[name]
        assert (outcome.state, outcome.right, outcome.tested) == ("kept", right, right)


def test_a_reused_wrapper_knows_what_its_pages_look_like_now() -> None:
    tags = ("aside", "section", "article", "header", "figure", "menu", "main", "dialog")
    frame = "".join(f"<{one}><{other}><b>x</b></{other}></{one}>" for one in tags for other in tags)
    fresh = [
        rewritten(page, lambda html: html.replace("</body>", f"{frame}{frame}</body>")) for page in pages()
    ]
    new = {one.hex() for page in fresh if (one := signature(page.html))}
    assert not new <= set(wrapper().footprint.accepted)
    found = relearn(wrapper(), records(), fresh)
    assert found.outcome == "reused"
    assert new <= set(found.wrapper.footprint.accepted)
    assert set(wrapper().footprint.accepted) <= set(found.wrapper.footprint.accepted)
    assert set(wrapper().footprint.masks) <= set(found.wrapper.footprint.masks)
    assert check(watch(found.wrapper, pages()), fresh).drifted == ()


def test_values_that_the_site_itself_has_changed_are_no_fault_of_the_rules() -> None:
    def moved(number: int, page: Page) -> Page:
        return changed(page, r"(<dt>Phone:</dt>\n<dd>)[^<]*", rf"\g<1>0{number:03} 77 {number}55")

    fresh = [moved(number, page) for number, page in enumerate(pages())]
    found = relearn(wrapper(), records(), fresh)
    assert found.outcome == "reused"
    assert states(found) == {"phone": "changing"}
    assert found.wrapper.attributes["phone"].attribute.constant is False
    assert found.wrapper.attributes["phone"].rules is wrapper().attributes["phone"].rules
    assert monitor(watch(found.wrapper, pages()), fresh) == []


# ---- repair


def test_after_a_mild_change_only_what_is_broken_is_learned_anew() -> None:
    found = relearned("mild-change")
    assert (found.outcome, found.reason, found.annotate) == ("repaired", "", ())
    assert states(found) == {"phone": "repaired"}
    assert found.confidence >= 0.95
    old, new = wrapper().attributes, found.wrapper.attributes
    assert [name for name in NAMES if new[name].rules != old[name].rules] == ["phone"]
    assert all(new[name].rules is old[name].rules for name in NAMES if name != "phone")
    assert mistakes(found.wrapper, restaurants("mild-change")) == []


def test_the_old_layout_comes_out_right_as_long_as_pages_have_it() -> None:
    found = relearned("mild-change").wrapper
    assert mistakes(found, restaurants()) == []
    assert len(found.layouts) == 2
    assert found.layouts[1].attributes["phone"].rules == wrapper().attributes["phone"].rules


def test_a_day_on_which_both_layouts_are_served_comes_out_right() -> None:
    old, new = restaurants(), restaurants("mild-change")
    mixed = [new[number] if number % 2 else one for number, one in enumerate(old)]
    found = relearn(wrapper(), records(), [one.page for one in mixed])
    assert found.outcome == "repaired"
    assert states(found) == {"phone": "repaired"}
    for day in (mixed, old, new):
        assert mistakes(found.wrapper, day) == []


def test_old_rules_are_kept_beside_new_ones_for_pages_that_look_alike() -> None:
    """The names are renamed everywhere, the makers on four pages of five: both are found by no one layout."""

    def maker(number: int) -> str:
        return f"Maker {number * 7919 % 997}"

    def shop(number: int, classes: tuple[str, str]) -> Page:
        of_name, of_maker = classes
        lines = [f"<p class={of_maker}>{maker(number)}</p>", f"<p class=note>{number * 104729 % 991}</p>"]
        if number % 5 == 0:
            lines = [f"<p class=rare>{maker(number)}</p>", *lines[1:]][::-1]
        return Page.from_text(
            f"http://x/{number}", f"<p class={of_name}>Thing {number}</p>{''.join(lines)}<p>Bye</p>"
        )

    before, after = (
        [shop(number, classes) for number in range(40)] for classes in (("name", "maker"), ("title", "brand"))
    )
    examples = [
        Example(page, {"name": [f"Thing {number}"], "maker": [maker(number)]})
        for number, page in enumerate(before[:11])
    ]
    old = learn(examples, unlabelled=before)
    found = relearn(old, [old.extract(page) for page in before], after)
    assert states(found) == {"name": "repaired", "maker": "repaired"}
    assert set(old.attributes["maker"].rules) < set(found.wrapper.attributes["maker"].rules)
    for number, page in enumerate(after):
        assert found.wrapper.extract(page).values == {"name": (f"Thing {number}",), "maker": (maker(number),)}


def test_the_difference_is_shown_by_values() -> None:
    found = relearned("mild-change")
    assert len(found.values) == 5
    assert {(one.attribute, one.before) for one in found.values} == {("phone", ())}
    assert all(one.known == one.after != () for one in found.values)


def test_a_redesign_is_repaired_without_an_example() -> None:
    found = relearned("redesign")
    assert found.outcome == "repaired"
    assert states(found) == dict.fromkeys(NAMES, "repaired")
    assert mistakes(found.wrapper, restaurants("redesign")) == []
    assert mistakes(found.wrapper, restaurants()) == []


def test_values_that_are_only_near_what_is_known_are_a_guess_that_a_person_should_see() -> None:
    """The redesign has new prices and dates: that they are the right ones is not certain."""
    assert relearned("redesign").confidence <= 0.85
    known = {one.url: one.values for one in records()}
    for name, least in (("updated", 20), ("price", 4)):
        new = [one for one in restaurants("redesign") if one.truth[name] != known[one.page.url].get(name, ())]
        assert len(new) >= least
    constant = replace(
        wrapper(), attributes={name: wrapper().attributes[name] for name in NAMES if name not in CHANGING}
    )
    assert relearn(constant, records(), pages("redesign")).confidence > 0.9


def test_a_repaired_wrapper_can_be_kept_and_watched() -> None:
    found = Wrapper.from_json(relearned("mild-change").wrapper.to_json())
    assert found == relearned("mild-change").wrapper
    watching = watch(found, pages("mild-change"))
    assert monitor(watching, pages("mild-change")) == []
    assert monitor(watching, pages("redesign")) != []


def test_a_wrapper_is_repaired_again_and_again_and_keeps_two_earlier_layouts() -> None:
    second = relearn(relearned("mild-change").wrapper, records(), pages("redesign"))
    assert second.outcome == "repaired"
    assert len(second.wrapper.layouts) == 3
    for layout in ("original", "mild-change", "redesign"):
        assert mistakes(second.wrapper, restaurants(layout)) == []
    back = relearn(second.wrapper, records(), pages())
    assert back.outcome == "reused"


def test_two_constant_fields_that_are_swapped_are_repaired() -> None:
    """The labels stay where they are, and what they name changes places."""

    def swap(page: Page) -> Page:
        return changed(
            page,
            r"<dt>Cuisine:</dt>\n<dd>(.*?)</dd>\n<dt>Phone:</dt>\n<dd>(.*?)</dd>",
            r"<dt>Cuisine:</dt>\n<dd><i>\2</i></dd>\n<dt>Phone:</dt>\n<dd>\1</dd>",
            1,
        )

    fresh = [swap(page) for page in pages()]
    truths = [replace(one, page=page) for one, page in zip(restaurants(), fresh, strict=True)]
    assert {change.test for change in monitor(watched(), fresh)} >= {"value"}
    found = relearn(wrapper(), records(), fresh)
    assert found.outcome == "repaired"
    assert {"phone", "cuisine"} >= states(found).keys() >= {"phone"}
    with_phone = [one for one in truths if one.truth["phone"]]
    assert [one for one in mistakes(found.wrapper, with_phone) if one[1] == "phone"] == []


# ---- a person is needed


def test_values_that_have_vanished_are_asked_for() -> None:
    found = relearn(wrapper(), records(), list(map(without_phone, pages())))
    assert found.outcome == "needs-annotation"
    assert states(found) == {"phone": "vanished"}
    lost = sum(bool(one.truth["phone"]) for one in restaurants())
    assert re.fullmatch(r"phone: \d+ known values are on no page any more", found.reason)
    assert int(re.findall(r"\d+", found.reason)[0]) >= 0.9 * lost
    assert found.wrapper.attributes["phone"].rules == wrapper().attributes["phone"].rules


def test_the_pages_to_annotate_come_with_all_that_is_known_and_stands_on_them() -> None:
    found = relearn(wrapper(), records(), list(map(without_phone, pages())))
    assert len(found.annotate) == 5
    assert len({one.page.url for one in found.annotate}) == 5
    truth = {one.page.url: one.truth for one in restaurants()}
    for example in found.annotate:
        assert example.page.html == without_phone(example.page).html
        assert "phone" not in example.values
        for name in ("name", "address", "cuisine"):
            assert sorted(example.values[name]) == sorted(truth[example.page.url][name])
        siteloom.learn([example])  # all of it can be found


def test_what_can_be_repaired_is_repaired_although_something_else_has_vanished() -> None:
    no_email = [changed(page, r"<p>E-mail: <a [^>]*>[^<]*</a>", "", 1) for page in pages("mild-change")]
    found = relearn(wrapper(), records(), no_email)
    assert found.outcome == "needs-annotation"
    assert states(found) == {"phone": "repaired", "email": "vanished"}
    assert found.reason.startswith("email: ")
    truths = [replace(one, page=page) for one, page in zip(restaurants("mild-change"), no_email, strict=True)]
    assert [one for one in mistakes(found.wrapper, truths) if one[1] != "email"] == []


@pytest.mark.parametrize("count", [1, 2, 4])
def test_too_few_pages_are_not_enough_for_a_repair(count: int) -> None:
    with_phone = [n for n, one in enumerate(restaurants()) if one.truth["phone"]][:count]
    found = relearn(wrapper(), records(), [pages("mild-change")[number] for number in with_phone])
    if count == 1:  # a single page says nothing of a site
        assert found.outcome == "reused"
        return
    assert found.outcome == "needs-annotation"
    assert states(found) == {"phone": "unrepaired"}
    assert found.reason == f"phone: only {count} pages still have known values"
    assert {example.page.url for example in found.annotate} == {pages()[number].url for number in with_phone}
    assert all("phone" in example.values for example in found.annotate)


def test_twenty_pages_are_enough() -> None:
    found = relearn(wrapper(), records(), pages("mild-change")[:20])
    assert found.outcome == "repaired"
    assert mistakes(found.wrapper, restaurants("mild-change")) == []


def test_pages_of_which_nothing_is_known_cannot_be_compared() -> None:
    strangers = [replace(page, url=f"{page.url}?new") for page in pages("mild-change")]
    for fresh in ([], strangers):
        found = relearn(wrapper(), records(), fresh)
        assert (found.outcome, found.confidence, found.annotate) == ("needs-annotation", 0.0, ())
        assert found.reason == "none of the pages fetched again has a record that is known, or anything of it"


def test_without_records_nothing_can_be_compared() -> None:
    assert relearn(wrapper(), [], pages("mild-change")).outcome == "needs-annotation"


def test_pages_that_are_gone_do_no_harm() -> None:
    fresh = pages("mild-change")
    for number in range(0, COUNT, 3):
        fresh[number] = within_frame(fresh[number], "404", "<p>Nothing here.</p>")
    fresh[1] = Page(fresh[1].url, b"")
    found = relearn(wrapper(), records(), fresh)
    assert states(found) == {"phone": "repaired"}
    assert mistakes(found.wrapper, restaurants("mild-change")) == []


# ---- what is known may be wrong


@pytest.mark.parametrize("layout", ["mild-change", "redesign"])
def test_some_wrong_records_do_no_harm(layout: Layout) -> None:
    """Of a few, one in twenty, all values are those of another restaurant."""
    random = Random(layout)
    known = list(records())
    for number in random.sample(range(COUNT), COUNT // 20):
        other = records()[(number + random.randrange(1, COUNT)) % COUNT]
        known[number] = Record(known[number].url, other.values, {}, {})
    found = relearn(wrapper(), known, pages(layout))
    assert found.outcome == "repaired"
    assert mistakes(found.wrapper, restaurants(layout)) == []


def test_known_values_that_stand_elsewhere_by_chance_do_no_harm() -> None:
    """Each page also has its old phone somewhere in a review, each time at another place."""
    random = Random(3)
    known = {one.url: one.values for one in records()}

    def noted(page: Page) -> Page:
        phone = known[page.url].get("phone", ("",))[0]
        tags = [random.choice("b i u em span code q".split()) for _ in range(4)]
        opening, closing = "".join(f"<{tag}>" for tag in tags), "".join(f"</{tag}>" for tag in reversed(tags))
        note = f"<p>{opening}{phone}{closing}"
        return rewritten(page, lambda html: html.replace('<div id="side">', f'<div id="side">{note}', 1))

    fresh = [noted(page) for page in pages("mild-change")]
    found = relearn(wrapper(), records(), fresh)
    assert found.outcome == "repaired"
    truths = [replace(one, page=page) for one, page in zip(restaurants("mild-change"), fresh, strict=True)]
    assert mistakes(found.wrapper, truths) == []
    assert mistakes(found.wrapper, restaurants("mild-change")) == []


def test_a_value_that_only_stands_where_it_is_chance_is_not_learned_from() -> None:
    """The phones are gone, and some pages have theirs in a review, each at another place."""
    known = {one.url: one.values for one in records()}
    tags = "b i u em span code q sub sup var kbd samp small strong cite abbr".split()

    def noted(number: int, page: Page) -> Page:
        page = without_phone(page)
        phone = known[page.url].get("phone")
        if phone is None or number >= len(tags):
            return page
        note = f"<p><{tags[number]}>{phone[0]}</{tags[number]}>"
        return rewritten(page, lambda html: html.replace('<div id="side">', f'<div id="side">{note}', 1))

    found = relearn(wrapper(), records(), [noted(number, page) for number, page in enumerate(pages())])
    assert found.outcome == "needs-annotation"
    assert states(found) == {"phone": "vanished"}


# ---- lists

LISTS = tuple(of_kind(guide(), "list"))[:24]
LIST_NAMES = ("name", "cuisine", "district", "price", "rating")


@cache
def list_wrapper() -> Wrapper:
    examples = [
        Example(one.page, records=[{name: list(r[name]) for name in LIST_NAMES} for r in one.records[:4]])
        for one in LISTS[:2]
    ]
    return learn(examples, [one.page for one in LISTS], {"price": {"constant": False}})


def list_records() -> list[Record]:
    return [record for one in LISTS for record in list_wrapper().extract_all(one.page)]


def right_of_lists(found: Wrapper, layout: Layout) -> dict[str, float]:
    """The share of records with the right values, by attribute."""
    urls = {one.page.url for one in LISTS}
    right = dict.fromkeys(LIST_NAMES, 0)
    count = 0
    for one in of_kind(guide(layout), "list"):
        if one.page.url not in urls:
            continue
        by_name = {record.values.get("name"): record.values for record in found.extract_all(one.page)}
        for truth in one.records:
            count += 1
            values = by_name.get(truth["name"], {})
            for name in LIST_NAMES:
                right[name] += sorted(values.get(name, ())) == sorted(truth[name])
    return {name: number / count for name, number in right.items()}


def test_lists_are_repaired_after_a_redesign() -> None:
    before = right_of_lists(list_wrapper(), "original")
    assert before["name"] > 0.9
    urls = {one.page.url for one in LISTS}
    fresh = [one.page for one in of_kind(guide("redesign"), "list") if one.page.url in urls]
    found = relearn(list_wrapper(), list_records(), fresh)
    after = right_of_lists(found.wrapper, "redesign")
    assert all(after[name] >= 0.9 for name in ("name", "cuisine", "district", "rating")), after
    assert {found.attributes[name].state for name in ("name", "cuisine", "district", "rating")} == {
        "repaired"
    }
    # Pages that still are as they were come out as before.
    assert right_of_lists(found.wrapper, "original") == before


def test_lists_whose_records_come_and_go_are_reused() -> None:
    assert relearn(list_wrapper(), list_records(), [one.page for one in LISTS]).outcome == "reused"


# ---- what is given


def test_of_several_fresh_versions_the_last_counts() -> None:
    assert relearn(wrapper(), records(), [*pages("mild-change"), *pages()]).outcome == "reused"


def test_the_order_of_records_and_pages_does_not_matter_for_what_comes_out() -> None:
    def shuffled(items: Sequence[Page]) -> list[Page]:
        return Random(5).sample(list(items), len(items))

    found = relearn(wrapper(), records()[::-1], shuffled(pages("mild-change")))
    assert found.outcome == "repaired"
    assert mistakes(found.wrapper, restaurants("mild-change")) == []


def test_relearn_is_public() -> None:
    assert siteloom.relearn is relearn


# ---- what neither new rules nor new values explain


def test_odd_values_in_the_place_of_known_ones_are_not_reused() -> None:
    records = [inns.WRAPPER.extract(page) for page in inns.pages()]
    fresh = [
        inns.page(one, facts=[("Phone:", "Ask at the bar"), ("Owner:", one.owner), ("Price:", one.price)])
        for one in inns.INNS
    ]
    found = relearn(inns.WRAPPER, records, fresh)
    assert found.outcome == "needs-annotation"
    assert found.attributes["phone"].state == "unrepaired"
    assert {name for example in found.annotate for name in example.values} >= {"name", "owner"}


def test_the_least_certain_attribute_decides_how_sure_a_repair_is() -> None:
    records = [inns.WRAPPER.extract(page) for page in inns.pages()]
    few = [
        record if number < 6 else replace(record, values={**record.values, "owner": ()})
        for number, record in enumerate(records)
    ]
    fresh = [
        inns.page(one, facts=[("Call:", one.phone), ("Host:", one.owner), ("Price:", one.price)])
        for one in inns.INNS
    ]
    found = relearn(inns.WRAPPER, few, fresh)
    owner, phone = found.attributes["owner"], found.attributes["phone"]
    assert owner.tested < phone.tested
    assert found.confidence == pytest.approx((owner.right + 1) / (owner.tested + 2))


def test_the_values_of_each_record_of_a_list_are_shown_and_asked_for() -> None:
    def page(number: int, label: str = "Phone:", *, has_phone: bool = True) -> Page:
        cards = "".join(
            f"<div class=card><h2>{one.name}</h2><b>{label}</b><i>{one.phone if has_phone else ''}</i>"
            f"<b>Price:</b><i>{one.price}</i></div>"
            for one in inns.INNS[4 * number : 4 * number + 4]
        )
        return Page.from_text(f"https://inns.example/all/{number}", f"<h1>Inns</h1>{cards}<p>The end</p>")

    records = [record for number in range(10) for record in inns.LIST.extract_all(page(number))]
    repaired = relearn(inns.LIST, records, [page(number, "Call us") for number in range(10)])
    assert repaired.outcome == "repaired"
    assert repaired.values
    assert all(diff.known == diff.after for diff in repaired.values)
    lost = relearn(inns.LIST, records, [page(number, has_phone=False) for number in range(10)])
    assert lost.outcome == "needs-annotation"
    assert len(lost.annotate) == len({example.page.url for example in lost.annotate})
    assert all(len(example.records) == 4 and not example.values for example in lost.annotate)


def test_odd_values_beside_the_known_ones_are_not_reused() -> None:
    records = [inns.WRAPPER.extract(page) for page in inns.pages()]
    fresh = [inns.page(one, extra="<ul><li>1</li><li>2</li></ul>") for one in inns.INNS]
    found = relearn(inns.WRAPPER, records, fresh)
    assert found.attributes["dishes"].state == "unrepaired"
    assert found.outcome == "needs-annotation"
