"""From examples to values, from end to end: whatever a value looks like, and whatever is given."""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, cast

import pytest

import siteloom
from siteloom import Attribute, Example, ExampleNotFound, Page, SiteloomError, Wrapper, learn
from siteloom.core.errors import ContradictoryExamples, ExampleError, MissingExtra, UnreadablePage, UsageError
from siteloom.core.values.value_types import Image, Price, Rating
from siteloom.learning.induction.learner import check_example, learn_wrapper
from siteloom.learning.induction.learning_session import METHODS, Method

Values = Mapping[str, Sequence[str]]


def page(html: str, number: int = 0) -> Page:
    return Page.from_text(f"https://shop.example/p/{number}", html)


def pages(render: Callable[..., str], *rows: Sequence[Any]) -> list[Page]:
    return [page(render(*row), number) for number, row in enumerate(rows)]


def values(wrapper: Wrapper, html: str) -> dict[str, tuple[str, ...]]:
    return dict(wrapper.extract(page(html, 99)).values)


def found(wrapper: Wrapper, name: str, html: str) -> tuple[str, ...]:
    return values(wrapper, html).get(name, ())


# ---- the forms of values


def frame(inside: str) -> str:
    return f"<body><nav><a href='/'>Home</a></nav><div class=box>{inside}</div><footer>2011</footer></body>"


