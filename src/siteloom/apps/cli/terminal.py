"""Common options, messages, tables, progress bars, errors as one sentence, exit codes."""

from __future__ import annotations

import functools
import inspect
import json
import logging
import os
import signal
import sys
import traceback
from contextlib import ExitStack, contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer

from siteloom.core.errors import OutputError, SiteloomError
from siteloom.core.settings import ResolvedSetting, Settings, load_settings
from siteloom.core.table_files import Column, open_output
from siteloom.core.terminal_text import TextRecords, as_record, guarded, harmless, unguarded
from siteloom.core.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
    from rich.segment import Segment

    from siteloom.core.progress import Progress
    from siteloom.store.store import Store


PROGRAM = "siteloom"


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """The options that every verb takes, before or behind its name."""

    workspace: Annotated[
        str | None, typer.Option("--workspace", metavar="DIR", help="Folder of the workspace [.siteloom].")
    ] = None
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="URL",
            help="Database in place of the workspace's own: postgresql://user@host/name.",
        ),
    ] = None
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            help="How many things to do at once [1].",
        ),
    ] = None
    verbose: Annotated[
        int,
        typer.Option("--verbose", "-v", count=True, show_default=False, help="Say more; twice, all."),
    ] = 0
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False
    log_file: Annotated[
        str | None,
        typer.Option("--log-file", metavar="FILE", help="Append all messages to a file, as JSON lines."),
    ] = None
    debug: Annotated[bool, typer.Option("--debug", help="Show where in the code an error happened.")] = False

    def over(self, before: CommonOptions) -> CommonOptions:
        """These options where given, else those that stood before the verb."""
        return CommonOptions(
            self.workspace or before.workspace,
            self.store or before.store,
            self.jobs if self.jobs is not None else before.jobs,
            self.verbose or before.verbose,
            self.quiet or before.quiet,
            self.log_file or before.log_file,
            self.debug or before.debug,
        )


def common_options(function: Callable[..., None]) -> Callable[..., None]:
    """Replace a function's parameter `options: CommonOptions` by one parameter for each option."""
    own = inspect.signature(function, eval_str=True)
    common = inspect.signature(CommonOptions, eval_str=True)
    parameters = [parameter for parameter in own.parameters.values() if parameter.name != "options"]
    parameters += [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in common.parameters.values()
    ]

    @functools.wraps(function)
    def called(**arguments: Any) -> None:
        options = CommonOptions(**{name: arguments.pop(name) for name in common.parameters})
        function(options=options, **arguments)

    called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


INTERRUPTED = 130  # as shells count it: 128 and the number of the signal

_SHOW_UNTRUSTED = ("config", "doctor")  # verbs that tell what is wrong, and must not stop at it

_PLAIN_RATE = 9.95  # what is less has a digit behind the point, as it would be rounded by a tenth and more

# Errors are told by _fail; without this, Python would print those that come before logging is set up.
logging.getLogger(PROGRAM).addHandler(logging.NullHandler())

OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the result as data: .jsonl, .csv, .parquet, or - for standard output.",
    ),
]


def verb(function: Callable[..., None]) -> Callable[..., None]:
    """A verb's function, called with a `Shell` first, and all its errors told as sentences."""
    own = inspect.signature(function, eval_str=True)
    parameters = [parameter for parameter in own.parameters.values() if parameter.name != "shell"]

    @functools.wraps(function)
    def called(context: typer.Context, options: CommonOptions, **arguments: Any) -> None:
        options = options.over(context.obj or CommonOptions())
        with _errors_as_sentences(options.debug):
            _set_up_logging(options)
            settings, resolved = load_settings(
                Path.cwd(),
                os.environ,
                {"store.workspace": options.workspace, "store.url": options.store, "run.jobs": options.jobs},
                shows_untrusted=context.info_name in _SHOW_UNTRUSTED,
            )
            function(Shell(settings, resolved, options.quiet, options.verbose > 0), **arguments)

    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    common = inspect.Parameter("options", inspect.Parameter.KEYWORD_ONLY, annotation=CommonOptions)
    called.__signature__ = own.replace(parameters=[context, *parameters, common])  # type: ignore[attr-defined]
    called.__annotations__ = {}
    return common_options(called)


