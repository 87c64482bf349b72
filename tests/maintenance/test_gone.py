"""Pages that are gone are no change of the site, whatever they say and in whatever language."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from siteloom import Page
from siteloom.apps.demo.sites import Layout
from siteloom.maintenance.change_tests import check, monitor
from siteloom.maintenance.watched_pages import refilled, watch
from tests.maintenance import inns
from tests.maintenance.guide import bellwether_pages, pages, watched, within_frame, without_phone, wrapper

Replacing = Callable[[Page], Page]

MESSAGES = {
    "English": ("Page not found", "Sorry, we cannot find what you asked for. Try the search above."),
    "German": ("Seite nicht gefunden", "Diese Seite gibt es leider nicht mehr. Bitte nutzen Sie die Suche."),
    "Japanese": ("お探しのページは見つかりません", "ページが削除されたか、URLが変更された可能性があります。"),
}


def error_page(language: str) -> Replacing:
    title, message = MESSAGES[language]
    return lambda page: within_frame(page, title, f"<h2>{title}</h2><p>{message}</p>")


def error_page_that_repeats_the_address(page: Page) -> Page:
    path = page.url.removeprefix("https://www.larkmoor-guide.example")
    return within_frame(page, "404", f"<h2>404</h2><p>{path}</p><p>No such page.</p>")


def bare_error_page(page: Page) -> Page:
    return Page.from_text(page.url, "<html><head><title>502</title></head><body><h1>502</h1></body></html>")


def name_of(page: Page) -> str:
    (found,) = (one.records[0]["name"][0] for one in watched().bellwethers if one.page.url == page.url)
    return found


def wall_with_the_name_in_its_title(page: Page) -> Page:
    return within_frame(
        page, f"{name_of(page)} - log in", "<h2>Members only</h2><form><input name=user></form>"
    )


def wall_with_the_name_in_its_text(page: Page) -> Page:
    return within_frame(page, "Anmelden", f"<h2>{name_of(page)}</h2><p>Bitte melden Sie sich an.</p>")


def home_page(page: Page) -> Page:
    teasers = "".join(f"<li><a href='/t/{number}'>The story of table {number}</a>" for number in range(30))
    return within_frame(page, "The Larkmoor Guide", f"<h2>Welcome</h2><ul>{teasers}</ul><p>What's on today")


WITHOUT_NAMES: dict[str, Replacing] = {
    **{f"an error page in {language}": error_page(language) for language in MESSAGES},
    "an error page with the address": error_page_that_repeats_the_address,
    "an error page of the server": bare_error_page,
    "the home page": home_page,
}
WITH_NAMES: dict[str, Replacing] = {
    "a log-in wall with the name in its title": wall_with_the_name_in_its_title,
    "a log-in wall with the name in its text": wall_with_the_name_in_its_text,
}
COUNTS = (1, 2, 3, 8, 20)


def replaced(replacing: Replacing, count: int) -> tuple[list[Page], list[str]]:
    """The bellwethers fetched again, some of them with another page in their place, and which these are."""
    fresh = bellwether_pages()
    assert len(fresh) == 20
    chosen = fresh[:: len(fresh) // count][:count]
    return [replacing(page) if page in chosen else page for page in fresh], sorted(
        page.url for page in chosen
    )


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("what", WITHOUT_NAMES)
def test_a_page_in_the_place_of_others_is_no_change(what: str, count: int) -> None:
    fresh, gone = replaced(WITHOUT_NAMES[what], count)
    found = check(watched(), fresh)
    assert found.changes == ()
    assert list(found.gone) == gone
    assert set(found.compared) == {page.url for page in fresh} - set(gone)
    assert monitor(watched(), fresh) == []


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("what", WITH_NAMES)
def test_a_page_that_names_what_it_hides_is_no_change_either(what: str, count: int) -> None:
    fresh, gone = replaced(WITH_NAMES[what], count)
    found = check(watched(), fresh)
    assert found.changes == ()
    if count > 2:  # of fewer it cannot be seen that they are the same page
        assert list(found.gone) == gone


def test_pages_that_are_gone_in_several_ways_are_no_change() -> None:
    fresh = bellwether_pages()
    ways = [*WITHOUT_NAMES.values()][:4]
    mixed = [ways[number % 4](page) if number < 12 else page for number, page in enumerate(fresh)]
    found = check(watched(), mixed)
    assert found.changes == ()
    assert set(found.gone) == {page.url for page in fresh[:12]}


def gone(fresh: Collection[Page]) -> tuple[tuple[str, ...], bool]:
    found = check(watched(), fresh)
    return found.gone, bool(found.changes)


@pytest.mark.parametrize("layout", ["redesign", "mild-change"])
def test_a_page_in_another_layout_is_not_gone(layout: Layout) -> None:
    assert gone(pages(layout)) == ((), True)


def test_a_page_without_one_of_its_values_is_not_gone() -> None:
    assert gone([without_phone(page) for page in bellwether_pages()]) == ((), True)


def test_a_page_in_another_layout_is_not_gone_while_others_are() -> None:
    redesigned = {page.url: page for page in pages("redesign")}
    fresh = bellwether_pages()
    mixed = [
        error_page("German")(page) if number < 6 else redesigned[page.url]
        for number, page in enumerate(fresh)
    ]
    found = check(watched(), mixed)
    assert set(found.gone) == {page.url for page in fresh[:6]}
    assert {change.test for change in found.changes} == {"shingle", "null"}
    assert {change.share for change in found.changes} == {1.0}


def test_pages_whose_only_known_value_has_moved_are_not_gone() -> None:
    watching = watch(inns.NAME_ALONE, inns.pages(), name="inns")
    moved = [inns.page(one, name_tag="h2") for one in inns.INNS]
    found = check(watching, moved)
    assert found.gone == ()
    (change,) = found.changes
    assert (change.test, change.attributes, change.share) == ("null", ("name",), 1.0)


def test_pages_whose_only_known_value_has_vanished_are_not_gone_if_they_still_tell_something() -> None:
    """What else stands on them is still that of each page alone."""
    watching = watch(inns.NAME_ALONE, inns.pages(), name="inns")
    fresh = [Page.from_text(one.url, inns.html(one).replace(one.name, "")) for one in inns.INNS]
    found = check(watching, fresh)
    assert found.gone == ()
    (change,) = found.changes
    assert (change.test, change.attributes) == ("null", ("name",))


# ---- what is watched instead


def test_a_page_that_is_gone_stays_known_until_another_takes_its_place() -> None:
    fresh, gone = replaced(error_page("English"), 8)
    after = check(watched(), fresh).watch
    assert [one.page.url for one in after.bellwethers] == [page.url for page in fresh]
    assert [one.records for one in after.bellwethers] == [one.records for one in watched().bellwethers]
    fuller = refilled(after, gone, pages())
    urls = [one.page.url for one in fuller.bellwethers]
    assert len(set(urls)) == len(urls) == 20
    assert not set(urls) & set(gone)
    assert monitor(fuller, pages()) == []
    assert monitor(fuller, pages("mild-change")) != []


def test_pages_that_are_gone_stay_watched_as_long_as_no_others_take_their_place() -> None:
    _, gone = replaced(home_page, 8)
    others = [error_page("Japanese")(page) for page in pages()]
    assert refilled(watched(), gone, others) == watched()


def test_where_nothing_is_gone_nothing_is_replaced() -> None:
    assert refilled(watched(), [], pages()) == watched()


def test_a_watch_whose_pages_are_all_gone_is_refilled() -> None:
    known = [one.page.url for one in watched().bellwethers]
    fuller = refilled(watched(), known, pages())
    assert len(fuller.bellwethers) == 20
    assert not {one.page.url for one in fuller.bellwethers} & set(known)
    assert fuller.wrapper == wrapper()
    assert fuller.name == "guide"
