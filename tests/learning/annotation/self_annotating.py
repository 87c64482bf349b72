"""Restaurant pages of the built-in guide, some of which carry what they show as markup."""

from __future__ import annotations

import json
from collections.abc import Mapping

from siteloom.apps.demo.sites import guide_site
from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.core.model import Page

RESTAURANTS = [page for page in guide_site() if page.kind == "restaurant"][:40]

NAMES = {
    "name": "name",
    "telephone": "phone",
    "servesCuisine": "cuisine",
    "address": "address",
    "email": "email",
}
"""What schema.org calls the attributes of the guide."""


def truth(page: BuiltinPage) -> dict[str, tuple[str, ...]]:
    """The values of a page by their names in schema.org; those that it does not have are left out."""
    assert page.truth is not None
    return {name: texts for name, ours in NAMES.items() if (texts := tuple(page.truth[ours]))}


def restaurant(page: BuiltinPage) -> dict[str, object]:
    """What JSON-LD says of a page."""
    values = {name: texts[0] if len(texts) == 1 else list(texts) for name, texts in truth(page).items()}
    return {"@context": "https://schema.org", "@type": "Restaurant", "url": page.page.url, **values}


def with_json_ld(page: Page, *things: Mapping[str, object] | str) -> Page:
    """A page with scripts of JSON-LD in its head; what is a text already may be broken."""
    scripts = "".join(
        f'<script type="application/ld+json">{one if isinstance(one, str) else json.dumps(one)}</script>'
        for one in things
    )
    html = page.html.decode().replace("</head>", f"{scripts}</head>", 1)
    assert scripts in html
    return Page.from_text(page.url, html, page.fetched_at)


def site(marked: int) -> list[Page]:
    """All pages, the first of which carry JSON-LD."""
    organisation = {"@type": "Organization", "name": "The guide", "telephone": "555-0000"}
    return [
        with_json_ld(page.page, organisation, restaurant(page)) if number < marked else page.page
        for number, page in enumerate(RESTAURANTS)
    ]
