"""Seeds from files and tables as people have them."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torture.fuzz_targets.journals import write_journal

from siteloom.core.errors import SiteloomError, SourceError, UsageError
from siteloom.core.model import Failure, Seed, Skipped
from siteloom.core.settings import without_passwords
from siteloom.sources.rows_to_seeds import read_seeds, reshaped, seed_of
from tests.file_server import file_server

Values = Mapping[str, tuple[str, ...]]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], str]:
    def written(name: str, content: str | bytes) -> str:
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(file)

    return written


Write = Callable[[str, str | bytes], str]


def read(location: str, **options: Any) -> tuple[list[Seed], list[Failure], list[Skipped]]:
    problems: list[Failure | Skipped] = []
    seeds = list(read_seeds(location, on_problem=problems.append, **options))
    return (
        seeds,
        [problem for problem in problems if isinstance(problem, Failure)],
        [problem for problem in problems if isinstance(problem, Skipped)],
    )


def values(location: str, **options: Any) -> list[Values]:
    seeds, failures, skipped = read(location, **options)
    assert not failures
    assert not skipped
    return [seed.values for seed in seeds]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("start", ["", "\N{BYTE ORDER MARK}"])
def test_the_first_line_of_csv_names_the_attributes(write: Write, delimiter: str, start: str) -> None:
    text = start + 'name,phone\r\n"Blue, ""Fern""; é",  555-1234 \r\n\r\nOak,\r\n'
    rows = csv.reader(io.StringIO(text))
    again = io.StringIO()
    csv.writer(again, delimiter=delimiter).writerows(rows)
    seeds, failures, skipped = read(write("inns.csv", again.getvalue()))
    assert seeds == [
        Seed({"name": ('Blue, "Fern"; é',), "phone": ("555-1234",)}, "inns"),
        Seed({"name": ("Oak",)}, "inns"),
    ]
    assert (failures, skipped) == ([], [])


def test_a_column_may_come_twice_lack_a_name_or_stand_alone(write: Write) -> None:
    file = write("a.tsv", ",phone,phone,phone\n0,1,2,1\n1,,,\n")
    seeds, _, skipped = read(file)
    assert [seed.values for seed in seeds] == [{"phone": ("1", "2")}]
    assert [problem.reason for problem in skipped] == ["no values"]
    assert values(write("b.csv", "name\nBlue Fern\n")) == [{"name": ("Blue Fern",)}]


def test_short_rows_of_csv_are_filled_up_and_long_ones_fail(write: Write) -> None:
    file = write("a.csv", "name,phone\nOak\nElm,1,,\nFir,1,2\nAsh,3\n")
    seeds, failures, _ = read(file)
    assert [seed.values["name"] for seed in seeds] == [("Oak",), ("Elm",), ("Ash",)]
    assert failures == [Failure(f"{file}:4", "bad value", "3 cells, but 2 columns")]


def test_rows_of_csv_that_cannot_be_read_do_not_end_it(write: Write) -> None:
    long = "x" * 200_000
    file = write("a.csv", f"name\nElm,1\nCafé\n{long}\nOak\n".encode())
    seeds, failures, _ = read(file)
    assert [seed.values["name"] for seed in seeds] == [("Café",), ("Oak",)]
    assert [(failure.url, failure.reason) for failure in failures] == [
        (f"{file}:2", "bad value"),
        (f"{file}:4", "bad value"),
    ]


def test_a_quote_in_csv_that_another_one_ends_spoils_only_the_rows_between(write: Write) -> None:
    file = write("a.csv", 'name,note\nOak,"two\nlines"\nElm,"lost\nFir,"x"\nAsh,6" thick\n"Yew" ,\n')
    seeds, failures, _ = read(file)
    assert [seed.values["name"] for seed in seeds] == [("Oak",), ("Ash",), ("Yew",)]
    assert seeds[0].values["note"] == ("two lines",)
    assert failures == [
        Failure(f"{file}:5", "bad value", "a quote that opens in line 4 is closed amid a value")
    ]


@pytest.mark.parametrize("rest", ["", "\n", "\nFir,1\nAsh,2\n"])
def test_a_quote_in_csv_that_is_never_closed_is_told_with_its_line(write: Write, rest: str) -> None:
    file = write("a.csv", f'name,phone\nOak,1\nElm,"2{rest}')
    message = f"The row that begins in line 3 of {file} has a quote that is not closed: close it, or take"
    with pytest.raises(SourceError, match=re.escape(message)):
        read(file)
    with pytest.raises(SourceError, match="The row that begins in line 1 of"):
        read(write("b.csv", 'name,"phone\nOak,1\n'))


def test_a_value_over_far_too_many_lines_is_told_with_its_line(write: Write) -> None:
    file = write("a.csv", 'name,phone\nOak,1\nElm,"2' + "\nFir,1" * 30_000 + '"\n')
    with pytest.raises(SourceError, match=re.escape(f"line 3 of {file} has a value of more than 131,072")):
        read(file)


@pytest.mark.parametrize("text", ["n/a", " N/A ", "#N/A", "<NA>", "NaN", "NULL", "None", "-", "--", "\u2014"])
def test_what_says_that_there_is_no_value_is_none(write: Write, text: str) -> None:
    file = write("a.csv", f"name,phone,tags\nOak,{text},a;{text}\n{text},,\n")
    seeds, failures, skipped = read(file, several={"tags": ";"})
    assert [seed.values for seed in seeds] == [{"name": ("Oak",), "tags": ("a",)}]
    assert (len(failures), len(skipped)) == (0, 1)
    assert seed_of({"name": ["Oak", text], "at": {"city": text}}).values == {"name": ("Oak",)}


@pytest.mark.parametrize("text", ["NA", "0", "unknown", "no", "None of the Above", "A-", "."])
def test_what_only_looks_like_no_value_is_one(text: str) -> None:
    assert seed_of({"name": text}).values == {"name": (text,)}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "has no names of columns"),
        ("a.csv", b"\n\n", "has no names of columns"),
        ("a.csv", "name,phone\nOak,1\n".encode("utf-16"), "is not written in UTF-8"),
        ("a.csv", "name\nOak\nCaf\xe9\n".encode("cp1252"), "is not written in UTF-8, as line 3 shows"),
        ("a.parquet", b"PAR1", "cannot be read beyond row 0"),
        ("a.xlsx", b"", "Cannot tell what"),
        ("a.json", b"[]", "Cannot tell what"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_in_a_sentence(
    write: Write, name: str, content: bytes, message: str
) -> None:
    with pytest.raises(SourceError, match=message):
        read(write(name, content))


@pytest.mark.parametrize(
    "location",
    [
        "none.csv",
        "http://a.example/a.csv",
        ".",
        "sqlite:///none.db#inns",
        "a\0b.csv",
        "x" * 5_000,
        "mysql://h/d#t",
    ],
)
def test_what_is_not_there_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError):
        read_seeds(location)
    assert list(tmp_path.iterdir()) == []


def test_the_values_of_json_may_be_texts_numbers_lists_and_nested(write: Write) -> None:
    row = {
        "name": " Blue\n Fern ",
        "stars": 4.5,
        "rooms": 12.0,
        "id": 7,
        "open": True,
        "cuisine": ["Thai", "", None, "Greek", "Thai"],
        "address": {"street": "1 Oak St", "geo": {"lat": 0}},
        "offers": [{"price": 5}, {"price": 6}],
        "none": None,
        "empty": "  ",
        "lists": [],
        "nan": float("nan"),
        "": "no name",
    }
    assert values(write("a.jsonl", json.dumps(row))) == [
        {
            "name": ("Blue Fern",),
            "stars": ("4.5",),
            "rooms": ("12",),
            "id": ("7",),
            "open": ("true",),
            "cuisine": ("Thai", "Greek"),
            "address.street": ("1 Oak St",),
            "address.geo.lat": ("0",),
            "offers.price": ("5", "6"),
        }
    ]


def test_a_row_tells_where_it_is_from_unless_a_source_is_named(write: Write) -> None:
    row = {"name": "Oak", "_source": "guide", "_url": "http://a.example/1", "_confidence": 0.5}
    file = write("inns.jsonl", json.dumps(row) + "\n\n" + json.dumps({"name": "Elm", "_source": None}))
    oak = Seed({"name": ("Oak",)}, "guide", "http://a.example/1", 0.5)
    assert read(file)[0] == [oak, Seed({"name": ("Elm",)}, "inns")]
    assert [seed.source for seed in read(file, source="mine")[0]] == ["mine", "mine"]


def test_lines_that_are_no_records_fail_and_the_others_are_read(write: Write) -> None:
    lines = [
        '{"name": "Oak"}',
        '{"name": "El',
        "[1]",
        "[" * 100_000,
        '{"name": "Fir", "_source": 1}',
        json.dumps({"name": "Fir", "_source": "x" * 301}),
        '{"name": "Fir", "_confidence": 1.5}',
        '{"name": "Fir", "_confidence": "high"}',
        '{"name": "Fir", "_confidence": [1]}',
        '{"name": ""}',
        '{"a":' * 900 + "1" + "}" * 900,
        '{"name": "Ash", "_confidence": ""}',
    ]
    file = write("a.jsonl", "\n".join(lines).encode() + b'\n{"name": "\xff"}\n')
    seeds, failures, skipped = read(file)
    assert [seed.values["name"] for seed in seeds if "name" in seed.values] == [("Oak",), ("Ash",)]
    reasons = {int(failure.url.rpartition(":")[2]): failure.reason for failure in failures}
    assert {
        2: "not valid JSON",
        3: "not a JSON object",
        4: "not valid JSON",
        13: "not valid JSON",
    }.items() <= (reasons.items())
    assert {number for number, reason in reasons.items() if reason == "bad value"} >= {5, 6, 7, 8, 9}
    assert skipped == [Skipped(f"{file}:10", "no values")]


def test_records_that_were_extracted_are_seeds(write: Write) -> None:
    row = {
        "url": "http://a.example/1",
        "wrapper": "inns",
        "version": 2,
        "values": {"name": ["Oak"], "phone": ["1", "2"], "fax": []},
        "confidence": {"name": [0.9], "phone": [0.99, 0.7], "fax": []},
        "provenance": {},
    }
    found = Seed({"name": ("Oak",), "phone": ("1", "2")}, "out", "http://a.example/1", 0.7)
    assert read(write("out.jsonl", json.dumps(row)))[0] == [found]
    assert seed_of({**row, "confidence": None}, "b") == Seed(found.values, "b", found.url)


class Unequal:
    """Like the gap of pandas, which refuses to be compared."""

    def __ne__(self, other: object) -> bool:
        raise TypeError

    __hash__ = None  # type: ignore[assignment]


def test_any_mapping_is_a_seed() -> None:
    record = MappingProxyType(
        {
            "name": "Oak",
            4.0: "number",
            "4": ["text", "number"],
            None: "gap",
            math.nan: "gap",
            " ": "no name",
            "_id": 7,
            "_confidence": math.nan,
            "_source": None,
            "rooms": np.float32(4),
            "stars": np.float32(4.1),
            "beds": np.float32("nan"),
            "open": np.bool_(1),
            "tags": np.array(["b", "a"]),
            "marks": {"b", "a"},
            "seen": Unequal(),
            "price": Decimal("sNaN"),
            "long": 10**5_000,
            "address": MappingProxyType({"": 1, None: 2, 5: "x"}),
        }
    )
    assert seed_of(record) == Seed(
        {
            "name": ("Oak",),
            "4": ("number", "text"),
            "rooms": ("4",),
            "stars": ("4.1",),
            "open": ("true",),
            "tags": ("b", "a"),
            "marks": ("a", "b"),
            "address.5": ("x",),
        }
    )
    assert seed_of({"name": "Oak", "_source": "b", "_confidence": Decimal("0.5")}, "a") == Seed(
        {"name": ("Oak",)}, "b", "", 0.5
    )


@pytest.mark.parametrize("record", [None, 3, "name", ["name"], {"_url": 3}, {"_confidence": "2"}])
def test_what_is_no_record_is_told_in_a_sentence(record: Any) -> None:
    with pytest.raises(UsageError, match=r"^[^.]* must be [^.]*, not [^.]*\.$"):
        seed_of(record)


def test_a_record_within_itself_is_told() -> None:
    record: dict[str, object] = {}
    record["name"] = [record]
    with pytest.raises(UsageError, match="nested too deeply"):
        seed_of(record)


KEYS = st.none() | st.floats() | st.text()
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.decimals()),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)
READ_KEYS = st.sampled_from(["_source", "_url", "_confidence", "_x", "url", "wrapper", "values"])


@given(st.dictionaries(READ_KEYS | KEYS, VALUES))
def test_no_mapping_makes_it_crash(record: dict[Any, object]) -> None:
    try:
        seed = seed_of(record)
    except UsageError:
        return
    assert all(name and texts and all(texts) for name, texts in seed.values.items())
    assert 0 <= seed.confidence <= 1


def test_parquet_has_lists_times_and_numbers(tmp_path: Path) -> None:
    file = tmp_path / "inns.parquet"
    moment = datetime(2025, 3, 1, 12, 30, tzinfo=UTC)
    table = pa.table(
        {
            "name": ["Oak", None, "Elm"],
            "cuisine": pa.array([["Thai", "Greek"], [], None]),
            "rooms": pa.array([3, None, None], pa.float64()),
            "price": pa.array([Decimal("12.50"), None, None]),
            "opened": pa.array([date(2020, 1, 2), None, None]),
            "seen": pa.array([moment, None, None], pa.timestamp("ns", "UTC")),
            "raw": pa.array([b"text", b"", b"\xff\xfe"]),
            "geo": pa.array([{"lat": 1}, None, None]),
        }
    )
    pq.write_table(table, file)
    seeds, failures, skipped = read(str(file))
    assert [seed.values for seed in seeds] == [
        {
            "name": ("Oak",),
            "cuisine": ("Thai", "Greek"),
            "rooms": ("3",),
            "price": ("12.50",),
            "opened": ("2020-01-02",),
            "seen": ("2025-03-01 12:30:00+00:00",),
            "raw": ("text",),
            "geo.lat": ("1",),
        },
        {"name": ("Elm",)},
    ]
    assert (failures, skipped) == ([], [Skipped(f"{file}, row 2", "no values")])


def test_a_cell_of_parquet_that_is_no_text_costs_its_row(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    names = pa.array([b"Oak", b"\xff", b"Elm"]).view(pa.string())
    pq.write_table(pa.table({"name": names}), file)
    seeds, failures, _ = read(str(file))
    assert [seed.values["name"] for seed in seeds] == [("Oak",), ("Elm",)]
    assert [(failure.url, failure.reason) for failure in failures] == [(f"{file}, row 2", "bad value")]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    file = tmp_path / "inns.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute('CREATE TABLE "My inns" (name TEXT, "no. of rooms" INTEGER, opened DATE)')
        rows = [("Oak", 3, "2020-01-02"), ("Elm", "many", "soon"), (None, None, "")]
        connection.executemany('INSERT INTO "My inns" VALUES (?, ?, ?)', rows)
        connection.execute('CREATE VIEW inns AS SELECT name FROM "My inns"')
    return file


def test_a_table_of_sqlite(database: Path) -> None:
    seeds, failures, skipped = read(f"sqlite:///{database}#My inns")
    assert seeds == [
        Seed({"name": ("Oak",), "no. of rooms": ("3",), "opened": ("2020-01-02",)}, "My inns"),
        Seed({"name": ("Elm",), "no. of rooms": ("many",), "opened": ("soon",)}, "My inns"),
    ]
    assert (failures, skipped) == ([], [Skipped("My inns, row 3", "no values")])
    assert [seed.values["name"] for seed in read(f"sqlite:///{database}#main.inns")[0]] == [
        ("Oak",),
        ("Elm",),
    ]


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        ("#none", "There is no table none in .*: there are My inns, inns"),
        ("", "Name the table"),
        ("#", "Name"),
    ],
)
def test_a_table_must_be_named(database: Path, ending: str, message: str) -> None:
    with pytest.raises(SiteloomError, match=message):
        read_seeds(f"sqlite:///{database}{ending}")


def test_a_file_that_is_no_database(write: Write) -> None:
    with pytest.raises(SourceError, match="cannot be read: file is not a database"):
        read_seeds(f"sqlite:///{write('a.db', 'not a database' * 100)}#t")


def test_a_journal_beside_a_database_has_no_file_removed(database: Path) -> None:
    victim = database.parent / "victim"
    victim.write_text("precious")
    write_journal(database, victim)
    with pytest.raises(SourceError, match=r"inns\.db-journal names another file, which SQLite would remove"):
        read_seeds(f"sqlite:///{database}#inns")
    assert victim.exists()


def test_a_view_of_someone_else_calls_nothing_that_does_harm(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE VIEW bad AS SELECT regexp('(a+)+b', 'aaa') AS name")
    with pytest.raises(SourceError, match="unsafe use of regexp"):
        list(read_seeds(f"sqlite:///{database}#bad"))


def test_a_table_of_postgresql(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE SCHEMA old")
        connection.execute("CREATE TABLE old.inns (name text, cuisine text[], price numeric, more jsonb)")
        connection.execute("""INSERT INTO old.inns VALUES ('Oak', '{Thai,Greek}', 12.50, '{"a": [1, 2]}')""")
    (seed,), failures, skipped = read(f"{postgres_url}#old.inns")
    assert seed.values == {
        "name": ("Oak",),
        "cuisine": ("Thai", "Greek"),
        "price": ("12.50",),
        "more.a": ("1", "2"),
    }
    assert (seed.source, failures, skipped) == ("inns", [], [])


def test_no_password_is_shown() -> None:
    assert without_passwords("postgresql://me:secret@host/name#inns") == "postgresql://me:***@host/name#inns"
    assert without_passwords("inns.csv") == "inns.csv"
    as_option = without_passwords("postgresql://host/name?user=me&password=sec#ret&sslmode=off#inns")
    assert as_option == "postgresql://host/name?user=me&password=***&sslmode=off#inns"
    assert (
        without_passwords("postgresql://h/name?password=sec#ret#inns")
        == "postgresql://h/name?password=***#inns"
    )
    with pytest.raises(SourceError) as unreached:
        read_seeds("postgresql://127.0.0.1:1/name?password=secret#inns")
    assert "secret" not in str(unreached.value)
    with pytest.raises(UsageError) as caught:
        read_seeds("postgresql://me:secret@host:port/name#inns")
    assert "secret" not in str(caught.value)
    with pytest.raises(SourceError) as refused:
        read_seeds("postgresql://me:secret@127.0.0.1:1/name#inns")
    assert str(refused.value).startswith("The database postgresql://me:***@127.0.0.1:1/name cannot be read")


def test_an_address_that_cannot_be_is_told(database: Path) -> None:
    with pytest.raises(UsageError, match="The address of the database cannot be read"):
        read_seeds(f"sqlite://me:secret@/{database}#inns")


def test_several_values_in_one_text(write: Write) -> None:
    file = write("a.csv", "name,cuisine,tags\nOak;Elm,Thai; Greek ;;Thai,a|b\nFir, ; ,\n")
    assert values(file, several={"cuisine": ";", "tags": "|"}) == [
        {"name": ("Oak;Elm",), "cuisine": ("Thai", "Greek"), "tags": ("a", "b")},
        {"name": ("Fir",)},
    ]


def test_attributes_get_other_names_all_at_once() -> None:
    seed = Seed({"a": ("1",), "b": ("2", "1"), "c": ("3",)}, "s", "u", 0.5)
    swapped = reshaped(seed, {}, {"a": "b", "b": "a"})
    assert swapped == Seed({"b": ("1",), "a": ("2", "1"), "c": ("3",)}, "s", "u", 0.5)
    assert reshaped(seed, {}, {"a": "b"}).values == {"b": ("1", "2"), "c": ("3",)}
    assert reshaped(seed, {"b": "2"}, {}).values == {"a": ("1",), "b": ("1",), "c": ("3",)}


# Dashes and words that say that there is no value are what other tests are about.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Pd"]), max_size=8).filter(
    lambda text: " ".join(text.split()).lower() not in ("n/a", "#n/a", "<na>", "nan", "null", "none")
)


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2), max_size=6), st.sampled_from(",;\t"))
def test_what_is_written_as_csv_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], delimiter: str
) -> None:
    file = tmp_path_factory.mktemp("csv") / "a.csv"
    with file.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out, delimiter=delimiter).writerows([["name", "phone"], *rows])
    seeds, failures, skipped = read(str(file))
    normal = [[" ".join(cell.split()) for cell in row] for row in rows]
    assert [[*seed.values.get("name", ("",)), *seed.values.get("phone", ("",))] for seed in seeds] == [
        row for row in normal if any(row)
    ]
    assert failures == []
    assert len(seeds) + len(skipped) == len(rows)


@given(st.binary(max_size=200), st.sampled_from(["a.csv", "a.jsonl", "a.parquet"]))
def test_no_file_makes_it_crash(tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str) -> None:
    file = tmp_path_factory.mktemp("any") / name
    file.write_bytes(content)
    try:
        seeds, _, _ = read(str(file))
    except SourceError:
        return
    assert all(seed.values for seed in seeds)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "sqlite"])
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, kind: str) -> None:
    def peak(count: int) -> int:
        location = _written(tmp_path / f"{count}.{kind}", count)
        tracemalloc.start()
        try:
            assert sum(1 for _ in read_seeds(location)) == count
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)  # what is loaded once
    assert peak(30_000) < 2 * peak(3_000) + 100_000


def _written(file: Path, count: int) -> str:
    rows: Iterator[tuple[str, str]] = ((f"name {number}", "x" * 50) for number in range(count))
    if file.suffix == ".parquet":
        pq.write_table(pa.table({"name": [f"name {number}" for number in range(count)]}), file)
    elif file.suffix == ".sqlite":
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("CREATE TABLE inns (name, text)")
            connection.executemany("INSERT INTO inns VALUES (?, ?)", rows)
        return f"sqlite:///{file}#inns"
    else:
        with file.open("w", encoding="utf-8", newline="") as out:
            if file.suffix == ".csv":
                csv.writer(out).writerows([("name", "text"), *rows])
            else:
                out.writelines(json.dumps({"name": name, "text": text}) + "\n" for name, text in rows)
    return str(file)


def test_files_elsewhere_are_read_as_those_here(tmp_path: Path, memory: Any) -> None:
    content = b"name\nOak\nElm\nA,B\n"
    memory.pipe_file("/known/inns.csv", content)
    (tmp_path / "inns.csv").write_bytes(content)
    with file_server(tmp_path) as web:
        addresses = {
            "memory://known/inns.csv": "memory://known/inns.csv",
            f"file://{tmp_path}/inns.csv": f"{tmp_path}/inns.csv",
            f"{web}/inns.csv?key=s3cret": f"{web}/inns.csv",
        }
        for location, shown in addresses.items():
            problems: list[Failure | Skipped] = []
            seeds = list(read_seeds(location, on_problem=problems.append))
            assert [(seed.values["name"], seed.source) for seed in seeds] == [
                (("Oak",), "inns"),
                (("Elm",), "inns"),
            ]
            assert [one.url for one in problems] == [f"{shown}:4"]
    with pytest.raises(SourceError, match=r"There is no file memory://known/none\.csv: check the address"):
        read_seeds("memory://known/none.csv")
    with pytest.raises(SourceError, match=r"^https://a\.example/inns is on the web, and no \.csv, \.tsv, "):
        read_seeds("https://a.example/inns?key=s3cret")
