"""Who gets in, who does not, and in whose name no one else can ask."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from http.cookies import SimpleCookie
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse, StreamingResponse
from fastapi.routing import iter_route_contexts
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from siteloom.apps.server.security import SECURITY_HEADERS, Admin, Editor, Viewer, local_path
from siteloom.store.queries.accounts import Role
from tests.apps.server.browsing import Browser
from tests.apps.server.conftest import People
from tests.coroutines import awaited
from tests.store.helpers import Clock

routes = APIRouter()


@routes.get("/for/viewers")
@routes.post("/for/viewers")
@routes.get("/api/for/viewers")
@routes.post("/api/for/viewers")
def for_viewers(visitor: Viewer) -> str:
    return visitor.name


@routes.get("/for/editors")
@routes.post("/for/editors")
@routes.get("/api/for/editors")
@routes.post("/api/for/editors")
def for_editors(visitor: Editor) -> str:
    return visitor.name


@routes.get("/for/admins")
@routes.post("/for/admins")
@routes.get("/api/for/admins")
@routes.post("/api/for/admins")
def for_admins(visitor: Admin) -> str:
    return visitor.name


@routes.get("/forgetful")
@routes.post("/forgetful")
@routes.put("/forgetful")
@routes.patch("/forgetful")
@routes.delete("/forgetful")
def forgetful() -> str:
    """A route that asks nothing of anyone."""
    return "done"


@routes.get("/archived")
def archived(_: Viewer) -> HTMLResponse:
    return HTMLResponse("<p>", headers={"Content-Security-Policy": "sandbox", "Cache-Control": "private"})


@pytest.fixture
def app(app: FastAPI) -> FastAPI:
    app.include_router(routes)
    return app


def test_without_accounts_whoever_sits_at_the_machine_may_do_everything(app: FastAPI) -> None:
    for origin in ("http://localhost", "http://localhost:81", "http://127.0.0.1:8000", "http://[::1]:8000"):
        browser = Browser(app, origin)
        me = browser.get("/api/me").json()
        assert (me["name"], me["role"], me["has_account"]) == ("local", "admin", False)
        browser.token = me["csrf"]
        assert browser.send("POST", "/api/for/admins").text == '"local"'


def test_without_accounts_a_name_that_only_leads_to_this_machine_gets_nothing(app: FastAPI) -> None:
    browser = Browser(app)
    for host in ("siteloom.example", "localhost.example", "192.0.2.1:8000", "", "[", "0.0.0.0"):
        answer = browser.ask("GET", "/api/me", headers={"Host": host})
        assert answer.status_code == 403
        assert "siteloom user add NAME" in answer.json()["detail"]
        assert browser.ask("GET", "/sign-in", headers={"Host": host}).status_code == 403
    assert not browser.cookies


def test_without_accounts_nothing_is_told_to_other_machines_whatever_they_call_it(app: FastAPI) -> None:
    browser = Browser(app, "http://192.0.2.1:8000")
    assert browser.ask("GET", "/api/me", headers={"Host": "localhost"}).status_code == 403


@pytest.mark.parametrize(
    "header", ["Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Real-IP"]
)
def test_without_accounts_nothing_is_told_through_a_proxy_on_this_machine(app: FastAPI, header: str) -> None:
    answer = Browser(app).ask("GET", "/api/me", headers={header: "127.0.0.1"})
    assert answer.status_code == 403
    assert "through no proxy: make the first one with siteloom user add NAME" in answer.json()["detail"]


def test_without_accounts_nothing_is_told_to_visitors_from_elsewhere(app: FastAPI) -> None:
    assert Browser(app, address="192.0.2.7").get("/api/me").status_code == 403


def test_what_is_asked_for_is_not_told_by_the_name_of_the_server(people: People) -> None:
    stranger = Browser(people.app)
    for path, expected in (("/api/me", 401), ("/settings", 303)):
        for host in ("localhost/health?", "localhost/sign-in#", "localhost/static/"):
            answer = stranger.ask("GET", path, headers={"Host": host})
            assert answer.status_code == expected


def test_programs_read_what_there_is_to_ask_only_with_a_key(people: People, app: FastAPI) -> None:
    assert Browser(app).get("/openapi.json").status_code == 401
    bearer = f"Bearer {people.store.accounts.add_key('ana', 'export')}"
    described = Browser(app).get("/openapi.json", authorization=bearer).json()
    assert described["info"]["title"] == "Siteloom"
    assert "/pages/{page_id}/tree" in described["paths"]


def test_with_accounts_the_name_of_the_server_does_not_matter(people: People) -> None:
    browser = Browser(people.app, "https://siteloom.example")
    assert browser.sign_in("ana", people.password("ana")).status_code == 303
    assert browser.get("/api/me").json()["name"] == "ana"


def test_the_first_account_ends_the_time_without(app: FastAPI, people: People) -> None:
    browser = Browser(app)
    assert browser.get("/api/me").status_code == 401


def test_pages_send_to_the_form_and_programs_get_a_sentence(people: People) -> None:
    browser = Browser(people.app)
    answer = browser.get("/for/viewers?page=%C3%A9&of=2")
    assert answer.status_code == 303
    asked = urlsplit(answer.headers["location"])
    assert asked.path == "/sign-in"
    assert parse_qs(asked.query) == {"next": ["/for/viewers?page=%C3%A9&of=2"]}
    browser.look("/sign-in")
    assert browser.post("/for/viewers", {}).headers["location"] == "/sign-in?next=/"
    answer = browser.get("/api/for/viewers")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "API key" in answer.json()["detail"]


@pytest.mark.parametrize("role", ["viewer", "editor", "admin"])
def test_each_role_may_do_what_it_may_and_no_more(people: People, role: Role) -> None:
    browser = people.browser("bo", role)
    allowed = {"viewer": 1, "editor": 2, "admin": 3}[role]
    for number, kind in enumerate(("viewers", "editors", "admins")):
        for prefix in ("", "/api"):
            got = browser.get(f"{prefix}/for/{kind}")
            sent = browser.send("POST", f"{prefix}/for/{kind}")
            assert [got.status_code, sent.status_code] == [200 if number < allowed else 403] * 2
            if number >= allowed:
                assert "may do this, and bo is" in got.text


def test_a_route_that_forgets_to_ask_is_guarded_all_the_same(people: People) -> None:
    stranger = Browser(people.app)
    assert stranger.get("/forgetful").status_code == 303
    browser = people.browser("ana", "admin")
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert browser.send(method, "/forgetful").status_code == 200
        browser_token, browser.token = browser.token, "0" * 64
        assert browser.send(method, "/forgetful").status_code == 403
        assert browser.ask(method, "/forgetful").status_code == 403
        assert browser.ask(method, "/forgetful", data={"other": "x"}).status_code == 403
        browser.token = browser_token


def all_routes(app: FastAPI) -> Iterator[tuple[str, str]]:
    for found in iter_route_contexts(app.routes):
        for method in sorted(getattr(found, "methods", None) or ()):
            yield method, getattr(found, "path", "")


def test_no_route_of_the_application_is_open_but_those_that_are_meant_to_be(people: People) -> None:
    stranger = Browser(people.app)
    asked = 0
    for method, path in all_routes(people.app):
        if path.startswith(("/static", "/sign-in", "/health", "/metrics")):
            continue
        answer = stranger.ask(method, re.sub(r"{.*?}", "1", path))
        is_for_programs = path.startswith(("/api/", "/openapi"))
        expected = 403 if method not in ("GET", "HEAD") else 401 if is_for_programs else 303
        assert answer.status_code == expected, (method, path)
        asked += 1
    assert asked > 20


def test_what_changes_something_needs_the_token_of_the_same_browser(people: People) -> None:
    ana, bo = people.browser("ana", "admin"), people.browser("bo", "viewer")
    assert ana.post("/for/viewers", {}).status_code == 200
    for token in ("", "x", bo.token, ana.token + "0", "\N{SNOWMAN}"):
        answer = ana.post("/for/viewers", {"csrf": token})
        assert answer.status_code == 403
        assert "reload it and try again" in answer.text
    assert ana.ask("POST", "/for/viewers", data={}).status_code == 403
    assert ana.ask("POST", f"/for/viewers?csrf={ana.token}").status_code == 403
    assert ana.ask("POST", "/for/viewers", json={"csrf": ana.token}).status_code == 403
    files = {"csrf": (None, ana.token), "other": ("a.txt", b"x")}
    assert ana.ask("POST", "/for/viewers", files=files).status_code == 403


def test_without_accounts_other_pages_cannot_ask_in_the_name_of_whoever_sits_here(app: FastAPI) -> None:
    browser = Browser(app)
    assert browser.ask("POST", "/for/admins", data={}).status_code == 403
    browser.look("/settings")
    assert browser.ask("POST", "/for/admins", data={}).status_code == 403
    assert browser.post("/for/admins", {}).status_code == 200


FROM_WHERE = (
    ({"Sec-Fetch-Site": "same-origin"}, 200),
    ({"Sec-Fetch-Site": "none"}, 200),
    ({"Sec-Fetch-Site": "same-site"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost:8000"}, 403),
    ({"Sec-Fetch-Site": "same-origin", "Origin": "https://before.the.proxy"}, 200),
    ({"Origin": "http://localhost:8000"}, 200),
    ({"Origin": "http://localhost:3000"}, 403),
    ({"Origin": "http://localhost.example:8000"}, 403),
    ({"Origin": "http://["}, 403),
    ({"Origin": "null"}, 403),
)


def test_browsers_that_say_where_it_comes_from_are_believed(people: People) -> None:
    browser = people.browser("ana", "admin")
    token = {"X-CSRF-Token": browser.token}
    for headers, status in FROM_WHERE:
        assert browser.ask("POST", "/for/viewers", headers={**token, **headers}).status_code == status
    assert browser.get("/for/viewers", sec_fetch_site="cross-site").status_code == 200


def test_a_key_needs_no_token_and_is_worth_nothing_once_revoked(people: People) -> None:
    accounts = people.store.accounts
    key = accounts.add_key("ana", "export")
    program = Browser(people.app, "https://siteloom.example")
    bearer = {"Authorization": f"Bearer {key}"}
    assert program.ask("POST", "/api/for/admins", headers=bearer).text == '"ana"'
    assert program.ask("GET", "/for/admins", headers={"Authorization": f"bearer  {key}"}).status_code == 200
    assert not program.cookies
    accounts.revoke_key("ana", accounts.keys("ana")[0].id)
    for path in ("/api/for/admins", "/for/admins", "/sign-in"):
        answer = program.ask("GET", path, headers=bearer)
        assert answer.status_code == 401
        assert "not known" in answer.text
    assert program.ask("GET", "/health", headers=bearer).status_code == 200


def test_a_key_beside_a_cookie_needs_the_token(people: People) -> None:
    browser = people.browser("bo", "viewer")
    bearer = {"Authorization": f"Bearer {people.store.accounts.add_key('ana', 'export')}"}
    assert browser.ask("POST", "/api/for/admins", headers=bearer).status_code == 403
    with_token = {**bearer, "X-CSRF-Token": browser.token}
    assert browser.ask("POST", "/api/for/admins", headers=with_token).text == '"ana"'


def test_other_ways_to_name_oneself_are_none(people: People) -> None:
    for named in ("Basic YW5hOnB3", "Bearer", "Bearer ", "x"):
        answer = Browser(people.app).get("/api/me", authorization=named)
        assert answer.status_code == 401


@pytest.mark.parametrize("origin", ["http://localhost:8000", "https://a.example"])
def test_the_cookie_is_for_this_server_alone(people: People, origin: str) -> None:
    browser = Browser(people.app, origin)
    browser.look("/sign-in")
    form = {"name": "ana", "password": people.password("ana")}
    for answer in (browser.get("/sign-in"), browser.post("/sign-in", form)):
        if "set-cookie" in answer.headers:
            (cookie,) = SimpleCookie(answer.headers["set-cookie"]).values()
            assert cookie["httponly"] is True
            assert cookie["samesite"] == "Lax"
            assert cookie["path"] == "/"
            assert cookie["domain"] == ""
            assert cookie["secure"] == (origin.startswith("https") or "")
            assert cookie["max-age"] == str(14 * 24 * 3600)
    assert answer.status_code == 303
    assert "set-cookie" in answer.headers


def test_the_key_of_a_browser_is_another_after_signing_in_and_out(people: People) -> None:
    browser = Browser(people.app)
    browser.look("/sign-in")
    before = browser.cookies["siteloom"]
    browser.sign_in("ana", people.password("ana"))
    signed_in = browser.cookies["siteloom"]
    browser.get("/settings")
    assert browser.cookies["siteloom"] == signed_in
    browser.post("/sign-out", {})
    assert len({before, signed_in, browser.cookies["siteloom"]}) == 3


def test_signing_in_again_ends_the_session_of_that_browser_and_of_no_other(people: People) -> None:
    """Also where someone else signs in: whoever knows the old cookie must not act with it any more."""
    browser, elsewhere = (people.browser("ana", "admin") for _ in range(2))
    people.add("bo", "editor")
    for name in ("ana", "bo"):
        old = Browser(people.app)
        old.cookies = httpx.Cookies(browser.cookies)
        assert old.get("/api/me").status_code == 200
        token, _ = browser.token, browser.get("/sign-in")
        signed_in = browser.post("/sign-in", {"csrf": token, "name": name, "password": people.password(name)})
        assert signed_in.status_code == 303
        assert browser.get("/api/me").json()["name"] == name
        browser.look("/settings")
        assert old.get("/api/me").status_code == 401
        assert elsewhere.get("/api/me").status_code == 200


@pytest.mark.parametrize("path", ["/settings/accounts/bo/role", "/api/accounts/bo"])
def test_another_role_ends_all_sessions_of_an_account(people: People, path: str) -> None:
    ana, bo = people.browser("ana", "admin"), people.browser("bo", "editor")

    def change(role: str, path: str) -> int:
        if path.startswith("/api"):
            return ana.send("PATCH", path, {"role": role}).status_code
        return ana.post(path, {"role": role}).status_code

    assert change("viewer", path) in (200, 303)
    assert bo.get("/api/me").status_code == 401
    assert ana.get("/api/me").status_code == 200
    people.add("eve", "admin")
    elsewhere = people.browser("ana", "admin")
    assert change("viewer", path.replace("bo", "ana")) in (200, 303)
    assert ana.get("/api/me").json()["role"] == "viewer"
    assert elsewhere.get("/api/me").status_code == 401


def test_a_key_that_was_foisted_on_a_browser_is_not_that_of_an_account(people: People) -> None:
    foisted = "x" * 43
    browser = Browser(people.app)
    browser.cookies.set("siteloom", foisted, domain="localhost.local")
    browser.sign_in("ana", people.password("ana"))
    thief = Browser(people.app)
    thief.cookies.set("siteloom", foisted, domain="localhost.local")
    assert thief.get("/api/me").status_code == 401


def test_a_cookie_that_is_none_of_ours_is_replaced(app: FastAPI) -> None:
    browser = Browser(app)
    for value in ("", "x", "x" * 44, "\"'", "a=b"):
        answer = browser.ask("GET", "/api/me", headers={"Cookie": f"siteloom={value}"})
        assert answer.status_code == 200
        assert "set-cookie" in answer.headers


def test_an_account_that_is_disabled_is_out_with_the_next_request(people: People) -> None:
    browser = people.browser("bo", "editor")
    assert browser.get("/api/me").status_code == 200
    people.store.accounts.disable("bo")
    assert browser.get("/api/me").status_code == 401
    assert browser.post("/for/editors", {}).status_code == 303


def test_a_session_ends_after_two_weeks(people: People, clock: Clock) -> None:
    browser = people.browser("ana", "admin")
    clock.turn(days=13)
    assert browser.get("/api/me").status_code == 200
    clock.turn(days=1)
    assert browser.get("/api/me").status_code == 401


def test_every_answer_tells_browsers_what_they_may_do(people: People) -> None:
    browser = people.browser("ana", "admin")
    for path in ("/settings", "/sign-in", "/api/me", "/nothing", "/health", "/static/siteloom.css"):
        answer = browser.get(path)
        for name, value in SECURITY_HEADERS.items():
            if not (name == "Cache-Control" and path.startswith("/static")):
                assert answer.headers[name] == value, (path, name)
    assert browser.get("/static/siteloom.css").headers["Cache-Control"] != "no-store"


def test_what_an_answer_says_itself_stays(people: People) -> None:
    answer = people.browser("ana", "admin").get("/archived")
    assert answer.headers.get_list("Content-Security-Policy") == ["sandbox"]
    assert answer.headers.get_list("Cache-Control") == ["private"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_strangers_see_whether_the_server_is_well_and_how_it_looks(people: People) -> None:
    stranger = Browser(people.app, "https://siteloom.example")
    for path in ("/health", "/metrics", "/static/siteloom.css", "/sign-in"):
        assert stranger.get(path).status_code == 200


def test_no_request_is_endless(people: People) -> None:
    stranger = Browser(people.app)
    assert stranger.ask("POST", "/sign-in", content=b"x" * 2**20).status_code == 403
    for content in (b"x" * (2**20 + 1), b"{" * (2**21)):
        assert stranger.ask("POST", "/sign-in", content=content).status_code == 413
    assert stranger.ask("POST", "/sign-in", headers={"Content-Length": "-1"}).status_code == 413
    assert stranger.ask("POST", "/sign-in", headers={"Transfer-Encoding": "chunked"}).status_code == 411


def test_an_answer_is_passed_on_part_by_part(people: People) -> None:
    @people.app.get("/api/stream")
    def stream(_: Viewer) -> StreamingResponse:
        return StreamingResponse(iter(["one", "two"]))

    key = people.store.accounts.add_key("ana", "stream")
    parts: list[bytes] = []

    async def receive() -> Message:
        await asyncio.sleep(60)
        raise AssertionError

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            parts.append(message["body"])

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "method": "GET",
        "scheme": "http",
        "path": "/api/stream",
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {key}".encode())],
        "server": ("localhost", 80),
    }
    awaited(people.app(scope, receive, send))
    assert parts[:2] == [b"one", b"two"]


@given(
    st.text(alphabet="/\\\t\n .:@?#%ahtpsx", max_size=12).map(lambda text: f"/{text}")
    | st.text(alphabet="/\\\t\n .:@?#%ahtpsx", max_size=12)
)
def test_after_signing_in_one_is_still_here(text: str) -> None:
    path = local_path(text)
    # As browsers read an address: what cannot be seen is left out, and \ is a /.
    read = "".join(character for character in path if character not in "\t\r\n").strip().replace("\\", "/")
    assert urlsplit(urljoin("http://here.example/sign-in", read)).netloc == "here.example"
    assert path == text or path == "/"


@pytest.mark.parametrize("path", ["/", "/a/b?c=d%20e&f=/#g", "/clusters/a.example%2F1", "/é"])
def test_after_signing_in_one_is_where_one_wanted_to_be(path: str) -> None:
    assert local_path(path) == path


def test_the_application_is_described_for_programs(people: People) -> None:
    described = people.browser("ana", "admin").get("/openapi.json").json()
    for path in ("/api/me", "/api/me/password", "/api/keys", "/api/accounts", "/api/accounts/{name}"):
        assert path in described["paths"]
    assert "/sign-in" not in described["paths"]
