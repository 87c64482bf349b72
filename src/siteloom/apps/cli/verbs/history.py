"""`siteloom history`: the versions of wrappers, and why each was made."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from siteloom.apps.cli.result_tables import say_wrapped, show_difference
from siteloom.apps.cli.source_arguments import verb_context
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.table_files import Column, check_destination, flat_for
from siteloom.core.wording import percent
from siteloom.maintenance.change_messages import change_names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from siteloom.operations.wrapper_versions import CheckSummary, WrapperHistory

NAME = "history"

_DEEP = ("rules", "values")
_COLUMNS = (
    Column("wrapper"),
    Column("version", "integer"),
    Column("created_at", "time"),
    Column("origin"),
    Column("note"),
    Column("outcome"),
    Column("confidence", "number"),
    *(Column(name) for name in _DEEP),
)
_ORIGINS = {
    "reused": "reuse",
    "repaired": "repair",
    "needs-annotation": "repair in part",
    "withdrawn": "withdrawal",
}
_WAITING = {"review": "a repair waits for review", "annotation": "examples are needed"}


def run(
    shell: Shell,
    wrapper: Annotated[
        str | None,
        typer.Argument(
            metavar="WRAPPER", help="All versions of the wrapper of this name.", show_default=False
        ),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Show the versions of wrappers, and why each was made.

    All wrappers are listed with what the last check found and what waits for a person. With the name of a
    wrapper, each version is shown with what differs from the one before.
    """
    if output is not None:
        check_destination(output)
    from siteloom.operations.wrapper_versions import HistoryRequest, history

    has_versions = wrapper is not None or output is not None
    with verb_context(shell, None) as context:
        result = history(context, HistoryRequest(wrapper=wrapper, has_versions=has_versions))
    if output is not None:
        rows = (row for shown in result.wrappers for row in _rows(shown))
        shell.write(output, _COLUMNS, (flat_for(output, row, _DEEP) for row in rows))
    if wrapper is not None:
        for shown in result.wrappers:
            _show_versions(shell, shown)
    elif result.wrappers:
        columns = ("wrapper", "versions", "newest", "last check", "waits for")
        shell.show("Wrappers", columns, map(_summary, result.wrappers))
    else:
        shell.say("There are no wrappers yet: run siteloom learn first.")


def _summary(shown: WrapperHistory) -> tuple[object, ...]:
    return (
        shown.wrapper,
        shown.newest_version,
        f"{_minute(shown.created_at)} by {_ORIGINS.get(shown.origin, shown.origin)}",
        _check_words(shown.last_check) if shown.last_check else "never checked",
        ", ".join(_WAITING[repair.state] for repair in shown.waiting),
    )


def _check_words(check: CheckSummary) -> str:
    if check.is_healthy:
        drifted = ", but pages look different" if check.has_drifted else ""
        return f"{_minute(check.at)}: healthy{drifted}"
    return f"{_minute(check.at)}: changed ({change_names(check.tests)})"


def _minute(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"


def _rows(shown: WrapperHistory) -> Iterator[dict[str, Any]]:
    """A row for each version, with what differs from the one before."""
    for version in shown.versions:
        yield {
            "wrapper": shown.wrapper,
            "version": version.version,
            "created_at": version.created_at,
            "origin": version.origin,
            "note": version.note,
            "outcome": version.outcome,
            "confidence": version.confidence,
            "rules": [asdict(rules) for rules in version.difference.rules],
            "values": [asdict(value) for value in version.difference.values],
        }


def _show_versions(shell: Shell, shown: WrapperHistory) -> None:
    name = shown.wrapper
    for version in shown.versions:
        origin = _ORIGINS.get(version.origin, version.origin)
        shell.say(f"\n{name}, version {version.version}, {_minute(version.created_at)}, by {origin}")
        if version.note:
            say_wrapped(shell, version.note, 2)
        if version.outcome is not None and version.confidence is not None:
            shell.say(f"  outcome: {version.outcome}, confidence {percent(version.confidence)}")
        show_difference(shell, version.difference)
    if shown.last_check:
        shell.say(f"\nLast check: {_check_words(shown.last_check)}")
    for repair in shown.waiting:
        if repair.is_acceptable:
            shell.say(f"\nA repair of version {repair.version_before} waits for review:")
            show_difference(shell, repair.difference)
            shell.say(f"To put it in force: siteloom relearn --accept {name}")
        if repair.state == "annotation":
            say_wrapped(shell, f"Examples are needed: {repair.reason}.", hanging=2)
