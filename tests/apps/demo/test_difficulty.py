"""That the built-in sites are as hard as real ones: for the reasons real ones are."""

from __future__ import annotations

from functools import cache
from statistics import mean

import pytest

from siteloom.apps.demo.sites import OPTIONAL_ATTRIBUTES, Layout
from siteloom.apps.demo.sites.built_in_page import BuiltinPage, Kind
from tests.apps.demo.absolute_path_vote import Annotated, annotated, learn, normalised, score, vote_score
from tests.apps.demo.sites import all_sites, directory, guide, of_kind, parsed, texts_and_attributes

DETAIL_KINDS: tuple[Kind, ...] = ("restaurant", "event")
OFFSETS = range(0, 40, 4)


@cache
def series(layout: Layout, kind: Kind) -> list[Annotated]:
    return [annotated(page) for page in of_kind(guide(layout), kind)]


def test_absolute_paths_do_badly_on_the_guide() -> None:
    scores = [vote_score(series("original", k), series("original", k)) for k in DETAIL_KINDS]
    assert 0.4 < mean(scores) < 0.75


def test_absolute_paths_do_badly_whichever_pages_they_learn_from() -> None:
    scores = [
        vote_score(series("original", kind), series("original", kind), offset)
        for kind in DETAIL_KINDS
        for offset in OFFSETS
    ]
    assert 0.4 < mean(scores) < 0.65


def test_absolute_paths_fail_after_the_redesign() -> None:
    scores = [vote_score(series("original", k), series("redesign", k)) for k in DETAIL_KINDS]
    assert mean(scores) < 0.3


def test_absolute_paths_lose_the_phone_with_the_mild_change() -> None:
    pages = series("original", "restaurant")
    paths = learn(pages[:3])
    phone = {"phone": paths["phone"]}
    assert paths["phone"]
    assert score(phone, series("mild-change", "restaurant")) < score(phone, pages) / 3


def test_the_yardstick_can_score_full_marks() -> None:
    easy = [Annotated({"/a": f"name {i}", "/b": "x"}, {"name": frozenset((f"name {i}",))}) for i in range(9)]
    assert vote_score(easy, easy) == 1


def test_the_yardstick_counts_wrong_and_missing_values() -> None:
    right = Annotated({"/a": "n"}, {"name": frozenset("n")})
    wrong = Annotated({"/a": "x"}, {"name": frozenset("n")})
    missing = Annotated({}, {"name": frozenset("n")})
    invented = Annotated({"/a": "x"}, {"name": frozenset()})
    paths = {"name": frozenset(("/a",))}
    assert score(paths, [right, wrong]) == pytest.approx(0.5)
    assert score(paths, [right, missing]) == pytest.approx(2 * 1 / (1 + 2))
    assert score(paths, [right, invented]) == pytest.approx(2 * 1 / (2 + 1))


@pytest.mark.parametrize(
    ("site", "kind"),
    [
        ("original", "restaurant"),
        ("original", "event"),
        ("redesign", "restaurant"),
        ("directory", "restaurant"),
    ],
)
def test_optional_attributes_are_absent_on_some_pages(site: str, kind: Kind) -> None:
    pages = of_kind(all_sites()[site], kind)
    for attribute in pages[0].truth:
        absent = sum(not page.truth[attribute] for page in pages) / len(pages)
        if attribute in OPTIONAL_ATTRIBUTES:
            assert 0.1 <= absent <= 0.6, attribute
        elif not (site == "directory" and attribute == "rating"):
            assert absent == 0, attribute


def test_multi_valued_attributes_often_have_more_than_one_value() -> None:
    for site, kind, attribute in (
        (guide(), "restaurant", "cuisine"),
        (guide(), "restaurant", "hours"),
        (guide(), "event", "performers"),
        (directory(), "restaurant", "cuisine"),
    ):
        counts = [len(page.truth[attribute]) for page in site if page.kind == kind]
        assert sum(count > 1 for count in counts) / len(counts) >= 0.2
        assert 1 in counts


def related_texts(page: BuiltinPage, box: str) -> set[str]:
    return {text for element in parsed(page).xpath(box) for text in texts_and_attributes(element)}


@pytest.mark.parametrize(
    ("site", "box"),
    [
        ("original", "//div[contains(@class, 'related')]"),
        ("redesign", "//section[contains(@class, 'carousel')]"),
    ],
)
def test_related_boxes_repeat_other_records(site: str, box: str) -> None:
    pages = of_kind(all_sites()[site], "restaurant")
    values = {
        attribute: {value for page in pages for value in page.truth[attribute]}
        for attribute in ("name", "phone", "price", "cuisine")
    }
    for page in pages:
        texts = related_texts(page, box)
        assert texts & (values["name"] - set(page.truth["name"]))
        assert texts & (values["price"] - set(page.truth["price"]))
    with_phone = [p for p in pages if related_texts(p, box) & (values["phone"] - set(p.truth["phone"]))]
    with_cuisine = [p for p in pages if related_texts(p, box) & values["cuisine"]]
    assert len(with_phone) / len(pages) > 0.9
    assert len(with_cuisine) / len(pages) > 0.8


def test_related_boxes_stand_above_and_below_the_record() -> None:
    pages = [parsed(page) for page in of_kind(guide(), "restaurant")]
    above = sum(bool(p.xpath("//h1/preceding::div[contains(@class, 'related')]")) for p in pages)
    assert 0.05 < above / len(pages) < 0.3


def test_restaurants_come_in_three_variants_with_sloppy_and_entity_markup() -> None:
    pages = [page.page.html for page in of_kind(guide(), "restaurant")]
    for marker in (
        b"<TABLE class=facts",
        b'class="featured-frame"',
        b'class="notice"',
        b'class="ad ad-leader"',
    ):
        assert 0.02 < sum(marker in html for html in pages) / len(pages) < 0.3, marker
    everything = b"".join(pages)
    for marker in (b"&eacute;", "é".encode(), "ø".encode(), "ñ".encode(), b"&nbsp;", b"&amp;"):
        assert marker in everything


def test_some_values_also_stand_elsewhere_on_the_page() -> None:
    """A restaurant called after its district, an event billed under its only act."""
    restaurants, events = of_kind(guide(), "restaurant"), of_kind(guide(), "event")
    assert any(p.truth["name"][0] in (*p.truth["district"], *p.truth["cuisine"]) for p in restaurants)
    assert any(page.truth["title"] == page.truth["performers"] for page in events)
    for page in restaurants:
        headings = parsed(page).xpath("//h1 | //div[@id='crumbs']/strong")
        assert [normalised(heading.text or "") for heading in headings] == [*page.truth["name"]] * 2
