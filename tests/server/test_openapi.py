"""The API describes itself, and the manual leaves nothing of it out."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi import FastAPI

MANUAL = Path(__file__).parents[2] / "docs" / "reference" / "web-api.md"


def test_the_manual_lists_every_request(app: FastAPI) -> None:
    listed = set(re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE) [^`?]+)`", MANUAL.read_text("utf-8")))
    offered = {
        f"{method.upper()} {path}"
        for path, operations in app.openapi()["paths"].items()
        for method in operations
    }
    assert listed - {"GET /metrics"} == offered


def test_every_request_is_described(app: FastAPI) -> None:
    for path, operations in app.openapi()["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), (method, path)
