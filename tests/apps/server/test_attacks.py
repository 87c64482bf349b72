"""What someone tries who means harm: with no account, or with one that may only look."""

from __future__ import annotations

import re
import socket
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from starlette.datastructures import URL
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from siteloom.apps.server.event_stream import Changes
from siteloom.apps.server.security import SECURITY_HEADERS, security_headers
from siteloom.core.errors import AccountError, SiteloomError
from siteloom.store.queries.accounts import FAILURES_OF_AN_ADDRESS, Passwords
from siteloom.store.store import Store
from tests.apps.server.access import CHEAP, LONG_NUMBERS, raw_answer
from tests.apps.server.browsing import Browser
from tests.apps.server.conftest import People
from tests.apps.server.serving import serving
from tests.coroutines import awaited
from tests.patience import SECONDS

SECRET = "what no one may read"
LEADING_OUT = (
    "../secret.html",
    "..\\secret.html",
    "../../../../../../../../etc/passwd",
    "/etc/passwd",
    "a/../../secret.html",
    "%2e%2e/secret.html",
    "..%2fsecret.html",
    "..%00/secret.html",
    "\u2025/secret.html",
    "\uff0e\uff0e\uff0fsecret.html",
    "secret.html\x00.css",
    "file:///etc/passwd",
    "a" * 300 + "/../secret.html",
    "",
    "..",
)
# Everything that takes a name in its path or query.
WITH_NAMES = (
    ("GET", "/static/{}"),
    ("PUT", "/api/uploads/{}"),
    ("PUT", "/api/uploads/page.html?upload={}"),
    ("GET", "/sites/{}"),
    ("GET", "/api/sites/{}"),
    ("GET", "/clusters/{}"),
    ("GET", "/api/clusters/{}/workbench"),
    ("GET", "/wrappers/{}"),
    ("GET", "/wrappers/{}/download.json"),
    ("GET", "/seeds/uploads/{}"),
    ("GET", "/api/seeds/uploads/{}"),
    ("GET", "/api/seeds/sites/{}"),
    ("GET", "/api/review/{}"),
    ("GET", "/records?site={}"),
    ("GET", "/records/download.csv?site={}"),
    ("GET", "/records/download.csv?wrapper={}"),
    ("GET", "/pages/1/resource?url={}"),
    ("GET", "/pages/at?url={}"),
)


@pytest.fixture
def ana(people: People) -> dict[str, str]:
    """The headers of a program of an admin."""
    return {"Authorization": f"Bearer {people.store.accounts.add_key('ana', 'tests')}"}


def test_no_name_leads_to_a_file_of_the_machine(people: People, ana: dict[str, str]) -> None:
    folder = people.store.folder
    for place in (folder / "secret.html", folder.parent / "secret.html", folder / "uploads" / "secret.html"):
        place.parent.mkdir(exist_ok=True)
        place.write_text(SECRET, encoding="utf-8")
    before = _files(folder.parent)

    async def ask() -> None:
        for method, template in WITH_NAMES:
            for name in LEADING_OUT:
                path, _, query = template.partition("?")
                body = b"<p>x" if method == "PUT" else b""
                asked = path.format(name), query.format(quote(name)), ana, body
                answer = await raw_answer(people.app, method, *asked)
                assert answer.status in (200, 201, 303, 400, 404, 405, 422), (template, name)
                assert SECRET.encode() not in answer.body, (template, name)
                assert b"root:" not in answer.body, (template, name)
                # Of a site that is not there, there are no records; and no name is a list of all.
                is_empty = template.endswith("?site={}") or (name == "" and path.startswith("/records"))
                assert answer.status != HTTPStatus.OK or is_empty, (template, name)

    awaited(ask())
    # Odd names are names all the same, in the folder of their upload.
    sent = re.compile(r"/uploads/[0-9a-f]{32}(?:/files(?:/.*)?)?$")
    assert {file for file in _files(folder.parent) if not sent.search(file)} == before


def _files(folder: Path) -> set[str]:
    return {str(file) for file in folder.rglob("*") if not file.name.startswith("siteloom.db")}


