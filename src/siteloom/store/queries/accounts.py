"""Accounts, roles, sessions, API keys and password hashes.

Of whatever opens the door only a hash is kept, so that whoever reads the tables cannot be anyone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from hashlib import sha256
from secrets import token_urlsafe
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args
from unicodedata import normalize

from sqlalchemy import case, delete, func, insert, literal, or_, select, update

from siteloom.core.database import upsert_into, writing
from siteloom.core.errors import AccountError, MissingExtra, TooManyFailures
from siteloom.core.file_lock import wait_for_tables
from siteloom.core.storable_text import storable
from siteloom.store import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from argon2 import PasswordHasher
    from sqlalchemy import ColumnElement, Connection, Engine, Select, Table


Role = Literal["viewer", "editor", "admin"]
"""What an account may do, each role all that those before it may: look, annotate, manage accounts."""

ROLES: tuple[Role, ...] = get_args(Role)

LOCAL = "local"
"""The name of whoever sits at the machine as long as there are no accounts; no account has it."""

SESSION_TIME = timedelta(days=14)
"""How long a browser stays signed in: a machine that was forgotten somewhere is shut out some day."""

KEY_PREFIX = "siteloom_"
"""How the keys of programs begin, so that one that leaked is known for what it is."""

# More than a person mistypes, and at under a thousand a day no password of ten characters is guessed.
FAILURES_OF_A_NAME = 10
# Several people may share an address.
FAILURES_OF_AN_ADDRESS = 30
FAILURES_COUNT_FOR = timedelta(minutes=15)

_KEY_BYTES = 32
_NAME = re.compile(r"[^\W_][\w.@-]*")
_LONGEST_NAME = 64
_LONGEST_LABEL = 100
# To know that a key is in use it need not be written down each time.
_USE_IS_NOTED_EVERY = timedelta(minutes=1)


class Account(NamedTuple):
    """Who may sign in, unless it is disabled: then it is only the name of an author."""

    name: str
    role: Role
    is_enabled: bool
    created_at: datetime


class ApiKey(NamedTuple):
    """A key with which a program acts as its owner; the key itself is not kept."""

    id: int
    label: str
    created_at: datetime
    last_used_at: datetime | None


def account_name(text: str) -> str:
    """The name of an account as it is kept: in small letters, so that Ana and ana are the same."""
    return normalize("NFKC", normalize("NFKC", text).casefold()).strip()


def role_named(name: str) -> Role:
    """The role of a name."""
    for role in ROLES:
        if role == name:
            return role
    raise AccountError(f"There is no such role: it is one of {', '.join(ROLES)}.", "role")


@dataclass(frozen=True, slots=True)
class Accounts:
    """The accounts of a store. Nothing here waits for whoever writes pages or records."""

    engine: Engine
    clock: Callable[[], datetime]

    def any_enabled(self) -> bool:
        """Whether anyone can sign in; else whoever sits at the machine may do everything."""
        with self.engine.connect() as connection:
            return connection.execute(select(_is_any_enabled())).scalar_one()

    def all(self) -> list[Account]:
        """All accounts by name."""
        with self.engine.connect() as connection:
            found = [Account(*row) for row in connection.execute(select(*_account_columns()))]
        return sorted(found)  # databases differ in how they sort text

    def find(self, name: str) -> Account | None:
        """The account of a name, if there is one."""
        query = select(*_account_columns()).where(schema.users.c.name == _searchable(name))
        with self.engine.connect() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else Account(*row)

    def add(self, name: str, role: Role | None, password: str) -> Account:
        """Make an account; `password` is what is kept of its password.

        Without a role, the first one is an admin, and those after it are editors. The first one must be
        an admin, for else no one could make another.
        """
        name = account_name(name)
        _check_name(name)
        users = schema.users
        default = case((_is_any_enabled(), literal("editor")), else_=literal("admin"))
        row = {"name": name, "role": role or default, "password": password, "created_at": self.clock()}
        with writing(self.engine) as connection:
            wait_for_tables(connection)  # else two could both be the first
            add = upsert_into(connection, users).values(row)
            unless_there = add.on_conflict_do_nothing(index_elements=["name"])
            added = connection.execute(unless_there.returning(*_account_columns())).one_or_none()
            if added is None:
                raise AccountError(f"There is an account {name} already.", "name")
            _check_that_an_admin_is_left(connection, "The first account must be an admin.")
        return Account(*added)

    def password_of(self, name: str) -> str | None:
        """What is kept of an account's password; None if no one can sign in by this name."""
        query = select(schema.users.c.password).where(schema.users.c.name == _searchable(name))
        with self.engine.connect() as connection:
            return connection.execute(query).scalar_one_or_none()

    def set_password(self, name: str, password: str) -> None:
        """Give an account another password, also one that was disabled or locked out by wrong ones.

        It is signed out everywhere.
        """
        with writing(self.engine) as connection:
            user = _change(connection, name, password=password)
            connection.execute(delete(schema.sessions).where(schema.sessions.c.user_id == user))
        self.forget_failures(name)

    def refresh_password(self, name: str, before: str, password: str) -> None:
        """Keep the same password in another way, unless it was changed meanwhile."""
        users = schema.users.c
        is_meant = (users.name == _searchable(name)) & (users.password == before)
        with writing(self.engine) as connection:
            connection.execute(update(schema.users).where(is_meant).values(password=password))

    def set_role(self, name: str, role: Role) -> None:
        """Give an account another role, which signs it out everywhere; the last admin keeps theirs."""
        with writing(self.engine) as connection:
            wait_for_tables(connection)  # else two admins could each make the other less
            user = _change(connection, name, role=role)
            connection.execute(delete(schema.sessions).where(schema.sessions.c.user_id == user))
            _check_that_an_admin_is_left(connection, f"{name} is the last admin, and must stay one.")

    def disable(self, name: str) -> None:
        """Let no one sign in by a name any more; its sessions and keys end, and it stays as an author."""
        with writing(self.engine) as connection:
            wait_for_tables(connection)
            user = _change(connection, name, password=None)
            _check_that_an_admin_is_left(connection, f"{name} is the last admin, and must stay one.")
            for table in (schema.sessions, schema.api_keys):
                connection.execute(delete(table).where(table.c.user_id == user))

    def open_session(self, name: str, instead_of: str | None = None) -> str:
        """Sign a browser in; returns the key that it is to keep, and the one that it had is worth nothing."""
        key = new_session_key()
        now = self.clock()
        sessions = schema.sessions
        with writing(self.engine) as connection:
            connection.execute(delete(sessions).where(sessions.c.expires_at <= now))
            if instead_of is not None:
                connection.execute(delete(sessions).where(sessions.c.key_hash == _hash(instead_of)))
            row = {"key_hash": _hash(key), "created_at": now, "expires_at": now + SESSION_TIME}
            _insert_for(connection, name, sessions, row)
        return key

    def of_session(self, key: str) -> Account | None:
        """Who is signed in with the key of a browser, if anyone is."""
        sessions = schema.sessions
        return self._of(
            select(*_account_columns())
            .join(sessions)
            .where(sessions.c.key_hash == _hash(key), sessions.c.expires_at > self.clock())
        )

    def close_session(self, key: str) -> None:
        """Sign a browser out."""
        with writing(self.engine) as connection:
            connection.execute(delete(schema.sessions).where(schema.sessions.c.key_hash == _hash(key)))

    def add_key(self, name: str, label: str) -> str:
        """Make a key for a program that acts as an account; returns it, for it cannot be read again."""
        label = storable(label.strip())
        if not 1 <= len(label) <= _LONGEST_LABEL:
            raise AccountError(f"Say in 1 to {_LONGEST_LABEL} characters what the key is for.", "label")
        key = f"{KEY_PREFIX}{token_urlsafe(_KEY_BYTES)}"
        with writing(self.engine) as connection:
            row = {"key_hash": _hash(key), "label": label, "created_at": self.clock()}
            _insert_for(connection, name, schema.api_keys, row)
        return key

    def keys(self, name: str) -> list[ApiKey]:
        """The keys of an account, the oldest first."""
        keys = schema.api_keys
        query = (
            select(*(keys.c[field] for field in ApiKey._fields))
            .join(schema.users)
            .where(schema.users.c.name == _searchable(name))
            .order_by(keys.c.id)
        )
        with self.engine.connect() as connection:
            return [ApiKey(*row) for row in connection.execute(query)]

    def of_key(self, key: str) -> Account | None:
        """Whom a program acts as with a key, if it is one; that it was used is noted."""
        keys, now = schema.api_keys, self.clock()
        is_meant = keys.c.key_hash == _hash(key)
        account = self._of(select(*_account_columns()).join(keys).where(is_meant))
        if account is not None:
            is_long_ago = or_(keys.c.last_used_at.is_(None), keys.c.last_used_at <= now - _USE_IS_NOTED_EVERY)
            with self.engine.connect() as connection:
                is_due = connection.execute(select(keys.c.id).where(is_meant, is_long_ago)).one_or_none()
            if is_due is not None:
                with writing(self.engine) as connection:
                    connection.execute(update(keys).where(is_meant).values(last_used_at=now))
        return account

    def revoke_key(self, name: str, key_id: int) -> bool:
        """Make a key of an account worthless; whether it had such a one."""
        keys = schema.api_keys
        owner = select(schema.users.c.id).where(schema.users.c.name == _searchable(name)).scalar_subquery()
        with writing(self.engine) as connection:
            return bool(
                connection.execute(delete(keys).where(keys.c.id == key_id, keys.c.user_id == owner)).rowcount
            )

    def count_attempt(self, name: str, address: str) -> None:
        """Count an attempt to sign in as failed before its password is looked at, or raise TooManyFailures.

        So many attempts at once count as if they came one after the other. One that goes well is taken back
        by `forget_failures`; one that is refused here does not count.
        """
        failures, now = schema.failed_sign_ins, self.clock()
        name, address = _searchable(name), storable(address)
        counted = (
            (failures.c.name == name, FAILURES_OF_A_NAME),
            (failures.c.address == address, FAILURES_OF_AN_ADDRESS),
        )
        with writing(self.engine) as connection:
            wait_for_tables(connection)
            connection.execute(delete(failures).where(failures.c.at <= now - FAILURES_COUNT_FOR))
            for is_meant, most in counted:
                times = connection.execute(
                    select(failures.c.at).where(is_meant).order_by(failures.c.at.desc()).limit(most)
                ).all()
                if len(times) == most:
                    wait = times[-1].at + FAILURES_COUNT_FOR - now
                    raise TooManyFailures(int(wait.total_seconds()) + 1)
            connection.execute(insert(failures).values(name=name, address=address, at=now))

    def forget_failures(self, name: str) -> None:
        """Count no failures of a name any more: whoever has it signed in."""
        failures = schema.failed_sign_ins
        with writing(self.engine) as connection:
            connection.execute(delete(failures).where(failures.c.name == _searchable(name)))

    def _of(self, query: Select[*tuple[Any, ...]]) -> Account | None:
        with self.engine.connect() as connection:
            row = connection.execute(query.where(schema.users.c.password.is_not(None))).one_or_none()
        return None if row is None else Account(*row)


