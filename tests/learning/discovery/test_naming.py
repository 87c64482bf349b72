"""A column is called what the page calls it."""

from __future__ import annotations

from time import process_time
from typing import TYPE_CHECKING

import pytest
from lxml import etree

from siteloom.learning.discovery.column_names import ValueContext, column_name, is_short, tidy, unique
from siteloom.learning.discovery.table_discovery import discover
from tests.learning.discovery.pages import pages, values_of

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 12
ROW = "<tr><td>{m}. at {n}<td>Team {n}.{m}</tr>"


def named(make: Callable[[int], str], first: str) -> str:
    """The label of the column that has a text on the first page."""
    table = discover(pages([make(number) for number in range(COUNT)]))
    (label,) = [label for label, texts in table.rows[0].values.items() if texts[0] == first]
    return label


@pytest.mark.parametrize(
    ("markup", "label"),
    [
        ("<p><span itemprop=telephone class=t>V{n}</span>", "telephone"),
        ("<p><span property='schema:telephone'>V{n}</span>", "telephone"),
        ("<p itemprop=telephone><span>V{n}</span></p>", "telephone"),
        ("<p><span data-label=Telephone>V{n}</span>", "Telephone"),
        ("<dl><dt>Phone:</dt><dd>V{n}</dd></dl>", "Phone"),
        ("<dl><dt>Phone:</dt><dd><a><i>V{n}</i></a></dd></dl>", "Phone"),
        ("<table><tr><th>Phone</th><td>V{n}</td></tr></table>", "Phone"),
        ("<table><tr><td>Phone</td><td>V{n}</td></tr></table>", "Phone"),
        ("<p><b>Phone</b> V{n}</p>", "Phone"),
        ("<p><strong>Phone</strong><br><span class=x>V{n}</span></p>", "Phone"),
        ("<p>Phone: <span>V{n}</span></p>", "Phone"),
        ("<p>电话：<span>V{n}</span></p>", "电话"),  # noqa: RUF001
        ("<p dir=rtl><b>טלפון:</b> V{n}</p>", "טלפון"),
        ("<table><tr><th>Day<th>Phone</tr><tr><td>D{n}<td>V{n}</tr></table>", "Phone"),
        (
            "<p>Some words that all of these pages have got right here</p><h3>Phone</h3><div>V{n}</div>",
            "Phone",
        ),
        (
            "<table><tr><td><b>Day</b><td rowspan=2><td><b>Phone</b></tr><tr><td>D{n}<td>V{n}</tr></table>",
            "Phone",
        ),
        (
            "<table><tr><td class=h>Phone</tr><tr><td><img src=x></tr><tr><td class=v>V{n}</tr></table>",
            "Phone",
        ),
        (
            "<table><tr><td class=h>Group</tr><tr><td><b>Phone:</b> V{n}</tr></table>",
            "Phone",
        ),
        ("<table><tr><td>Land<td>Peru</tr><tr><td>Phone<td>V{n}</tr></table>", "Phone"),
        ("<h1>V{n}</h1>", "title"),
        ("<h1><a><span class=phone>V{n}</span></a></h1>", "title"),
        ("<p class='col-md bigPhone'>V{n}</p>", "big phone"),
        ("<div id=phone><p class='value'>V{n}</p></div>", "phone"),
        ("<p class=row>V{n}</p>", "text"),
    ],
)
def test_a_column_is_named_by_its_markup_or_by_what_stands_beside_it(markup: str, label: str) -> None:
    # Each value has a wrapper of its own with a picture before, so that nothing else is near.
    assert named(lambda n: f"<hr><div><div><div>{markup.format(n=n)}</div></div></div>", "V0") == label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Phone: {n}23", "Phone"),
        ("电话：{n}23", "电话"),  # noqa: RUF001
        ("12:3{n}", "text"),
        ("https://x{n}.example", "text"),
    ],
)
def test_a_text_may_name_itself(text: str, label: str) -> None:
    assert named(lambda n: f"<hr><div><div><p>{text.format(n=n)}</p></div></div>", text.format(n=0)) == label


@pytest.mark.parametrize(
    ("markup", "first", "label"),
    [
        ("<img src=/{n}.jpg>", "/0.jpg", "image"),
        ("<img src=/{n}.jpg class=portrait>", "/0.jpg", "portrait"),
        ("<img alt='View {n}' src=/x.jpg>", "View 0", "image text"),
        ("<img itemprop=photo src=/{n}.jpg>", "/0.jpg", "photo"),
        ("<a href=https://w{n}.example/>Open</a>", "https://w0.example/", "link"),
        ("<p>Web: <a href=https://w{n}.example/>Open</a>", "https://w0.example/", "Web"),
        ("<time datetime=2025-01-{n}>Then</time>", "2025-01-0", "time"),
    ],
)
def test_attributes_are_named_too(markup: str, first: str, label: str) -> None:
    assert named(lambda n: f"<hr><div><div><div>{markup.format(n=n)}</div></div></div>", first) == label