def test_no_job_reads_a_file_that_was_not_sent(people: People, ana: dict[str, str]) -> None:
    browser, services = Browser(people.app), people.app.state.services
    for kind in ("ingest", "seeds"):
        for name in LEADING_OUT:
            order = {"kind": kind, "arguments": {"upload": name}}
            assert browser.ask("POST", "/api/jobs", headers=ana, json=order).status_code == 202
            (job,) = people.store.jobs.latest(1)
            with pytest.raises(SiteloomError):
                services.jobs.kinds[kind].run(people.store, services.settings, job.arguments, print)


def test_no_name_makes_a_header(people: People, ana: dict[str, str]) -> None:
    browser = Browser(people.app)
    for text in ("a\r\nSet-Cookie: x=1", "a\nX: y", 'a"; filename="evil.exe', "a;b=c", "\u2028", "ü" * 500):
        answer = browser.ask("GET", f"/records/download.csv?site={quote(text)}", headers=ana)
        assert answer.status_code == 200
        assert not {"set-cookie", "x"} & set(answer.headers)
        assert re.fullmatch(r'attachment; filename="[\w.-]+\.csv"', answer.headers["content-disposition"])
        signing_in = browser.ask("GET", f"/sign-in?next={quote('/' + text)}", headers=ana)
        assert re.fullmatch(r"/[\w%=;.:?-]*", signing_in.headers["location"])


def test_every_answer_has_all_headers_whatever_went_wrong(people: People, ana: dict[str, str]) -> None:
    @people.app.get("/api/broken")
    def broken() -> None:
        raise ZeroDivisionError

    @people.app.get("/broken")
    def broken_page() -> None:
        raise ZeroDivisionError

    asked = {
        ("GET", "/"): 200,
        ("GET", "/openapi.json"): 200,
        ("GET", "/static/siteloom.css"): 200,
        ("GET", "/static/nothing.css"): 404,
        ("GET", "/static/../app.py"): 404,
        ("GET", "/nothing"): 404,
        ("GET", "/api/nothing"): 404,
        ("POST", "/"): 405,
        ("GET", "/records/"): 307,
        ("GET", "/api/jobs?limit=x"): 422,
        ("GET", f"/{'x' * 5_000}"): 414,
        ("GET", "/api/broken"): 500,
        ("GET", "/broken"): 500,
        ("PUT", "/api/uploads/a.exe"): 400,
    }
    for origin in ("http://siteloom.example", "https://siteloom.example"):
        browser = Browser(people.app, origin)
        expected = security_headers(urlsplit(origin).scheme)
        answers = {one: browser.ask(*one, headers=ana) for one in asked}
        answers["POST", "/too/large"] = browser.ask("POST", "/", headers=ana, content=b"x" * (2**20 + 1))
        answers["POST", "/chunked"] = browser.ask("POST", "/", headers=ana | {"Transfer-Encoding": "chunked"})
        answers["GET", "/to/sign-in"] = browser.get("/")
        answers["GET", "/not/modified"] = browser.get(
            "/static/siteloom.css", if_none_match=answers["GET", "/static/siteloom.css"].headers["etag"]
        )
        assert {one: answers[one].status_code for one in asked} == asked
        codes = [answers[one].status_code for one in answers if one not in asked]
        assert codes == [413, 411, 303, 304]
        for one, answer in answers.items():
            for name, value in expected.items():
                if name != "Cache-Control" or answer.headers["cache-control"] != "no-cache":
                    assert answer.headers.get_list(name) == [value], (one, name)
            is_file = one[1] in ("/static/siteloom.css", "/not/modified")
            assert is_file == (answer.headers["cache-control"] == "no-cache")
            assert ("strict-transport-security" in answer.headers) == origin.startswith("https")
            assert "server" not in answer.headers


def test_the_policy_lets_nothing_run_but_files_of_the_server() -> None:
    parts = dict(
        part.strip().split(" ", 1) for part in SECURITY_HEADERS["Content-Security-Policy"].split(";")
    )
    assert parts.pop("default-src") == "'none'"
    assert set(parts.values()) <= {"'self'", "'none'"}


