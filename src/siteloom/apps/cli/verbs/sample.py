"""`siteloom sample`: which pages to annotate first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.source_arguments import SourcesArgument, say_unread, verb_context
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import UsageError
from siteloom.core.table_files import Column, check_destination
from siteloom.sources.example_files import read_examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.operations.sample import ClusterSample

NAME = "sample"

_COLUMNS = (Column("url"), Column("gain", "number"), Column("covered", "number"))


def run(
    shell: Shell,
    sources: SourcesArgument = None,
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many pages of a cluster.")] = 10,
    examples: Annotated[
        str | None,
        typer.Option(
            "--examples",
            metavar="FILE",
            help="JSON Lines with the url of pages that are annotated already: they count as seen.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="ID", help="Only the cluster of this name."),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Choose the pages that are worth annotating first.

    They are those that together show most of what differs, each with what it adds (gain) and what is covered
    by then. When all is covered, pages follow that show more of the same.

    A SOURCE is taken as one cluster, and all its pages are looked at. Without, pages are chosen of each
    cluster that siteloom cluster found in the workspace, of which up to a hundred are looked at; those that
    were annotated there count as seen.
    """
    from siteloom.templates.sampling import check_count

    check_count(k)
    if output is not None:
        check_destination(output)
    if sources and cluster is not None:
        raise UsageError("Give a SOURCE, which is taken as one cluster, or --cluster, but not both.")
    annotated = frozenset(line.url for line in read_examples(examples)) if examples else frozenset[str]()
    from siteloom.operations.sample import SampleRequest, sample

    with verb_context(shell, sources) as context:
        say_unread(shell, context.unread)
        result = sample(context, SampleRequest(cluster=cluster, count=k, annotated=annotated))
    _write_or_show(shell, result.samples, output)
    if result.annotated_elsewhere:
        shell.say(f"{result.annotated_elsewhere:,} annotated pages are not among those to choose from.")
    for reason, count in result.failures.items():
        shell.say(f"{count:,} pages could not be parsed: {reason}.")
    for of_cluster in result.samples:
        if of_cluster.covers_all:
            shell.say(_why_no_more(of_cluster))


def _write_or_show(shell: Shell, samples: Sequence[ClusterSample], output: str | None) -> None:
    rows = [
        {
            "cluster": sample.cluster,
            "url": page.url,
            "gain": page.gain,
            "covered": f"{page.covered:.1%}" if output is None else page.covered,
        }
        for sample in samples
        for page in sample.pages
    ]
    is_of_clusters = any(sample.cluster is not None for sample in samples)
    columns = (Column("cluster"), *_COLUMNS) if is_of_clusters else _COLUMNS
    if rows or output is not None:  # an empty file is an answer, an empty table is none
        shell.write_or_show(output, "Pages to annotate", columns, rows)


def _why_no_more(sample: ClusterSample) -> str:
    place = "" if sample.cluster is None else f"{sample.cluster}: "
    useful = sum(page.gain > 0 for page in sample.pages)
    if not useful:
        return f"{place}No page shows anything that would be new."
    pages = "1 page covers" if useful == 1 else f"{useful:,} pages cover"
    return f"{place}{pages} all there is to see; any others show more of the same."