@dataclass(frozen=True, slots=True)
class Shell:
    """How a verb speaks to its user: messages and tables on standard error, data to `-o`."""

    settings: Settings
    resolved: tuple[ResolvedSetting, ...]
    quiet: bool
    is_verbose: bool = False

    def say(self, text: str) -> None:
        """Print a message."""
        logging.getLogger(PROGRAM).debug(text.strip())
        if not self.quiet:
            typer.echo(text, err=True, color=True)  # as it is: without, what looks like a colour is cut out

    def warn(self, text: str) -> None:
        """Print what went wrong beside the work itself, even to those who want to hear of nothing else."""
        _tell(text)

    def show(
        self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, unbroken: str = ""
    ) -> None:
        """Print a table; numbers stand to the right. What is in the unbroken column can be copied."""
        if self.quiet:
            return
        from rich.table import Table
        from rich.text import Text

        rows = [list(row) for row in rows]
        table = Table(title=Text(title), title_justify="left", title_style="bold")
        for number, column in enumerate(columns):
            numeric = bool(rows) and all(isinstance(row[number], int | float) for row in rows)
            justify: JustifyMethod = "right" if numeric else "left"
            table.add_column(column, justify=justify, overflow="fold", no_wrap=column == unbroken)
        for row in rows:
            table.add_row(*(Text(_shown(value)) for value in row))
        _console().print(table)

    def draw(self, picture: object) -> None:
        """Print what rich can draw, such as a tree."""
        if not self.quiet:
            _console().print(picture)

    def write_or_show(
        self,
        destination: str | None,
        title: str,
        columns: Sequence[Column],
        rows: Iterable[Mapping[str, object]],
    ) -> None:
        """Write rows to `-o`, or print them as a table if it was not given."""
        if destination is not None:
            self.write(destination, columns, rows)
        else:
            names = [column.name for column in columns]
            self.show(title, names, ([row.get(name) for name in names] for row in rows))

    @contextmanager
    def store(self, *, create: bool = False) -> Iterator[Store]:
        """The workspace's store, which is told about if it had to be upgraded, and closed in the end."""
        from siteloom.store.workspace_folder import open_store

        store = open_store(self.settings.store, create=create)
        try:
            if store.backup:
                self.say(f"The workspace was upgraded; its state before is kept in {store.backup}.")
            yield store
        finally:
            store.close()

    def write(
        self, destination: str | None, columns: Sequence[Column], rows: Iterable[Mapping[str, object]]
    ) -> None:
        """Write rows to `-o`, if it was given."""
        if destination is not None:
            with open_output(destination, columns) as output:
                for row in rows:
                    output.write(row)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Progress of an operation as a line on the terminal, if anyone looks at one."""
        with ExitStack() as stages:
            yield _TerminalProgress(self, stages)

    @contextmanager
    def counting(self, description: str, unit: str = "page") -> Iterator[Callable[[int], None]]:
        """A line that counts pages and their rate while the block runs, if anyone looks at a terminal.

        Or something else, as the unit says.
        """
        with self.stage(description, None, unit) as advance:
            yield lambda count: advance(count, 0)

    @contextmanager
    def measuring(
        self, description: str, steps: int | None, done: int = 0
    ) -> Iterator[Callable[[int], None]]:
        """A line like that of `counting`, which also shows how much of so many steps is left, and how long.

        A step may have any number of pages. How many steps there are may be unknown.
        """
        with self.stage(description, steps, "page") as advance:
            advance(0, done)
            yield lambda pages: advance(pages, 1)

    @contextmanager
    def stepping(self, description: str, steps: int, done: int) -> Iterator[Callable[[int], None]]:
        """A line that shows how many of so many steps are done, and how long it will take."""
        with self.stage(description, steps, "shard") as advance:
            advance(done, done)
            yield lambda count: advance(count, count)

    @contextmanager
    def stage(self, description: str, steps: int | None, unit: str) -> Iterator[Callable[[int, int], None]]:
        """A line that counts units, and shows how many of so many steps are done if that is known."""
        if self.quiet or not sys.stderr.isatty():
            yield lambda _count, _steps: None
            return
        from rich.file_proxy import FileProxy
        from rich.progress import (
            BarColumn,
            Progress,
            ProgressColumn,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns: list[ProgressColumn] = [
            SpinnerColumn(),
            TextColumn("{task.description}  {task.fields[told]}"),
            TimeElapsedColumn(),
        ]
        if steps is not None:
            columns += [BarColumn(), TextColumn("{task.percentage:.0f}%"), TimeRemainingColumn(compact=True)]
        console = _console()
        drawn = Progress(
            *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        # What is told meanwhile stands above the line. FileProxy obeys colours, so the guard is before it.
        above = guarded(cast("TextIO", FileProxy(console, console.file)))
        with drawn as progress, redirect_stderr(above):
            task = progress.add_task(description, total=steps, counted=0, told=_counted(0, unit, None))

            def advance(count: int, done: int) -> None:
                state = progress.tasks[0]
                counted = state.fields["counted"] + count
                told = _counted(counted, unit, state.elapsed)
                progress.update(task, advance=done, counted=counted, told=told)

            yield advance


class _TerminalProgress:
    """Shows the stages of an operation one after the other, each as a line."""

    def __init__(self, shell: Shell, stages: ExitStack) -> None:
        self._shell = shell
        self._stages = stages
        self._advance: Callable[[int, int], None] = lambda _count, _steps: None

    def start(self, message: str, total: int | None = None, unit: str = "page", done: int = 0) -> None:
        """Show a stage in place of the one before."""
        self._stages.close()
        self._advance = self._stages.enter_context(self._shell.stage(message, total, unit))
        self._advance(done, done)

    def advance(self, count: int = 1) -> None:
        """Count what is finished."""
        self._advance(count, count)

    def message(self, text: str) -> None:
        """Print a message above the line."""
        self._shell.say(text)


def _console() -> Console:
    """Where rich draws: styles and movements of its own reach the terminal, those in what it draws do not."""
    from rich.console import Console
    from rich.segment import Segment

    class Harmless(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            # FORCE_COLOR may tell rich of a terminal where there is none, or of none where there is one.
            is_seen = self.is_terminal or self.file.isatty()
            for segment in super().render(renderable, options):
                if segment.control or not is_seen:
                    yield segment
                else:  # no marks: rich has counted what is left out as nothing when it laid out its lines
                    yield Segment(harmless(segment.text, ""), segment.style)

    return Harmless(file=unguarded(sys.stderr), stderr=True, soft_wrap=False)


def _counted(count: int, unit: str, seconds: float | None) -> str:
    """How many there were, and how many a second."""
    rate = count / seconds if seconds else None
    shown = "-" if rate is None else f"{rate:,.0f}" if rate >= _PLAIN_RATE else f"{rate:.1f}"
    return f"{plural(count, unit)}  {shown} {unit}s/s"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value)


@contextmanager
def _errors_as_sentences(debug: bool) -> Iterator[None]:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # being told to stop is like Ctrl-C
    try:
        yield
    except SiteloomError as error:
        _fail(str(error), error.exit_status, debug)
    except KeyboardInterrupt as interrupt:
        _fail(str(interrupt) or "Interrupted; what was done so far is kept.", INTERRUPTED, debug)
    except BrokenPipeError:
        # The reader of our output has seen enough, as in `siteloom ... -o - | head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:  # noqa: BLE001 - a bug, told to the user all the same
        _fail(f"Unexpected error: {error!r}. Please report it with what --debug shows.", 1, debug)


def _fail(message: str, status: int, debug: bool) -> None:
    if debug:
        typer.echo(as_record(traceback.format_exc()), err=True)
    _tell(message)
    raise typer.Exit(status) from None


def _tell(message: str) -> None:
    logging.getLogger(PROGRAM).error(message)
    typer.echo(as_record(f"{PROGRAM}: {message}"), err=True)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)  # in ASCII: U+2028 and the like end lines for some who read them


def _set_up_logging(options: CommonOptions) -> None:
    log = logging.getLogger(PROGRAM)
    log.setLevel(logging.DEBUG)
    if options.verbose and not options.quiet:
        to_screen = logging.StreamHandler()
        to_screen.addFilter(lambda record: record.levelno < logging.ERROR)  # errors are told by _fail
        to_screen.setLevel(logging.DEBUG if options.verbose > 1 else logging.INFO)
        to_screen.setFormatter(TextRecords())
        log.addHandler(to_screen)
    # Of what fails in the server no one is told but those who look at its log.
    of_server = logging.StreamHandler()
    of_server.setLevel(logging.ERROR)
    of_server.setFormatter(TextRecords())
    logging.getLogger(f"{PROGRAM}.apps.server").addHandler(of_server)
    if options.log_file:
        try:
            to_file = logging.FileHandler(options.log_file, encoding="utf-8")
        except OSError as error:
            raise OutputError(
                f"The log file {options.log_file} cannot be written: {error.strerror}."
            ) from error
        to_file.setFormatter(_JsonLines())
        log.addHandler(to_file)
