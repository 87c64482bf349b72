"""Everything that is described is asked for once in each way, and what is not as described is noticed."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import JSONResponse
from schemathesis import GenerationMode
from torture.ordeals import Plan

from torture import api


def test_every_answer_is_as_described(tmp_path: Path) -> None:
    done = list(api.ordeals(Plan(1 / api.REQUESTS, 1, tmp_path)))
    assert [one.found for one in done if not one.is_borne] == []
    assert len(done) == 4


def test_what_is_not_as_described_is_noticed() -> None:
    app = FastAPI()

    @app.get("/api/broken")
    def broken() -> None:
        raise ZeroDivisionError

    @app.get("/api/lying")
    def lying() -> dict[str, str]:
        return JSONResponse([1])  # type: ignore[return-value]

    @app.get("/api/refusing")
    def refusing() -> JSONResponse:
        return JSONResponse({}, 418)

    asked = api.ask_everything(app, "key", GenerationMode.POSITIVE, 1, 1)
    assert {fault.partition(":")[0] for fault in asked.faults} == {
        "GET /api/broken",
        "GET /api/lying",
        "GET /api/refusing",
    }
