"""What each page of the city guide tells, whatever it looks like."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from siteloom.apps.demo.sites import vocabulary
from siteloom.apps.demo.sites.built_in_page import even_parts, values
from siteloom.apps.demo.sites.fictional_places import (
    Event,
    Restaurant,
    Review,
    Update,
    make_events,
    make_restaurants,
)
from siteloom.apps.demo.sites.vocabulary import Dice, day_and_date, long_date, price_text, slug, stars_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

ORIGIN = "https://www.larkmoor-guide.example"
RESTAURANT_COUNT = 240
EVENT_COUNT = 120
FIRST_VISIT = datetime(2025, 5, 12, 9, 30, tzinfo=UTC)
AFTER_REDESIGN = datetime(2025, 11, 3, 9, 30, tzinfo=UTC)
_CARDS_PER_LIST = 20
_SMALLEST_LIST = 12

Values = dict[str, tuple[str, ...]]
Variant = Literal["standard", "featured", "legacy"]


@dataclass(frozen=True, slots=True)
class Ads:
    """Which advertisements a page happens to carry; their wording is in the order of the slots."""

    leaderboard: bool
    inline: bool
    sidebar: int
    wording: tuple[tuple[str, str], ...]
    token: str


@dataclass(frozen=True, slots=True)
class Card:
    """A restaurant as other pages than its own show it; its price or its rating may be left out."""

    restaurant: Restaurant
    price: str | None
    rating: str | None
    sponsored: bool

    def truth(self) -> Values:
        """The facts as the card shows them."""
        return {
            "name": (self.restaurant.name,),
            "cuisine": self.restaurant.cuisines,
            "district": (self.restaurant.district,),
            "price": values(self.price),
            "rating": values(self.rating),
        }


@dataclass(frozen=True, slots=True)
class RestaurantPage:
    """A page about one restaurant."""

    path: str
    restaurant: Restaurant
    variant: Variant
    update: Update
    reviews: tuple[Review, ...]
    nearby: tuple[Card, ...]
    nearby_first: bool
    also_liked: tuple[Card, ...]
    coming_up: tuple[Event, ...]
    notice: str | None
    ads: Ads

    @property
    def price(self) -> str | None:
        """The price of an average main course on the day of the page."""
        return shown_price(self.update)

    def truth(self) -> Values:
        """The facts as the page shows them."""
        place = self.restaurant
        return {
            "name": (place.name,),
            "address": (place.street,),
            "district": (place.district,),
            "phone": values(place.phone),
            "cuisine": place.cuisines,
            "price": values(self.price),
            "rating": (stars_text(place.half_stars),),
            "email": values(place.email),
            "website": values(place.website),
            "hours": place.hours,
            "opened": (long_date(place.opened),) if place.opened else (),
            "updated": (long_date(self.update.day),),
        }


@dataclass(frozen=True, slots=True)
class EventPage:
    """A page about one event."""

    path: str
    event: Event
    same_venue: tuple[Event, ...]
    same_venue_first: bool
    same_week: tuple[Event, ...]
    eat_nearby: tuple[Card, ...]
    selling_fast: bool
    ads: Ads

    def truth(self) -> Values:
        """The facts as the page shows them."""
        event = self.event
        return {
            "title": (event.title,),
            "date": (day_and_date(event.day),),
            "venue": (event.venue,),
            "price": values(event_price(event)),
            "performers": event.performers,
            "email": values(event.organiser_email),
            "category": (event.category,),
        }


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of the restaurants of a district or a cuisine."""

    path: str
    heading: str
    number: int
    sibling_paths: tuple[str, ...]
    cards: tuple[Card, ...]
    ads: Ads


@dataclass(frozen=True, slots=True)
class Guide:
    """All pages of the guide on one day."""

    restaurants: tuple[RestaurantPage, ...]
    events: tuple[EventPage, ...]
    lists: tuple[ListPage, ...]


def make_guide(seed: int, visit: datetime) -> Guide:
    """The guide as a visitor finds it at that time: facts stay, advertisements come and go."""
    restaurants = make_restaurants(seed, RESTAURANT_COUNT)
    events = make_events(seed, EVENT_COUNT)
    return Guide(
        tuple(_restaurant_page(seed, visit, place, restaurants, events) for place in restaurants),
        tuple(_event_page(seed, visit, event, events, restaurants) for event in events),
        _list_pages(seed, visit, restaurants),
    )


def shown_price(update: Update) -> str | None:
    """The price as it reads on a page, if the page has one."""
    return price_text(update.price_pence) if update.price_pence else None


def event_price(event: Event) -> str | None:
    """The ticket price as it reads on a page, if tickets are sold."""
    return price_text(event.price_pence) if event.price_pence else None


def restaurant_path(place: Restaurant) -> str:
    """Where the guide's page about a restaurant is."""
    return f"/restaurants/{slug(place.district)}/{slug(place.name)}-{place.number}.html"


def event_path(event: Event) -> str:
    """Where the guide's page about an event is."""
    return f"/events/{event.day.year}/{event.day.month:02d}/{slug(event.title)}-{event.number}.html"


def district_path(district: str) -> str:
    """Where the list of a district's restaurants starts."""
    return f"/restaurants/{slug(district)}/"


