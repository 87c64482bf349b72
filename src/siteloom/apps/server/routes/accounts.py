"""Pages and endpoints: sign-in, settings, keys and accounts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel

from siteloom.apps.server.html_rendering import render
from siteloom.apps.server.request_types import Id, too_often
from siteloom.apps.server.security import (
    Admin,
    Viewer,
    Visitor,
    csrf_token,
    give_key,
    local_path,
    session_key,
)
from siteloom.apps.server.shared_state import services_of
from siteloom.core.errors import AccountError, TooManyFailures
from siteloom.store.queries.accounts import ROLES, Account, ApiKey, Role, new_session_key, role_named

if TYPE_CHECKING:
    from fastapi import Request

    from siteloom.store.queries.accounts import Account, Role


# Of IPv6 addresses whoever has one has all that begin like it up to here.
_OWN_PREFIX = 64


def named_account(request: Request, name: str) -> Account:
    """The account of a name that was asked for."""
    account = services_of(request).store.accounts.find(name)
    if account is None:
        raise HTTPException(404, f"There is no account {name}.")
    return account


def is_right_password(request: Request, name: str, password: str) -> bool:
    """Whether a password is that of an account; TooManyFailures if it was tried too often of late."""
    services = services_of(request)
    accounts, passwords = services.store.accounts, services.passwords
    accounts.count_attempt(name, _counted_address(request))
    kept = accounts.password_of(name)
    if not passwords.is_right(password, kept) or kept is None:
        return False
    accounts.forget_failures(name)
    if passwords.is_outdated(kept):
        accounts.refresh_password(name, kept, passwords.hashed(password))
    return True


def sign_in(request: Request, name: str) -> None:
    """Sign the browser in under a new key; that of before may be known to others, and its session ends."""
    accounts = services_of(request).store.accounts
    give_key(request, accounts.open_session(name, instead_of=session_key(request)))


def replace_password(request: Request, visitor: Visitor, name: str, kept: str) -> None:
    """Keep another password of an account; all its browsers are signed out, but not the one that asked."""
    services_of(request).store.accounts.set_password(name, kept)
    _stay_signed_in(request, visitor, name)


def replace_role(request: Request, visitor: Visitor, name: str, role: Role) -> None:
    """Give an account another role; all its browsers are signed out, but not the one that asked."""
    services_of(request).store.accounts.set_role(name, role)
    _stay_signed_in(request, visitor, name)


def _stay_signed_in(request: Request, visitor: Visitor, name: str) -> None:
    if name == visitor.name and session_key(request) is not None:
        sign_in(request, name)


def _counted_address(request: Request) -> str:
    host = "" if request.client is None else request.client.host
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        return str(ip_network((address, _OWN_PREFIX), strict=False))
    return host


router = APIRouter(include_in_schema=False)

Text = Annotated[str, Form()]

_ACCOUNTS = "/settings/accounts"
_WRONG = "This is not the password of an account of this name."
_WRONG_NOW = "This is not your password."
# What was done, told on the page that follows; its address only says which of these it was.
_DONE = {
    "password": "Your password is changed. Other browsers that used the old one are signed out.",
    "revoked": "The key is revoked: it opens nothing any more.",
}
_DONE_TO_ACCOUNTS = {
    "added": "The account {} is there.",
    "role": "{} has another role, and is signed out everywhere.",
    "reset": "{} has another password, and is signed out everywhere.",
    "disabled": "{} cannot sign in any more; the name stays with what was done under it. "
    "A new password would let {} in again.",
}


@router.get("/sign-in")
def sign_in_page(request: Request, next: str = "/") -> Response:  # noqa: A002 - the name in the address
    """The form to sign in."""
    if request.state.visitor is not None:
        return RedirectResponse(local_path(next), 303)
    return _sign_in_form(request, next)


@router.post("/sign-in")
def sign_in_with_password(
    request: Request,
    name: Text = "",
    password: Text = "",
    next: Text = "/",  # noqa: A002 - the name in the form
) -> Response:
    """Sign in."""
    try:
        is_right = is_right_password(request, name, password)
    except TooManyFailures as error:
        answer = _sign_in_form(request, next, name, error, 429)
        answer.headers["Retry-After"] = str(error.seconds)
        return answer
    if not is_right:
        return _sign_in_form(request, next, name, AccountError(_WRONG, "password"), 401)
    sign_in(request, name)
    return RedirectResponse(local_path(next), 303)


def _sign_in_form(
    request: Request, then: str, name: str = "", error: AccountError | None = None, status: int = 200
) -> HTMLResponse:
    return render(
        request,
        "sign_in.html",
        None,
        status=status,
        csrf=csrf_token(request),
        next=local_path(then),
        name=name,
        problems=_problems(error),
    )


@router.post("/sign-out")
def sign_out(request: Request, visitor: Viewer) -> Response:
    """Sign out: the key that the browser kept is worth nothing from now on."""
    key = session_key(request)
    if visitor.has_account and key is not None:
        services_of(request).store.accounts.close_session(key)
        give_key(request, new_session_key())
    return RedirectResponse("/", 303)


@router.get("/settings")
def settings_page(request: Request, visitor: Viewer, done: str = "") -> Response:
    """The visitor's own account."""
    return _settings(request, visitor, notice=_DONE.get(done))


