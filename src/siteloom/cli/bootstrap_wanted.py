"""What `siteloom bootstrap` is to wrap by: known records, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from siteloom.cli.known_records import check_core, read_reshaped
from siteloom.cli.shell import Shell
from siteloom.errors import UsageError
from siteloom.telling import some_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteloom.learning import Schema
    from siteloom.model import Seed
    from siteloom.redundancy.bootstrapping import Method


class Wanted(NamedTuple):
    """By what to wrap, and how; `seeds` is the file of known records, if there is one."""

    seeds: str
    core: tuple[str, ...]
    several: Mapping[str, str]
    renamed: Mapping[str, str]
    schema: Schema
    method: Method


def read_only_seeds(shell: Shell, wanted: Wanted) -> list[Seed]:
    """The known records of the file, if there are no others: the schema must be of their attributes."""
    known = read_seeds_of(shell, wanted)
    check_schema_names(wanted.schema, set[str]().union(*(seed.values for seed in known)))
    return known


def read_seeds_of(shell: Shell, wanted: Wanted) -> list[Seed]:
    """The known records of the file."""
    from siteloom.config import without_passwords

    known = list(read_reshaped(shell, wanted.seeds, wanted.several, wanted.renamed))
    place = without_passwords(wanted.seeds)
    if not known:
        raise UsageError(f"There is no record in {place}.")
    check_core(wanted.core, known, place)
    return known


def check_schema_names(schema: Schema, names: set[str]) -> None:
    """Refuse a schema of attributes that no known record has."""
    if unknown := sorted(set(schema or {}) - names):
        raise UsageError(
            f"The schema tells of {unknown[0]}, which no record has: there are {some_names(sorted(names))}."
        )
