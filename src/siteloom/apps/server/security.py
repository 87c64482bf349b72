"""Who asks, what they may do, and what browsers are told so that no one else asks in their name."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from siteloom.apps.server.request_types import is_for_programs, path_of
from siteloom.apps.server.shared_state import services_of
from siteloom.store.queries.accounts import LOCAL, ROLES, SESSION_TIME, Role, new_session_key

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",  # as frame-ancestors, for browsers that do not know that
    # With no-referrer, browsers would not tell either that a form comes from here.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # What browsers would let a page ask its visitor for; those they do not know they complain of.
    "Permissions-Policy": (
        "camera=(), display-capture=(), geolocation=(), hid=(), microphone=(), midi=(), payment=(), "
        "serial=(), usb=()"
    ),
    "Cache-Control": "no-store",
}
"""What every answer says unless it says otherwise itself."""

_COOKIE = "siteloom"
# So called, a cookie is taken from this very server only, and not from others of the same domain.
_COOKIE_OF_HTTPS = f"__Host-{_COOKIE}"
# For a year browsers do not ask without encryption any more, as is recommended.
_ONLY_ENCRYPTED = {"Strict-Transport-Security": "max-age=31536000"}

_KEY = re.compile(r"[\w-]{43}", re.ASCII)  # as new_session_key makes them
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# What programs ask that watch over the server.
_WATCHED = frozenset({"/health", "/metrics"})
_SIGN_IN = "/sign-in"
# As JSON writes them; two together may be a whole one.
_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")
_FORM = "application/x-www-form-urlencoded"
# How the headers begin by which proxies tell of those who ask them.
_PASSED_ON = ("forwarded", "via", "x-forwarded-", "x-real-ip")
# Forms and what the scripts of pages send are a thousandth of this; it is read whole before anyone is asked.
_LARGEST_BODY = 2**20
# Files are written to the disk as they come, once it is known who sends them.
_UPLOADS = "/api/uploads/"
_LONGEST_NUMBER = 20  # digits
# Names of sites, templates and files are a fraction of this, and Python reads no numbers of more digits than
# some 4,000.
_LONGEST_PATH = 4_000


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who sent a request: an account, or whoever sits at this machine as long as there are no accounts.

    `csrf` is what forms and scripts send along, to show that they come from a page of this server.
    """

    name: str
    role: Role
    csrf: str

    @property
    def has_account(self) -> bool:
        """Whether the visitor signed in, and can sign out."""
        return self.name != LOCAL


class _SignInFirst(Exception):
    """A page was asked for that is not for everybody."""


def protect(app: FastAPI, largest_upload: int) -> None:
    """Have an application ask of every request who sent it; before its routes are added."""
    app.router.dependencies.append(Depends(_guard))
    app.add_middleware(_Border, largest_upload=largest_upload)
    app.add_exception_handler(_SignInFirst, _to_sign_in)


def is_for_anyone(path: str) -> bool:
    """Whether no one is asked who they are."""
    return path in _WATCHED


def security_headers(scheme: str) -> dict[str, str]:
    """What an answer says that is asked for over http or https."""
    return SECURITY_HEADERS | (_ONLY_ENCRYPTED if scheme == "https" else {})


def csrf_token(request: Request) -> str:
    """What a form must send along to be taken for one of this server.

    A browser that keeps no key yet is given one.
    """
    key = session_key(request)
    if key is None:
        key = new_session_key()
        give_key(request, key)
    return _token(key)


def session_key(request: Request) -> str | None:
    """The key that the browser keeps, or is about to; it need not be that of anyone who signed in."""
    kept = request.cookies.get(_cookie_name(request.scope["scheme"]))
    given: str | None = getattr(request.state, "new_key", None) or kept
    return given if given is not None and _KEY.fullmatch(given) else None


def give_key(request: Request, key: str) -> None:
    """Have the browser keep another key from the answer to this request on."""
    request.state.new_key = key


def is_still_welcome(request: Request) -> bool:
    """Whether who sent a request would be let in now as then; to be asked while the answer goes on and on."""
    let_in: Visitor | None = request.state.visitor
    try:
        now = _visitor(request, _bearer(request))
    except HTTPException:
        return False
    return now is not None and let_in is not None and now.name == let_in.name