def test_a_stream_of_events_has_the_headers_too(people: People, ana: dict[str, str]) -> None:
    job = people.store.jobs.add("index", {}, "ana")
    headers = awaited(raw_answer(people.app, "GET", f"/api/jobs/{job.id}/events", headers=ana)).headers
    assert headers["content-type"].startswith("text/event-stream")
    assert headers.items() >= {
        (name.lower(), value) for name, value in SECURITY_HEADERS.items() if name != "Cache-Control"
    }
    assert headers["cache-control"] == "no-store"


def test_no_one_listens_to_endless_streams(people: People) -> None:
    people.add("vera", "viewer")
    keys = {name: people.store.accounts.add_key(name, "tests") for name in ("ana", "vera")}
    job = people.store.jobs.add("index", {}, "ana")
    changes: Changes = people.app.state.services.jobs.changes

    async def status(name: str) -> int:
        headers = {"Authorization": f"Bearer {keys[name]}"}
        return (await raw_answer(people.app, "GET", f"/api/jobs/{job.id}/events", headers=headers)).status

    async def listen() -> list[int]:
        with ExitStack() as tabs:
            for _ in range(50):
                tabs.enter_context(changes.listening("vera"))
            found = [await status("vera"), await status("ana")]
        return [*found, await status("vera")]

    assert awaited(listen()) == [429, 200, 200]


def test_no_address_gets_more_tries_by_trying_other_names(people: People) -> None:
    guesser = Browser(people.app, address="192.0.2.9")
    codes = [guesser.sign_in(f"name{number}", "wrong password").status_code for number in range(31)]
    assert codes == [401] * 30 + [429]
    assert guesser.sign_in("ana", people.password("ana")).status_code == 429
    elsewhere = Browser(people.app, address="192.0.2.10")
    assert elsewhere.sign_in("ana", people.password("ana")).status_code == 303


@pytest.mark.parametrize(("trusted", "tries"), [("127.0.0.1", 30), ("192.0.2.9", 31)])
def test_only_a_trusted_proxy_is_believed_who_asks(people: People, trusted: str, tries: int) -> None:
    """Whoever is no proxy cannot say to be another each time; and a proxy's last word counts."""
    behind = ProxyHeadersMiddleware(people.app, trusted_hosts=trusted)  # type: ignore[arg-type]
    guesser = Browser(behind, address="192.0.2.9")  # type: ignore[arg-type]
    guesser.look("/sign-in")
    codes = [
        guesser.post(
            "/sign-in",
            {"name": f"n{number}", "password": "wrong password"},
            x_forwarded_for=f"203.0.113.{number}",
        ).status_code
        for number in range(31)
    ]
    assert codes.count(401) == tries


def test_an_unknown_name_takes_as_long_as_a_wrong_password() -> None:
    passwords = Passwords(rounds=2, kibibytes=16_384, lanes=1)
    kept = passwords.hashed("the right password")

    def seconds(of: str | None) -> float:
        begin = time.thread_time()
        assert not passwords.is_right("a wrong password", of)
        return time.thread_time() - begin

    seconds(None)
    known, unknown = ([seconds(of) for _ in range(9)] for of in (kept, None))
    assert 0.4 < min(unknown) / min(known) < 2.5
    assert statistics.median(unknown) > 0.001


def test_guessing_keys_locks_no_one_out_and_finds_none(people: People, ana: dict[str, str]) -> None:
    browser = Browser(people.app)
    for number in range(FAILURES_OF_AN_ADDRESS + 1):
        headers = {"Authorization": f"Bearer siteloom_{number:043d}"}
        assert browser.ask("GET", "/api/me", headers=headers).status_code == 401
    assert browser.ask("GET", "/api/me", headers=ana).status_code == 200


def test_two_admins_cannot_take_each_other_the_role(empty_store: Store) -> None:
    accounts = empty_store.accounts
    for _ in range(5):
        for name in ("one", "two"):
            if accounts.find(name) is None:
                accounts.add(name, "admin", CHEAP.hashed("a long password"))
        accounts.set_password("one", CHEAP.hashed("a long password"))

        def less(name: str) -> bool:
            try:
                accounts.set_role(name, "viewer")
            except AccountError:
                return False
            return True

        with ThreadPoolExecutor(2) as both:
            done = list(both.map(less, ("one", "two")))
        assert sorted(done) == [False, True]
        for name in ("one", "two"):
            accounts.set_role(name, "admin")


