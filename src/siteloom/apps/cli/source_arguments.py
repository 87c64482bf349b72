"""SOURCE, --wrapper, --engine and -o arguments shared by verbs, and opening their context."""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.terminal import Shell
from siteloom.core import remote_files
from siteloom.core.errors import SourceError, UsageError
from siteloom.core.model import Failure, Page, Skipped
from siteloom.core.table_files import STANDARD_OUTPUT, check_place, output_errors, suffix_of, whole_file
from siteloom.core.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from siteloom.engines.engine import Engine
    from siteloom.engines.whole_crawls.crawl_run import BulkRun, Counts
    from siteloom.operations.context import Context
    from siteloom.sources.page_source import PageSource
    from siteloom.store.store import Store


EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="For whole crawls: local (processes of this machine, see --jobs) or spark (needs the extra "
        "spark, and Java 17 or newer). SOURCE is needed then, -o is a folder of Parquet files by site, and "
        "the same command goes on with what was stopped or killed.",
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="With --engine spark: the master, such as spark://host:7077, yarn or local[4] [Spark's own].",
    ),
]
SparkConfOption = Annotated[
    list[str] | None,
    typer.Option(
        "--spark-conf",
        metavar="KEY=VALUE",
        help="With --engine spark: a setting of Spark; may be given several times.",
        show_default=False,
    ),
]

# These name files, not folders. Folders of Parquet files may end in .parquet, as those of Spark do.
_FILE_SUFFIXES = (".jsonl", ".csv", ".json", ".db")


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """What was said about the engine."""

    engine: str | None
    master: str | None
    conf: list[str] | None

    @property
    def is_bulk(self) -> bool:
        """Whether the work is for an engine and goes to a folder; choices that make no sense are refused."""
        if self.engine not in (None, "local", "spark"):
            raise UsageError(f"There is no engine {self.engine}: use local or spark.")
        if self.engine != "spark" and (self.master is not None or self.conf):
            option = "--master" if self.master is not None else "--spark-conf"
            raise UsageError(f"{option} is for --engine spark: add that, or leave it out.")
        return self.engine is not None


@contextmanager
def bulk_run(
    shell: Shell, choice: EngineChoice, sources: list[str] | None, output: str | None, asked: object
) -> Iterator[tuple[BulkRun, list[PageSource]]]:
    """A run of a verb into the folder `-o`, and the shards of all sources; `asked` is all that decides it."""
    from siteloom.engines.whole_crawls.crawl_run import BulkRun, partition_count
    from siteloom.engines.whole_crawls.output_folder import OutputFolder
    from siteloom.extraction.record_formats import is_database
    from siteloom.operations.extraction_shards import fingerprint, source_files
    from siteloom.sources.open_sources import open_sources

    if not sources:
        raise UsageError(f"--engine {choice.engine} works on files: name them as SOURCE.")
    if output is None or output == STANDARD_OUTPUT or output.lower().endswith(_FILE_SUFFIXES):
        raise UsageError(f"--engine {choice.engine} writes a folder of Parquet files: give -o FOLDER.")
    if is_database(output) or output.startswith(remote_files.WEB):
        raise UsageError(
            f"--engine {choice.engine} writes a folder of Parquet files, which {remote_files.shown(output)} "
            "cannot be: give -o FOLDER."
        )
    if Path(output).is_file():
        raise UsageError(f"{output} is a file: --engine {choice.engine} writes a folder, give another -o.")
    folder = OutputFolder(output if "://" in output else str(Path(output).absolute()))
    opened = [_at_full_path(shell, source) for source in open_sources(sources, shell.settings.pages)]
    shards = [_insistent(shard) for source in opened for shard in source.shards()]
    files = (file for source in opened for file in source_files(source))
    of = fingerprint(asked, shards, files)
    with _engine(shell, choice) as engine, ExitStack() as shown:

        def on_stage(stage: str, steps: int, done: int) -> Callable[[int], object]:
            shown.close()
            shell.say(f"Stage {stage}: {done:,} of {steps:,} done.")  # for those who look at a log
            return shown.enter_context(shell.stepping(stage.capitalize(), steps, done))

        yield BulkRun(engine, folder, of, partition_count(len(shards)), on_stage), shards


def _at_full_path(shell: Shell, source: PageSource) -> PageSource:
    """A source as workers find it, which are in folders of their own."""
    from siteloom.sources.open_sources import open_source, place_on_disk

    path = place_on_disk(source)
    if path is None or path.is_absolute():
        return source
    return open_source(path.absolute(), shell.settings.pages)


def _insistent(shard: PageSource) -> PageSource:
    """A shard as a run reads it: what cannot be had now is no result, for the same command goes on."""
    from siteloom.sources.cdx_index import CdxPart
    from siteloom.sources.remote_source import RemoteFile

    return replace(shard, insistent=True) if isinstance(shard, RemoteFile | CdxPart) else shard


def finished(shell: Shell, run: BulkRun, output: str | None) -> Counts | None:
    """What a run has counted that was done before, of which the user is told."""
    counts = run.finished
    if counts is not None:
        shell.say(f"{remote_files.shown(output or '')} is done already: this is what came of it.")
    return counts


