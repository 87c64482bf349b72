"""What is answered when a request goes wrong: a sentence, as a page or as JSON."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from siteloom.apps.server.html_rendering import render
from siteloom.apps.server.request_types import is_for_programs, path_in_log, path_of
from siteloom.apps.server.security import security_headers
from siteloom.core.errors import (
    AccountError,
    MissingExtra,
    NotFound,
    Overtaken,
    SiteloomError,
    StoreBusy,
    StoreError,
    TooManyFailures,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI, Request

_log = logging.getLogger(__name__)

# What to do about it, where the sentence itself cannot know.
_ADVICE = {
    401: "Sign in and try again.",
    403: "Ask an administrator of this workspace if you need to.",
    404: "It may have gone, or have another name or number by now.",
    409: "Look at what is there now, then try again.",
    429: "Wait a little, then try again.",
    500: "Try again; if it stays so, the server's log says what went wrong.",
    503: "Try again in a moment.",
}
# What it says of a body that breaks its parser, such as JSON that is nested too deep.
_OF_FASTAPI = "There was an error parsing the body"
_TITLES = {422: "Not understood"}
_LONGEST_SHOWN = 60  # characters of what was given instead
_STATUSES: tuple[tuple[type[SiteloomError], int], ...] = (
    (NotFound, 404),
    (Overtaken, 409),
    (TooManyFailures, 429),
    (AccountError, 422),
    (StoreBusy, 409),
    (StoreError, 503),
    (MissingExtra, 501),
    (SiteloomError, 400),
)


def handle_errors(app: FastAPI) -> None:
    """Have an application answer all errors with sentences."""
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _not_understood)
    app.add_exception_handler(SiteloomError, _failed)
    app.add_exception_handler(Exception, _broken)


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code < 400 or error.status_code == HTTPStatus.NOT_MODIFIED:
        return Response(status_code=error.status_code, headers=error.headers)
    sentence = error.detail
    if sentence in (HTTPStatus(error.status_code).phrase, _OF_FASTAPI):
        sentence = _plain_sentence(request, error.status_code)
    return _answer(request, error.status_code, sentence, error.headers)


def _not_understood(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    told = "; ".join(_in_words(problem) for problem in error.errors())
    return _answer(request, 422, f"This cannot be understood: {told}.")


def _in_words(problem: Mapping[str, Any]) -> str:
    """What is wrong with a part of a request."""
    name = ".".join(str(part) for part in problem["loc"][1:]) or "what was sent"
    limits = problem.get("ctx", {})
    match problem["type"]:
        case "missing":
            return f"{name} is missing"
        case "json_invalid":
            return "what was sent is not JSON"
        case "model_attributes_type" | "dataclass_type" | "dict_type":
            must = "a JSON object"
        case "greater_than_equal":
            must = f"at least {limits['ge']:,}"
        case "less_than_equal":
            must = f"at most {limits['le']:,}"
        case "int_parsing" | "int_type" | "int_from_float" | "int_parsing_size":
            must = "a whole number"
        case "float_parsing" | "float_type" | "finite_number":
            must = "a number"
        case "bool_parsing" | "bool_type":
            must = "true or false"
        case "literal_error":
            must = str(limits["expected"]).removeprefix("'', ").replace("'", "")  # empty is as if not said
        case "string_too_long":
            return f"{name} may have {limits['max_length']:,} characters at most"
        case _:
            message = str(problem["msg"])
            return f"{name}: {message[:1].lower()}{message[1:]}"
    given = str(problem["input"])
    return f"{name} must be {must}, not {given[:_LONGEST_SHOWN] or 'empty'}"


def _failed(request: Request, error: Exception) -> Response:
    status = next(status for kind, status in _STATUSES if isinstance(error, kind))
    return _answer(request, status, str(error))


def _broken(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, path_in_log(request.scope), exc_info=error)
    # What answers here stands outside of all that adds headers.
    headers = security_headers(request.scope["scheme"])
    return _answer(request, 500, "Something went wrong inside the server.", headers)


def _plain_sentence(request: Request, status: int) -> str:
    match status:
        case 400:
            return "What was sent cannot be read."
        case 404:
            return f"There is nothing at {path_of(request)}."
        case 405:
            return f"{path_of(request)} cannot be asked for with {request.method}."
        case _:
            return f"The server refuses this request: {HTTPStatus(status).phrase.lower()}."


def _answer(
    request: Request, status: int, sentence: str, headers: Mapping[str, str] | None = None
) -> Response:
    if is_for_programs(path_of(request)):
        return JSONResponse({"detail": sentence}, status, headers)
    response = render(
        request,
        "error.html",
        getattr(request.state, "visitor", None),
        status=status,
        title=_TITLES.get(status, HTTPStatus(status).phrase),
        sentence=sentence,
        decisions=0,  # what went wrong may be that nothing can be looked up
        advice=_ADVICE.get(status, "Go back, change what it says, and try again."),
    )
    response.headers.update(headers or {})
    return response
