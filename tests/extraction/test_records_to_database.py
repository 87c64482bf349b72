"""Rows of records in the table of a database: replaced as a whole or not at all."""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, text
from torture.fuzz_targets.journals import write_journal
from torture.postgres import free_port

from siteloom.core.database import postgres_url as database_url
from siteloom.core.errors import MissingExtra, OutputError, UsageError
from siteloom.core.storable_text import storable
from siteloom.extraction.record_formats import check_destination, open_records
from siteloom.extraction.record_rows import Row
from tests.extraction.records import row, rows

ATTRIBUTES = ("name", "price")
any_text = st.characters(exclude_categories=())  # NUL and halves of surrogate pairs too
any_rows = rows(ATTRIBUTES, any_text)
any_names = st.lists(st.text(any_text, max_size=80), unique=True, max_size=4)


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, once for each kind."""
    if request.param == "postgres":
        found: str = request.getfixturevalue("postgres_url")
        return found
    return f"sqlite:///{tmp_path / 'out.db'}"


def engine_of(address: str) -> Engine:
    url = address if address.startswith("sqlite") else database_url(address)
    return sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)


def write(address: str, given_rows: Sequence[Row], attributes: Sequence[str] = ATTRIBUTES) -> None:
    with open_records(address, attributes) as writer:
        for each in given_rows:
            writer.write(each)


def table(address: str) -> list[dict[str, Any]]:
    with engine_of(address).connect() as connection:
        return [dict(found._mapping) for found in connection.execute(text("SELECT * FROM records"))]


def execute(address: str, *statements: str) -> None:
    with engine_of(address).begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def cleaned(value: object) -> object:
    if isinstance(value, list):
        return list(map(cleaned, value))
    if isinstance(value, dict):
        return {storable(name): cleaned(item) for name, item in value.items()}
    return storable(value) if isinstance(value, str) else value


def cell(texts: list[str]) -> str | None:
    if len(texts) > 1:
        return json.dumps(cleaned(texts), ensure_ascii=False)
    return storable(texts[0]) if texts else None


def expected(each: Row) -> dict[str, Any]:
    return {
        "url": storable(each["url"]),
        "wrapper": storable(each["wrapper"]),
        "version": each["version"],
        **{attribute: cell(each["values"].get(attribute, [])) for attribute in ATTRIBUTES},
        "confidence": min(chain(*each["confidence"].values()), default=None),
        "duplicate_of": cleaned(each["duplicate_of"]),
    }


def assert_reads_back(address: str, given_rows: list[Row]) -> None:
    write(address, given_rows)
    read = table(address)
    for each in read:
        each["record"] = json.loads(each["record"])
    wanted = [{**expected(each), "record": cleaned(each)} for each in given_rows]
    assert sorted(map(json.dumps, read)) == sorted(map(json.dumps, wanted))  # tables have no order


def test_a_table_has_a_row_for_each_record(address: str) -> None:
    given_rows = [
        row("http://a.example/1", 0.5, name=["Desk"], price=["$1", "$2"]),
        {**row("http://a.example/2", 0.9, "shop", None), "duplicate_of": "http://a.example/1"},
    ]
    write(address, given_rows)
    first, second = table(address)
    assert list(first) == [
        "url", "wrapper", "version", "name", "price", "confidence", "duplicate_of", "record",
    ]  # fmt: skip
    assert (first["name"], first["price"], first["confidence"]) == ("Desk", '["$1", "$2"]', 0.5)
    assert (second["name"], second["version"], second["duplicate_of"]) == (None, None, "http://a.example/1")
    assert json.loads(first["record"]) == given_rows[0]


@given(any_rows)
def test_sqlite_gives_back_what_went_in(given_rows: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_reads_back(f"sqlite:///{folder}/out.db", given_rows)


def test_postgresql_gives_back_what_went_in(postgres_url: str) -> None:
    @given(any_rows)
    def gives_back(given_rows: list[Row]) -> None:
        assert_reads_back(postgres_url, given_rows)

    gives_back()


def assert_has_a_column_for_each(address: str, names: list[str]) -> None:
    names = [*names, "url", "URL", "ctid", "x" * 70, "é" * 40, "%(a)s:b", 'quo"ted']
    names = list(dict.fromkeys(names))
    write(address, [row("u", **{name: [f"value {n}"] for n, name in enumerate(names)})], names)
    (read,) = table(address)
    assert list(read.values())[3:-3] == [f"value {number}" for number in range(len(names))]
    assert read["values.url"] == f"value {names.index('url')}"
    write(address, [], names)
    assert table(address) == []


@given(any_names)
def test_any_attribute_has_its_column_in_sqlite(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_has_a_column_for_each(f"sqlite:///{folder}/out.db", names)


def test_any_attribute_has_its_column_in_postgresql(postgres_url: str) -> None:
    @given(any_names)
    def has_a_column_for_each(names: list[str]) -> None:
        assert_has_a_column_for_each(postgres_url, names)

    has_a_column_for_each()


def test_a_record_is_json_for_postgresql_too(postgres_url: str) -> None:
    write(postgres_url, [row("u", name=["a\0b"], price=["\\u0000"])])
    with engine_of(postgres_url).connect() as connection:
        found = connection.execute(text("SELECT record::jsonb -> 'values' FROM records")).scalar_one()
    assert found == {"name": ["a\N{REPLACEMENT CHARACTER}b"], "price": ["\\u0000"]}


def test_many_rows_are_all_written(address: str) -> None:
    write(address, [row(f"u{number}") for number in range(1_234)])
    assert {each["url"] for each in table(address)} == {f"u{number}" for number in range(1_234)}


# Whole or not at all


def write_and_raise(address: str, attributes: Sequence[str]) -> None:
    with open_records(address, attributes) as writer:
        for number in range(1_000):
            writer.write(row(f"new {number}"))
        raise KeyboardInterrupt


@pytest.mark.parametrize("attributes", [ATTRIBUTES, ("colour",)], ids=["same columns", "other columns"])
def test_the_old_table_is_replaced_at_the_end(address: str, attributes: Sequence[str]) -> None:
    write(address, [row("old")])
    write(address, [row("new")], attributes)
    assert [each["url"] for each in table(address)] == ["new"]
    assert set(attributes) <= table(address)[0].keys()


@pytest.mark.parametrize("attributes", [ATTRIBUTES, ("colour",)], ids=["same columns", "other columns"])
def test_after_an_error_the_old_table_is_as_it_was(address: str, attributes: Sequence[str]) -> None:
    write(address, [row("old", name=["x"])])
    before = table(address)
    with pytest.raises(KeyboardInterrupt):
        write_and_raise(address, attributes)
    assert table(address) == before


def test_a_journal_beside_a_database_has_no_file_removed(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/a.db"
    write(address, [row("http://a.example/", name=["x"])])
    victim = tmp_path / "victim"
    victim.write_text("precious")
    write_journal(tmp_path / "a.db", victim)
    for do in (check_destination, lambda place: write(place, [])):
        with pytest.raises(OutputError, match=r"a\.db-journal names another file, which SQLite would remove"):
            do(address)
    assert victim.exists()


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE TRIGGER t AFTER INSERT ON records BEGIN SELECT regexp('(a+)+b', 'aaa'); END",
        "CREATE TRIGGER t BEFORE DELETE ON records BEGIN SELECT regexp('(a+)+b', 'aaa'); END",
        "CREATE TRIGGER t AFTER INSERT ON records BEGIN SELECT * FROM v; END",
        "CREATE TRIGGER t AFTER INSERT ON records BEGIN INSERT INTO v VALUES (1); END",
        "CREATE INDEX i ON records (url) WHERE regexp('(a+)+b', url)",
    ],
)
def test_what_a_database_calls_does_no_harm(tmp_path: Path, schema: str) -> None:
    """`regexp` stands for all functions that SQLite has not marked as harmless."""
    address, written = f"sqlite:///{tmp_path}/a.db", [row("http://a.example/", name=["x"])]
    write(address, written)
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.create_function("regexp", 2, lambda *_: True, deterministic=True)
        database.execute("CREATE VIEW v AS SELECT regexp('(a+)+b', 'aaa') AS a")
        database.execute("CREATE TRIGGER w INSTEAD OF INSERT ON v BEGIN SELECT regexp('(a+)+b', 'aaa'); END")
        database.execute(schema)
        database.commit()
    with pytest.raises(OutputError, match="unsafe use of regexp"):
        write(address, written)


def test_after_an_error_there_is_no_new_file(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_and_raise(f"sqlite:///{tmp_path}/a.db", ATTRIBUTES)
    assert list(tmp_path.iterdir()) == []


def test_after_an_error_there_is_no_new_table(postgres_url: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_and_raise(postgres_url, ATTRIBUTES)
    assert not sqlalchemy.inspect(engine_of(postgres_url)).has_table("records")


def test_other_tables_and_views_stay(address: str) -> None:
    write(address, [row("old", name=["x"])])
    execute(
        address,
        "CREATE TABLE other (a TEXT)",
        "INSERT INTO other VALUES ('mine')",
        "CREATE VIEW names AS SELECT name FROM records",
    )
    write(address, [row("new", name=["y"])])
    with engine_of(address).connect() as connection:
        assert connection.execute(text("SELECT a, name FROM other, names")).all() == [("mine", "y")]


def test_readers_see_the_old_table_until_the_end(postgres_url: str) -> None:
    write(postgres_url, [row("old")])
    with open_records(postgres_url, ATTRIBUTES) as writer:
        for number in range(1_000):
            writer.write(row(f"new {number}"))
        assert [each["url"] for each in table(postgres_url)] == ["old"]
    assert len(table(postgres_url)) == 1_000


@pytest.mark.parametrize("columns", ["url TEXT, wrapper TEXT", "record TEXT"])
def test_a_table_of_someone_else_is_refused(address: str, columns: str) -> None:
    execute(address, f"CREATE TABLE records ({columns})")
    assert_refused(address)


def test_a_view_is_refused(address: str) -> None:
    write(address, [])
    execute(address, "ALTER TABLE records RENAME TO made", "CREATE VIEW records AS SELECT * FROM made")
    assert_refused(address)


def assert_refused(address: str) -> None:
    sentence = (
        r"has a table records that Siteloom did not make: rename that table, or give another database\.$"
    )
    with pytest.raises(OutputError, match=sentence):
        check_destination(address)
    with pytest.raises(OutputError, match=sentence):
        write(address, [])
    assert table(address) == []


def test_of_two_that_write_at_once_the_last_one_stays(postgres_url: str) -> None:
    write(postgres_url, [])
    with ThreadPoolExecutor(1) as threads:
        with open_records(postgres_url, ATTRIBUTES) as writer:
            second = threads.submit(write, postgres_url, [row("second")])
            writer.write(row("first"))
            assert not wait([second], 0.5).done
        second.result()
    assert [each["url"] for each in table(postgres_url)] == ["second"]


def test_a_table_that_others_depend_on_is_told_before_the_work(postgres_url: str) -> None:
    write(postgres_url, [])
    execute(postgres_url, "CREATE VIEW names AS SELECT name FROM records")
    with (
        pytest.raises(
            OutputError, match=r"cannot be written: .*other objects depend on it \(view names depends"
        ),
        open_records(postgres_url, ["colour"]),
    ):
        pytest.fail("nothing should be written")


# Destinations


def test_a_good_database_is_passed_and_left_as_it_was(address: str, tmp_path: Path) -> None:
    check_destination(address)
    assert list(tmp_path.iterdir()) == []
    write(address, [row("u")])
    check_destination(address)
    assert len(table(address)) == 1


@pytest.mark.parametrize(
    "wrong", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///a.db?mode=ro", "sqlite://host/a.db"]
)
def test_what_is_no_file_of_sqlite_is_wrong_use(wrong: str) -> None:
    with pytest.raises(UsageError, match=r"it must look like sqlite:///file\.db\.$"):
        check_destination(wrong)


def test_another_kind_of_database_is_wrong_use() -> None:
    with pytest.raises(
        UsageError, match=r"^Siteloom cannot write to mysql\+pymysql://me:\*\*\*@host/name: .*sqlite:///file"
    ):
        check_destination("mysql+pymysql://me:s3cret@host/name")


def test_a_relative_name_is_that_of_a_file_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("sqlite:///here.db", [row("u")])
    assert [path.name for path in tmp_path.iterdir()] == ["here.db"]


def test_a_missing_folder_is_told_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(
        OutputError, match=r"There is no folder .*/missing to write sqlite.* to: make it first"
    ):
        check_destination(f"sqlite:///{tmp_path}/missing/a.db")


def test_a_file_of_another_kind_is_told_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("no database" * 1000, encoding="utf-8")
    with pytest.raises(OutputError, match=r"a\.db cannot be written: file is not a database\.$"):
        check_destination(f"sqlite:///{tmp_path}/a.db")


def test_a_server_that_does_not_answer_is_told_before_the_work() -> None:
    address = f"postgresql://me:s3cret@127.0.0.1:{free_port()}/name"
    with pytest.raises(
        OutputError, match=r"^The table records of .* cannot be written: .*refused"
    ) as refusal:
        check_destination(address)
    assert "s3cret" not in str(refusal.value)


def write_while_the_server_goes_away(address: str) -> None:
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    with open_records(address, ATTRIBUTES) as writer:
        execute(address, f"{others} AND pid <> pg_backend_pid()")
        for number in range(1_000):
            writer.write(row(f"u{number}"))


def test_a_server_that_goes_away_is_one_clear_sentence(postgres_url: str) -> None:
    with pytest.raises(OutputError, match=r"^The table records of .* cannot be written: .*\.$"):
        write_while_the_server_goes_away(postgres_url)
    assert not sqlalchemy.inspect(engine_of(postgres_url)).has_table("records")


def test_postgresql_without_its_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"siteloom\[postgres\]"):
        check_destination("postgresql://me@host/name")
