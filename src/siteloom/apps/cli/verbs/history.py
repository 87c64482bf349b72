"""`siteloom history`: the versions of wrappers, and why each was made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from siteloom.apps.cli.result_tables import say_wrapped, show_difference
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.table_files import Column, check_destination, flat_for
from siteloom.core.wording import percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from siteloom.store.queries.watches_and_repairs import StoredCheck, StoredRepair
    from siteloom.store.queries.wrappers import StoredWrapper
    from siteloom.store.store import Store

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
    with shell.store() as store:
        stored = store.wrappers() if wrapper is None else [store.wrapper(wrapper)]
        if output is not None:
            rows = (row for one in stored for row in _rows(store, one.name))
            shell.write(output, _COLUMNS, (flat_for(output, row, _DEEP) for row in rows))
        if wrapper is not None:
            _show_versions(shell, store, wrapper)
        elif stored:
            columns = ("wrapper", "versions", "newest", "last check", "waits for")
            shell.show("Wrappers", columns, [_summary(store, one) for one in stored])
        else:
            shell.say("There are no wrappers yet: run siteloom learn first.")


def _summary(store: Store, newest: StoredWrapper) -> tuple[object, ...]:
    check = _worst_check(store, newest)
    repairs = store.repairs(newest.name)
    return (
        newest.name,
        newest.version,
        f"{_day(newest.created_at)} by {_ORIGINS.get(newest.origin, newest.origin)}",
        _check_words(check) if check else "never checked",
        ", ".join(_waiting(repairs)),
    )


def _worst_check(store: Store, newest: StoredWrapper) -> StoredCheck | None:
    """The worse of the newest checks of both kinds; those of the version in force come first."""
    return min(
        store.newest_checks(newest.name),
        key=lambda one: (one.version != newest.version, one.is_healthy, not one.content.get("drifted")),
        default=None,
    )


def _waiting(repairs: Sequence[StoredRepair]) -> list[str]:
    return [_WAITING[one.state] for one in repairs if one.state in _WAITING]


def _check_words(check: StoredCheck) -> str:
    if check.is_healthy:
        drifted = ", but pages look different" if check.content.get("drifted") else ""
        return f"{_day(check.at)}: healthy{drifted}"
    tests = ", ".join(change["test"] for change in check.content.get("changes", []))
    return f"{_day(check.at)}: changed ({tests})"


def _day(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"


def _rows(store: Store, name: str) -> Iterator[dict[str, Any]]:
    """A row for each version, with what differs from the one before."""
    from siteloom.maintenance.repair_result import rule_diff
    from siteloom.wrappers.wrapper import Wrapper

    repairs = {one.version_after: one for one in store.repairs(name) if one.version_after is not None}
    before: Wrapper | None = None
    for stored in store.wrapper_versions(name):
        now = Wrapper.from_json(stored.text)
        repair = repairs.get(stored.version)
        yield {
            "wrapper": name,
            "version": stored.version,
            "created_at": stored.created_at,
            "origin": stored.origin,
            "note": stored.note,
            "outcome": repair.outcome if repair else None,
            "confidence": repair.confidence if repair else None,
            "rules": [] if before is None else rule_diff(before, now),
            "values": repair.content["diff"]["values"] if repair else [],
        }
        before = now


def _show_versions(shell: Shell, store: Store, name: str) -> None:
    from siteloom.operations.relearn import is_acceptable

    for row in _rows(store, name):
        origin = _ORIGINS.get(row["origin"], row["origin"])
        shell.say(f"\n{name}, version {row['version']}, {_day(row['created_at'])}, by {origin}")
        if row["note"]:
            say_wrapped(shell, row["note"], 2)
        if row["outcome"] is not None:
            shell.say(f"  outcome: {row['outcome']}, confidence {percent(row['confidence'])}")
        show_difference(shell, row["rules"], row["values"])
    if check := _worst_check(store, store.wrapper(name)):
        shell.say(f"\nLast check: {_check_words(check)}")
    for repair in store.repairs(name):
        if is_acceptable(repair):
            shell.say(f"\nA repair of version {repair.version_before} waits for review:")
            diff = repair.content["diff"]
            show_difference(shell, diff["rules"], diff["values"])
            shell.say(f"To put it in force: siteloom relearn --accept {name}")
        if repair.state == "annotation":
            say_wrapped(shell, f"Examples are needed: {repair.content['reason']}.", hanging=2)
