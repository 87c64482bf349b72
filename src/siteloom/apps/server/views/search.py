"""What a search finds, as values: for pages to show, and for programs as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup, escape
from pydantic import BaseModel, Field

from siteloom.core.errors import NotFound
from siteloom.html.visible_text import normalize
from siteloom.operations.search import MOST_RANKED, SearchRequest, search

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteloom.extraction.search_query import Hit
    from siteloom.operations.context import Context
    from siteloom.store.store import Store

Kind = Literal["page", "record"]

HITS_SHOWN = 20
"""Hits on a page of results."""
MOST_PAGES = MOST_RANKED // HITS_SHOWN
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
    has_more: bool = Field(description="Whether there are more hits than those.")
    is_all: bool = Field(description="Whether those are all hits, and everything was indexed.")
    facets: FacetViews
    page: int
    pages: int


def search_view(context: Context, request: SearchRequest, page: int) -> SearchView:
    """A page of the results of a search; nothing is indexed before."""
    store = context.store
    _check(store, request)
    result = search(context, replace(request, first=(page - 1) * HITS_SHOWN, count=HITS_SHOWN))
    return SearchView(
        hits=[_hit_view(store, hit, request.text) for hit in result.hits],
        has_all_words=result.has_all_words,
        looked_through=result.total,
        has_more=result.is_limited,
        is_all=not result.is_limited and result.is_index_current,
        facets=FacetViews(
            site=_by_count(result.facets.site),
            cluster=_by_count(result.facets.cluster),
            kind=_by_count(result.facets.kind),
            attribute=_by_count(result.facets.attribute),
        ),
        page=page,
        pages=-(-result.total // HITS_SHOWN),
    )


def _by_count(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _check(store: Store, request: SearchRequest) -> None:
    """Refuse names of what is not there, in the words of the web."""
    if request.site is not None and request.site not in store.page_urls.sites():
        raise NotFound(f"There is no site {request.site}.")
    if request.cluster is not None and not store.has_cluster(request.cluster):
        raise NotFound(f"There is no template {request.cluster}.")
    if request.attribute is not None and request.attribute not in store.search_index.attributes():
        raise NotFound(f"No record that is indexed has an attribute {request.attribute}.")


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


def facets_to_choose(request: SearchRequest, found: FacetViews) -> list[Facets]:
    """The facets of a page of results, each with links that choose something and take it back."""
    return [_facets(request, found, parameter, title) for parameter, title in _FACETS]


def _facets(request: SearchRequest, found: FacetViews, parameter: str, title: str) -> Facets:
    counts: dict[str, int] = getattr(found, parameter)
    values = tuple(
        Facet(name, count, search_link(request, {parameter: name})) for name, count in counts.items()
    )
    chosen = getattr(request, parameter)
    return Facets(title, parameter, values, chosen, search_link(request, {parameter: None}))


def search_link(request: SearchRequest, changed: Mapping[str, str | None], page: int = 1) -> str:
    """The address of a search with something of it changed."""
    asked = {name: getattr(request, name) for name, _ in _FACETS} | dict(changed)
    if changed.get("attribute"):
        asked["kind"] = None  # only records have attributes
    if changed.get("kind") == "page":
        asked["attribute"] = None
    query: dict[str, str | int] = {"words": request.text}
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
