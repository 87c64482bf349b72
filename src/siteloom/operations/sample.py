"""sample: which pages to annotate first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from siteloom.core.errors import SourceError
from siteloom.operations.cluster import sample_cluster, stored_clusters
from siteloom.operations.context import Context
from siteloom.templates.sampling import check_count, sample_stream

if TYPE_CHECKING:
    from siteloom.templates.sampling import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    """How many pages of a cluster, or of each; `annotated` are the URLs of pages that count as seen."""

    cluster: str | None = None
    count: int = 10
    annotated: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageToAnnotate:
    """A page, what it adds, and the share that is covered by it and the pages before it."""

    url: str
    gain: float
    covered: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSample:
    """The pages of a cluster to annotate, the most useful first; all pages of a SOURCE are one cluster.

    If `covers_all`, further pages show more of the same.
    """

    cluster: str | None
    pages: tuple[PageToAnnotate, ...]
    covers_all: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleResult:
    """The pages to annotate, by cluster; `annotated_elsewhere` were named but are not among the pages."""

    samples: tuple[ClusterSample, ...]
    annotated_elsewhere: int
    failures: Mapping[str, int]


def sample(context: Context, request: SampleRequest) -> SampleResult:
    """Choose the pages that together show most of what differs between the pages of a cluster.

    Pages that were annotated in the workspace count as seen, in the site where they are.
    """
    check_count(request.count)
    context.progress.start("Looking at")
    if context.sources:
        samples, known = _sample_all(context, request)
    else:
        samples, known = _sample_clusters(context, request)
    return SampleResult(
        samples=tuple(
            ClusterSample(
                cluster=name,
                pages=tuple(
                    PageToAnnotate(url=found.urls[page.page], gain=page.gain, covered=page.covered)
                    for page in found.order
                ),
                covers_all=found.covers_all,
            )
            for name, found in samples.items()
        ),
        annotated_elsewhere=len(request.annotated - known),
        failures=Counter(failure.reason for found in samples.values() for failure in found.failures),
    )


def _sample_all(context: Context, request: SampleRequest) -> tuple[dict[str | None, Sample], set[str]]:
    """The sample of all pages as one cluster without a name, and the URLs that could be chosen."""
    found = sample_stream(
        context.store.pages(),
        request.count,
        request.annotated,
        limits=context.settings.parse,
        on_page=lambda _: context.progress.advance(),
    )
    if not found.urls:
        raise SourceError("There are no pages to choose from: the sources are empty or could not be read.")
    return {None: found}, set(found.urls)


def _sample_clusters(context: Context, request: SampleRequest) -> tuple[dict[str | None, Sample], set[str]]:
    """The sample of each cluster by its name, and the URLs that could be chosen."""
    clusters, pages = stored_clusters(context.store, request.cluster)
    stored = frozenset(context.store.annotated_pages())
    samples: dict[str | None, Sample] = {
        cluster.id: sample_cluster(
            context.store,
            cluster,
            pages,
            request.count,
            request.annotated.union(
                pages[member].url for member in cluster.members if pages[member] in stored
            ),
            limits=context.settings.parse,
            on_page=lambda _: context.progress.advance(),
        )
        for cluster in clusters
    }
    return samples, {page.url for page in pages}
