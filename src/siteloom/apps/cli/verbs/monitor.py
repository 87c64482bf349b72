"""`siteloom monitor`: has a site changed?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.browser_arguments import NoSandboxOption, check_sandbox_option
from siteloom.apps.cli.result_tables import named, raise_alarm, say_wrapped, show_changes, write_changes
from siteloom.apps.cli.source_arguments import SourcesArgument, pages_of
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.apps.cli.verbs.forget import forget_what_expired
from siteloom.core.errors import SourceError, UsageError, WatchError
from siteloom.core.remote_files import LARGEST_OF_RECORDS, lines_of_file
from siteloom.core.table_files import check_destination
from siteloom.core.wording import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from siteloom.core.settings import Settings
    from siteloom.maintenance.watched_pages import Watch
    from siteloom.operations.monitor import Fetched
    from siteloom.operations.watch import Checked
    from siteloom.store.store import Store

NAME = "monitor"


def run(
    shell: Shell,
    sources: SourcesArgument = None,
    watch: Annotated[
        str | None,
        typer.Option("--watch", metavar="FILE", help="What siteloom watch has written, for a SOURCE."),
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
            help="What stands on more than this share of the pages is a change [30].",
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
    """Compare watched pages with what they were; tell what changed.

    Without a SOURCE the newest versions in the workspace are compared, and what came of it is kept there;
    others take the place of pages that are gone. With --fetch, they are fetched first: only what has changed
    since (needs the extra crawl). With a SOURCE its pages are compared with what the workspace watches, or
    with what --watch has, and nothing is kept. Changes also go where the settings alarm.webhook and
    alarm.command say.

    A change is no failure: the exit status is 0. With --fetch, a site of which no page can be fetched is one,
    and so are pages of a wrapper of which most are gone.
    """
    share = _share(shell, threshold)
    if output is not None:
        check_destination(output)
    names = wrapper or []
    if fetch and sources:
        raise UsageError("--fetch takes the pages from the web: leave the SOURCE out.")
    if render and not fetch:
        raise UsageError("--render is for pages from the web: give --fetch, too.")
    if private and not fetch:
        raise UsageError("--private is for pages from the web: give --fetch, too.")
    check_sandbox_option(no_sandbox, renders=render)
    settings = _allowing(shell.settings, private=private, no_sandbox=no_sandbox)
    if watch is not None and not sources and not fetch:
        raise UsageError(
            "--watch FILE is for the pages of a SOURCE, or of the web: give one, or --fetch, or leave it out."
        )
    fetched = None
    if watch is not None:
        watches = _read_watches(watch, names)
        if fetch:
            checked, fetched = _fetch_and_check_file(shell, settings, watches, share, renders=render)
        else:
            checked = _check_file(shell, sources or [], watches, share)
    else:
        with shell.store() as store:
            if fetch:
                fetched = _fetch(shell, settings, store, names, renders=render)
            checked = _check_store(shell, store, sources, names, share, fetched)
            _tell_outdated(shell, store, checked)
            if fetch:
                forget_what_expired(shell, store)
    changes = [change for one in checked for change in one.checkup.changes]
    write_changes(shell, output, changes)
    _show(shell, checked, is_kept=not sources and watch is None)
    raise_alarm(shell, changes)
    warnings = [one.warning for one in checked if one.warning]
    if fetched is None:  # pages that someone else fetched may be behind a wall for this night
        for warning in warnings:
            shell.warn(warning)
    elif problems := [*warnings, *filter(None, [_unreached(fetched)])]:
        raise SourceError(" ".join(problems))


def _share(shell: Shell, threshold: int | None) -> float:
    percent = shell.settings.change.threshold if threshold is None else threshold
    if not 1 <= percent <= 100:
        raise UsageError(f"--threshold is a share of the pages from 1 to 100 percent, not {percent}.")
    return percent / 100


def _allowing(settings: Settings, *, private: bool, no_sandbox: bool) -> Settings:
    crawl = settings.crawl
    allowing = replace(crawl, private=crawl.private or private, sandbox=crawl.sandbox and not no_sandbox)
    return replace(settings, crawl=allowing)


def _fetch(
    shell: Shell, settings: Settings, store: Store, names: Collection[str], *, renders: bool
) -> Fetched:
    from siteloom.operations.monitor import fetch_watched

    with shell.counting("Fetching") as advance:
        fetched = fetch_watched(store, names, settings, renders=renders, on_page=advance)
    _tell_fetched(shell, fetched)
    return fetched


def _fetch_and_check_file(
    shell: Shell, settings: Settings, watches: Sequence[Watch], share: float, *, renders: bool
) -> tuple[list[Checked], Fetched]:
    from siteloom.maintenance.change_tests import check
    from siteloom.operations.monitor import fetch_pages
    from siteloom.operations.watch import Checked

    with shell.counting("Fetching") as advance:
        pages, fetched = fetch_pages(watches, settings, renders=renders, on_page=advance)
    _tell_fetched(shell, fetched)
    return [Checked(watch.name, check(watch, pages, share, fetched.gone)) for watch in watches], fetched


def _tell_fetched(shell: Shell, fetched: Fetched) -> None:
    """Show what came of fetching; an error if nothing did, for then there is nothing to compare."""
    shell.show("Pages from the web", ("", "count"), list(fetched.counts().items()))
    if not fetched.seen and not fetched.gone and (unreached := _unreached(fetched)):
        raise SourceError(unreached)


def _unreached(fetched: Fetched) -> str:
    """What is to be said if nothing is known of any page of a site; nothing if that is not so."""
    from siteloom.sources.crawling.url_filters import ALLOWING_PRIVATE, PRIVATE

    unreachable = fetched.unreachable()
    if not unreachable:
        return ""
    told = [
        f"{site} ({', '.join(f'{reason}: {count}' for reason, count in reasons.most_common())})"
        for site, reasons in unreachable.items()
    ]
    is_private = any(PRIVATE in reasons for reasons in unreachable.values())
    advice = f"; {ALLOWING_PRIVATE}" if is_private else ", so try again later"
    return (
        f"No watched page could be fetched of {named(told)}: whether anything has changed there "
        f"cannot be told{advice}."
    )


def _check_store(
    shell: Shell,
    store: Store,
    sources: list[str] | None,
    names: Collection[str],
    share: float,
    fetched: Fetched | None,
) -> list[Checked]:
    from siteloom.operations.watch import check_watches

    if not sources:
        count = len(names) or len(store.watched())
        with shell.measuring("Comparing", count) as advance:
            return check_watches(store, names, threshold=share, on_wrapper=advance, fetched=fetched)
    checked = check_watches(store, names, pages_of(shell, sources, "Reading"), share)
    _check_compared(checked)
    return checked


def _check_file(shell: Shell, sources: list[str], watches: Sequence[Watch], share: float) -> list[Checked]:
    from siteloom.maintenance.change_tests import check
    from siteloom.operations.watch import Checked

    wanted = {one.page.url for watch in watches for one in watch.bellwethers}
    fresh = [page for page in pages_of(shell, sources, "Reading") if page.url in wanted]
    checked = [Checked(watch.name, check(watch, fresh, share)) for watch in watches]
    _check_compared(checked)
    return checked


def _check_compared(checked: Sequence[Checked]) -> None:
    """Refuse pages that have nothing to do with those that are watched."""
    if all(len(one.checkup.missing) == len(one.checkup.watch.bellwethers) for one in checked):
        count = sum(len(one.checkup.missing) for one in checked)
        raise SourceError(
            f"None of the {plural(count, 'page')} that are watched is in the SOURCE: "
            "it must have the same URLs, fetched again."
        )


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
    known = [watch.name for watch in watches]
    if unknown := sorted(set(names) - set(known)):
        raise UsageError(
            f"No page of the wrapper {unknown[0]} is watched in {file}: there are {named(known)}."
        )
    return [watch for watch in watches if not names or watch.name in names]


def _tell_outdated(shell: Shell, store: Store, checked: Sequence[Checked]) -> None:
    """Say which watches were of another version of their wrapper, and which still are."""
    versions = {one.name: one.version for one in store.wrappers()}
    watched = store.watched()
    for name, _, is_renewed in checked:
        newest, version = versions.get(name), watched[name]
        if is_renewed:
            say_wrapped(
                shell,
                f"{name} has version {newest} by now: the pages to watch were chosen anew, and are compared "
                "from the next time on.",
            )
        elif version is not None and newest is not None and version < newest:
            say_wrapped(
                shell,
                f"{name} is watched with its version {version}, but version {newest} is in force: "
                f"siteloom watch --wrapper {name} chooses its pages anew.",
            )


def _show(shell: Shell, checked: Sequence[Checked], *, is_kept: bool) -> None:
    rows = [
        (
            one.wrapper,
            len(one.checkup.compared),
            len(one.checkup.gone),
            len(one.checkup.drifted),
            _result(one),
        )
        for one in checked
    ]
    shell.show("Pages compared", ("wrapper", "compared", "gone", "drifted", "result"), rows)
    for one in checked:
        if not one.is_renewed:
            _show_pages(shell, one, is_kept=is_kept)
    show_changes(shell, [change for one in checked for change in one.checkup.changes])


def _result(one: Checked) -> str:
    if one.verdict == "changed":
        return f"changed: {', '.join(change.test for change in one.checkup.changes)}"
    return one.verdict


def _after_gone(one: Checked, *, is_kept: bool) -> str:
    if not one.is_telling:
        return ", and the others are too few to say more"
    are_replaced = is_kept and not one.checkup.changes and not one.is_mostly_gone
    others = "; others take their place" if are_replaced else ""
    return f": removed, behind a log-in, or sent elsewhere{others}"


def _show_pages(shell: Shell, one: Checked, *, is_kept: bool) -> None:
    """Say what became of pages that could not be compared, or that look different."""
    checkup = one.checkup
    watched = len(checkup.watch.bellwethers)
    told = []
    if checkup.gone:
        told.append(f"{len(checkup.gone)} of {watched} pages are gone{_after_gone(one, is_kept=is_kept)}.")
    if checkup.missing:
        told.append(f"{len(checkup.missing)} of {watched} pages were not fetched again.")
    if checkup.unread:
        told.append(f"{len(checkup.unread)} of {watched} pages could not be read.")
    if checkup.drifted and not checkup.changes:
        advice = ": siteloom relearn lets the wrapper know them" if one.has_drifted else ""
        told.append(
            f"{len(checkup.drifted)} of {watched} pages look different but give the same values{advice}."
        )
    for sentence in told:
        say_wrapped(shell, f"{one.wrapper}: {sentence}")
