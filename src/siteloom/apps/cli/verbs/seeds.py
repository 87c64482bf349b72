"""`siteloom seeds`: known records in the workspace, by which new sites are wrapped."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.seed_arguments import RenameOption, SeveralOption, pairs
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import SourceError, UsageError
from siteloom.core.table_files import Column, check_destination
from siteloom.core.wording import percent, some_names
from siteloom.sources.rows_to_seeds import CONFIDENCE_KEY, SOURCE_KEY, URL_KEY, read_seeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.core.model import Seed
    from siteloom.operations.seeds import Imported, SeedOrder
    from siteloom.store.queries.seeds import SeedSource
    from siteloom.store.store import Store

NAME = "seeds"

_FAILURES_SHOWN = 5
_ATTRIBUTES_SHOWN = 20


def run(
    shell: Shell,
    locations: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE_OR_URL",
            help="Known records: a .csv, .jsonl or .parquet file, or a table as sqlite:///FILE#TABLE.",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="NAME",
            help="What to call where they are from [the column _source, or the name of the file or table].",
        ),
    ] = None,
    several: SeveralOption = None,
    rename: RenameOption = None,
    from_site: Annotated[
        str | None,
        typer.Option(
            "--from-site", metavar="SITE", help="The newest records extracted from a site of the workspace."
        ),
    ] = None,
    from_embedded: Annotated[
        str | None,
        typer.Option(
            "--from-embedded",
            metavar="SITE_OR_SOURCE",
            help="Data embedded in pages, of a site of the workspace or of a folder or file of pages.",
        ),
    ] = None,
    withdraw: Annotated[
        str | None, typer.Option("--withdraw", metavar="SOURCE", help="Remove all records of a source.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Keep known records, by which new sites are wrapped.

    What is read again takes the place of what the same source had before, once all of it was read. It is safe
    to stop this at any time and start again. Without arguments the sources are shown; -o writes the records,
    with --source those of one.
    """
    if output is not None:
        check_destination(output)
    from siteloom.operations.seeds import SeedOrder

    wanted = SeedOrder(
        tuple(locations or ()),
        from_site,
        from_embedded,
        source or "",
        pairs("--several", several),
        pairs("--rename", rename),
    )
    if withdraw is not None and (wanted.is_import or source):
        raise UsageError("--withdraw takes nothing else: give it alone.")
    if not wanted.is_import and (several or rename):
        raise UsageError("--several and --rename are for records that are read: name a file of them.")
    for location in wanted.locations:
        read_seeds(location)  # what is wrong with it is told before anything is kept
    has_files = bool(wanted.locations) or (from_embedded is not None and Path(from_embedded).exists())
    with shell.store(create=has_files) as store:
        if wanted.is_import:
            _import(shell, store, wanted)
        if withdraw is not None:
            _withdraw(shell, store, withdraw)
        if output is not None or not (wanted.is_import or withdraw):
            _show(shell, store, None if wanted.is_import else source, output)


def _import(shell: Shell, store: Store, wanted: SeedOrder) -> None:
    from siteloom.operations.seeds import import_seeds

    with shell.counting("Reading", "record") as count:
        found = import_seeds(
            store, wanted, shell.settings.pages, lambda: count(1), limits=shell.settings.parse
        )
    _tell(shell, store, found)
    if found.why_none:
        raise SourceError(found.why_none)


def _tell(shell: Shell, store: Store, found: Imported) -> None:
    shell.show(
        f"Known records in {store.folder}",
        ("", "count"),
        [
            *found.counts._asdict().items(),
            *((f"failed: {reason}", count) for reason, count in found.failed.items()),
            *((f"skipped: {reason}", count) for reason, count in found.skipped.items()),
        ],
    )
    if found.failed:
        shown = islice(store.failures(found.run_id), _FAILURES_SHOWN)
        shell.show(
            "What failed first", ("where", "reason", "detail"), [(f.url, f.reason, f.detail) for f in shown]
        )


def _withdraw(shell: Shell, store: Store, source: str) -> None:
    with store.recording(NAME, {"withdraw": source}) as run:
        count = run.counts["removed"] = store.withdraw_seeds(source)
    if not count:
        raise _unknown_source(source, store.seed_sources())
    shell.say(f"{count:,} records of {source} were removed.")


def _show(shell: Shell, store: Store, source: str | None, output: str | None) -> None:
    """Show the sources and write the records of all or of one."""
    found = store.seed_sources()
    if source is not None:
        of_source = [one for one in found if one.source == source]
        if not of_source:
            raise _unknown_source(source, found)
        found = of_source
    if output is not None:
        attributes = dict.fromkeys(name for one in found for name in one.attributes)
        columns = (
            Column(SOURCE_KEY),
            Column(URL_KEY),
            Column(CONFIDENCE_KEY, "number"),
            *(Column(name, "texts") for name in attributes),
        )
        seeds = store.seeds(None if source is None else [source])
        shell.write(output, columns, map(_row, seeds))
    if found:
        columns_shown = ("source", "records", "attributes", "confidence", "last added")
        shell.show("Known records", columns_shown, map(_summary, found))
    else:
        shell.say("There are no known records yet: name a file of them.")


def _row(seed: Seed) -> dict[str, object]:
    return {**seed.values, SOURCE_KEY: seed.source, URL_KEY: seed.url, CONFIDENCE_KEY: seed.confidence}


def _summary(one: SeedSource) -> tuple[object, ...]:
    filled = [f"{name} {percent(count / one.records)}" for name, count in one.attributes.items()]
    shown = filled if len(filled) <= _ATTRIBUTES_SHOWN else [*filled[:_ATTRIBUTES_SHOWN], "..."]
    added = f"{one.added_at:%Y-%m-%d %H:%M}"
    return one.source, one.records, "\n".join(shown), percent(one.confidence), added


def _unknown_source(source: str, known: Sequence[SeedSource]) -> UsageError:
    names = some_names([one.source for one in known]) or "none yet"
    return UsageError(f"There are no known records of {source}: there are those of {names}.")
