"""Records: a table of them, the same as JSON under /api, and as files to download."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlencode, urlsplit

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from starlette.background import BackgroundTask

from siteloom.apps.server.html_rendering import render
from siteloom.apps.server.request_types import (
    LARGEST_ID,
    LONGEST_TEXT,
    IdIfAny,
    ShareIfAny,
    TextIfAny,
    not_found,
)
from siteloom.apps.server.result_cache import Choice
from siteloom.apps.server.security import Viewer
from siteloom.apps.server.shared_state import Services, services_of
from siteloom.apps.server.views.records import (
    ALL,
    SORTS,
    VALUE,
    AskedTable,
    AttributeShare,
    RecordsView,
    attributes_of,
    chips,
    chosen,
    misread,
    record_view,
)
from siteloom.apps.server.views.sites import site_summaries
from siteloom.core.errors import UsageError
from siteloom.extraction.record_formats import check_destination, open_records, stream_records
from siteloom.extraction.record_rows import flag_duplicates
from siteloom.store.queries.record_filters import RecordCount, TableRow

router = APIRouter()

_RECORDS_OF_A_PAGE = 50
_MOST_AT_ONCE = 1_000
_LONGEST_SHOWN = 300  # characters of a value: the page itself has the rest
_MOST_SHOWN = 10
_TELLING = 100  # characters of a value: more are not needed to find it on its page
_MOST_FILTERS = 100
_SITES_SUGGESTED = 10
_CHOICES_SHOWN = 12  # of sites and wrappers; more cannot be looked over at a glance
_BELOW = (0.95, 0.8, 0.5)
_NOT_FOUND = not_found("There are no such records, or there is no such run.")

Suffix = Literal["csv", "jsonl", "parquet"]
_MEDIA_TYPES: dict[Suffix, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
}


def _asked(
    request: Request,
    site: Annotated[TextIfAny, Query(description="Only those of this site.")] = None,
    wrapper: Annotated[TextIfAny, Query(description="Only those by this wrapper; `*` for all.")] = None,
    run: Annotated[
        IdIfAny, Query(description="Those of this run of extract, not those that hold now.")
    ] = None,
    words: Annotated[
        str, Query(max_length=LONGEST_TEXT, description="Words that stand in the values or in the URL.")
    ] = "",
    url: Annotated[str, Query(max_length=LONGEST_TEXT, description="A part of the URL.")] = "",
    below: Annotated[
        ShareIfAny, Query(description="Only records with a value that is less sure than this.")
    ] = None,
    sort: Annotated[
        str,
        Query(
            max_length=LONGEST_TEXT,
            description="`page` for the order of the pages, `url`, `confidence`, or `v.` and an attribute.",
        ),
    ] = "page",
    order: Annotated[Literal["up", "down"], Query(description="The least or the greatest first.")] = "up",
) -> AskedTable:
    """What a query string asks for; `v.NAME` filters by an attribute."""
    if sort not in SORTS and not sort.startswith(VALUE):
        raise UsageError(
            f"Records cannot be sorted by {sort or 'nothing'}: sort by {', '.join(SORTS)}, "
            f"or by {VALUE} and the name of an attribute."
        )
    filters = [
        (name.removeprefix(VALUE), text[:LONGEST_TEXT])
        for name, text in request.query_params.multi_items()
        if name.startswith(VALUE) and text.strip()
    ]
    if len(filters) > _MOST_FILTERS:
        raise UsageError(f"These are {len(filters)} filters: at most {_MOST_FILTERS} are taken at once.")
    return AskedTable(
        site,
        wrapper,
        run,
        words,
        url,
        tuple(dict.fromkeys(filters)),
        below,
        sort,
        order == "down",
    )


Asked = Annotated[AskedTable, Depends(_asked)]


class _Found(NamedTuple):
    """What a table is made of: the records to choose from, how many they are, which attributes they have."""

    choice: Choice
    counts: Sequence[RecordCount]
    attributes: Sequence[AttributeShare]


def _find(services: Services, asked: AskedTable) -> _Found:
    store, found = services.store, services.found_records
    scope = found.scope(store.record_table, asked.run)
    counts = found.counts(store.record_table, scope)
    choice = chosen(asked, scope, counts)
    attributes = found.attributes(choice, lambda: attributes_of(store, choice, counts))
    return _Found(choice, counts, attributes)


@router.get("/api/records", tags=["records"], summary="Records, filtered and sorted", responses=_NOT_FOUND)
def api_records(
    request: Request,
    _: Viewer,
    asked: Asked,
    offset: Annotated[int, Query(ge=0, le=LARGEST_ID, description="How many to leave out before.")] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_AT_ONCE)] = _RECORDS_OF_A_PAGE,
) -> RecordsView:
    """The records that hold now, or those of a run; `v.NAME=…` filters by the values of an attribute as the
    fields over the columns of the table do, `v.NAME=~0.8` by how sure they are.
    """
    services = services_of(request)
    found = _find(services, asked)
    table = services.store.record_table
    ids = services.found_records.ids(table, found.choice, asked.query())
    after = offset + limit
    return RecordsView(
        total=len(ids),
        attributes=list(found.attributes),
        records=[record_view(row) for row in table.rows(found.choice.scope, ids[offset:after])],
        next=f"/api/records?{asked.parameters(offset=after, limit=limit)}" if after < len(ids) else None,
    )


class _Column(NamedTuple):
    """A column of the table: `sorted_by` is how the table is asked for when its head is clicked."""

    name: str
    filled: float
    filter: str
    sorted_by: str
    direction: Literal["ascending", "descending", "none"]


class _Tab(NamedTuple):
    text: str
    records: int
    parameters: str
    is_current: bool


class _Pager(NamedTuple):
    """Which part of the table is shown, and how others are asked for."""

    page: int
    pages: int
    first: int
    last: int
    total: int


@router.get("/records", include_in_schema=False)
def records_page(
    request: Request,
    visitor: Viewer,
    asked: Asked,
    page: IdIfAny = None,
) -> HTMLResponse:
    """The table of records."""
    services = services_of(request)
    table = services.store.record_table
    scope = services.found_records.scope(table, asked.run)
    counts = services.found_records.counts(table, scope)
    of_site = [one for one in counts if asked.site in (None, one.site)]
    is_fruitless = (
        asked.wrapper is not None
        and not any(one.wrapper == asked.wrapper for one in of_site)
        and any(one.name == asked.wrapper for one in services.store.wrappers())
    )
    if not of_site or is_fruitless:
        sites = [one for one in site_summaries(services.store) if asked.site in (None, one.site)]
        return render(
            request,
            "records_none.html",
            visitor,
            asked=asked,
            sites=sites[:_SITES_SUGGESTED],
            has_others=bool(counts),
        )
    if asked.wrapper is None:  # those of one wrapper have the same columns
        asked = replace(asked, wrapper=of_site[0].wrapper)
    found = _find(services, asked)
    ids = services.found_records.ids(table, found.choice, asked.query())
    pages = max(1, -(-len(ids) // _RECORDS_OF_A_PAGE))
    number = min(page or 1, pages)
    first = (number - 1) * _RECORDS_OF_A_PAGE
    rows = table.rows(scope, ids[first : first + _RECORDS_OF_A_PAGE])
    names = _names(found.attributes, rows)
    names_of_sites = list(dict.fromkeys(one.site for one in counts))
    response = render(
        request,
        "records.html",
        visitor,
        asked=asked,
        all_wrappers=ALL,
        most_shown=_MOST_SHOWN,
        longest_shown=_LONGEST_SHOWN,
        below_choices=_BELOW,
        sure_links=[replace(asked, below=below).parameters() for below in (None, *_BELOW)],
        given=asked.given(),
        unfiltered=AskedTable(asked.site, asked.wrapper, asked.run).parameters(),
        columns=_columns(asked, found.attributes, names),
        rows=[_ShownRow.of(row, names) for row in rows],
        tabs=_tabs(asked, of_site),
        sites=names_of_sites,
        sites_shown=_with_chosen(names_of_sites, asked.site),
        repeated=_repeated(asked.filters),
        chips=chips(asked),
        misread=[sentence for one in asked.filters if (sentence := misread(*one))],
        sorts={name: _sorted_by(asked, name) for name in ("url", "confidence")},
        pager=_Pager(number, pages, first + 1 if rows else 0, first + len(rows), len(ids)),
        of_all=sum(one.records for one in of_site if asked.wrapper in (ALL, one.wrapper)),
    )
    response.background = BackgroundTask(services.found_records.prepare, table, found.choice)
    return response


def _with_chosen(names: Sequence[str], chosen: str | None) -> list[str]:
    """The first of some names; the one that is chosen is always among them."""
    shown = list(names[:_CHOICES_SHOWN])
    return shown if chosen is None or chosen in shown or chosen not in names else [chosen, *shown[:-1]]


def _repeated(filters: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those filters for which the field of their column has no room: it shows the last of its attribute."""
    shown = dict(filters)
    return [(name, text) for name, text in filters if shown[name] != text]


