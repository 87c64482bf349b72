"""The rows of SQL tables."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from siteloom.config import without_passwords
from siteloom.errors import MissingExtra, SourceError, UsageError
from siteloom.seed_files.rows import ROWS_AT_A_TIME, NumberedRows, Rows
from siteloom.sqlite_journals import journal_fault
from siteloom.telling import some_names

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from sqlalchemy import URL, Engine


def _address_and_table(location: str) -> tuple[str, str]:
    address, mark, table = location.rpartition("#")
    return (address, table) if mark else (location, "")


def sql_table(location: str) -> Rows:
    """The rows of a table, or of a view, that is named behind the address of its database."""
    import sqlalchemy  # noqa: PLC0415 - slow to load, and most seeds are files

    address, table = _address_and_table(location)
    try:
        url = sqlalchemy.make_url(address)
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise _bad_address() from None
    if not table:
        raise UsageError(f"Name the table of {_place(url)}: write its name behind a #.")
    engine = _engine(url)
    schema, _, name = table.rpartition(".")
    with _sql_errors(engine):
        inspector = sqlalchemy.inspect(engine)
        if inspector.has_table(table):
            schema, name = "", table
        elif not schema or not inspector.has_table(name, schema):
            known = sorted([*inspector.get_table_names(), *inspector.get_view_names()])
            raise SourceError(
                f"There is no table {table} in {_place(engine.url)}: there are {some_names(known) or 'none'}."
            )
    return Rows(_sql_rows(engine, name, schema), f"{table}, row ", name)


def _bad_address() -> UsageError:
    # It is not shown, because no one can tell where in it a password stands.
    return UsageError(
        "The address of the database cannot be read: it must look like sqlite:///file.db#table "
        "or postgresql://user@host/name#table."
    )


def _place(url: URL) -> str:
    """A database as it may be shown."""
    return without_passwords(url.set(drivername=url.get_backend_name()).render_as_string())


def _engine(url: URL) -> Engine:
    import sqlalchemy  # noqa: PLC0415

    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    is_sqlite = url.get_backend_name() == "sqlite"
    if is_sqlite and not Path(url.database or "").is_file():
        raise SourceError(f"There is no file {url.database}: check the path.")  # SQLite would make one
    try:
        engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    except (ImportError, sqlalchemy.exc.NoSuchModuleError) as error:
        if url.get_backend_name() == "postgresql":
            raise MissingExtra("PostgreSQL", "postgres") from error
        raise SourceError(f"{url.drivername} databases need a driver that is not installed.") from error
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise _bad_address() from None
    if is_sqlite:
        sqlalchemy.event.listen(engine, "do_connect", _check_journal)
        sqlalchemy.event.listen(engine, "connect", _trust_no_view)
    return engine


def _check_journal(_dialect: Any, _record: Any, places: Sequence[str], _options: Any) -> None:
    if fault := journal_fault(Path(places[0])):
        raise SourceError(f"The database {places[0]} is not opened: {fault}")


def _trust_no_view(connection: sqlite3.Connection, _: Any) -> None:
    connection.execute("PRAGMA trusted_schema=OFF")  # a view of someone else calls nothing that does harm


def _sql_rows(engine: Engine, name: str, schema: str) -> NumberedRows:
    import sqlalchemy  # noqa: PLC0415

    # Values are taken as the driver gives them: SQLite holds in a column what its type does not allow.
    table = sqlalchemy.table(name, schema=schema or None)
    query = sqlalchemy.select(sqlalchemy.text("*")).select_from(table)
    with _sql_errors(engine), engine.connect() as connection:
        found = connection.execution_options(yield_per=ROWS_AT_A_TIME).execute(query)
        names = list(found.keys())
        for number, row in enumerate(found, 1):
            yield number, dict(zip(names, row, strict=True))


@contextmanager
def _sql_errors(engine: Engine) -> Iterator[None]:
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    try:
        yield
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        raise SourceError(f"The database {_place(engine.url)} cannot be read: {reason}.") from error
