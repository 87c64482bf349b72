"""Rows of a table know where they stand, though few trees are kept."""

from __future__ import annotations

import pytest

from siteloom.core.model import Page
from siteloom.core.settings import ParseSettings
from siteloom.html.node_paths import find, node_path
from siteloom.learning.repeated_structure.table_units import units_of
from tests.learning.discovery.pages import pages, root_of

RECORDS = 4


def listed(number: int) -> str:
    records = "".join(
        f"<h3><a href=/{number}/{m}>Thing {number}.{m}</a></h3><p>Costs {number}.{m} pounds</p>"
        for m in range(RECORDS)
    )
    return f"<div class=list>{records}</div>"


@pytest.mark.parametrize("count", [5, 60, 61, 200])
def test_records_of_many_pages(count: int) -> None:
    made = pages(map(listed, range(count)))
    made.insert(3, Page("https://made-up.example/empty", b""))

    units = units_of(made, ParseSettings())

    assert units.are_parts
    assert [one.url for one in units.failures] == [made[3].url]
    assert [units.url(unit) for unit in range(len(units.page_of))] == [
        one.url for one in made if one.html for _ in range(RECORDS)
    ]
    for unit in (0, 1, len(units.page_of) // 2, len(units.page_of) - 1):
        page, record = divmod(unit, RECORDS)
        title, price = units.tops(unit)
        assert title.xpath("string()") == f"Thing {page}.{record}"
        assert price.text == f"Costs {page}.{record} pounds"
        assert units.nodes[unit] == (node_path(title), node_path(price))
        (row,) = [
            int(row)
            for row in (units.texts.page == unit).nonzero()[0]
            if units.texts.texts[units.texts.text[row]] == price.text
        ]
        element = find(root_of(made[units.page_of[unit]]), units.node(unit, row).rpartition("/")[0])
        assert element is not None
        assert element.text == price.text


def test_trees_of_few_pages_are_kept() -> None:
    units = units_of(pages(map(listed, range(150))), ParseSettings())
    assert len(units.page_of) == 150 * RECORDS
    assert len({units.page_of[unit] for unit in units.some_elements}) == 60
    assert len(units.elements) == 60 * RECORDS


def test_pages_of_which_few_have_lists_are_units_themselves() -> None:
    """Those that are looked at first have lists, all others have none."""
    made = pages(listed(number) if number % 3 == 0 else f"<h1>Thing {number}</h1>" for number in range(178))
    units = units_of(made, ParseSettings())
    assert not units.are_parts
    assert units.page_of == tuple(range(178))
