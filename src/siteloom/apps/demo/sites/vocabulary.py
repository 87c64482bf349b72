"""Words, prices, dates, pieces of HTML and reproducible random choices for the built-in sites."""

from __future__ import annotations

import unicodedata
from functools import cache
from html import escape
from html.entities import codepoint2name
from random import Random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import date


def _words(text: str) -> tuple[str, ...]:
    """The entries of a compact list, separated by commas."""
    return tuple(" ".join(entry.split()) for entry in text.split(","))


CITY = "Larkmoor"
DISTRICTS = _words(
    "Quayside, Old Mint, Harrow Bank, St Brannoc's, Northgate, Tanners Row, Elmhithe, Vicar's Green"
)
POSTCODE_AREAS = dict(zip(DISTRICTS, ("LK1", "LK2", "LK3", "LK4", "LK5", "LK6", "LK7", "LK8"), strict=True))
DIALLING_CODES = ("0117 496", "0161 496", "0113 496")

STREET_NAMES = _words(
    "Gannet, Saltmarsh, Coppergate, Larch, Weaver, Mulberry, Foundry, Abbot, Candle, Drover, Heron,"
    "Kiln, Lantern, Marlpit, Orchard, Packhorse, Quarry, Ropewalk, Sexton, Tallow, Vintner, Wharf,"
    "Bellfounder, Cooper, Dyer, Fuller, Glovers, Hawthorn, Juniper, Mariner, Nettle, Rushmere"
)
STREET_KINDS = _words("Street, Street, Street, Road, Road, Lane, Avenue, Place, Square, Terrace")

CUISINES = _words(
    "British, French, Italian, Spanish, Indian, Thai, Japanese, Mexican, Lebanese, Scandinavian,"
    "Seafood, Vegetarian, Steakhouse, Korean"
)
CUISINE_SYNONYMS = {
    "British": "Modern British",
    "Lebanese": "Middle Eastern",
    "Scandinavian": "Nordic",
    "Seafood": "Fish & Shellfish",
    "Steakhouse": "Grill",
    "Vegetarian": "Plant-based",
}
NAME_STYLES = {
    "French": _words("Chez {person}, Le Petit {thing}, Café {person}, Brasserie {street}"),
    "Italian": _words("Osteria {thing}, Trattoria {person}, Da {person}, La Tavola {street}"),
    "Spanish": _words("Casa {surname}, El Rincón de {person}, Bodega {surname}, Mañana {thing}"),
    "Scandinavian": _words("{surname}s Køkken, Smørhus {street}, Fjord & {thing}, Nørre {thing}"),
    "Indian": _words("Saffron {thing}, {thing} Tandoor, Masala {street}"),
    "Thai": _words("Siam {thing}, Baan {person}, Lemongrass & {thing}"),
    "Japanese": _words("Hoshi {thing}, Kaze & {thing}, Izakaya {person}"),
    "Mexican": _words("Cantina {surname}, Señor {thing}, Taquería {person}"),
    "Lebanese": _words("Cedar {thing}, Beit {person}, {thing} Mezze House"),
    "Korean": _words("Seoul {thing}, Bap & {thing}, {thing} Barbecue"),
}
PLAIN_NAME_STYLES = _words(
    "The {quality} {thing}, The {quality} {thing}, The {thing}, {thing} & {other},"
    "{thing} & {other},"
    "{person}'s Kitchen, {person}'s Table, {surname} & Daughters, {surname}'s, The {thing} Rooms,"
    "{street} Street Canteen, No. {number} {street} Street, {quality} {thing} Dining Room"
)
QUALITIES = _words(
    "Copper, Crooked, Gilded, Hungry, Idle, Jolly, Little, Merry, Painted, Quiet, Rusty, Salty,"
    "Silver, Smoky, Tipsy, Velvet, Wandering, Winter, Blue, Burnt, Drowsy, Honest, Lazy, Lost"
)
THINGS = _words(
    "Anchor, Badger, Barrel, Bellows, Bramble, Compass, Cormorant, Cricket, Dovecote, Fennel, Fig,"
    "Garland, Heron, Hearth, Juniper, Kettle, Ladle, Lantern, Larder, Magpie, Mortar, Mulberry,"
    "Nutmeg, Otter, Pantry, Pepper, Pestle, Plum, Quince, Rook, Rosemary, Sparrow, Spoon, Thistle,"
    "Thyme, Trout, Turnip, Walnut, Whistle, Yarrow"
)

