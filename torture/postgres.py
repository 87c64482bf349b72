"""A private PostgreSQL server, for tests and for torture: its own folder, its own port, gone afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from siteloom.core.database import connect, postgres_url
from siteloom.store.migrate import upgrade

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECONDS_TO_START = 60
_SECONDS_TO_STOP = 30
_USER = "siteloom"


class NoPostgres(Exception):
    """The programs of PostgreSQL are not installed, or the server does not start."""


class _Shape(NamedTuple):
    """What is different once a test has made, changed or removed tables."""

    tables: int
    newest_table: int
    columns: int
    newest_constraint: int
    version: str


class _Program(NamedTuple):
    """How to start the server: the command, where it logs, and as whom it runs."""

    command: list[str]
    log: Path
    as_user: dict[str, Any]


class PostgresServer:
    """A running server; every call of `new_database` gives the address of an empty database."""

    def __init__(self, port: int, program: _Program) -> None:
        self.port = port
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)
        self._with_tables: tuple[str, _Shape] | None = None

    def start(self) -> None:
        """Start it, for the first time or after it was killed; it answers when this returns."""
        command, log, as_user = self._program
        with log.open("ab") as file:
            self._process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, **as_user)
        deadline = time.monotonic() + _SECONDS_TO_START
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise NoPostgres(f"PostgreSQL did not start: {log.read_text(errors='replace')}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it in good order."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)  # the fast way that PostgreSQL documents
        try:
            self._process.wait(_SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()

    def kill(self) -> None:
        """Kill -9 the server and all its processes, as a machine does that runs out of memory."""
        assert self._process is not None
        backends = [int(pid) for pid in _children(self._process.pid)]
        for pid in (self._process.pid, *backends):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        # Its processes hold the shared memory that a new server must have for itself.
        deadline = time.monotonic() + _SECONDS_TO_STOP
        while any(Path(f"/proc/{pid}").exists() for pid in backends) and time.monotonic() < deadline:
            time.sleep(0.01)

    def kill_connections(self, database: str) -> int:
        """End all connections to a database, as an administrator does; returns how many there were."""
        with self._connection() as connection:
            ended = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (database,)
            )
            return len(ended.fetchall())

    @contextmanager
    def new_database(self) -> Iterator[str]:
        """The address of an empty database, which is removed afterwards."""
        name = self._create()
        try:
            yield self.address(name)
        finally:
            self._drop(name)

    def copy(self, name: str) -> str:
        """Make a database that has all that another has, to which no one is connected; returns its name."""
        return self._create(f"TEMPLATE {name}")

    @contextmanager
    def tables_in(self, folder: Path, like: str) -> Iterator[str]:
        """A database like another whose tables are in a folder, which is on another disk; gone afterwards."""
        place = folder / f"tables-{next(self._numbers)}"
        place.mkdir()
        with suppress(LookupError, PermissionError):
            shutil.chown(place, "postgres", "postgres")
        with self._connection() as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{place}'".encode())
        name = self._create(f"TEMPLATE {like} TABLESPACE small")
        try:
            yield name
        finally:
            self._drop(name)
            with self._connection() as connection:
                connection.execute("DROP TABLESPACE small")

    def create(self) -> str:
        """Make an empty database; returns its name."""
        return self._create()

    def drop(self, name: str) -> None:
        """Remove a database, whoever is connected to it."""
        self._drop(name)

    def database_with_tables(self) -> str:
        """The address of a database that has the tables of a store, with nothing in them.

        It is the same one again, emptied, as long as its tables are as they were: to make them takes longer
        than most tests do. Whoever has used it before must have done with it.
        """
        if self._with_tables is not None:
            name, shape = self._with_tables
            if self._shape(name) == shape:
                self._empty(name)
                return self.address(name)
            self._drop(name)
        name = self._create()
        engine = connect(postgres_url(self.address(name)))
        upgrade(engine)
        engine.dispose()
        made = self._shape(name)
        assert made is not None
        self._with_tables = (name, made)
        return self.address(name)

    def _create(self, like: str = "") -> str:
        name = f"test_{next(self._numbers)}"
        with self._connection() as connection:
            # Half the time for a database this small, and all that older servers know.
            strategy = "STRATEGY file_copy" if connection.info.server_version >= 150_000 else ""
            connection.execute(f"CREATE DATABASE {name} {like} {strategy}".encode())
        return name

    def _drop(self, name: str) -> None:
        with self._connection() as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    def _shape(self, name: str) -> _Shape | None:
        """None if there is no telling which version the tables are of."""
        with self._connection(name) as connection:
            # A process that was killed may not have been missed yet, and hold locks.
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            try:
                found = connection.execute(
                    "SELECT count(*), max(oid)::bigint, (SELECT count(*) FROM pg_attribute), "
                    "(SELECT max(oid)::bigint FROM pg_constraint), "
                    "(SELECT max(version_num) FROM alembic_version) FROM pg_class"
                ).fetchone()
            except psycopg.errors.UndefinedTable:
                return None
        return None if found is None else _Shape(*found)

    def _empty(self, name: str) -> None:
        """As fast as it can be: a table that no test has filled has a file of no bytes and is let be."""
        with self._connection(name) as connection:
            connection.execute("SET session_replication_role = replica")  # references need no looking after
            filled = connection.execute(
                "SELECT quote_ident(relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace "
                "AND relkind = 'r' AND relname <> 'alembic_version' AND pg_relation_size(oid) > 0"
            ).fetchall()
            for (table,) in filled:
                connection.execute(f"DELETE FROM {table}".encode())
            if filled:
                connection.execute(f"VACUUM {', '.join(table for (table,) in filled)}".encode())
            connection.execute("SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S'")

    def address(self, database: str) -> str:
        """Where a database is."""
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/{database}"

    @property
    def environment(self) -> dict[str, str]:
        """What tells the programs of PostgreSQL where it is."""
        return {"PGHOST": "127.0.0.1", "PGPORT": str(self.port), "PGUSER": _USER}

    def answers(self) -> bool:
        """Whether it lets anyone in."""
        try:
            self._connection().close()
        except psycopg.OperationalError:
            return False
        return True

    def _connection(self, database: str = "postgres") -> psycopg.Connection:
        return psycopg.connect(self.address(database), autocommit=True)


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Start a server, and stop it whatever happens."""
    initdb, postgres = _program("initdb"), _program("postgres")
    folder = Path(tempfile.mkdtemp(prefix="siteloom-postgres-", dir="/tmp"))
    try:
        as_user = _unprivileged(folder)
        data, port = folder / "data", free_port()
        created = subprocess.run(
            [initdb, "-D", data, "-U", _USER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"],
            capture_output=True,
            text=True,
            check=False,
            **as_user,
        )
        if created.returncode != 0:
            raise NoPostgres(f"initdb failed: {created.stderr}")
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(folder),
            "fsync": "off",
            "full_page_writes": "off",
            "autovacuum": "off",
            "shared_buffers": "32MB",
            # Far from UTC, so that a time that forgets its zone is found out.
            "timezone": "America/New_York",
        }
        options = [f"-c{name}={value}" for name, value in settings.items()]
        command = [postgres, "-D", str(data), "-p", str(port), *options]
        server = PostgresServer(port, _Program(command, folder / "log", as_user))
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _program(name: str) -> str:
    # The newest version last, and the numbers compared as numbers.
    installed = sorted(
        Path("/usr/lib/postgresql").glob(f"*/bin/{name}"),
        key=lambda path: [int(part) for part in path.parts[4].split(".") if part.isdecimal()],
    )
    found = shutil.which(name) or (str(installed[-1]) if installed else None)
    if found is None:
        raise NoPostgres(
            f"These tests need PostgreSQL, but there is no program {name}: make test installs it."
        )
    return found


def _unprivileged(folder: Path) -> dict[str, Any]:
    """How to run PostgreSQL, which refuses to run as root."""
    if os.geteuid() != 0:
        return {"cwd": folder}
    try:
        shutil.chown(folder, "postgres", "postgres")
    except LookupError as error:
        raise NoPostgres("PostgreSQL refuses to run as root, and there is no account postgres.") from error
    return {"cwd": folder, "user": "postgres", "group": "postgres", "extra_groups": []}


def _children(pid: int) -> list[str]:
    """The numbers of the processes that one has started."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