def _names(attributes: Sequence[AttributeShare], rows: Sequence[TableRow]) -> list[str]:
    """The attributes that have columns: those with values, and any that the rows have besides."""
    filled = [one.name for one in attributes if one.filled]
    return list(dict.fromkeys([*filled, *(name for row in rows for name in row.values)]))


def _columns(asked: AskedTable, attributes: Sequence[AttributeShare], names: Sequence[str]) -> list[_Column]:
    filled = {one.name: one.filled for one in attributes}
    filters = dict(asked.filters)
    return [
        _Column(
            name,
            filled.get(name, 0.0),
            filters.get(name, ""),
            *_sorted_by(asked, f"{VALUE}{name}"),
        )
        for name in names
    ]


def _sorted_by(asked: AskedTable, sort: str) -> tuple[str, Literal["ascending", "descending", "none"]]:
    """How the table is asked for when the head of a column is clicked, and how it is sorted by it now."""
    if asked.sort != sort:
        return replace(asked, sort=sort, descending=False).parameters(), "none"
    if asked.descending:
        return replace(asked, sort="page", descending=False).parameters(), "descending"
    return replace(asked, descending=True).parameters(), "ascending"


class _Value(NamedTuple):
    """A value as it is shown: `sure` is its confidence in tenths."""

    text: str
    confidence: float
    sure: int
    link: str


