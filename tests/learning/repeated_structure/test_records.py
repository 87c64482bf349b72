"""Records of list pages: where they begin, what belongs to them, what is none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest

from siteloom import Example, ExampleNotFound, Page, Wrapper, learn
from siteloom.core.errors import ExampleError, SiteloomError
from siteloom.learning.repeated_structure.record_rules import find_records, record_rule
from siteloom.learning.value_search.value_locations import ValueIndex
from siteloom.wrappers.rule_evaluation import records
from tests.html.trees import tree

Row = dict[str, str]


def page(html: str, number: int = 0) -> Page:
    return Page.from_text(f"https://list.example/{number}", html)


def known(*rows: Mapping[str, str]) -> list[dict[str, list[str]]]:
    return [{name: [text] for name, text in row.items()} for row in rows]


def learned(html: str, *rows: Mapping[str, str], others: Sequence[str] = ()) -> Wrapper:
    """A wrapper from a list page and some of its records."""
    unlabelled = [page(other, number) for number, other in enumerate(others, 1)]
    return learn([Example(page(html), records=known(*rows))], unlabelled)


def rows(wrapper: Wrapper, html: str) -> list[Row]:
    found = wrapper.extract_all(page(html, 99))
    return [{name: "|".join(texts) for name, texts in record.values.items()} for record in found]


ITEMS = [{"name": f"Item {number}", "price": f"${number}.50"} for number in range(8)]


def card(item: Mapping[str, str], css: str = "card") -> str:
    price = f"<span class=price>{item['price']}</span>" if "price" in item else ""
    return f'<li class="{css}"><h4>{item["name"]}</h4>{price}<p>In stock</p></li>'


def listing(cards: Sequence[str], css: str = "cards") -> str:
    return f"""<ul class=menu><li>Home</li><li>About us</li></ul><h1>All</h1>
        <ul class="{css}">{"".join(cards)}</ul><ul class=legal><li>Terms</li></ul>"""


CARDS = [card(item) for item in ITEMS]


# ---- containers


def test_two_records_are_enough_for_all() -> None:
    wrapper = learned(listing(CARDS), *ITEMS[:2])
    assert rows(wrapper, listing(CARDS)) == ITEMS
    assert wrapper.record_rule is not None
    assert not wrapper.record_rule.runs_on


@pytest.mark.parametrize("number", [0, 3, 7])
def test_a_single_record_is_enough_where_others_look_the_same(number: int) -> None:
    assert rows(learned(listing(CARDS), ITEMS[number]), listing(CARDS)) == ITEMS


def test_any_two_records_will_do_and_in_any_order() -> None:
    assert rows(learned(listing(CARDS), ITEMS[6], ITEMS[2], ITEMS[4]), listing(CARDS)) == ITEMS


def test_rows_of_a_table_are_records_and_its_head_is_none() -> None:
    body = "".join(f"<tr><td>{item['name']}</td><td>{item['price']}</td></tr>" for item in ITEMS)
    html = f"<table id=t><tr><th>Name</th><th>Price</th></tr>{body}</table><table><tr><td>x</td></tr></table>"
    assert rows(learned(html, *ITEMS[:2]), html) == ITEMS


def grid(items: Sequence[Mapping[str, str]]) -> str:
    cells = [f"<td class=cell><b>{item['name']}</b><i>{item['price']}</i></td>" for item in items]
    lines = [f"<tr>{''.join(cells[start : start + 3])}</tr>" for start in range(0, len(cells), 3)]
    return f"<table id=grid>{''.join(lines)}</table><table><tr><td>Terms</td></tr></table>"


@pytest.mark.parametrize("given", [(0, 1), (0, 4), (1, 3), (2, 3, 7), (0, 1, 2)])
def test_cards_in_rows_of_a_grid_are_records_not_the_rows(given: tuple[int, ...]) -> None:
    wrapper = learned(grid(ITEMS), *(ITEMS[number] for number in given))
    assert rows(wrapper, grid(ITEMS)) == ITEMS


def test_records_that_stand_in_boxes_of_their_own() -> None:
    html = "".join(f"<div class=outer><div class=inner>{card(item)}</div></div>" for item in ITEMS)
    assert rows(learned(html, *ITEMS[:2]), html) == ITEMS


def test_odd_and_even_records_have_different_classes() -> None:
    cards = [card(item, f"card {'odd' if number % 2 else 'even'}") for number, item in enumerate(ITEMS)]
    for given in (ITEMS[:2], [ITEMS[0], ITEMS[2]]):
        assert rows(learned(listing(cards), *given), listing(cards)) == ITEMS


# ---- records that look different, and what is none


@pytest.mark.parametrize("css", ["card sponsored", "promo"])
def test_a_sponsored_card_is_a_record_as_well(css: str) -> None:
    cards = [card(item, css if number == 3 else "card") for number, item in enumerate(ITEMS)]
    assert rows(learned(listing(cards), *ITEMS[:2]), listing(cards)) == ITEMS


@pytest.mark.parametrize(
    "advert",
    ["<li class=card><img src=x.png>Buy now!</li>", "<li class=ad><b>Buy</b> <i>now</i></li>", "<hr>"],
)
def test_an_advertisement_among_the_cards_is_none(advert: str) -> None:
    cards = [*CARDS[:3], advert, *CARDS[3:]]
    assert rows(learned(listing(cards), *ITEMS[:2]), listing(cards)) == ITEMS


@pytest.mark.parametrize("missing", [0, 2, 7])
def test_a_missing_price_is_missing_in_its_record_only(missing: int) -> None:
    items = [dict(item) for item in ITEMS]
    del items[missing]["price"]
    html = listing([card(item) for item in items])
    others = [item for number, item in enumerate(items) if number != missing]
    assert rows(learned(html, *others[:2]), html) == items
    # It makes no difference whether it is known to be absent.
    known_rows = [*known(*others[:2]), {"name": [items[missing]["name"]], "price": []}]
    told = learn([Example(page(html), records=known_rows)])
    assert rows(told, html) == items
    assert told.attributes["price"].attribute.mandatory is False


def test_other_list_pages_show_how_records_differ() -> None:
    first = listing([card(item, "card new") for item in ITEMS])
    second = listing([card(item, "card" if number % 2 else "card new") for number, item in enumerate(ITEMS)])
    wrapper = learned(first, *ITEMS[:2], others=[second])
    assert rows(wrapper, second) == ITEMS
    assert rows(wrapper, first) == ITEMS


def test_examples_of_two_list_pages() -> None:
    first, second = listing(CARDS[:4], "cards oak"), listing(CARDS[4:], "cards elm")
    wrapper = learn(
        [
            Example(page(first, 1), records=known(*ITEMS[:2])),
            Example(page(second, 2), records=known(ITEMS[4])),
        ]
    )
    assert rows(wrapper, first) == ITEMS[:4]
    assert rows(wrapper, second) == ITEMS[4:]


def test_renamed_classes_are_made_up_for_by_the_rest_of_the_rule() -> None:
    def html(css: str) -> str:
        cards = [f"<div class={css}><h4>{item['name']}</h4><b>{item['price']}</b></div>" for item in ITEMS]
        return f"<nav><p>Home</p></nav><section class={css}s>{''.join(cards)}</section><p>foot</p>"

    wrapper = learned(html("card"), *ITEMS[:2])
    assert wrapper.record_rule is not None
    assert wrapper.record_rule.fallback
    assert {feature.kind for feature in wrapper.record_rule.fallback} == {"tag"}
    assert rows(wrapper, html("tile")) == ITEMS
    assert rows(wrapper, "<p>nothing here</p>") == []


def test_without_its_names_a_rule_that_would_find_more_is_no_fallback() -> None:
    wrapper = learned(listing(CARDS), *ITEMS[:2])
    assert wrapper.record_rule is not None
    assert wrapper.record_rule.fallback == ()
    assert rows(wrapper, listing([card(item, "tile") for item in ITEMS], "tiles")) == []


# ---- flat lists


def flat_list(items: Sequence[Mapping[str, str]]) -> str:
    inside = "".join(f"<dt>{item['name']}</dt><dd>{item['price']}</dd>" for item in items)
    return f"<dl class=a><dt>Help</dt></dl><dl class=list>{inside}</dl><p>after</p>"


def test_terms_with_their_descriptions() -> None:
    wrapper = learned(flat_list(ITEMS), *ITEMS[:2])
    assert wrapper.record_rule is not None
    assert wrapper.record_rule.runs_on
    assert rows(wrapper, flat_list(ITEMS)) == ITEMS


def headings(items: Sequence[Mapping[str, str]]) -> str:
    inside = "".join(
        f"<h3>{item['name']}</h3><p>{item['price']}</p>"
        + (f"<p>{item['more']}</p>" if "more" in item else "")
        for item in items
    )
    return f"<div id=list><p>These are all.</p>{inside}</div><p>after</p>"


TOLD = [{"name": f"T{number}", "price": f"D{number}", "more": f"E{number}"} for number in range(6)]


def test_headings_with_paragraphs() -> None:
    assert rows(learned(headings(TOLD), *TOLD[:2]), headings(TOLD)) == TOLD


def test_a_flat_record_that_lacks_something_takes_nothing_from_the_next() -> None:
    items = [dict(item) for item in TOLD]
    del items[3]["more"]
    assert rows(learned(headings(items), *items[:3]), headings(items)) == items


def test_texts_that_stand_between_the_elements_of_flat_records() -> None:
    inside = "".join(f"<b>{item['name']}</b> {item['price']}<br>" for item in ITEMS)
    html = f"<div class=list>{inside}</div><div><b>Terms</b></div>"
    assert rows(learned(html, *ITEMS[:3]), html) == ITEMS


def test_a_page_without_flat_records_has_none() -> None:
    assert rows(learned(flat_list(ITEMS), *ITEMS[:2]), "<p>nothing here</p>") == []


# ---- what is given


def test_values_that_stand_more_than_once_belong_to_the_record_they_are_near() -> None:
    items = [{"name": f"Item {number}", "price": "$5"} for number in range(6)]
    html = listing([card(item) for item in items])
    assert rows(learned(html, items[4], items[1]), html) == items


def test_records_that_cannot_be_told_apart_are_a_mistake() -> None:
    for html, given in [
        (listing(CARDS), [ITEMS[0], ITEMS[0]]),
        (listing(CARDS), [{"name": "Item 0", "price": "$1.50"}, {"name": "Item 1", "price": "$0.50"}]),
        ("<p>One $1<br>Two $2</p>", [{"name": "One"}, {"name": "Two"}]),
        ("<p>One $1<br><b>Two</b> $2</p>", [{"name": "One"}, {"name": "Two"}]),
    ]:
        with pytest.raises(ExampleError, match="cannot be told apart"):
            learned(html, *given)


def test_a_record_without_values_is_a_mistake() -> None:
    nothing: list[dict[str, list[str]]] = [{}, {"name": []}]
    for empty in nothing:
        with pytest.raises(ExampleError, match="has no values: leave it out"):
            learn([Example(page(listing(CARDS)), records=[*known(ITEMS[0]), empty])])


def test_a_record_with_a_value_that_is_not_there() -> None:
    with pytest.raises(ExampleNotFound) as raised:
        learned(listing(CARDS), ITEMS[0], {"name": "Item 1", "price": "$1.60"})
    error = raised.value
    assert (error.attribute, error.value, error.nearest) == ("price", "$1.60", "$1.50")


def test_the_records_of_the_examples_are_found_first() -> None:
    root = tree(listing(CARDS))
    found = find_records("u", root, known(*ITEMS[:2]), ValueIndex(root))
    assert [(start.tag, start.get("class")) for start in found.starts] == [("li", "card")] * 2
    rule = record_rule(found.starts, [], runs_on=found.runs_on, min_attributes=2)
    assert rule.least == 2
    assert len(records(rule, root)) == len(CARDS)


def test_what_has_less_than_half_of_the_attributes_is_no_record() -> None:
    items = [
        {**item, "stock": f"{number} left", "size": f"size {number}"} for number, item in enumerate(ITEMS)
    ]

    def html(extra: str) -> str:
        cards = [
            f"<li><b>{i['name']}</b><i>{i['price']}</i><u>{i['stock']}</u><em>{i['size']}</em></li>"
            for i in items
        ]
        return f"<ul id=l>{''.join(cards)}{extra}</ul>"

    wrapper = learned(html(""), *items[:2])
    assert rows(wrapper, html("<li><b>Buy now</b></li>")) == items
    more = {"name": "Last", "price": "$3"}
    assert rows(wrapper, html("<li><b>Last</b><i>$3</i></li>")) == [*items, more]


# ---- values tied to their nodes


def stocked(*cards: tuple[str, str]) -> str:
    """Cards of which nothing but their nodes tells the values apart."""
    items = "".join(f"<div class=item><b>{stock}</b><i>{price}</i></div>" for stock, price in cards)
    return f"<body><p>Shop</p><div id=items>{items}</div></body>"


def item_nodes(number: int) -> dict[str, list[str]]:
    inside = f"/html[1]/body[1]/div[1]/div[{number}]"
    return {"stock": [f"{inside}/b[1]/text()[1]"], "price": [f"{inside}/i[1]/text()[1]"]}


ALIKE = stocked(("In stock", "$9.99"), ("In stock", "$9.99"), ("Sold out", "$4"), ("In stock", "$5"))
SAME: dict[str, list[str]] = {"stock": ["In stock"], "price": ["$9.99"]}


def test_records_that_say_the_same_are_told_apart_by_nodes() -> None:
    with pytest.raises(ExampleError, match="told apart"):
        learn([Example(page(ALIKE), records=[SAME, SAME])])
    wrapper = learn([Example(page(ALIKE), records=[SAME, SAME], record_nodes=[item_nodes(1), item_nodes(2)])])
    assert rows(wrapper, ALIKE) == [
        {"stock": "In stock", "price": "$9.99"},
        {"stock": "In stock", "price": "$9.99"},
        {"stock": "Sold out", "price": "$4"},
        {"stock": "In stock", "price": "$5"},
    ]


def test_a_record_begins_where_its_nodes_are() -> None:
    root = tree(ALIKE)
    both = [item_nodes(2), item_nodes(4)]
    values = [SAME, {"stock": ["In stock"], "price": ["$5"]}]
    found = find_records("http://x", root, values, ValueIndex(root), both)
    items = root.findall(".//div[@class='item']")
    assert found.starts == [items[1], items[3]]


def test_some_values_may_be_tied_and_some_attributes_missing() -> None:
    html = stocked(("In stock", "$1"), ("In stock", "$2"), ("In stock", "$3"))
    given = [
        {"stock": ["In stock"], "price": ["$1"]},
        {"stock": ["In stock"], "price": []},
        {"price": ["$3"]},
    ]
    nodes = [{}, {"stock": item_nodes(2)["stock"]}, {}]
    labelled = learn([Example(page(html), records=given, record_nodes=nodes)])
    assert [row["stock"] for row in rows(labelled, html)] == ["In stock"] * 3


@pytest.mark.parametrize(
    ("record_nodes", "sentence"),
    [
        ([item_nodes(1)], "has nodes for 1 records, but 2 records"),
        ([item_nodes(1), {"size": ["/html[1]"]}], "has nodes for size, but no values"),
        ([item_nodes(1), {"price": item_nodes(2)["price"] * 2}], "has more nodes for price than values"),
        ([item_nodes(1), {"price": item_nodes(3)["price"]}], "9.99"),
    ],
)
def test_nodes_that_do_not_go_with_the_records(
    record_nodes: list[dict[str, list[str]]], sentence: str
) -> None:
    example = Example(page(ALIKE), records=[SAME, SAME], record_nodes=record_nodes)
    with pytest.raises(SiteloomError, match=re.escape(sentence)):
        learn([example])
