"""`siteloom cluster`: which pages were made from one template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.source_arguments import (
    EngineChoice,
    EngineOption,
    MasterOption,
    MethodOption,
    SourcesArgument,
    SparkConfOption,
    bulk_run,
    finished,
    no_page_read,
    say_unread,
    verb_context,
)
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import UsageError
from siteloom.core.wording import plural

if TYPE_CHECKING:
    from siteloom.core.model import Clustering

NAME = "cluster"


def run(
    shell: Shell,
    sources: SourcesArgument = None,
    method: MethodOption = "vertex",
    site: Annotated[
        str | None, typer.Option("--site", metavar="NAME", help="Only the pages of this site.")
    ] = None,
    output: OutputOption = None,
    engine: EngineOption = None,
    master: MasterOption = None,
    spark_conf: SparkConfOption = None,
) -> None:
    """Find which pages were made from one template.

    Pages that were made alike are a cluster, and what they share is its template. Without a SOURCE it works
    on the workspace and keeps the result there; siteloom template shows it.
    """
    choice = EngineChoice(engine, master, spark_conf)
    if choice.is_bulk:
        if site is not None:
            raise UsageError("With --engine, cluster takes the pages of all sites: leave --site out.")
        _cluster_in_bulk(shell, choice, sources, method, output)
        return
    from siteloom.engines.whole_crawls.cluster_crawl import CLUSTER_COLUMNS
    from siteloom.operations.cluster import ClusterRequest, cluster

    with verb_context(shell, sources) as context:
        result = cluster(context, ClusterRequest(site=site, method=method))
    clustering = result.clustering
    assert clustering is not None
    rows = (
        {
            "id": found.id,
            "signature": found.mask,
            "size": found.size,
            "importance": found.importance,
            "url_patterns": found.url_patterns,
            "pages": [result.addresses[member].url for member in found.members],
        }
        for found in clustering.clusters
    )
    shell.write(output, CLUSTER_COLUMNS, rows)
    if output is None and clustering.clusters:
        show_clusters(shell, clustering)
    say_unread(shell, result.failures)
    _say_coverage(shell, result.unclustered, clustering.coverage, clustering.plain_coverage)


def _cluster_in_bulk(
    shell: Shell, choice: EngineChoice, sources: list[str] | None, method: str, output: str | None
) -> None:
    from siteloom.engines.whole_crawls.cluster_crawl import checked_bulk_method, cluster_in_bulk

    checked = checked_bulk_method(method)
    limits = shell.settings.parse
    with bulk_run(shell, choice, sources, output, (NAME, checked, limits)) as (run, shards):
        counts = finished(shell, run, output) or cluster_in_bulk(run, shards, checked, limits)
    say_unread(shell, counts["failed"])
    pages, unclustered = counts["looked_at"], counts["unclustered"]
    if not pages:
        raise no_page_read(failed=bool(counts["failed"]), skipped=counts["skipped"])
    _say_coverage(shell, unclustered, (pages - unclustered) / pages, counts["plainly"] / pages)
    found = plural(counts["clusters"], "cluster")
    shell.say(
        f"{found} of {plural(pages, 'page')} are in {output}, those of each site in a folder of its own."
    )


def _say_coverage(shell: Shell, unclustered: int, coverage: float, plain_coverage: float) -> None:
    shell.say(
        f"{plural(unclustered, 'page is', 'pages are')} in no cluster; {coverage:.1%} are in one "
        f"({plain_coverage:.1%} before leftovers joined)."
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