def local_path(text: str) -> str:
    """Where to go after signing in: a path of this server as it was asked for, else its first page."""
    # Browsers take \ for / and leave out what cannot be seen.
    is_local = re.fullmatch(r"/(?![/\\])[^\\\x00-\x20\x7f]*", text) is not None
    return text if is_local else "/"


async def _guard(request: Request) -> None:
    """What is asked before any route does anything."""
    path = path_of(request)
    if is_for_anyone(path):
        return
    bearer = _bearer(request)
    visitor = await run_in_threadpool(_visitor, request, bearer)
    request.state.visitor = visitor
    is_by_key_alone = bearer is not None and _cookie_name(request.scope["scheme"]) not in request.cookies
    if request.method not in _SAFE_METHODS and not is_by_key_alone:
        await _check_origin(request)
    if visitor is None and path != _SIGN_IN:
        _ask_to_sign_in(request)
    if request.method not in _SAFE_METHODS:
        await _check_text(request)


def _visitor(request: Request, bearer: str | None) -> Visitor | None:
    accounts = services_of(request).store.accounts
    key = session_key(request)
    if bearer is not None:
        account = accounts.of_key(bearer)
        if account is None:
            raise HTTPException(401, "This API key is not known, or was revoked.", _BEARER)
        return Visitor(account.name, account.role, "" if key is None else _token(key))
    account = None if key is None else accounts.of_session(key)
    if account is not None:
        return Visitor(account.name, account.role, csrf_token(request))
    if accounts.any_enabled():
        return None
    if not _is_at_this_machine(request):
        raise HTTPException(
            403,
            "There are no accounts yet, so Siteloom answers only at localhost, and through no proxy: "
            "make the first one with siteloom user add NAME.",
        )
    return Visitor(LOCAL, "admin", csrf_token(request))


_BEARER = {"WWW-Authenticate": "Bearer"}


def _bearer(request: Request) -> str | None:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def _is_at_this_machine(request: Request) -> bool:
    """Whether the request came from this machine to an address of its own, and under a name of such a one.

    Else a page from elsewhere whose name leads here for once could read all that there is. What a proxy on
    this machine passes on may be from anywhere.
    """
    try:
        named = urlsplit(f"//{request.headers.get('host', '')}").hostname
    except ValueError:
        return False
    came_to = (request.scope.get("server") or (named,))[0]  # none of a socket that is a file
    came_from = None if request.client is None else request.client.host
    is_passed_on = any(name.startswith(_PASSED_ON) for name in request.headers)
    return not is_passed_on and all(map(_is_loopback, (named, came_to, came_from)))


def _is_loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


async def _check_origin(request: Request) -> None:
    """Refuse what a page from elsewhere sends with the cookie of this one."""
    if not _is_from_here(request):
        raise HTTPException(403, "This came from a page of another site, so nothing was done.")
    given: object = request.headers.get("x-csrf-token")
    if given is None and request.headers.get("content-type", "").startswith(_FORM):
        given = (await request.form()).get("csrf")
    key = session_key(request)
    if (
        key is None
        or not isinstance(given, str)
        or not hmac.compare_digest(given.encode(errors="replace"), _token(key).encode())
    ):
        raise HTTPException(
            403, "The page is outdated, or the browser keeps no cookies: reload it and try again."
        )


async def _check_text(request: Request) -> None:
    """Refuse JSON with halves of characters: once kept, they could never be written out again."""
    is_form = request.headers.get("content-type", "").startswith((_FORM, "multipart/"))
    if is_form or _is_upload(request.scope, request.headers):
        return
    body = await request.body()
    if not _HALF_CHARACTER.search(body):
        return
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise HTTPException(422, "This cannot be understood: a text has half a character in it.") from None
    except (ValueError, RecursionError):
        return  # whoever wants JSON says that it is none


def _is_from_here(request: Request) -> bool:
    """As browsers tell it: all that are of today, and what older ones say."""
    relation = request.headers.get("sec-fetch-site")
    if relation is not None:
        return relation in ("same-origin", "none")
    origin = request.headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()
    except ValueError:
        return False


