"""Pages in: the page to add a site from files or URLs, and the URLs of a site by shape."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from siteloom.errors import NotFound, UsageError
from siteloom.matching import Matcher
from siteloom.pages.folder import INDEX_FILE
from siteloom.pages.formats import FILE_SUFFIXES
from siteloom.server.adding.url_shapes import ShapeRow, ShapesOfUrls, found_urls, shapes_of_urls
from siteloom.server.rendering import render
from siteloom.server.security import Editor, Viewer
from siteloom.server.services import services_of
from siteloom.server.wrappers.stored import readable
from siteloom.store import PageUrl, Store
from siteloom.urls import oversized_url, url_shape

router = APIRouter()

# More than a person looks through; words find the others.
_SHAPES_SHOWN = 200
_MOST_SHAPES = 10_000

Words = Annotated[str, Query(description="Only URLs with all of these words in them.")]


class UrlsToSort(BaseModel):
    """URLs, or a text that has some in it: lines, HTML, a sitemap."""

    text: str = ""
    urls: list[str] = []


class PastedShape(ShapeRow):
    """The URLs of one shape, all of them."""

    urls: list[str]
    archived: int = Field(description="How many of the pages are in the archive already.")


class PastedUrls(BaseModel):
    """URLs that were found in a text, by shape; nothing of it is kept."""

    urls: int
    archived: int = Field(description="How many of the pages are in the archive already.")
    lines_without: int = Field(description="How many lines of the text have no URL of a page.")
    rows: list[PastedShape] = Field(description="The shapes of most URLs first.")


@router.post("/api/urls", tags=["sites"], summary="Some URLs by shape")
def sort_urls(request: Request, _: Viewer, given: UrlsToSort) -> PastedUrls:
    """The URLs in a text by what they look like, each with the wrapper that would extract them."""
    for url in given.urls:
        if failure := oversized_url(url):
            raise UsageError(f"The URL {failure.url} is too large: {failure.detail}.")
    in_text = found_urls(given.text)
    urls = list(dict.fromkeys([*given.urls, *in_text.urls]))
    if not urls:
        raise UsageError("There is no URL in this: give one on each line, such as https://shop.example/p/1.")
    store = services_of(request).store
    archived = store.page_urls.known(urls)
    found = shapes_of_urls((PageUrl(url, None) for url in urls), _wrappers_for(store), limit=_MOST_SHAPES)
    if found.shapes > _MOST_SHAPES:
        raise UsageError(
            f"These URLs have {found.shapes:,} shapes, and at most {_MOST_SHAPES:,} are told at once: "
            "send fewer URLs at a time."
        )
    by_shape: dict[str, list[str]] = defaultdict(list)
    for url in urls:
        by_shape[url_shape(url)].append(url)
    rows = [
        PastedShape(
            **row.model_dump(),
            urls=by_shape[row.shape],
            archived=len(archived.intersection(by_shape[row.shape])),
        )
        for row in found.rows
    ]
    return PastedUrls(urls=len(urls), archived=len(archived), lines_without=in_text.lines_without, rows=rows)


@router.get("/api/sites/{site:path}/urls", tags=["sites"], summary="The URLs of a site by shape")
def site_urls(
    request: Request,
    _: Viewer,
    site: str,
    words: Words = "",
    limit: Annotated[int, Query(ge=1, le=_MOST_SHAPES)] = _SHAPES_SHOWN,
) -> ShapesOfUrls:
    """The URLs of the pages of a site by what they look like, with wrappers and templates."""
    store = services_of(request).store
    if site not in store.page_urls.sites():
        raise NotFound(f"There is no site {site}: the list of sites has all there are.")
    return shapes_of_urls(store.page_urls.of_site(site), _wrappers_for(store), words, limit)


@router.get("/sites/{site:path}/urls", include_in_schema=False)
def site_urls_page(request: Request, visitor: Viewer, site: str, words: Words = "") -> HTMLResponse:
    """The URLs of a site by shape."""
    found = site_urls(request, visitor, site, words)
    return render(request, "site_urls.html", visitor, site=site, words=words, found=found)


@router.get("/add", include_in_schema=False)
def add_page(request: Request, visitor: Editor, url: str = "") -> HTMLResponse:
    """Where pages come in; `url` is that of a page to try."""
    services = services_of(request)
    return render(
        request,
        "add.html",
        visitor,
        sites=services.store.page_urls.sites(),
        suffixes=FILE_SUFFIXES,
        index_file=INDEX_FILE,
        largest=services.settings.serve.max_upload_bytes,
        can_fetch="fetch" in services.jobs.kinds,
        url=url,
    )


def _wrappers_for(store: Store) -> Callable[[str], list[str]]:
    """Gives the names of the wrappers that have a pattern for a URL."""
    matcher = Matcher(readable(store.wrappers()))
    return lambda url: [one.name for one in matcher.by_url(url)]
