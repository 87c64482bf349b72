"""Small made-up sites about restaurants, and records of the same restaurants as others write them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.model import Failure, Page, Seed
from siteloom.html.page_text_arrays import TextCollector
from siteloom.html.parser import parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.html.page_text_arrays import PageTexts

_FIRST = (
    "Golden Blue Casa Old Harbour Saffron Red Stone "
    "Willow Mountain Trattoria Pepper Silver Copper Velvet Amber"
).split()
_SECOND = (
    "Goose Lagoon Verde Mill Lights House Lantern Oven Garden View Zucca Tree Spoon Kettle Orchard Anchor"
).split()
_STREETS = (
    "Maple Juniper Franklin Lombard Sutter Webster Dolores Hawthorne Quincy Bleecker Pearl Orange".split()
)
CUISINES = ("Italian", "Mexican", "Vietnamese", "French", "Ethiopian", "Korean", "Greek", "Peruvian")
CITIES = ("Oakdale", "Riverton", "Fairmont", "Lakewood")

ATTRIBUTES = ("name", "address", "phone", "cuisine")
CORE = ("name", "address")


class Restaurant(NamedTuple):
    """What a site says of a restaurant."""

    name: str
    street: str
    city: str
    phone: str
    cuisine: str

    @property
    def values(self) -> dict[str, str]:
        """What is to be extracted from its page."""
        return {
            "name": self.name,
            "address": f"{self.street} Street",
            "phone": self.phone,
            "cuisine": self.cuisine,
        }


def restaurants(count: int) -> list[Restaurant]:
    """Restaurants that differ in name, address and phone; at most 256."""
    generator = random.Random(7)
    names = [f"{first} {second}" for first in _FIRST for second in _SECOND]
    generator.shuffle(names)
    return [
        Restaurant(
            name,
            f"{37 * number + 101} {generator.choice(_STREETS)}",
            generator.choice(CITIES),
            f"({415 + number % 5}) 555-{1000 + 29 * number}",
            generator.choice(CUISINES),
        )
        for number, name in enumerate(names[:count])
    ]


EVERY = restaurants(240)
ON_SITE = EVERY[:40]


def seed(restaurant: Restaurant, source: str = "guide") -> Seed:
    """The same restaurant as another site writes it."""
    return Seed(
        {
            "name": (f"{restaurant.name.upper()} Restaurant",),
            "address": (f"{restaurant.street} St., {restaurant.city}",),
            "phone": (restaurant.phone.translate({ord("("): "+1 ", ord(")"): "", ord("-"): " "}),),
            "cuisine": (restaurant.cuisine.lower(),),
        },
        source,
    )


def seeds(known: Iterable[Restaurant] = (*ON_SITE[:30], *EVERY[40:])) -> list[Seed]:
    """Records of three quarters of the site's restaurants and of many others, in another order."""
    found = [seed(restaurant) for restaurant in known]
    random.Random(3).shuffle(found)
    return found


def page(number: int, *, without: Iterable[str] = (), promotions: int | None = None) -> Page:
    """A page about one restaurant: blocks shift, others nearby are listed, and the menu has some cuisines.

    `without` names lines that the page does not show; there are `promotions` above them, or 0 to 2.
    """
    it = ON_SITE[number]
    left_out = frozenset(without)
    nearby = [ON_SITE[(number + step) % len(ON_SITE)] for step in (1, 2, 5)]
    menu = "".join(f"<li>{CUISINES[(number + step) % len(CUISINES)]}</li>" for step in range(5))
    promotion = "<div><p>Book a table</p><p>Gift cards</p></div>" * (
        number % 3 if promotions is None else promotions
    )
    lines = {
        "name": f'<h1 class="title">{it.name}</h1>',
        "city": f'<p class="city">{it.city}</p>',
        "address": f'<p class="street">{it.street} Street</p>',
        "phone": f'<p class="line"><b>Phone</b> <span>{it.phone}</span></p>',
        "cuisine": f'<p class="line"><b>Kitchen</b> <span>{it.cuisine}</span></p>',
    }
    shown = "".join(line for name, line in lines.items() if name not in left_out)
    return Page.from_text(
        f"https://eat.example/place/{number}",
        f"<html><head><title>{it.name}</title></head><body><ul class='menu'><li>Home</li>{menu}</ul>"
        f"{promotion}<div class='main'>{shown}<p>Open daily</p></div>"
        f"<div class='nearby'><h2>Nearby</h2>{''.join(map(_entry, nearby))}</div></body></html>",
    )


def _entry(it: Restaurant) -> str:
    return f"<div><a href='/x'>{it.name}</a><span>{it.street} Street</span></div>"


def pages(*, without: Iterable[str] = (), promotions: int | None = None) -> list[Page]:
    """A page about each restaurant of the site."""
    return [page(number, without=without, promotions=promotions) for number in range(len(ON_SITE))]


def list_page(number: int) -> Page:
    """A page that lists several restaurants in the markup of the pages about one."""
    listed = [ON_SITE[(number * 3 + step) % len(ON_SITE)] for step in range(8)]
    entries = "".join(
        f'<div class="main"><h1 class="title">{it.name}</h1><p class="street">{it.street} Street</p>'
        f'<p class="line"><b>Phone</b> <span>{it.phone}</span></p></div>'
        for it in listed
    )
    return Page.from_text(f"https://eat.example/list/{number}", f"<html><body>{entries}</body></html>")


def texts_of(read: Iterable[Page]) -> PageTexts:
    """The texts of pages that can all be parsed."""
    collector = TextCollector()
    for one in read:
        root = parse(one)
        assert not isinstance(root, Failure)
        collector.add(root)
    return collector.collected()


def changed(one: Page, old: str, new: str) -> Page:
    """A page with other markup in some place, which it must have."""
    markup = one.html.decode()
    assert old in markup
    return Page.from_text(one.url, markup.replace(old, new))


def number_of(url: str) -> int:
    """The number of a restaurant on the site, by the address of its page."""
    return int(url.rpartition("/")[2])
