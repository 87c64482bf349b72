"""Every link leads somewhere, links lead to every page, and no page has anything in it that could run."""

from __future__ import annotations

import re
from collections import Counter
from typing import get_args, get_type_hints
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute, iter_route_contexts
from lxml import html
from starlette.routing import Match

from siteloom.apps.server import create_app
from siteloom.core.settings import Settings
from siteloom.store.store import Store
from tests.apps.server.browsing import Browser

# Pages of a kind are made by the same template: some of each show what is wrong with it.
MOST_OF_A_SHAPE = 3
INLINE = "//style | //@style | //script[not(@src)] | //@*[starts-with(name(), 'on')]"
LINKS = "//a/@href | //link/@href | //script/@src | //@data-include"
# Pages to which no link of the workspace leads, and why.
UNLINKED = {
    "/compare/tags": "a form of the page of a template leads to what compares it",
    "/entities/{entity:int}": "there are records of one site only",
    "/jobs/{job_id:int}": "no job was started",
    "/pages/trial-{trial}": "no page is tried",
    "/seeds/sites/{site:path}": "no site was wrapped from known records",
    "/seeds/uploads/{upload}": "no table was sent",
    "/wrappers/{name:path}/diff": "no wrapper has two versions",
}


def page_routes(app: FastAPI) -> list[APIRoute]:
    """The routes that answer with a page."""

    def gives_page(route: APIRoute) -> bool:
        answer = get_type_hints(route.endpoint).get("return")
        return HTMLResponse in (answer, *get_args(answer))

    routes = (one.original_route for one in iter_route_contexts(app.routes))
    return [
        route
        for route in routes
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()) and gives_page(route)
    ]


def route_of(routes: list[APIRoute], path: str) -> str | None:
    """The route that answers for a path; the first that can."""
    scope = {"type": "http", "method": "GET", "path": unquote(urlsplit(path).path), "root_path": ""}
    return next((route.path for route in routes if route.matches(scope)[0] is Match.FULL), None)


def shape(path: str) -> str:
    """What the addresses of pages of a kind have in common."""
    parts = urlsplit(path)
    keys = sorted({field.partition("=")[0] for field in parts.query.split("&")})
    return re.sub(r"[\w.-]+\.example(?:(?:/|%2F)\d+)?|\d+", "#", parts.path) + "?" + "&".join(keys)


def test_all_links_lead_somewhere_and_nothing_could_run(lived_in: Store) -> None:
    app = create_app(lived_in, Settings())
    client = Browser(app)
    seen: Counter[str] = Counter()
    known, waiting = {"/"}, ["/"]
    pages = 0
    while waiting:
        path = waiting.pop(0)
        answer = client.get(path)
        assert answer.status_code in (200, 303), (path, answer.status_code, answer.text[:300])
        found = [answer.headers["location"]] if answer.status_code == 303 else []
        if answer.headers.get("content-type", "").startswith("text/html") and answer.status_code == 200:
            pages += 1
            page = html.document_fromstring(answer.text)
            assert not page.xpath(INLINE), path
            outside = [link for link in page.xpath(LINKS) if not re.match(r"[/?#](?!/)", str(link))]
            assert all("noreferrer" in link.getparent().get("rel", "") for link in outside), (path, outside)
            found = [str(link) for link in page.xpath(LINKS) if link not in outside]
        for link in found:
            target = urldefrag(urljoin(path, link)).url
            if target not in known and seen[shape(target)] < MOST_OF_A_SHAPE:
                known.add(target)
                seen[shape(target)] += 1
                waiting.append(target)
    assert pages > 60
    routes = page_routes(app)
    assert {route.path for route in routes} - {route_of(routes, path) for path in known} == UNLINKED.keys()
