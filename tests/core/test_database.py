"""Connections and the addresses they come from."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from siteloom.core.database import connect, postgres_url, sqlite_url
from siteloom.core.errors import MissingExtra, UsageError


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me@host/name",
        "postgres://me@host/name",
        "postgresql+psycopg://me@host/name",
        "postgresql+psycopg2://me@host/name",
    ],
)
def test_any_way_to_write_a_postgresql_address_leads_to_the_same_driver(address: str) -> None:
    assert str(postgres_url(address)) == "postgresql+psycopg://me@host/name"


@pytest.mark.parametrize(
    "address",
    [
        "mysql://me:s3cret@host/name",
        "s3cret",
        "postgresql://me:s3cret@host:port/name",
        "/s3cret/file.db",
        ":",
    ],
)
def test_another_address_is_refused_with_a_sentence_that_shows_no_password(address: str) -> None:
    with pytest.raises(UsageError, match=r"it must look like postgresql://user@host/name\.$") as refusal:
        postgres_url(address)
    assert "s3cret" not in str(refusal.value)


def test_postgresql_without_its_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"siteloom\[postgres\]"):
        connect(postgres_url("postgresql://me@host/name"))


def test_sqlite_survives_a_power_cut_and_lets_others_read(tmp_path: Path) -> None:
    engine = connect(sqlite_url(tmp_path))
    with engine.connect() as connection:
        told = [
            connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    engine.dispose()
    assert told == ["wal", 2, 1]


def test_a_change_of_tables_in_sqlite_is_undone_with_its_transaction(tmp_path: Path) -> None:
    engine = connect(sqlite_url(tmp_path))
    with engine.connect() as connection:
        connection.execute(text("CREATE TABLE half_done (id INTEGER)"))
        connection.rollback()
        assert connection.execute(text("SELECT name FROM sqlite_master")).all() == []
    engine.dispose()
