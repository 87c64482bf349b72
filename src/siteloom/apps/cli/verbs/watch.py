"""`siteloom watch`: the pages by which changes of a site are noticed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from siteloom.apps.cli.result_tables import load_wrappers, named
from siteloom.apps.cli.source_arguments import SourcesArgument, check_text_file, stored_pages, write_text
from siteloom.apps.cli.terminal import Shell
from siteloom.core.errors import UsageError
from siteloom.core.remote_files import shown
from siteloom.core.table_files import STANDARD_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.maintenance.watched_pages import Watch
    from siteloom.store.store import Store
    from siteloom.wrappers.matching import NamedWrapper

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
    """Choose the pages by which changes of a site are noticed.

    They are kept as they are now, with the values found on them; siteloom monitor compares them with what
    comes later. Without a SOURCE they are chosen among the pages of the workspace and kept there. With one,
    --wrapper FILE and -o are needed, and nothing else is written.
    """
    from siteloom.maintenance.watched_pages import MOST_BELLWETHERS

    k = MOST_BELLWETHERS if k is None else k
    if k < 1:
        raise UsageError(f"-k is the number of pages to watch, at least 1, not {k}.")
    if output is not None:
        check_text_file(output, "What is watched is", ".jsonl")
    if sources:
        if not wrapper or output is None:
            raise UsageError("With a SOURCE, watch needs --wrapper FILE and -o FILE.")
        chosen = _watch_sources(shell, sources, wrapper, k)
    else:
        chosen = _watch_workspace(shell, wrapper or [], k)
    rows = [
        (
            one.name,
            one.version,
            len(one.watch.bellwethers),
            len(one.watch.wrapper.attributes),
            _note(one.watch),
        )
        if one.watch
        else (one.name, one.version, 0, None, one.reason)
        for one in chosen
    ]
    shell.show("Watched", ("wrapper", "version", "bellwethers", "attributes", "note"), rows)
    watches = [one.watch for one in chosen if one.watch]
    if not watches:
        raise UsageError("Nothing is watched: no wrapper finds what it should on any of the pages.")
    if output is not None:
        _write(output, watches)
        if output != STANDARD_OUTPUT:
            shell.say(f"What is watched is in {shown(output)}{'' if sources else ', too'}.")
    if not sources:
        shell.say("To fetch and compare them: siteloom monitor --fetch")
        shell.say("When they were fetched and ingested again by other means: siteloom monitor")


class _Chosen(NamedTuple):
    name: str
    version: int | None
    watch: Watch | None
    reason: str


def _watch_workspace(shell: Shell, names: list[str], k: int) -> list[_Chosen]:
    from siteloom.operations.watch import watch_wrappers

    with shell.store() as store:
        count = len(names) or len(store.wrappers())
        with shell.measuring("Choosing", count) as advance:
            watched = watch_wrappers(store, names, k, advance)
    for one in watched:
        if one.warning:
            shell.warn(one.warning)
    return [_Chosen(one.wrapper, one.version, one.watch, one.reason) for one in watched]


def _watch_sources(shell: Shell, sources: list[str], files: list[str], k: int) -> list[_Chosen]:

    wrappers = load_wrappers(shell, files)
    with stored_pages(shell, sources) as store:
        urls = _urls_by_wrapper(shell, store, wrappers)
        return [_watched(store, one, urls[one.name], k) for one in wrappers]


def _urls_by_wrapper(shell: Shell, store: Store, wrappers: Sequence[NamedWrapper]) -> dict[str, list[str]]:
    """The pages that each wrapper is for; all of them for one that has no footprint."""
    from siteloom.core.model import Footprint
    from siteloom.wrappers.matching import Matcher

    matcher = Matcher(wrappers)
    for_all = [one.name for one in wrappers if one.wrapper.footprint == Footprint()]
    found: dict[str, list[str]] = {one.name: [] for one in wrappers}
    with shell.counting("Matching") as advance:
        for page in store.pages():
            advance(1)
            for name in [*(one.name for one in matcher.match(page).chosen), *for_all]:
                found[name].append(page.url)
    return found


def _watched(store: Store, one: NamedWrapper, urls: Sequence[str], k: int) -> _Chosen:
    from siteloom.core.sequences import evenly_spaced
    from siteloom.core.urls import site_of
    from siteloom.maintenance.watched_pages import MOST_LOOKED_AT, watch
    from siteloom.store.queries.clusters import PageAddress

    if not urls:
        return _Chosen(one.name, one.version, None, "no page is for this wrapper")
    tried = [PageAddress(site_of(url), url) for url in evenly_spaced(urls, MOST_LOOKED_AT)]
    try:
        watching = watch(one.wrapper, store.versions_at(tried), k, name=one.name)
        return _Chosen(one.name, one.version, watching, "")
    except UsageError as error:
        return _Chosen(one.name, one.version, None, str(error))


def _note(watch: Watch) -> str:
    from siteloom.maintenance.watched_pages import constant_attributes

    constant = constant_attributes(watch.wrapper, watch.past)
    changing = [name for name in watch.wrapper.attributes if name not in constant]
    return f"{named(changing)} may change" if changing else ""


def _write(output: str, watches: Sequence[Watch]) -> None:
    from siteloom.maintenance.watch_file import watch_to_json

    write_text(output, "".join(f"{watch_to_json(watch)}\n" for watch in watches))
