"""Records read back as a table of Arrow, and what pandas, Polars and DuckDB make of it."""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from torture.warm import run_fresh

import siteloom
from siteloom.core.errors import MissingExtra, SourceError, StoreError, UsageError
from siteloom.core.model import Example, Page, Provenance, Record
from siteloom.core.values.value_types import Image, Price, Rating
from siteloom.extraction.record_formats import open_records, record_tables
from siteloom.extraction.record_rows import Row, lowest_confidence, record_row
from siteloom.extraction.shard_extraction import ExtractedRow
from siteloom.learning.induction.learner import learn_wrapper
from siteloom.operations.read_records import read_records
from siteloom.store.store import Store
from tests.extraction.records import row, rows

ATTRIBUTES = ("name", "price", "url")


def write(path: Path, given_rows: Sequence[Row], attributes: Sequence[str] = ATTRIBUTES) -> Path:
    with_pages = any("pages" in each for each in given_rows)
    with open_records(str(path), attributes, with_pages=with_pages) as writer:
        for each in given_rows:
            writer.write(each)
    return path


def typed_row(url: str, **typed: Sequence[object]) -> Row:
    """A row whose values are typed; the texts do not matter."""
    return record_row(
        Record(
            url,
            {name: tuple(map(str, values)) for name, values in typed.items()},
            {name: tuple(values) for name, values in typed.items()},
            {name: tuple(Provenance("r#1", "//p", "/p[1]", 0.9) for _ in v) for name, v in typed.items()},
        ),
        "shop",
        1,
    )


SHOP = [
    row("https://shop.example/1", 0.75, name=["Lamp"], colour=["red", "blue"]),
    row("https://shop.example/2", 0.5, name=["Desk"], price=["$12"]),
]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_row_for_each_record_and_a_column_for_each_attribute(tmp_path: Path, suffix: str) -> None:
    table = read_records(write(tmp_path / f"records{suffix}", SHOP, ("name", "colour", "price")))
    assert table.to_pylist() == [
        {
            "url": "https://shop.example/1",
            "wrapper": "shop",
            "version": 1,
            "name": "Lamp",
            "colour": "red | blue",
            "price": None,
            "confidence": 0.75,
            "duplicate_of": None,
        },
        {
            "url": "https://shop.example/2",
            "wrapper": "shop",
            "version": 1,
            "name": "Desk",
            "colour": None,
            "price": "$12",
            "confidence": 0.5,
            "duplicate_of": None,
        },
    ]


def test_the_type_of_a_column_does_not_follow_from_the_records(tmp_path: Path) -> None:
    one = write(tmp_path / "one.jsonl", SHOP[1:])
    both = write(tmp_path / "both.jsonl", SHOP)
    for file in (one, both):
        schema = read_records(file, several=["colour"]).schema
        assert schema.field("colour").type == pa.list_(pa.string())
        assert schema.field("name").type == pa.string()
    assert read_records(both, several=["colour"])["colour"].to_pylist() == [["red", "blue"], None]


def test_several_sources_become_one_table(tmp_path: Path) -> None:
    first = write(tmp_path / "first.jsonl", SHOP[:1])
    second = write(tmp_path / "second.parquet", SHOP[1:])
    table = read_records(str(first), second)
    assert table["url"].to_pylist() == ["https://shop.example/1", "https://shop.example/2"]
    assert table["price"].to_pylist() == [None, "$12"]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_typed_values_are_columns_of_their_types(tmp_path: Path, suffix: str) -> None:
    typed = typed_row(
        "https://shop.example/1",
        price=[Price(Decimal("12.50"), "EUR")],
        weight=[Decimal("4.5")],
        since=[dt.datetime(2011, 4, 3, 17, 30, tzinfo=dt.UTC)],
        photo=[Image("https://shop.example/a.jpg", "A lamp")],
        stars=[Rating(Decimal(4), Decimal(5))],
        page=["https://shop.example/1"],
    )
    file = write(tmp_path / f"r{suffix}", [typed, row("https://shop.example/2")], tuple(typed["values"]))
    types: dict[str, Any] = {
        "price": "price",
        "weight": "number",
        "since": "date",
        "photo": "image",
        "stars": "rating",
        "page": "url",
    }
    table = read_records(file, types=types)
    found, without = table.select(table.column_names[3:-2]).to_pylist()
    assert found == {
        "price": 12.5,
        "price_currency": "EUR",
        "weight": 4.5,
        "since": dt.date(2011, 4, 3),
        "photo": "https://shop.example/a.jpg",
        "photo_alt": "A lamp",
        "stars": 4.0,
        "stars_best": 5.0,
        "page": "https://shop.example/1",
    }
    assert set(without.values()) == {None}
    assert read_records(file)["price"].to_pylist() == [typed["values"]["price"][0], None]


