"""What pages do from visit to visit without anything being wrong raises no alarm."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from random import Random

import pytest

from siteloom import Page
from siteloom.maintenance.change_tests import check, monitor
from siteloom.maintenance.watched_pages import watch
from tests.maintenance import inns
from tests.maintenance.guide import (
    bellwether_pages,
    changed,
    pages,
    rewritten,
    text_of,
    watched,
    without_phone,
)

Fluctuation = Callable[[Page, Random], Page]

# What rules of the wrapper may rest on: these classes stay.
TOLD_BY = ("facts", "venue vcard", "stamp")


def reviews_added(page: Page, random: Random) -> Page:
    more = "".join(
        f'<div class="review"><p class="by">by <b>Reader {random.random()}</b> on 2 June 2025</p>'
        f"<p>Phone: we rang 0999 {random.randrange(999)}. Average main: £{random.randrange(90)}.00</div>"
        for _ in range(random.randrange(1, 9))
    )
    return rewritten(
        page, lambda html: html.replace("<h2>Reader reviews</h2>", f"<h2>Reader reviews</h2>{more}")
    )


def reviews_removed(page: Page, random: Random) -> Page:
    return changed(
        page, r'<div id="reviews" class="reviews">.*?(?=<div class="box|</div>\n<div id="side">)', ""
    )


def advertisements(page: Page, random: Random) -> Page:
    def advertisement(_: re.Match[str]) -> str:
        slot = f"ad-{random.randrange(10**9):x}"
        offer = f'<small>Advertisement</small> <a href="/{slot}">£9.99</a>'
        return f'</div>\n<div class="ad" id="{slot}">{offer}</div>'

    return rewritten(
        page, lambda html: re.sub(r"</div>\n", advertisement, html, count=random.randrange(3, 12))
    )


def random_names(page: Page, random: Random) -> Page:
    """Ids and classes that the build of the site or the request has a part in."""

    def suffixed(match: re.Match[str]) -> str:
        attribute, name = match.groups()
        return match[0] if name in TOLD_BY else f'{attribute}="{name}-{random.randrange(10**9):x}"'

    return rewritten(page, lambda html: re.sub(r'\b(id|class)="([^"]*)"', suffixed, html))


def prices_changed(page: Page, random: Random) -> Page:
    """Only prices, by up to a third; rules find all of them anew."""
    return changed(page, r"£(\d+)\.(\d\d)", f"£{random.randrange(10, 30)}.{random.randrange(10, 99)}")


def updated(page: Page, random: Random) -> Page:
    return changed(page, r"(Last updated: <span>)[^<]*", rf"\g<1>{random.randrange(1, 28)} June 2025")


def rows_reordered(page: Page, random: Random) -> Page:
    """The rows of the facts in another order on each page."""

    def reordered(match: re.Match[str]) -> str:
        rows = re.findall(r"<dt>.*?</dd>\n", match[2], flags=re.DOTALL)
        random.shuffle(rows)
        return f"{match[1]}{''.join(rows)}{match[3]}"

    return rewritten(
        page,
        lambda html: (
            re.sub(r'(<dl class="facts">\n)(.*?)(</dl>)', reordered, html, count=1, flags=re.DOTALL)
            + "<!-- reordered -->"
        ),
    )


def white_space(page: Page, random: Random) -> Page:
    return rewritten(
        page, lambda html: html.replace("</dt>\n<dd>", "</dt>\n\n  <dd>\n ").replace("</h1>", "\t</h1>")
    )


def upper_case(page: Page, random: Random) -> Page:
    return rewritten(page, lambda html: re.sub(r"<h1>(.*?)</h1>", lambda m: f"<h1>{m[1].upper()}</h1>", html))


FLUCTUATIONS: dict[str, Fluctuation] = {
    "reviews added": reviews_added,
    "reviews removed": reviews_removed,
    "advertisements": advertisements,
    "random ids and classes": random_names,
    "prices changed": prices_changed,
    "updated": updated,
    "rows reordered": rows_reordered,
    "white space": white_space,
    "names in capitals": upper_case,
}


@pytest.mark.parametrize("what", FLUCTUATIONS)
def test_what_changes_from_visit_to_visit_raises_no_alarm(what: str) -> None:
    random = Random(what)
    fresh = [FLUCTUATIONS[what](page, random) for page in bellwether_pages()]
    assert sum(one.html != other.html for one, other in zip(fresh, bellwether_pages(), strict=True)) >= 15
    found = check(watched(), fresh)
    assert found.changes == ()
    assert found.gone == ()
    assert len(found.compared) == 20


def test_all_of_it_at_once_raises_no_alarm() -> None:
    random = Random(6)
    fresh = bellwether_pages()
    for fluctuation in (reviews_added, advertisements, prices_changed, updated, random_names, rows_reordered):
        fresh = [fluctuation(page, random) for page in fresh]
    assert monitor(watched(), fresh) == []


def test_the_same_day_again_raises_no_alarm_and_learns_that_nothing_is_lost() -> None:
    found = check(watched(), pages())
    assert found.changes == ()
    assert found.drifted == found.gone == found.missing == found.unread == ()
    assert set(found.compared) == {page.url for page in bellwether_pages()}
    assert all(one.lost == one.mistaken == 0 for one in found.watch.past.values())
    assert found.watch.past["name"].filled == found.watch.past["name"].compared == 20


def test_pages_that_were_not_fetched_again_say_nothing() -> None:
    fresh = bellwether_pages()
    found = check(watched(), fresh[:3])
    assert found.changes == ()
    assert found.compared == tuple(page.url for page in fresh[:3])
    assert found.missing == tuple(page.url for page in fresh[3:])
    nothing = check(watched(), [])
    assert (nothing.changes, nothing.compared, len(nothing.missing)) == ((), (), 20)


def test_pages_that_cannot_be_read_say_nothing() -> None:
    fresh = bellwether_pages()
    found = check(watched(), [*(Page(page.url, b"") for page in fresh[:15]), *fresh[15:]])
    assert found.changes == ()
    assert found.unread == tuple(page.url for page in fresh[:15])
    assert found.compared == tuple(page.url for page in fresh[15:])


def test_a_phone_that_one_page_has_no_more_raises_no_alarm() -> None:
    fresh = bellwether_pages()
    with_phone = [number for number, one in enumerate(watched().bellwethers) if "phone" in one.records[0]]
    for number in with_phone[:5]:  # of 19: fewer than 30 %
        fresh[number] = without_phone(fresh[number])
    assert monitor(watched(), fresh) == []


def test_names_that_are_edited_a_little_raise_no_alarm_even_on_all_pages() -> None:
    edited = [
        inns.page(one, facts=inns.rows(one)).html.decode().replace(one.name, f"{one.name}s")
        for one in inns.INNS
    ]
    watching = watch(inns.WRAPPER, inns.pages())
    fresh = [Page.from_text(one.url, html) for one, html in zip(inns.INNS, edited, strict=True)]
    assert "The Blue Ferns" in text_of(fresh[0])
    assert monitor(watching, fresh) == []


def test_other_names_on_a_few_pages_raise_no_alarm() -> None:
    fresh = bellwether_pages()
    names = [one.records[0]["name"][0] for one in watched().bellwethers]
    for number in range(0, 20, 4):
        old = escape(names[number])
        fresh[number] = rewritten(fresh[number], lambda html, old=old: html.replace(old, "New hands"))  # type: ignore[misc]
    assert monitor(watched(), fresh) == []


def test_pages_of_others_among_the_fresh_ones_are_passed_by() -> None:
    strangers = [Page.from_text(f"https://other.example/{number}", "<p>x") for number in range(50)]
    assert monitor(watched(), [*strangers, *bellwether_pages()]) == []


def test_of_several_fresh_versions_the_last_counts() -> None:
    broken = [without_phone(page) for page in bellwether_pages()]
    assert monitor(watched(), [*broken, *bellwether_pages()]) == []
    assert monitor(watched(), [*bellwether_pages(), *broken]) != []
