"""The columns that records need, and how they fit into a table of the user's own as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import sqlalchemy
from sqlalchemy import Date, DateTime, Float, Integer, Numeric, String, Text
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB

from siteloom.errors import OutputError
from siteloom.record_rows.columns import column_names
from siteloom.record_rows.database import OF_POSTGRES, fitted
from siteloom.store.database import shown_address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import URL, Connection, Dialect
    from sqlalchemy.types import TypeEngine

    from siteloom.model import Attribute, ValueType


class OwnTable(NamedTuple):
    """A table of a database, which may be in a schema that is named, too."""

    url: URL
    schema: str | None
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


Kind = Literal["text", "number", "day", "integer", "time", "JSON"]

_DEFAULT_TYPES: dict[Kind, TypeEngine[Any]] = {
    "text": Text(),
    "number": Numeric(),
    "day": Date(),
    "integer": Integer(),
    "time": DateTime(timezone=True),
    "JSON": JSONB(),
}

# Integers would take numbers, too, but round them. Texts take anything, as it was seen.
_FITTING_TYPES: dict[Kind, tuple[type[TypeEngine[Any]], ...]] = {
    "text": (String,),
    "number": (Numeric, Float, String),
    "day": (Date, DateTime, String),
    "integer": (Integer,),
    "time": (DateTime,),
    "JSON": (JSON, String),
}

_KIND_OF: dict[ValueType, Kind] = {"number": "number", "price": "number", "rating": "number", "date": "day"}


@dataclass(frozen=True, slots=True)
class WantedColumn:
    """A column that the table should have: of an attribute, or of all records."""

    name: str
    kind: Kind
    attribute: str | None = None
    type: ValueType = "text"
    is_list: bool = False
    is_currency: bool = False

    @property
    def column_type(self) -> TypeEngine[Any]:
        """The type of the column where it is made."""
        return ARRAY(_DEFAULT_TYPES[self.kind]) if self.is_list else _DEFAULT_TYPES[self.kind]


class FittedColumn(NamedTuple):
    """A wanted column as the table has it, or will have it."""

    wanted: WantedColumn
    name: str
    type: TypeEngine[Any]
    key: str  # what it is called here, as drivers trip over what names of attributes may hold

    @property
    def is_array(self) -> bool:
        """Whether it has several values in a row."""
        return isinstance(self.type, ARRAY)

    @property
    def cell_type(self) -> TypeEngine[Any]:
        """The type of a single value."""
        return self.type.item_type if isinstance(self.type, ARRAY) else self.type


class Fit(NamedTuple):
    """How records fit into the table: its columns, those to be added, and by which rows are known."""

    columns: list[FittedColumn]
    added: list[FittedColumn]
    key: tuple[str, ...]
    is_new: bool


def columns_of_all() -> list[WantedColumn]:
    """The columns of all records, whatever attributes they have."""
    return [
        WantedColumn("url", "text"),
        WantedColumn("position", "integer"),
        WantedColumn("wrapper", "text"),
        WantedColumn("version", "integer"),
        WantedColumn("confidence", "number"),
        WantedColumn("duplicate_of", "text"),
        WantedColumn("record", "JSON"),
        WantedColumn("first_written", "time"),
        WantedColumn("last_written", "time"),
    ]


def columns_of_attributes(attributes: Mapping[str, Attribute]) -> list[WantedColumn]:
    """A column for each attribute, and one for the currency of each price."""
    prices = [name for name, one in attributes.items() if one.type == "price"]
    taken = (*(one.name for one in columns_of_all()), *OF_POSTGRES)
    names = column_names([*attributes, *(f"{name}_currency" for name in prices)], taken, fitted)
    types: dict[str, ValueType] = {name: one.type or "text" for name, one in attributes.items()}
    values = [
        WantedColumn(
            name, _KIND_OF.get(types[attribute], "text"), attribute, types[attribute], bool(one.multi)
        )
        for name, (attribute, one) in zip(names, attributes.items(), strict=False)
    ]
    currencies = [
        WantedColumn(name, "text", price, "price", bool(attributes[price].multi), is_currency=True)
        for name, price in zip(names[len(attributes) :], prices, strict=True)
    ]
    return values + currencies


def fit_into(connection: Connection, table: OwnTable, wanted: Sequence[WantedColumn]) -> Fit:
    """How records fit into the table as it is now; refused if they do not."""
    inspector = sqlalchemy.inspect(connection)
    if table.schema is not None and not inspector.has_schema(table.schema):
        raise OutputError(f"There is no schema {table.schema} in {shown_address(table.url)}: make it first.")
    if not inspector.has_table(table.name, table.schema):
        made = [
            FittedColumn(one, one.name, one.column_type, _key(one, number))
            for number, one in enumerate(wanted)
        ]
        return Fit(made, [], ("url", "position"), is_new=True)
    if table.name not in inspector.get_table_names(table.schema):
        raise OutputError(f"{table} of {shown_address(table.url)} is a view: give the name of a table.")
    there = {column["name"]: column for column in inspector.get_columns(table.name, table.schema)}
    in_any_case = {name.lower(): name for name in there}
    key = _key_of(inspector, table, in_any_case)
    columns, added = [], []
    for number, one in enumerate(wanted):
        name = one.name if one.name in there else in_any_case.get(one.name.lower())
        if name is not None:
            if there[name].get("computed"):
                raise OutputError(
                    f"The column {name} of the table {table} is computed by the database, so nothing can be "
                    "written to it: rename it, or give another table."
                )
            found = FittedColumn(one, name, there[name]["type"], _key(one, number))
            _check_type(table, found, connection.dialect)
            columns.append(found)
        elif one.name != "position" or len(key) > 1:
            columns.append(FittedColumn(one, one.name, one.column_type, _key(one, number)))
            added.append(columns[-1])
    used = {one.name for one in columns}
    for name, column in there.items():
        is_filled = column["nullable"] or any(column.get(how) for how in ("default", "identity", "computed"))
        if name not in used and not is_filled:
            raise OutputError(
                f"The column {name} of the table {table} must have a value, but records have none for it: "
                "give it a default, or let it be empty."
            )
    return Fit(columns, added, key, is_new=False)


def _key(wanted: WantedColumn, number: int) -> str:
    return wanted.name if wanted.attribute is None else f"attribute_{number}"


def _key_of(inspector: Any, table: OwnTable, in_any_case: Mapping[str, str]) -> tuple[str, ...]:
    """The columns by which rows are known: `url`, or `url` and `position`."""
    place = (table.name, table.schema)
    keys = [inspector.get_pk_constraint(*place)["constrained_columns"]]
    keys += [one["column_names"] for one in inspector.get_unique_constraints(*place)]
    keys += [
        one["column_names"]
        for one in inspector.get_indexes(*place)
        if one["unique"] and not one.get("dialect_options", {}).get("postgresql_where")
    ]
    known = [set(key) for key in keys if key]
    for names in (("url",), ("url", "position")):
        columns = tuple(in_any_case.get(name, name) for name in names)
        if set(columns) in known:
            return columns
    raise OutputError(
        f"The table {table} of {shown_address(table.url)} has no key by which records are known: make url, "
        "or url and position together, its primary key, or give another table."
    )


def _check_type(table: OwnTable, found: FittedColumn, dialect: Dialect) -> None:
    wanted = found.wanted
    # A single value is an array of one where there is one; of columns for one, those of text take several.
    is_room = (
        found.is_array or isinstance(found.type, String)
        if wanted.is_list
        else wanted.attribute is not None or not found.is_array
    )
    # To SQLAlchemy a type that has a list of values is one of texts.
    is_listed = isinstance(found.cell_type, sqlalchemy.Enum)
    if is_room and not is_listed and isinstance(found.cell_type, _FITTING_TYPES[wanted.kind]):
        return
    there, needed = (one.compile(dialect=dialect).lower() for one in (found.type, wanted.column_type))
    raise OutputError(
        f"The column {found.name} of the table {table} is {there}, but records need {needed}: "
        "change its type, rename it, or give another table."
    )
