"""`siteloom sample`: which pages to annotate first."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from siteloom.apps.cli.source_arguments import SourcesArgument, stored_clusters, stored_pages
from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import SourceError, UsageError
from siteloom.core.table_files import Column, check_destination
from siteloom.sources.example_files import read_examples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteloom.store.store import Store
    from siteloom.templates.sampling import Sample

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
    with stored_pages(shell, sources) as store:
        if sources:
            samples, known = _sample_of_all(shell, store, k, annotated)
        else:
            samples, known = _samples_of_clusters(shell, store, cluster, k, annotated)
    _write_or_show(shell, samples, output)
    if elsewhere := len(annotated - known):
        shell.say(f"{elsewhere:,} annotated pages are not among those to choose from.")
    _tell_failures(shell, samples)
    for name, sample in samples.items():
        if sample.covers_all:
            shell.say(_why_no_more(name, sample))


def _sample_of_all(
    shell: Shell, store: Store, k: int, annotated: frozenset[str]
) -> tuple[dict[str | None, Sample], set[str]]:
    """The sample of all pages as one cluster without a name, and the URLs that could be chosen."""
    from siteloom.templates.sampling import sample_stream

    with shell.counting("Looking at") as count:
        sample = sample_stream(
            store.pages(), k, annotated, limits=shell.settings.parse, on_page=lambda _: count(1)
        )
    if not sample.urls:
        raise SourceError("There are no pages to choose from: the sources are empty or could not be read.")
    return {None: sample}, set(sample.urls)


def _samples_of_clusters(
    shell: Shell, store: Store, name: str | None, k: int, annotated: frozenset[str]
) -> tuple[dict[str | None, Sample], set[str]]:
    """The sample of each cluster by its name, and the URLs that could be chosen.

    What was annotated in the workspace is seen as well, but only in the site where it was.
    """
    from siteloom.operations.cluster import sample_cluster

    clusters, pages = stored_clusters(store, name)
    stored = frozenset(store.annotated_pages())
    with shell.counting("Looking at") as count:
        samples: dict[str | None, Sample] = {
            found.id: sample_cluster(
                store,
                found,
                pages,
                k,
                annotated.union(pages[member].url for member in found.members if pages[member] in stored),
                limits=shell.settings.parse,
                on_page=lambda _: count(1),
            )
            for found in clusters
        }
    return samples, {page.url for page in pages}


def _write_or_show(shell: Shell, samples: Mapping[str | None, Sample], output: str | None) -> None:
    rows = [
        {
            "cluster": name,
            "url": sample.urls[pick.page],
            "gain": pick.gain,
            "covered": f"{pick.covered:.1%}" if output is None else pick.covered,
        }
        for name, sample in samples.items()
        for pick in sample.order
    ]
    columns = _COLUMNS if None in samples else (Column("cluster"), *_COLUMNS)
    if rows or output is not None:  # an empty file is an answer, an empty table is none
        shell.write_or_show(output, "Pages to annotate", columns, rows)


def _tell_failures(shell: Shell, samples: Mapping[str | None, Sample]) -> None:
    reasons = Counter(failure.reason for sample in samples.values() for failure in sample.failures)
    for reason, count in reasons.items():
        shell.say(f"{count:,} pages could not be parsed: {reason}.")


def _why_no_more(name: str | None, sample: Sample) -> str:
    place = "" if name is None else f"{name}: "
    useful = sum(pick.gain > 0 for pick in sample.order)
    if not useful:
        return f"{place}No page shows anything that would be new."
    pages = "1 page covers" if useful == 1 else f"{useful:,} pages cover"
    return f"{place}{pages} all there is to see; any others show more of the same."
