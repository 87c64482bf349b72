"""Query strings: whatever is left empty in a form is not said."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from siteloom.apps.server import create_app
from siteloom.core.settings import Settings
from siteloom.store.store import Store
from tests.apps.server.browsing import Browser
from tests.lived_in import GUIDE

_NAMED = {
    "site": quote(GUIDE),
    "cluster": f"{quote(GUIDE)}/1",
    "name": f"{quote(GUIDE)}/1",
    "page_id": "1",
    "job_id": "1",
    "run_id": "1",
    "suffix": "csv",
    "ending": "csv",
    "kind": "json",
}
_NEEDED = {"a": "1", "b": "1", "url": "https://guide.example/", "words": "sushi"}


def test_nothing_breaks_over_parameters_that_are_left_empty(lived_in: Store) -> None:
    app = create_app(lived_in, Settings())
    browser = Browser(app)
    asked = 0
    for route in _routes(app):
        if "GET" not in (route.methods or ()) or route.path.endswith("events"):
            continue
        path = route.path.replace(":path", "").replace(":int", "").format_map(_Names())
        needed = {
            name: _NEEDED[name]
            for name, is_needed in _parameters(route.dependant).items()
            if is_needed and name in _NEEDED
        }
        for empty in _parameters(route.dependant):
            query = "&".join(f"{name}={quote(text)}" for name, text in (needed | {empty: ""}).items())
            answer = browser.get(f"{path}?{query}")
            assert answer.status_code < 500, (path, query, answer.text)
            asked += 1
    assert asked > 50


def _routes(app: FastAPI) -> list[APIRoute]:
    routers = [one.original_router for one in app.routes if hasattr(one, "original_router")]
    return [route for router in routers for route in router.routes if isinstance(route, APIRoute)]


def _parameters(dependant: Dependant) -> dict[str, bool]:
    """The names of all parameters of a route's query string, and whether each is needed."""
    own = {one.alias: one.field_info.is_required() for one in dependant.query_params}
    return {name: needed for one in dependant.dependencies for name, needed in _parameters(one).items()} | own


class _Names(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return _NAMED.get(name, "1")


@pytest.mark.parametrize("name", ["site", "wrapper", "run", "below", "page", "words"])
def test_a_table_is_shown_although_fields_are_empty(lived_in: Store, name: str) -> None:
    browser = Browser(create_app(lived_in, Settings()))
    assert browser.get(f"/records?{name}=").status_code == 200
    assert browser.get(f"/api/records?{name}=").status_code == 200
    assert browser.get(f"/records/download.csv?{name}=").status_code == 200