def _token(key: str) -> str:
    return hmac.digest(key.encode(), b"csrf", "sha256").hex()


def _ask_to_sign_in(request: Request) -> None:
    if is_for_programs(path_of(request)):
        raise HTTPException(401, "Sign in, or send an API key as Authorization: Bearer KEY.", _BEARER)
    raise _SignInFirst


def _to_sign_in(request: Request, _: Exception) -> Response:
    wanted = "/"
    if request.method == "GET":
        path = request.scope.get("raw_path") or quote(path_of(request)).encode()
        wanted = path.decode("latin-1") + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(f"{_SIGN_IN}?next={quote(wanted, safe='/')}", 303)


def _with_role(role: Role) -> Callable[[Request], Coroutine[Any, Any, Visitor]]:
    async def visitor_with_role(request: Request) -> Visitor:
        visitor: Visitor | None = request.state.visitor
        if visitor is None:
            raise _SignInFirst
        check_role(visitor, role)
        return visitor

    return visitor_with_role


def has_role(visitor: Visitor, role: Role) -> bool:
    """Whether a visitor has a role, or one that may do more."""
    return ROLES.index(visitor.role) >= ROLES.index(role)


def check_role(visitor: Visitor, role: Role) -> None:
    """Refuse what a visitor asks for who has not at least a role."""
    if not has_role(visitor, role):
        article = "a" if visitor.role == "viewer" else "an"
        raise HTTPException(
            403, f"Only {_WHO[role]} may do this, and {visitor.name} is {article} {visitor.role}."
        )


_WHO = {"viewer": "those who signed in", "editor": "editors and admins", "admin": "admins"}

Viewer = Annotated[Visitor, Depends(_with_role("viewer"))]
Editor = Annotated[Visitor, Depends(_with_role("editor"))]
Admin = Annotated[Visitor, Depends(_with_role("admin"))]


class _Border:
    """Lets no endless request in, and puts on every answer what browsers must be told.

    Answers pass as they come, part by part.
    """

    def __init__(self, app: ASGIApp, largest_upload: int) -> None:
        self._app = app
        self._largest_upload = largest_upload

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in security_headers(scope["scheme"]).items():
                    headers.setdefault(name, value)
                if "new_key" in state:
                    headers.append("Set-Cookie", _cookie(state["new_key"], scope["scheme"]))
            await send(message)

        headers = Headers(scope=scope)
        most = self._largest_upload if _is_upload(scope, headers) else _LARGEST_BODY
        refusal = _refusal_of_path(scope["path"]) or _refusal_of_size(headers, most)
        await (refusal or self._app)(scope, receive, send_with_headers)


def _is_upload(scope: Scope, headers: Headers) -> bool:
    """Whether a file is sent; forms are read whole to see whose they are, wherever they are sent to."""
    is_form = headers.get("content-type", "").startswith(_FORM)
    return scope["method"] == "PUT" and scope["path"].startswith(_UPLOADS) and not is_form


def _refusal_of_path(path: str) -> Response | None:
    if len(path) <= _LONGEST_PATH:
        return None
    return JSONResponse({"detail": f"A path has at most {_LONGEST_PATH:,} characters."}, 414)


def _refusal_of_size(headers: Headers, most: int) -> Response | None:
    if "transfer-encoding" in headers:
        return JSONResponse({"detail": "Say with Content-Length how much is sent."}, 411)
    length = headers.get("content-length", "0")
    # Longer numbers than this are too large for sure, and too long to be read as numbers.
    is_number = length.isdecimal() and len(length) <= _LONGEST_NUMBER
    if not is_number or int(length) > most:
        return JSONResponse({"detail": f"At most {most:,} bytes may be sent at once."}, 413)
    return None


def _cookie_name(scheme: str) -> str:
    return _COOKIE_OF_HTTPS if scheme == "https" else _COOKIE


def _cookie(key: str, scheme: str) -> str:
    seconds = int(SESSION_TIME.total_seconds())
    only_encrypted = "; Secure" if scheme == "https" else ""
    return f"{_cookie_name(scheme)}={key}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{only_encrypted}"