def test_several_typed_values_are_lists_if_asked_for_and_refused_if_not(tmp_path: Path) -> None:
    file = write(tmp_path / "r.jsonl", [typed_row("https://a.example/", size=[Decimal(4), None])])
    table = read_records(file, several=["size"], types={"size": "number"})
    assert table["size"].to_pylist() == [[4.0, None]]
    with pytest.raises(UsageError, match=r"^https://a.example/ has 2 values of size: name it in several"):
        read_records(file, types={"size": "number"})


def test_what_is_not_of_the_type_asked_for_is_told(tmp_path: Path) -> None:
    file = write(tmp_path / "r.jsonl", [typed_row("https://a.example/", size=[Decimal(4)])])
    for wrong in ("price", "date", "image"):
        with pytest.raises(UsageError, match=rf"^The size of https://a.example/ is no {wrong}: "):
            read_records(file, types={"size": wrong})
    with pytest.raises(UsageError, match=r"^name has no typed value in these records"):
        read_records(write(tmp_path / "s.jsonl", SHOP), types={"name": "number"})
    with pytest.raises(UsageError, match=r"^'money' is no type: there are text, number, price"):
        read_records(file, types={"size": "money"})  # type: ignore[dict-item]


def test_attributes_that_are_asked_for_are_columns_even_without_a_value(tmp_path: Path) -> None:
    table = read_records(write(tmp_path / "r.jsonl", []), several=["tags"], types={"price": "price"})
    assert table.num_rows == 0
    assert table.column_names == [
        *("url", "wrapper", "version", "price", "price_currency", "tags", "confidence", "duplicate_of")
    ]


def test_an_attribute_with_the_name_of_another_column_is_told_apart(tmp_path: Path) -> None:
    file = write(tmp_path / "r.jsonl", [row("https://a.example/", url=["b"], Wrapper=["c"])])
    (found,) = read_records(file).to_pylist()
    assert (found["url"], found["values.url"], found["values.Wrapper"]) == ("https://a.example/", "b", "c")


def test_joined_records_have_the_pages_they_were_made_of(tmp_path: Path) -> None:
    pages = [{"url": f"https://a.example/{n}", "wrapper": "shop", "version": 1} for n in "ab"]
    joined = {**row("https://a.example/a", name=["Lamp"]), "pages": pages}
    for file in ("r.jsonl", "r.parquet"):
        table = read_records(write(tmp_path / file, [joined], ("name",)))
        assert table["pages"].to_pylist() == [["https://a.example/a", "https://a.example/b"]]


