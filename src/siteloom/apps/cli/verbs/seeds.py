"""`siteloom seeds`: known records in the workspace, by which new sites are wrapped."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.seed_arguments import RenameOption, SeveralOption, pairs
from siteloom.apps.cli.source_arguments import verb_context
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import UsageError
from siteloom.core.table_files import Column, check_destination
from siteloom.core.wording import percent
from siteloom.sources.rows_to_seeds import CONFIDENCE_KEY, SOURCE_KEY, URL_KEY, read_seeds

if TYPE_CHECKING:
    from siteloom.core.model import Seed
    from siteloom.operations.seeds import ImportSeedsResult
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
    from siteloom.operations.seeds import (
        ImportSeedsRequest,
        NothingImported,
        RemoveSeedsRequest,
        import_seeds,
        remove_seeds,
    )

    request = ImportSeedsRequest(
        locations=tuple(locations or ()),
        site=from_site,
        embedded=from_embedded,
        source=source or "",
        several=pairs("--several", several),
        renamed=pairs("--rename", rename),
    )
    is_import = bool(locations or from_site or from_embedded)
    if withdraw is not None and (is_import or source):
        raise UsageError("--withdraw takes nothing else: give it alone.")
    if not is_import and (several or rename):
        raise UsageError("--several and --rename are for records that are read: name a file of them.")
    for location in request.locations:
        read_seeds(location)  # what is wrong with it is told before anything is kept
    has_files = bool(locations) or (from_embedded is not None and Path(from_embedded).exists())
    with verb_context(shell, None, create=has_files) as context:
        if is_import:
            try:
                _show_counts(shell, context.store, import_seeds(context, request))
            except NothingImported as error:
                _show_counts(shell, context.store, error.result)
                raise
        if withdraw is not None:
            removed = remove_seeds(context, RemoveSeedsRequest(source=withdraw)).removed
            shell.say(f"{removed:,} records of {withdraw} were removed.")
        if output is not None or not (is_import or withdraw):
            _show(shell, context.store, None if is_import else source, output)


def _show_counts(shell: Shell, store: Store, result: ImportSeedsResult) -> None:
    shell.show(
        f"Known records in {store.folder}",
        ("", "count"),
        [
            ("added", result.added),
            ("unchanged", result.unchanged),
            ("removed", result.removed),
            *((f"failed: {reason}", count) for reason, count in result.failures.items()),
            *((f"skipped: {reason}", count) for reason, count in result.skipped.items()),
        ],
    )
    if result.failures and result.run is not None:
        first = islice(store.failures(result.run), _FAILURES_SHOWN)
        rows = [(failure.url, failure.reason, failure.detail) for failure in first]
        shell.show("What failed first", ("where", "reason", "detail"), rows)


def _show(shell: Shell, store: Store, source: str | None, output: str | None) -> None:
    """Show the sources and write the records of all or of one."""
    from siteloom.operations.seeds import unknown_source

    sources = store.seed_sources()
    if source is not None:
        sources = [one for one in sources if one.source == source]
        if not sources:
            raise unknown_source(source, store)
    if output is not None:
        attributes = dict.fromkeys(name for one in sources for name in one.attributes)
        columns = (
            Column(SOURCE_KEY),
            Column(URL_KEY),
            Column(CONFIDENCE_KEY, "number"),
            *(Column(name, "texts") for name in attributes),
        )
        seeds = store.seeds(None if source is None else [source])
        shell.write(output, columns, map(_row, seeds))
    if sources:
        columns_shown = ("source", "records", "attributes", "confidence", "last added")
        shell.show("Known records", columns_shown, map(_summary, sources))
    else:
        shell.say("There are no known records yet: name a file of them.")


def _row(seed: Seed) -> dict[str, object]:
    return {**seed.values, SOURCE_KEY: seed.source, URL_KEY: seed.url, CONFIDENCE_KEY: seed.confidence}


def _summary(one: SeedSource) -> tuple[object, ...]:
    filled = [f"{name} {percent(count / one.records)}" for name, count in one.attributes.items()]
    shown = filled if len(filled) <= _ATTRIBUTES_SHOWN else [*filled[:_ATTRIBUTES_SHOWN], "..."]
    added = f"{one.added_at:%Y-%m-%d %H:%M}"
    return one.source, one.records, "\n".join(shown), percent(one.confidence), added
