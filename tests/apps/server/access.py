"""Who may ask for what: every request that the application answers, with the least role that may send it."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.types import Message

from siteloom.apps.server import create_app
from siteloom.core.settings import Settings, StoreSettings
from siteloom.store.queries.accounts import ROLES, SESSION_TIME, Passwords, Role
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.coroutines import awaited
from tests.lived_in import GUIDE
from tests.store.helpers import day

PASSWORD = "the password of everyone"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
UPLOAD = "0123456789abcdef" * 2
"""The name of an upload that is there."""

LONG_NUMBERS = ("9" * 19, "9" * 3_900, "9" * 4_500, "-1", "\u0663")
"""Numbers as they may stand in paths, queries and forms."""

_SAID = {"version": "newest", "values": {"name": []}, "seen": {"name": 0}}
_JOB = {"kind": "index"}


class Access(NamedTuple):
    """Who may send a request, and what such a request says: a form, JSON, or bytes."""

    role: Role | None
    query: str = ""
    form: Mapping[str, str] | None = None
    json: object = None
    content: bytes | None = None

    def allows(self, role: Role | None) -> bool:
        """Whether someone of a role may; None is for those who have not signed in."""
        if self.role is None:
            return True
        return role is not None and ROLES.index(role) >= ROLES.index(self.role)

    def body(self) -> dict[str, Any]:
        """What httpx is to send."""
        told = {"data": self.form, "json": self.json, "content": self.content}
        return {name: given for name, given in told.items() if given is not None}


ANYONE = Access(None)
VIEWER = Access("viewer")
EDITOR = Access("editor")
ADMIN = Access("admin")

ACCESS: dict[str, Access] = {
    # What is told to anyone: how pages look, whether the server is well, and where to sign in.
    "GET /static": ANYONE,
    "GET /health": ANYONE,
    "GET /metrics": ANYONE,
    "GET /sign-in": ANYONE,
    "POST /sign-in": Access(None, form={"name": "target", "password": PASSWORD}),
    # One's own account. Whoever may look may have keys, which may do no more than their owner.
    "POST /sign-out": Access("viewer", form={}),
    "GET /settings": VIEWER,
    "POST /settings/password": Access("viewer", form={"current": PASSWORD, "password": PASSWORD}),
    "POST /settings/keys": Access("viewer", form={"label": "export"}),
    "POST /settings/keys/{key_id}/revoke": Access("viewer", form={}),
    "GET /api/me": VIEWER,
    "PUT /api/me/password": Access("viewer", json={"current": PASSWORD, "new": PASSWORD}),
    "GET /api/keys": VIEWER,
    "POST /api/keys": Access("viewer", json={"label": "export"}),
    "DELETE /api/keys/{key_id}": VIEWER,
    # All accounts.
    "GET /settings/accounts": ADMIN,
    "POST /settings/accounts": Access("admin", form={"name": "new", "role": "viewer", "password": PASSWORD}),
    "POST /settings/accounts/{name}/role": Access("admin", form={"role": "editor"}),
    "POST /settings/accounts/{name}/password": Access("admin", form={"password": PASSWORD}),
    "POST /settings/accounts/{name}/disable": Access("admin", form={}),
    "GET /api/accounts": ADMIN,
    "POST /api/accounts": Access("admin", json={"name": "newer", "password": PASSWORD}),
    "PATCH /api/accounts/{name}": Access("admin", json={"role": "viewer", "password": PASSWORD}),
    "DELETE /api/accounts/{name}": ADMIN,
    # Archived pages.
    "GET /pages/{page_id:int}/tree": VIEWER,
    "GET /pages/{page_id:int}/frame": VIEWER,
    "GET /pages/{page_id:int}/resource": Access("viewer", f"url=https://{GUIDE}/style.css"),
    "GET /api/pages/at": Access("viewer", f"url=https://{GUIDE}/"),
    "GET /api/pages/{page_id:int}": VIEWER,
    "GET /api/pages/{page_id:int}/changes": VIEWER,
    "GET /api/pages/{page_id:int}/tags": VIEWER,
    "GET /api/pages/{page_id:int}/paths": VIEWER,
    "GET /pages/at": Access("viewer", f"url=https://{GUIDE}/"),
    "GET /pages/{page_id:int}": VIEWER,
    "GET /pages/{page_id:int}/changes": VIEWER,
    "GET /pages/{page_id:int}/tags": VIEWER,
    "GET /pages/{page_id:int}/paths": VIEWER,
    # Annotating. What is known from elsewhere is looked up, and kept in memory, for those who annotate.
    "GET /clusters/{cluster:path}/annotate": VIEWER,
    "GET /api/clusters/{cluster:path}/workbench": VIEWER,
    "GET /api/clusters/{cluster:path}/workbench/known": EDITOR,
    "GET /api/clusters/{cluster:path}/events": VIEWER,
    "PUT /api/clusters/{cluster:path}/pages/{page_id:int}/values": Access("editor", json=_SAID),
    "PUT /api/clusters/{cluster:path}/pages/{page_id:int}/records": Access(
        "editor", json={"version": "newest", "records": [], "seen": 0}
    ),
    "PUT /api/clusters/{cluster:path}/attributes/{name:path}": Access("editor", json={"seen": 0}),
    "DELETE /api/clusters/{cluster:path}/attributes/{name:path}": Access("editor", "seen=0"),
    "POST /api/clusters/{cluster:path}/finish": EDITOR,
    # Jobs do all that changes pages, wrappers and records, and fetch from the web.
    "GET /jobs": VIEWER,
    "POST /jobs": Access("editor", form={"kind": "index"}),
    "GET /jobs/{job_id:int}": VIEWER,
    "POST /jobs/{job_id:int}/cancel": Access("editor", form={}),
    "POST /jobs/{job_id:int}/again": Access("editor", form={}),
    "GET /api/jobs": VIEWER,
    "POST /api/jobs": Access("editor", json=_JOB),
    "GET /api/jobs/{job_id:int}": VIEWER,
    "POST /api/jobs/{job_id:int}/cancel": EDITOR,
    "GET /api/jobs/{job_id:int}/events": VIEWER,
    # What is forgotten is gone for good.
    "GET /forget": Access("admin", f"name={GUIDE}"),
    "POST /forget": Access("admin", form={"name": GUIDE, "typed": GUIDE}),
    "GET /api/forget": Access("admin", f"name={GUIDE}"),
    # Pages in. URLs are sorted by what they look like, and nothing of it is kept.
    "GET /add": EDITOR,
    "PUT /api/uploads/{name:path}": Access("editor", content=b"<p>page"),
    "POST /api/trials": Access("editor", json={}),
    "GET /pages/trial-{key}": VIEWER,
    "GET /pages/trial-{key}/tree": VIEWER,
    "GET /pages/trial-{key}/frame": VIEWER,
    "POST /api/urls": Access("viewer", json={"text": "https://a.example/1"}),
    "GET /sites/{site:path}/urls": VIEWER,
    "GET /api/sites/{site:path}/urls": VIEWER,
    # Known records: what was sent is no one's but its sender's until it is kept.
    "GET /seeds": VIEWER,
    "GET /seeds/wrap": VIEWER,
    "GET /seeds/sites/{site:path}": VIEWER,
    "GET /seeds/uploads/{upload}": EDITOR,
    "POST /seeds/uploads/{upload}": Access("editor", form={"source": "table"}),
    "POST /seeds/sites/{site:path}/accept": Access("editor", form={}),
    "GET /api/seeds": VIEWER,
    "GET /api/seeds/uploads/{upload}": EDITOR,
    "GET /api/seeds/sites/{site:path}": VIEWER,
    "POST /api/seeds/sites/{site:path}/accept": EDITOR,
    # Templates without examples.
    "GET /clusters/{cluster:path}/discover": VIEWER,
    "POST /clusters/{cluster:path}/discover": Access("editor", form={"take": "0", "table": "1"}),
    "POST /clusters/{cluster:path}/discover/start": Access("editor", form={}),
    "GET /api/clusters/{cluster:path}/discover": VIEWER,
    # All that is looked at and not changed.
    "GET /": VIEWER,
    "GET /openapi.json": VIEWER,
    "GET /sites/{site:path}": VIEWER,
    "GET /sites/{site:path}/health": VIEWER,
    "GET /clusters/{cluster:path}": VIEWER,
    "GET /clusters/{cluster:path}/tags": VIEWER,
    "GET /clusters/{cluster:path}/sample": VIEWER,
    "GET /compare": VIEWER,
    "GET /compare/tags": Access("viewer", f"a={GUIDE}/1&b={GUIDE}/2"),
    "GET /api/sites": VIEWER,
    "GET /api/sites/{site:path}": VIEWER,
    "GET /api/sites/{site:path}/health": VIEWER,
    "GET /api/clusters/{cluster:path}": VIEWER,
    "GET /api/clusters/{cluster:path}/paths": VIEWER,
    "GET /api/clusters/{cluster:path}/tags": VIEWER,
    "GET /api/clusters/{cluster:path}/sample": VIEWER,
    "GET /api/compare": Access("viewer", f"a={GUIDE}/1&b={GUIDE}/2"),
    "GET /api/compare/tags": Access("viewer", f"a={GUIDE}/1&b={GUIDE}/2"),
    "GET /wrappers": VIEWER,
    "GET /wrappers/{name:path}": VIEWER,
    "GET /wrappers/{name:path}/diff": Access("viewer", "a=1&b=1"),
    "GET /wrappers/{name:path}/download.{kind}": VIEWER,
    "GET /api/wrappers": VIEWER,
    "GET /api/wrappers/{name:path}": VIEWER,
    "GET /api/wrappers/{name:path}/diff": Access("viewer", "a=1&b=1"),
    "GET /review": VIEWER,
    "GET /api/review": VIEWER,
    "GET /api/review/{key:path}": VIEWER,
    "GET /search": Access("viewer", "words=sushi"),
    "GET /api/search": Access("viewer", "words=sushi"),
    "GET /monitoring": VIEWER,
    "GET /monitoring/alarms": VIEWER,
    "GET /api/monitoring": VIEWER,
    "GET /api/alarms": VIEWER,
    "GET /performance": VIEWER,
    "GET /api/performance": VIEWER,
    "GET /runs/{run_id:int}": VIEWER,
    "GET /api/runs/{run_id}": VIEWER,
    "GET /entities": VIEWER,
    "GET /entities/link": VIEWER,
    "GET /entities/{entity:int}": VIEWER,
    "GET /entities/download.{ending}": VIEWER,
    "GET /api/entities": VIEWER,
    "GET /api/entities/{entity:int}": VIEWER,
    "GET /records": VIEWER,
    "GET /records/download.{suffix}": VIEWER,
    "GET /api/records": VIEWER,
}

_NAMED = {
    "site": GUIDE,
    "cluster": f"{GUIDE}/1",
    "page_id": "1",
    "job_id": "1",
    "key_id": "1",
    "run_id": "1",
    "entity": "1",
    "upload": UPLOAD,
    "key": f"template:{GUIDE}/3",
    "kind": "json",
    "suffix": "csv",
    "ending": "csv",
}
# What is called by a name.
_NAMES = {"accounts": "target", "attributes": "name", "uploads": "page.html", "wrappers": f"{GUIDE}/1"}


class Route(NamedTuple):
    """A request that the application answers, as it is asked for."""

    method: str
    template: str

    @property
    def path(self) -> str:
        """The path with the names of things that are there."""
        if self.template == "/static":
            return "/static/siteloom.css"
        before = self.template.partition("/{name")[0].rpartition("/")[2]
        named = _NAMED | {"name": _NAMES.get(before, "")}
        return re.sub(r"{(\w+)(?::\w+)?}", lambda found: named[found[1]], self.template)

    @property
    def access(self) -> Access:
        """Who may ask for it."""
        return ACCESS[f"{self.method} {self.template}"]

    @property
    def url(self) -> str:
        """The path with the query."""
        return f"{self.path}?{self.access.query}" if self.access.query else self.path


def all_routes(app: FastAPI) -> Iterator[Route]:
    """What the application answers; files are one route."""
    for found in iter_route_contexts(app.routes):
        for method in sorted(getattr(found, "methods", None) or {"GET"}):
            yield Route(method, getattr(found, "path", ""))


def all_rows(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Everything in all tables of a store, and which files were sent to it."""
    with closing(sqlite3.connect(store.folder / "siteloom.db")) as database:
        names = [row[0] for row in database.execute("select name from sqlite_master where type = 'table'")]
        found = {name: database.execute(f'select * from "{name}"').fetchall() for name in names}
    sent: list[tuple[Any, ...]] = [(str(file),) for file in sorted(Path(store.folder).rglob("uploads/**"))]
    return found | {"uploads": sent}