def test_a_value_before_another_does_not_name_it() -> None:
    kinds = ("Korean", "Thai", "Korean", "Korean", "Indian")

    def body(number: int) -> str:
        menu = "".join(f"<a>{kind}</a>" for kind in ("Indian", "Thai", "Korean"))
        return f"<nav>{menu}</nav><div><p>{kinds[number % 5]}</p><i>Score {number}</i></div>"

    assert named(body, "Score 0") == "text"


def test_names_of_a_record_come_from_inside_of_it() -> None:
    def body(number: int) -> str:
        records = "".join(
            f"<li><h3><a href=/{number}/{m}>Thing {number}.{m}</a></h3><img src=/{number}.{m}.jpg>"
            f"<i>£{number}.{m}</i><p>Place {number}.{m}</p></li>"
            for m in range(6)
        )
        return f"<h2>Offers</h2><ul class=offers>{records}</ul>"

    table = discover(pages(map(body, range(4))))
    assert table.record_xpath
    assert values_of(table, "title")[0] == ("Thing 0.0",)
    assert values_of(table, "image")[0] == ("/0.0.jpg",)
    assert {column.label for column in table.columns} == {"title", "image", "text", "text 2"}


def places(*markups: str) -> list[ValueContext]:
    found = []
    for markup in markups:
        root = etree.fromstring(markup, etree.HTMLParser())
        (element,) = root.xpath("//*[@id='here']")
        found.append(ValueContext(element, element.text or "", None, None))
    return found


def test_a_text_with_a_value_of_its_own_names_no_other() -> None:
    markup = "<hr><div><div><p><b>Elected: 2013</b> <i>V{}</i></p></div></div>"
    assert named(markup.format, "V0") == "text"


def test_a_heading_far_above_is_not_looked_for() -> None:
    """Pages may have any number of equal texts before a value."""
    many = "<span>again</span>" * 20_000
    start = process_time()
    found = places(f"<h2>Far</h2>{many}<span id=here>v</span>")
    for _ in range(40):
        assert column_name(found, "Far") == "here"
    assert process_time() - start < 2


LABELLED = "<p><b>Size</b> <i id=here>{}</i></p>"
UNLABELLED = "<p><b>{0}</b> <i id=here>{0}</i></p>"


def test_most_places_must_agree_on_a_label() -> None:
    labelled = [LABELLED.format(n) for n in range(4)]
    assert column_name(places(*labelled, UNLABELLED.format("other")), "Size") == "Size"
    fewer = [*labelled[:3], UNLABELLED.format("other"), UNLABELLED.format("again")]
    assert column_name(places(*fewer), "Size") == "here"


def test_a_label_must_be_template_text() -> None:
    labelled = places(*(LABELLED.format(n) for n in range(4)))
    assert column_name(labelled, "Size") == "Size"
    assert column_name(labelled, "Weight") == "here"
    assert column_name(labelled, None) == "here"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (" Phone : ", "Phone"),
        ("» Price (", "Price"),
        ("E-mail", "E-mail"),
        ("电话：", "电话"),  # noqa: RUF001
        ("--", "--"),
        ("Price (USD):", "Price (USD)"),
        ("(Phone)", "Phone"),
        ("Phone)", "Phone"),
        ("News (last updated", "News"),
        ("(", "("),
    ],
)
def test_names_have_no_signs_around_them(text: str, name: str) -> None:
    assert tidy(text) == name


def test_sentences_and_numbers_are_no_names() -> None:
    assert is_short("Average main")
    assert not is_short("This is what many people say about us")
    assert not is_short("x" * 50)
    assert not is_short("12.30")
    assert not is_short("on 11/22/2009")
    assert is_short("Top 10")


def test_names_that_come_again_are_numbered() -> None:
    assert unique(["url", "a", "a", "a 2", "url", "a"]) == ["url", "a", "a 2", "a 2 2", "url 2", "a 3"]
    assert unique(["Tel", "tel", "TEL"]) == ["Tel", "tel 2", "TEL 3"]


def test_the_last_link_of_a_menu_names_nothing() -> None:
    menu = "<td><a href=/a>Thai</a> <a href=/b>Korean</a></td>"
    page = f"<table><tr>{menu}<td class=score>{{n}}.5</td></tr></table>"
    assert named(page.replace("{n}", "{}").format, "0.5") != "Korean"
