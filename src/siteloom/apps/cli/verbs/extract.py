"""`siteloom extract`: records out of pages."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.result_tables import (
    FAILURES_SHOWN,
    OutputHealth,
    is_unread,
    load_wrappers,
    show_extracted,
)
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
)
from siteloom.apps.cli.terminal import Shell
from siteloom.core.errors import UsageError, WrapperError
from siteloom.core.remote_files import local_path, shown
from siteloom.core.table_files import STANDARD_OUTPUT, Column, open_output
from siteloom.core.table_files import check_destination as check_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from siteloom.core.model import Failure
    from siteloom.extraction.extractor import Tally
    from siteloom.extraction.record_joining import JoinKey
    from siteloom.extraction.record_rows import Row
    from siteloom.operations.extraction_shards import Journal, Plan
    from siteloom.sources.page_source import PageSource
    from siteloom.store.store import Store
    from siteloom.wrappers.matching import NamedWrapper

NAME = "extract"

_FAILURE_COLUMNS = (Column("url"), Column("reason"), Column("detail"))


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
    with nullcontext() if sources else shell.store() as store:
        opened = _opened(shell, sources or (), (output, failures))
        plan = _plan(shell, store, opened, wrapper, site)
        outlet = _Outlet(shell, plan, key, output, failures)
        health = OutputHealth(shell, store, outlet.wrappers, site)
        with _journal(plan, store, opened, site, output) as journal:
            tally = outlet.stream(unordered=unordered) if journal is None else outlet.run(journal)
            health.check(tally, journal)
        joined = outlet.written if key else None
        show_extracted(shell, tally, outlet.unread, duplicates=outlet.duplicates, joined=joined)
        if not tally["records",]:
            if tally["pages",]:
                shell.say("No page gave a record: siteloom explain tells of a single page why.")
        elif output is None:
            shell.say("To have the records as data, give -o FILE.")
        elif output != STANDARD_OUTPUT:
            shell.say(f"The records are in {shown(output)}.")
    health.tell()
    _check_pages(tally)


def _check_pages(tally: Tally) -> None:
    if not tally["pages",]:
        skipped = sum(count for key, count in tally.items() if key[0] == "skipped")
        raise no_page_read(failed=any(key[0] == "failed" for key in tally), skipped=skipped)


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


def _plan(
    shell: Shell,
    store: Store | None,
    sources: Iterable[PageSource],
    files: list[str] | None,
    site: str | None,
) -> Plan:
    """What is to be done with the pages of the store, or else of the sources."""
    from siteloom.operations.extraction_shards import Plan, shards_of, workspace_plan
    from siteloom.wrappers.named_wrappers import wrapper_texts_of_files

    limits = shell.settings.parse
    if store is not None:
        return workspace_plan(store, limits, site, files or ())
    if not files:
        raise UsageError("With a SOURCE, extract needs --wrapper FILE: siteloom learn makes one.")
    wrappers = wrapper_texts_of_files(files)
    return Plan(wrappers, limits, [shard for source in sources for shard in shards_of(source)])


@contextmanager
def _journal(
    plan: Plan,
    store: Store | None,
    sources: Iterable[PageSource],
    site: str | None,
    output: str | None,
) -> Iterator[Journal | None]:
    """Where results are kept meanwhile: nowhere if they are only passed on."""
    from siteloom.operations.extraction_shards import FolderJournal, source_files, workspace_journal

    if store is not None:
        with workspace_journal(store, plan, site) as journal:
            yield journal
    elif (file := _file_of(output)) is not None:
        files = (one for source in sources for one in source_files(source))
        with FolderJournal(Path(f"{file}.parts"), plan.fingerprint(files)) as beside_output:
            yield beside_output
    else:
        yield None


def _file_of(output: str | None) -> str | None:
    """The file of this machine that an output is, if it is one."""
    from siteloom.extraction.record_formats import is_database

    if output is None or output == STANDARD_OUTPUT:
        return None
    if not is_database(output):
        return local_path(output)
    from sqlalchemy import make_url

    url = make_url(output)
    return url.database if url.get_backend_name() == "sqlite" else None


def _is_new_file(output: str) -> bool:
    from siteloom.extraction.record_formats import is_database

    file = _file_of(output)
    return file is not None and not is_database(output) and not Path(file).exists()


def _extract_in_bulk(
    shell: Shell,
    choice: EngineChoice,
    sources: list[str] | None,
    files: list[str] | None,
    output: str | None,
    failures: str | None,
) -> None:
    from siteloom.engines.whole_crawls.extract_crawl import extract_in_bulk
    from siteloom.extraction.extractor import tally_from
    from siteloom.wrappers.named_wrappers import wrapper_texts_of_files

    if not files:
        raise UsageError("With a SOURCE, extract needs --wrapper FILE: siteloom learn makes one.")
    if failures is not None:
        check_file(failures)
    wrappers = wrapper_texts_of_files(files)
    _check_footprints(shell, load_wrappers(shell, wrappers))
    limits = shell.settings.parse
    with bulk_run(shell, choice, sources, output, (NAME, wrappers, limits)) as (run, shards):
        counts = finished(shell, run, output) or extract_in_bulk(run, shards, wrappers, limits)
        if failures is not None:
            shell.write(failures, _FAILURE_COLUMNS, map(asdict, run.failures()))
        tally = tally_from(counts["tally"])
        show_extracted(shell, tally, run.failures(), duplicates=counts["duplicates"])
    _check_pages(tally)
    shell.say(f"The records are in {shown(output or '')}, those of each site in a folder of its own.")


class _Outlet:
    """Where records and failures go, and what is told about them."""

    def __init__(
        self, shell: Shell, plan: Plan, key: JoinKey | None, output: str | None, failures: str | None
    ) -> None:
        from siteloom.extraction.record_rows import common_schema

        self._shell = shell
        self._plan = plan
        self._key = key
        self._output = output
        self._failures = failures
        self.written = 0
        self.duplicates = 0
        self.unread: list[Failure] = []  # the first of them
        self.wrappers = load_wrappers(shell, plan.wrappers)
        _check_footprints(shell, self.wrappers)
        wrappers = [named.wrapper for named in self.wrappers]
        self._attributes = list(dict.fromkeys(name for one in wrappers for name in one.attributes))
        self._schema = common_schema(
            {name: found.attribute for name, found in layout.attributes.items()}
            for one in wrappers
            for layout in one.layouts
        )
        self._lists = frozenset(
            named.name
            for named in self.wrappers
            if any(layout.record_rule is not None for layout in named.wrapper.layouts)
        )
        if key is not None and key.attribute is not None and key.attribute not in self._attributes:
            known = ", ".join(self._attributes)
            raise UsageError(
                f"No wrapper has the attribute {key.attribute} to join by: there are {known}; "
                "a pattern of URLs needs a group in parentheses."
            )
        if key is not None and key.url_pattern is not None and any(one.record_rule for one in wrappers):
            raise UsageError(
                "Records of a list have the same URL: join them by an attribute instead of a URL pattern."
            )

    def run(self, journal: Journal) -> Tally:
        """Do all shards with a journal, and write what is in it in the end, also if stopped before."""
        from siteloom.operations.extraction_shards import run_extraction

        shards = self._plan.shard_count
        if journal.done:
            of_all = f" of {shards:,}" if shards is not None else ""
            self._shell.say(
                f"Going on with a run that was stopped: {len(journal.done):,}{of_all} shards are done."
            )
        try:
            with self._shell.measuring("Extracting", shards, len(journal.done)) as count:
                tally = run_extraction(
                    self._plan, journal, self._shell.settings.run.jobs, lambda found: count(found["pages",])
                )
        except KeyboardInterrupt:
            self._write_what_is_there(journal)
            raise
        self._write_journal(journal)
        return tally

    def _write_what_is_there(self, journal: Journal) -> None:
        """Give what is done so far, but never in the place of what is there already."""
        file = self._output
        if not journal.done or file is None or not _is_new_file(file):
            self._shell.say("The same command goes on where this one was stopped.")
            return
        self._write_journal(journal)
        self._shell.say(f"{file} has the records found so far; the same command goes on.")

    def stream(self, *, unordered: bool) -> Tally:
        """Do all shards, and write what comes of each at once."""
        from siteloom.extraction.extractor import add_tally
        from siteloom.operations.extraction_shards import in_order

        tally: Tally = Counter()
        with (
            self._shell.measuring("Extracting", self._plan.shard_count) as count,
            self._writing_failures() as write_failure,
            closing(self._plan.results(self._shell.settings.run.jobs)) as results,
        ):

            def rows() -> Iterator[Row]:
                for result in (result for _, result in results) if unordered else in_order(results):
                    add_tally(tally, result.tally)
                    count(result.tally["pages",])
                    for failure in result.failures:
                        write_failure(failure)
                    yield from (json.loads(line.content) for line in result.lines)

            self._write_records(rows())
        return tally

    def _write_journal(self, journal: Journal) -> None:
        self._write_records(map(json.loads, journal.lines()))
        with self._writing_failures() as write_failure:
            for failure in journal.failures():
                write_failure(failure)

    def _write_records(self, rows: Iterable[Row]) -> None:
        from siteloom.extraction.record_formats import open_records
        from siteloom.extraction.record_joining import join_rows
        from siteloom.extraction.record_rows import flag_duplicates

        if self._key is not None:
            rows = join_rows(rows, self._key)
        opened = (
            nullcontext(_Nowhere())
            if self._output is None
            else open_records(
                self._output,
                self._attributes,
                with_pages=self._key is not None,
                schema=self._schema,
                lists=self._lists,
            )
        )
        with opened as records:
            for row in flag_duplicates(rows):
                self.written += 1
                self.duplicates += row["duplicate_of"] is not None
                records.write(row)

    @contextmanager
    def _writing_failures(self) -> Iterator[Callable[[Failure], None]]:
        opened = (
            nullcontext(_Nowhere())
            if self._failures is None
            else open_output(self._failures, _FAILURE_COLUMNS)
        )
        with opened as writer:

            def write(one: Failure) -> None:
                if len(self.unread) < FAILURES_SHOWN and is_unread(one.reason):
                    self.unread.append(one)
                writer.write({"url": one.url, "reason": one.reason, "detail": one.detail})

            yield write


def _check_footprints(shell: Shell, wrappers: Iterable[NamedWrapper]) -> None:
    """Say which wrappers no page can find, and that nothing will come of it if all are such."""
    footprints = {str(named): named.wrapper.footprint for named in wrappers}
    without = [name for name, one in footprints.items() if not (one.sites and one.url_patterns)]
    told = f"No page can find its way to {', '.join(without)}, for there is no footprint: learn again."
    if len(without) == len(footprints):
        raise WrapperError(told)
    if without:
        shell.say(told)


class _Nowhere:
    """Takes rows that no one wants."""

    def write(self, row: Mapping[str, object]) -> None:
        """Forget a row."""
