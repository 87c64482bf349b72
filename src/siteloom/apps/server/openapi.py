"""What programs can ask, described for them: that they need a key, and all that may be answered."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse

from siteloom.apps.server.request_types import DESCRIPTION, is_for_programs
from siteloom.apps.server.security import Viewer, is_for_anyone

_METHODS_WITH_BODY = frozenset({"post", "put", "patch"})
_JSON = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
_PAGE = {"text/html": {"schema": {"type": "string"}}}
_SCHEMAS = {
    "Refusal": {
        "title": "Refusal",
        "description": "Why a request was not answered, in a sentence.",
        "type": "object",
        "properties": {"detail": {"title": "Detail", "type": "string"}},
        "required": ["detail"],
    }
}
# What FastAPI says of requests that make no sense, which are answered as all others that are refused.
_OF_FASTAPI = "HTTPValidationError"
_NOT_USED = (_OF_FASTAPI, "ValidationError")
_KEY = {"key": {"type": "http", "scheme": "bearer", "description": "A key, as Authorization: Bearer KEY."}}

_ALWAYS = {
    "400": "It cannot be done, or cannot be read.",
    "401": "There is no key, or none that is known.",
    "403": "The role does not allow it, or the token of the page is missing.",
    "422": "This is no such request.",
    "503": "The database does not answer.",
}
_OF_CHANGES = {"409": "Another was faster, or writes to the workspace.", "501": "An extra is not installed."}
_OF_BODIES = {"411": "It is not said how long the body is.", "413": "The body is too long."}
_OF_NAMES = {
    "404": "There is none of this name or number.",
    "405": "What should be a number is none, so this is the path of something else.",
    "414": "The path is too long.",
}
_SIGN_IN = {"303": {"description": "Who sends no key is led to the page to sign in."}}


def describe(app: FastAPI) -> None:
    """Have an application tell those who may ask what there is to ask."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign] # as FastAPI would have it done
    app.add_api_route(DESCRIPTION, _description, include_in_schema=False)


def _description(request: Request, _: Viewer) -> JSONResponse:
    """What programs can ask."""
    return JSONResponse(request.app.openapi())


def _described(app: FastAPI) -> dict[str, Any]:
    told = get_openapi(title=app.title, version=app.version, routes=app.routes)
    components = told.setdefault("components", {})
    schemas = {name: one for name, one in components.get("schemas", {}).items() if name not in _NOT_USED}
    components |= {"schemas": schemas | _SCHEMAS, "securitySchemes": _KEY}
    for path, operations in told["paths"].items():
        for method, operation in operations.items():
            if is_for_anyone(path):
                continue
            operation["security"] = [{"key": []}]
            own = operation["responses"]
            content, led = (_JSON, {}) if is_for_programs(path) else (_PAGE, _SIGN_IN)
            refusals = {
                status: {"description": text, "content": content}
                for status, text in _refusals(path, method).items()
            }
            own = {
                status: one
                for status, one in operation["responses"].items()
                if _OF_FASTAPI not in str(one.get("content"))
            }
            for (
                status,
                one,
            ) in own.items():  # what a route says itself is more exact, but for what it looks like
                if status in refusals:
                    one.setdefault("content", content)
            operation["responses"] = dict(sorted({**led, **refusals, **own}.items()))
    return told


def _refusals(path: str, method: str) -> dict[str, str]:
    """The ways in which a request may go wrong."""
    return (
        _ALWAYS
        | (_OF_NAMES if "{" in path else {})
        | (_OF_CHANGES if method != "get" else {})
        | (_OF_BODIES if method in _METHODS_WITH_BODY else {})
    )
