"""The whole table: columns, names, rows and the nodes that values stand in."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import UsageError
from siteloom.core.model import Page
from siteloom.html.node_paths import find
from siteloom.html.visible_text import normalize, visible_text
from siteloom.learning.discovery.table_discovery import discover, outline
from tests.apps.demo.sites import all_sites
from tests.learning.discovery.pages import LAYOUTS, built_in, dl, holders, page, pages, root_of, values_of
from tests.learning.discovery.test_columns import SENTENCE, prose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.apps.demo.sites.built_in_page import Kind
    from siteloom.learning.discovery.table_discovery import DiscoveredTable

COUNT = 12


# The original guide shows a rating beside the title, or on one page in fourteen in a table of facts.
SHOWN_IN_TWO_WAYS = {("original", "rating"): 0.92}


@pytest.mark.parametrize(
    ("site", "kind"),
    [
        ("original", "restaurant"),
        ("original", "event"),
        ("redesign", "restaurant"),
        ("redesign", "event"),
        ("directory", "restaurant"),
    ],
)
def test_each_attribute_of_the_built_in_pages_is_in_a_column(site: str, kind: Kind) -> None:
    made, table = built_in(site, kind)
    truths = [one.truth for one in made]
    assert table.record_xpath == ""
    assert [row.url for row in table.rows] == [one.page.url for one in made]
    assert len(table.columns) <= 40
    for attribute in truths[0]:
        best = max(holders(table, truths, attribute).values())
        assert best >= SHOWN_IN_TWO_WAYS.get((site, attribute), 0.95), attribute


@pytest.mark.parametrize("site", ["original", "redesign", "directory"])
def test_each_record_of_the_built_in_lists_is_a_row_with_its_fields(site: str) -> None:
    made, table = built_in(site, "list")
    truths = [(one.page.url, record) for one in made for record in one.records]
    assert [row.url for row in table.rows] == [url for url, _ in truths]
    for attribute in truths[0][1]:
        wanted = [record[attribute] for _, record in truths]
        assert wanted in [values_of(table, column.label) for column in table.columns], attribute


def test_fields_of_the_guide_have_the_names_that_it_gives_them() -> None:
    made, table = built_in("original", "restaurant")
    labels = {"name": "title", "phone": "Phone", "price": "Average main", "cuisine": "Cuisine"}
    labels |= {"hours": "Opening hours", "opened": "Opened", "email": "E-mail", "website": "Website"}
    for attribute, label in labels.items():
        assert [row[label] for row in table.rows] == [one.truth[attribute] for one in made], attribute
    types = {column.label: column.type for column in table.columns}
    assert types["Average main"] == "price"
    assert types["Opened"] == "date"
    assert types["Website"] == "url"


def test_record_like_clusters_have_more_telling_values() -> None:
    def likeness(kind: Kind) -> float:
        return built_in("original", kind)[1].record_likeness

    assert likeness("restaurant") > likeness("event") > likeness("list") > 3
    stories = [f"<h1>Story {n}</h1><div>{SENTENCE.format(n) * 3}</div>" for n in range(COUNT)]
    assert discover(pages(stories)).record_likeness < 1


NAMES = ("Size", "Weight", "Colour", "Maker", "Price")


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, str]]:
    """Made-up things; each field is missing on up to a third of them."""
    count = draw(st.integers(12, 18))
    names = NAMES[: draw(st.integers(3, len(NAMES)))]
    missing = {name: draw(st.sets(st.integers(0, count - 1), max_size=count // 3)) for name in names}
    words = st.text(st.characters(codec="utf-8", categories=["Lu", "Ll", "Lo", "Nd"]), min_size=1, max_size=9)
    return [
        {name: f"{draw(words)} {name[0]}{number}" for name in names if number not in missing[name]}
        for number in range(count)
    ]


@given(tables(), st.sampled_from(sorted(LAYOUTS)), st.booleans(), st.randoms(use_true_random=False))
def test_each_labelled_column_has_just_its_values(
    things: list[dict[str, str]], layout: str, mixed: bool, dice: object
) -> None:
    def body(thing: dict[str, str], number: int) -> str:
        fields = list(thing.items())
        if mixed:
            dice.shuffle(fields)  # type: ignore[attr-defined]
        extra = f"<div class=ad>Buy {number}!</div>" if number % 3 == 0 else ""
        return f"{extra}<h1>No. {number}</h1>{LAYOUTS[layout](fields)}"

    made = pages(body(thing, number) for number, thing in enumerate(things))
    table = discover(made)
    for name in {name for thing in things for name in thing}:
        expected = [(normalize(thing[name]),) if name in thing else () for thing in things]
        assert values_of(table, name) == expected
    assert_nodes_have_the_values(table, made)


def assert_nodes_have_the_values(table: DiscoveredTable, made: Sequence[Page]) -> None:
    """Each value stands where its node is said to be; running text in the element that is named."""
    roots = {one.url: root_of(one) for one in made}
    checked = 0
    for row in table.rows:
        root = roots[row.url]
        assert row.values.keys() == row.nodes.keys()
        for label, texts in row.values.items():
            for text, node in zip(texts, row.nodes[label], strict=True):
                if node.endswith("]") and not node.rpartition("/")[2].startswith("text()"):
                    element = find(root, node)
                    assert element is not None
                    shown = visible_text(element)
                    assert all(word in shown for word in text.split())
                else:
                    (raw,) = root.getroottree().xpath(node)
                    assert normalize(str(raw)) == text
                checked += 1
    assert checked


@pytest.mark.parametrize(
    ("site", "kind"),
    [("original", "restaurant"), ("redesign", "event"), ("original", "list"), ("directory", "list")],
)
def test_nodes_of_the_built_in_pages_have_the_values(site: str, kind: str) -> None:
    made = [one.page for one in all_sites()[site] if one.kind == kind][:30]
    assert_nodes_have_the_values(discover(made), made)


def test_running_text_is_one_value_of_the_element_around_it() -> None:
    made = pages(prose(number) for number in range(COUNT))
    table = discover(made)
    (label,) = [column.label for column in table.columns if column.label != "title"]
    assert table.rows[0][label] == (f"{SENTENCE.format('0.0')} {SENTENCE.format('0.3')}",)
    assert table.rows[0].nodes[label] == ("/html[1]/body[1]/div[1]/div[1]",)
    assert label == "Story"
    assert_nodes_have_the_values(table, made)


def test_values_are_texts_of_the_page_as_seen() -> None:
    made = pages(f"<h1>Thing\n  {n} &amp;\tmore</h1><p>x{n}<!-- no --> y</p>" for n in range(COUNT))
    table = discover(made)
    assert table.rows[3]["title"] == ("Thing 3 & more",)
    shown = [visible_text(root_of(one)) for one in made]
    for row, text in zip(table.rows, shown, strict=True):
        assert all(value in text for values in row.values.values() for value in values)


def test_comments_and_scripts_between_texts_do_not_move_nodes() -> None:
    made = pages(
        f"<p>one {n}<!-- c --> two {n}<script>x = {n}</script> three {n} <b>four {n}</b> five {n}</p>"
        for n in range(COUNT)
    )
    table = discover(made)
    assert sum(len(texts) for texts in table.rows[0].values.values()) == 5
    assert_nodes_have_the_values(table, made)


def test_pages_that_cannot_be_read_are_told_and_left_out() -> None:
    made = pages(f"<h1>Thing {n}</h1>" for n in range(COUNT))
    table = discover([made[0], Page(url="https://made-up.example/empty", html=b""), *made[1:]])
    assert [failure.url for failure in table.failures] == ["https://made-up.example/empty"]
    assert [row.url for row in table.rows] == [one.url for one in made]
    assert values_of(table, "title") == [(f"Thing {n}",) for n in range(COUNT)]


def test_without_a_page_there_is_no_table() -> None:
    for function in (discover, outline):
        with pytest.raises(UsageError, match="no page to discover a table in"):
            function([])


def test_pages_of_which_none_can_be_read_give_an_empty_table() -> None:
    nothing = [Page(url=f"https://made-up.example/{n}", html=b"") for n in range(3)]
    table = discover(nothing)
    assert (table.columns, table.rows, table.record_xpath, table.record_likeness) == ((), (), "", 0)
    assert [failure.url for failure in table.failures] == [one.url for one in nothing]
    assert outline(nothing) == (0, 0, False)


@pytest.mark.parametrize("kind", ["restaurant", "list"])
def test_an_outline_tells_how_the_table_will_be(kind: Kind) -> None:
    made, table = built_in("directory", kind)
    found = outline(one.page for one in made)
    assert found == (table.record_likeness, len(table.columns), bool(table.record_xpath))


def test_pages_on_which_nothing_varies_have_no_columns() -> None:
    table = discover(pages(["<h1>Closed</h1>"] * 5))
    assert table.columns == ()
    assert [dict(row.values) for row in table.rows] == [{}] * 5
    assert table.record_likeness == 0


def test_a_single_page_has_no_columns_unless_it_lists_things() -> None:
    assert discover([page("<h1>Thing</h1><p>Text</p>")]).columns == ()
    items = "".join(f"<li><a href=/{m}>Thing {m}</a> <i>£{m}</i></li>" for m in range(8))
    table = discover([page(f"<ul>{items}</ul>")])
    assert len(table.rows) == 8
    assert ("Thing 3",) in table.rows[3].values.values()


def test_two_pages_are_enough_for_columns() -> None:
    table = discover(pages(f"<h1>Thing {n}</h1><p class=maker>Maker {n}</p>" for n in range(2)))
    assert {column.label for column in table.columns} == {"title", "maker"}


def test_a_column_that_is_called_url_is_not_taken_for_the_address() -> None:
    table = discover(pages(dl([("url", f"here {n}"), ("Size", f"long {n}")]) for n in range(COUNT)))
    assert {column.label for column in table.columns} == {"url 2", "Size"}


def test_pages_of_one_address_are_rows_each() -> None:
    made = [page(f"<h1>Thing {n}</h1>", n // 2) for n in range(COUNT)]
    assert values_of(discover(made), "title") == [(f"Thing {n}",) for n in range(COUNT)]


def test_links_to_other_pages_of_the_site_are_no_columns() -> None:
    made = pages(
        f"<h1>Thing {n}</h1><a class=next href=https://made-up.example/p/{n + 1}>Next</a>"
        f"<a class=maker href=https://maker{n}.example/>Maker</a>"
        for n in range(COUNT)
    )
    assert {column.label for column in discover(made).columns} == {"title", "maker"}


def test_no_more_columns_than_a_person_can_look_through() -> None:
    made = pages(dl([(f"Field {m}", f"value {m} of {n}") for m in range(50)]) for n in range(COUNT))
    assert len(discover(made).columns) == 40


def test_shares_of_rows_and_types() -> None:
    made = pages(
        dl([("Price", f"£{n}.50"), *([("Born", f"{n + 1} May 1990")] if n % 2 else []), ("Size", f"L{n}")])
        for n in range(COUNT)
    )
    columns = {column.label: column for column in discover(made).columns}
    assert columns["Price"].filled == 1
    assert columns["Born"].filled == 0.5
    assert columns["Price"].type == "price"
    assert columns["Born"].type == "date"
    assert columns["Price"].informativeness == pytest.approx(1 - 1 / COUNT)


@pytest.mark.parametrize("field", ["右から左", "من اليمين", "שדה"])
def test_any_script(field: str) -> None:
    made = pages(dl([(f"{field}甲", f"值{n}"), (f"{field}乙", f"数{n}")]) for n in range(COUNT))
    table = discover(made)
    assert values_of(table, f"{field}甲") == [(f"值{n}",) for n in range(COUNT)]
    assert values_of(table, f"{field}乙") == [(f"数{n}",) for n in range(COUNT)]


def test_a_page_with_much_on_it() -> None:
    """A list of thousands is one column, and long texts are kept whole."""
    made = pages(
        f"<h1>Thing {n}</h1><div class=story>{SENTENCE.format(n) * 50}</div>"
        f"<ul>{''.join(f'<li>Part {n}.{m}' for m in range(3000))}</ul>"
        for n in range(3)
    )
    table = discover(made)
    assert len(table.rows[0]["story"][0]) > 3000
    sizes = Counter(len(texts) for row in table.rows for texts in row.values.values())
    assert sizes[3000] == 3


def flat_list(number: int, *, with_classes: bool) -> str:
    """Records that are neighbouring siblings, some of which have one less."""
    parts = []
    for m in range(12):
        note, price = (" class=note", " class=price") if with_classes else ("", "")
        parts.append(f"<h3><a href=/{number}/{m}>Thing {number}.{m}</a></h3>")
        parts.append(f"<p{note}>Note {number}.{m}</p>" if (number + m) % 3 else "")
        parts.append(f"<div{price}>Price {number}.{m}</div>")
    return f"<h1>List {number}</h1><div class=things>{''.join(parts)}</div>"


@pytest.mark.parametrize("with_classes", [True, False])
def test_a_missing_sibling_shifts_nothing_in_records_of_several_elements(with_classes: bool) -> None:
    made = pages(flat_list(number, with_classes=with_classes) for number in range(5))
    table = discover(made)
    numbers = [(n, m) for n in range(5) for m in range(12)]
    expected = {
        "Thing": [(f"Thing {n}.{m}",) for n, m in numbers],
        "Note": [(f"Note {n}.{m}",) if (n + m) % 3 else () for n, m in numbers],
        "Price": [(f"Price {n}.{m}",) for n, m in numbers],
    }
    found = [values_of(table, column.label) for column in table.columns]
    assert all(column in found for column in expected.values())
    assert len(found) == 3
    assert_nodes_have_the_values(table, made)
