"""Archived pages for the browser to show: nothing in them runs, and nothing leads out of them.

The script of a page of ours reads `/pages/12/tree` as XML and puts it in place of the root of the empty
document `/pages/12/frame`, in a frame whose sandbox allows no scripts. What may be loaded there, the
answer to the latter says.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response

from siteloom.annotating.archived import archived_css, archived_doctype, archived_tree
from siteloom.dom import decode, parse
from siteloom.errors import NotFound
from siteloom.model import Failure, Page, Resource
from siteloom.server.security import Viewer
from siteloom.server.services import services_of
from siteloom.urls import site_of
from siteloom.workbench import version_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from siteloom.store import PageAddress, Store

router = APIRouter(prefix="/pages", include_in_schema=False)

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

_LARGEST_ID = 2**63 - 1  # that databases can hold

_CHARSET = re.compile(rb'@charset "([^"]+)";')


@router.get("/{page_id:int}/tree")
def tree(
    request: Request, _visitor: Viewer, page_id: int, version: str | None = None, remote: bool = False
) -> Response:
    """The tree of a page as XHTML, its elements numbered; in its newest version unless another is named."""
    services = services_of(request)
    store = services.store
    address, page = _page(store, page_id, version)
    root = parse(page, services.settings.parse)
    if isinstance(root, Failure):
        why = f"{root.reason} ({root.detail})" if root.detail else root.reason
        raise HTTPException(422, f"The page {page.url} cannot be shown: {why}.")
    shown = archived_tree(
        root,
        page.url,
        resource=_resource_addresses(store, page_id, address.site, remote=remote),
        remote=remote,
    )
    return Response(shown, media_type="application/xhtml+xml", headers={"Content-Security-Policy": _ALONE})


@router.get("/{page_id:int}/frame")
def frame(
    request: Request, _visitor: Viewer, page_id: int, version: str | None = None, remote: bool = False
) -> Response:
    """An empty document for the tree of a page, laid out in the way that the page asks for."""
    _, page = _page(services_of(request).store, page_id, version)
    head = parse(Page(page.url, page.html[:_HEAD_BYTES], charset=page.charset))
    doctype = "" if isinstance(head, Failure) else archived_doctype(head)
    return Response(
        f"{doctype}<html><head></head><body></body></html>",
        media_type="text/html",
        headers={"Content-Security-Policy": _frame_policy(remote=remote), "Referrer-Policy": "no-referrer"},
    )


@router.get("/{page_id:int}/resource")
def resource(request: Request, _visitor: Viewer, page_id: int, url: str, remote: bool = False) -> Response:
    """A stylesheet or image of a page's site from the archive."""
    store = services_of(request).store
    address, _ = _page(store, page_id)
    found = store.resource(url, address.site) or store.resource(url)
    media_type = "" if found is None else _media_type(found)
    if found is None or media_type not in _SHOWN_TYPES:
        raise NotFound(f"The archive has no stylesheet or image {url}.")
    body = found.body
    if media_type == _CSS:
        addresses = _resource_addresses(store, page_id, address.site, remote=remote)
        body = archived_css(_css_text(found), url, resource=addresses, remote=remote).encode(
            "utf-8", "replace"
        )
    return Response(
        body,
        media_type=media_type,
        headers={"Content-Security-Policy": _ALONE, "Cache-Control": "private, max-age=3600"},
    )


def _page(store: Store, page_id: int, version: str | None = None) -> tuple[PageAddress, Page]:
    found = store.page_by_id(page_id) if page_id <= _LARGEST_ID else None
    if found is None:
        raise NotFound(f"There is no page {page_id} in the archive.")
    address, newest = found
    if version in (None, version_of(newest)):
        return address, newest
    for page in store.versions(address.url, address.site):
        if version_of(page) == version:
            return address, page
    raise NotFound(f"The archive has no version {version} of {address.url}.")


def _frame_policy(*, remote: bool) -> str:
    web = " https: http:" if remote else ""
    return (
        f"sandbox allow-same-origin; default-src 'none'; style-src 'self' 'unsafe-inline'{web}; "
        f"img-src 'self' data:{web}; font-src 'self'{web}; "
        "script-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
    )


def _resource_addresses(
    store: Store, page_id: int, site: str, *, remote: bool
) -> Callable[[str], str | None]:
    """Where the archive's copies of what a page is made of are served."""

    @cache
    def address(url: str) -> str | None:
        has_it = store.has_resource(url, site) or (site_of(url) != site and store.has_resource(url))
        query = {"url": url} | ({"remote": "1"} if remote else {})
        return f"/pages/{page_id}/resource?{urlencode(query)}" if has_it else None

    return address


def _media_type(found: Resource) -> str:
    media_type = found.media_type.partition(";")[0].strip().lower()
    return _OTHER_NAMES.get(media_type, media_type)


def _css_text(sheet: Resource) -> str:
    charset = _CHARSET.match(sheet.body)
    return decode(sheet.body, charset[1].decode("latin-1") if charset else None)