# The first must be an admin.
ACCOUNTS: dict[str, Role] = {
    "ada": "admin",
    "eddy": "editor",
    "vera": "viewer",
    "target": "viewer",
    "gone": "admin",
    "late": "admin",
    "lost": "admin",
}
OF_ROLE: dict[Role, str] = {"viewer": "vera", "editor": "eddy", "admin": "ada"}
CHEAP = Passwords(rounds=1, kibibytes=8, lanes=1)


class Visitor(NamedTuple):
    """Someone who asks: with a cookie and the token that belongs to it, or with a key."""

    told: str
    role: Role | None
    cookie: str = ""
    token: str = ""
    key: str = ""

    def headers(self) -> dict[str, str]:
        """What tells who they are."""
        if self.key:
            return {"Authorization": f"Bearer {self.key}"}
        return {"Cookie": f"siteloom={self.cookie}", "X-CSRF-Token": self.token} if self.cookie else {}


class Served(NamedTuple):
    """An application, its store, and those who may not come in."""

    app: FastAPI
    store: Store
    strangers: list[Visitor]


@contextmanager
def served_with_people(folder: Path) -> Iterator[Served]:
    """An application on a store with everything in it, and with accounts of all roles."""
    now = [day(0)]
    with closing(open_store(StoreSettings(str(folder)), clock=lambda: now[0])) as store:
        accounts = store.accounts
        for name, role in ACCOUNTS.items():
            accounts.add(name, role, CHEAP.hashed(PASSWORD))
        accounts.add_key("late", "not revoked by others")
        store.jobs.add("index", {}, "vera")
        table = folder / "uploads" / UPLOAD / "files" / "table.csv"
        table.parent.mkdir(parents=True)
        table.write_text("name,city\nKoi,Larkmoor\n", encoding="utf-8")
        strangers = [
            Visitor("nobody", None),
            Visitor("a browser that never signed in", None, "x" * 43),
            Visitor("a key that is none", None, key=f"siteloom_{'x' * 43}"),
            Visitor("the browser of a disabled account", None, accounts.open_session("gone")),
            Visitor("the key of a disabled account", None, key=accounts.add_key("gone", "export")),
            Visitor("a session that has expired", None, accounts.open_session("late")),
            Visitor("a key that was revoked", None, key=accounts.add_key("lost", "export")),
        ]
        accounts.disable("gone")
        accounts.revoke_key("lost", accounts.keys("lost")[0].id)
        now[0] = day(0) + SESSION_TIME
        app = create_app(store, Settings())
        app.state.services = replace(app.state.services, passwords=CHEAP)
        yield Served(app, store, awaited(_with_tokens(app, strangers)))


