"""Texts that stand at the same place of a template come together, and no others do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.html.page_text_arrays import TextCollector
from siteloom.learning.discovery.text_strands import find_strands
from tests.learning.discovery.pages import LAYOUTS, Field, page, pages, root_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.html.page_text_arrays import PageTexts
    from siteloom.learning.discovery.text_strands import Strand

Content = dict[int, tuple[str, ...]]


def content(strand: Strand, texts: PageTexts) -> Content:
    return {
        unit: tuple(texts.texts[number] for number in texts.text[list(rows)].tolist())
        for unit, rows in strand.rows.items()
    }


def text_contents(bodies: Sequence[str]) -> list[Content]:
    texts = texts_of(pages(bodies))
    return [content(strand, texts) for strand in find_strands(texts).texts]


def attribute_contents(bodies: Sequence[str]) -> list[Content]:
    texts = texts_of(pages(bodies))
    return [content(strand, texts) for strand in find_strands(texts).attributes]


def anchor_of(wanted: Content, bodies: Sequence[str]) -> str | None:
    texts = texts_of(pages(bodies))
    (strand,) = [one for one in find_strands(texts).texts if content(one, texts) == wanted]
    return None if strand.anchor is None else texts.texts[strand.anchor]


def column(text: str, units: Sequence[int]) -> Content:
    return {unit: (f"{text} {unit}",) for unit in units}


def test_texts_of_one_style_come_together_and_template_text_is_left_out() -> None:
    bodies = [f"<h1>Thing {n}</h1><p class=note>Note {n}</p>" for n in range(6)]
    assert text_contents(bodies) == [column("Thing", range(6)), column("Note", range(6))]


def test_texts_of_one_style_are_told_apart_by_the_text_before_them() -> None:
    bodies = [f"<p>Size</p><p>Long {n}</p><p>Weight</p><p>Heavy {n}</p>" for n in range(6)]
    found = text_contents(bodies)
    assert column("Long", range(6)) in found
    assert column("Heavy", range(6)) in found
    assert len(found) == 2


def test_what_is_missing_shifts_nothing() -> None:
    bodies = [
        f"<dl>{f'<dt>Size<dd>Long {n}' if n % 2 else ''}<dt>Weight<dd>Heavy {n}<dt>Price<dd>Cheap {n}</dl>"
        for n in range(12)
    ]
    found = text_contents(bodies)
    assert column("Long", range(1, 12, 2)) in found
    assert column("Heavy", range(12)) in found
    assert column("Cheap", range(12)) in found


def test_a_label_of_few_units_is_one_though_values_share_its_style() -> None:
    """It stands before the part that is optional, and never without it."""
    bodies = [
        f"<div>Place {n}</div>" + (f"<div>Mains around <b>£{n}.50</b></div>" if n % 3 else "")
        for n in range(30)
    ]
    found = text_contents(bodies)
    assert column("Place", range(30)) in found
    assert {unit: (f"£{unit}.50",) for unit in range(30) if unit % 3} in found
    assert len(found) == 2


def test_a_value_that_comes_often_is_no_label_of_what_follows() -> None:
    places = ["Oldtown", "Quayside", "Oldtown", "Harbour", "Oldtown", "Quayside"] * 5
    bodies = [f"<div>{place}</div>" + (f"<b>£{n}.50</b>" if n % 2 else "") for n, place in enumerate(places)]
    assert {unit: (place,) for unit, place in enumerate(places)} in text_contents(bodies)


def test_a_unit_that_begins_otherwise_has_its_first_text_in_the_same_strand() -> None:
    """Some begin with a text that names nothing; a style that each has once needs no telling apart."""
    bodies = [f"{'<small>Sponsored</small>' if n < 4 else ''}<h3>Thing {n}</h3>" for n in range(40)]
    texts = texts_of(pages(bodies))
    contents = [content(strand, texts) for strand in find_strands(texts).texts]
    assert column("Thing", range(40)) in contents


@pytest.mark.parametrize("colon", [":", "："])  # noqa: RUF001
def test_what_ends_in_a_colon_is_a_label_even_of_a_rare_field(colon: str) -> None:
    bodies = [
        f"<p><span>Born{colon}</span><span>in {n}</span>"
        + (f"<span>Died{colon}</span><span>at {n}</span>" if n % 5 == 0 else "")
        for n in range(25)
    ]
    found = text_contents(bodies)
    assert column("in", range(25)) in found
    assert column("at", range(0, 25, 5)) in found


def test_names_that_come_now_and_then_are_no_labels() -> None:
    """Each stands before what it has said, as a label would, but is used by few units."""
    bodies = [
        "".join(f"<p><b>Name {(3 * n + 7 * m) % 30}</b><i>Says {n}.{m}</i></p>" for m in range(3))
        for n in range(30)
    ]
    expected = {n: tuple(f"Name {(3 * n + 7 * m) % 30}" for m in range(3)) for n in range(30)}
    assert expected in text_contents(bodies)


def test_a_few_values_between_labels_are_no_labels() -> None:
    sizes, colours = ("Small", "Large", "Wide"), ("Red", "Blue")
    bodies = [f"<dl><dt>Size<dd>{sizes[n % 3]}<dt>Colour<dd>{colours[n % 2]}</dl>" for n in range(30)]
    found = text_contents(bodies)
    assert {n: (sizes[n % 3],) for n in range(30)} in found
    assert {n: (colours[n % 2],) for n in range(30)} in found


def test_what_is_constant_behind_its_anchor_parts_others() -> None:
    bodies = [
        f"<p>Intro {n}</p><i>First {n}</i>"
        + (f"<h2>Delivery</h2><i>Second {n}</i><p>Ships by</p><i>Third {n}</i>" if n % 2 else "")
        for n in range(20)
    ]
    found = text_contents(bodies)
    for name, units in (("First", range(20)), ("Second", range(1, 20, 2)), ("Third", range(1, 20, 2))):
        assert column(name, units) in found


def test_numbers_in_classes_tell_nothing() -> None:
    bodies = [f"<p>Other {n}</p><i class=item-{n}>Thing {n}</i>" for n in range(6)]
    assert text_contents(bodies) == [column("Other", range(6)), column("Thing", range(6))]


def test_a_list_of_a_unit_stays_together() -> None:
    bodies = [
        f"<h1>Thing {n}</h1><ul>{''.join(f'<li>Part {n}.{m}' for m in range(n))}</ul>" for n in range(8)
    ]
    assert {unit: tuple(f"Part {unit}.{m}" for m in range(unit)) for unit in range(1, 8)} in text_contents(
        bodies
    )


def test_the_same_field_inside_and_outside_of_an_optional_part_is_one() -> None:
    bodies = [
        f"<div class=box><p class=price>£{n}</p></div>" if n % 2 else f"<p class=price>£{n}</p>"
        for n in range(12)
    ]
    assert {unit: (f"£{unit}",) for unit in range(12)} in text_contents(bodies)


def test_narrow_tables_of_a_page_tell_cells_apart_and_wide_ones_are_lists() -> None:
    narrow = [
        f"<table>{''.join(f'<tr><td>K{n}.{m}<td>V{n}.{m}' for m in range(3))}</table>" for n in range(8)
    ]
    found = text_contents(narrow)
    assert {unit: tuple(f"K{unit}.{m}" for m in range(3)) for unit in range(8)} in found
    assert {unit: tuple(f"V{unit}.{m}" for m in range(3)) for unit in range(8)} in found
    wide = [f"<table><tr>{''.join(f'<td>C{n}.{m}' for m in range(6))}</table>" for n in range(8)]
    assert {unit: tuple(f"C{unit}.{m}" for m in range(6)) for unit in range(8)} in text_contents(wide)


@pytest.mark.parametrize("width", [3, 5, 8])
def test_rows_that_are_units_tell_their_cells_apart_however_wide(width: int) -> None:
    """Some cells are empty."""
    collector = TextCollector()
    filled: list[Content] = [{} for _ in range(width)]
    for unit in range(30):
        row = ""
        for place in range(width):
            text = "" if place == unit % (width + 3) else f"C{place} {unit}"
            row += f"<td>{text}</td>"
            if text:
                filled[place][unit] = (text,)
        root = root_of(page(f"<table><tr>{row}</tr></table>"))
        collector.add(next(root.iter("tr")))
    texts = collector.collected()
    found = [content(strand, texts) for strand in find_strands(texts).texts]
    assert sorted(found, key=str) == sorted(filled, key=str)


@pytest.mark.parametrize("rows", [5, 15, 30])
def test_years_name_nothing(rows: int) -> None:
    """They are on many units, each once, and before something else, but what follows is a list."""
    bodies = [
        f"<table>{''.join(f'<tr><td>{1980 + n % 7 + m}<td>Team {n}.{m}' for m in range(rows))}</table>"
        for n in range(30)
    ]
    assert {n: tuple(f"Team {n}.{m}" for m in range(rows)) for n in range(30)} in text_contents(bodies)


def test_what_ends_in_a_colon_is_a_label_in_any_markup() -> None:
    """Written by hand, it looks otherwise on each page; a name that comes once is none."""
    tags = ("b", "i", "em", "strong", "u", "q")
    bodies = [
        f"<p><{tags[n % 6]}>Phone:</{tags[n % 6]}> <span>{n} 123</span></p><p><b>Only {n}:</b></p>"
        for n in range(12)
    ]
    found = text_contents(bodies)
    assert not [texts for one in found for texts in one.values() if "Phone:" in texts]
    assert {n: (f"{n} 123",) for n in range(12)} in found
    assert [texts for one in found for texts in one.values() if "Only 3:" in texts]


def test_texts_without_a_letter_or_digit_are_no_values() -> None:
    bodies = [f"<h1>Thing {n}</h1><i>{'*' * (n + 1)}</i>" for n in range(6)]
    assert text_contents(bodies) == [column("Thing", range(6))]


def test_strands_know_the_template_text_before_them() -> None:
    bodies = [f"<dl><dt>Size<dd>Long {n}<dt>Weight<dd>Heavy {n}</dl>" for n in range(6)]
    assert anchor_of(column("Heavy", range(6)), bodies) == "Weight"
    alone = [f"<h1>Thing {n}</h1>" for n in range(6)]
    assert anchor_of(column("Thing", range(6)), alone) == "Help"


def test_an_attribute_of_each_unit_is_a_strand() -> None:
    bodies = [f"<img src=/i/{n}.jpg alt='Picture {n}'><img src=/logo.png class=logo>" for n in range(6)]
    found = attribute_contents(bodies)
    assert {unit: (f"/i/{unit}.jpg",) for unit in range(6)} in found
    assert {unit: (f"Picture {unit}",) for unit in range(6)} in found


def test_attributes_of_one_style_are_told_apart_by_the_label_before_them() -> None:
    bodies = [
        f"<dl><dt>Mail<dd><a href=mailto:m{n}@x.example>Write</a>"
        + (f"<dt>Web<dd><a href=https://w{n}.example/>Visit</a>" if n % 2 else "")
        + "</dl>"
        for n in range(12)
    ]
    found = attribute_contents(bodies)
    assert {unit: (f"mailto:m{unit}@x.example",) for unit in range(12)} in found
    assert {unit: (f"https://w{unit}.example/",) for unit in range(1, 12, 2)} in found


def test_attributes_that_a_unit_has_many_of_are_no_strand() -> None:
    bodies = [f"{''.join(f'<img src=/i/{n}.{m}.jpg>' for m in range(4))}" for n in range(6)]
    assert attribute_contents(bodies) == []


NAMES = ("Size", "Weight", "Colour", "Maker", "Price", "Year")


@st.composite
def labelled_pages(draw: st.DrawFn) -> tuple[str, list[list[Field]]]:
    """Fields of pages; each is missing on up to a third, and on some pages their order is another."""
    layout = draw(st.sampled_from(sorted(LAYOUTS)))
    names = NAMES[: draw(st.integers(3, len(NAMES)))]
    count = draw(st.integers(12, 20))
    numbers = st.integers(0, count - 1)
    missing = {name: draw(st.sets(numbers, max_size=count // 3)) for name in names}
    mixed = draw(st.sets(numbers))
    made = []
    for number in range(count):
        shown = [name for name in names if number not in missing[name]]
        if number in mixed:
            shown = draw(st.permutations(shown))
        made.append([(name, f"{name.lower()} of {number}") for name in shown])
    return layout, made


@given(labelled_pages())
def test_labelled_fields_never_come_into_each_others_strands(made: tuple[str, list[list[Field]]]) -> None:
    layout, fields_of_pages = made
    found = text_contents([f"<h1>No. {n}</h1>{LAYOUTS[layout](f)}" for n, f in enumerate(fields_of_pages)])
    for name in {label for fields in fields_of_pages for label, _ in fields}:
        expected = {
            unit: (text,)
            for unit, fields in enumerate(fields_of_pages)
            for label, text in fields
            if label == name
        }
        assert expected in found
