"""Accounts and keys as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from fastapi import APIRouter, HTTPException, Request
from pydantic import BaseModel

from siteloom.errors import AccountError, TooManyFailures
from siteloom.server.accounts.credentials import (
    is_right_password,
    named_account,
    replace_password,
    replace_role,
)
from siteloom.server.asking import Id, too_often
from siteloom.server.security import Admin, Viewer
from siteloom.server.services import services_of
from siteloom.store import Account, ApiKey, Role

router = APIRouter(prefix="/api", tags=["accounts"])


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


@router.get("/me")
def me(visitor: Viewer) -> Me:
    """Who the server takes the sender for."""
    return Me(name=visitor.name, role=visitor.role, has_account=visitor.has_account, csrf=visitor.csrf)


@router.put("/me/password", status_code=204, responses=too_often("Too many wrong passwords."))
def put_own_password(request: Request, visitor: Viewer, body: OwnPassword) -> None:
    """Change one's password; all other browsers are signed out."""
    with _refusals():
        if not is_right_password(request, visitor.name, body.current):
            raise HTTPException(403, "This is not your password.")
        kept = services_of(request).passwords.hashed(body.new)
        replace_password(request, visitor, visitor.name, kept)


@router.get("/keys")
def get_keys(request: Request, visitor: Viewer) -> list[KeyOut]:
    """One's own API keys, the oldest first."""
    return [_key_out(key) for key in services_of(request).store.accounts.keys(visitor.name)]


@router.post("/keys", status_code=201)
def post_key(request: Request, visitor: Viewer, body: NewKey) -> MadeKey:
    """Make an API key for oneself."""
    with _refusals():
        return MadeKey(key=services_of(request).store.accounts.add_key(visitor.name, body.label))


@router.delete("/keys/{key_id}", status_code=204)
def delete_key(request: Request, visitor: Viewer, key_id: Id) -> None:
    """Revoke one of one's own API keys."""
    if not services_of(request).store.accounts.revoke_key(visitor.name, key_id):
        raise HTTPException(404, f"You have no key {key_id}.")


@router.get("/accounts")
def get_accounts(request: Request, _: Admin) -> list[AccountOut]:
    """All accounts by name."""
    return [_account_out(account) for account in services_of(request).store.accounts.all()]


@router.post("/accounts", status_code=201)
def post_account(request: Request, _: Admin, body: NewAccount) -> AccountOut:
    """Make an account."""
    services = services_of(request)
    with _refusals():
        kept = services.passwords.hashed(body.password)
        return _account_out(services.store.accounts.add(body.name, body.role, kept))


@router.patch("/accounts/{name}")
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


@router.delete("/accounts/{name}", status_code=204)
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
