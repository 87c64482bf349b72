"""Brings the tables of an older workspace up to date, after a backup copy."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from sqlalchemy import Text, column, func, inspect, select, table, text

from siteloom.core.confined_folder import ConfinedFolder
from siteloom.core.database import VERSION_TABLE
from siteloom.core.errors import StoreError, StoreTooNew
from siteloom.core.sqlite_files import open_sqlite, sqlite_file
from siteloom.core.wording import shortened
from siteloom.store import schema

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Connection, Engine

_MIGRATIONS = Path(__file__).with_name("migrations")
_LONGEST_STEP = 40  # that a sentence shows; ours have four digits
_BACKUP = ".before-"  # what stands behind the name of the database, in that of its backup
_UNFINISHED = ".unfinished-"
_SCHEMA = "siteloom_before_"  # of a backup in PostgreSQL
_BYTES_OF_NAME = 8


def has_tables(engine: Engine) -> bool:
    """Whether any step has been applied."""
    return _current_revision(engine) is not None


def is_up_to_date(engine: Engine) -> bool:
    """Whether no step is missing; raises StoreTooNew if there are steps that this Siteloom does not know."""
    steps = _steps()
    current = _current_revision(engine)
    if current is not None and current not in steps:
        step = shortened(str(current), _LONGEST_STEP)
        raise StoreTooNew(
            f"This workspace was made by a newer version of Siteloom (its tables are at step {step}): "
            "upgrade Siteloom to open it."
        )
    return current == newest_step()


def newest_step() -> str:
    """The step that tables are at when none is missing."""
    return _steps()[-1]


def upgrade(engine: Engine, revision: str = "head") -> str | None:
    """Apply the steps that are missing; returns where the backup of an older state is, if one was made.

    Call it under the write lock: no one may write between backup and step.
    """
    from alembic import command  # noqa: PLC0415 - slow to load, and hardly ever needed

    if is_up_to_date(engine):
        return None
    current = _current_revision(engine)
    backup = _back_up(engine, current) if current is not None else None
    with engine.begin() as connection:
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    return backup


def _steps() -> list[str]:
    """All steps in order: the files of the steps begin with their numbers."""
    return sorted(file.name.partition("_")[0] for file in (_MIGRATIONS / "versions").glob("[0-9]*.py"))


def _current_revision(engine: Engine) -> str | None:
    """The step that was applied last, as Alembic has noted it."""
    with engine.connect() as connection:
        if not inspect(connection).has_table(VERSION_TABLE):
            return None
        found: str | None = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608 - ours
        return found


def _config() -> Config:
    from alembic.config import Config  # noqa: PLC0415 - see upgrade

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    return config


def _back_up(engine: Engine, revision: str) -> str:
    """Copy the tables: to an SQLite file beside the old one, to a schema of their own in PostgreSQL."""
    if engine.dialect.name == "sqlite":
        file = sqlite_file(engine.url)
        copy = file.with_name(f"{file.name}{_BACKUP}{revision}")
        try:
            _copy_to_file(file, copy)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"The workspace must be upgraded, but no backup can be made at {copy}: {error}."
            ) from error
        return str(copy)
    with engine.begin() as connection:
        return _copy_to_schema(connection, revision)


def _copy_to_file(file: Path, copy: Path) -> None:
    """Copy a database to a file that appears as a whole.

    It is written under a name that no one can know before, so that no journal waits beside it.
    """
    folder = ConfinedFolder(file.parent)
    for left in folder.names():  # by a process that was killed, or put there for what will open the copy
        if left.startswith(f"{copy.name}{_UNFINISHED}") or left in _beside(copy.name):
            folder.remove(left)
    unfinished = f"{copy.name}{_UNFINISHED}{uuid4().hex}"
    try:
        folder.open(unfinished, "xb").close()  # for its owner alone
        with (
            closing(open_sqlite(file, StoreError)) as source,
            closing(open_sqlite(file.with_name(unfinished), StoreError)) as target,
        ):
            source.backup(target)
        folder.sync(unfinished)
        folder.rename(unfinished, copy.name)
        folder.sync()
    finally:
        for left in (unfinished, *_beside(unfinished)):
            folder.remove(left)


def _beside(database: str) -> tuple[str, ...]:
    """The names of what SQLite keeps beside a database."""
    return tuple(f"{database}{ending}" for ending in ("-journal", "-wal", "-shm"))


def remove_backups(engine: Engine) -> None:
    """Remove the backups that upgrades have made: they do not fit packs that were written anew since."""
    if engine.dialect.name == "sqlite":
        file = sqlite_file(engine.url)
        folder = ConfinedFolder(file.parent)
        for name in folder.names():
            if name.startswith(f"{file.name}{_BACKUP}"):
                folder.remove(name)
        return
    with engine.begin() as connection:
        quote = connection.dialect.identifier_preparer.quote
        for name in _schemas_with_backups(connection):
            connection.execute(text(f"DROP SCHEMA {quote(name)} CASCADE"))


def _schemas_with_backups(connection: Connection) -> list[str]:
    """The schemas that upgrades of this workspace have made: others in the database may have such, too.

    They have its name or, if they are older or the schema was called otherwise then, its id. For the id only
    tables of whoever asks are read: reading those of another could run anything.
    """
    rows = connection.execute(
        text(
            "SELECT nspname, current_user = ALL (ARRAY[pg_get_userbyid(nspowner), pg_get_userbyid(relowner)])"
            " FROM pg_catalog.pg_namespace LEFT JOIN pg_catalog.pg_class "
            "ON relnamespace = pg_namespace.oid AND relname = :table AND relkind = 'r' "
            "WHERE starts_with(nspname, :beginning)"
        ),
        {"table": schema.workspace.name, "beginning": _SCHEMA},
    ).all()
    own, ending = _workspaces_in(connection), f"_{_own_name(connection)}"
    return [
        name
        for name, is_own in rows
        if name.endswith(ending) or (is_own and own and _workspaces_in(connection, name) == own)
    ]


def _workspaces_in(connection: Connection, place: str | None = None) -> list[str]:
    """The workspaces whose tables stand in a schema, or in that of the connection: one, if all is well."""
    found = table(schema.workspace.name, column("id", Text), schema=place)
    return list(connection.execute(select(found.c.id).order_by(found.c.id)).scalars())


def _own_name(connection: Connection) -> str:
    """A name for the workspace and the schema of its tables that no other has in the database."""
    place = connection.execute(select(func.current_schema())).scalar()
    whose = "/".join([*_workspaces_in(connection), str(place)])
    return blake2b(whose.encode(), digest_size=_BYTES_OF_NAME).hexdigest()


def _copy_to_schema(connection: Connection, revision: str) -> str:
    """Copy the tables to a schema that is named for the step, and for whose tables they are."""
    quote = connection.dialect.identifier_preparer.quote
    name = f"{_SCHEMA}{revision}_{_own_name(connection)}"
    connection.execute(text(f"DROP SCHEMA IF EXISTS {quote(name)} CASCADE"))
    connection.execute(text(f"CREATE SCHEMA {quote(name)}"))
    there = set(inspect(connection).get_table_names())
    # The database may hold tables of others, which are none of our business.
    for one in sorted(there & {*schema.metadata.tables, VERSION_TABLE}):
        connection.execute(text(f"CREATE TABLE {quote(name)}.{quote(one)} AS TABLE {quote(one)}"))
    return f"schema {name}"
