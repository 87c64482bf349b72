"""Generated web sites with known truth, for the demo and the tests.

`guide_site` is a city guide with restaurants, events and lists, also as it looks
after a redesign or after one small change; `directory_site` is another site that
tells about many of the same restaurants. All names are fictional, and a seed
gives the same bytes everywhere.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

from siteloom.apps.demo.sites import (
    directory_content,
    directory_layout,
    guide_content,
    guide_original,
    guide_redesign,
)
from siteloom.apps.demo.sites.built_in_page import BuiltinPage, Kind
from siteloom.core.errors import UsageError
from siteloom.core.model import Page

if TYPE_CHECKING:
    from datetime import datetime

__all__ = [
    "CHANGING_ATTRIBUTES",
    "DEFAULT_SEED",
    "MULTI_VALUED_ATTRIBUTES",
    "OPTIONAL_ATTRIBUTES",
    "BuiltinPage",
    "Kind",
    "Layout",
    "directory_site",
    "guide_site",
]

Layout = Literal["original", "redesign", "mild-change"]

DEFAULT_SEED = 20250512
CHANGING_ATTRIBUTES = ("price", "updated")
MULTI_VALUED_ATTRIBUTES = ("cuisine", "hours", "performers")
OPTIONAL_ATTRIBUTES = ("phone", "price", "email", "website", "hours", "opened")


def guide_site(layout: Layout = "original", seed: int = DEFAULT_SEED) -> tuple[BuiltinPage, ...]:
    """The city guide: restaurant, event and list pages, in this order.

    The redesign shows the same things at the same addresses in another layout
    half a year later. The mild change is the original but for the phone of the
    restaurants, which has moved and has another label.
    """
    if layout not in get_args(Layout):
        raise UsageError(f"No layout {layout!r}: use one of {', '.join(get_args(Layout))}.")
    is_redesigned = layout == "redesign"
    visit = guide_content.AFTER_REDESIGN if is_redesigned else guide_content.FIRST_VISIT
    look = guide_redesign if is_redesigned else guide_original
    render_restaurant = (
        partial(guide_original.render_restaurant, phone_in_contact_box=True)
        if layout == "mild-change"
        else look.render_restaurant
    )
    guide = guide_content.make_guide(seed, visit)
    restaurants = (
        BuiltinPage(
            page=_page(guide_content.ORIGIN + page.path, render_restaurant(page), visit),
            kind="restaurant",
            truth=page.truth(),
            entity=page.restaurant.key,
        )
        for page in guide.restaurants
    )
    events = (
        BuiltinPage(
            page=_page(guide_content.ORIGIN + page.path, look.render_event(page), visit),
            kind="event",
            truth=page.truth(),
            entity=page.event.key,
        )
        for page in guide.events
    )
    lists = (
        BuiltinPage(
            page=_page(guide_content.ORIGIN + page.path, look.render_list(page), visit),
            kind="list",
            records=tuple(card.truth() for card in page.cards),
        )
        for page in guide.lists
    )
    return (*restaurants, *events, *lists)


def directory_site(seed: int = DEFAULT_SEED) -> tuple[BuiltinPage, ...]:
    """The directory: restaurant and list pages; with the guide's seed they share restaurants."""
    entry_pages = directory_content.make_entry_pages(seed)
    origin, visit = directory_content.ORIGIN, directory_content.VISIT
    entries = (
        BuiltinPage(
            page=_page(origin + page.entry.path, directory_layout.render_entry(page), visit),
            kind="restaurant",
            truth=page.entry.truth(),
            entity=page.entry.key,
        )
        for page in entry_pages
    )
    lists = (
        BuiltinPage(
            page=_page(origin + page.path, directory_layout.render_list(page), visit),
            kind="list",
            records=tuple(entry.card_truth() for entry in page.entries),
        )
        for page in directory_content.make_entry_lists([page.entry for page in entry_pages])
    )
    return (*entries, *lists)


def _page(url: str, html: str, visit: datetime) -> Page:
    return Page(url=url, html=html.encode(), fetched_at=visit, charset="utf-8")
