"""What the directory tells: its own restaurants, and many of the guide in other spellings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from siteloom.apps.demo.sites import vocabulary
from siteloom.apps.demo.sites.built_in_page import even_parts, values
from siteloom.apps.demo.sites.fictional_places import Restaurant, Review, make_restaurants
from siteloom.apps.demo.sites.guide_content import RESTAURANT_COUNT, shown_price
from siteloom.apps.demo.sites.vocabulary import Dice, slug

if TYPE_CHECKING:
    from collections.abc import Sequence

ORIGIN = "https://tableatlas.example"
VISIT = datetime(2025, 6, 20, 14, 5, tzinfo=UTC)
_SHARED_WITH_GUIDE = 130
_OWN = 70
_ENTRIES_PER_LIST = 14
_STREET_ABBREVIATIONS = {
    "Street": "St", "Road": "Rd", "Lane": "Ln", "Avenue": "Ave", "Square": "Sq",
    "Place": "Pl", "Terrace": "Terr",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """A restaurant as the directory spells it."""

    key: str
    path: str
    name: str
    street: str
    district: str
    phone: str | None
    cuisines: tuple[str, ...]
    price: str | None
    rating: str | None
    website: str | None
    hours: tuple[str, ...]
    about: tuple[str, ...]
    comments: tuple[Review, ...]

    def truth(self) -> dict[str, tuple[str, ...]]:
        """The facts as the entry's own page shows them."""
        return {
            "name": (self.name,),
            "address": (self.street,),
            "district": (self.district,),
            "phone": values(self.phone),
            "cuisine": self.cuisines,
            "price": values(self.price),
            "rating": values(self.rating),
            "website": values(self.website),
            "hours": self.hours,
        }

    def card_truth(self) -> dict[str, tuple[str, ...]]:
        """The facts as a list shows them."""
        return {
            "name": (self.name,),
            "address": (self.street,),
            "cuisine": self.cuisines,
            "rating": values(self.rating),
        }


@dataclass(frozen=True, slots=True)
class EntryPage:
    """A page about one entry with what others looked at besides."""

    entry: Entry
    also_viewed: tuple[Entry, ...]
    also_viewed_first: bool
    banner: str | None
    is_claimed: bool


@dataclass(frozen=True, slots=True)
class EntryList:
    """One page of the entries of a district."""

    path: str
    heading: str
    entries: tuple[Entry, ...]
    earlier_path: str | None
    later_path: str | None


def make_entry_pages(seed: int) -> tuple[EntryPage, ...]:
    """All entries' pages: the restaurants shared with the guide and the directory's own, mixed."""
    everyone = make_restaurants(seed, RESTAURANT_COUNT + _OWN)
    dice = Dice(seed, "directory")
    shared = dice.sample(everyone[:RESTAURANT_COUNT], _SHARED_WITH_GUIDE)
    mixed = dice.sample(shared + everyone[RESTAURANT_COUNT:], _SHARED_WITH_GUIDE + _OWN)
    entries = [_entry(Dice(seed, "entry", place.key), place) for place in mixed]
    return tuple(_entry_page(Dice(seed, "entry page", entry.key), entry, entries) for entry in entries)


def make_entry_lists(entries: Sequence[Entry]) -> tuple[EntryList, ...]:
    """The entries by district, cut into pages."""
    return tuple(
        page
        for district in vocabulary.DISTRICTS
        for page in _lists_of_district(district, [e for e in entries if e.district == district])
    )


def district_path(district: str) -> str:
    """Where the directory's list of a district starts."""
    return f"/in/{slug(district)}"


def _lists_of_district(district: str, entries: Sequence[Entry]) -> list[EntryList]:
    parts = even_parts(entries, _ENTRIES_PER_LIST)
    first = district_path(district)
    paths = (first, *(f"{first}?page={number}" for number in range(2, len(parts) + 1)))
    return [
        EntryList(
            path=path,
            heading=f"Places to eat: {district}",
            entries=tuple(part),
            earlier_path=earlier,
            later_path=later,
        )
        for path, part, earlier, later in zip(
            paths, parts, (None, *paths[:-1]), (*paths[1:], None), strict=True
        )
    ]


def _entry_page(dice: Dice, entry: Entry, entries: Sequence[Entry]) -> EntryPage:
    return EntryPage(
        entry=entry,
        also_viewed=dice.sample([other for other in entries if other is not entry], 4),
        also_viewed_first=dice.chance(0.12),
        banner=dice.pick(vocabulary.ADVERTISERS) if dice.chance(0.15) else None,
        is_claimed=dice.chance(0.2),
    )


def _entry(dice: Dice, place: Restaurant) -> Entry:
    cuisines = (
        vocabulary.CUISINE_SYNONYMS.get(cuisine, cuisine) if dice.chance(0.5) else cuisine
        for cuisine in place.cuisines
    )
    number, _, street = place.street.partition(" ")
    *name, kind = street.split()
    return Entry(
        key=place.key,
        path=f"/place/{place.number * 7919 % 1_000_003:06d}/{slug(place.name)}",
        name=_respelled(dice, place.name),
        street=" ".join((number, *name, _STREET_ABBREVIATIONS[kind])),
        district=place.district,
        phone=f"+44 {place.phone[1:]}" if place.phone else None,
        cuisines=tuple(cuisines),
        price=shown_price(place.update_before(VISIT.date())),
        rating=f"{dice.between(58, 96) / 10} / 10" if dice.chance(0.85) else None,
        website=place.website.split("/")[2] if place.website else None,
        hours=tuple(line.replace(".", ":") for line in place.hours),
        about=place.blurb[1:3],
        comments=place.reviews_before(VISIT.date())[1:],
    )


def _respelled(dice: Dice, name: str) -> str:
    """The name as somebody else typed it."""
    if name.startswith("The ") and dice.chance(0.4):
        bare = name.removeprefix("The ")
        return dice.pick((bare, f"{bare}, The"))
    if dice.chance(0.15):
        return name.upper()
    if dice.chance(0.07):
        return f"The {name}" if not name.startswith("The ") else name
    if dice.chance(0.05):
        return _with_slip(dice, name)
    return name


def _with_slip(dice: Dice, name: str) -> str:
    """The name with two neighbouring letters swapped."""
    at = dice.between(1, len(name) - 3)
    return name[:at] + name[at + 1] + name[at] + name[at + 2 :]
