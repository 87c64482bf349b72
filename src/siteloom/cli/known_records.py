"""Verbs that read known records, and say how their attributes are named and written."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from siteloom.cli.shell import Shell
    from siteloom.model import Seed

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
    from siteloom import seeding

    seeding.check_core(core, seeds, place=place, option="--core")


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
    from siteloom.config import without_passwords
    from siteloom.seed_files import read_seeds

    problems: Counter[str] = Counter()
    yield from read_seeds(location, on_problem=lambda problem: problems.update([problem.reason]))
    for reason, count in problems.items():
        shell.say(f"{count:,} rows of {without_passwords(location)} were left out: {reason}.")


def read_reshaped(
    shell: Shell, location: str, several: Mapping[str, str], renamed: Mapping[str, str]
) -> Iterator[Seed]:
    """The records at a location with values split and attributes renamed, as far as there are any such."""
    from siteloom.seed_files import reshaped
    from siteloom.seeding import check_names

    names: set[str] = set()
    for seed in read_known(shell, location):
        names.update(seed.values)
        yield reshaped(seed, several, renamed)
    check_names({*several, *renamed}, names)
