"""What a search finds, as values: for pages to show, and for programs as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup, escape
from pydantic import BaseModel, Field

from siteloom.core.errors import NotFound
from siteloom.html.visible_text import normalize
from siteloom.operations.search import MOST_FOUND, Search, look_through

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteloom.extraction.search_query import Hit
    from siteloom.store.store import Store

Kind = Literal["page", "record"]

HITS_SHOWN = 20
"""Hits on a page of results."""
MOST_PAGES = MOST_FOUND // HITS_SHOWN
"""Pages of results: all finds that are looked through."""

Place = tuple[int, int]


class HitView(BaseModel):
    """A page or a record that was found; places are starts and ends of what was asked for, in characters."""

    kind: Kind
    title: str
    title_places: list[Place]
    snippet: str
    snippet_places: list[Place]
    url: str
    site: str
    cluster: str | None = Field(description="The template of its page, if it has one.")
    score: float = Field(description="The higher the better; to be compared within one search only.")
    attributes: list[str] = Field(description="Of a record: which of its values show what was asked for.")
    values: dict[str, list[str]] = Field(description="Of a record: all of its values.")
    link: str = Field(description="Where it is shown on its page.")


class FacetViews(BaseModel):
    """How many of the hits that were looked through have what, the most frequent first."""

    site: dict[str, int]
    cluster: dict[str, int]
    kind: dict[str, int]
    attribute: dict[str, int]


class SearchView(BaseModel):
    """The hits of a page of results, the best first, and what there is among all that were looked through."""

    hits: list[HitView]
    has_all_words: bool = Field(description="Whether hits have all words; if nothing has, they have some.")
    looked_through: int = Field(description="How many hits the facets tell of.")
    is_all: bool = Field(description="Whether there are no more hits than those.")
    facets: FacetViews
    page: int
    pages: int


def search_view(store: Store, search: Search, page: int) -> SearchView:
    """What is found for a search; it is not indexed before."""
    _check(store, search)
    found = look_through(store, search, (page - 1) * HITS_SHOWN, HITS_SHOWN)
    return SearchView(
        hits=[_hit_view(store, hit, search.text) for hit in found.hits],
        has_all_words=found.has_all_words,
        looked_through=found.looked_through,
        is_all=found.looked_through < MOST_FOUND,
        facets=FacetViews(
            **{name: dict(counts.most_common()) for name, counts in found.facets._asdict().items()}
        ),
        page=page,
        pages=-(-found.looked_through // HITS_SHOWN),
    )


def _check(store: Store, search: Search) -> None:
    """Refuse names of what is not there, in the words of the web."""
    if search.site is not None and search.site not in store.page_urls.sites():
        raise NotFound(f"There is no site {search.site}.")
    if search.cluster is not None and not store.has_cluster(search.cluster):
        raise NotFound(f"There is no template {search.cluster}.")
    if search.attribute is not None and search.attribute not in store.search_index.attributes():
        raise NotFound(f"No record that is indexed has an attribute {search.attribute}.")


def _hit_view(store: Store, hit: Hit, words: str) -> HitView:
    query: dict[str, str | int] = {"url": hit.url, "site": hit.site}
    if hit.kind == "page":
        query["words"] = words
    else:
        query["record"] = _record_number(store, hit)
        if hit.attributes:
            query["attribute"] = hit.attributes[0]
    return HitView(
        kind=hit.kind,
        title=hit.title.text,
        title_places=list(hit.title.places),
        snippet=hit.snippet.text,
        snippet_places=list(hit.snippet.places),
        url=hit.url,
        site=hit.site,
        cluster=hit.cluster,
        score=hit.score,
        attributes=list(hit.attributes),
        values={name: list(texts) for name, texts in hit.values.items()},
        link=f"/pages/at?{urlencode(query)}",
    )


def _record_number(store: Store, hit: Hit) -> int:
    """Which record of its page a hit is, from 0; the first if none is the same any more."""
    records = store.records_of(hit.url)
    newest = [one for one in records if one.run_id == records[0].run_id]
    for number, one in enumerate(newest):
        values: Mapping[str, list[str]] = json.loads(one.content)["values"]
        if {name: tuple(map(normalize, texts)) for name, texts in values.items() if texts} == dict(
            hit.values
        ):
            return number
    return 0


class Facet(NamedTuple):
    """One thing that hits have, to see only those."""

    name: str
    hits: int
    link: str


class Facets(NamedTuple):
    """A kind of things to choose from; what is chosen already is named, with how to take it back."""

    title: str
    parameter: str
    values: tuple[Facet, ...]
    chosen: str | None
    without: str


_FACETS = (("kind", "Kind"), ("site", "Site"), ("cluster", "Template"), ("attribute", "Attribute"))


def facets_to_choose(search: Search, found: FacetViews) -> list[Facets]:
    """The facets of a page of results, each with links that choose something and take it back."""
    return [_facets(search, found, parameter, title) for parameter, title in _FACETS]


def _facets(search: Search, found: FacetViews, parameter: str, title: str) -> Facets:
    counts: dict[str, int] = getattr(found, parameter)
    values = tuple(
        Facet(name, count, search_link(search, {parameter: name})) for name, count in counts.items()
    )
    chosen = getattr(search, parameter)
    return Facets(title, parameter, values, chosen, search_link(search, {parameter: None}))


def search_link(search: Search, changed: Mapping[str, str | None], page: int = 1) -> str:
    """The address of a search with something of it changed."""
    asked = {name: getattr(search, name) for name, _ in _FACETS} | dict(changed)
    if changed.get("attribute"):
        asked["kind"] = None  # only records have attributes
    if changed.get("kind") == "page":
        asked["attribute"] = None
    query: dict[str, str | int] = {"words": search.text}
    query |= {name: text for name, text in asked.items() if text}
    if page > 1:
        query["page"] = page
    return f"/search?{urlencode(query)}"


def marked(text: str, places: list[Place]) -> Markup:
    """A text with marks around what was asked for; whatever else is in it is text."""
    parts, end = [Markup("")], 0
    for start, stop in places:
        parts += [escape(text[end:start]), Markup("<mark>{}</mark>").format(text[start:stop])]
        end = stop
    return Markup("").join([*parts, escape(text[end:])])
