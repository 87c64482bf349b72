"""Archived pages with what is known of them lit, and the same as JSON under /api."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from typing import Annotated, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup

from siteloom.apps.server import svg_charts
from siteloom.apps.server.html_rendering import link_maker, render, share
from siteloom.apps.server.request_types import LONGEST_TEXT, IdIfAny, PlaceIfAny, TextIfAny, not_found
from siteloom.apps.server.security import Viewer, Visitor
from siteloom.apps.server.shared_state import services_of
from siteloom.apps.server.views.archived_pages import (
    Asked,
    attributes_of,
    page_at,
    place_of_value,
    read_changes,
    read_page,
)
from siteloom.apps.server.views.highlighted_tree import (
    PageChanges,
    PageReading,
    ReadRecord,
    ReadValue,
    WithheldText,
)
from siteloom.apps.server.views.page_tags_and_paths import PagePaths, PageTag, paths_of_page, tags_of_page
from siteloom.apps.server.views.path_tree import tree_rows
from siteloom.core.errors import NotFound
from siteloom.learning.annotation.clicked_nodes import Pick
from siteloom.store.store import Store

router = APIRouter()

# Of a list page, so many are told at a time: more would take longer to show than a person waits.
_RECORDS_SHOWN = 50
_MOST_NODES = 100
_in_api = partial(
    router.get,
    tags=["pages"],
    responses=not_found("The archive has no such page or version, or there is no such wrapper."),
)

Version = Annotated[TextIfAny, Query(description="A version of the page; the newest if none is named.")]
WrapperName = Annotated[
    TextIfAny,
    Query(description="Extract with this wrapper; if none is named, with the one that the page is for."),
]
WrapperVersion = Annotated[
    IdIfAny, Query(description="A version of that wrapper; the newest if none is named.")
]
Proposed = Annotated[IdIfAny, Query(description="Extract with what the repair of this number proposes.")]
RecordNumber = Annotated[PlaceIfAny, Query(description="The number of a record on the page, from 0.")]


def _asked(
    version: Version = None,
    wrapper: WrapperName = None,
    wrapper_version: WrapperVersion = None,
    proposed: Proposed = None,
    record: RecordNumber = None,
    node: Annotated[
        list[str] | None,
        Query(max_length=_MOST_NODES, description="The path of a node to be lit, as records have them."),
    ] = None,
    words: Annotated[str, Query(max_length=LONGEST_TEXT, description="Words to be lit, as in search.")] = "",
) -> Asked:
    return Asked(version, wrapper, wrapper_version, proposed, record, tuple(filter(None, node or ())), words)


AskedOf = Annotated[Asked, Depends(_asked)]


class _Sides(NamedTuple):
    """What is asked about a page before and after."""

    before: Asked
    after: Asked


def _sides(
    before: Version = None,
    after: Version = None,
    wrapper: WrapperName = None,
    wrapper_version: WrapperVersion = None,
    proposed: Proposed = None,
    record: RecordNumber = None,
) -> _Sides:
    return _Sides(
        Asked(before, wrapper, wrapper_version, record=record),
        Asked(after, wrapper, proposed=proposed, record=record),
    )


Sides = Annotated[_Sides, Depends(_sides)]


@_in_api("/api/pages/at", summary="The archived page at a URL, read")
def api_page_at(
    request: Request, _: Viewer, asked: AskedOf, url: str, site: str | None = None
) -> PageReading:
    """The page at a URL, of a site or of any that has it, with all that is known of it."""
    services = services_of(request)
    found = page_at(services.store, url, site or None)
    return read_page(services.store, services.settings.parse, found, asked)


@_in_api("/api/pages/{page_id:int}", summary="An archived page, read")
def api_page(request: Request, _: Viewer, page_id: int, asked: AskedOf) -> PageReading:
    """A page with its records and where their values stand, the wrapper that found them, and why."""
    services = services_of(request)
    return read_page(services.store, services.settings.parse, page_id, asked)


@_in_api("/api/pages/{page_id:int}/changes", summary="An archived page before and after")
def api_changes(request: Request, _: Viewer, page_id: int, sides: Sides) -> PageChanges:
    """What was found on a page before, and what is found now, attribute by attribute.

    Before is the newest earlier version with records, unless another is named; it is extracted by
    `wrapper_version`, what is there now by the version that is in force, or by a repair that is proposed.
    """
    services = services_of(request)
    return read_changes(services.store, services.settings.parse, page_id, *sides)


@_in_api("/api/pages/{page_id:int}/tags", summary="The tags of a page")
def api_tags(request: Request, _: Viewer, page_id: int, version: Version = None) -> list[PageTag]:
    """How often each tag stands on a page, the most frequent first."""
    services = services_of(request)
    return tags_of_page(services.store, services.settings.parse, page_id, version)


@_in_api("/api/pages/{page_id:int}/paths", summary="The paths of a page")
def api_paths(request: Request, _: Viewer, page_id: int, version: Version = None) -> PagePaths:
    """The paths of a page, and which of them most pages of its template have."""
    services = services_of(request)
    return paths_of_page(services.store, services.settings.parse, page_id, version)


@router.get("/pages/at", include_in_schema=False)
def find_page(
    request: Request,
    visitor: Viewer,
    asked: AskedOf,
    url: str = "",
    site: str = "",
    attribute: str = "",
    value: Annotated[str, Query(max_length=LONGEST_TEXT)] = "",
) -> Response:
    """The page at a URL, wherever it is; the rest of the query is kept.

    With a value of an attribute, or how one begins, it is the version and the record in which that stands.
    """
    services = services_of(request)
    try:
        found = page_at(services.store, url, site or None)
        place = None
        if attribute and value and asked.version is None:
            place = place_of_value(services.store, services.settings.parse, found, asked, attribute, value)
    except NotFound as error:
        return render(request, "page_missing.html", visitor, status=404, sentence=str(error), url=url)
    known = ("url", "site") if place is None else ("url", "site", "value", "record", "node")
    rest = [(name, text) for name, text in request.query_params.multi_items() if name not in known]
    if place is not None:
        rest += [("record", str(place.record)), ("node", place.node)]
        rest += [] if place.is_newest else [("version", place.version)]
    return RedirectResponse(f"/pages/{found}{'?' if rest else ''}{urlencode(rest, errors='replace')}", 303)


@router.get("/pages/{page_id:int}", include_in_schema=False)
def page_view(
    request: Request,
    visitor: Viewer,
    page_id: int,
    asked: AskedOf,
    attribute: str = "",
    value: Annotated[str, Query(max_length=LONGEST_TEXT)] = "",
) -> HTMLResponse:
    """A page with what is known of it lit."""
    services = services_of(request)
    reading = read_page(services.store, services.settings.parse, page_id, asked)
    return render_reading(request, visitor, reading, asked, attribute=attribute, unfound=value)


def render_reading(
    request: Request,
    visitor: Visitor,
    reading: PageReading,
    asked: Asked,
    *,
    attribute: str = "",
    unfound: str = "",
    trial: str = "",
) -> HTMLResponse:
    """Render a page with its values highlighted; `trial` stands in place of the number of a stored page."""
    store = services_of(request).store
    first = (reading.record or 0) // _RECORDS_SHOWN * _RECORDS_SHOWN
    shown = reading.records[first : first + _RECORDS_SHOWN]
    return render(
        request,
        "page.html",
        visitor,
        reading=reading,
        asked=asked,
        attribute=attribute,
        unfound=unfound,
        trial=trial,
        words=json.dumps([asdict(pick) for pick in reading.words]),
        records=[_shown(record, reading.attributes) for record in shown],
        first=first,
        most=_RECORDS_SHOWN,
        wrappers=_wrapper_choice(store, reading),
        wrapper_versions=_versions_of(store, reading),
        link=link_maker(request),
        told=_told,
    )


@router.get("/pages/{page_id:int}/changes", include_in_schema=False)
def changes_page(
    request: Request, visitor: Viewer, page_id: int, sides: Sides, attribute: str = ""
) -> HTMLResponse:
    """A page before and after, side by side."""
    changes = api_changes(request, visitor, page_id, sides)
    return render(
        request,
        "page_changes.html",
        visitor,
        changes=changes,
        places={name: place for place, name in enumerate(attributes_of(changes.before, changes.after))},
        attribute=attribute,
        proposed=sides.after.proposed,
        record=sides.after.record or 0,
        told=_told,
    )


@router.get("/pages/{page_id:int}/tags", include_in_schema=False)
def tags_page(request: Request, visitor: Viewer, page_id: int, version: Version = None) -> HTMLResponse:
    """The tag counts of a page."""
    counts = api_tags(request, visitor, page_id, version)
    most = max((one.count for one in counts), default=1)
    rows = [(one, svg_charts.share_bar(one.count / most, f"{one.tag}: {one.count}")) for one in counts]
    return render(request, "page_tags.html", visitor, page_id=page_id, rows=rows)


@router.get("/pages/{page_id:int}/paths", include_in_schema=False)
def paths_page(request: Request, visitor: Viewer, page_id: int, version: Version = None) -> HTMLResponse:
    """The paths of a page, and which are those of its template."""
    found = api_paths(request, visitor, page_id, version)
    rows = [(row, _support_bar(row.share)) for row in tree_rows(found.paths)]
    return render(request, "page_paths.html", visitor, page_id=page_id, found=found, rows=rows)


class _Group(NamedTuple):
    """What a record has of an attribute; its place is that of its colour."""

    place: int
    attribute: str
    values: list[tuple[ReadValue, Markup]]
    withheld: list[WithheldText]


class _ShownRecord(NamedTuple):
    record: ReadRecord
    name: str
    groups: list[_Group]


def _shown(record: ReadRecord, attributes: list[str]) -> _ShownRecord:
    groups = {name: _Group(place, name, [], []) for place, name in enumerate(attributes)}
    for value in record.values:
        told = f"{share(value.confidence)} sure"
        groups[value.attribute].values.append((value, svg_charts.share_bar(value.confidence, told)))
    for text in record.withheld:
        groups[text.attribute].withheld.append(text)
    name = record.values[0].text if record.values else ""
    return _ShownRecord(record, name, list(groups.values()))


def _wrapper_choice(store: Store, reading: PageReading) -> list[str]:
    """The wrappers to choose from: those of the site, and the one that was used."""
    own = [one.name for one in store.wrappers() if one.site == reading.site]
    return own if reading.wrapper is None or reading.wrapper in own else [*own, reading.wrapper]


def _versions_of(store: Store, reading: PageReading) -> list[int]:
    """The versions of the wrapper that was used, the newest first."""
    if reading.wrapper is None:
        return []
    return [one.version for one in reversed(store.wrapper_versions(reading.wrapper))]


def _told(pick: Pick | None) -> str | None:
    """Where something stands, for the script of the page; None if it cannot be shown."""
    return None if pick is None else json.dumps(asdict(pick))


def _support_bar(part: float) -> Markup | None:
    return svg_charts.share_bar(part, f"on {share(part)} of the pages") if part else None