FORMS: dict[str, tuple[Callable[[str], str], tuple[str, str, str]]] = {
    "a whole text": (lambda v: frame(f"<h1>{v}</h1><p>more</p>"), ("Fern", "Old Mill", "Sea View")),
    "a part behind words": (
        lambda v: frame(f"<p>Our price: {v}</p><p>Tax: $1</p>"),
        ("$12.99", "$7", "$8.50"),
    ),
    "a part between words": (
        lambda v: frame(f"<p>Only {v} left</p><p>Only here</p>"),
        ("12 pieces", "3 boxes", "7 sets"),
    ),
    "a run over nodes": (
        lambda v: frame(f"<p class=n><b>{v.split()[0]}</b> {v.split()[1]}</p><p>x <b>y</b></p>"),
        ("Old Mill", "Sea View", "Red Door"),
    ),
    "a run over lines": (
        lambda v: frame(f"<p class=adr>{v.replace(', ', ',<br>')}</p><p>x<br>y</p>"),
        ("Elm Road 5, Oakham", "Bay Street 11, Elmton", "Mill Lane 7, Ashby"),
    ),
    "an address": (
        lambda v: frame(f"<p><a class=w href='{v}'>Website</a> <a href='/x'>Other</a></p>"),
        ("https://fern.example/", "https://mill.example/", "https://view.example/"),
    ),
    "a part of an address": (
        lambda v: frame(f"<p>Write: <a href='mailto:{v}'>Mail</a></p><a href='mailto:us@x.example'>us</a>"),
        ("a@fern.example", "b@mill.example", "c@view.example"),
    ),
    "an image": (
        lambda v: frame(f"<p class=photo><img src='{v}'></p><img src='/logo.png'>"),
        ("/i/fern.jpg", "/i/mill.jpg", "/i/view.jpg"),
    ),
    "a meta element": (
        lambda v: f"<head><meta property='og:title' content='{v}'><meta name=x content=y></head><p>a</p>",
        ("Fern", "Old Mill", "Sea View"),
    ),
    "the title": (
        lambda v: f"<head><title>{v} | Guide</title></head><p>a</p>",
        ("Fern", "Old Mill", "Sea View"),
    ),
    "an alternative text": (
        lambda v: frame(f"<img class=award alt='{v}' src=a.gif><img alt=Logo src=b.gif>"),
        ("Best fish", "Best view", "Best wine"),
    ),
    "a title attribute": (
        lambda v: frame(f"<abbr class=full title='{v}'>N.</abbr><abbr title=Street>St.</abbr>"),
        ("North", "South", "West"),
    ),
    "a moment": (
        lambda v: frame(f"<time class=opened datetime='{v}'>then</time><time datetime=2020>x</time>"),
        ("2011-05-09", "2012-01-30", "2009-12-24"),
    ),
    "a word of a class": (
        lambda v: frame(f"<p>Rated <span class='stars {v}'></span></p><span class='stars none'></span>"),
        ("rating-4", "rating-5", "rating-2"),
    ),
    "a width": (
        lambda v: frame(f"<p>Rated <i class=fill style='width: {v}'></i></p><i style='width: 7%'></i>"),
        ("80%", "100%", "40%"),
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", ["united"])
def test_a_value_is_found_in_whatever_form_it_stands(form: str, method: Any) -> None:
    render, told = FORMS[form]
    known = pages(render, *((value,) for value in told))
    examples = [Example(one, {"x": [value]}) for one, value in zip(known[:2], told, strict=False)]
    for others in ((), known):
        wrapper = learn(examples, others, method=method)
        assert [found(wrapper, "x", render(value)) for value in told] == [(value,) for value in told]
        assert found(Wrapper.from_json(wrapper.to_json()), "x", render(told[2])) == (told[2],)


def test_the_order_of_words_on_the_page_counts_not_the_blanks() -> None:
    def html(name: str) -> str:
        return f"<h1>{name}</h1><p>x</p>"

    examples = [
        Example(page(html("Old&nbsp;\n  Mill"), 1), {"n": ["Old Mill "]}),
        Example(page(html("It\u2019s"), 2), {"n": ["It's"]}),
    ]
    assert found(learn(examples), "n", html("Sea\tView")) == ("Sea View",)


# ---- which of several places


def flight(departure: str, arrival: str) -> str:
    return f"<p>From <b>{departure}</b></p><p>To <b>{arrival}</b></p>"


def test_the_very_node_can_be_told_where_a_value_stands_twice() -> None:
    # A round trip: both cities are the same.
    nodes = {"to": ["/html[1]/body[1]/p[2]/b[1]/text()[1]"]}
    example = Example(page(flight("Rome", "Rome")), {"to": ["Rome"]}, nodes=nodes)
    assert found(learn([example], [page(flight("Bonn", "Oslo"), 1)]), "to", flight("Ulm", "Graz")) == (
        "Graz",
    )
    nodes = {"to": ["/html[1]/body[1]/p[1]/b[1]/text()[1]"]}
    example = Example(page(flight("Rome", "Rome")), {"to": ["Rome"]}, nodes=nodes)
    assert found(learn([example], [page(flight("Bonn", "Oslo"), 1)]), "to", flight("Ulm", "Graz")) == ("Ulm",)


def test_a_node_without_the_value_is_told() -> None:
    nodes = {"to": ["/html[1]/body[1]/p[9]/b[1]/text()[1]"]}
    with pytest.raises(ExampleNotFound, match=r"the node /html\[1\]/body\[1\]/p\[9\].* does not show it"):
        learn([Example(page(flight("Rome", "Rome")), {"to": ["Rome"]}, nodes=nodes)])


def test_other_examples_tell_which_place_is_meant() -> None:
    wrapper = learn(
        [
            Example(page(flight("Rome", "Rome"), 1), {"from": ["Rome"], "to": ["Rome"]}),
            Example(page(flight("Bonn", "Oslo"), 2), {"from": ["Bonn"], "to": ["Oslo"]}),
        ]
    )
    assert values(wrapper, flight("Ulm", "Graz")) == {"from": ("Ulm",), "to": ("Graz",)}
    assert values(wrapper, flight("Ulm", "Ulm")) == {"from": ("Ulm",), "to": ("Ulm",)}


# ---- absent, unknown


def contact(phone: str | None, fax: str | None) -> str:
    def line(label: str, value: str | None) -> str:
        return "" if value is None else f"<dt>{label}:</dt><dd>{value}</dd>"

    return f"<h1>Name</h1><dl>{line('Phone', phone)}{line('Fax', fax)}</dl><p>Write to us</p>"


def test_the_current_value_may_be_the_last_of_a_history() -> None:
    def member(*seats: str) -> str:
        rows = "".join(
            f"<tr><td>{seat}</td><td>{1990 + 3 * number}</td></tr>" for number, seat in enumerate(seats)
        )
        return frame(f"<h1>Member</h1><table><tr><th>Seat</th><th>Since</th></tr>{rows}</table>")

    known = pages(member, ["Ilam"], ["Tasman", "Nelson"], ["List", "Otago", "Rangitata"])
    others = [
        page(member(*seats), 10 + number)
        for number, seats in enumerate([["Napier"], ["Onslow", "Mana"], ["Tainui", "List", "Kelston"]])
    ]
    examples = [
        Example(one, {"seat": [seat]})
        for one, seat in zip(known, ("Ilam", "Nelson", "Rangitata"), strict=True)
    ]
    wrapper = learn(examples, others)
    assert [wrapper.extract(one).values["seat"] for one in others] == [("Napier",), ("Mana",), ("Kelston",)]
    assert "`tr` that is the last of its kind" in " ".join(wrapper.explain().split())
    assert Wrapper.from_json(wrapper.to_json()) == wrapper


def test_an_absent_value_is_told_and_no_other_is_taken_for_it() -> None:
    wrapper = learn(
        [
            Example(page(contact("555-1", "555-2"), 1), {"phone": ["555-1"], "fax": ["555-2"]}),
            Example(page(contact(None, "555-4"), 2), {"phone": [], "fax": ["555-4"]}),
        ],
        [page(contact(f"555-{n}", f"666-{n}"), n) for n in range(10, 14)],
    )
    assert values(wrapper, contact(None, "555-6")) == {"fax": ("555-6",)}
    assert values(wrapper, contact("555-7", None)) == {"phone": ("555-7",)}
    assert values(wrapper, contact(None, None)) == {}
    assert wrapper.attributes["phone"].attribute.mandatory is False
    assert wrapper.attributes["fax"].attribute.mandatory is True


def test_an_attribute_that_is_not_named_is_unknown_and_not_absent() -> None:
    wrapper = learn(
        [
            Example(page(contact("555-1", "555-2"), 1), {"phone": ["555-1"]}),
            Example(page(contact("555-3", "555-4"), 2), {"fax": ["555-4"]}),
        ]
    )
    assert values(wrapper, contact("555-5", "555-6")) == {"phone": ("555-5",), "fax": ("555-6",)}


def test_a_label_is_never_a_value() -> None:
    def lines(*texts: str) -> str:
        return f"<div>{''.join(f'<p>{text}</p>' for text in texts)}</div>"

    full = [lines("Phone:", f"55{n}", "Fax:", f"66{n}") for n in range(6)]
    wrapper = learn(
        [Example(page(full[n], n), {"phone": [f"55{n}"]}) for n in range(2)],
        [page(html, n) for n, html in enumerate(full)],
    )
    assert values(wrapper, full[5]) == {"phone": ("555",)}
    assert values(wrapper, lines("Phone:", "Fax:", "667")) == {}
    assert {"Phone:", "Fax:"} <= wrapper.labels


def test_an_attribute_that_no_example_has_is_never_found() -> None:
    wrapper = learn([Example(page(contact("1", "2")), {"phone": ["1"], "pager": []})])
    assert values(wrapper, contact("3", "4")) == {"phone": ("3",)}
    assert wrapper.attributes["pager"].rules == ()


# ---- several values


def kitchen(*kinds: str) -> str:
    links = ", ".join(f"<a href='/{kind}'>{kind}</a>" for kind in kinds)
    return f"<h1>Name</h1><p>Kitchen: {links}</p><p><a href='/x'>Home</a></p>"


def test_several_values_are_all_found() -> None:
    wrapper = learn(
        [
            Example(page(kitchen("Thai", "Vegan"), 1), {"kind": ["Thai", "Vegan"]}),
            Example(page(kitchen("Greek"), 2), {"kind": ["Greek"]}),
        ]
    )
    assert found(wrapper, "kind", kitchen("Fish", "Thai", "Wine")) == ("Fish", "Thai", "Wine")
    assert wrapper.attributes["kind"].attribute.multi is True


def test_that_there_may_be_several_is_seen_on_other_pages() -> None:
    others = [kitchen("Thai", "Fish"), kitchen("Fish"), kitchen("Wine", "Bread", "Fish"), kitchen("Thai")]
    wrapper = learn(
        [
            Example(page(kitchen("Thai"), 1), {"kind": ["Thai"]}),
            Example(page(kitchen("Greek"), 2), {"kind": ["Greek"]}),
        ],
        [page(html, number) for number, html in enumerate(others, 10)],
    )
    assert wrapper.attributes["kind"].attribute.multi is True
    assert found(wrapper, "kind", kitchen("Fish", "Wine")) == ("Fish", "Wine")


def test_several_values_of_one_text() -> None:
    def html(*kinds: str) -> str:
        return f"<p>Kitchen: {', '.join(kinds)}</p><p>Open: daily</p>"

    wrapper = learn(
        [
            Example(page(html("Thai", "Vegan"), 1), {"kind": ["Thai", "Vegan"]}),
            Example(page(html("Greek", "Fish", "Wine"), 2), {"kind": ["Greek", "Fish", "Wine"]}),
        ]
    )
    assert found(wrapper, "kind", html("A", "B", "C", "D")) == ("A", "B", "C", "D")


# ---- the schema


def test_the_schema_that_is_given_holds() -> None:
    examples = [
        Example(page(kitchen("Thai"), 1), {"kind": ["Thai"]}),
        Example(page(kitchen("Fish"), 2), {"kind": ["Fish"]}),
    ]
    others = [page(kitchen("Thai", f"N{n}"), n) for n in range(10, 14)]
    wrapper = learn(
        examples,
        others,
        schema={"kind": {"multi": True, "mandatory": False, "constant": False, "type": "text"}},
    )
    assert wrapper.attributes["kind"].attribute == Attribute(
        multi=True, mandatory=False, constant=False, type="text"
    )
    assert found(wrapper, "kind", kitchen("A", "B")) == ("A", "B")
    single = learn(examples, schema={"kind": Attribute(multi=False)})
    assert found(single, "kind", kitchen("A", "B")) == ("A",)


def test_the_rest_of_the_schema_is_inferred() -> None:
    def html(name: str, price: str) -> str:
        return f"<h1>{name}</h1><p>{price}</p>" if price else f"<h1>{name}</h1>"

    others = [page(html(f"N{n}", f"${n}" if n % 2 else ""), n) for n in range(10, 20)]
    wrapper = learn(
        [Example(page(html("A", "$1"), 1), {"name": ["A"], "price": ["$1"]})],
        others,
        schema={"name": {"type": "text"}},
    )
    assert wrapper.attributes["name"].attribute == Attribute(
        multi=False, mandatory=True, constant=True, type="text"
    )
    assert wrapper.attributes["price"].attribute == Attribute(
        multi=False, mandatory=False, constant=False, type="price"
    )
    assert (wrapper.attributes["name"].filled, wrapper.attributes["price"].filled) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"name": {"multiple": True}}, "'multiple' of name: it can say constant, mandatory, multi, type"),
        ({"name": {"type": "money"}}, "name is of type 'money': it can be text, number, price, date"),
        ({"name": {"type": ["price"]}}, "it can be text"),
        ({"name": {"multi": "yes"}}, "'yes' for multi of name: it can be true or false"),
        ({"name": {"mandatory": 1}}, "1 for mandatory of name"),
    ],
)
def test_a_wrong_schema_is_told(schema: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        learn([Example(page("<h1>A</h1>"), {"name": ["A"]})], schema=schema)


# ---- typed values


@pytest.mark.parametrize(
    ("render", "texts", "kind", "last"),
    [
        (lambda v: f"<p class=x>{v}</p>", ("$12.99", "$7.50", "$8"), "price", Price(Decimal(8), "$")),
        (lambda v: f"<p class=x>{v}</p>", ("12", "1,700", "31"), "number", Decimal(31)),
        (
            lambda v: f"<p class=x>{v}</p>",
            ("9 May 2011", "30 January 2012", "24 December 2009"),
            "date",
            dt.date(2009, 12, 24),
        ),
        (lambda v: f"<a class=x href='{v}'>x</a>", ("/a", "/b?c=1", "../d"), "url", "https://shop.example/d"),
        (
            lambda v: f"<img class=x src='{v}' alt='Photo'>",
            ("/a.jpg", "/b.jpg", "/c.jpg"),
            "image",
            Image("https://shop.example/c.jpg", "Photo"),
        ),
        (
            lambda v: f"<p class=x>{v}</p>",
            ("4 out of 5 stars", "3 out of 5 stars", "2.5 out of 5 stars"),
            "rating",
            Rating(Decimal("2.5"), Decimal(5)),
        ),
    ],
)
def test_values_have_the_type_that_they_all_are_of(
    render: Callable[[str], str], texts: tuple[str, str, str], kind: str, last: object
) -> None:
    htmls = [f"<h1>Name</h1>{render(text)}<p>more</p>" for text in texts]
    examples = [
        Example(page(html, n), {"x": [text]})
        for n, (html, text) in enumerate(zip(htmls[:2], texts, strict=False))
    ]
    wrapper = learn(examples, [page(html, n) for n, html in enumerate(htmls)])
    assert wrapper.attributes["x"].attribute.type == kind
    record = wrapper.extract(page(htmls[2], 99))
    assert record.values["x"] == (texts[2],)
    assert record.typed["x"] == (last,)


def test_days_and_months_are_told_apart_by_all_pages() -> None:
    def html(date: str) -> str:
        return f"<p class=x>{date}</p><p>more</p>"

    examples = [
        Example(page(html(date), n), {"x": [date]}) for n, date in enumerate(("03/04/2011", "05/06/2012"))
    ]
    record = learn(examples, [page(html("25/04/2011"), 9)]).extract(page(html("01/02/2010")))
    assert record.typed["x"] == (dt.date(2010, 2, 1),)
    record = learn(examples, [page(html("04/25/2011"), 9)]).extract(page(html("01/02/2010")))
    assert record.typed["x"] == (dt.date(2010, 1, 2),)


# ---- more examples, other templates, contradictions


def product(number: int) -> tuple[str, dict[str, list[str]]]:
    """A page of one of two templates, some of whose values are missing."""
    name, price = f"Name {number}", f"${number}.99"
    colour = ("red", "blue", "oak")[number % 3] if number % 4 else None
    row = f"<tr><th>Colour</th><td>{colour}</td></tr>" if colour else ""
    if number % 5:
        size = f"<tr><th>Size</th><td>{number}</td></tr>"
        html = f"<h1>{name}</h1><p>Price: <b>{price}</b></p><table>{row}{size}</table>"
    else:
        html = f"<p class=n>{name}</p><div>{price} only</div><table>{row}</table>"
    return html, {"name": [name], "price": [price], "colour": [colour] if colour else []}


def test_more_examples_never_make_it_worse_on_the_examples() -> None:
    everything = [
        Example(page(html, number), known) for number, (html, known) in enumerate(map(product, range(1, 16)))
    ]
    others = [page(product(number)[0], number) for number in range(20, 50)]
    right = []
    for count in (1, 2, 4, 8, 15):
        learned = learn_wrapper(everything[:count], others)
        matched = {name: one.matched / one.examples for name, one in learned.report.attributes.items()}
        right.append(min(matched.values()))
    assert right == [1.0] * 5


def test_examples_of_two_templates_are_learned_as_variants() -> None:
    numbers = (1, 2, 5, 10)
    examples = [
        Example(page(html, number), known)
        for number, (html, known) in zip(numbers, map(product, numbers), strict=True)
    ]
    wrapper = learn(examples, [page(product(number)[0], number) for number in range(20, 50)])
    for number in range(60, 80):
        html, known = product(number)
        assert values(wrapper, html) == {name: tuple(texts) for name, texts in known.items() if texts}


def test_one_page_that_is_two_things_is_a_contradiction() -> None:
    one = page("<h1>A</h1><p>B</p>")
    with pytest.raises(
        ContradictoryExamples, match=r"https://shop.example/p/0 disagree: name is \['A'\] .*, \['B'\]"
    ):
        learn([Example(one, {"name": ["A"]}), Example(one, {"name": ["B"]})])
    with pytest.raises(ContradictoryExamples):
        learn([Example(one, {"name": ["A"]}), Example(one, {"name": []})])
    # The same twice, or another attribute, is none; nor is the page as it was at another time.
    learn([Example(one, {"name": ["A"]}), Example(one, {"name": ["A "], "more": ["B"]})])
    learn([Example(one, {"name": ["A"]}), Example(page("<h1>B</h1><p>A</p>"), {"name": ["B"]})])


def test_examples_that_cannot_both_be_right_are_reported_with_both_pages() -> None:
    def html(first: str, second: str) -> str:
        return f"<p class=a>{first}</p><p class=b>{second}</p>"

    examples = [Example(page(html(f"A{n}", f"B{n}"), n), {"x": [f"A{n}"]}) for n in range(5)]
    examples.append(Example(page(html("A9", "B9"), 9), {"x": ["B9"]}))
    learned = learn_wrapper(examples, [page(html(f"A{n}", f"B{n}"), n) for n in range(10, 20)])
    (conflict,) = learned.report.disagreements
    assert (conflict.attribute, conflict.url) == ("x", "https://shop.example/p/9")
    assert (conflict.expected, conflict.found) == (("B9",), ("A9",))
    assert conflict.fits in {example.page.url for example in examples[:5]}
    assert (learned.report.attributes["x"].matched, learned.report.attributes["x"].examples) == (5, 6)


def test_pages_that_would_teach_most_are_named() -> None:
    usual = [page(product(number)[0], number) for number in (21, 22, 23, 26, 27, 29)]
    odd = page("<h1>Only a name</h1>", 77)
    examples = [Example(page(html, n), known) for n, (html, known) in ((n, product(n)) for n in (1, 2, 3))]
    report = learn_wrapper(examples, [*usual, odd]).report
    assert report.odd_pages[0].url == odd.url
    assert any("no price" in reason for reason in report.odd_pages[0].reasons)


# ---- bad input


def test_no_example_at_all() -> None:
    with pytest.raises(ExampleError, match="There are no examples"):
        learn([])


@pytest.mark.parametrize("html", ["", "   "])
def test_an_example_on_a_page_that_cannot_be_read(html: str) -> None:
    with pytest.raises(ExampleError, match=r"The example https://shop.example/p/0 cannot be read: "):
        learn([Example(page(html), {"name": ["A"]})])


@pytest.mark.parametrize("given", [{}, {"name": []}])
def test_examples_without_any_value(given: Values) -> None:
    with pytest.raises(ExampleError, match=r"The examples? .*ha(s|ve) no values"):
        learn([Example(page("<h1>A</h1>"), given)])


def test_an_example_without_values_is_refused_beside_others() -> None:
    good = Example(page("<h1>A</h1>"), {"name": ["A"]})
    with pytest.raises(ExampleError, match="has no values: give some, or leave it out"):
        learn([good, Example(page("<h1>B</h1>", 1))])


@pytest.mark.parametrize("method", METHODS)
def test_a_value_may_be_part_of_what_looks_like_a_label(method: Method) -> None:
    shown = [page(f"<dl><dt>Price:</dt><dd>{number}</dd></dl>", number) for number in range(8)]
    wrapper = learn([Example(shown[0], {"label": ["Price"]})], shown[1:], method=method)
    assert wrapper.extract(shown[3]).values == {"label": ("Price",)}


def test_where_the_label_is_missing_voters_do_not_step_in() -> None:
    def shop(number: int, label: str) -> Page:
        return page(
            f"<h1>N{number}</h1><table><tr><td>{label}</td><td>${number}.00</td></tr></table>", number
        )

    examples = [Example(shop(number, "Price:"), {"price": [f"${number}.00"]}) for number in (1, 2)]
    wrapper = learn(examples, [shop(number, "Price:") for number in range(3, 9)])
    assert wrapper.extract(shop(9, "Price:")).values == {"price": ("$9.00",)}
    assert wrapper.extract(shop(5, "Shipping:")).values == {}


def test_a_plain_text_is_one_value_and_a_number_is_none() -> None:
    assert Example(page("<p>x</p>"), {"name": "Blue Fern"}).values == {"name": ["Blue Fern"]}
    with pytest.raises(TypeError, match=r"The values of price must be texts as seen on the page, not 12\.99"):
        Example(page("<p>x</p>"), {"price": 12.99})  # type: ignore[dict-item]


def test_what_follows_only_some_values_is_cut_off() -> None:
    texts = ["718-855-9455", "818-840-6464 |", "617-267-4810", "801-272-8255 |"]
    shown = [page(f"<p><b>Phone</b> <i>{text}</i></p>", number) for number, text in enumerate(texts)]
    phones = [text.removesuffix(" |") for text in texts]
    examples = [Example(shown[number], {"phone": [phones[number]]}) for number in (0, 1, 2)]
    assert learn(examples, shown[3:]).extract(shown[3]).values == {"phone": (phones[3],)}


def test_a_value_that_is_not_there_is_told_with_the_nearest_text() -> None:
    with pytest.raises(ExampleNotFound) as raised:
        learn([Example(page("<h1>Blue Fern</h1><p>x</p>"), {"name": ["Blue Ferm"]})])
    error = raised.value
    assert isinstance(error, SiteloomError)
    assert (error.url, error.attribute, error.value, error.nearest) == (
        "https://shop.example/p/0",
        "name",
        "Blue Ferm",
        "Blue Fern",
    )
    assert str(error) == (
        "The page https://shop.example/p/0 has no name 'Blue Ferm': the nearest text is 'Blue Fern'."
    )
    with pytest.raises(ExampleNotFound, match="nothing there is like it"):
        learn([Example(page("<h1>A</h1>"), {"name": ["12345"]})])


@pytest.mark.parametrize("blank", ["", "  ", "\u00a0"])
def test_a_blank_value_is_told(blank: str) -> None:
    with pytest.raises(SiteloomError):
        learn([Example(page("<h1>A</h1>"), {"name": [blank]})])


def test_a_method_that_there_is_not() -> None:
    with pytest.raises(UsageError, match="No method 'magic' to learn by: use one of united, vertex"):
        learn([Example(page("<h1>A</h1>"), {"name": ["A"]})], method=cast("Any", "magic"))


def test_records_and_values_do_not_mix() -> None:
    html = "<ul><li>A</li><li>B</li></ul>"
    whole = Example(page(html), {"name": ["A"]})
    listed = Example(page(html, 1), records=[{"name": ["A"]}, {"name": ["B"]}])
    both = Example(page(html, 2), {"name": ["A"]}, records=[{"name": ["A"]}])
    for given in ([whole, listed], [listed, whole], [both]):
        with pytest.raises(UsageError, match="learn a wrapper for each kind"):
            learn(given)


def test_unlabelled_pages_that_say_nothing_are_no_trouble() -> None:
    def html(name: str) -> str:
        return f"<h1>{name}</h1><p>more</p>"

    examples = [Example(page(html("A"), 1), {"name": ["A"]}), Example(page(html("B"), 2), {"name": ["B"]})]
    others = [
        page("", 10),
        page("\0\0", 11),
        Page("https://shop.example/p/12", b"\xff\xfe\x00"),
        page(html("A"), 1),  # the example's own page
        *[page(html("C"), 13)] * 3,
        page(html("D"), 14),
    ]
    for unlabelled in ([], others, iter(others)):
        assert found(learn(examples, unlabelled), "name", html("E")) == ("E",)


def test_a_check_of_one_example_tells_what_learning_would() -> None:
    check_example(Example(page("<h1>A</h1>"), {"name": ["A"], "phone": []}))
    check_example(Example(page("<ul><li>A<li>B</ul>"), records=[{"n": ["A"]}]))
    with pytest.raises(ExampleNotFound):
        check_example(Example(page("<h1>A</h1>"), {"name": ["Bee"]}))
    with pytest.raises(ExampleError):
        check_example(Example(page(""), {"name": ["A"]}))


# ---- size


def test_a_thousand_attributes() -> None:
    def html(base: int) -> str:
        lines = [f"<p><b>label {n}:</b> <i>{base + n}</i></p>" for n in range(1_000)]
        return "".join(f"<div>{''.join(lines[n : n + 50])}</div>" for n in range(0, 1_000, 50))

    examples = [
        Example(page(html(base), base), {f"a{n}": [str(base + n)] for n in range(1_000)})
        for base in (10_000, 20_000)
    ]
    wrapper = learn(examples)
    record = values(wrapper, html(70_000))
    assert len(record) == 1_000
    assert record["a7"] == ("70007",)


def test_a_page_of_fifty_thousand_nodes() -> None:
    def html(name: str, count: int) -> str:
        return f"<h1>{name}</h1><ul>{''.join(f'<li><b>{n}</b> piece</li>' for n in range(count))}</ul>"

    big = page(html("Big", 12_500), 1)
    wrapper = learn(
        [Example(big, {"name": ["Big"]}), Example(page(html("Small", 3), 2), {"name": ["Small"]})]
    )
    assert found(wrapper, "name", html("Other", 10)) == ("Other",)
    assert wrapper.extract(big).values == {"name": ("Big",)}


# ---- the same each time, in any process


@pytest.mark.parametrize("method", ["united", "vertex"])
def test_learning_twice_gives_the_same_wrapper(method: Any) -> None:
    examples = [
        Example(page(html, n), known) for n, (html, known) in ((n, product(n)) for n in (1, 2, 5, 10))
    ]
    others = [page(product(number)[0], number) for number in range(20, 40)]
    first, second = (learn(examples, others, method=method) for _ in range(2))
    assert first.to_json() == second.to_json()
    assert Wrapper.from_json(first.to_json()).to_json() == first.to_json()


@pytest.mark.parametrize(
    "error",
    [
        ExampleNotFound("https://a.example/", "name", "Fern", "Ferm"),
        ExampleNotFound("https://a.example/", "name", "Fern", None),
        ContradictoryExamples("They disagree."),
        UnreadablePage("https://a.example/", "empty page"),
        MissingExtra("Typed prices", "values"),
        UsageError("No."),
    ],
)
def test_errors_cross_processes(error: SiteloomError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
    assert copy.exit_status == error.exit_status


def test_everything_is_public() -> None:
    assert siteloom.learn is learn
    assert siteloom.Wrapper is Wrapper
