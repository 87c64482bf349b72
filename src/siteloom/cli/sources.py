"""Verbs that take pages from SOURCE, or from the workspace if there is none."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.cli.change_words import plural
from siteloom.cli.shell import Shell
from siteloom.errors import SourceError, UsageError
from siteloom.model import Failure, Page, Skipped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from siteloom.model import Cluster
    from siteloom.store import PageAddress, Store

SOURCE_HELP = (
    "Folder of HTML files, or a WARC, WACZ, Parquet, JSON Lines or HTML file, or a CDX index of WARC files; "
    "s3://... and the like for files elsewhere, a pattern such as '*.warc.gz', or @FILE for a list of sources"
)

SourcesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SOURCE",
        help=f"{SOURCE_HELP}; without, the workspace.",
        show_default=False,
    ),
]


WrappersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--wrapper",
        metavar="FILE",
        help="A wrapper to use, or a folder of them that bootstrap --engine made; may be given several times "
        "[all those of the workspace].",
        show_default=False,
    ),
]

MethodOption = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="NAME",
        help="Site by site: vertex, paths. For pages of any origin: text-max, text-hash, text-mdl, rtdm.",
    ),
]


def why_no_page(*, failed: bool, skipped: int) -> str:
    """Why nothing could be read."""
    if failed:
        return "all of them failed, as shown above"
    if skipped:
        return f"all {skipped:,} documents in the sources were skipped"
    return "the sources are empty"


def nothing_read(store: Store, *, failed: bool) -> SourceError:
    """The error that no page could be read of a store; if it is one of sources, they may have had none."""
    counts = store.runs(1)[0].counts
    why = why_no_page(failed=failed or bool(counts.get("failed")), skipped=counts.get("skipped", 0))
    return SourceError(f"No page could be read: {why}.")


@contextmanager
def stored_pages(shell: Shell, sources: list[str] | None) -> Iterator[Store]:
    """The workspace's store; or, for sources, one of their pages that is gone in the end.

    Stages read pages in any order and more than once, which a stream cannot give.
    """
    if not sources:
        with shell.store() as store:
            yield store
        return
    from siteloom.config import StoreSettings
    from siteloom.filesystems import shown
    from siteloom.pages import open_sources
    from siteloom.pipeline import ingest
    from siteloom.store import open_store

    opened = open_sources(sources, shell.settings.pages)
    with tempfile.TemporaryDirectory(prefix="siteloom-") as folder:
        store = open_store(StoreSettings(workspace=folder), create=True)
        try:
            report = ingest(
                store, opened, jobs=shell.settings.run.jobs, names=[shown(one) for one in sources]
            )
            say_unread(shell, report.failures)
            yield store
        finally:
            store.close()


def pages_of(shell: Shell, sources: list[str], description: str) -> Iterator[Page]:
    """The pages of sources one after the other; what could not be read is said in the end."""
    from siteloom.pages import open_sources

    opened = open_sources(sources, shell.settings.pages)
    count = skipped = 0
    failures: Counter[str] = Counter()
    with shell.counting(description) as advance:
        for item in (item for source in opened for item in source.read()):
            match item:
                case Page():
                    count += 1
                    advance(1)
                    yield item
                case Failure():
                    failures[item.reason] += 1
                case Skipped():
                    skipped += 1
    say_unread(shell, failures)
    if not count:
        raise SourceError(f"No page could be read: {why_no_page(failed=bool(failures), skipped=skipped)}.")


def say_unread(shell: Shell, failures: Mapping[str, int]) -> None:
    """Say how many pages could not be read, and why."""
    for reason, count in failures.items():
        shell.say(f"{plural(count, 'page')} could not be read: {reason}.")


def stored_clusters(store: Store, name: str | None) -> tuple[tuple[Cluster, ...], tuple[PageAddress, ...]]:
    """The clusters that were found last, or the one of a name, and the pages their members are indices of."""
    clusters, pages = store.clusters(name)
    if not clusters and name is None:
        raise UsageError(
            "There are no clusters yet: find them with siteloom cluster, or name the pages to look at."
        )
    if not clusters:
        raise UsageError(f"There is no cluster {name}: siteloom cluster lists them.")
    return clusters, pages