@router.post("/settings/password")
def change_own_password(
    request: Request, visitor: Viewer, current: Text = "", password: Text = ""
) -> Response:
    """Change one's password, which takes the one before."""
    try:
        if not is_right_password(request, visitor.name, current):
            return _settings(request, visitor, {"current": _WRONG_NOW}, status=422)
        kept = services_of(request).passwords.hashed(password)
        replace_password(request, visitor, visitor.name, kept)
    except TooManyFailures as error:
        answer = _settings(request, visitor, {"current": str(error)}, status=429)
        answer.headers["Retry-After"] = str(error.seconds)
        return answer
    except AccountError as error:
        return _settings(request, visitor, _problems(error), status=422)
    return RedirectResponse("/settings?done=password", 303)


@router.post("/settings/keys")
def make_key(request: Request, visitor: Viewer, label: Text = "") -> Response:
    """Make an API key, and show it this once."""
    try:
        key = services_of(request).store.accounts.add_key(visitor.name, label)
    except AccountError as error:
        return _settings(request, visitor, _problems(error), status=422, label=label)
    return _settings(request, visitor, key=key)


@router.post("/settings/keys/{key_id}/revoke")
def revoke_key(request: Request, visitor: Viewer, key_id: Id) -> Response:
    """Revoke one of one's API keys."""
    services_of(request).store.accounts.revoke_key(visitor.name, key_id)
    return RedirectResponse("/settings?done=revoked", 303)


def _settings(
    request: Request,
    visitor: Visitor,
    problems: dict[str, str] | None = None,
    *,
    status: int = 200,
    notice: str | None = None,
    key: str | None = None,
    label: str = "",
) -> HTMLResponse:
    return render(
        request,
        "settings.html",
        visitor,
        retention=services_of(request).settings.retention,
        status=status,
        problems=problems or {},
        notice=notice,
        keys=services_of(request).store.accounts.keys(visitor.name),
        key=key,
        label=label,
    )


@router.get(_ACCOUNTS)
def accounts_page(request: Request, visitor: Admin, done: str = "", name: str = "") -> Response:
    """All accounts."""
    told = _DONE_TO_ACCOUNTS.get(done)
    is_known = told and services_of(request).store.accounts.find(name) is not None
    return _accounts(request, visitor, notice=told.format(name, name) if told and is_known else None)


@router.post(_ACCOUNTS)
def addnamed_account(
    request: Request, visitor: Admin, name: Text = "", role: Text = "", password: Text = ""
) -> Response:
    """Make an account."""
    services = services_of(request)
    try:
        kept = services.passwords.hashed(password)
        added = services.store.accounts.add(name, role_named(role), kept)
    except AccountError as error:
        typed = {"name": name, "role": role}
        return _accounts(request, visitor, error=error, typed=typed, status=422)
    return _back("added", added.name)


@router.post(_ACCOUNTS + "/{name}/role")
def change_role(request: Request, visitor: Admin, name: str, role: Text = "") -> Response:
    """Give an account another role."""
    account = named_account(request, name)
    try:
        replace_role(request, visitor, account.name, role_named(role))
    except AccountError as error:
        return _accounts(request, visitor, error=error, of=account.name, status=422)
    if account.name == visitor.name and role != "admin":
        return RedirectResponse("/settings", 303)
    return _back("role", account.name)


@router.post(_ACCOUNTS + "/{name}/password")
def reset_password(request: Request, visitor: Admin, name: str, password: Text = "") -> Response:
    """Give an account another password."""
    account = named_account(request, name)
    try:
        kept = services_of(request).passwords.hashed(password)
        replace_password(request, visitor, account.name, kept)
    except AccountError as error:
        return _accounts(request, visitor, error=error, of=account.name, status=422)
    return _back("reset", account.name)


@router.post(_ACCOUNTS + "/{name}/disable")
def disable(request: Request, visitor: Admin, name: str) -> Response:
    """Let an account sign in no more."""
    account = named_account(request, name)
    try:
        services_of(request).store.accounts.disable(account.name)
    except AccountError as error:
        return _accounts(request, visitor, error=error, of=account.name, status=422)
    return _back("disabled", account.name)


def _back(done: str, name: str) -> Response:
    return RedirectResponse(f"{_ACCOUNTS}?done={done}&name={quote(name)}", 303)


def _accounts(
    request: Request,
    visitor: Visitor,
    *,
    error: AccountError | None = None,
    of: str | None = None,
    typed: dict[str, Any] | None = None,
    status: int = 200,
    notice: str | None = None,
) -> HTMLResponse:
    """All accounts; an error is that of one of them, or of the one that was to be added."""
    accounts = services_of(request).store.accounts.all()
    return render(
        request,
        "settings_accounts.html",
        visitor,
        status=status,
        accounts=accounts,
        roles=ROLES,
        problems=_problems(error),
        problems_of=of,
        typed=typed or {"name": "", "role": "editor" if accounts else "admin"},
        notice=notice,
    )


