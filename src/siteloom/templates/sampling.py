"""Choose the pages to annotate first: those that together cover most of the variation.

A page counts as the set of its paths that have text, and a path has the weight of
`siteloom.templates.essential_paths`. The next page is always the one whose uncovered paths weigh most: greedy
weighted maximum coverage, which reaches at least 1 - 1/e of the optimum (Gulhane et al., ICDE 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.core.errors import UsageError
from siteloom.core.model import Failure, Page, SampledPage
from siteloom.core.settings import ParseSettings
from siteloom.templates.essential_paths import informativeness, paths_of_page

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from siteloom.templates.essential_paths import PathSet

# Sums of equal weights in another order differ by less than this share and count as equal.
_ROUNDING = 1e-9


class Sample(NamedTuple):
    """The pages to annotate first, as indices of `urls`, and the failures of unreadable pages.

    `path_sets` are those of all pages, None for an unreadable one.
    """

    order: list[SampledPage]
    failures: list[Failure]
    urls: list[str]
    path_sets: list[PathSet | None]

    @property
    def covers_all(self) -> bool:
        """Whether no further page would add anything."""
        return not self.order or self.order[-1].covered == 1


def sample(pages: Sequence[Page], k: int = 10, annotated: Collection[int] = ()) -> list[int]:
    """Return the indices of up to `k` pages of one template to annotate, the most useful first.

    There are `k` if so many can be parsed. `annotated` are the indices of pages that count as covered.
    """
    check_count(k)
    path_sets = [paths_of_page(page, ParseSettings()) for page in pages]
    usable = [None if isinstance(paths, Failure) else paths for paths in path_sets]
    return [sampled.page for sampled in sample_order(usable, k, annotated)]


def sample_stream(
    pages: Iterable[Page],
    k: int,
    annotated: Collection[str] = (),
    *,
    limits: ParseSettings = ParseSettings(),
    on_page: Callable[[Page], object] = lambda _: None,
) -> Sample:
    """Sample pages from a stream without keeping them; `annotated` has the URLs of covered pages."""
    check_count(k)
    urls: list[str] = []
    failures: list[Failure] = []
    path_sets: list[PathSet | None] = []
    for page in pages:
        paths = paths_of_page(page, limits)
        if isinstance(paths, Failure):
            failures.append(paths)
        path_sets.append(None if isinstance(paths, Failure) else paths)
        urls.append(page.url)
        on_page(page)
    annotated_indices = [index for index, url in enumerate(urls) if url in annotated]
    return Sample(
        order=sample_order(path_sets, k, annotated_indices), failures=failures, urls=urls, path_sets=path_sets
    )


def covered_share(sample: Sample, covered_urls: Collection[str]) -> tuple[float, float]:
    """Return the share of weight that pages with some URLs cover, and the share that the best other adds."""
    indices = [index for index, url in enumerate(sample.urls) if url in covered_urls]
    total = informativeness([paths for paths in sample.path_sets if paths is not None]).weight.sum()
    order = sample_order(sample.path_sets, 1, indices)
    if not order or not total:
        return 1.0, 0.0
    gain = order[0].gain / float(total)
    return max(0.0, order[0].covered - gain), gain


def sample_order(
    path_sets: Sequence[PathSet | None], k: int, annotated: Collection[int] = ()
) -> list[SampledPage]:
    """Return up to `k` pages by their paths, the most useful first; None stands for a page without paths.

    Of pages that add the same weight, the first is chosen. When everything is covered, the following pages
    gain nothing; they form another cover, because more values of the same kind still improve rules.
    """
    check_count(k)
    if unknown := [page for page in annotated if not 0 <= page < len(path_sets)]:
        raise UsageError(f"There is no page {unknown[0]} to be annotated among {len(path_sets)} pages.")
    cluster_paths = informativeness([paths for paths in path_sets if paths is not None])
    weight = cluster_paths.weight

    # One entry for each path of each page.
    empty = np.empty(0, np.uint64)
    paths_of_page = [empty if paths is None else np.unique(paths.parents) for paths in path_sets]
    sizes = np.array([paths.size for paths in paths_of_page], np.int64)
    page_of_entry = np.repeat(np.arange(len(path_sets)), sizes)
    path_of_entry = np.searchsorted(cluster_paths.paths, np.concatenate([empty, *paths_of_page]))

    is_open = np.array([paths is not None for paths in path_sets], np.bool_)
    is_open[list(annotated)] = False
    is_unseen = weight > 0
    is_unseen[path_of_entry[np.isin(page_of_entry, list(annotated))]] = False
    order = _cover(
        weight=weight,
        page_of_entry=page_of_entry,
        path_of_entry=path_of_entry,
        is_unseen=is_unseen,
        is_open=is_open,
        k=k,
    )
    while len(order) < k and is_open.any():
        # Everything is covered: cover it again with the remaining pages, which have other values.
        further_picks = _cover(
            weight=weight,
            page_of_entry=page_of_entry,
            path_of_entry=path_of_entry,
            is_unseen=weight > 0,
            is_open=is_open,
            k=k - len(order),
        )
        if not further_picks:
            order += [SampledPage(page, 0.0, 1.0) for page in np.flatnonzero(is_open).tolist()]
            break
        order += [SampledPage(pick.page, 0.0, 1.0) for pick in further_picks]
    return order[:k]


def _cover(
    weight: NDArray[np.float64],
    page_of_entry: NDArray[np.int64],
    path_of_entry: NDArray[np.int64],
    is_unseen: NDArray[np.bool_],
    is_open: NDArray[np.bool_],
    k: int,
) -> list[SampledPage]:
    """Choose up to `k` open pages until everything is covered, and mark them as no longer open."""
    total = weight.sum()
    is_unseen = is_unseen.copy()
    is_entry = is_open[page_of_entry]
    page_of_entry, path_of_entry = page_of_entry[is_entry], path_of_entry[is_entry]
    picks: list[SampledPage] = []
    while len(picks) < k:
        # Drop the entries of covered paths.
        is_remaining = is_unseen[path_of_entry]
        page_of_entry, path_of_entry = page_of_entry[is_remaining], path_of_entry[is_remaining]
        if not page_of_entry.size:
            break
        gains = np.bincount(page_of_entry, weight[path_of_entry])
        best = int(np.argmax(gains >= gains.max() * (1 - _ROUNDING)))
        is_unseen[path_of_entry[page_of_entry == best]] = False
        is_open[best] = False
        picks.append(SampledPage(best, float(gains[best]), 1 - float(weight[is_unseen].sum() / total)))
    return picks


def check_count(k: int) -> None:
    """Raise UsageError for an invalid number of pages, before pages are read."""
    if k < 1:
        raise UsageError(f"The number of pages to choose must be at least 1, not {k}.")
