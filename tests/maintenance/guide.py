"""Restaurants of the built-in guide: a wrapper for them, bellwethers, and what may happen to pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from siteloom import Example, Page, Record, Wrapper, learn
from siteloom.apps.demo.sites import Layout
from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.maintenance.watched_pages import Watch, watch
from tests.apps.demo.sites import guide, of_kind

NAMES = ("name", "address", "phone", "cuisine", "email", "price", "updated")
CHANGING = {"price": {"constant": False}, "updated": {"constant": False}}
COUNT = 40


@cache
def restaurants(layout: Layout = "original") -> tuple[BuiltinPage, ...]:
    """The same restaurants in any layout; none of them is in old markup."""
    modern = {
        one.entity for one in of_kind(guide(), "restaurant") if b"<TABLE class=facts" not in one.page.html
    }
    return tuple(one for one in of_kind(guide(layout), "restaurant") if one.entity in modern)[:COUNT]


def pages(layout: Layout = "original") -> list[Page]:
    return [one.page for one in restaurants(layout)]


def truth(one: BuiltinPage) -> dict[str, list[str]]:
    return {name: list(one.truth[name]) for name in NAMES}


@cache
def wrapper() -> Wrapper:
    """A wrapper that is right on all pages of the original layout."""
    return learn([Example(one.page, truth(one)) for one in restaurants()[:5]], pages(), CHANGING)


@cache
def records() -> tuple[Record, ...]:
    """What the wrapper finds while all is well."""
    return tuple(map(wrapper().extract, pages()))


@cache
def watched() -> Watch:
    return watch(wrapper(), pages(), name="guide")


def bellwether_pages() -> list[Page]:
    return [one.page for one in watched().bellwethers]


def mistakes(found: Wrapper, among: Sequence[BuiltinPage]) -> list[tuple[str, str, tuple[str, ...]]]:
    """The values that are not as they should be."""
    return [
        (one.page.url, name, values.get(name, ()))
        for one in among
        for values in [found.extract(one.page).values]
        for name in NAMES
        if sorted(values.get(name, ())) != sorted(one.truth[name])
    ]


def text_of(page: Page) -> str:
    return page.html.decode()


def rewritten(page: Page, change: Callable[[str], str]) -> Page:
    """A page after a change that must have changed something."""
    html = change(text_of(page))
    assert html != text_of(page)
    return replace(page, html=html.encode())


def changed(page: Page, pattern: str, replacement: str, count: int = 0) -> Page:
    """A page in which a pattern is replaced, if it is there."""
    return replace(
        page, html=re.sub(pattern, replacement, text_of(page), count=count, flags=re.DOTALL).encode()
    )


def within_frame(page: Page, title: str, content: str) -> Page:
    """Another page of the site at a page's address: the header and the footer stay."""
    html = re.sub(r"<title>.*?</title>", f"<title>{title}</title>", text_of(page), flags=re.DOTALL)
    html = re.sub(r'<meta name="description"[^>]*>', "", html)
    html = re.sub(r'<div class="ad [^>]*>.*?</div>', "", html, flags=re.DOTALL)
    html = re.sub(
        r'<div id="crumbs">.*(?=<div id="footer">)',
        lambda _: f'<div class="text">{content}</div>',
        html,
        flags=re.DOTALL,
    )
    return replace(page, html=html.encode())


def without_phone(page: Page) -> Page:
    """A page whose phone is gone, with its label; those of restaurants nearby stay."""
    return changed(page, r"<dt>Phone:</dt>\n<dd>[^<]*</dd>\n", "", 1)
