"""The fictional restaurants and events that the built-in sites tell about."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

from siteloom.apps.demo.sites import vocabulary
from siteloom.apps.demo.sites.vocabulary import Dice, slug

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FIRST_REVIEW = date(2023, 1, 9)
_LAST_REVIEW = date(2025, 10, 26)
_FIRST_UPDATE = date(2025, 1, 6)
_SECOND_UPDATE = date(2025, 7, 1)
_FIRST_EVENT = date(2025, 11, 14)


@dataclass(frozen=True, slots=True)
class Review:
    """What one guest wrote."""

    author: str
    written: date
    stars: int
    text: str


@dataclass(frozen=True, slots=True)
class Update:
    """The changing facts of a restaurant as they stood from a day on."""

    day: date
    price_pence: int | None


@dataclass(frozen=True, slots=True)
class Restaurant:
    """One restaurant; `key` identifies it on every site that lists it."""

    key: str
    number: int
    name: str
    street: str
    district: str
    postcode: str
    phone: str | None
    cuisines: tuple[str, ...]
    half_stars: int
    email: str | None
    website: str | None
    hours: tuple[str, ...]
    opened: date | None
    blurb: tuple[str, ...]
    reviews: tuple[Review, ...]
    updates: tuple[Update, ...]

    def reviews_before(self, day: date) -> tuple[Review, ...]:
        """The reviews that a page of that day shows, newest first."""
        return tuple(review for review in self.reviews if review.written < day)

    def update_before(self, day: date) -> Update:
        """The changing facts that a page of that day shows."""
        return [update for update in self.updates if update.day < day][-1]


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the city's calendar."""

    key: str
    number: int
    title: str
    day: date
    starts: str
    venue: str
    category: str
    price_pence: int | None
    performers: tuple[str, ...]
    organiser_email: str | None
    blurb: tuple[str, ...]


def make_restaurants(seed: int, count: int) -> tuple[Restaurant, ...]:
    """Restaurants with names that are all different; the first ones do not depend on `count`."""
    names: set[str] = set()
    return tuple(_restaurant(Dice(seed, "restaurant", index), index, names) for index in range(count))


def make_events(seed: int, count: int) -> tuple[Event, ...]:
    """Events with titles that are all different, in order of their dates."""
    titles: set[str] = set()
    return tuple(_event(Dice(seed, "event", index), index, titles) for index in range(count))


def person_name(dice: Dice) -> str:
    """A person's full name."""
    return f"{dice.pick(vocabulary.FIRST_NAMES)} {dice.pick(vocabulary.SURNAMES)}"


def sentences(dice: Dice, models: Sequence[str], count: int, **fills: str) -> tuple[str, ...]:
    """Different sentences after the models, their blanks filled in."""
    return tuple(
        model.format(
            dish=dice.pick(vocabulary.DISHES),
            other_dish=dice.pick(vocabulary.DISHES),
            setting=dice.pick(vocabulary.SETTINGS),
            person=person_name(dice),
            seats=dice.between(24, 90),
            **fills,
        )
        for model in dice.sample(models, count)
    )


def _restaurant(dice: Dice, index: int, names_taken: set[str]) -> Restaurant:
    cuisines = dice.sample(vocabulary.CUISINES, 1 + dice.chance(0.4) + dice.chance(0.15))
    district = dice.pick(vocabulary.DISTRICTS)
    styles = vocabulary.NAME_STYLES.get(cuisines[0], vocabulary.PLAIN_NAME_STYLES)
    if dice.chance(0.35):
        styles = vocabulary.PLAIN_NAME_STYLES
    # A few restaurants are simply called after their district or their kitchen.
    plain_name = dice.pick((district, cuisines[0])) if dice.chance(0.06) else None
    name = _untaken(names_taken, lambda: _filled(dice, dice.pick(styles)), plain_name)
    street = f"{dice.pick(vocabulary.STREET_NAMES)} {dice.pick(vocabulary.STREET_KINDS)}"
    domain = f"{slug(name).replace('-', '')}.example"
    mailbox = dice.pick(("hello", "bookings", "info", "table"))
    return Restaurant(
        key=f"restaurant-{index:04d}",
        number=41007 + index * 31,
        name=name,
        street=f"{dice.between(1, 180)} {street}",
        district=district,
        postcode=f"{vocabulary.POSTCODE_AREAS[district]} {dice.between(1, 9)}{_postcode_end(dice)}",
        phone=_phone(index, district) if dice.chance(0.86) else None,
        cuisines=cuisines,
        half_stars=dice.pick((5, 6, 7, 7, 8, 8, 8, 9, 9, 10)),
        email=f"{mailbox}@{domain}" if dice.chance(0.62) else None,
        website=f"https://www.{domain}/" if dice.chance(0.68) else None,
        hours=_hours(dice) if dice.chance(0.78) else (),
        opened=_day_between(dice, date(1974, 3, 1), date(2024, 9, 30)) if dice.chance(0.8) else None,
        blurb=sentences(
            dice,
            vocabulary.BLURB_SENTENCES,
            dice.between(4, 8),
            name=name,
            street=street,
            district=district,
        ),
        reviews=_reviews(dice),
        updates=_updates(dice),
    )