def test_no_one_gives_themselves_more_than_they_are_asked_for(people: People) -> None:
    vera = people.browser("vera", "viewer")
    more = {"role": "admin", "is_enabled": True, "user_id": 1, "owner": "ana", "name": "ana", "author": "ana"}
    vera.send("POST", "/api/keys", {"label": "export", **more})
    assert [key.label for key in people.store.accounts.keys("vera")] == ["export"]
    assert people.store.accounts.keys("ana") == []
    vera.send(
        "PUT", "/api/me/password", {"current": people.password("vera"), "new": "another password", **more}
    )
    account = people.store.accounts.find("vera")
    assert account is not None
    assert account.role == "viewer"
    eddy = people.browser("eddy", "editor")
    job = eddy.send("POST", "/api/jobs", {"kind": "index", "author": "ana", "state": "done", "id": 99}).json()
    assert (job["author"], job["state"]) == ("eddy", "waiting")


WITH_NUMBERS = (
    "/pages/{}/tree",
    "/api/pages/{}",
    "/jobs/{}",
    "/api/jobs/{}",
    "/entities/{}",
    "/api/entities/{}",
    "/runs/{}",
    "/api/runs/{}",
    "/records?page={}",
    "/api/records?offset={}",
    "/api/records?run={}",
    "/api/alarms?offset={}",
    "/monitoring/alarms?offset={}",
    "/entities?page={}",
    "/search?words=a&page={}",
)


def test_no_number_is_too_large_to_be_answered(people: People, ana: dict[str, str]) -> None:
    browser = Browser(people.app)
    for path in WITH_NUMBERS:
        for number in LONG_NUMBERS:
            answer = browser.ask("GET", path.format(quote(number)), headers=ana)
            assert answer.status_code in (200, 404, 405, 414, 422), (path, number)


def test_redirections_stay_here_whatever_the_server_is_called(people: People) -> None:
    browser = Browser(people.app)
    for host in ("evil.example", "evil.example:80@localhost", "localhost/../evil", "a b"):
        for path in (
            "/",
            "/settings",
            "/records/",
            "//evil.example",
            "/%2f%2fevil.example",
            "/\\evil.example",
        ):
            answer = browser.ask("GET", path, headers={"Host": host})
            location = answer.headers.get("location", "/")
            if location.startswith("/"):
                assert not location.startswith(("//", "/\\"))
            else:  # the same address with or without / at its end, which must not be kept by anyone
                assert urlsplit(location).path == URL(path).path.rstrip("/")
                assert answer.headers["cache-control"] == "no-store"


def test_requests_that_could_be_read_in_two_ways_are_refused(people: People) -> None:
    key = people.store.accounts.add_key("ana", "tests")
    head = f"POST /api/keys HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
    head += "Content-Type: application/json\r\n"
    smuggled = '{"label": "a"}GET /api/keys HTTP/1.1\r\nHost: x\r\n\r\n'
    with serving(people.app) as address:
        for lengths in (
            "Content-Length: 14\r\nContent-Length: 5\r\n",
            "Content-Length: 14, 5\r\n",
            "Content-Length: +14\r\n",
            "Content-Length: 14\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            "Transfer-Encoding: xchunked\r\n",
            "Content-Length : 14\r\n",
            "Content-Length: 0x0e\r\n",
            "X: y\r\n Content-Length: 14\r\n",
        ):
            answer = _answer_to(address, f"{head}{lengths}\r\n{smuggled}".encode())
            assert answer[:12] in (
                b"HTTP/1.1 400",
                b"HTTP/1.1 411",
                b"HTTP/1.1 413",
                b"HTTP/1.1 422",
                b"HTTP/1.1 501",
            ), (
                lengths,
                answer,
            )
        long = f"GET /health HTTP/1.1\r\nHost: x\r\nX: {'y' * 2**20}\r\n\r\n".encode()
        assert _answer_to(address, long)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 431", b"")
    assert len(people.store.accounts.keys("ana")) == 1


def _answer_to(address: str, request: bytes) -> bytes:
    where = urlsplit(address)
    with socket.create_connection((where.hostname, where.port or 80), timeout=SECONDS) as connection:
        connection.sendall(request)
        try:
            return connection.recv(65_536)
        except ConnectionResetError:
            return b""