def new_session_key() -> str:
    """A key for a browser that no one can guess."""
    return token_urlsafe(_KEY_BYTES)


def _hash(key: str) -> bytes:
    # Unlike a password it cannot be guessed, however fast one tries: it needs no slow hash.
    return sha256(key.encode(errors="surrogatepass")).digest()


def _searchable(name: str) -> str:
    """A name of whatever length and characters, as it may be compared with those that are kept."""
    return storable(account_name(name))[: _LONGEST_NAME + 1]


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise AccountError(
            f"The name of an account has 1 to {_LONGEST_NAME} letters, digits and . _ - @, "
            "and begins with a letter or digit.",
            "name",
        )
    if name == LOCAL:
        raise AccountError(f"No account can be called {LOCAL}: choose another name.", "name")


def _account_columns() -> tuple[ColumnElement[Any], ...]:
    users = schema.users.c
    return users.name, users.role, users.password.is_not(None).label("is_enabled"), users.created_at


def _is_any_enabled() -> ColumnElement[bool]:
    return select(schema.users.c.id).where(schema.users.c.password.is_not(None)).exists()


def _change(connection: Connection, name: str, **values: str | None) -> int:
    users = schema.users
    changed = update(users).where(users.c.name == _searchable(name)).values(values).returning(users.c.id)
    user: int | None = connection.execute(changed).scalar_one_or_none()
    if user is None:
        raise AccountError(f"There is no account {account_name(name)}.", "name")
    return user