def _event(dice: Dice, index: int, titles_taken: set[str]) -> Event:
    category = dice.pick(vocabulary.CATEGORIES)
    venue = dice.pick(vocabulary.VENUES)
    performers = _performers(dice)
    # Concerts are often billed under the name of whoever plays.
    billing = performers[0] if len(performers) == 1 and dice.chance(0.5) else None
    styles = vocabulary.TITLE_STYLES[category]
    title = _untaken(titles_taken, lambda: _filled(dice, dice.pick(styles)), billing)
    organiser = slug(dice.pick(vocabulary.BAND_NAMES)).replace("-", "")
    return Event(
        key=f"event-{index:04d}",
        number=3011 + index * 17,
        title=title,
        day=_FIRST_EVENT + timedelta(days=index * 3 // 2),
        starts=dice.pick(("7.30pm", "8pm", "7pm", "2.30pm", "6.15pm")),
        venue=venue,
        category=category,
        price_pence=dice.between(8, 76) * 50 if dice.chance(0.82) else None,
        performers=performers,
        organiser_email=f"tickets@{organiser}.example" if dice.chance(0.6) else None,
        blurb=sentences(
            dice,
            vocabulary.EVENT_SENTENCES,
            dice.between(3, 6),
            performer=performers[0],
            venue=venue,
            category=category,
        ),
    )


def _untaken(taken: set[str], invent: Callable[[], str], favourite: str | None) -> str:
    """The favourite name if nobody bears it yet, else an invented one; it is taken from now on."""
    name = favourite or invent()
    while name in taken:
        name = invent()
    taken.add(name)
    return name


def _filled(dice: Dice, style: str) -> str:
    """A name after a pattern such as "The {quality} {thing}"."""
    thing, other = dice.sample(vocabulary.THINGS, 2)
    return style.format(
        quality=dice.pick(vocabulary.QUALITIES),
        thing=thing,
        other=other,
        person=dice.pick(vocabulary.FIRST_NAMES),
        surname=dice.pick(vocabulary.SURNAMES),
        street=dice.pick(vocabulary.STREET_NAMES),
        number=dice.between(2, 98),
    )


def _phone(index: int, district: str) -> str:
    """A different number for each restaurant, from the ranges reserved for drama."""
    code = vocabulary.DIALLING_CODES[vocabulary.DISTRICTS.index(district) % len(vocabulary.DIALLING_CODES)]
    return f"{code} 0{100 + index * 37 % 900}"


def _postcode_end(dice: Dice) -> str:
    return dice.pick("ABDEFGHJLNPQ") + dice.pick("RSTUWXYZ")


def _hours(dice: Dice) -> tuple[str, ...]:
    """One to three lines of opening hours."""
    opens, closes = dice.pick(("12.00", "11.30", "17.00")), dice.pick(("22.00", "22.30", "21.30"))
    late, sunday = dice.pick(("23.00", "23.30")), dice.pick(("16.00", "20.30"))
    week = f"Mon\u2013Thu {opens}\u2013{closes}"
    weekend = f"Fri\u2013Sat {opens}\u2013{late}"
    lines = (
        (f"Daily {opens}\u2013{closes}",),
        (f"Tue\u2013Sat {opens}\u2013{late}", "Closed Sunday & Monday"),
        (week, weekend),
        (week, weekend, f"Sun 12.00\u2013{sunday}"),
    )
    return dice.pick(lines)


def _performers(dice: Dice) -> tuple[str, ...]:
    """One to four acts, bands and people."""
    bands = dice.sample(vocabulary.BAND_NAMES, dice.between(0, 2))
    people = tuple(person_name(dice) for _ in range(dice.between(0 if bands else 1, 2)))
    return tuple(dict.fromkeys(bands + people))


def _reviews(dice: Dice) -> tuple[Review, ...]:
    days = sorted(
        (_day_between(dice, _FIRST_REVIEW, _LAST_REVIEW) for _ in range(dice.between(1, 14))),
        reverse=True,
    )
    return tuple(
        Review(
            author=person_name(dice),
            written=day,
            stars=dice.pick((1, 2, 3, 3, 4, 4, 4, 5, 5)),
            text=" ".join(sentences(dice, vocabulary.REVIEW_SENTENCES, dice.between(1, 5))),
        )
        for day in days
    )


def _updates(dice: Dice) -> tuple[Update, Update]:
    """Two updates, between which some prices rise."""
    price = dice.between(18, 64) * 50 if dice.chance(0.85) else None
    dearer = price + 100 if price and dice.chance(0.15) else price
    return (
        Update(_FIRST_UPDATE + timedelta(days=dice.between(0, 100)), price),
        Update(_SECOND_UPDATE + timedelta(days=dice.between(0, 100)), dearer),
    )


def _day_between(dice: Dice, first: date, last: date) -> date:
    return first + timedelta(days=dice.between(0, (last - first).days))
