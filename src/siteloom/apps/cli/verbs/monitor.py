"""`siteloom monitor`: has a site changed?"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.browser_arguments import NoSandboxOption, check_sandbox_option
from siteloom.apps.cli.result_tables import named, say_wrapped, show_changes, write_changes
from siteloom.apps.cli.source_arguments import SourcesArgument, pages_of
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import SourceError, UsageError, WatchError
from siteloom.core.remote_files import LARGEST_OF_RECORDS, lines_of_file
from siteloom.core.settings import percent_as_share
from siteloom.core.table_files import check_destination
from siteloom.maintenance.change_messages import change_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from siteloom.maintenance.watched_pages import Watch
    from siteloom.operations.context import Context
    from siteloom.operations.monitor import FetchCounts, MonitorResult, WrapperCheck

NAME = "monitor"


def run(
    shell: Shell,
    sources: SourcesArgument = None,
    watch: Annotated[
        str | None,
        typer.Option("--watch", metavar="FILE", help="The file that siteloom watch wrote, for a SOURCE."),
    ] = None,
    wrapper: Annotated[
        list[str] | None,
        typer.Option(
            "--wrapper",
            metavar="NAME",
            help="Only the pages of this wrapper; may be given several times.",
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[
        int | None,
        typer.Option(
            "--threshold",
            metavar="PERCENT",
            help="A failure on more than this share of the pages is a change [30].",
        ),
    ] = None,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Fetch the watched pages again from the web, instead of a SOURCE.")
    ] = False,
    render: Annotated[
        bool,
        typer.Option(
            "--render",
            help="Open what is fetched in Chromium, for pages that scripts make; needs the extra render.",
        ),
    ] = False,
    private: Annotated[
        bool, typer.Option("--private", help="Fetch from addresses within private networks, too, this time.")
    ] = False,
    no_sandbox: NoSandboxOption = False,
    output: OutputOption = None,
) -> None:
    """Compare watched pages with earlier ones, and report changes.

    Three tests notice a change: the structure changed (the shingle test of the papers), a value is missing
    (the null test), or a value changed (the value test).

    Without a SOURCE, the newest versions in the workspace are compared, and the result is stored there; other
    pages take the place of removed ones. With --fetch, the pages are fetched first, but only what has changed
    since (needs the extra crawl). With a SOURCE, its pages are compared with the watched pages of the
    workspace, or of --watch, and nothing is stored. Changes are also sent to where the settings alarm.webhook
    and alarm.command say.

    A change is no failure: the exit status is 0. With --fetch, it is 1 if no page of a site can be fetched,
    or if most watched pages of a wrapper were removed.
    """
    from siteloom.operations.monitor import MonitorRequest, monitor

    if threshold is not None and not 1 <= threshold <= 100:
        raise UsageError(f"--threshold is a share of the pages from 1 to 100 percent, not {threshold}.")
    if output is not None:
        check_destination(output)
    if fetch and sources:
        raise UsageError("--fetch takes the pages from the web: leave the SOURCE out.")
    if render and not fetch:
        raise UsageError("--render is for pages from the web: give --fetch, too.")
    if private and not fetch:
        raise UsageError("--private is for pages from the web: give --fetch, too.")
    check_sandbox_option(no_sandbox, renders=render)
    if watch is not None and not sources and not fetch:
        raise UsageError(
            "--watch FILE is for the pages of a SOURCE, or of the web: give one, or --fetch, or leave it out."
        )
    request = MonitorRequest(
        wrappers=tuple(wrapper or ()),
        fetch=fetch,
        render=render,
        private=private,
        no_sandbox=no_sandbox,
        threshold=None if threshold is None else percent_as_share(threshold),
        watches=() if watch is None else tuple(_read_watches(watch, wrapper or [])),
        fresh_pages=pages_of(shell, sources, "Reading") if sources else None,
    )
    with _context(shell, has_workspace=watch is None) as context:
        result = monitor(context, request)
    changes = [change for check in result.checks for change in check.changes]
    write_changes(shell, output, changes)
    _show(shell, result, is_stored=not sources and watch is None)
    for problem in result.problems:
        shell.warn(problem)
    warnings = [check.warning for check in result.checks if check.warning]
    if result.fetched is None:  # pages that someone else fetched may be behind a wall for this night
        for warning in warnings:
            shell.warn(warning)
    elif errors := [*warnings, *filter(None, [result.fetched.warning])]:
        raise SourceError(" ".join(errors))


@contextmanager
def _context(shell: Shell, *, has_workspace: bool) -> Iterator[Context]:
    """The workspace; without one, a temporary one for the watches of a file."""
    from siteloom.operations.context import open_context, source_context

    with shell.progress() as progress:
        opening = (
            open_context(shell.settings, progress=progress)
            if has_workspace
            else source_context(shell.settings, (), progress=progress)
        )
        with opening as context:
            yield context


def _read_watches(file: str, names: Collection[str]) -> list[Watch]:
    from siteloom.maintenance.watch_file import watch_from_json

    try:
        lines = lines_of_file(file, LARGEST_OF_RECORDS)
    except OSError as error:
        raise WatchError(f"The watch {file} cannot be read: {error.strerror}.") from error
    watches = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                watches.append(watch_from_json(line.decode("utf-8", "replace")))
            except WatchError as error:
                raise WatchError(f"Line {number} of {file}: {error}") from error
    if not watches:
        raise WatchError(f"There is no watch in {file}: make it with siteloom watch.")
    watched_names = [watch.name for watch in watches]
    if unknown := sorted(set(names) - set(watched_names)):
        raise UsageError(
            f"No page of the wrapper {unknown[0]} is watched in {file}: there are {named(watched_names)}."
        )
    return [watch for watch in watches if not names or watch.name in names]


def _show(shell: Shell, result: MonitorResult, *, is_stored: bool) -> None:
    if result.fetched is not None:
        shell.show("Pages from the web", ("", "count"), _fetch_rows(result.fetched))
    for check in result.checks:
        _say_version(shell, check)
    rows = [
        (check.wrapper, check.compared, check.removed, check.drifted, _outcome(check))
        for check in result.checks
    ]
    columns = ("wrapper", "compared", "removed", "look different", "result")
    shell.show("Pages compared", columns, rows)
    for check in result.checks:
        if check.reason != "re-selected":
            _say_pages(shell, check, is_stored=is_stored)
    show_changes(shell, [change for check in result.checks for change in check.changes])


def _fetch_rows(fetched: FetchCounts) -> list[tuple[str, int]]:
    rows = [("fetched", fetched.fetched), ("not modified", fetched.not_modified)]
    return [
        *((name, count) for name, count in rows if count),
        *((f"removed: {reason}", count) for reason, count in fetched.removed.items()),
        *((f"failed: {reason}", count) for reason, count in fetched.failures.items()),
    ]


def _say_version(shell: Shell, check: WrapperCheck) -> None:
    """Say whether the watched pages were those of another version of the wrapper."""
    if check.reason == "re-selected":
        say_wrapped(
            shell,
            f"{check.wrapper} has version {check.version} by now: the pages to watch were selected again, "
            "and are compared from the next time on.",
        )
    elif check.version is not None and check.version != check.watched_version:
        say_wrapped(
            shell,
            f"{check.wrapper} is watched with its version {check.watched_version}, but version "
            f"{check.version} is in force: siteloom watch --wrapper {check.wrapper} selects its pages again.",
        )


def _outcome(check: WrapperCheck) -> str:
    if check.state == "changed":
        return change_names(finding.test for finding in check.findings)
    return check.reason or check.state


def _say_pages(shell: Shell, check: WrapperCheck, *, is_stored: bool) -> None:
    """Say how many pages could not be compared, and how many look different."""
    sentences = []
    if check.removed:
        after = _after_removed(check, is_stored=is_stored)
        sentences.append(f"{check.removed} of {check.watched} pages were removed{after}.")
    if check.not_checked:
        sentences.append(f"{len(check.not_checked)} of {check.watched} pages were not fetched again.")
    if check.unreadable:
        sentences.append(f"{check.unreadable} of {check.watched} pages could not be read.")
    if check.drifted and check.state != "changed":
        advice = ": siteloom relearn teaches the wrapper their structure" if check.has_drifted else ""
        sentences.append(
            f"{check.drifted} of {check.watched} pages look different but give the same values{advice}."
        )
    for sentence in sentences:
        say_wrapped(shell, f"{check.wrapper}: {sentence}")


def _after_removed(check: WrapperCheck, *, is_stored: bool) -> str:
    if not check.has_enough_pages:
        return ", and too few are left to say more"
    are_replaced = is_stored and check.state != "changed" and not check.is_mostly_removed
    replacement = "; others take their place" if are_replaced else ""
    return f", hidden behind a log-in, or redirected{replacement}"
