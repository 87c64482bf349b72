"""Examples as people and programs write them: JSON Lines of URLs with the values seen on them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from siteloom.errors import ExampleError
from siteloom.filesystems import lines_of_file, shown
from siteloom.model import Example

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from siteloom.model import Page

_KEYS = ("url", "values", "records", "nodes")


@dataclass(frozen=True, slots=True)
class ExampleLine:
    """One line: an example whose page is known by its URL only."""

    url: str
    values: Mapping[str, Sequence[str]]
    records: Sequence[Mapping[str, Sequence[str]]]
    nodes: Mapping[str, Sequence[str]]

    def on(self, page: Page) -> Example:
        """The example, once its page is there."""
        return Example(page, self.values, self.records, self.nodes)


def read_examples(file: str) -> list[ExampleLine]:
    """All examples of a file, or a sentence on the first line that is none."""
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


def _values(found: object, where: str) -> dict[str, list[str]]:
    """Lists of texts by attribute; one text may stand without its list."""
    if not isinstance(found, dict):
        raise ExampleError(f'{where}: write values as {{"name": ["Blue Fern"], "phone": []}}.')
    values = {}
    for name, given in found.items():
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ExampleError(f"{where}: the values of {name!r} must be texts in quotes.")
        values[name] = texts
    return values
