"""A shop that many documents take for an example: what they say of its pages is true of these."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from siteloom.core.model import Page

ORIGIN = "https://shop.example"
COUNT = 24
_WOODS = "Oak Elm Ash Fir Yew Fern Reed Moss".split()
_THINGS = "lamp chair table".split()
_STREETS = "Mill Lane,Bell Street,Quayside,Harbour Road,Fern Hill".split(",")
_COLOURS = "oak walnut white black green".split()


@dataclass(frozen=True)
class Thing:
    """What a page of the shop is about."""

    number: int

    @property
    def values(self) -> dict[str, list[str]]:
        number = self.number
        if number == 17:  # as the documents have it
            name, price, colours = "Oak lamp", ["$49.90"], ["oak", "walnut"]
        elif number == 23:
            name, price, colours = "Desk", [], ["white"]
        else:
            name = f"{_WOODS[number % 8]} {_THINGS[number % 3]} {number}"
            price = [f"${number * 3 + 7}.{number * 37 % 100:02}"]
            colours = _COLOURS[number % 3 : number % 3 + 1 + number % 2]
        return {
            "name": [name],
            "price": price,
            "colours": colours,
            "address": [f"{number * 7 % 90 + 3} {_STREETS[number % 5]}"],
            "phone": [f"0113 496 0{number * 31 % 900 + 100}"],
            "sku": [f"SKU-{number:04}"],
        }


THINGS = [Thing(number) for number in range(1, COUNT + 1)]
LAMPS: list[dict[str, list[str]]] = [
    {"name": ["Oak lamp"], "price": ["$49.90"]},
    {"name": ["Desk lamp"], "price": []},
    {"name": ["Night light"], "price": ["$12.00"]},
    *({"name": [f"{wood} lantern"], "price": [f"${number}5.00"]} for number, wood in enumerate(_WOODS, 1)),
]


def page(thing: Thing, origin: str = ORIGIN, *, redesigned: bool = False) -> Page:
    """The page of a thing; in another layout, where the phone stands elsewhere."""
    values, url = thing.values, f"{origin}/p/{thing.number}"
    colours = "".join(f"<li>{colour}</li>" for colour in values["colours"])
    price = "".join(f'<p class="price">{text}</p>' for text in values["price"])
    phone = f"<p>Phone: <b>{values['phone'][0]}</b></p>"
    if redesigned:
        phone = f"<dl><dt>Call us</dt><dd>{values['phone'][0]}</dd></dl>"
    return _page(
        url,
        values["name"][0],
        f"""{price}<ul class="colours">{colours}</ul>
        <p>Collect at: <span>{values["address"][0]}</span></p>{phone}
        <p>Item <b class="sku">{values["sku"][0]}</b></p>
        <p class="text">A thai {values["name"][0].lower()} from the quayside, number {thing.number}.</p>""",
        f'<a href="{origin}/p/{thing.number % COUNT + 1}">next</a> <a href="{origin}/lamps">lamps</a>',
    )


def lamps(origin: str = ORIGIN, number: int = 0) -> Page:
    """A page that lists things."""
    url = f"{origin}/lamps" + (f"?page={number}" if number else "")
    items = "".join(
        f'<div class="item"><a href="{origin}/p/{place}">{lamp["name"][0]}</a>'
        + "".join(f"<i>{text}</i>" for text in lamp["price"])
        + "</div>"
        for place, lamp in enumerate(LAMPS, 1)
    )
    return _page(url, "Lamps", f'<div class="all">{items}</div>', f'<a href="{origin}/">home</a>')


def _page(url: str, title: str, body: str, links: str) -> Page:
    html = f"""<!DOCTYPE html><html><head><title>{title} | The shop</title><link rel="canonical" href="{url}">
        <link rel="stylesheet" href="/shop.css"></head>
        <body><ul class="menu"><li>Home</li><li>Things</li><li>About us</li></ul><h1>{title}</h1>{body}
        <div class="foot">{links} <p>Open daily, all prices with tax.</p></div></body></html>"""
    return Page.from_text(url, html)


def pages(origin: str = ORIGIN, *, redesigned: bool = False) -> list[Page]:
    """The pages of all things."""
    return [page(thing, origin, redesigned=redesigned) for thing in THINGS]


def site(origin: str, *, redesigned: bool = False) -> dict[str, bytes]:
    """What a server has to answer by path, its start page included."""
    links = "".join(f'<a href="{one.url}">x</a>' for one in (*pages(origin), lamps(origin)))
    found = {one.url.removeprefix(origin): one.html for one in pages(origin, redesigned=redesigned)}
    return {
        "/": _page(f"{origin}/", "The shop", links, "").html,
        "/lamps": lamps(origin).html,
        "/shop.css": b"h1 { color: green }",
        **found,
    }


def people(origin: str) -> dict[str, bytes]:
    """Pages of another template, by path."""
    names = "Ann Bea Cal Dan Eve Fay Gus Hal".split()
    found = [
        _page(f"{origin}/people/{name.lower()}", name, f"<blockquote>{name} sells {thing}s</blockquote>", "")
        for name, thing in zip(names, _WOODS, strict=True)
    ]
    return {one.url.removeprefix(origin): one.html for one in found}


def examples(*numbers: int, origin: str = ORIGIN) -> list[dict[str, object]]:
    """What a person writes down of some pages."""
    return [{"url": f"{origin}/p/{number}", "values": Thing(number).values} for number in numbers]


def lines(pages: Sequence[Page]) -> str:
    """Pages as JSON Lines."""
    return "".join(json.dumps({"url": one.url, "html": one.html.decode()}) + "\n" for one in pages)


def table() -> str:
    """What is known of all things, as CSV."""
    names = ("name", "address", "phone")
    rows = [",".join(thing.values[name][0] for name in names) for thing in THINGS]
    return "\n".join([",".join(names), *rows]) + "\n"


def line_of(row: object) -> str:
    """A row of JSON Lines."""
    return json.dumps(row) + "\n"