def _insert_for(connection: Connection, name: str, table: Table, row: Mapping[str, object]) -> None:
    """Insert a row that belongs to an account, in one step: it may be disabled at any moment."""
    users = schema.users.c
    values = [literal(value, table.c[column].type) for column, value in row.items()]
    of_owner = select(users.id, *values).where(users.name == _searchable(name), users.password.is_not(None))
    added = insert(table).from_select(["user_id", *row], of_owner).returning(table.c.user_id)
    if connection.execute(added).one_or_none() is None:
        raise AccountError(f"There is no account {account_name(name)} that is in use.", "name")


def _check_that_an_admin_is_left(connection: Connection, otherwise: str) -> None:
    """After a change and before it holds: that way no other can come between."""
    users = schema.users.c
    admins = select(func.count()).where(users.role == "admin", users.password.is_not(None))
    if not connection.execute(admins).scalar_one():
        raise AccountError(otherwise, "role")


SHORTEST_PASSWORD = 10
# Far more than anyone types; without a limit, a request could keep the machine busy.
LONGEST_PASSWORD = 1_000

# Each takes the memory below; so many at once, however many try to sign in.
_AT_ONCE = BoundedSemaphore(2)


@dataclass(frozen=True)
class Passwords:
    """Makes and checks what is kept of passwords.

    What it costs is the second choice of RFC 9106, which is for machines that have other things to do, too.
    """

    rounds: int = 3
    kibibytes: int = 65_536
    lanes: int = 4

    def hashed(self, password: str) -> str:
        """What to keep of a new password, which must be long enough."""
        if len(password) < SHORTEST_PASSWORD:
            raise AccountError(f"A password has at least {SHORTEST_PASSWORD} characters.", "password")
        if len(password) > LONGEST_PASSWORD:
            raise AccountError(f"A password has at most {LONGEST_PASSWORD:,} characters.", "password")
        with _AT_ONCE:
            return self._hasher.hash(_as_bytes(password))

    def is_right(self, password: str, kept: str | None) -> bool:
        """Whether a password is the one of which something is kept.

        If nothing is, it is not, and to find that out takes as long.
        """
        of_nobody = self._of_nobody  # made whether or not it is needed, which no one can tell then
        from argon2.exceptions import VerifyMismatchError  # noqa: PLC0415 - an extra

        with _AT_ONCE:
            try:
                self._hasher.verify(kept or of_nobody, _as_bytes(password[:LONGEST_PASSWORD]))
            except VerifyMismatchError:
                return False
        return kept is not None and len(password) <= LONGEST_PASSWORD

    def is_outdated(self, kept: str) -> bool:
        """Whether what is kept was made at another cost, and is to be made again."""
        return self._hasher.check_needs_rehash(kept)

    @cached_property
    def _hasher(self) -> PasswordHasher:
        try:
            from argon2 import PasswordHasher  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtra("Signing in", "server") from error
        return PasswordHasher(self.rounds, self.kibibytes, self.lanes)

    @cached_property
    def _of_nobody(self) -> str:
        return self._hasher.hash(b"nobody's")


def _as_bytes(password: str) -> bytes:
    # The same characters, whichever keyboard they were typed on.
    return normalize("NFKC", password).encode(errors="surrogatepass")
