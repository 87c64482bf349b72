"""Accounts as requests name them, and passwords given and changed through the web, guessing kept slow."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

from fastapi import HTTPException

from siteloom.server.security import Visitor, give_key, session_key
from siteloom.server.services import services_of

if TYPE_CHECKING:
    from fastapi import Request

    from siteloom.store import Account, Role

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
