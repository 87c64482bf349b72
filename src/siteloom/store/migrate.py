"""Brings the tables of an older workspace up to date, after a backup copy."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import inspect, text

from siteloom.core.confined_folder import ConfinedFolder
from siteloom.core.database import VERSION_TABLE
from siteloom.core.errors import StoreError, StoreTooNew
from siteloom.core.wording import shortened
from siteloom.store import schema

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Connection, Engine

_MIGRATIONS = Path(__file__).with_name("migrations")
_LONGEST_STEP = 40  # that a sentence shows; ours have four digits
_SCHEMA = "siteloom_before_"  # of a backup in PostgreSQL


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
        file = str(engine.url.database)
        copy = f"{file}.before-{revision}"
        try:
            ConfinedFolder(Path(file).parent).open(Path(copy).name, "ab").close()  # for its owner alone
            with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as target:
                source.backup(target)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"The workspace must be upgraded, but no backup can be made at {copy}: {error}."
            ) from error
        return copy
    with engine.begin() as connection:
        return _copy_to_schema(connection, f"{_SCHEMA}{revision}")


def remove_backups(engine: Engine) -> None:
    """Remove the backups that upgrades have made: they do not fit packs that were written anew since."""
    if engine.dialect.name == "sqlite":
        file = Path(str(engine.url.database))
        for backup in file.parent.glob(f"{file.name}.before-*"):
            backup.unlink()
        return
    with engine.begin() as connection:
        quote = connection.dialect.identifier_preparer.quote
        for name in inspect(connection).get_schema_names():
            if name.startswith(_SCHEMA):
                connection.execute(text(f"DROP SCHEMA {quote(name)} CASCADE"))


def _copy_to_schema(connection: Connection, name: str) -> str:
    quote = connection.dialect.identifier_preparer.quote
    connection.execute(text(f"DROP SCHEMA IF EXISTS {quote(name)} CASCADE"))
    connection.execute(text(f"CREATE SCHEMA {quote(name)}"))
    there = set(inspect(connection).get_table_names())
    # The database may hold tables of others, which are none of our business.
    for table in sorted(there & {*schema.metadata.tables, VERSION_TABLE}):
        connection.execute(text(f"CREATE TABLE {quote(name)}.{quote(table)} AS TABLE {quote(table)}"))
    return f"schema {name}"
