"""Breaks that look like something else."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace

import pytest

from siteloom import Page, monitor, watch
from siteloom.maintenance.change_tests import check
from siteloom.templates.footprint import footprint
from siteloom.templates.signature import signature
from tests.maintenance import inns


def list_page(number: int, css_class: str = "card") -> Page:
    cards = "".join(
        f"<div class={css_class}><h2>{one.name}</h2><b>Phone:</b><i>{one.phone}</i>"
        f"<b>Price:</b><i>{one.price}</i></div>"
        for one in inns.INNS[4 * number : 4 * number + 4]
    )
    return Page.from_text(f"https://inns.example/all/{number}", f"<h1>Inns</h1>{cards}<p>The end</p>")


def test_a_menu_in_the_place_of_a_few_values_is_a_change() -> None:
    menu = "<ul>" + "".join(f"<li>Menu {number}</li>" for number in range(30)) + "</ul>"
    fresh = [inns.page(one, extra=menu) for one in inns.INNS]
    (change,) = monitor(watch(inns.WRAPPER, inns.pages()), fresh)
    assert (change.test, change.attributes) == ("value", ("dishes",))


def test_lists_without_a_constant_attribute_are_tested_too() -> None:
    changing = {
        name: replace(rules, attribute=replace(rules.attribute, constant=False))
        for name, rules in inns.LIST.attributes.items()
    }
    watching = watch(replace(inns.LIST, attributes=changing), [list_page(number) for number in range(10)])
    assert monitor(watching, [list_page(number) for number in range(10)]) == []
    changes = monitor(watching, [list_page(number, "other") for number in range(10)])
    assert [change.test for change in changes] == ["null"]


def test_of_two_pages_a_redesign_is_a_change_and_not_that_they_are_gone() -> None:
    watching = watch(inns.WRAPPER, inns.pages()[:2])
    fresh = [
        Page.from_text(one.url, f"<body><div><h3>{one.name}</h3><p>tel {one.phone[::-1]}</p></div></body>")
        for one in inns.INNS[:2]
    ]
    found = check(watching, fresh)
    assert found.gone == ()
    assert {change.test for change in found.changes} == {"null"}


@pytest.mark.parametrize("is_newest_first", [True, False])
def test_the_newest_version_counts_in_whatever_order_they_come(is_newest_first: bool) -> None:
    january, february = dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 2, 1)  # noqa: DTZ001
    old = [replace(page, fetched_at=january) for page in inns.pages()]
    new = [
        replace(inns.page(one, facts=[("Owner:", one.owner), ("Price:", one.price)]), fetched_at=february)
        for one in inns.INNS
    ]
    changes = monitor(watch(inns.WRAPPER, inns.pages()), [*new, *old] if is_newest_first else [*old, *new])
    assert [change.attributes for change in changes] == [("phone",)]


def test_pages_that_the_wrapper_does_not_cover_are_told_of_each_time() -> None:
    pages = inns.pages()
    wrapper = replace(inns.WRAPPER, footprint=footprint([(page.url, signature(page.html)) for page in pages]))
    fresh = [
        replace(page, html=re.sub(rb"(<(?:h1|dl|dd|li)[ >])", rb"<ins><kbd></kbd></ins>\1", page.html))
        for page in pages
    ]
    first = check(watch(wrapper, pages), fresh)
    assert first.changes == ()
    assert len(first.drifted) == 20
    second = check(first.watch, fresh)
    assert second.changes == ()
    assert second.drifted == first.drifted