def _problems(error: AccountError | None) -> dict[str, str]:
    """The sentence for the field of a form that is at fault."""
    return {} if error is None else {error.field: str(error)}


api_router = APIRouter(prefix="/api", tags=["accounts"])


class Me(BaseModel):
    """Who asks. `csrf` goes into the header X-CSRF-Token of requests that change something with a cookie."""

    name: str
    role: Role
    has_account: bool
    csrf: str


class OwnPassword(BaseModel):
    """A password in the place of the one that holds."""

    current: str
    new: str


class AccountOut(BaseModel):
    """An account; one that is not enabled is only the name of an author."""

    name: str
    role: Role
    is_enabled: bool
    created_at: datetime


class NewAccount(BaseModel):
    """An account to be made. Without a role, the first is an admin, and others are editors."""

    name: str
    password: str
    role: Role | None = None


class AccountChange(BaseModel):
    """What is to be otherwise with an account; a password enables one that is disabled."""

    role: Role | None = None
    password: str | None = None


class KeyOut(BaseModel):
    """An API key without the key itself, which is not kept."""

    id: int
    label: str
    created_at: datetime
    last_used_at: datetime | None


class NewKey(BaseModel):
    """A key to be made, and what it is for."""

    label: str


class MadeKey(BaseModel):
    """A new key, to be sent as Authorization: Bearer KEY; it cannot be read again."""

    key: str


@api_router.get("/me")
def me(visitor: Viewer) -> Me:
    """Who the server takes the sender for."""
    return Me(name=visitor.name, role=visitor.role, has_account=visitor.has_account, csrf=visitor.csrf)


@api_router.put("/me/password", status_code=204, responses=too_often("Too many wrong passwords."))
def put_own_password(request: Request, visitor: Viewer, body: OwnPassword) -> None:
    """Change one's password; all other browsers are signed out."""
    with _refusals():
        if not is_right_password(request, visitor.name, body.current):
            raise HTTPException(403, "This is not your password.")
        kept = services_of(request).passwords.hashed(body.new)
        replace_password(request, visitor, visitor.name, kept)


@api_router.get("/keys")
def get_keys(request: Request, visitor: Viewer) -> list[KeyOut]:
    """One's own API keys, the oldest first."""
    return [_key_out(key) for key in services_of(request).store.accounts.keys(visitor.name)]


@api_router.post("/keys", status_code=201)
def post_key(request: Request, visitor: Viewer, body: NewKey) -> MadeKey:
    """Make an API key for oneself."""
    with _refusals():
        return MadeKey(key=services_of(request).store.accounts.add_key(visitor.name, body.label))


@api_router.delete("/keys/{key_id}", status_code=204)
def delete_key(request: Request, visitor: Viewer, key_id: Id) -> None:
    """Revoke one of one's own API keys."""
    if not services_of(request).store.accounts.revoke_key(visitor.name, key_id):
        raise HTTPException(404, f"You have no key {key_id}.")


@api_router.get("/accounts")
def get_accounts(request: Request, _: Admin) -> list[AccountOut]:
    """All accounts by name."""
    return [_account_out(account) for account in services_of(request).store.accounts.all()]


@api_router.post("/accounts", status_code=201)
def post_account(request: Request, _: Admin, body: NewAccount) -> AccountOut:
    """Make an account."""
    services = services_of(request)
    with _refusals():
        kept = services.passwords.hashed(body.password)
        return _account_out(services.store.accounts.add(body.name, body.role, kept))


@api_router.patch("/accounts/{name}")
def patch_account(request: Request, visitor: Admin, name: str, body: AccountChange) -> AccountOut:
    """Change the role or the password of an account, which signs it out everywhere."""
    services = services_of(request)
    known = named_account(request, name)
    with _refusals():
        kept = None if body.password is None else services.passwords.hashed(body.password)
        if body.role is not None:
            replace_role(request, visitor, known.name, body.role)
        if kept is not None:
            replace_password(request, visitor, known.name, kept)
    return _account_out(named_account(request, name))


@api_router.delete("/accounts/{name}", status_code=204)
def delete_account(request: Request, _: Admin, name: str) -> None:
    """Disable an account: its sessions and keys end, its name stays with what was done under it."""
    known = named_account(request, name)
    with _refusals():
        services_of(request).store.accounts.disable(known.name)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except TooManyFailures as error:
        raise HTTPException(429, str(error), {"Retry-After": str(error.seconds)}) from error
    except AccountError as error:
        raise HTTPException(422, str(error)) from error


def _account_out(account: Account) -> AccountOut:
    return AccountOut(**account._asdict())


def _key_out(key: ApiKey) -> KeyOut:
    return KeyOut(**key._asdict())
