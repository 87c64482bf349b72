"""`siteloom extract`: records out of pages."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.cli.extraction_summary import show_extracted
from siteloom.cli.shell import Shell
from siteloom.cli.sources import SourcesArgument, WrappersOption
from siteloom.errors import SourceError, UsageError
from siteloom.output import STANDARD_OUTPUT, Column, open_output
from siteloom.output import check_destination as check_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from siteloom.extraction import Tally
    from siteloom.extraction_runs import Journal, Plan
    from siteloom.model import Failure
    from siteloom.record_rows import JoinKey, Row

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
            help="Write the records: .jsonl, .csv, .parquet, sqlite:///FILE, postgresql://..., or - for "
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
) -> None:
    """Extract the records of pages, each by the wrapper that it is for.

    A page finds its wrapper by its URL and its signature; one that is for no wrapper is a failure with a
    reason, and so is one that gives no record. If this is stopped or killed, the same command goes on where
    it was. Without a SOURCE the pages are those of the workspace, which keeps records and failures, too.
    """
    from siteloom.record_rows import check_destination, parse_key

    key = parse_key(join) if join is not None else None
    if output is not None:
        check_destination(output)
    if failures is not None:
        check_file(failures)
    if failures == STANDARD_OUTPUT and output == STANDARD_OUTPUT:
        raise UsageError("Records and failures cannot both go to standard output: give one of them a file.")
    if sources and site is not None:
        raise UsageError("Give a SOURCE or --site, but not both.")
    with _journal(shell, sources, wrapper, site, output) as (plan, journal):
        outlet = _Outlet(shell, plan, key, output, failures)
        tally = outlet.stream(unordered=unordered) if journal is None else outlet.run(journal)
        show_extracted(shell, tally, duplicates=outlet.duplicates, joined=outlet.written if key else None)
        if output is None:
            shell.say("To have the records as data, give -o FILE.")
        elif output != STANDARD_OUTPUT:
            shell.say(f"The records are in {output}.")
    if not tally["pages",]:
        raise SourceError("There was no page: see what failed or was skipped above.")


@contextmanager
def _journal(
    shell: Shell, sources: list[str] | None, files: list[str] | None, site: str | None, output: str | None
) -> Iterator[tuple[Plan, Journal | None]]:
    """What is to be done, and where its results are kept meanwhile: nowhere if they are only passed on."""
    from siteloom.extraction_runs import (
        FolderJournal,
        Plan,
        StoreJournal,
        wrapper_texts_of_files,
        wrapper_texts_of_store,
    )

    limits = shell.settings.parse
    if not sources:
        with shell.store() as store:
            wrappers = wrapper_texts_of_files(files) if files else wrapper_texts_of_store(store)
            plan = Plan(wrappers, limits, store.page_shards(site))
            arguments = {"site": site, "wrappers": [str(one.name) for one in wrappers]}
            with store.extracting(arguments, plan.fingerprint(())) as extraction:
                yield plan, StoreJournal(store, extraction)
        return
    from siteloom.pages import open_source

    if not files:
        raise UsageError("With a SOURCE, extract needs --wrapper FILE: siteloom learn makes one.")
    opened = [open_source(source, shell.settings.pages) for source in sources]
    shards = [shard for source in opened for shard in source.shards()]
    plan = Plan(wrapper_texts_of_files(files), limits, shards)
    if output is None or output == STANDARD_OUTPUT or "://" in output:
        yield plan, None
        return
    journal = FolderJournal(Path(f"{output}.parts"), plan.fingerprint(sources))
    yield plan, journal
    journal.close()


class _Outlet:
    """Where records and failures go, and what is told about them."""

    def __init__(
        self, shell: Shell, plan: Plan, key: JoinKey | None, output: str | None, failures: str | None
    ) -> None:
        self._shell = shell
        self._plan = plan
        self._key = key
        self._output = output
        self._failures = failures
        self.written = 0
        self.duplicates = 0
        wrappers = [text.loaded().wrapper for text in plan.wrappers]
        self._attributes = list(dict.fromkeys(name for one in wrappers for name in one.attributes))
        if key is not None and key.attribute is not None and key.attribute not in self._attributes:
            known = ", ".join(self._attributes)
            raise UsageError(f"No wrapper has the attribute {key.attribute} to join by: there are {known}.")
        if key is not None and key.url_pattern is not None and any(one.record_rule for one in wrappers):
            raise UsageError(
                "Records of a list have the same URL: join them by an attribute instead of a URL pattern."
            )

    def run(self, journal: Journal) -> Tally:
        """Do all shards with a journal, and write what is in it in the end, also if stopped before."""
        from siteloom.extraction_runs import run_extraction

        shards = len(self._plan.shards)
        if journal.done:
            self._shell.say(
                f"Going on with a run that was stopped: {len(journal.done):,} of {shards:,} shards are done."
            )
        try:
            with self._shell.measuring("Extracting", shards) as count:
                tally = run_extraction(
                    self._plan, journal, self._shell.settings.run.jobs, lambda found: count(found["pages",])
                )
        except KeyboardInterrupt:
            self._write_journal(journal)
            if self._output is not None:
                self._shell.say(f"{self._output} has the records found so far; the same command goes on.")
            raise
        self._write_journal(journal)
        return tally

    def stream(self, *, unordered: bool) -> Tally:
        """Do all shards, and write what comes of each at once."""
        from siteloom.extraction_runs import in_order

        tally: Tally = Counter()
        with (
            self._shell.measuring("Extracting", len(self._plan.shards)) as count,
            self._writing_failures() as write_failure,
        ):

            def rows() -> Iterator[Row]:
                results = self._plan.results(self._shell.settings.run.jobs)
                for result in (result for _, result in results) if unordered else in_order(results):
                    tally.update(result.tally)
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
        from siteloom.record_rows import flag_duplicates, join_rows, open_records

        if self._key is not None:
            rows = join_rows(rows, self._key)
        opened = (
            nullcontext(_Nowhere())
            if self._output is None
            else open_records(self._output, self._attributes, with_pages=self._key is not None)
        )
        with opened as records:
            for row in flag_duplicates(rows):
                self.written += 1
                self.duplicates += row["duplicate_of"] is not None
                records.write(row)

    @contextmanager
    def _writing_failures(self) -> Iterator[Callable[[Failure], None]]:
        if self._failures is None:
            yield lambda _: None
            return
        with open_output(self._failures, _FAILURE_COLUMNS) as writer:
            yield lambda one: writer.write({"url": one.url, "reason": one.reason, "detail": one.detail})


class _Nowhere:
    """Takes rows that no one wants."""

    def write(self, row: Mapping[str, object]) -> None:
        """Forget a row."""