@given(rows(ATTRIBUTES))
def test_json_lines_and_parquet_give_the_same_table(given_rows: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines, parquet = (
            read_records(write(Path(folder, name), given_rows), several=ATTRIBUTES)
            for name in ("r.jsonl", "r.parquet")
        )
    assert lines.equals(parquet)
    assert lines["confidence"].to_pylist() == [lowest_confidence(each) for each in given_rows]
    for attribute, column in (("name", "name"), ("url", "values.url")):
        assert lines[column].to_pylist() == [each["values"].get(attribute) for each in given_rows]


def test_rows_beyond_one_batch_are_all_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("siteloom.extraction.records_to_arrow._ROWS_AT_A_TIME", 2)
    many = [row(f"https://a.example/{n}", **{f"attribute{n % 3}": [str(n)]}) for n in range(7)]
    table = read_records(write(tmp_path / "r.jsonl", many))
    assert table["url"].to_pylist() == [each["url"] for each in many]
    assert table["attribute1"].to_pylist() == [None, "1", None, None, "4", None, None]


def bulk_folder(folder: Path) -> Path:
    table = record_tables(("name", "colour", "price"))
    for number, each in enumerate(SHOP):
        site = folder / f"site=shop{number}.example"
        site.mkdir(parents=True)
        pq.write_table(table([each]), site / "0.parquet")
        (site / ".0.parquet").write_bytes(b"half")  # as a killed process leaves it
    return folder


def test_the_folder_of_a_run_of_an_engine_is_read(tmp_path: Path) -> None:
    folder = bulk_folder(tmp_path / "run")
    with pytest.raises(SourceError, match="its run is not done: start the same command again"):
        read_records(folder)
    (folder / "_SUCCESS").write_text("{}", encoding="utf-8")
    for name in (folder, f"{folder}/", f"file://{folder}", f"local://{folder}"):
        assert read_records(name)["name"].to_pylist() == ["Lamp", "Desk"]


def test_the_folder_of_a_run_leads_nowhere_else(tmp_path: Path) -> None:
    """It may be unpacked from what someone else has made."""
    private, folder = bulk_folder(tmp_path / "private"), tmp_path / "unpacked"
    folder.mkdir()
    (folder / "_SUCCESS").write_text("{}", encoding="utf-8")
    (folder / "site=a").mkdir()
    (folder / "site=a/0.parquet").symlink_to(private / "site=shop0.example/0.parquet")
    with pytest.raises(SourceError, match="it leads out of"):
        read_records(folder)


def test_a_line_without_end_is_told(tmp_path: Path) -> None:
    with (tmp_path / "a.jsonl").open("wb") as file:
        file.truncate(10**12)  # which takes no room on the disk
    with pytest.raises(SourceError, match="line 1 has more than 300,000,000 characters"):
        read_records(tmp_path / "a.jsonl")


def test_a_value_that_is_kept_once_does_not_become_many(tmp_path: Path) -> None:
    """Some hundred bytes that would be 300 MB in a single record."""
    text = pa.array(["x" * 3_000_000] * 100)
    values = pa.StructArray.from_arrays(
        [pa.ListArray.from_arrays(pa.array([0, 100], pa.int32()), text)], ["name"]
    )
    columns = {"url": ["http://a.example/"], "wrapper": ["w"], "duplicate_of": [None], "values": values}
    pq.write_table(
        pa.table(columns), tmp_path / "a.parquet", compression="zstd", dictionary_pagesize_limit=1 << 30
    )
    with pytest.raises(SourceError, match="a row has over 64,000,000 bytes"):
        read_records(tmp_path / "a.parquet")


def test_files_and_folders_elsewhere_are_read(tmp_path: Path, memory: Any) -> None:
    for name in ("r.jsonl", "r.parquet"):
        memory.pipe_file(f"/bucket/{name}", write(tmp_path / name, SHOP).read_bytes())
    memory.put(str(bulk_folder(tmp_path / "run.v2")), "/bucket/run.v2", recursive=True)
    memory.pipe_file("/bucket/run.v2/_SUCCESS", b"{}")
    for name in ("r.jsonl", "r.parquet", "run.v2", "run.v2/"):
        assert read_records(f"memory://bucket/{name}")["name"].to_pylist() == ["Lamp", "Desk"]
    memory.pipe_file("/bucket/r.jsonl", b"{}")
    for name, message in {
        "r.jsonl": "Line 1 of memory://bucket/r.jsonl is no record: give a file that siteloom extract -o "
        "wrote.",
        "no.parquet": "There is no file memory://bucket/no.parquet: check the address.",
        "no": "The folder memory://bucket/no has no records that can be read: it is no workspace, and no run "
        "wrote it.",
    }.items():
        with pytest.raises(SourceError) as told:
            read_records(f"memory://bucket/{name}")
        assert str(told.value) == message


def test_the_records_of_a_workspace_are_those_that_hold_now(sqlite_store: Store) -> None:
    store = sqlite_store
    with pytest.raises(StoreError, match="No records were extracted yet"):
        read_records(store.folder)
    for names in (["Old"], ["Lamp", "Desk"]):
        with store.extracting({}, str(names)) as run:
            found = [row(f"https://shop.example/{n}", name=[n], size=["4"]) for n in names]
            lines = [ExtractedRow(each["url"], "shop", None, json.dumps(each)) for each in found]
            run.commit(0, lines, [], {})
    assert read_records(store.folder)["name"].to_pylist() == ["Lamp", "Desk"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r.csv", "url,name\n", "r.csv is a flat table already: read it with pandas.read_csv"),
        ("wrapper.json", "{}", r"wrapper.json is no file of records: give a .jsonl or .parquet file [^()]+$"),
        ("r.jsonl", "{}\n", "^Line 1 of .*r.jsonl is no record: give a file that siteloom extract"),
        ("r.jsonl", '\n{"url": \n', "^Line 2 of .*r.jsonl is no JSON: "),
        ("r.parquet", "PAR1", "^.*r.parquet cannot be read: "),
    ],
)
def test_what_is_no_file_of_records_is_told(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(SourceError, match=message):
        read_records(tmp_path / name)


def test_a_table_of_something_else_is_told(tmp_path: Path) -> None:
    pq.write_table(pa.table({"url": ["a"], "html": ["b"]}), tmp_path / "pages.parquet")
    with pytest.raises(SourceError, match="holds no records, for it has no column wrapper: it has url, html"):
        read_records(tmp_path / "pages.parquet")


def test_mistakes_of_the_caller_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a source"):
        read_records()
    with pytest.raises(SourceError, match="There is no file or folder nothing"):
        read_records("nothing.jsonl")
    with pytest.raises(
        SourceError, match=r"^postgresql://me:\*\*\*@host/name is a database: read its table with pandas"
    ):
        read_records("postgresql://me:s3cret@host/name")
    with pytest.raises(SourceError, match=r"^sqlite:///r\.db is a database: read its table with pandas"):
        read_records("sqlite:///r.db")
    with pytest.raises(SourceError, match="it is no workspace, and no run wrote it"):
        read_records(tmp_path)
    with pytest.raises(UsageError, match=r"several must be a list of names, such as \['name'\]"):
        read_records("r.jsonl", several="name")


def test_pandas_polars_and_duckdb_take_the_table(tmp_path: Path) -> None:
    pages = [
        Page.from_text(f"https://shop.example/{number}", f"<h1>Thing {number}</h1><p>Price: <b>{price}</b>")
        for number, price in enumerate(("$12.99", "$79.00", "$240.00", "$55.50"))
    ]
    wrapper = learn_wrapper([Example(pages[0], {"name": ["Thing 0"], "price": ["$12.99"]})], pages).wrapper
    found = [record_row(record, "shop", None) for page in pages for record in wrapper.extract_all(page)]
    file = write(tmp_path / "records.jsonl", found, ("name", "price"))
    records = siteloom.read_records(file, types={"price": "price"})

    frame = records.to_pandas()
    assert frame["price"].sum() == pytest.approx(387.49)
    assert frame.set_index("name").loc["Thing 2", "price_currency"] == "$"

    lazy = pl.from_arrow(records)
    assert isinstance(lazy, pl.DataFrame)
    assert lazy.filter(pl.col("price") > 60)["name"].to_list() == ["Thing 1", "Thing 2"]

    # In a process of its own, as DuckDB complains at length when a process that has used it ends.
    query = """
import duckdb, siteloom
records = siteloom.read_records("records.jsonl", types={"price": "price"})
print(duckdb.execute("select name from records where price > 60 order by price desc").fetchall())
"""
    assert run_fresh(["-c", query], tmp_path, os.environ).stdout == "[('Thing 2',), ('Thing 1',)]\n"


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'siteloom\[parquet\]'"):
        read_records("records.jsonl")
