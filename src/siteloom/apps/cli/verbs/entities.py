"""`siteloom entities`: the same thing on several sites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.seed_arguments import attribute_names, check_core, read_known
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import SourceError, UsageError
from siteloom.core.table_files import check_destination, flat_for, open_output

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from siteloom.core.model import Seed
    from siteloom.learning.known_records.entity_linking import Entity
    from siteloom.operations.entities import LinkEntitiesResult

NAME = "entities"

_MOST_SHOWN = 50


def run(
    shell: Shell,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE",
            help="Records as extract writes them, or seeds: .jsonl, .csv, .parquet, or a table such as "
            "sqlite:///file.db#table; without, the seeds of the workspace.",
            show_default=False,
        ),
    ] = None,
    core: Annotated[
        str | None,
        typer.Option(
            "--core",
            metavar="NAMES",
            help="Attributes by which things are known, such as name,phone: records of one thing agree in "
            "one of them at least.",
        ),
    ] = None,
    conflicts: Annotated[
        bool, typer.Option("--conflicts", help="List the values in which sources differ.")
    ] = False,
    output: OutputOption = None,
) -> None:
    """Find records of the same thing, and where sources differ.

    Records are taken for one thing if enough of their values agree, and the more so the rarer these are. Its
    value is the one that most sources state; others are conflicts, listed with their sources.
    """
    from siteloom.learning.known_records.entity_linking import DEEP_COLUMNS, ENTITY_COLUMNS, entity_row
    from siteloom.operations.entities import link_records

    if output is not None:
        check_destination(output)
    records = list(_records(shell, sources))
    names = attribute_names(core)
    check_core(names, records)
    result = link_records(records, names)
    if output is not None:
        with open_output(output, ENTITY_COLUMNS) as rows:
            for number, entity in enumerate(result.linked, 1):
                rows.write(flat_for(output, entity_row(number, entity, records), DEEP_COLUMNS))
    _show_summary(shell, result)
    if conflicts:
        _show_conflicts(shell, result.linked)


def _records(shell: Shell, locations: Sequence[str] | None) -> Iterator[Seed]:
    """The records of files, or else the known records of the workspace."""
    is_empty = True
    if locations:
        for seed in (seed for location in locations for seed in _records_of(shell, location)):
            is_empty = False
            yield seed
        if is_empty:
            raise SourceError("There is no record in the sources.")
        return
    with shell.store() as store:
        for seed in store.seeds():
            is_empty = False
            yield seed
    if is_empty:
        raise UsageError("The workspace has no seeds: siteloom seeds imports them, or name files of records.")


def _records_of(shell: Shell, location: str) -> Iterator[Seed]:
    """The records of a file; the site of its page is the source of a record that names none."""
    from siteloom.core.model import Seed
    from siteloom.core.urls import site_of

    for seed in read_known(shell, location):
        is_unnamed = seed.url and seed.source == Path(location).stem
        yield Seed(seed.values, site_of(seed.url), seed.url, seed.confidence) if is_unnamed else seed


def _show_summary(shell: Shell, result: LinkEntitiesResult) -> None:
    shell.show(
        f"{result.records:,} records tell of {result.entities:,} entities",
        ("on so many sources", "entities"),
        result.spread,
    )
    columns = ("attribute", "entities", "by several sources", "with conflicts")
    shell.show("Attributes", columns, result.attributes)


def _show_conflicts(shell: Shell, entities: Sequence[Entity]) -> None:
    rows = [
        (number, name, stated.text, ", ".join(stated.sources))
        for number, entity in enumerate(entities, 1)
        for name, agreed in entity.values.items()
        if agreed.conflicts
        for stated in (*agreed.values, *agreed.conflicts)
    ]
    shell.show("Conflicts", ("entity", "attribute", "value", "sources"), rows[:_MOST_SHOWN])
    if len(rows) > _MOST_SHOWN:
        shell.say(f"These are {_MOST_SHOWN} of {len(rows):,} lines: -o FILE writes all.")
