"""`siteloom export`: a wrapper as what other programs run."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.result_tables import load_wrappers
from siteloom.apps.cli.result_tables import named as listed
from siteloom.apps.cli.source_arguments import SOURCE_HELP, verb_context, write_text
from siteloom.apps.cli.terminal import Shell
from siteloom.core.errors import NoWorkspace, OutputError, UsageError
from siteloom.core.remote_files import has_scheme, shown
from siteloom.core.table_files import STANDARD_OUTPUT, check_place
from siteloom.core.wording import plural
from siteloom.wrappers.exports.export_formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from siteloom.operations.context import Context
    from siteloom.operations.export import ExportResult

NAME = "export"


def run(
    shell: Shell,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE",
            help=f"Pages for the tests of web-poet: {SOURCE_HELP}; without, those of the workspace.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        str | None,
        typer.Option("--format", metavar="NAME", help=f"As what: {', '.join(FORMATS)}.", show_default=False),
    ] = None,
    wrapper: Annotated[
        str | None,
        typer.Option(
            "--wrapper",
            metavar="NAME|FILE",
            help="A wrapper of the workspace by its name, or a file [the only one of the workspace].",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|FOLDER",
            help="Where to write it: a file, or - for standard output; for web-poet a folder.",
        ),
    ] = STANDARD_OUTPUT,
) -> None:
    """Write a wrapper as XSLT, XPath in JSON, spider or page object.

    What is written gives the records that siteloom extract gives, and needs nothing of Siteloom. web-poet
    needs the extra web-poet, and a folder that is empty, new or an earlier export.
    """
    checked = next((known for known in FORMATS if known == format), None)
    if checked is None:
        wrong = "Say as what" if format is None else f"There is no format {format}"
        raise UsageError(f"{wrong}: --format is one of {', '.join(FORMATS)}.")
    is_folder = format == "web-poet"
    _check_output(output, is_folder=is_folder)
    if sources and not is_folder:
        raise UsageError("Only --format web-poet takes a SOURCE, for its tests: leave it out.")
    from siteloom.operations.export import ExportRequest, export

    is_file = wrapper is not None and (has_scheme(wrapper) or Path(wrapper).is_file())
    with _context(
        shell, sources, wrapper, needs_workspace=not is_file or (is_folder and not sources)
    ) as context:
        result = export(
            context,
            ExportRequest(
                format=checked,
                wrapper=None if is_file else wrapper,
                named_wrapper=load_wrappers(shell, [wrapper])[0] if wrapper is not None and is_file else None,
                folder=Path(output) if is_folder else None,
            ),
        )
    _show(shell, result, output)


def _show(shell: Shell, result: ExportResult, output: str) -> None:
    name = result.wrapper if result.version is None else f"{result.wrapper}, version {result.version}"
    if result.module is not None:
        pages = plural(result.tested_pages, "page")
        shell.say(f"{name} is in {Path(output) / result.module}.py, with tests of {pages}.")
        shell.say(f"Run them: cd {Path(output)} && python -m pytest")
    elif result.text is not None:
        write_text(output, result.text)
        if output != STANDARD_OUTPUT:
            shell.say(f"{name} is in {shown(output)}.")
    if result.text_attributes:
        attributes = listed([f"{attribute} ({kind})" for attribute, kind in result.text_attributes.items()])
        shell.say(
            f"It gives texts as they stand on the page: siteloom withholds those of {attributes} that it "
            "cannot read as such, the export does not."
        )


@contextmanager
def _context(
    shell: Shell, sources: list[str] | None, wrapper: str | None, *, needs_workspace: bool
) -> Iterator[Context]:
    """The workspace, or sources that are read as a stream."""
    from siteloom.operations.context import source_context
    from siteloom.sources.open_sources import open_sources

    if needs_workspace:
        try:
            with verb_context(shell, None) as context:
                opened = open_sources(sources or (), shell.settings.pages)
                yield replace(context, sources=tuple(opened))
        except NoWorkspace as error:
            raise UsageError(_without_workspace(wrapper)) from error
        return
    opened = open_sources(sources or (), shell.settings.pages)
    with shell.progress() as progress, source_context(shell.settings, opened, progress=progress) as context:
        yield context


def _without_workspace(wrapper: str | None) -> str:
    """What to do where there is no workspace."""
    if wrapper is None:
        return "Give --wrapper FILE: there is no workspace with wrappers."
    if has_scheme(wrapper) or Path(wrapper).is_file():
        return "The tests of web-poet are made of pages: give some as SOURCE, there is no workspace."
    return f"There is no file {wrapper}, and no workspace with such a wrapper."


def _check_output(output: str, *, is_folder: bool) -> None:
    if is_folder:
        if output == STANDARD_OUTPUT or has_scheme(output):
            raise UsageError("A page object for web-poet is a folder: say where to write it with -o FOLDER.")
        from siteloom.wrappers.exports.web_poet_page import check_folder

        check_folder(Path(output))
    elif Path(output).is_dir():
        raise OutputError(f"{output} is a folder: give the name of a file.")
    elif output != STANDARD_OUTPUT:
        check_place(output)
