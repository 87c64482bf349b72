"""Archived pages for the browser to show: nothing in them runs, and nothing leads out of them.

The script of a page of ours reads `/pages/12/tree` as XML and puts it in place of the root of the empty
document `/pages/12/frame`, in a frame whose sandbox allows no scripts. What may be loaded there, the
answer to the latter says.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response

from siteloom.apps.server.request_types import not_found
from siteloom.apps.server.security import Viewer
from siteloom.apps.server.shared_state import services_of
from siteloom.apps.server.views.archived_pages import archived_page
from siteloom.core.errors import NotFound
from siteloom.core.model import Failure, Page, Resource
from siteloom.html.archived_view.sanitizer import archived_css, archived_doctype, archived_tree
from siteloom.html.encoding import decode
from siteloom.html.parser import parse

if TYPE_CHECKING:
    from collections.abc import Callable

    from siteloom.store.store import Store

    # Gets whether the web may be asked, and what writes a tree with the addresses of resources.
    WithResources = Callable[[bool, Callable[[Callable[[str], str | None]], bytes]], bytes]

_Written = TypeVar("_Written")

router = APIRouter(prefix="/pages", tags=["annotating"])

Version = Annotated[
    str | None,
    Query(
        description="A version of the page, as the workbench names the one that its picks are about; "
        "the newest if none is named."
    ),
]
Remote = Annotated[
    bool,
    Query(
        description="Whether what the archive does not have may be loaded from the web, "
        "which tells its sites that someone looks at the page."
    ),
]


def _answers(media_type: str, description: str) -> dict[int | str, dict[str, Any]]:
    return {
        200: {"content": {media_type: {"schema": {"type": "string"}}}, "description": description},
        **not_found("The archive has no such page, version or resource."),
    }


_CSS = "text/css"
_SHOWN_TYPES = {
    _CSS,
    *(f"image/{kind}" for kind in ("avif", "bmp", "gif", "jpeg", "png", "svg+xml", "webp", "x-icon")),
    *(f"font/{kind}" for kind in ("otf", "ttf", "woff", "woff2")),
}
_OTHER_NAMES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/vnd.microsoft.icon": "image/x-icon",
}

# For whoever opens it by itself: an SVG image can hold scripts, a page everything.
_ALONE = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"

# Declarations of document types stand at the beginning.
_HEAD_BYTES = 16_384

_CHARSET = re.compile(rb'@charset "([^"]+)";')


@router.get(
    "/{page_id:int}/tree",
    response_class=Response,
    responses=_answers("application/xhtml+xml", "The tree.")
    | {422: {"description": "The page cannot be parsed, or this is no such request."}},
)
def tree(
    request: Request, _visitor: Viewer, page_id: int, version: Version = None, remote: Remote = False
) -> Response:
    """The tree of a page as well-formed XHTML: what picks are made on.

    Each element has its number in `data-siteloom`; its text children are as many as in the page, and stand
    in the same order. Scripts are left out, links lead nowhere, and what elements said in `href`, `src` and
    `content` is in `data-siteloom-href` and so on.
    """
    store = services_of(request).store
    address, page = archived_page(store, page_id, version)
    return tree_of(page, remote=remote, with_resources=partial(_with_resources, store, page_id, address.site))


def tree_of(page: Page, *, remote: bool, with_resources: WithResources | None = None) -> Response:
    """The tree of a page; `with_resources` writes it with the addresses of stylesheets and images."""
    root = parse(page)  # within the same limits as learning, so that all that is learned from can be shown
    if isinstance(root, Failure):
        why = f"{root.reason} ({root.detail})" if root.detail else root.reason
        raise HTTPException(422, f"The page {page.url} cannot be shown: {why}.")

    def write(resource: Callable[[str], str | None]) -> bytes:
        return archived_tree(root, page.url, resource=resource, remote=remote)

    shown = write(lambda _: None) if with_resources is None else with_resources(remote, write)
    return Response(shown, media_type="application/xhtml+xml", headers={"Content-Security-Policy": _ALONE})


@router.get(
    "/{page_id:int}/frame", response_class=Response, responses=_answers("text/html", "An empty document.")
)
def frame(
    request: Request, _visitor: Viewer, page_id: int, version: Version = None, remote: Remote = False
) -> Response:
    """An empty document to put the tree of a page into, so that a browser lays it out as the page asks for.

    Its headers let no script run in it, and nothing be loaded but what `remote` allows.
    """
    _, page = archived_page(services_of(request).store, page_id, version)
    return frame_of(page, remote=remote)


def frame_of(page: Page, *, remote: bool) -> Response:
    """An empty document with the document type of a page."""
    head = parse(Page(page.url, page.html[:_HEAD_BYTES], charset=page.charset))
    doctype = "" if isinstance(head, Failure) else archived_doctype(head)
    return Response(
        f"{doctype}<html><head></head><body></body></html>",
        media_type="text/html",
        headers={
            "Content-Security-Policy": _frame_policy(remote=remote),
            "X-Frame-Options": "SAMEORIGIN",
            "Referrer-Policy": "no-referrer",
        },
    )


@router.get(
    "/{page_id:int}/resource",
    response_class=Response,
    responses=_answers("*/*", "The stylesheet, image or font."),
)
def resource(
    request: Request,
    _visitor: Viewer,
    page_id: int,
    url: Annotated[str, Query(description="Its address on the web, in full.")],
    remote: Remote = False,
) -> Response:
    """A stylesheet, image or font that a page loads, from the archive; the tree of the page leads here."""
    store = services_of(request).store
    address, _ = archived_page(store, page_id)
    found = store.resource(url, address.site) or store.resource(url)
    media_type = "" if found is None else _media_type(found)
    if found is None or media_type not in _SHOWN_TYPES:
        raise NotFound(f"The archive has no stylesheet or image {url}.")
    body = found.body
    if media_type == _CSS:
        text = _css_text(found)
        shown = _with_resources(
            store,
            page_id,
            address.site,
            remote,
            lambda resource: archived_css(text, url, resource=resource, remote=remote),
        )
        body = shown.encode("utf-8", "replace")
    return Response(
        body,
        media_type=media_type,
        headers={"Content-Security-Policy": _ALONE, "Cache-Control": "private, max-age=3600"},
    )


def _frame_policy(*, remote: bool) -> str:
    web = " https: http:" if remote else ""
    return (
        f"sandbox allow-same-origin; default-src 'none'; style-src 'self' 'unsafe-inline'{web}; "
        f"img-src 'self' data:{web}; font-src 'self'{web}; "
        "script-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
    )


def _with_resources(
    store: Store,
    page_id: int,
    site: str,
    remote: bool,
    write: Callable[[Callable[[str], str | None]], _Written],
) -> _Written:
    """What is written with the addresses at which the archive's copies of what a page loads are served.

    It is written once to see which are needed, for a page may load thousands, and again if there are any.
    """
    wanted: dict[str, None] = {}
    written = write(wanted.setdefault)
    kept = store.known_resources(list(wanted), site)

    def address(url: str) -> str | None:
        query = {"url": url} | ({"remote": "1"} if remote else {})
        return f"/pages/{page_id}/resource?{urlencode(query)}" if url in kept else None

    return write(address) if kept else written


def _media_type(found: Resource) -> str:
    media_type = found.media_type.partition(";")[0].strip().lower()
    return _OTHER_NAMES.get(media_type, media_type)


def _css_text(sheet: Resource) -> str:
    charset = _CHARSET.match(sheet.body)
    return decode(sheet.body, charset[1].decode("latin-1") if charset else None)
