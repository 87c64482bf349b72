"""`siteloom watch`: the pages by which changes of a site are noticed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.result_tables import load_wrappers, named
from siteloom.apps.cli.source_arguments import (
    SourcesArgument,
    check_text_file,
    say_unread,
    verb_context,
    write_text,
)
from siteloom.apps.cli.terminal import Shell
from siteloom.core.errors import UsageError
from siteloom.core.remote_files import shown
from siteloom.core.table_files import STANDARD_OUTPUT

if TYPE_CHECKING:
    from siteloom.operations.watch import WatchedWrapper

NAME = "watch"


def run(
    shell: Shell,
    sources: SourcesArgument = None,
    wrapper: Annotated[
        list[str] | None,
        typer.Option(
            "--wrapper",
            metavar="NAME|FILE",
            help="A wrapper of the workspace by its name, or of a file for a SOURCE; may be given several "
            "times [all those of the workspace].",
            show_default=False,
        ),
    ] = None,
    k: Annotated[
        int | None, typer.Option("-k", metavar="N", help="How many pages of each wrapper to watch [20].")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write what is watched here, a line of JSON a wrapper."
        ),
    ] = None,
) -> None:
    """Choose the pages to watch for changes.

    They are stored as they are now, with the values found on them; siteloom monitor compares them with later
    versions. Without a SOURCE, they are chosen among the pages of the workspace and stored there. With one,
    --wrapper FILE and -o are needed, and nothing else is written.
    """
    from siteloom.maintenance.watch_file import watch_to_json
    from siteloom.maintenance.watched_pages import MOST_BELLWETHERS
    from siteloom.operations.watch import WatchRequest, watch

    count = MOST_BELLWETHERS if k is None else k
    if count < 1:
        raise UsageError(f"-k is the number of pages to watch, at least 1, not {k}.")
    if output is not None:
        check_text_file(output, "What is watched is", ".jsonl")
    if sources:
        if not wrapper or output is None:
            raise UsageError("With a SOURCE, watch needs --wrapper FILE and -o FILE.")
        named_wrappers = tuple(load_wrappers(shell, wrapper))
        request = WatchRequest(named_wrappers=named_wrappers, count=count)
    else:
        request = WatchRequest(wrappers=tuple(wrapper or ()), count=count)
    with verb_context(shell, sources) as context:
        say_unread(shell, context.unread)
        result = watch(context, request)
    if not sources:
        for watched in result.watched:
            if watched.warning:
                shell.warn(watched.warning)
    columns = ("wrapper", "version", "watched pages", "attributes", "note")
    shell.show("Watched", columns, map(_table_row, result.watched))
    if output is not None:
        watches = [watched.watch for watched in result.watched if watched.watch]
        write_text(output, "".join(f"{watch_to_json(watch_)}\n" for watch_ in watches))
        if output != STANDARD_OUTPUT:
            shell.say(f"What is watched is in {shown(output)}{'' if sources else ', too'}.")
    if not sources:
        shell.say("To fetch and compare them: siteloom monitor --fetch")
        shell.say("When they were fetched and ingested again by other means: siteloom monitor")


def _table_row(watched: WatchedWrapper) -> tuple[object, ...]:
    if watched.watch is None:
        return watched.wrapper, watched.version, 0, None, watched.reason
    changing = watched.changing_attributes
    note = f"{named(changing)} may change" if changing else ""
    attributes = len(watched.watch.wrapper.attributes)
    return watched.wrapper, watched.version, watched.watched_pages, attributes, note
