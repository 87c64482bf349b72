"""Known values count where many pages have theirs, not where they stand by chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from siteloom import Page
from siteloom.core.model import Failure
from siteloom.html.parser import parse
from siteloom.maintenance.moved_values import in_common_places
from siteloom.maintenance.page_comparison import FreshPage, Pair
from tests.maintenance.inns import INNS, WRAPPER, Inn

TAGS = "b i u em span code q sub sup var kbd samp small strong cite abbr dfn ins del s".split()


def pairs(html: Callable[[Inn], str], inns: Sequence[Inn] = INNS[:20]) -> list[Pair]:
    found = []
    for one in inns:
        page = Page.from_text(one.url, html(one))
        root = parse(page)
        assert not isinstance(root, Failure)
        known = {"phone": (one.phone,), "dishes": one.dishes}
        found.append(Pair(FreshPage(page, root, WRAPPER.records_of(page, root)), known, None))
    return found


def numbers(found: Sequence[Pair]) -> list[int]:
    return [int(pair.page.page.url.rpartition("/")[2]) for pair in found]


def test_values_at_the_place_of_all_pages_count() -> None:
    found = in_common_places(pairs(lambda one: f"<p>{one.phone}</p>"), "phone", is_constant=False)
    assert numbers(found) == list(range(20))


def test_values_at_places_of_their_own_do_not() -> None:
    assert (
        in_common_places(pairs(lambda one: f"<{TAGS[one.number]}>{one.phone}"), "phone", is_constant=False)
        == []
    )


def test_those_at_the_common_place_are_kept_and_others_left_out() -> None:
    found = in_common_places(
        pairs(lambda one: f"<p>{one.phone}" if one.number < 15 else f"<{TAGS[one.number]}>{one.phone}"),
        "phone",
        is_constant=False,
    )
    assert numbers(found) == list(range(15))


def test_several_common_places_count() -> None:
    found = in_common_places(
        pairs(lambda one: f"<p>{one.phone}" if one.number % 3 else f"<h3>{one.phone}"),
        "phone",
        is_constant=False,
    )
    assert sorted(numbers(found)) == list(range(20))


def test_three_pages_are_needed() -> None:
    def html(count: int) -> Callable[[Inn], str]:
        return lambda one: f"<p>{one.phone}" if one.number >= count else f"<h3>{one.phone}"

    assert len(in_common_places(pairs(html(2)), "phone", is_constant=False)) == 18
    assert len(in_common_places(pairs(html(3)), "phone", is_constant=False)) == 20


def test_a_text_of_its_own_is_another_place_than_a_part_of_one() -> None:
    found = in_common_places(
        pairs(lambda one: f"<p>{one.phone}" if one.number < 18 else f"<p>call {one.phone} now"),
        "phone",
        is_constant=False,
    )
    assert numbers(found) == list(range(18))


def test_all_of_several_values_must_stand_in_common_places() -> None:
    def html(one: Inn) -> str:
        first, *others = one.dishes
        odd = TAGS[one.number] if one.number < 5 else "li"
        return f"<ul><{odd}>{first}</{odd}>" + "".join(f"<li>{other}</li>" for other in others)

    assert sorted(numbers(in_common_places(pairs(html), "dishes", is_constant=False))) == list(range(5, 20))


def test_no_records_have_no_places() -> None:
    assert in_common_places([], "phone", is_constant=False) == []
