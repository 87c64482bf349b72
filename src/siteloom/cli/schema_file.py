"""What is known of attributes, as a file that a verb is given."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from siteloom.errors import UsageError
from siteloom.filesystems import read_file

SchemaOption = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help='JSON with what is known of attributes: {"cuisine": {"multi": true}}.',
    ),
]


def read_schema(file: str | None) -> dict[str, dict[str, Any]] | None:
    """What a file says of attributes; nothing without one."""
    if file is None:
        return None
    try:
        schema = json.loads(read_file(file))
    except OSError as error:
        raise UsageError(f"The schema {file} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The schema {file} is no JSON: {error}.") from error
    if not isinstance(schema, dict) or not all(isinstance(known, dict) for known in schema.values()):
        raise UsageError(f'The schema {file} must be an object such as {{"cuisine": {{"multi": true}}}}.')
    return schema
