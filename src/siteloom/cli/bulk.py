"""Whole crawls on an engine: what verbs that can do so share."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom import filesystems
from siteloom.cli.shell import Shell
from siteloom.errors import UsageError
from siteloom.output import STANDARD_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from siteloom.bulk.run import BulkRun, Counts
    from siteloom.engine import Engine
    from siteloom.pages import PageSource

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
    from siteloom.bulk.folder import OutputFolder
    from siteloom.bulk.run import BulkRun, part_count
    from siteloom.extraction_runs import fingerprint, source_files
    from siteloom.pages import open_sources
    from siteloom.record_rows import is_database

    if not sources:
        raise UsageError(f"--engine {choice.engine} works on files: name them as SOURCE.")
    if output is None or output == STANDARD_OUTPUT or output.lower().endswith(_FILE_SUFFIXES):
        raise UsageError(f"--engine {choice.engine} writes a folder of Parquet files: give -o FOLDER.")
    if is_database(output) or output.startswith(filesystems.WEB):
        raise UsageError(
            f"--engine {choice.engine} writes a folder of Parquet files, which {filesystems.shown(output)} "
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

        yield BulkRun(engine, folder, of, part_count(len(shards)), on_stage), shards


def _at_full_path(shell: Shell, source: PageSource) -> PageSource:
    """A source as workers find it, which are in folders of their own."""
    from siteloom.pages import open_source
    from siteloom.pages.source import place_on_disk

    path = place_on_disk(source)
    if path is None or path.is_absolute():
        return source
    return open_source(path.absolute(), shell.settings.pages)


def _insistent(shard: PageSource) -> PageSource:
    """A shard as a run reads it: what cannot be had now is no result, for the same command goes on."""
    from siteloom.pages.cdx import CdxPart
    from siteloom.pages.remote import RemoteFile

    return replace(shard, insistent=True) if isinstance(shard, RemoteFile | CdxPart) else shard


def finished(shell: Shell, run: BulkRun, output: str | None) -> Counts | None:
    """What a run has counted that was done before, of which the user is told."""
    counts = run.finished
    if counts is not None:
        shell.say(f"{filesystems.shown(output or '')} is done already: this is what came of it.")
    return counts


def _engine(shell: Shell, choice: EngineChoice) -> AbstractContextManager[Engine]:
    if choice.engine == "local":
        from siteloom.engine import LocalEngine

        return nullcontext(LocalEngine(shell.settings.run.jobs))
    from siteloom.engine.spark import SparkEngine

    settings = dict(_pair(text) for text in choice.conf or ())
    return SparkEngine(choice.master, settings, shell.warn)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--spark-conf {text} is no setting: write it as KEY=VALUE.")
    return name, value