class _ShownRow(NamedTuple):
    """A record as it is shown: values by column, the lowest confidence, and where its page is on the site."""

    cells: list[list[_Value]]
    lowest: float | None
    url: str
    path: str
    link: str

    @classmethod
    def of(cls, row: TableRow, names: Sequence[str]) -> _ShownRow:
        where = {"url": row.url, "site": row.site, "record": row.place, "wrapper": row.wrapper}
        if row.version is not None:
            where["wrapper_version"] = row.version
        link = f"/pages/at?{urlencode(where, errors='replace')}"
        cells = [
            [
                _Value(text, sure, int(sure * 10), f"{link}&{_stated(name, text)}")
                for text, sure in zip(row.values.get(name, ()), row.confidence.get(name, ()), strict=False)
            ]
            for name in names
        ]
        lowest = min((sure for shares in row.confidence.values() for sure in shares), default=None)
        host = urlsplit(row.url).netloc
        path = row.url.partition(host)[2] if host else ""
        return cls(cells, lowest, row.url, path or row.url, link)


def _stated(attribute: str, text: str) -> str:
    """How the page view finds the very value, if only on an earlier version of the page."""
    return urlencode({"attribute": attribute, "value": text[:_TELLING]}, errors="replace")


def _tabs(asked: AskedTable, counts: Sequence[RecordCount]) -> list[_Tab]:
    """The wrappers whose records can be shown, those with most of them, and all of them."""
    by_name: dict[str, int] = {}
    for one in counts:
        by_name[one.wrapper] = by_name.get(one.wrapper, 0) + one.records
    total = sum(by_name.values())
    names = _with_chosen(list(by_name), asked.wrapper)
    by_name = {name: by_name[name] for name in names} | ({ALL: total} if len(by_name) > 1 else {})
    # What was asked of one wrapper's attributes may make no sense of another's.
    anew = replace(asked, filters=(), sort="page", descending=False)
    return [
        _Tab(
            "All" if name == ALL else name,
            records,
            replace(anew, wrapper=name).parameters(),
            asked.wrapper == name,
        )
        for name, records in by_name.items()
    ]


@router.get("/records/download.{suffix}", include_in_schema=False)
def download(request: Request, _: Viewer, asked: Asked, suffix: Suffix) -> Response:
    """The records of a table as a file, in the form that `siteloom extract` writes."""
    services = services_of(request)
    found = _find(services, asked)
    ids = services.found_records.ids(services.store.record_table, found.choice, asked.query())
    attributes = [one.name for one in found.attributes]
    rows = flag_duplicates(map(json.loads, services.store.record_table.contents(ids)))
    name = _file_name(asked, f"{services.store.clock():%Y-%m-%d}", suffix)
    if suffix != "parquet":
        return StreamingResponse(
            stream_records(f".{suffix}", attributes, rows),
            media_type=_MEDIA_TYPES[suffix],
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )
    folder = tempfile.TemporaryDirectory(prefix="siteloom-")
    file = Path(folder.name, name)
    try:
        check_destination(str(file))
        with open_records(str(file), attributes) as writer:
            for row in rows:
                writer.write(row)
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(
        file, media_type=_MEDIA_TYPES[suffix], filename=name, background=BackgroundTask(folder.cleanup)
    )


def _file_name(asked: AskedTable, day: str, suffix: Suffix) -> str:
    """What the file is called: after the site or the wrapper, with letters that every system takes."""
    of = asked.site if asked.wrapper in (None, ALL) else asked.wrapper
    parts = ["records", re.sub(r"[^\w.-]+", "-", of or "", flags=re.ASCII).strip("-."), day]
    return f"{'-'.join(part for part in parts if part)}.{suffix}"
