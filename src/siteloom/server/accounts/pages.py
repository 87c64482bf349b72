"""Pages to sign in and out, and to see and change one's account and, as an admin, all accounts."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from siteloom.errors import AccountError, TooManyFailures
from siteloom.server.accounts.credentials import (
    is_right_password,
    named_account,
    replace_password,
    replace_role,
    sign_in,
)
from siteloom.server.asking import Id
from siteloom.server.rendering import render
from siteloom.server.security import (
    Admin,
    Viewer,
    Visitor,
    csrf_token,
    give_key,
    local_path,
    session_key,
)
from siteloom.server.services import services_of
from siteloom.store import ROLES, new_session_key, role_called

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
        added = services.store.accounts.add(name, role_called(role), kept)
    except AccountError as error:
        typed = {"name": name, "role": role}
        return _accounts(request, visitor, error=error, typed=typed, status=422)
    return _back("added", added.name)


@router.post(_ACCOUNTS + "/{name}/role")
def change_role(request: Request, visitor: Admin, name: str, role: Text = "") -> Response:
    """Give an account another role."""
    account = named_account(request, name)
    try:
        replace_role(request, visitor, account.name, role_called(role))
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
