"""--seeds, --core, --rename and --several arguments."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from siteloom.apps.cli.terminal import Shell
from siteloom.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from siteloom.core.model import Seed
    from siteloom.learning.induction.learning_session import Schema
    from siteloom.learning.known_records.site_bootstrap import Method


SeveralOption = Annotated[
    list[str] | None,
    typer.Option(
        "--several",
        metavar="ATTR=SEP",
        help="The values of this attribute stand in one text with SEP between them, as in cuisine=;",
    ),
]
RenameOption = Annotated[
    list[str] | None,
    typer.Option("--rename", metavar="OLD=NEW", help="Another name for an attribute."),
]


def attribute_names(given: str | None) -> tuple[str, ...]:
    """The names of attributes that stand in one text with commas between them."""
    return tuple(dict.fromkeys(name.strip() for name in (given or "").split(",") if name.strip()))


def check_core(core: Iterable[str], seeds: Iterable[Seed], place: str = "") -> None:
    """Raise if a core attribute is one that no record has."""
    from siteloom.operations import seeds as known_records

    names = known_records.seed_names(seeds)
    known_records.check_core(core, names, place=place, option="--core")


def pairs(option: str, given: list[str] | None) -> dict[str, str]:
    """What an option says that takes two texts with = between them."""
    found = {}
    for text in given or ():
        name, _, other = text.partition("=")
        if not name or not other:
            raise UsageError(f"{option} takes two texts with = between them, not {text}.")
        found[name] = other
    return found


def read_known(shell: Shell, location: str) -> Iterator[Seed]:
    """The records at a location; how many rows were left out is said in the end."""
    from siteloom.core.settings import without_passwords
    from siteloom.sources.rows_to_seeds import read_seeds

    problems: Counter[str] = Counter()
    yield from read_seeds(location, on_problem=lambda problem: problems.update([problem.reason]))
    for reason, count in problems.items():
        shell.say(f"{count:,} rows of {without_passwords(location)} were left out: {reason}.")


def read_reshaped(
    shell: Shell, location: str, several: Mapping[str, str], renamed: Mapping[str, str]
) -> Iterator[Seed]:
    """The records at a location with values split and attributes renamed, as far as there are any such."""
    from siteloom.operations.seeds import check_names
    from siteloom.sources.rows_to_seeds import reshaped

    names: set[str] = set()
    for seed in read_known(shell, location):
        names.update(seed.values)
        yield reshaped(seed, several, renamed)
    check_names({*several, *renamed}, names)


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
    from siteloom.core.settings import without_passwords
    from siteloom.operations.bootstrap import check_schema_names
    from siteloom.operations.seeds import seed_names

    known = list(read_reshaped(shell, wanted.seeds, wanted.several, wanted.renamed))
    place = without_passwords(wanted.seeds)
    if not known:
        raise UsageError(f"There is no record in {place}.")
    check_core(wanted.core, known, place)
    check_schema_names(wanted.schema, seed_names(known))
    return known
