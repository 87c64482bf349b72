"""The review: what waits for a person, one decision at a time, as a page and as JSON."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from siteloom.apps.server import svg_charts
from siteloom.apps.server.html_rendering import render
from siteloom.apps.server.request_types import not_found
from siteloom.apps.server.security import Viewer
from siteloom.apps.server.shared_state import services_of
from siteloom.apps.server.views.review import (
    ReviewDetail,
    ReviewItem,
    ReviewQueue,
    gone,
    review_detail,
    review_queue,
)
from siteloom.apps.server.views.wrappers import marked_lists, telling_values
from siteloom.core.errors import NotFound
from siteloom.store.store import Store

router = APIRouter()

Key = Annotated[str | None, Query(description="The key of what to look at.")]


@router.get("/api/review", tags=["review"], summary="What waits for a person")
def api_review(request: Request, _: Viewer) -> ReviewQueue:
    """Repairs that wait for a yes or examples, and templates worth annotating; the most pressing first."""
    return review_queue(services_of(request).store)


@router.get(
    "/api/review/{key:path}",
    tags=["review"],
    summary="One thing that waits",
    responses=not_found("It does not wait, or not any more."),
)
def api_review_item(request: Request, _: Viewer, key: str) -> ReviewDetail:
    """What is to be known to decide about something that waits: what changed, and what a repair would do."""
    store = services_of(request).store
    item = _called(review_queue(store).items, key)
    if item is None:
        raise gone(key)
    return review_detail(store, item)


@router.get("/review", include_in_schema=False)
def review_page(request: Request, visitor: Viewer, item: Key = None) -> HTMLResponse:
    """What waits: one thing in the middle, all others beside it."""
    store = services_of(request).store
    queue = review_queue(store)
    chosen = _called(queue.items, item) if item is not None else next(iter(queue.items), None)
    detail = _detail(store, chosen)
    outline = None
    if detail is not None and detail.template is not None:
        template = store.templates(detail.site, detail.name).get(detail.name)
        outline = template and svg_charts.outline(template.essential, f"Layout of {detail.name}")
    return render(
        request,
        "review.html",
        visitor,
        queue=queue,
        item=detail,
        following=_following(queue.items, chosen),
        is_gone=detail is None and (item is not None or chosen is not None),
        outline=outline,
        marked_lists=marked_lists,
        telling_values=telling_values,
    )


def _detail(store: Store, item: ReviewItem | None) -> ReviewDetail | None:
    try:
        return None if item is None else review_detail(store, item)
    except NotFound:  # a job has decided about it since the queue was read
        return None


def _called(items: list[ReviewItem], key: str) -> ReviewItem | None:
    return next((one for one in items if one.key == key), None)


def _following(items: list[ReviewItem], chosen: ReviewItem | None) -> str | None:
    """The key of what comes after, the first again after the last; none if nothing else waits."""
    if chosen is None:
        return items[0].key if items else None
    if len(items) < 2:
        return None
    return items[(items.index(chosen) + 1) % len(items)].key
