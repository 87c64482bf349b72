"""A page on which rules find more than any page has: every stage that meets it goes on without it."""

from __future__ import annotations

import math
from functools import cache

import pytest

from siteloom import Example, Page, Wrapper
from siteloom.core.model import Record
from siteloom.learning.induction.learning_session import LearningSession
from siteloom.maintenance.change_tests import check
from siteloom.maintenance.watched_pages import choose_watched_pages
from siteloom.maintenance.wrapper_repair import relearn


def page(number: int) -> Page:
    what = f"<div class=what>The <b>house {number}</b> of <i>number {number}</i></div>"
    return Page.from_text(
        f"http://a.example/{number}", f"<body><h1>Name {number}</h1>{what}<p>The end</p></body>"
    )


def boundless(number: int) -> Page:
    """Elements in each other, each of which a rule means: together they say seventy million characters."""
    around = "<div class=what>" * 700
    return Page.from_text(f"http://a.example/{number}", f"<body><h1>x</h1>{around}{'words ' * 17_000}")


PAGES = [page(number) for number in range(12)]
EXAMPLES = [
    Example(PAGES[number], {"name": [f"Name {number}"], "what": [f"The house {number} of number {number}"]})
    for number in range(4)
]


@cache
def wrapper() -> Wrapper:
    return LearningSession(PAGES).learn(EXAMPLES).wrapper


def records() -> list[Record]:
    return [record for one in PAGES for record in wrapper().extract_all(one)]


@pytest.mark.parametrize("most_kept", [math.inf, 0])
def test_it_is_not_learned_from(most_kept: float) -> None:
    session = LearningSession([*PAGES, boundless(99)], most_kept)
    learned = session.learn(EXAMPLES).wrapper
    assert [dict(learned.extract(one).values) for one in PAGES] == [dict(one.values) for one in records()]
    assert dict(session.records("http://a.example/99")[0].values) == {}


def test_it_is_not_watched_and_cannot_be_compared() -> None:
    watch, _, _ = choose_watched_pages(wrapper(), [*PAGES[1:], boundless(0)], 10, name="a")
    urls = {one.page.url for one in watch.bellwethers}
    assert "http://a.example/0" not in urls
    lost = next(number for number in range(12) if f"http://a.example/{number}" in urls)
    fresh = [boundless(number) if number == lost else page(number) for number in range(12)]
    checkup = check(watch, fresh)
    assert checkup.unread == (f"http://a.example/{lost}",)
    assert len(checkup.compared) == len(urls) - 1
    assert checkup.changes == ()


def test_wrappers_are_repaired_without_it() -> None:
    fresh = [Page(one.url, one.html.replace(b"h1", b"h2")) for one in PAGES]
    found = relearn(wrapper(), records(), [*fresh[:-1], boundless(11)])
    assert found.outcome == "repaired"
    assert dict(found.wrapper.extract(fresh[0]).values) == dict(records()[0].values)