FIRST_NAMES = _words(
    "Amélie, Anselm, Beatrix, Bjørn, Callum, Cosima, Dario, Delphine, Edda, Elspeth, Fergus, Flora,"
    "Gideon, Greta, Hester, Idris, Íñigo, Jocasta, Jürgen, Kestrel, Lionel, Lucía, Marguerite,"
    "Milo, Nerys, Odile, Orla, Pascoe, Petra, Quentin, René, Rowena, Saoirse, Søren, Tamsin,"
    "Theo, Ursula, Verity, Wilf, Zelda"
)
SURNAMES = _words(
    "Ashdene, Brindlecombe, Castellmar, Dubréchet, Eskdale, Farrowby, Gullivant, Hathersedge,"
    "Ibáñeta, Jessamyne, Kirkwhistle, Lindqvær, Marrowick, Nethercott, Oakhanger, Pellworth,"
    "Quillfeather, Ravensmoor, Søndvig, Tarrowell, Underhay, Vexleigh, Wetherlam, Yarborne,"
    "Zanderling, Peñarroja"
)

DISHES = _words(
    "slow-roast lamb shoulder, crab toast, charred leeks, brown-butter plaice, venison pie,"
    "wild mushroom dumplings, salt-baked beetroot, saffron mussels, pork belly, smoked aubergine,"
    "chocolate tart, lemon posset, sourdough with cultured butter, whole grilled bream,"
    "celeriac gratin, pickled cucumbers, duck leg with plums, rhubarb fool"
)
SETTINGS = _words(
    "a former chandlery, two knocked-through terraced houses, a vaulted cellar, an old tram depot,"
    "a whitewashed boathouse, the back of a bookshop, a glazed courtyard, a Victorian bank,"
    "a corner site with tall windows, a narrow room under the railway arches"
)
BLURB_SENTENCES = (
    "{name} occupies {setting} a few minutes' walk from {street}.",
    "The short menu changes with the market, though regulars would riot if the {dish} left it.",
    "{person} runs the kitchen with a light hand; order the {dish} and the {other_dish} to share.",
    "At lunch there is a set menu that is among the better bargains in {district}.",
    "Service is warm and unhurried, and the wine list leans towards small growers.",
    "Tables by the window go first at weekends, so book at least a week ahead.",
    "Our reviewer's favourite was the {dish}, closely followed by the {other_dish}.",
    "The room seats about {seats} and gets loud after nine; ask for the back if you want to talk.",
    "Dogs are welcome until six & children get half portions of most things.",
    "Don't leave without trying the {dish} \u2014 it has been on the menu since the doors opened.",
)
REVIEW_SENTENCES = (
    "We came for a birthday and were looked after from start to finish.",
    "The {dish} was the best I have had in years.",
    "A little pricey for what it is, but the {dish} made up for it.",
    "Had to wait twenty minutes for our table even though we had booked.",
    "Lovely staff, lovely room, and the {dish} is worth the trip on its own.",
    "Portions are smaller than they used to be.",
    "Second visit this month & already planning the third.",
    "It was very noisy, we could hardly hear each other.",
    "Everything tasted fresh; my partner could not stop talking about the {dish}.",
    "Parking round here is hopeless so take the tram.",
    "Good but not great: the {dish} came lukewarm.",
)
NOTICES = (
    "Closed for refurbishment until further notice.",
    "This restaurant has recently changed hands; details may be out of date.",
    "Temporarily open for takeaway only.",
    "Winner: Larkmoor Guide Readers' Choice.",
)
ADVERTISERS = _words(
    "Brightwater Taxis, Fernhollow Spa, Pinnock & Vale Kitchens, Harbourlight Cinema,"
    "Moorland Gin Co., Thimble Insurance, Larkmoor Ferries, Oddfellow Wine Club"
)
ADVERT_OFFERS = (
    "Save {price} when you book before Sunday",
    "From only {price} a month",
    "New season now on \u2013 tickets {price}",
    "Free delivery over {price}",
)

