"""`siteloom forget`: sites and pages out of the workspace, with all that came from them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.terminal import Shell
from siteloom.core.errors import UsageError
from siteloom.core.wording import some_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from siteloom.store.erasure.erasure import ErasureResult
    from siteloom.store.store import Store

NAME = "forget"


def run(
    shell: Shell,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SITE_OR_URL",
            help="A site as siteloom status shows it, or the URL of a page.",
            show_default=False,
        ),
    ] = None,
    expired: Annotated[
        bool,
        typer.Option("--expired", help="What the settings of retention say was kept for long enough."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show how much of each kind would be removed.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether it is meant.")] = False,
) -> None:
    """Remove sites or pages, with all that came from them.

    Gone are all versions of the pages, their records in every run, annotations, what is watched, known
    records, entities and what search knows of them; of a site, its wrappers, too. What was written to files
    with -o and backups are not touched. This cannot be undone. It is safe to stop it at any time and start
    again.
    """
    if bool(names) == expired:
        raise UsageError("Name the sites or URLs to forget, or give --expired, and not both.")
    retention = shell.settings.retention
    if expired and not (retention.days or retention.versions):
        raise UsageError(
            "Everything is kept for ever: set days or versions under [retention] in siteloom.toml first."
        )
    with shell.store() as store:
        if dry_run:
            _show(shell, "What would be removed", _would_forget(shell, store, names))
            return
        if not yes:
            _ask(shell, store, names)
        with shell.counting("Forgetting") as count:
            done = 0

            def report(now: int, _total: int | None, _message: str) -> None:
                nonlocal done
                count(now - done)
                done = now

            forgotten = _forget(shell, store, names, report)
        _show(shell, "Removed", forgotten)
        _tell_to_learn(shell, forgotten)


def forget_what_expired(shell: Shell, store: Store) -> None:
    """Remove what was kept for long enough, if there is an end to that, and tell of it.

    To be called when the work of a verb is done, which counts whatever becomes of this.
    """
    from siteloom.store.erasure.erasure import forget_after_work

    forgotten, hindrance = forget_after_work(store, shell.settings.retention)
    if hindrance:
        shell.warn(hindrance)
    if forgotten.counts:
        _show(shell, "Removed, as the settings of retention say", forgotten)
        _tell_to_learn(shell, forgotten)


def _would_forget(shell: Shell, store: Store, names: Sequence[str] | None) -> ErasureResult:
    from siteloom.store.erasure.erasure import would_forget, would_forget_expired

    return would_forget(store, names) if names else would_forget_expired(store, shell.settings.retention)


def _forget(
    shell: Shell, store: Store, names: Sequence[str] | None, report: Callable[[int, int | None, str], object]
) -> ErasureResult:
    from siteloom.store.erasure.erasure import forget, forget_expired

    return forget(store, names, report) if names else forget_expired(store, shell.settings.retention, report)


def _ask(shell: Shell, store: Store, names: Sequence[str] | None) -> None:
    """Have a person at a terminal look at what would be removed; without one, --yes is needed."""
    if not sys.stdin.isatty():
        raise UsageError("This cannot be undone: give --yes, or look first with --dry-run.")
    _show(shell, "What will be removed", _would_forget(shell, store, names))
    typer.confirm("Forget all this? It cannot be undone.", abort=True, err=True)


def _show(shell: Shell, title: str, forgotten: ErasureResult) -> None:
    if forgotten.counts:
        shell.show(title, ("", "count"), list(forgotten.counts.items()))
    else:
        shell.say(f"{title}: nothing.")


def _tell_to_learn(shell: Shell, forgotten: ErasureResult) -> None:
    if forgotten.to_relearn:
        shell.say(
            "Words of these pages may still be in rules that were learned from them: learn "
            f"{some_names(forgotten.to_relearn)} again, or forget the site."
        )