async def _with_tokens(app: FastAPI, visitors: list[Visitor]) -> list[Visitor]:
    async with client_of(app) as client:
        return [await with_token(client, one) for one in visitors]


@asynccontextmanager
async def client_of(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=("192.0.2.7", 50_000))
    async with httpx.AsyncClient(transport=transport, base_url="http://siteloom.example") as client:
        yield client


async def with_token(client: httpx.AsyncClient, visitor: Visitor) -> Visitor:
    """A visitor with the token that pages of this server have in their browser."""
    if not visitor.cookie:
        return visitor
    me = await client.get("/api/me", headers=visitor.headers())
    if me.status_code == 200:
        return visitor._replace(token=me.json()["csrf"])
    form = (await client.get("/sign-in", headers=visitor.headers())).text
    return visitor._replace(token=form.partition('name="csrf" value="')[2].partition('"')[0])


async def status(client: httpx.AsyncClient, route: Route, visitor: Visitor) -> int:
    """What a request is answered with; being led to the page to sign in is 401."""
    client.cookies.clear()
    request = client.build_request(route.method, route.url, headers=visitor.headers(), **route.access.body())
    if route.path.endswith("/events"):
        app = client._transport.app  # type: ignore[attr-defined]
        return (await raw_answer(app, route.method, route.path, headers=dict(request.headers))).status
    answer = await client.send(request)
    assert answer.status_code < 500, (route, answer.text)
    is_sent_away = answer.status_code == 303 and answer.headers["location"].startswith("/sign-in")
    return 401 if is_sent_away else answer.status_code