CATEGORIES = _words("Jazz, Folk, Theatre, Comedy, Classical, Family, Talks")
VENUES = _words(
    "The Corn Exchange, Tidewater Hall, Old Mint Theatre, The Lantern Rooms, St Brannoc's Church,"
    "Quarry Lane Studio, The Boiler House, Elmhithe Pavilion, Northgate Library, Café Zéphyr,"
    "The Rope Store, Vicar's Green Bandstand, Harrow Bank Institute, Møller Gallery, The Glasshouse"
)
BAND_NAMES = _words(
    "The Tin Lanterns, Saltmarsh Quartet, Nine Wet Sundays, The Drover Boys, Orchestra of the Quay,"
    "Velvet Otter, Paper Kites Theatre, Brass & Bramble, The Understudies, Hollow Hill Singers,"
    "Ensemble Niño, Midnight Tram, The Unlikely Trio, Kiln Street Players, Fjordlys"
)
TITLE_STYLES = {
    "Jazz": _words("{quality} Blues Night, Swing at the {thing}, {quality} Hours"),
    "Folk": _words("Songs of the {quality} {thing}, The {thing} Sessions, {street} Ceilidh"),
    "Theatre": _words("The {quality} {thing}, The {thing} of {street} Street, The {thing} in Winter"),
    "Comedy": _words("Laughing {thing}, {quality} Stand-Up Club, The {thing} Tapes"),
    "Classical": _words("Nocturnes & {thing}s, The {quality} Quartets, {street} Proms"),
    "Family": _words("The {thing} Who Lost a Hat, {quality} Puppets, Make Your Own {thing}"),
    "Talks": _words("A History of the {thing}, {quality} Streets: A Talk, In Search of the {thing}"),
}
EVENT_SENTENCES = (
    "Doors open half an hour before the start and latecomers are admitted at the interval.",
    "{performer} return to {venue} after last year's sold-out run.",
    "Expect an evening that is by turns funny, tender and very loud.",
    "The bar at {venue} serves food until nine.",
    "There is step-free access and a hearing loop; call the box office for companion seats.",
    "Part of the {category} season, now in its tenth year.",
    "Suitable for ages eight & over, though younger children are welcome at the matinée.",
)


T = TypeVar("T")


class Dice:
    """A source of choices named by what it is for, so that one page never disturbs another.

    Everything is built on `random()`: of all the methods of `Random` only its
    sequence is promised to stay the same between versions of Python.
    """

    def __init__(self, *purpose: object) -> None:
        self._random = Random("/".join(str(part) for part in purpose)).random  # noqa: S311 - no secrets here

    def chance(self, probability: float) -> bool:
        """True in this share of the throws."""
        return self._random() < probability

    def between(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.between(0, len(options) - 1)]

    def sample(self, options: Sequence[T], count: int) -> tuple[T, ...]:
        """Up to `count` different positions of the options, in random order."""
        rest = list(options)
        size = min(count, len(rest))
        return tuple(rest.pop(self.between(0, len(rest) - 1)) for _ in range(size))


HTML5 = "<!DOCTYPE html>"


def text(value: str) -> str:
    """Text made safe for HTML, in an attribute as well."""
    return escape(value)


def entity_text(value: str) -> str:
    """Text as older systems wrote it: every letter beyond ASCII as a named entity."""
    return "".join(
        c if c.isascii() else f"&{codepoint2name.get(ord(c), f'#{ord(c)}')};" for c in escape(value)
    )


def unbroken(value: str) -> str:
    """Text whose spaces are no-break spaces, so that a browser keeps it on one line."""
    return text(value).replace(" ", "&nbsp;")


def link(href: str, label: str, attributes: str = "") -> str:
    """A link with a plain text label."""
    return f'<a href="{text(href)}"{attributes and " " + attributes}>{text(label)}</a>'


def mail_link(address: str) -> str:
    """A link that opens a letter to the address it shows."""
    return link(f"mailto:{address}", address)


def phone_href(phone: str) -> str:
    """The address a telephone dials: "tel:+441174960123"."""
    return "tel:+44" + phone.replace(" ", "").removeprefix("0")


def joined(*parts: str | None) -> str:
    """The parts that are there, one below the other."""
    return "\n".join(part for part in parts if part)


def repeated(parts: Iterable[str]) -> str:
    """The parts in a row without anything between them."""
    return "".join(parts)


WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip
_LETTERS_WITHOUT_DECOMPOSITION = str.maketrans({"ø": "o", "Ø": "o", "æ": "ae", "Æ": "ae", "&": "and"})


def price_text(pence: int) -> str:
    """1450 as "£14.50"."""
    return f"£{pence // 100}.{pence % 100:02d}"


def star_count(half_stars: int) -> str:
    """9 as "4.5", 8 as "4"."""
    return f"{half_stars // 2}.5" if half_stars % 2 else str(half_stars // 2)


def stars_text(half_stars: int) -> str:
    """What stands in the alt text of a row of stars."""
    return f"{star_count(half_stars)} out of 5 stars"


def long_date(day: date) -> str:
    """A date as "12 March 2009"; strftime would speak the language of the machine."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def day_and_date(day: date) -> str:
    """A date as "Saturday 14 June 2025"."""
    return f"{WEEKDAYS[day.weekday()]} {long_date(day)}"


@cache  # a few hundred names, which every page links to
def slug(name: str) -> str:
    """A name as it stands in a web address: ASCII, lower case, hyphens."""
    plain = unicodedata.normalize("NFKD", name.translate(_LETTERS_WITHOUT_DECOMPOSITION))
    letters = "".join(c for c in plain.lower() if (c.isascii() and c.isalnum()) or c in " -")
    return "-".join(letters.replace("-", " ").split())
