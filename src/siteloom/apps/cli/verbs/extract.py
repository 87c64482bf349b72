"""`siteloom extract`: records out of pages."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.result_tables import load_wrappers, say_wrapped, show_changes, show_extracted
from siteloom.apps.cli.source_arguments import (
    EngineChoice,
    EngineOption,
    MasterOption,
    SourcesArgument,
    SparkConfOption,
    WrappersOption,
    bulk_run,
    finished,
    no_page_read,
    verb_context,
)
from siteloom.apps.cli.terminal import Shell
from siteloom.core.errors import UsageError
from siteloom.core.remote_files import local_path, shown
from siteloom.core.table_files import STANDARD_OUTPUT, Column, open_output
from siteloom.core.table_files import check_destination as check_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from siteloom.extraction.extraction_counts import ExtractionCounts
    from siteloom.operations.context import Context
    from siteloom.operations.extract import ExtractResult
    from siteloom.sources.page_source import PageSource

NAME = "extract"

FAILURE_COLUMNS = (Column("url"), Column("reason"), Column("detail"))


def run(
    shell: Shell,
    sources: SourcesArgument = None,
    wrapper: WrappersOption = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the records: .jsonl, .csv or .parquet, here or at s3://... and the like, "
            "sqlite:///FILE, postgresql://.../NAME, or .../NAME/TABLE for a table of your own, or - for "
            "standard output.",
        ),
    ] = None,
    failures: Annotated[
        str | None,
        typer.Option(
            "--failures", metavar="FILE", help="Write what gave no record and why: .jsonl, .csv, .parquet."
        ),
    ] = None,
    join: Annotated[
        str | None,
        typer.Option(
            "--join",
            metavar="KEY",
            help="Make one record of the pages of an entity: those with the same value of this attribute, or "
            "with the same text in the group of this pattern in their URLs, such as '/product/([0-9]+)'.",
        ),
    ] = None,
    site: Annotated[
        str | None, typer.Option("--site", metavar="NAME", help="Only this site of the workspace.")
    ] = None,
    unordered: Annotated[
        bool,
        typer.Option("--unordered", help="With -o -, write records as they come, not in the order of pages."),
    ] = False,
    engine: EngineOption = None,
    master: MasterOption = None,
    spark_conf: SparkConfOption = None,
) -> None:
    """Extract the records of pages, each by its wrapper.

    A page finds its wrapper by its URL and its signature; one that is for no wrapper is a failure with a
    reason, and so is one that gives no record. If this is stopped or killed, the same command goes on where
    it was; what goes from a SOURCE to standard output, PostgreSQL or a file elsewhere begins anew. Without
    a SOURCE the pages are those of the workspace, which keeps records and failures, too; with one, --wrapper
    is needed. -j N works with so many processes, and gives the same.

    In the end all is held against the last good run, or what the wrappers were learned from: that far fewer
    records have a value, that values are odd, or that pages give no record is told as a change, kept for
    siteloom relearn, and alarmed about as siteloom monitor does.
    """
    from siteloom.extraction.record_formats import check_destination
    from siteloom.extraction.record_joining import parse_key

    choice = EngineChoice(engine, master, spark_conf)
    if choice.is_bulk:
        if join is not None or site is not None or unordered:
            raise UsageError("--join, --site and --unordered do not go with --engine: leave them out.")
        _extract_in_bulk(shell, choice, sources, wrapper, output, failures)
        return
    key = parse_key(join) if join is not None else None
    if output is not None:
        check_destination(output)
    if failures is not None:
        check_file(failures)
    if sources and site is not None:
        raise UsageError("Give a SOURCE or --site, but not both.")
    if unordered and output != STANDARD_OUTPUT:
        raise UsageError("--unordered is for -o -: files are written in the order of pages at no cost.")
    _check_outputs(output, failures)
    if sources and not wrapper:
        raise UsageError("With a SOURCE, extract needs --wrapper FILE: siteloom learn makes one.")
    from siteloom.extraction.record_formats import RecordFile
    from siteloom.operations.extract import ExtractRequest, extract
    from siteloom.wrappers.named_wrappers import wrappers_of_files

    with _context(shell, sources, (output, failures)) as context:
        request = ExtractRequest(
            site=site,
            wrappers=tuple(wrappers_of_files(wrapper, tell=shell.say)) if wrapper else (),
            output=None if output is None else RecordFile(output),
            failures_output=None if failures is None else partial(open_output, failures, FAILURE_COLUMNS),
            join_key=key,
            is_ordered=not unordered,
        )
        result = extract(context, request)
    _show(shell, result, output)
    if result.changes:
        show_changes(shell, result.changes)
        if result.run is not None:
            say_wrapped(shell, "siteloom relearn repairs what it can from earlier records.", hanging=0)
    for problem in result.alarm_problems:
        shell.warn(problem)
    _check_pages(result.counts)


@contextmanager
def _context(shell: Shell, sources: list[str] | None, outputs: tuple[str | None, ...]) -> Iterator[Context]:
    """The workspace, or sources that are read as a stream."""
    from siteloom.operations.context import source_context

    if not sources:
        with verb_context(shell, None) as context:
            yield context
        return
    opened = _opened(shell, sources, outputs)
    with shell.progress() as progress, source_context(shell.settings, opened, progress=progress) as context:
        yield context


def _show(shell: Shell, result: ExtractResult, output: str | None) -> None:
    show_extracted(shell, result.counts, result.unread, duplicates=result.duplicates, joined=result.joined)
    if not result.records:
        if result.pages:
            shell.say("No page gave a record: siteloom explain tells of a single page why.")
    elif output is None:
        shell.say("To have the records as data, give -o FILE.")
    elif output != STANDARD_OUTPUT:
        shell.say(f"The records are in {shown(output)}.")


def _check_pages(counts: ExtractionCounts) -> None:
    if not counts.pages:
        raise no_page_read(failed=bool(counts.failures), skipped=counts.skipped.total())


def _check_outputs(output: str | None, failures: str | None) -> None:
    """Refuse to write two things to one place."""
    if output == failures == STANDARD_OUTPUT:
        raise UsageError("Records and failures cannot both go to standard output: give one of them a file.")
    written = _written((output, failures))
    if len(set(written)) < len(written):
        place = shown(output or "")
        raise UsageError(f"Records and failures cannot both go to {place}: give one of them another file.")


def _written(outputs: Iterable[str | None]) -> list[Path]:
    return [_place(file) for file in outputs if file is not None and file != STANDARD_OUTPUT]


def _place(location: str) -> Path:
    """What is the same for two names of one file."""
    path = local_path(location)
    return Path(location) if path is None else Path(path).resolve()


def _opened(shell: Shell, locations: Sequence[str], outputs: Iterable[str | None]) -> list[PageSource]:
    """The sources; none of them, and no list of them, may be what is to be written."""
    from siteloom.sources.open_sources import LIST_MARK, open_sources, place_on_disk

    written = _written(outputs)
    for location in locations:
        if _place(location.removeprefix(LIST_MARK)) in written:
            raise UsageError(f"{shown(location)} would be overwritten, but the pages are read from it.")
    opened = open_sources(locations, shell.settings.pages)
    for source in opened:
        place = place_on_disk(source)
        if place is not None and place.resolve() in written:
            raise UsageError(f"{place} would be overwritten, but the pages are read from it.")
    return opened


def _extract_in_bulk(
    shell: Shell,
    choice: EngineChoice,
    sources: list[str] | None,
    files: list[str] | None,
    output: str | None,
    failures: str | None,
) -> None:
    from siteloom.engines.whole_crawls.extract_crawl import extract_in_bulk
    from siteloom.extraction.extraction_counts import ExtractionCounts
    from siteloom.operations.extract import UNREAD_SHOWN, check_footprints, is_unread

    if not files:
        raise UsageError("With a SOURCE, extract needs --wrapper FILE: siteloom learn makes one.")
    if failures is not None:
        check_file(failures)
    wrappers = load_wrappers(shell, files)
    check_footprints(wrappers, shell.say)
    limits = shell.settings.parse
    texts = [(named.name, named.wrapper.to_json()) for named in wrappers]
    with bulk_run(shell, choice, sources, output, (NAME, texts, limits)) as (run, shards):
        totals = finished(shell, run, output) or extract_in_bulk(run, shards, wrappers, limits)
        if failures is not None:
            shell.write(failures, FAILURE_COLUMNS, map(asdict, run.failures()))
        counts = ExtractionCounts.from_rows(totals["tally"])
        unread = islice((failure for failure in run.failures() if is_unread(failure.reason)), UNREAD_SHOWN)
        show_extracted(shell, counts, unread, duplicates=totals["duplicates"])
    _check_pages(counts)
    shell.say(f"The records are in {shown(output or '')}, those of each site in a folder of its own.")
