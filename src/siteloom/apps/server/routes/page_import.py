"""Pages and endpoints: upload files, add a site, URLs by pattern.

A file is written beside its place and put there when all of it has come, so that what a lost connection
leaves is never read.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from siteloom.apps.server.html_rendering import render
from siteloom.apps.server.security import Editor, Viewer
from siteloom.apps.server.shared_state import services_of
from siteloom.apps.server.upload_folder import Upload, find_upload, new_upload, remove_old_uploads, safe_name
from siteloom.core.errors import UsageError
from siteloom.operations.context import Context
from siteloom.operations.list_urls import MOST_GROUPS, ListUrlsRequest, UrlList, list_urls
from siteloom.sources.html_folder import INDEX_FILE
from siteloom.sources.source_formats import FILE_SUFFIXES
from siteloom.store.queries.jobs import JobState
from siteloom.store.store import Store

if TYPE_CHECKING:
    from pathlib import PurePosixPath
    from typing import IO


router = APIRouter()

# Room that must be left on the disk, for the database and whatever else needs it.
_BYTES_LEFT = 2**28
# More jobs than anyone lets wait.
_MOST_JOBS = 10_000
_UNFINISHED: tuple[JobState, ...] = ("waiting", "running")
# Small parts are written together: a call of the file system for each would be slow.
_BYTES_WRITTEN_AT_ONCE = 2**20


class UploadedFile(BaseModel):
    """A file that has come."""

    upload: str = Field(description="The id of the upload, by which more files join it and a job reads it.")
    name: str
    bytes: int


@router.put(
    "/api/uploads/{name:path}",
    tags=["uploads"],
    status_code=201,
    summary="Send a file",
    responses={507: {"description": "The disk has no room for it."}},
    openapi_extra={"requestBody": {"content": {"application/octet-stream": {}}, "required": True}},
)
async def receive_file(
    request: Request,
    _: Editor,
    name: str,
    upload: Annotated[
        str | None, Query(description="The id of an upload that the file joins; a new one without.")
    ] = None,
) -> UploadedFile:
    """Send a file of pages as the body of the request, as large as the settings allow.

    Its name may have folders. A job of the kind `ingest` reads the pages of an upload.
    """
    path = safe_name(name)
    length = int(request.headers.get("content-length", "0"))
    if not length:
        raise UsageError(f"{path.name} is empty.")
    joined = await run_in_threadpool(_place, services_of(request).store, upload, length)
    try:
        await _receive(request, joined, path, length)
    finally:
        await run_in_threadpool(joined.remove_if_empty)
    return UploadedFile(upload=joined.id, name=str(path), bytes=length)


def _place(store: Store, name: str | None, length: int) -> Upload:
    """The upload that a file is for, if there is room for it; those that no one came back to make room."""
    workspace = store.folder
    if name is None:
        remove_old_uploads(workspace, _awaited(store))
    # Its pages are kept as well, and packed they need less room than the file.
    if shutil.disk_usage(workspace).free < 2 * length + _BYTES_LEFT:
        raise HTTPException(507, f"The disk has no room for {length:,} bytes and what is in them.")
    return new_upload(workspace) if name is None else find_upload(workspace, name)


def _awaited(store: Store) -> set[str]:
    """The uploads that jobs are to read, however long they wait for their turn."""
    return {
        job.arguments["upload"]
        for state in _UNFINISHED
        for job in store.jobs.latest(_MOST_JOBS, state)
        if isinstance(job.arguments.get("upload"), str)
    }


async def _receive(request: Request, upload: Upload, path: PurePosixPath, length: int) -> None:
    file = await run_in_threadpool(upload.open_part)
    try:
        with file:
            received = await _write_body(request, file)
        if received != length:
            raise UsageError(f"Only {received:,} of {length:,} bytes of {path.name} came: send it again.")
        await run_in_threadpool(_put, upload, file.name, path)
    finally:
        upload.discard(file.name)


async def _write_body(request: Request, file: IO[bytes]) -> int:
    received = 0
    waiting = bytearray()
    async for part in request.stream():
        waiting += part
        received += len(part)
        if len(waiting) >= _BYTES_WRITTEN_AT_ONCE:
            await run_in_threadpool(file.write, waiting)
            waiting = bytearray()
    await run_in_threadpool(file.write, waiting)
    return received


def _put(upload: Upload, part: str, path: PurePosixPath) -> None:
    try:
        upload.complete(part, path)
    except OSError as error:  # a folder of the same name, or a name that this disk does not take
        raise UsageError(f"{path.name} cannot be kept: {error.strerror}.") from error


# More than a person looks through; words find the others.
_GROUPS_SHOWN = 200

Words = Annotated[str, Query(description="Only URLs with all of these words in them.")]


class UrlsToSort(BaseModel):
    """URLs, or a text that has some in it: lines, HTML, a sitemap."""

    text: str = ""
    urls: list[str] = []


@router.post("/api/urls", tags=["sites"], summary="Some URLs by shape")
def sort_urls(request: Request, _: Viewer, given: UrlsToSort) -> UrlList:
    """The URLs in a text grouped by shape, with the wrappers that would extract them; nothing is kept."""
    return _list(request, ListUrlsRequest(text=given.text, urls=tuple(given.urls)))


@router.get("/api/sites/{site:path}/urls", tags=["sites"], summary="The URLs of a site by shape")
def site_urls(
    request: Request,
    _: Viewer,
    site: str,
    words: Words = "",
    limit: Annotated[int, Query(ge=1, le=MOST_GROUPS)] = _GROUPS_SHOWN,
) -> UrlList:
    """The URLs of the pages of a site grouped by shape, with wrappers and templates."""
    return _list(request, ListUrlsRequest(site=site, words=words, limit=limit))


def _list(request: Request, asked: ListUrlsRequest) -> UrlList:
    services = services_of(request)
    return list_urls(Context(store=services.store, settings=services.settings), asked)


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
