"""What the addresses of requests say."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

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
