"""Every request is answered to those who may send it, and to no one else."""

from __future__ import annotations

from functools import partial
from urllib.parse import quote

import httpx

from siteloom.store.queries.accounts import ROLES, Role
from siteloom.store.store import Store
from tests.apps.server.access import (
    ACCESS,
    LONG_NUMBERS,
    OF_ROLE,
    SAFE,
    Route,
    Served,
    Visitor,
    all_routes,
    all_rows,
    client_of,
    status,
    with_token,
)
from tests.apps.server.browsing import Browser
from tests.coroutines import awaited

REFUSED = (401, 403)
MOST = "admin in a browser"
# All that can be undone is for editors.
OF_ADMINS = {"forget"}


def test_every_request_has_an_entry_and_every_entry_a_request(served: Served) -> None:
    assert sorted(f"{route.method} {route.template}" for route in all_routes(served.app)) == sorted(ACCESS)


def test_only_those_who_may_are_answered_and_nothing_is_done_for_others(served: Served) -> None:
    asked, wrong = awaited(_ask_for_everything(served))
    assert wrong == []
    assert asked > 1_000
    assert [key.label for key in served.store.accounts.keys("late")] == ["not revoked by others"]


async def _ask_for_everything(served: Served) -> tuple[int, list[tuple[str, str, int]]]:
    """How many requests were sent, and which of them were answered to the wrong people."""
    app, store, strangers = served
    keys = {role: store.accounts.add_key(name, "tests") for role, name in OF_ROLE.items()}
    wrong: list[tuple[str, str, int]] = []
    asked = 0
    async with client_of(app) as client:
        everyone: list[Visitor] = []
        for route in all_routes(app):
            everyone = everyone or [*strangers, *await _people(client, store, keys)]
            before = all_rows(store) if route.method not in SAFE else {}
            for visitor in sorted(everyone, key=partial(_is_welcome, route)):
                is_welcome = _is_welcome(route, visitor)
                is_between = visitor.role not in (None, route.access.role) and visitor.told != MOST
                if is_welcome and is_between and route.method in SAFE:
                    continue  # may what all below and above may, and pages take their time
                if is_welcome and before:
                    assert all_rows(store) == before, route
                    before = {}
                code = await status(client, route, visitor)
                asked += 1
                if (code in REFUSED) == is_welcome:
                    wrong.append((f"{route.method} {route.path}", visitor.told, code))
            if route.method not in SAFE:
                everyone = []  # some may have signed out
    return asked, wrong


def _is_welcome(route: Route, visitor: Visitor) -> bool:
    if route.path == "/sign-in" and visitor.role is None:
        # A key that is worth nothing is told so everywhere, and a form is sent by browsers that have seen it.
        return not visitor.key and (route.method in SAFE or visitor.token != "")
    return route.access.allows(visitor.role)


async def _people(client: httpx.AsyncClient, store: Store, keys: dict[Role, str]) -> list[Visitor]:
    """Someone of each role, with a new browser and with a key."""
    browsers = [
        Visitor(f"{role} in a browser", role, store.accounts.open_session(OF_ROLE[role])) for role in ROLES
    ]
    with_keys = [Visitor(f"{role} with a key", role, key=keys[role]) for role in ROLES]
    return [await with_token(client, one) for one in browsers] + with_keys


def test_every_kind_of_job_is_for_those_who_may_have_it_done(served: Served) -> None:
    """As JSON, as a form, and again from what another has started."""
    accounts = served.store.accounts
    browser = Browser(served.app)
    keys = {role: {"Authorization": f"Bearer {accounts.add_key(OF_ROLE[role], 'jobs')}"} for role in ROLES}
    for kind in served.app.state.services.jobs.kinds:
        job = served.store.jobs.add(kind, {}, "ada").id
        for role in ROLES:
            may = ROLES.index(role) >= ROLES.index("admin" if kind in OF_ADMINS else "editor")
            answers = [
                browser.ask("POST", "/api/jobs", headers=keys[role], json={"kind": kind}),
                browser.ask("POST", "/jobs", headers=keys[role], data={"kind": kind}),
                browser.ask("POST", f"/jobs/{job}/again", headers=keys[role]),
                browser.ask("POST", f"/jobs/{job}/cancel", headers=keys[role]),
                browser.ask("POST", f"/api/jobs/{job}/cancel", headers=keys[role]),
            ]
            assert {answer.status_code == 403 for answer in answers} == {not may}, (kind, role)


