"""`siteloom cluster`: which pages were made from one template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.cli.shell import OutputOption, Shell
from siteloom.cli.sources import MethodOption, SourcesArgument, stored_pages
from siteloom.output import Column

if TYPE_CHECKING:
    from siteloom.model import Clustering

NAME = "cluster"

_COLUMNS = (
    Column("id"),
    Column("signature"),
    Column("size", "integer"),
    Column("importance", "number"),
    Column("url_patterns", "texts"),
    Column("pages", "texts"),
)


def run(
    shell: Shell,
    sources: SourcesArgument = None,
    method: MethodOption = "vertex",
    site: Annotated[
        str | None, typer.Option("--site", metavar="NAME", help="Only the pages of this site.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Find the templates of pages: which were made alike, and what they share.

    Without a SOURCE it works on the workspace and keeps the result there; siteloom template shows it.
    """
    from siteloom.clustering import checked_method
    from siteloom.pipeline import cluster_store

    with stored_pages(shell, sources) as store, shell.counting("Looking at") as count:
        clustering, pages = cluster_store(
            store,
            checked_method(method),
            site=site,
            limits=shell.settings.parse,
            on_page=lambda _: count(1),
        )
    rows = (
        {
            "id": found.id,
            "signature": found.mask,
            "size": found.size,
            "importance": found.importance,
            "url_patterns": found.url_patterns,
            "pages": [pages[member].url for member in found.members],
        }
        for found in clustering.clusters
    )
    shell.write(output, _COLUMNS, rows)
    if output is None and clustering.clusters:
        show_clusters(shell, clustering)
    shell.say(
        f"{len(clustering.unclustered):,} pages are in no cluster; {clustering.coverage:.1%} are in one "
        f"({clustering.plain_coverage:.1%} before leftovers joined)."
    )


def show_clusters(shell: Shell, clustering: Clustering) -> None:
    """Print a table of clusters."""
    rows = (
        (
            found.id,
            found.size,
            found.mask,
            found.importance,
            len(found.template.paths),
            "\n".join(found.url_patterns),
        )
        for found in clustering.clusters
    )
    shell.show("Templates", ("cluster", "pages", "signature", "importance", "paths", "URL patterns"), rows)