def cuisine_path(cuisine: str) -> str:
    """Where the list of a cuisine's restaurants starts."""
    return f"/cuisine/{slug(cuisine)}/"


def category_path(category: str) -> str:
    """Where the calendar of one category of events starts."""
    return f"/events/{slug(category)}/"


def popular_searches() -> tuple[tuple[str, str], ...]:
    """Label and path of the searches that every page of the guide links to at its end."""
    return tuple(
        (f"{cuisine} in {district}", f"{cuisine_path(cuisine)}{slug(district)}/")
        for cuisine in vocabulary.CUISINES
        for district in vocabulary.DISTRICTS[::2]
    )


def _restaurant_page(
    seed: int,
    visit: datetime,
    place: Restaurant,
    everyone: Sequence[Restaurant],
    events: Sequence[Event],
) -> RestaurantPage:
    dice = Dice(seed, "restaurant page", place.key)
    day = visit.date()
    others = [other for other in everyone if other is not place]
    neighbours = [other for other in others if other.district == place.district]
    similar = [other for other in others if set(other.cuisines) & set(place.cuisines)]
    variants: tuple[Variant, ...] = ("standard",) * 10 + ("featured",) + ("legacy",)
    return RestaurantPage(
        path=restaurant_path(place),
        restaurant=place,
        variant=dice.pick(variants),
        update=place.update_before(day),
        reviews=place.reviews_before(day),
        nearby=_mentions(dice.sample(neighbours, dice.between(2, 5)), day),
        nearby_first=dice.chance(0.09),
        also_liked=_mentions(dice.sample(similar, dice.between(3, 5)), day),
        coming_up=dice.sample(events, 4),
        notice=dice.pick(vocabulary.NOTICES) if dice.chance(0.06) else None,
        ads=_ads(Dice(seed, "ads", visit, place.key)),
    )


def _event_page(
    seed: int,
    visit: datetime,
    event: Event,
    everyone: Sequence[Event],
    restaurants: Sequence[Restaurant],
) -> EventPage:
    dice = Dice(seed, "event page", event.key)
    others = [other for other in everyone if other is not event]
    near_in_time = [other for other in others if abs((other.day - event.day).days) <= 7]
    return EventPage(
        path=event_path(event),
        event=event,
        same_venue=dice.sample([other for other in others if other.venue == event.venue], 3),
        same_venue_first=dice.chance(0.12),
        same_week=dice.sample(near_in_time, dice.between(3, 6)),
        eat_nearby=_mentions(dice.sample(restaurants, 4), visit.date()),
        selling_fast=dice.chance(0.12),
        ads=_ads(Dice(seed, "ads", visit, event.key)),
    )


def _list_pages(seed: int, visit: datetime, restaurants: Sequence[Restaurant]) -> tuple[ListPage, ...]:
    by_district = [
        (district_path(district), f"Restaurants in {district}",
         [place for place in restaurants if place.district == district])
        for district in vocabulary.DISTRICTS
    ]  # fmt: skip
    by_cuisine = [
        (cuisine_path(cuisine), f"{cuisine} restaurants in {vocabulary.CITY}",
         [place for place in restaurants if cuisine in place.cuisines])
        for cuisine in vocabulary.CUISINES
    ]  # fmt: skip
    return tuple(
        page
        for path, heading, places in by_district + by_cuisine
        if len(places) >= _SMALLEST_LIST
        for page in _pages_of_list(seed, visit, path, heading, places)
    )


def _pages_of_list(
    seed: int, visit: datetime, path: str, heading: str, places: Sequence[Restaurant]
) -> list[ListPage]:
    """One list cut into pages of about the same length."""
    parts = even_parts(places, _CARDS_PER_LIST)
    paths = (path, *(f"{path}page-{number}/" for number in range(2, len(parts) + 1)))
    return [
        ListPage(
            path=page_path,
            heading=heading,
            number=number,
            sibling_paths=paths,
            cards=tuple(_card(Dice(seed, "card", page_path, place.key), visit, place) for place in part),
            ads=_ads(Dice(seed, "ads", visit, page_path)),
        )
        for number, (page_path, part) in enumerate(zip(paths, parts, strict=True), 1)
    ]


def _card(dice: Dice, visit: datetime, place: Restaurant) -> Card:
    return Card(
        restaurant=place,
        price=shown_price(place.update_before(visit.date())) if dice.chance(0.9) else None,
        rating=stars_text(place.half_stars) if dice.chance(0.9) else None,
        sponsored=dice.chance(0.06),
    )


def _mentions(places: Sequence[Restaurant], day: date) -> tuple[Card, ...]:
    """The restaurants as a related box shows them."""
    return tuple(
        Card(place, shown_price(place.update_before(day)), None, sponsored=False) for place in places
    )


def _ads(dice: Dice) -> Ads:
    return Ads(
        leaderboard=dice.chance(0.05),
        inline=dice.chance(0.3),
        sidebar=dice.between(0, 2),
        wording=tuple(
            (
                dice.pick(vocabulary.ADVERTISERS),
                dice.pick(vocabulary.ADVERT_OFFERS).format(price=price_text(dice.between(10, 60) * 50)),
            )
            for _ in range(4)
        ),
        token=f"{dice.between(0x10000, 0xFFFFF):x}",
    )