def _engine(shell: Shell, choice: EngineChoice) -> AbstractContextManager[Engine]:
    if choice.engine == "local":
        from siteloom.engines.local_engine import LocalEngine

        return nullcontext(LocalEngine(shell.settings.run.jobs))
    from siteloom.engines.spark_engine import SparkEngine

    settings = dict(_pair(text) for text in choice.conf or ())
    return SparkEngine(choice.master, settings, shell.warn)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--spark-conf {text} is no setting: write it as KEY=VALUE.")
    return name, value


_DATA = (".csv", ".jsonl", ".parquet")


def check_text_file(file: str, what: str, ending: str) -> None:
    """Raise now what would be wrong with a file once there is something to write to it."""
    if suffix_of(file) in _DATA and suffix_of(file) != ending:
        raise UsageError(f"{what} written as {ending}: give a name such as {Path(file).stem}{ending}.")
    if file != STANDARD_OUTPUT:
        check_place(file)


def write_text(file: str, text: str) -> None:
    """Write a text to a file, here or elsewhere, or to standard output for `-`."""
    content = text.encode("utf-8", "replace")
    if file == STANDARD_OUTPUT:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    with whole_file(file) as output, output_errors(file):
        output.write(content)


def as_lines(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


SOURCE_HELP = (
    "Folder of HTML files, or a WARC, WACZ, Parquet, JSON Lines or HTML file, or a CDX index of WARC files; "
    "s3://... and the like for files elsewhere, a pattern such as '*.warc.gz', or @FILE for a list of sources"
)

SourcesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SOURCE",
        help=f"{SOURCE_HELP}; without, the workspace.",
        show_default=False,
    ),
]


WrappersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--wrapper",
        metavar="FILE",
        help="A wrapper to use, or a folder of them that bootstrap --engine made; may be given several times "
        "[all those of the workspace].",
        show_default=False,
    ),
]

MethodOption = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="NAME",
        help="Site by site: vertex, paths. For pages of any origin: text-max, text-hash, text-mdl, rtdm.",
    ),
]


def no_page_read(*, failed: bool, skipped: int) -> SourceError:
    """The error that no page could be read, and why."""
    why = "the sources are empty"
    if failed:
        why = "all of them failed, as shown above"
    elif skipped:
        why = f"all {skipped:,} documents in the sources were skipped"
    return SourceError(f"No page could be read: {why}.")


@contextmanager
def stored_pages(shell: Shell, sources: list[str] | None) -> Iterator[Store]:
    """The workspace's store; or, for sources, one of their pages that is gone in the end.

    Stages read pages in any order and more than once, which a stream cannot give.
    """
    if not sources:
        with shell.store() as store:
            yield store
        return
    from siteloom.core.remote_files import shown
    from siteloom.core.settings import StoreSettings
    from siteloom.operations.page_import import import_pages
    from siteloom.sources.open_sources import open_sources
    from siteloom.store.workspace_folder import open_store

    opened = open_sources(sources, shell.settings.pages)
    with tempfile.TemporaryDirectory(prefix="siteloom-") as folder:
        store = open_store(StoreSettings(workspace=folder), create=True)
        try:
            report = import_pages(
                store, opened, jobs=shell.settings.run.jobs, names=[shown(one) for one in sources]
            )
            say_unread(shell, report.failures)
            yield store
        finally:
            store.close()


@contextmanager
def verb_context(shell: Shell, sources: list[str] | None, *, create: bool = False) -> Iterator[Context]:
    """The context of a verb: the workspace, or for sources a temporary workspace with their pages.

    With `create`, a missing workspace is created.
    """
    from siteloom.core.remote_files import shown
    from siteloom.operations.context import open_context, temporary_context
    from siteloom.sources.open_sources import open_sources
    from siteloom.store.queries.accounts import LOCAL

    with shell.progress() as progress:
        if not sources:
            with open_context(shell.settings, progress=progress, author=LOCAL, create=create) as context:
                yield context
            return
        opened = open_sources(sources, shell.settings.pages)
        names = [shown(source) for source in sources]
        with temporary_context(shell.settings, opened, progress=progress, names=names) as context:
            yield context


def pages_of(shell: Shell, sources: list[str], description: str) -> Iterator[Page]:
    """The pages of sources one after the other; what could not be read is said in the end."""
    from siteloom.sources.open_sources import open_sources

    opened = open_sources(sources, shell.settings.pages)
    count = skipped = 0
    failures: Counter[str] = Counter()
    with shell.counting(description) as advance:
        for item in (item for source in opened for item in source.read()):
            match item:
                case Page():
                    count += 1
                    advance(1)
                    yield item
                case Failure():
                    failures[item.reason] += 1
                case Skipped():
                    skipped += 1
    say_unread(shell, failures)
    if not count:
        raise no_page_read(failed=bool(failures), skipped=skipped)


def say_unread(shell: Shell, failures: Mapping[str, int]) -> None:
    """Say how many pages could not be read, and why."""
    for reason, count in failures.items():
        shell.say(f"{plural(count, 'page')} could not be read: {reason}.")
