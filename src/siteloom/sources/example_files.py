"""Read example files (JSON Lines of URLs with values), schema files, and records that extract wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from siteloom.core.errors import ExampleError, UsageError
from siteloom.core.model import Example, Record
from siteloom.core.remote_files import LARGEST_OF_RECORDS, lines_of_file, read_file, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from siteloom.core.model import Page


_KEYS = ("url", "values", "records", "nodes")


@dataclass(frozen=True, slots=True)
class ExampleLine:
    """One line: an example whose page is only given by its URL."""

    url: str
    values: Mapping[str, Sequence[str]]
    records: Sequence[Mapping[str, Sequence[str]]]
    nodes: Mapping[str, Sequence[str]]

    def on(self, page: Page) -> Example:
        """Return the example with its page."""
        return Example(page, self.values, self.records, self.nodes)


def read_examples(file: str) -> list[ExampleLine]:
    """Read all examples of a file; raises ExampleError for the first line that is not one."""
    try:
        lines = lines_of_file(file)
    except OSError as error:
        raise ExampleError(f"The examples {file} cannot be read: {error.strerror}.") from error
    name = shown(file)
    return [
        _example(line, f"Line {number} of {name}") for number, line in enumerate(lines, 1) if line.strip()
    ]


def _example(line: bytes, where: str) -> ExampleLine:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ExampleError(f"{where} is no JSON: {error}.") from error
    if not isinstance(row, dict) or not isinstance(url := row.get("url"), str) or not url.strip():
        raise ExampleError(f"{where} is no example: it must be a JSON object with a url.")
    if unknown := set(row) - set(_KEYS):
        raise ExampleError(f"{where} has {min(unknown)!r}: an example has {', '.join(_KEYS)}.")
    records = row.get("records", [])
    if not isinstance(records, list):
        raise ExampleError(f"{where}: records must be a list of objects like values.")
    return ExampleLine(
        url.strip(),
        _values(row.get("values", {}), where),
        [_values(record, where) for record in records],
        _values(row.get("nodes", {}), where),
    )


def _values(content: object, where: str) -> dict[str, list[str]]:
    """Return lists of texts by attribute; a single text need not be in a list."""
    if not isinstance(content, dict):
        raise ExampleError(f'{where}: write values as {{"name": ["Blue Fern"], "phone": []}}.')
    values = {}
    for name, value in content.items():
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ExampleError(f"{where}: the values of {name!r} must be texts in quotes.")
        values[name] = texts
    return values


def read_records(file: str) -> list[Record]:
    """Read the records of a file that extract has written."""
    try:
        lines = lines_of_file(file, LARGEST_OF_RECORDS)
    except OSError as error:
        raise UsageError(f"The records {file} cannot be read: {error.strerror}.") from error
    records = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            values = {name: _texts(texts) for name, texts in row["values"].items()}
            records.append(Record(_text(row["url"]), values, {}, {}))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(
                f"Line {number} of {shown(file)} is no record: it must be a JSON object with url and values, "
                "as extract -o FILE.jsonl writes them."
            ) from error
    if not records:
        raise UsageError(f"There is no record in {shown(file)}: extract writes them with -o FILE.jsonl.")
    return records


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(value)
    return tuple(map(_text, value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


SchemaOption = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help='JSON with what is known of attributes: {"cuisine": {"multi": true}}.',
    ),
]


def read_schema(file: str | None) -> dict[str, dict[str, Any]] | None:
    """Read the declarations of attributes from a file, if one is given."""
    if file is None:
        return None
    try:
        schema = json.loads(read_file(file))
    except OSError as error:
        raise UsageError(f"The schema {file} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The schema {file} is no JSON: {error}.") from error
    if not isinstance(schema, dict) or not all(
        isinstance(declaration, dict) for declaration in schema.values()
    ):
        raise UsageError(f'The schema {file} must be an object such as {{"cuisine": {{"multi": true}}}}.')
    return schema
