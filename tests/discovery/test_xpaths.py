"""The XPath of a column gives what the column has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from siteloom.discovery import discover
from siteloom.discovery.xpaths import record_xpath
from siteloom.dom import normalize

from .pages import LAYOUTS, built_in, page, pages, root_of

if TYPE_CHECKING:
    from siteloom.discovery import DiscoveredTable
    from siteloom.dom import Element
    from siteloom.model import Page

COUNT = 12
LABELS = ("Size", "Weight", 'The "best" price', "Maker's name")


def found(element: Element, xpath: str) -> tuple[str, ...]:
    texts = [normalize(str(text)) for text in element.xpath(xpath)]
    return tuple(text for text in texts if re.search(r"\w", text))


def assert_xpaths_give_the_cells(table: DiscoveredTable, made: list[Page]) -> None:
    for row, one in zip(table.rows, made, strict=True):
        root = root_of(one)
        for column in table.columns:
            assert found(root, column.xpath) == row[column.label], (column, row.url)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_labelled_fields(layout: str) -> None:
    made = pages(
        f"<h1>Thing {n}</h1>"
        + LAYOUTS[layout]([(label, f"{label[:2]} {n}") for m, label in enumerate(LABELS) if (n + m) % 4])
        for n in range(COUNT)
    )
    table = discover(made)
    assert len(table.columns) == 1 + len(LABELS)
    assert_xpaths_give_the_cells(table, made)


def test_classes_ids_and_attributes() -> None:
    made = pages(
        f"<div id=box-{n}><p class='a \"b\"'>A {n}</p><p class=maker>C {n}</p></div>"
        f"<div id=side><p>D {n}</p></div>"
        f"<img class=photo src=/{n}.jpg><o:p>E {n}</o:p>"
        f"<dl><dt>Mail<dd><a href=mailto:m{n}@x.example>Write</a>"
        f"<dt>Web<dd><a href=https://w{n}.example/>Go</a></dl>"
        for n in range(COUNT)
    )
    table = discover(made)
    assert len(table.columns) == 7
    assert_xpaths_give_the_cells(table, made)
    xpaths = {column.label: column.xpath for column in table.columns}
    assert xpaths["maker"] == "//p[@class='maker']/text()"
    assert xpaths["photo"] == "//img[@class='photo']/@src"


def record_list(number: int) -> str:
    """Records of which one stands out."""
    items = "".join(
        f"<div class={'spons' if m == 0 else 'card'}><h3><a href=/{number}/{m}>Thing {number}.{m}</a></h3>"
        f"<i>£{number}.{m}</i></div>"
        for m in range(6)
    )
    return f"<h1>List {number}</h1><div class=cards>{items}</div>"


def test_records_that_stand_out_are_found_with_the_others() -> None:
    made = pages(record_list(n) for n in range(4))
    table = discover(made)
    records = [element for one in made for element in root_of(one).xpath(table.record_xpath)]
    assert len(records) == len(table.rows) == 24
    for column in table.columns:
        assert [found(record, column.xpath) for record in records] == [
            row[column.label] for row in table.rows
        ]


def test_the_shortest_xpath_of_records_finds_no_others() -> None:
    roots = [
        root_of(page(f"<div class=card>Ad</div><div class=cards>{record_list(n)}</div>", n)) for n in (1, 2)
    ]
    cards = [card for root in roots for card in root.xpath("//div[@class='cards']/div[@class='cards']/div")]
    xpath = record_xpath(cards)
    assert [element for root in roots for element in root.xpath(xpath)] == cards


def test_records_of_several_rows() -> None:
    def body(number: int) -> str:
        rows = "".join(
            f"<tr class=head><td colspan=2><a href=/{number}/{m}>Thing {number}.{m}</a></tr>"
            f"<tr class=more><td>Maker {number}.{m}<td>Place {number}.{m}</tr>"
            for m in range(8)
        )
        return f"<table>{rows}</table>"

    made = pages(body(n) for n in range(4))
    table = discover(made)
    assert len(table.rows) == 32
    records = [element for one in made for element in root_of(one).xpath(table.record_xpath)]
    kinds = set()
    for column in table.columns:
        texts = [found(record, column.xpath) for record in records]
        assert texts == [row[column.label] for row in table.rows]
        kinds |= {text.split()[0] for text in texts[0]}
    assert kinds == {"Thing", "Maker", "Place"}


@pytest.mark.parametrize("site", ["original", "redesign", "directory"])
def test_xpaths_of_the_built_in_lists(site: str) -> None:
    lists, table = built_in(site, "list")
    records = [element for one in lists for element in root_of(one.page).xpath(table.record_xpath)]
    assert len(records) == len(table.rows)
    wrong = [
        column.label
        for column in table.columns
        for texts in [[found(record, column.xpath) for record in records]]
        if texts != [row[column.label] for row in table.rows]
    ]
    # The cuisines of the guide stand in elements without a class beside one that has one.
    assert wrong == (["strap"] if site == "original" else [])
