"""Wrappers: their rules, versions and what differs between these, on pages and as JSON; and as files."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from siteloom.apps.server import svg_charts
from siteloom.apps.server.html_rendering import render, share
from siteloom.apps.server.request_types import VersionIfAny, VersionNumber, not_found
from siteloom.apps.server.security import Viewer
from siteloom.apps.server.shared_state import services_of
from siteloom.apps.server.views.wrappers import (
    AttributeView,
    WrapperDetail,
    WrapperDiff,
    WrapperSummary,
    marked_lists,
    telling_values,
    wrapper_detail,
    wrapper_diff,
    wrapper_summaries,
)
from siteloom.core.errors import NotFound
from siteloom.wrappers.wrapper import Wrapper

router = APIRouter()

_in_api = partial(router.get, tags=["wrappers"], responses=not_found())
_MEDIA_TYPES = {"json": "application/json", "xslt": "application/xslt+xml"}

Version = Annotated[VersionIfAny, Query(description="The newest unless one is named.")]
OldVersion = Annotated[VersionNumber, Query(description="The number of a version.")]
NewVersion = Annotated[VersionNumber, Query(description="The number of another version.")]


@router.get("/api/wrappers", tags=["wrappers"], summary="All wrappers")
def api_wrappers(request: Request, _: Viewer) -> list[WrapperSummary]:
    """All wrappers that are in force, by site and name, each with how it does."""
    return wrapper_summaries(services_of(request).store)


@_in_api("/api/wrappers/{name:path}/diff", summary="Two versions of a wrapper")
def api_diff(request: Request, _: Viewer, name: str, a: OldVersion, b: NewVersion) -> WrapperDiff:
    """Which rules two versions of a wrapper have, in words, and what else differs between them."""
    return wrapper_diff(services_of(request).store, name, a, b)


@_in_api("/api/wrappers/{name:path}", summary="A wrapper")
def api_wrapper(request: Request, _: Viewer, name: str, version: Version = None) -> WrapperDetail:
    """A wrapper: its rules in words and as XPath, which pages it is for, how it does, and its versions."""
    return wrapper_detail(services_of(request).store, name, version)


@router.get("/wrappers", include_in_schema=False)
def wrappers_page(request: Request, visitor: Viewer) -> HTMLResponse:
    """All wrappers."""
    return render(request, "wrappers.html", visitor, wrappers=api_wrappers(request, visitor))


@router.get("/wrappers/{name:path}/download.{kind}", include_in_schema=False)
def download(
    request: Request,
    _: Viewer,
    name: str,
    kind: Literal["json", "xslt"],
    version: Version = None,
    layout: VersionIfAny = None,
) -> Response:
    """A wrapper as a file: as Siteloom reads it, or as a stylesheet that any XSLT processor can run.

    A stylesheet is of one layout, if the wrapper has several.
    """
    stored = services_of(request).store.wrapper(name, version)
    text = stored.text if kind == "json" else _stylesheet(stored.text, layout)
    file = f"{re.sub(r'[^A-Za-z0-9.-]+', '-', name).strip('-') or 'wrapper'}-{stored.version}.{kind}"
    headers = {"Content-Disposition": f"attachment; filename={quote(file)}"}
    return Response(text, media_type=_MEDIA_TYPES[kind], headers=headers)


@router.get("/wrappers/{name:path}/diff", include_in_schema=False)
def diff_page(request: Request, visitor: Viewer, name: str, a: OldVersion, b: NewVersion) -> HTMLResponse:
    """Two versions of a wrapper beside each other."""
    diff = wrapper_diff(services_of(request).store, name, a, b)
    versions = wrapper_detail(services_of(request).store, name).versions
    return render(
        request,
        "wrapper_diff.html",
        visitor,
        diff=diff,
        versions=versions,
        marked_lists=marked_lists,
        telling_values=telling_values,
    )


@router.get("/wrappers/{name:path}", include_in_schema=False)
def wrapper_page(request: Request, visitor: Viewer, name: str, version: Version = None) -> HTMLResponse:
    """A wrapper and its rules."""
    detail = wrapper_detail(services_of(request).store, name, version)
    return render(
        request,
        "wrapper.html",
        visitor,
        wrapper=detail,
        bars={one.name: _bar(one) for one in detail.attribute_list},
        marked_lists=marked_lists,
    )


def _stylesheet(text: str, layout: int | None) -> str:
    wrapper = Wrapper.from_json(text)
    if layout is None:
        return wrapper.to_xslt()
    if layout > len(wrapper.layouts):
        raise NotFound(f"There is no layout {layout} of the wrapper: it has {len(wrapper.layouts)}.")
    return wrapper.layouts[layout - 1].to_xslt()


def _bar(attribute: AttributeView) -> object:
    if attribute.filled is None:
        return None
    told = f"{share(attribute.filled)} of the records have {attribute.name}"
    return svg_charts.share_bar(attribute.filled, told)