def test_no_other_method_does_anything(served: Served) -> None:
    """Not even for an admin: what is not in the table is not there."""
    odd = ("HEAD", "OPTIONS", "TRACE", "PROPFIND", "POST", "PUT", "PATCH", "DELETE")
    headers = {"Authorization": f"Bearer {served.store.accounts.add_key('ada', 'tests')}"}

    async def ask() -> set[tuple[str, str, int]]:
        async with client_of(served.app) as client:
            await client.get("/api/me", headers=headers)  # that a key was used is noted once
            before = all_rows(served.store)
            found = {
                (
                    method,
                    route.template,
                    (await client.request(method, route.path, headers=headers)).status_code,
                )
                for route in {one.template: one for one in all_routes(served.app)}.values()
                for method in odd
                if f"{method} {route.template}" not in ACCESS
            }
            assert all_rows(served.store) == before
        return found

    assert {one for one in awaited(ask()) if one[2] not in (404, 405)} == {("HEAD", "/static", 200)}


# What a page of another site has a browser send with the cookie of this one, as far as browsers let it.
FORGED: dict[str, dict[str, str | None]] = {
    "no token": {"X-CSRF-Token": None},
    "the token of another browser": {"X-CSRF-Token": "f" * 64},
    "a page of another site": {"Origin": "https://evil.example"},
    "a page of no site": {"Origin": "null"},
    "a page of another port": {"Origin": "http://siteloom.example:8080"},
    "a page of another site, as browsers of today say": {"Sec-Fetch-Site": "cross-site"},
    "a page of a site of the same owner": {"Sec-Fetch-Site": "same-site"},
    "a form without its type": {"X-CSRF-Token": None, "Content-Type": "text/plain"},
    "a form with files": {"X-CSRF-Token": None, "Content-Type": "multipart/form-data; boundary=x"},
    "a beacon": {"X-CSRF-Token": None, "Content-Type": "application/json"},
}


def test_no_page_of_another_site_can_have_anything_done(served: Served) -> None:
    store = served.store
    session = Visitor("an admin", "admin", store.accounts.open_session("ada"))

    async def ask() -> list[tuple[str, str, int]]:
        done = []
        async with client_of(served.app) as client:
            signed_in = await with_token(client, session)
            token, part = signed_in.token, 'Content-Disposition: form-data; name="csrf"'
            forms = {
                "text/plain": f"csrf={token}&x=1".encode(),
                "multipart/form-data; boundary=x": f"--x\r\n{part}\r\n\r\n{token}\r\n--x--\r\n".encode(),
                "application/json": f'{{"csrf": "{token}"}}'.encode(),
            }
            before = all_rows(store)
            for route in all_routes(served.app):
                if route.method in SAFE:
                    continue
                for told, changed in FORGED.items():
                    client.cookies.clear()
                    headers = {
                        name: text
                        for name, text in (signed_in.headers() | changed).items()
                        if text is not None
                    }
                    body = route.access.body()
                    if content := forms.get(changed.get("Content-Type") or ""):
                        body = {"content": content}
                    answer = await client.request(route.method, route.url, headers=headers, **body)
                    if answer.status_code != 403:
                        done.append((f"{route.method} {route.path}", told, answer.status_code))
                for header in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
                    client.cookies.clear()
                    headers = signed_in.headers() | {header: route.method}
                    await client.get(f"{route.path}?_method={route.method}", headers=headers)
            assert all_rows(store) == before
        return done

    assert awaited(ask()) == []


def test_no_number_in_a_form_is_too_large(served: Served) -> None:
    key = served.store.accounts.add_key("eddy", "tests")
    headers = {"Authorization": f"Bearer {key}"}
    browser = Browser(served.app)
    cluster = served.store.cluster_summaries()[0].name
    for number in LONG_NUMBERS:
        form = {"take": number, f"name-{number}": "x", "table": number}
        answer = browser.ask("POST", f"/clusters/{cluster}/discover", headers=headers, data=form)
        assert answer.status_code in (400, 409), number
        keys = browser.ask("POST", f"/settings/keys/{quote(number)}/revoke", headers=headers)
        assert keys.status_code in (303, 405, 414, 422), number
