"""Positions that hold for many pages, and what belongs to the template."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.model import Page
from siteloom.html.page_text_arrays import TEXT
from siteloom.learning.known_records.page_positions import Position, Positions, positions_of, template_rows
from tests.learning.known_records.sites import CUISINES, EVERY, ON_SITE, pages, texts_of

if TYPE_CHECKING:
    from siteloom.html.page_text_arrays import PageTexts

PATH, LABEL, NUMBER, KIND = range(4)


def read(*markups: str) -> PageTexts:
    return texts_of(Page.from_text(str(number), f"<body>{one}</body>") for number, one in enumerate(markups))


def numbered(texts: PageTexts, kinds: dict[str, int] | None = None) -> Positions:
    kind_of_text = [(kinds or {}).get(text, -1) for text in texts.texts]
    return positions_of(texts, np.array(kind_of_text, np.int32))


def row_of(texts: PageTexts, page: int, text: str) -> int:
    """The row of a text that stands once on a page."""
    (row,) = [
        row
        for row in np.flatnonzero((texts.page == page) & (texts.form == TEXT)).tolist()
        if texts.texts[texts.text[row]] == text
    ]
    return row


def alike(positions: Positions, one: int, other: int) -> set[int]:
    """The ways in which two rows stand at the same position."""
    return {way for way, of_row in enumerate(positions.of_row) if of_row[one] == of_row[other]}


def test_the_same_place_is_known_in_each_way_that_still_holds() -> None:
    texts = read(
        "<p><b>Phone</b> 555-1212</p><p><b>Fax</b> 555-3434</p>",
        "<p><b>Fax</b> 555-7878</p><p><b>Phone</b> 555-5656</p>",
        "<p><b>Tel</b> 555-9090</p>",
    )
    positions = numbered(texts, dict.fromkeys(["555-1212", "555-7878", "555-9090"], 4))
    phone = row_of(texts, 0, "555-1212")

    assert alike(positions, phone, row_of(texts, 1, "555-5656")) == {LABEL}
    assert alike(positions, phone, row_of(texts, 1, "555-7878")) == {PATH, NUMBER, KIND}
    assert alike(positions, phone, row_of(texts, 2, "555-9090")) == {PATH, NUMBER, KIND}
    assert alike(positions, phone, row_of(texts, 0, "555-3434")) == set()


def test_a_block_that_comes_before_shifts_only_the_path() -> None:
    texts = read('<h1 class="n">Golden Goose</h1>', '<h1>News</h1><h1 class="n">Blue Lagoon</h1>')
    positions = numbered(texts)

    found = alike(positions, row_of(texts, 0, "Golden Goose"), row_of(texts, 1, "Blue Lagoon"))
    assert NUMBER in found
    assert PATH not in found


def test_only_what_is_of_a_kind_has_a_position_by_kind() -> None:
    texts = read("<p>a</p><p>12</p><p>13</p><p>$12</p>")
    positions = numbered(texts, {"12": 3, "13": 3, "$12": 5})
    by_kind = positions.of_row[KIND]

    number = by_kind[row_of(texts, 0, "12")]
    assert by_kind[row_of(texts, 0, "a")] == -1
    assert number == by_kind[row_of(texts, 0, "13")] != by_kind[row_of(texts, 0, "$12")]
    assert positions.nodes_of_page[KIND][number] == 2
    assert positions.rows_at(Position(KIND, int(number))).tolist() == [
        row_of(texts, 0, "12"),
        row_of(texts, 0, "13"),
    ]


def test_nodes_are_counted_for_pages_that_have_any() -> None:
    texts = read("<i>a</i><i>b</i><i>c</i>", "<i>d</i>", "<b>e</b>")
    positions = numbered(texts, dict.fromkeys("abcd", 0))
    number = positions.of_row[KIND][row_of(texts, 0, "a")]

    assert positions.nodes_of_page[KIND][number] == 2  # four nodes on two pages
    assert set(positions.nodes_of_page[NUMBER].tolist()) == {1.0}


@given(
    st.lists(
        st.lists(
            st.sampled_from(["<i>a</i>", "<i>b</i>", "<b>a</b>", "<p>a</p>", "<p>b<br>c</p>"]), max_size=6
        ),
        max_size=4,
    )
)
def test_numbers_on_a_page_are_those_of_counting(markups: list[list[str]]) -> None:
    texts = read(*map("".join, markups))
    positions = numbered(texts)
    seen: Counter[tuple[int, int, int]] = Counter()
    counted = []
    for page, styled_path, form in zip(
        texts.page.tolist(), texts.styled_path.tolist(), texts.form.tolist(), strict=True
    ):
        counted.append((styled_path, form, seen[page, styled_path, form]))
        seen[page, styled_path, form] += 1

    by_number = positions.of_row[NUMBER].tolist()
    assert len(set(zip(counted, by_number, strict=True))) == len(set(counted)) == len(set(by_number))


def test_no_pages_have_no_positions() -> None:
    texts = read()

    assert [len(of_row) for of_row in numbered(texts).of_row] == [0, 0, 0, 0]
    assert template_rows(texts).tolist() == []


def test_a_template_text_is_told_by_its_path_and_text() -> None:
    """The names in the menu are of the template; the same names as titles are values."""
    teams = [one.name for one in EVERY[:20]]
    menu = "".join(f"<li>{team}</li>" for team in teams)
    texts = read(
        *(f"<ul>{menu}</ul><h1>{team}</h1><p>Founded</p><p>{1900 + at}</p>" for at, team in enumerate(teams))
    )
    is_template = template_rows(texts)

    by_path: dict[str, set[bool]] = {}
    for row in np.flatnonzero(texts.form == TEXT).tolist():
        path = texts.styled_path_text(int(texts.styled_path[row])).rpartition(" > ")[2]
        by_path.setdefault(path, set()).add(bool(is_template[row]))
    assert by_path == {"li": {True}, "h1": {False}, "p": {False, True}}
    assert is_template[row_of(texts, 0, "Founded")]
    assert not is_template[row_of(texts, 0, "1900")]


def test_what_stands_on_a_single_page_is_no_template() -> None:
    assert not template_rows(read("<p>a</p><h1>b</h1>")).any()


def test_a_label_of_half_the_pages_is_template_a_value_of_half_the_pages_is_not() -> None:
    texts = read(
        *(
            f"<h1>{one.name}</h1><p><i>{'Open' if at % 2 else 'Closed'}</i></p>"
            + "<p><b>Phone</b></p>" * (at % 2)
            for at, one in enumerate(EVERY[:20])
        )
    )
    is_template = template_rows(texts)

    assert is_template[row_of(texts, 1, "Phone")]
    assert not is_template[row_of(texts, 1, "Open")]
    assert not is_template[row_of(texts, 2, "Closed")]


def test_values_of_a_site_are_open_also_where_the_menu_has_them() -> None:
    texts = texts_of(pages())
    is_template = template_rows(texts)

    for page, restaurant in enumerate(ON_SITE):
        here = np.flatnonzero((texts.page == page) & ~is_template)
        shown = {texts.texts[text] for text in texts.text[here].tolist()}
        assert {*restaurant.values.values()} <= shown
        assert not {"Home", "Open daily", "Phone", "Kitchen", "Nearby"} & shown
    assert {one.cuisine for one in ON_SITE} == set(CUISINES)
