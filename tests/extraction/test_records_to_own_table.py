"""Rows of records in a table of the user's own: those of the same URL are replaced, all else stays."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, text
from torture.postgres import free_port

from siteloom.core.database import postgres_url as database_url
from siteloom.core.errors import OutputError, UsageError
from siteloom.core.model import Attribute
from siteloom.extraction.record_formats import check_destination, open_records
from siteloom.extraction.record_rows import Row, common_schema
from siteloom.extraction.records_to_own_table import own_table
from tests.extraction.records import row, rows
from tests.property_tests import fewer_examples

SCHEMA = {
    "name": Attribute(type="text"),
    "price": Attribute(type="price"),
    "weight": Attribute(type="number"),
    "rating": Attribute(type="rating"),
    "published": Attribute(type="date"),
    "photo": Attribute(type="image"),
    "tags": Attribute(type="text", multi=True),
    "sizes": Attribute(type="number", multi=True),
}
FIXED = [
    "url",
    "position",
    "wrapper",
    "version",
    "confidence",
    "duplicate_of",
    "record",
    "first_written",
    "last_written",
]
LIST = "shop"  # what `row` calls the wrapper


@pytest.fixture
def table(postgres_url: str) -> str:
    """The address of a table that is not there yet."""
    return f"{postgres_url}/products"


def engine_of(address: str) -> Engine:
    named = own_table(address)
    return sqlalchemy.create_engine(
        named.url if named is not None else database_url(address), poolclass=sqlalchemy.NullPool
    )


def write(
    address: str,
    given_rows: Sequence[Row],
    schema: Mapping[str, Attribute] = SCHEMA,
    lists: Sequence[str] = (),
) -> None:
    with open_records(address, list(schema), schema=schema, lists=lists) as writer:
        for each in given_rows:
            writer.write(each)


def found(address: str, columns: str = "*", name: str = "products") -> list[dict[str, Any]]:
    with engine_of(address).connect() as connection:
        order = "ORDER BY url" + (", position" if "position" in columns or columns == "*" else "")
        return [
            dict(each._mapping) for each in connection.execute(text(f"SELECT {columns} FROM {name} {order}"))
        ]


def execute(address: str, *statements: str) -> None:
    with engine_of(address).begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def typed_row(url: str, **typed: list[object]) -> Row:
    return {
        **row(url, **{name: [f"{name} as seen"] * len(values) for name, values in typed.items()}),
        "typed": typed,
    }


def test_a_table_is_made_with_columns_of_the_attributes_types(table: str) -> None:
    one = typed_row(
        "http://a.example/1",
        price=[{"amount": "49.90", "currency": "EUR"}],
        weight=["1.25"],
        rating=[{"value": "4.5", "best": "5"}],
        published=["2011-03-04T10:00:00"],
        photo=[{"url": "http://a.example/1.png", "alt": "a"}],
        sizes=["1", "2.5"],
    )
    one["values"] |= {"name": ["Oak lamp"], "tags": ["new", "oak"]}
    write(table, [one])
    (read,) = found(table)
    assert list(read) == [*FIXED, *SCHEMA, "price_currency"]
    assert {name: read[name] for name in [*SCHEMA, "price_currency"]} == {
        "name": "Oak lamp",
        "price": Decimal("49.90"),
        "price_currency": "EUR",
        "weight": Decimal("1.25"),
        "rating": Decimal("4.5"),
        "published": dt.date(2011, 3, 4),
        "photo": "http://a.example/1.png",
        "tags": ["new", "oak"],
        "sizes": [Decimal(1), Decimal("2.5")],
    }
    assert (read["url"], read["position"], read["wrapper"], read["version"]) == (
        "http://a.example/1",
        1,
        "shop",
        1,
    )
    assert read["record"] == one
    with engine_of(table).connect() as connection:
        key = sqlalchemy.inspect(connection).get_pk_constraint("products")["constrained_columns"]
    assert key == ["url", "position"]


def test_what_cannot_be_read_as_its_type_is_in_the_record_alone(table: str) -> None:
    one = {
        **row("u", price=["call us"], weight=["heavy"], sizes=["1", "x"]),
        "typed": {"price": [None], "sizes": ["1", None]},
    }
    write(table, [one])
    (read,) = found(table)
    assert (read["price"], read["price_currency"], read["weight"]) == (None, None, None)
    assert read["sizes"] == [Decimal(1), None]
    assert read["record"]["values"]["price"] == ["call us"]


def test_rows_of_the_same_url_are_replaced_and_others_stay(table: str) -> None:
    write(table, [row("a", name=["old a"]), row("b", name=["old b"])])
    before = found(table, "url, name, first_written, last_written")
    write(table, [row("c", name=["new c"]), row("a", name=["new a"])])
    after = found(table, "url, name, first_written, last_written")
    assert [(one["url"], one["name"]) for one in after] == [("a", "new a"), ("b", "old b"), ("c", "new c")]
    assert after[0]["first_written"] == before[0]["first_written"]
    assert after[0]["last_written"] > before[0]["last_written"]
    assert after[1] == before[1]


def test_records_of_a_list_page_have_positions_and_go_when_they_are_gone(table: str) -> None:
    write(table, [row("l", name=[name]) for name in "abc"] + [row("m", name=["x"])], lists=[LIST])
    assert [(one["url"], one["position"], one["name"]) for one in found(table)] == [
        ("l", 1, "a"), ("l", 2, "b"), ("l", 3, "c"), ("m", 1, "x"),
    ]  # fmt: skip
    write(table, [row("l", name=["b"])], lists=[LIST])
    assert [(one["url"], one["position"], one["name"]) for one in found(table)] == [
        ("l", 1, "b"),
        ("m", 1, "x"),
    ]


def test_of_a_page_that_comes_twice_the_last_one_counts(table: str) -> None:
    write(table, [row("a", name=["1"]), row("a", name=["2"]), row("b"), row("a", name=["3"])])
    assert [(one["url"], one["name"]) for one in found(table)] == [("a", "3"), ("b", None)]
    lists = [row("a", name=["x"]), row("a", name=["y"]), row("b"), row("a", name=["z"])]
    write(table, lists, lists=[LIST])
    assert [(one["url"], one["name"]) for one in found(table)] == [("a", "z"), ("b", None)]


def test_many_rows_are_all_written(table: str) -> None:
    write(table, [row(f"u{number:04}") for number in range(1_234)])
    assert [one["url"] for one in found(table, "url")] == [f"u{number:04}" for number in range(1_234)]


def test_new_attributes_get_columns(table: str) -> None:
    write(table, [row("a", name=["x"])], {"name": Attribute()})
    write(
        table,
        [row("b", **{"%(a)s:b": ["y"], 'quo"ted': ["z"]})],
        {"%(a)s:b": Attribute(), 'quo"ted': Attribute()},
    )
    first, second = found(table)
    assert (first["name"], first["%(a)s:b"]) == ("x", None)
    assert (second["name"], second["%(a)s:b"], second['quo"ted']) == (None, "y", "z")


def test_any_attribute_has_its_column(postgres_url: str) -> None:
    any_text = st.characters(exclude_categories=())
    any_attribute = st.builds(
        Attribute, multi=st.booleans(), type=st.sampled_from(["text", "number", "price", "date", "image"])
    )

    @given(st.dictionaries(st.text(any_text, max_size=80), any_attribute, max_size=4))
    @fewer_examples(3)
    def has_a_column(schema: dict[str, Attribute]) -> None:
        execute(postgres_url, "DROP TABLE IF EXISTS products")
        schema = schema | {"url": Attribute(), "ctid": Attribute(), "x" * 70: Attribute(type="price")}
        write(f"{postgres_url}/products", [row("u", **{name: ["x"] for name in schema})], schema)
        (read,) = found(f"{postgres_url}/products")
        prices = sum(one.type == "price" for one in schema.values())
        assert len(read) == len(FIXED) + len(schema) + prices
        write(f"{postgres_url}/products", [row("v")], schema)

    has_a_column()


def test_any_row_is_taken(postgres_url: str) -> None:
    any_text = st.characters(exclude_categories=())
    schema = {"name": Attribute(), "price": Attribute(type="price", multi=True)}

    @given(rows(tuple(schema), any_text))
    @fewer_examples(3)
    def is_taken(given_rows: list[Row]) -> None:
        for each in given_rows:  # typed values of any type stand in no real record
            each["typed"].pop("price", None)
        execute(postgres_url, "DROP TABLE IF EXISTS products")
        write(f"{postgres_url}/products", given_rows, schema)
        assert len(found(f"{postgres_url}/products")) <= len(given_rows)

    is_taken()


# ---- tables that are there


def test_columns_of_the_users_own_are_respected(table: str) -> None:
    execute(
        table,
        'CREATE TABLE products (id serial, "URL" varchar(200) PRIMARY KEY, Price numeric(10, 2), note text, '
        "published timestamptz, name varchar(20)[], weight text, likes int NOT NULL DEFAULT 7, "
        "rating double precision, sizes real[], confidence real)",
        "INSERT INTO products (\"URL\", note) VALUES ('a', 'mine')",
    )
    check_destination(table)
    one = typed_row(
        "a",
        price=[{"amount": "1.50", "currency": "$"}],
        published=["2011-03-04T10:00:00"],
        weight=["1"],
        rating=[{"value": "4.25", "best": "5"}],
        sizes=["1.5", "2"],
    )
    one["values"]["name"] = ["Lamp"]
    write(table, [one])
    (read,) = found(table, '*, "URL" AS url').copy()
    assert (read["note"], read["likes"], read["id"]) == ("mine", 7, 1)
    assert (read["price"], read["weight"], read["name"]) == (Decimal("1.50"), "weight as seen", ["Lamp"])
    assert read["published"] == dt.datetime(2011, 3, 4, 10, tzinfo=dt.UTC)
    assert read["price_currency"] == "$"
    assert (read["rating"], read["sizes"]) == (4.25, [1.5, 2])
    assert "position" not in read


def test_a_column_of_text_takes_several_values_as_json(table: str) -> None:
    execute(table, "CREATE TABLE products (url text PRIMARY KEY, tags varchar(30), sizes text)")
    several = typed_row("a", sizes=["1", "2.5"])
    several["values"]["tags"] = ["new", "o\0ak"]
    write(table, [several, row("b", tags=["new"]), row("c")])
    assert [(one["tags"], one["sizes"]) for one in found(table, "url, tags, sizes")] == [
        ('["new", "o\N{REPLACEMENT CHARACTER}ak"]', '["sizes as seen", "sizes as seen"]'),
        ("new", None),
        (None, None),
    ]


def test_a_table_with_one_row_a_url_takes_no_lists(table: str) -> None:
    execute(table, "CREATE TABLE products (url text UNIQUE)")
    with pytest.raises(
        OutputError, match=r"The page l has 2 records, but the table products has one row a URL: "
    ):
        write(table, [row("l"), row("l")], lists=[LIST])
    assert found(table, "url") == []


def test_a_table_that_cannot_take_records_is_told_before_the_work(table: str) -> None:
    cases = {
        "url text": r"has no key by which records are known: make url, or url and position together, its",
        "link text PRIMARY KEY": r"has no key by which records are known",
        "url int PRIMARY KEY": r"The column url of the table products is integer, but records need text: ",
        "url text PRIMARY KEY, record int": r"The column record of the table products is integer, but",
        "url text PRIMARY KEY, sku text NOT NULL": r"The column sku of the table products must have a value",
        "url text PRIMARY KEY, wrapper text[]": r"The column wrapper .* is text\[\], but records need text",
    }
    for columns, message in cases.items():
        execute(table, "DROP TABLE IF EXISTS products", f"CREATE TABLE products ({columns})")
        with pytest.raises(OutputError, match=message) as told:
            check_destination(table)
        assert str(told.value).endswith(".")


def test_a_column_of_a_wrong_type_is_told_before_anything_is_written(table: str) -> None:
    cases = {
        "weight int": r"The column weight of the table products is integer, but records need numeric: ",
        "sizes numeric": r"The column sizes of the table products is numeric, but records need numeric\[\]: ",
        "name numeric": r"The column name of the table products is numeric, but records need text: ",
        "name colour": r"The column name of the table products is colour, but records need text: ",
        "published int": r"The column published of the table products is integer, but records need date: ",
        "name text GENERATED ALWAYS AS (url || '!') STORED": r"The column name .* is computed by",
    }
    execute(table, "CREATE TYPE colour AS ENUM ('red')")
    for column, message in cases.items():
        execute(
            table,
            "DROP TABLE IF EXISTS products",
            f"CREATE TABLE products (url text PRIMARY KEY, {column})",
        )
        with pytest.raises(OutputError, match=message), open_records(table, list(SCHEMA), schema=SCHEMA):
            pytest.fail("nothing should be written")


def test_what_is_too_large_for_a_column_is_refused_and_not_cut_off(table: str) -> None:
    execute(table, "CREATE TABLE products (url text PRIMARY KEY, name varchar(3), weight numeric(3, 1))")
    with pytest.raises(OutputError, match=r"The table products of .* cannot be written: value too long"):
        write(table, [row("a", name=["Lamp"])])
    with pytest.raises(
        OutputError, match=r"overflow \(A field with precision 3, scale 1 must round [^\n]*\)\.$"
    ):
        write(table, [typed_row("a", weight=["1000"])])
    assert found(table, "url") == []


def test_a_view_is_refused(table: str) -> None:
    execute(table, "CREATE VIEW products AS SELECT 'a' AS url")
    with pytest.raises(OutputError, match=r"products of .* is a view: give the name of a table"):
        check_destination(table)


def test_an_address_that_is_too_long_for_a_key_is_one_sentence(table: str) -> None:
    with pytest.raises(OutputError, match="has 3,000 bytes, but the key of the table products takes 2,600"):
        write(table, [row("h" * 3_000)])


# ---- schemas and addresses


def test_a_table_may_be_in_a_schema(postgres_url: str) -> None:
    with pytest.raises(OutputError, match=r"There is no schema shop in .*: make it first"):
        check_destination(f"{postgres_url}/shop.products")
    execute(postgres_url, "CREATE SCHEMA shop")
    check_destination(f"{postgres_url}/shop.products")
    for _ in range(2):
        write(f"{postgres_url}/shop.products", [row("a")])
    assert len(found(postgres_url, name="shop.products")) == 1


@pytest.mark.parametrize("path", ["name/", "name/a/b", "name/a.b.c", "name/.a", "name/a."])
def test_what_names_no_table_is_wrong_use(path: str) -> None:
    with pytest.raises(UsageError, match="names no table: it must look like postgresql://") as told:
        check_destination(f"postgresql://me:s3cret@host/{path}")
    assert "s3cret" not in str(told.value)


def test_a_name_that_postgresql_would_cut_off_is_wrong_use() -> None:
    for name in ("x" * 64, f"{'ä' * 32}.x"):
        with pytest.raises(
            UsageError, match=r"is too long for PostgreSQL, which takes 63 bytes: give a shorter"
        ):
            check_destination(f"postgresql://me@host/name/{name}")


def test_a_server_that_does_not_answer_is_told_before_the_work_and_no_password() -> None:
    for name in ("name", "name/table"):
        with pytest.raises(OutputError, match=r"^The table .* of .* cannot be written: .*refused") as told:
            check_destination(
                f"postgresql://me:s3cret@127.0.0.1:{free_port()}/{name}?password=s3cret&sslpassword=s3cret"
            )
        assert "s3cret" not in str(told.value)


def test_without_a_table_the_address_is_that_of_the_database(postgres_url: str) -> None:
    assert own_table(postgres_url) is None
    assert own_table("sqlite:///a/b.db") is None


# ---- whole or not at all


def write_and_raise(address: str) -> None:
    with open_records(address, list(SCHEMA), schema=SCHEMA) as writer:
        for number in range(1_000):
            writer.write(row(f"new {number}"))
        raise KeyboardInterrupt


def test_after_an_error_the_table_is_as_it_was(table: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_and_raise(table)
    with engine_of(table).connect() as connection:
        assert not sqlalchemy.inspect(connection).has_table("products")
    write(table, [row("old")], {"name": Attribute()})
    before = found(table)
    with pytest.raises(KeyboardInterrupt):
        write_and_raise(table)
    assert found(table) == before


def test_others_read_and_write_until_the_end(table: str) -> None:
    write(table, [row("old")])
    with open_records(table, list(SCHEMA), schema=SCHEMA) as writer:
        for number in range(600):
            writer.write(row(f"new {number:03}"))
        execute(table, "UPDATE products SET name = 'mine'")
        assert [one["name"] for one in found(table, "url, name")] == ["mine"]
    assert len(found(table)) == 601


def test_several_that_write_at_once_come_one_after_the_other(table: str) -> None:
    urls = [f"u{number:03}" for number in range(100)]

    def one(number: int) -> None:
        order = urls if number % 2 else urls[::-1]
        write(
            table,
            [row(url, name=[str(number)]) for url in order],
            {"name": Attribute(), f"a{number}": Attribute()},
        )

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(one, range(4)))
    read = found(table)
    assert [each["url"] for each in read] == urls
    assert len({each["name"] for each in read}) == 1
    assert {"a0", "a1", "a2", "a3"} <= read[0].keys()


def test_schemas_of_several_wrappers_become_one() -> None:
    schemas = [
        {"a": Attribute(type="price"), "b": Attribute(type="date", multi=True), "c": Attribute()},
        {"a": Attribute(type="text"), "b": Attribute(type="date"), "c": Attribute(type="text")},
    ]
    common = common_schema(schemas)
    assert [(one.type or "text", bool(one.multi)) for one in common.values()] == [
        ("text", False), ("date", True), ("text", False),
    ]  # fmt: skip
