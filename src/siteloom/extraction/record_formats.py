"""Rows of records to a file, to standard output, or to a table of a database."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.core import table_files
from siteloom.core.errors import UsageError
from siteloom.core.model import Attribute
from siteloom.core.remote_files import has_scheme, local_path, shown
from siteloom.core.table_files import (
    STANDARD_OUTPUT,
    Column,
    Fields,
    ListOf,
    arrow_schema,
    arrow_table,
    open_output,
    stream_output,
    suffix_of,
)
from siteloom.extraction.record_rows import column_names, lowest_confidence

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from siteloom.core.table_files import Kind, RowWriter
    from siteloom.extraction.record_rows import Row

_DATABASE = re.compile(r"(?:sqlite|postgres|postgresql)(?:\+\w+)?:")
_NO_SCHEMA: Mapping[str, Attribute] = MappingProxyType({})

_PAGES = "pages"
_PARTS = ("values", "typed", "confidence", "provenance", "withheld")


def check_destination(destination: str) -> None:
    """Raise now what would be wrong with a destination of records once the work for it is done."""
    if not is_database(destination):
        if has_scheme(destination) and suffix_of(destination) not in (".jsonl", *_SHAPES):
            raise UsageError(
                f"Siteloom cannot write to {shown(destination)}: give the name of a file that ends in "
                ".jsonl, .csv or .parquet, or a database like sqlite:///file.db or postgresql://user@host/name."
            )
        table_files.check_destination(destination)
        return
    from siteloom.extraction.records_to_database import check_database  # noqa: PLC0415 - slow to load
    from siteloom.extraction.records_to_own_table import check_own_table, own_table  # noqa: PLC0415

    table = own_table(destination)
    if table is None:
        check_database(destination)
    else:
        check_own_table(table)


class RecordLayout(NamedTuple):
    """What the columns of records depend on: see `open_records`."""

    attributes: Sequence[str]
    schema: Mapping[str, Attribute]
    lists: Collection[str]
    with_pages: bool


@dataclass(frozen=True, slots=True)
class RecordFile:
    """Records as a file, a table of a database or standard output; `location` as users write it."""

    location: str

    @property
    def file(self) -> Path | None:
        """The file of this machine that is written, if one is."""
        if self.location == STANDARD_OUTPUT:
            return None
        if not is_database(self.location):
            path = local_path(self.location)
            return None if path is None else Path(path)
        from sqlalchemy import make_url  # noqa: PLC0415 - slow to load

        url = make_url(self.location)
        return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None

    @property
    def is_new(self) -> bool:
        """Whether it is a file that does not exist yet, so that nothing is lost if it is written."""
        return self.file is not None and not is_database(self.location) and not self.file.exists()

    def open(self, layout: RecordLayout) -> AbstractContextManager[RowWriter]:
        """A writer of record rows, all of them or none."""
        return open_records(
            self.location,
            layout.attributes,
            with_pages=layout.with_pages,
            schema=layout.schema,
            lists=layout.lists,
        )


@contextmanager
def open_records(
    destination: str,
    attributes: Sequence[str],
    *,
    with_pages: bool = False,
    schema: Mapping[str, Attribute] = _NO_SCHEMA,
    lists: Collection[str] = (),
) -> Iterator[RowWriter]:
    """A writer of record rows, all of them or none; `with_pages` if they were joined.

    - JSON Lines and standard output have the rows as they are.
    - CSV has a column for each of `attributes` with their texts, and the lowest confidence
      of the record. Several texts stand in one cell with ` | ` between them, and a text that
      has ` | ` itself is left as it is: cells are for people to read, and where texts must
      be told apart another format does that.
    - Parquet has the parts of the row, each with a field for each attribute. There the typed
      values are texts, and JSON if they are more than a text.
    - The address of a database, such as `sqlite:///file.db` or `postgresql://user@host/name`,
      stands for its table `records`, which is replaced: see `siteloom.extraction.records_to_database`.
    - `postgresql://user@host/name/table` stands for a table of the user's own, whose rows are replaced by
      URL: see `siteloom.extraction.records_to_own_table`. Its columns have the types that `schema` says, and
      `lists` names the wrappers whose pages have several records.
    """
    if is_database(destination):
        with _open_database(destination, attributes, schema, lists) as table:
            yield table
        return
    shape = _SHAPES.get(suffix_of(destination), _as_it_is)
    columns, shaped = shape(attributes, with_pages)
    with open_output(destination, columns) as writer:
        yield _ShapingWriter(writer, shaped)


def stream_records(suffix: str, attributes: Sequence[str], rows: Iterable[Row]) -> Iterator[bytes]:
    """The same as CSV or JSON Lines, as the rows come."""
    columns, shaped = _SHAPES.get(suffix, _as_it_is)(attributes, False)
    return stream_output(suffix, columns, map(shaped, rows))


def record_tables(attributes: Sequence[str]) -> Callable[[Iterable[Row]], Any]:
    """What makes a table of Arrow of rows, the same as in a Parquet file."""
    columns, shaped = _nested(attributes, False)
    schema = arrow_schema(columns)
    return lambda rows: arrow_table(schema, map(shaped, rows))


def is_database(destination: str) -> bool:
    """Whether a destination is the address of a database, and no file."""
    return _DATABASE.match(destination) is not None


def _open_database(
    address: str, attributes: Sequence[str], schema: Mapping[str, Attribute], lists: Collection[str]
) -> AbstractContextManager[RowWriter]:
    from siteloom.extraction.records_to_database import open_table  # noqa: PLC0415 - slow to load
    from siteloom.extraction.records_to_own_table import open_own_table, own_table  # noqa: PLC0415

    table = own_table(address)
    if table is None:
        return open_table(address, attributes)
    known = {name: schema.get(name, Attribute()) for name in attributes}
    return open_own_table(table, known, lists)


class _ShapingWriter(NamedTuple):
    writer: RowWriter
    shaped: Callable[[Row], Row]

    def write(self, row: Mapping[str, Any]) -> None:
        self.writer.write(self.shaped(dict(row)))


class _Shape(NamedTuple):
    """What the rows of records look like in a format."""

    columns: list[Column]
    shaped: Callable[[Row], Row]


def _as_it_is(_: Sequence[str], with_pages: bool) -> _Shape:
    names = ["url", "wrapper", "version", *_PARTS, "duplicate_of", *([_PAGES] if with_pages else [])]
    return _Shape([Column(name) for name in names], lambda row: row)


def _flat(attributes: Sequence[str], with_pages: bool) -> _Shape:
    before = [Column("url"), Column("wrapper"), Column("version", "integer")]
    after = [Column("confidence", "number"), Column("duplicate_of")]
    if with_pages:
        after.append(Column(_PAGES, "texts"))
    names = column_names(attributes, [column.name for column in before + after])

    def shaped(row: Row) -> Row:
        texts = {
            name: row["values"].get(attribute) for name, attribute in zip(names, attributes, strict=True)
        }
        pages = [page["url"] for page in row.get(_PAGES, ())]
        return {**row, "confidence": lowest_confidence(row), _PAGES: pages, **texts}

    return _Shape([*before, *(Column(name, "texts") for name in names), *after], shaped)


def _nested(attributes: Sequence[str], with_pages: bool) -> _Shape:
    url = [Column("url")] if with_pages else []  # of the page that was joined
    kinds: dict[str, Kind] = {
        "values": "texts",
        "typed": "texts",
        "confidence": ListOf("number"),
        "provenance": ListOf(Fields((Column("rule"), Column("node"), *url))),
        "withheld": ListOf(Fields((Column("text"), Column("reason"), Column("node"), *url))),
    }
    columns = [Column("url"), Column("wrapper"), Column("version", "integer")]
    if attributes:  # Parquet knows no value without fields
        columns += [
            Column(part, Fields(tuple(Column(attribute, kinds[part]) for attribute in attributes)))
            for part in _PARTS
        ]
    columns.append(Column("duplicate_of"))
    if with_pages:
        page = Fields((Column("url"), Column("wrapper"), Column("version", "integer")))
        columns.append(Column(_PAGES, ListOf(page)))
    return _Shape(columns, _with_typed_texts)


def _with_typed_texts(row: Row) -> Row:
    typed = {attribute: [_text(value) for value in values] for attribute, values in row["typed"].items()}
    return {**row, "typed": typed}


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_SHAPES: dict[str, Callable[[Sequence[str], bool], _Shape]] = {".csv": _flat, ".parquet": _nested}
