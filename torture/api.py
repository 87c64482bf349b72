"""Requests that no one would send, made by schemathesis of the description of the API, and what is answered.

The application is asked in this process. Jobs are only put down: nothing runs them, so nothing is fetched.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from siteloom.apps.demo.sites import guide_site
from siteloom.apps.server import create_app
from siteloom.core.settings import Settings, StoreSettings
from siteloom.operations.annotate import AnnotateRequest, annotate
from siteloom.operations.cluster import cluster_store
from siteloom.operations.context import Context
from siteloom.operations.extract import ExtractRequest, extract
from siteloom.operations.learn import LearnRequest, learn
from siteloom.operations.page_import import import_pages
from siteloom.operations.search import update_index
from siteloom.sources.example_files import ExampleLine
from siteloom.sources.page_source import Items
from siteloom.store.queries.accounts import Passwords
from siteloom.store.workspace_folder import open_store
from torture.ordeals import Ordeal, Plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from fastapi import FastAPI
    from hypothesis.strategies import SearchStrategy
    from schemathesis.schemas import APIOperation
    from starlette.types import Message, Receive, Scope, Send

    from siteloom.store.queries.accounts import Role
    from siteloom.store.store import Store

TITLE = "Requests that make no sense"

SITE = "larkmoor-guide.example"
KNOWN: Mapping[str, object] = {
    "site": SITE,
    "cluster": f"{SITE}/1",
    "page_id": 1,
    "job_id": 1,
    "run_id": 1,
    "entity": 1,
}
"""What there is in the workspace, for the parts of paths."""

# Else the key that requests are sent with would be revoked sooner or later.
_ALWAYS_NAMED: Mapping[str, object] = {"key_id": 1}
_NAMES: Mapping[str, str] = {
    "/api/accounts/{name}": "target",
    "/api/wrappers/{name}": f"{SITE}/1",
    "/api/wrappers/{name}/diff": f"{SITE}/1",
    "/api/clusters/{cluster}/attributes/{name}": "name",
    "/api/uploads/{name}": "page.html",
}
_CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
REQUESTS = 400
"""For each of what is described, with full effort, role and way to ask."""

_ROLES: Sequence[Role] = ("admin", "viewer")
_KINDS = ((GenerationMode.POSITIVE, "as described"), (GenerationMode.NEGATIVE, "not as described"))
_CHEAP = Passwords(rounds=1, kibibytes=8, lanes=1)
_SECONDS_TO_LISTEN = 0.2  # to a stream, of which the first event comes at once
_PAGES = 30
_EXAMPLES = 4


@dataclass
class Asked:
    """How many requests were answered with which status, and what is wrong with some answers."""

    statuses: Counter[int] = field(default_factory=Counter)
    faults: dict[str, str] = field(default_factory=dict)


def ordeals(plan: Plan) -> Iterator[Ordeal]:
    """Ask for everything that is described, as an admin and as a viewer, rightly and wrongly."""
    with closing(_store(plan.folder / "workspace")) as store:
        app = create_app(store, Settings())
        app.state.services = replace(app.state.services, passwords=_CHEAP)
        kept = _CHEAP.hashed("no one signs in with it")
        for role in _ROLES:
            store.accounts.add(f"the-{role}", role, kept)
        store.accounts.add("target", "viewer", kept)
        store.accounts.add_key("target", "not theirs")
        for role in _ROLES:
            key = store.accounts.add_key(f"the-{role}", "api")
            for mode, told in _KINDS:
                begin = time.monotonic()
                asked = ask_everything(app, key, mode, plan.times(REQUESTS), plan.seed)
                count = sum(asked.statuses.values())
                yield Ordeal(
                    f"requests {told}, with the key of a {role}",
                    f"{count:,} requests",
                    "; ".join(asked.faults.values()) or _told(asked.statuses),
                    not asked.faults,
                    time.monotonic() - begin,
                )


def ask_everything(app: FastAPI, key: str, mode: GenerationMode, times: int, chance: int) -> Asked:
    """Send requests to all that is described; half of them name what is there, as far as they can."""
    schema = schemathesis.openapi.from_dict(app.openapi())
    asked = Asked()
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        for known, count in ((KNOWN, times - times // 2), (_ALWAYS_NAMED, times // 2)):
            if count:
                requests = operation.as_strategy(mode, path_parameters=_parts(operation, known))
                _ask(_without_jobs(app), operation.label, requests, key, count, chance, asked)
    return asked


def _ask(
    app: Any,
    label: str,
    requests: SearchStrategy[schemathesis.Case[Any]],
    key: str,
    times: int,
    chance: int,
    asked: Asked,
) -> None:
    @seed(chance)
    @settings(
        max_examples=times,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(requests)
    def ask(case: schemathesis.Case[Any]) -> None:
        answer = case.call(app=app, headers={"Authorization": f"Bearer {key}"})
        asked.statuses[answer.status_code] += 1
        try:
            case.validate_response(answer, checks=_CHECKS)
        except (Failure, FailureGroup) as error:
            failures = error.exceptions if isinstance(error, FailureGroup) else [error]
            for one in failures:
                what = f"{label}: {getattr(one, 'title', one)} ({answer.status_code})"
                asked.faults.setdefault(what, f"{what}: {one}\n{case.as_curl_command()}\n{answer.text[:300]}")

    with suppress(Unsatisfiable):  # there is no wrong way to ask for what takes no parameters
        ask()


def _parts(operation: APIOperation[Any, Any, Any, Any], known: Mapping[str, object]) -> dict[str, Any]:
    """What parts of a path are to be."""
    wanted = {one.name for one in operation.path_parameters}
    named = {**known, **_ALWAYS_NAMED}
    if known is KNOWN and operation.path in _NAMES:
        named["name"] = _NAMES[operation.path]
    return {name: value for name, value in named.items() if name in wanted}


def _without_jobs(app: FastAPI) -> Any:
    """The application without what runs jobs; its streams come to an end, as no one listens for long."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            with suppress(Exception):  # it was answered with 500 before it came here
                if scope["path"].endswith("/events"):
                    await _beginning_of_stream(app, scope, receive, send)
                else:
                    await app(scope, receive, send)
            return
        while (await receive())["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})

    return answer


async def _beginning_of_stream(app: FastAPI, scope: Scope, receive: Receive, send: Send) -> None:
    is_unfinished = True

    async def passed_on(message: Message) -> None:
        nonlocal is_unfinished
        is_unfinished = message["type"] == "http.response.start" or message.get("more_body", False)
        await send(message)

    with anyio.move_on_after(_SECONDS_TO_LISTEN):
        await app(scope, receive, passed_on)
    if is_unfinished:
        await send({"type": "http.response.body", "body": b""})


def _told(statuses: Counter[int]) -> str:
    return "no answer but those described: " + ", ".join(
        f"{count:,} of status {status}" for status, count in sorted(statuses.items())
    )


def _store(folder: Path) -> Store:
    """A small workspace with pages, a template, a wrapper, records and an index."""
    store = open_store(StoreSettings(str(folder)), create=True)
    pages = [one for one in guide_site() if one.kind == "restaurant"][:_PAGES]
    import_pages(store, [Items([one.page for one in pages])])
    cluster_store(store, "vertex")
    context = Context(store=store, settings=Settings())
    examples = tuple(ExampleLine(one.page.url, one.truth, (), {}) for one in pages[:_EXAMPLES])
    annotate(context, AnnotateRequest(examples=examples))
    learn(context, LearnRequest(cluster=f"{SITE}/1"))
    extract(context, ExtractRequest(site=SITE))
    update_index(context)
    store.jobs.add("index", {}, "the-admin")
    return store