class RawAnswer(NamedTuple):
    """What was answered."""

    status: int
    headers: dict[str, str]
    body: bytes


async def raw_answer(
    app: FastAPI,
    method: str,
    path: str,
    query: str = "",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
) -> RawAnswer:
    """What is answered to a path as it is, which no client has tidied up; of a stream, only how it begins."""
    begun: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    received = [{"type": "http.request", "body": body}]
    parts: list[bytes] = []

    async def receive() -> Message:
        if received:
            return received.pop()
        await asyncio.sleep(60)
        raise AssertionError

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            begun.set_result(message)
        else:
            parts.append(message.get("body", b""))

    told = {"Host": "siteloom.example", "Content-Length": str(len(body)), **(headers or {})}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "method": method,
        "scheme": "http",
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), text.encode()) for name, text in told.items()],
        "client": ("192.0.2.7", 50_000),
        "server": ("siteloom.example", 80),
    }
    answering = asyncio.ensure_future(app(scope, receive, send))
    start = await asyncio.wait_for(begun, 10)
    found = {name.decode(): text.decode() for name, text in start["headers"]}
    if found.get("content-type", "").startswith("text/event-stream"):
        answering.cancel()
    await asyncio.wait([answering])
    return RawAnswer(start["status"], found, b"".join(parts))
