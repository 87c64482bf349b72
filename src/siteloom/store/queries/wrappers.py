"""Wrappers in the store: every version of each, under the wrapper's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, insert, select

from siteloom.core.database import writing
from siteloom.core.errors import NotStored, StoreError
from siteloom.core.file_lock import wait_for_tables
from siteloom.core.storable_text import is_storable, storable
from siteloom.core.wording import some_names
from siteloom.store import schema
from siteloom.store.query_base import Tables

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Table

# Room for a site's name and a number behind it; PostgreSQL refuses to index far longer ones.
_LONGEST_NAME = 300

WITHDRAWN = "withdrawn"
"""The origin of a version that deactivates its wrapper until another version is stored."""


class StoredWrapper(NamedTuple):
    """A version of a wrapper: its JSON as text, what made it (`learn`, or a later change), and a note."""

    name: str
    site: str
    version: int
    text: str
    created_at: datetime
    origin: str
    note: str


class WrapperQueries(Tables):
    """All versions of wrappers."""

    __slots__ = ()

    def save_wrapper(self, name: str, site: str, text: str, origin: str, note: str = "") -> int:
        """Store the JSON of a wrapper as the next version under its name; returns the version's number.

        `origin` says what created it: `learn`, or what replaced the previous version.
        """
        with writing(self.engine) as connection:
            return add_version(connection, name, site, text, at=self.clock(), origin=origin, note=note)

    def wrapper(self, name: str, version: int | None = None) -> StoredWrapper:
        """A version of a wrapper, the newest unless one is named."""
        return version_among(self.wrapper_versions(name), version)

    def wrappers(self) -> list[StoredWrapper]:
        """The newest version of each wrapper that is in force, by site and name."""
        in_force = self._wrappers(is_in_force(schema.wrappers))
        # Databases differ in how they sort text.
        return sorted(in_force, key=lambda wrapper: (wrapper.site, wrapper.name))

    def wrapper_in_force(self, name: str) -> StoredWrapper | None:
        """The newest version of a wrapper; None if there is no such wrapper, or it is out of force."""
        columns = schema.wrappers.c
        return next(
            iter(self._wrappers(is_in_force(schema.wrappers) & (columns.name == storable(name)))), None
        )

    def wrapper_versions(self, name: str) -> list[StoredWrapper]:
        """All versions of a wrapper, the newest last."""
        versions = self._wrappers(schema.wrappers.c.name == storable(name))
        if not versions:
            names = [wrapper.name for wrapper in self.wrappers()]
            raise NotStored(f"There is no wrapper {name}: there are {some_names(names) or 'none yet'}.")
        return versions

    def _wrappers(self, condition: ColumnElement[bool]) -> list[StoredWrapper]:
        columns = schema.wrappers.c
        query = select(*(columns[name] for name in StoredWrapper._fields)).where(condition)
        with self.engine.connect() as connection:
            return [StoredWrapper(*row) for row in connection.execute(query.order_by(columns.version))]


def add_version(
    connection: Connection, name: str, site: str, text: str, *, at: datetime, origin: str, note: str
) -> int:
    """Keep a wrapper as the next version under its name within a transaction; returns its number."""
    for column, value in {"name": name, "site": site, "text": text}.items():
        if not is_storable(value):
            raise StoreError(f"The {column} of the wrapper {name!r} holds a character that databases refuse.")
    if len(name.encode()) > _LONGEST_NAME:
        raise StoreError(f"The name of the wrapper {name[:40]!r}... is longer than {_LONGEST_NAME} bytes.")
    columns = schema.wrappers.c
    next_version = select(func.coalesce(func.max(columns.version), 0) + 1).where(columns.name == name)
    row = insert(schema.wrappers).values(
        name=name,
        site=site,
        version=next_version.scalar_subquery(),
        text=text,
        created_at=at,
        origin=origin,
        note=storable(note),
    )
    wait_for_tables(connection)  # else two processes could both find the same version to be the next
    version: int = connection.execute(row.returning(columns.version)).scalar_one()
    return version


def is_newest(wrappers: Table) -> ColumnElement[bool]:
    """Whether a version of a wrapper is its newest."""
    later = wrappers.alias("later").c
    is_outdated = (
        select(later.id)
        .where(later.name == wrappers.c.name, later.version > wrappers.c.version)
        .correlate(wrappers)
        .exists()
    )
    return ~is_outdated


def is_in_force(wrappers: Table) -> ColumnElement[bool]:
    """Whether a version of a wrapper is its newest, and not one that only takes it out of force."""
    return is_newest(wrappers) & (wrappers.c.origin != WITHDRAWN)


def version_among(versions: Sequence[StoredWrapper], number: int | None) -> StoredWrapper:
    """One of the versions of a wrapper, the newest unless one is named."""
    if number is None:
        return versions[-1]
    for version in versions:
        if version.version == number:
            return version
    numbers = ", ".join(str(version.version) for version in versions)
    raise NotStored(f"There is no version {number} of the wrapper {versions[-1].name}: there are {numbers}.")
