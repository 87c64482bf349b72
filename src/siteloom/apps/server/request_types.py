"""Types of query and path parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from pydantic import BeforeValidator, Field

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.types import Scope


DESCRIPTION = "/openapi.json"
"""Where programs read what they can ask."""

LARGEST_ID = 2**63 - 1
"""The largest number that databases can look for."""

_SAFE_IN_PATHS = "/:@!$&'()*+,;="


def path_of(request: HTTPConnection) -> str:
    """The path that was asked for, by which routes are chosen; `request.url` depends on the header Host."""
    path: str = request.scope["path"]
    return path


def is_for_programs(path: str) -> bool:
    """Whether what is at a path is read by programs, not by people."""
    return path.startswith("/api/") or path == DESCRIPTION


def path_in_log(scope: Scope) -> str:
    """A path as one word: what was percent-encoded must not make a line of the log that no one wrote."""
    return quote(scope["path"], _SAFE_IN_PATHS)


def site_of_cluster(cluster: str) -> str:
    """The site of a cluster: the last part of a cluster's name is a number."""
    return cluster.rpartition("/")[0]


LONGEST_TEXT = 2_000
"""Characters of a text: far more than anything that people ask for."""

LARGEST_NUMBER = 2**31 - 1
"""The largest number that columns of databases have, if they are not ids."""


_MOST_DIGITS = len(str(LARGEST_ID))


def whole_number(text: object) -> int | None:
    """The number that a field of a form has, if it is one that can be looked for."""
    is_number = isinstance(text, str) and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(str(text)) if is_number else None


def _none_if_empty(given: object) -> object:
    """Forms send what was left empty, too."""
    return given or None


Id = Annotated[int, Field(ge=1, le=LARGEST_ID)]
VersionNumber = Annotated[int, Field(ge=1, le=LARGEST_NUMBER)]

# What may be left empty. Bounds stand inside of the union with None, for they do not hold for None.
_LeftEmpty = BeforeValidator(_none_if_empty)
TextIfAny = Annotated[Annotated[str, Field(max_length=LONGEST_TEXT)] | None, _LeftEmpty]
IdIfAny = Annotated[Id | None, _LeftEmpty]
PlaceIfAny = Annotated[Annotated[int, Field(ge=0, le=LARGEST_ID)] | None, _LeftEmpty]
"""A number that is counted from 0."""

ShareIfAny = Annotated[Annotated[float, Field(ge=0, le=1)] | None, _LeftEmpty]
VersionIfAny = Annotated[VersionNumber | None, _LeftEmpty]


def not_found(when: str = "There is none of this name.") -> dict[int | str, dict[str, Any]]:
    """What the description of the API says of answers to requests for what is not there."""
    return {404: {"description": when}}


def too_often(when: str) -> dict[int | str, dict[str, Any]]:
    """What it says of answers to requests that came too often."""
    return {429: {"description": when}}
