"""Small changes of a page on which other learners of wrappers give wrong values."""

from __future__ import annotations

import pytest

from siteloom import Example, Page, Wrapper, learn

PRODUCTS = (
    ("Lamp", "$12.99", "red", "4.5 kg"),
    ("Desk", "$89.00", "oak", "30 kg"),
    ("Chair", "$45.50", "blue", "7.2 kg"),
    ("Shelf", "$31.00", "white", "11 kg"),
    ("Bench", "$61.25", "green", "16 kg"),
)
NAMES = ("name", "price", "colour", "weight")
CLASSES = ("product", "title", "price", "specs", "label", "value")


def product(
    name: str,
    price: str | None,
    colour: str | None,
    weight: str | None,
    classes: tuple[str, ...] = CLASSES,
    more: str = "",
) -> str:
    box, title, cost, specs, label, value = classes

    def row(term: str, text: str | None) -> str:
        if text is None:
            return ""
        return f'<tr><th class="{label}">{term}</th><td class="{value}">{text}</td></tr>'

    offer = "" if price is None else f'<p class="{cost}">Our price: <b>{price}</b></p>'
    return f"""<html><body><nav><a href="/">Home</a> <a href="/all">All products</a></nav>
        <div class="{box}"><h1 class="{title}">{name}</h1>{offer}
        <table class="{specs}">{row("Colour", colour)}{row("Weight", weight)}</table></div>
        {more}<footer>Call 555-0100</footer></body></html>"""


def page(number: int, html: str) -> Page:
    return Page.from_text(f"https://shop.example/{number}", html)


PAGES = tuple(page(number, product(*values)) for number, values in enumerate(PRODUCTS))
EXAMPLES = [
    Example(page, {name: [value] for name, value in zip(NAMES, values, strict=True)})
    for page, values in zip(PAGES[:2], PRODUCTS, strict=False)
]


@pytest.fixture(scope="module", params=["alone", "with other pages"])
def wrapper(request: pytest.FixtureRequest) -> Wrapper:
    return learn(EXAMPLES, PAGES if request.param == "with other pages" else ())


def extracted(wrapper: Wrapper, html: str) -> dict[str, str]:
    record = wrapper.extract(page(99, html))
    assert all(len(values) == 1 for values in record.values.values())
    return {name: values[0] for name, values in record.values.items()}


def test_a_plain_unseen_page(wrapper: Wrapper) -> None:
    for values in PRODUCTS:
        assert extracted(wrapper, product(*values)) == dict(zip(NAMES, values, strict=True))


@pytest.mark.parametrize("missing", ["colour", "weight", "price"])
def test_a_missing_field_does_not_shift_its_neighbour_in(wrapper: Wrapper, missing: str) -> None:
    values: dict[str, str | None] = dict(zip(NAMES, PRODUCTS[3], strict=True))
    values[missing] = None
    found = extracted(
        wrapper, product(values["name"] or "", values["price"], values["colour"], values["weight"])
    )
    assert found == {name: value for name, value in values.items() if value is not None}


RENAMED = ("c-a1", "c-b2", "c-c3", "c-d4", "c-e5", "c-f6")


def test_where_all_class_names_are_renamed_nothing_is_wrong(wrapper: Wrapper) -> None:
    for values in PRODUCTS:
        found = extracted(wrapper, product(*values, classes=RENAMED))
        expected = dict(zip(NAMES, values, strict=True))
        assert found.items() <= expected.items()
        assert {"price", "colour", "weight"} <= found.keys()
        # No neighbour steps in either.
        found = extracted(wrapper, product(values[0], None, None, values[3], classes=RENAMED))
        assert found.items() <= expected.items()
        assert found.keys() <= {"name", "weight"}


def test_where_all_class_names_are_renamed_two_examples_are_enough_to_find_everything() -> None:
    for values in PRODUCTS:
        found = extracted(learn(EXAMPLES), product(*values, classes=RENAMED))
        assert found == dict(zip(NAMES, values, strict=True))


@pytest.mark.parametrize(
    "more",
    [
        "",
        "<table><tr><td>7</td><td>8</td></tr></table>",
        "<p>Shipping: <b>$4.99</b></p>",
        '<p class="others">Also bought: <b>Stool</b> for <i>$9.99</i></p>',
    ],
)
def test_a_price_that_is_gone_is_not_replaced(wrapper: Wrapper, more: str) -> None:
    found = extracted(wrapper, product("Stool", None, "black", "3 kg", more=more))
    assert found == {"name": "Stool", "colour": "black", "weight": "3 kg"}


# ---- lists


def card(name: str, price: str | None, card_class: str = "card") -> str:
    cost = "" if price is None else f'<span class="price">{price}</span>'
    return f'<div class="{card_class}"><h2><a href="/{name}">{name}</a></h2>{cost}<p>In stock</p></div>'


def listing(cards: list[str]) -> str:
    return f"""<html><body><nav><div><a href="/">Home</a></div></nav>
        <div id="list">{"".join(cards)}</div><footer><div>Call us</div></footer></body></html>"""


ITEMS = [(f"Item {number}", f"${number}.50") for number in range(1, 21)]


@pytest.fixture(scope="module")
def list_wrapper() -> Wrapper:
    records = [{"name": [name], "price": [price]} for name, price in ITEMS[:2]]
    return learn([Example(page(0, listing([card(*item) for item in ITEMS[:10]])), records=records)])


def rows(wrapper: Wrapper, cards: list[str]) -> list[tuple[str | None, str | None]]:
    found = wrapper.extract_all(page(1, listing(cards)))
    return [
        (record.values.get("name", (None,))[0], record.values.get("price", (None,))[0]) for record in found
    ]


def test_twenty_cards_with_a_renamed_class_are_twenty_records(list_wrapper: Wrapper) -> None:
    assert rows(list_wrapper, [card(*item) for item in ITEMS]) == ITEMS
    assert rows(list_wrapper, [card(*item, card_class="tile-9f3") for item in ITEMS]) == ITEMS


@pytest.mark.parametrize("missing", [0, 4, 9])
def test_in_a_list_of_ten_a_missing_price_leaves_the_others_where_they_are(
    list_wrapper: Wrapper, missing: int
) -> None:
    items = [(name, None if number == missing else price) for number, (name, price) in enumerate(ITEMS[:10])]
    assert rows(list_wrapper, [card(*item) for item in items]) == items


# ---- size


def test_a_page_of_nine_thousand_elements() -> None:
    many = "".join(f"<tr><td>{n}</td><td><i>part {n}</i></td></tr>" for n in range(2_250))
    big = [
        page(number, product(*values, more=f"<table>{many}</table>"))
        for number, values in enumerate(PRODUCTS[:3])
    ]
    assert big[0].html.count(b"<t") + big[0].html.count(b"<i") > 8_900
    examples = [Example(page, example.values) for page, example in zip(big, EXAMPLES, strict=False)]
    wrapper = learn(examples, big)
    expected = dict(zip(NAMES, ((value,) for value in PRODUCTS[2]), strict=True))
    assert dict(wrapper.extract(big[2]).values) == expected
