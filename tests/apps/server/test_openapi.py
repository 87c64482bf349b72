"""The API describes itself, and the manual leaves nothing of it out."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi import FastAPI

from siteloom.apps.server.job_table import KINDS

MANUAL = Path(__file__).parents[3] / "docs" / "reference" / "web-api.md"


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


def test_the_manual_lists_every_kind_of_job() -> None:
    told: dict[str, dict[str, bool]] = {}
    for kinds, arguments in re.findall(
        r"^\| ((?:`\w+`(?:, )?)+) \|([^|]*)\|", MANUAL.read_text("utf-8"), re.MULTILINE
    ):
        named = {
            name: bool(needed) for needed, name in re.findall(r"(\*\*)?`(\w+)`", arguments.replace(",", " "))
        }
        told |= dict.fromkeys(re.findall(r"\w+", kinds), named)
    assert told == {
        kind: {name: one.is_needed for name, one in told.arguments.items()} for kind, told in KINDS.items()
    }
