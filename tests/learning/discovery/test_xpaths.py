"""The XPath of a column gives what the column has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from siteloom.html.visible_text import normalize, visible_text
from siteloom.learning.discovery.column_xpaths import record_xpath
from siteloom.learning.discovery.table_discovery import discover
from tests.learning.discovery.pages import LAYOUTS, built_in, page, pages, root_of
from tests.learning.discovery.test_columns import prose

if TYPE_CHECKING:
    from siteloom.core.model import Page
    from siteloom.html.parser import Element
    from siteloom.learning.discovery.table_discovery import DiscoveredTable

COUNT = 12
LABELS = ("Size", "Weight", 'The "best" price', "Maker's name")


def found(element: Element, xpath: str) -> tuple[str, ...]:
    texts = [normalize(one) if isinstance(one, str) else visible_text(one) for one in element.xpath(xpath)]
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


def test_labels_and_values_deep_in_their_cells() -> None:
    def row(label: str, *texts: str) -> str:
        return f"<tr><td><b>{label}:</b><td><span>{'</span><br><span>'.join(texts)}</span></tr>"

    made = pages(
        f"<h1>Thing {n}</h1><table class=facts>"
        + (row("Size", f"S {n}") if n % 3 else "")
        + (row("Made&nbsp;of", f"Wood {n}", f"Steel {n}") if n % 4 else "")
        + row("Maker", f"M {n}")
        + f"</table><table class=other>{row('Size', f'Other {n}')}{row('Maker', f'Other M {n}')}</table>"
        for n in range(COUNT)
    )
    table = discover(made)
    labelled = [column for column in table.columns if column.label != "title"]
    assert {column.label.removesuffix(" 2") for column in labelled} == {"Size", "Made of", "Maker"}
    assert_xpaths_give_the_cells(table, made)


def test_a_place_is_better_than_a_class_that_others_have() -> None:
    made = pages(
        f"<ul class=facts><li>Colour {n}</li><li>and</li><li>Length {n}</li></ul>"
        f"<p class=note>Note {n}</p>{'<p class=note>More</p>' * 3}"
        for n in range(COUNT)
    )
    table = discover(made)
    assert len(table.columns) == 3
    assert_xpaths_give_the_cells(table, made)
    assert not any(column.xpath.startswith("/html") for column in table.columns)


def test_running_text_is_the_element_around_it() -> None:
    made = pages(prose(n) for n in range(COUNT))
    table = discover(made)
    (column,) = [column for column in table.columns if column.label == "Story"]
    for row, one in zip(table.rows, made, strict=True):
        root = root_of(one)
        assert root.xpath(column.xpath) == root.getroottree().xpath(row.nodes["Story"][0])


def test_running_text_of_records_is_reached_from_the_record() -> None:
    def body(number: int) -> str:
        items = "".join(
            f"<div class=card><h3><a href=/{number}/{m}>Thing {number}.{m}</a></h3>"
            f"{prose(number * 10 + m)}</div>"
            for m in range(6)
        )
        return f"<div class=cards>{items}</div>"

    made = pages(body(n) for n in range(6))
    table = discover(made)
    told = [column for column in table.columns if len(table.rows[0][column.label][0]) > 60]
    assert table.record_xpath
    assert told
    records = [element for one in made for element in root_of(one).xpath(table.record_xpath)]
    assert len(records) == len(table.rows)
    for column in told:
        shown = [found(record, column.xpath) for record in records]
        assert all(
            set(text.split()) <= set(" ".join(texts).split())
            for row, texts in zip(table.rows, shown, strict=True)
            for text in row[column.label]
        )


@pytest.mark.parametrize(("site", "least"), [("original", 0.93), ("redesign", 0.9), ("directory", 1)])
def test_xpaths_of_the_built_in_pages(site: str, least: float) -> None:
    """Fields are found beside their labels, wherever these stand on a page."""
    made, table = built_in(site, "restaurant")
    some = [(root_of(one.page), row) for one, row in zip(made[::4], table.rows[::4], strict=True)]
    shares = {
        column.label: sum(found(root, column.xpath) == row[column.label] for root, row in some) / len(some)
        for column in table.columns
    }
    assert sum(shares.values()) / len(shares) >= least
    if site == "original":
        assert min(shares[label] for label in ("Phone", "Cuisine", "Opening hours", "Average main")) >= 0.85


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
