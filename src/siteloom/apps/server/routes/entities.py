"""Entities: the same thing on several sites, listed, compared side by side, and downloaded."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import FileResponse, HTMLResponse
from markupsafe import Markup
from starlette.background import BackgroundTask

from siteloom.apps.server import svg_charts
from siteloom.apps.server.html_rendering import link_maker, number, render
from siteloom.apps.server.request_types import LARGEST_ID, LARGEST_NUMBER, not_found
from siteloom.apps.server.security import Viewer
from siteloom.apps.server.shared_state import services_of
from siteloom.apps.server.views.entities import (
    PAGE,
    AttributeOfEntities,
    EntitiesView,
    EntityDetail,
    LinkingView,
    entities_view,
    entity_detail,
    linked_columns,
    linking_view,
)
from siteloom.apps.server.views.sites import sites_with_records
from siteloom.core.table_files import flat_for, open_output
from siteloom.learning.known_records.entity_linking import DEEP_COLUMNS, ENTITY_COLUMNS
from siteloom.store.queries.entities import EntityFilter
from siteloom.store.store import Store

router = APIRouter()

_MOST_AT_ONCE = 1_000
_LONGEST_WORDS = 1_000


def _wanted(
    words: Annotated[str, Query(max_length=_LONGEST_WORDS, description="All stand in its values.")] = "",
    conflicts: Annotated[bool, Query(description="Only those that sources differ about.")] = False,
    attribute: Annotated[str, Query(max_length=_LONGEST_WORDS, description="They differ in this.")] = "",
    sources: Annotated[int, Query(ge=1, le=LARGEST_NUMBER, description="On so many at least.")] = 1,
) -> EntityFilter:
    return EntityFilter(tuple(words.split()), conflicts, attribute or None, sources)


Wanted = Annotated[EntityFilter, Depends(_wanted)]


@router.get("/api/entities", tags=["entities"], summary="The same things on several sites")
def api_entities(
    request: Request,
    _: Viewer,
    wanted: Wanted,
    start: Annotated[int, Query(ge=0, le=LARGEST_ID, description="How many to leave out first.")] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_AT_ONCE)] = PAGE,
) -> EntitiesView:
    """The entities that were linked last, those on most sources first, with what the sources differ in."""
    return entities_view(services_of(request).store, wanted, start, limit)


@router.get(
    "/api/entities/{entity:int}",
    tags=["entities"],
    summary="A thing side by side",
    responses=not_found("There is none of this number."),
)
def api_entity(request: Request, _: Viewer, entity: int) -> EntityDetail:
    """What each source says of an entity, attribute by attribute."""
    return entity_detail(services_of(request).store, entity)


@router.get("/entities", include_in_schema=False)
def entities_page(
    request: Request,
    visitor: Viewer,
    wanted: Wanted,
    page: Annotated[int, Query(ge=1, le=LARGEST_NUMBER)] = 1,
) -> HTMLResponse:
    """How many things there are on how many sites, and a list of them."""
    store = services_of(request).store
    view = entities_view(store, wanted, (page - 1) * PAGE, PAGE)
    linking = view.linking
    asked = {
        "words": " ".join(wanted.words),
        "conflicts": "true" if wanted.has_conflicts else "",
        "attribute": wanted.attribute or "",
        "sources": str(wanted.least_sources) if wanted.least_sources > 1 else "",
    }
    return render(
        request,
        "entities.html",
        visitor,
        view=view,
        linking=linking,
        spread=_spread(linking) if linking else [],
        differing=_differing(linking) if linking else [],
        with_records=[one.site for one in sites_with_records(store)] if linking is None else [],
        asked=asked,
        query=urlencode({name: text for name, text in asked.items() if text}),
        page=page,
        pages=-(-view.found // PAGE),
        first=(page - 1) * PAGE + 1,
        link=link_maker(request),
    )


def _spread(linking: LinkingView) -> list[tuple[int, int, Markup]]:
    """On how many sources how many entities are, with bars."""
    most = max((count for _, count in linking.spread), default=1)
    return [
        (sources, count, svg_charts.share_bar(count / most, f"{number(count)} on {sources}"))
        for sources, count in linking.spread
    ]


def _differing(linking: LinkingView) -> list[tuple[AttributeOfEntities, Markup]]:
    """The attributes that sources differ in, with bars, those of most entities first."""
    found = sorted((one for one in linking.attributes if one.differing), key=lambda one: -one.differing)
    return [
        (one, svg_charts.share_bar(one.differing / found[0].differing, f"{number(one.differing)} differ"))
        for one in found
    ]


@router.get("/entities/link", include_in_schema=False)
def link_page(request: Request, visitor: Viewer) -> HTMLResponse:
    """By which attributes things are known."""
    store = services_of(request).store
    columns, proposed = linked_columns(store)
    last = linking_view(store)
    return render(
        request,
        "entities_link.html",
        visitor,
        columns=columns,
        core=last.core if last else proposed,
        with_records=sites_with_records(store),
        with_seeds=last.with_seeds if last else False,
        has_seeds=next(iter(store.seeds()), None) is not None,
    )


@router.get("/entities/download.{ending}", include_in_schema=False)
def download(
    request: Request, _: Viewer, wanted: Wanted, ending: Literal["csv", "jsonl", "parquet"]
) -> FileResponse:
    """The entities as `siteloom entities` writes them."""
    file = Path(mkdtemp(prefix="siteloom-")) / f"entities.{ending}"
    try:
        _write(services_of(request).store, wanted, file)
    except BaseException:
        _remove(file)
        raise
    return FileResponse(file, filename=file.name, background=BackgroundTask(_remove, file))


def _write(store: Store, wanted: EntityFilter, file: Path) -> None:
    with open_output(str(file), ENTITY_COLUMNS) as rows:
        for one in store.entities.each_entity(wanted):
            rows.write(flat_for(file.name, one.content, DEEP_COLUMNS))


def _remove(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.parent.rmdir()


@router.get("/entities/{entity:int}", include_in_schema=False)
def entity_page(request: Request, visitor: Viewer, entity: int) -> HTMLResponse:
    """An entity: what its sources say, side by side."""
    store = services_of(request).store
    detail = entity_detail(store, entity)
    return render(request, "entity.html", visitor, entity=detail, sites=store.page_urls.sites())
