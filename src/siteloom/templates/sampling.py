"""Which pages to show a person first: those that together show most of what differs from page to page.

A page counts as the set of its paths that bear text, and a path weighs as much
as it tells (`siteloom.templates.essential_paths`). The next page is always the one
whose paths that were not seen yet weigh most: weighted maximum coverage by
greed, which covers at least 1 - 1/e of the best there is (Gulhane et al., ICDE
2011).
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

# Sums of the same weights in another order differ by less than this share, and yet are equal.
_ROUNDING = 1e-9


class Sample(NamedTuple):
    """The pages to look at first, those that could not be parsed, and the URLs that pages are indices of.

    `path_sets` are those of all pages that were looked at, None for one that could not be parsed.
    """

    order: list[SampledPage]
    failures: list[Failure]
    urls: list[str]
    path_sets: list[PathSet | None]

    @property
    def covers_all(self) -> bool:
        """Whether any further page would add nothing."""
        return not self.order or self.order[-1].covered == 1


def sample(pages: Sequence[Page], k: int = 10, annotated: Collection[int] = ()) -> list[int]:
    """The indices of up to `k` pages of one template to annotate, the most useful first.

    There are `k` if so many can be parsed. `annotated` are the indices of pages
    that are taken as seen already.
    """
    check_count(k)
    path_sets = [paths_of_page(page, ParseSettings()) for page in pages]
    usable = [None if isinstance(paths, Failure) else paths for paths in path_sets]
    return [picked.page for picked in sample_order(usable, k, annotated)]


def sample_stream(
    pages: Iterable[Page],
    k: int,
    annotated: Collection[str] = (),
    *,
    limits: ParseSettings = ParseSettings(),
    on_page: Callable[[Page], object] = lambda _: None,
) -> Sample:
    """The same for pages that come one by one and are not kept; `annotated` are URLs."""
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
    seen = [place for place, url in enumerate(urls) if url in annotated]
    return Sample(sample_order(path_sets, k, seen), failures, urls, path_sets)


def covered_share(sample: Sample, seen: Collection[str]) -> tuple[float, float]:
    """The share of weight that the pages of some URLs cover, and what the best of the others adds."""
    places = [place for place, url in enumerate(sample.urls) if url in seen]
    total = informativeness([paths for paths in sample.path_sets if paths is not None]).weight.sum()
    order = sample_order(sample.path_sets, 1, places)
    if not order or not total:
        return 1.0, 0.0
    gain = order[0].gain / float(total)
    return max(0.0, order[0].covered - gain), gain


def sample_order(
    path_sets: Sequence[PathSet | None], k: int, annotated: Collection[int] = ()
) -> list[SampledPage]:
    """Up to `k` pages by their paths, the most useful first; None stands for a page without any.

    Of pages that add the same weight the first is taken. When all is covered, the
    pages that follow gain nothing; they begin another cover, because more values
    of the same kind still make better rules.
    """
    check_count(k)
    if unknown := [page for page in annotated if not 0 <= page < len(path_sets)]:
        raise UsageError(f"There is no page {unknown[0]} to be annotated among {len(path_sets)} pages.")
    found = informativeness([paths for paths in path_sets if paths is not None])
    weight = found.weight

    # One entry for each path of each page.
    empty = np.empty(0, np.uint64)
    paths_of_page = [empty if paths is None else np.unique(paths.parents) for paths in path_sets]
    sizes = np.array([paths.size for paths in paths_of_page], np.int64)
    page_of_entry = np.repeat(np.arange(len(path_sets)), sizes)
    path_of_entry = np.searchsorted(found.paths, np.concatenate([empty, *paths_of_page]))

    is_open = np.array([paths is not None for paths in path_sets], np.bool_)
    is_open[list(annotated)] = False
    is_unseen = weight > 0
    is_unseen[path_of_entry[np.isin(page_of_entry, list(annotated))]] = False
    order = _cover(weight, page_of_entry, path_of_entry, is_unseen, is_open, k)
    while len(order) < k and is_open.any():
        # All is covered: once more, with the pages that are left. They show the same paths, but other values.
        again = _cover(weight, page_of_entry, path_of_entry, weight > 0, is_open, k - len(order))
        if not again:
            order += [SampledPage(page, 0.0, 1.0) for page in np.flatnonzero(is_open).tolist()]
            break
        order += [SampledPage(pick.page, 0.0, 1.0) for pick in again]
    return order[:k]


def _cover(
    weight: NDArray[np.float64],
    page_of_entry: NDArray[np.int64],
    path_of_entry: NDArray[np.int64],
    is_unseen: NDArray[np.bool_],
    is_open: NDArray[np.bool_],
    k: int,
) -> list[SampledPage]:
    """Up to `k` open pages, until all is covered; they are open no more."""
    total = weight.sum()
    is_unseen = is_unseen.copy()
    is_entry = is_open[page_of_entry]
    page_of_entry, path_of_entry = page_of_entry[is_entry], path_of_entry[is_entry]
    picks: list[SampledPage] = []
    while len(picks) < k:
        # The entries of paths that were seen fall away with each pick.
        is_left = is_unseen[path_of_entry]
        page_of_entry, path_of_entry = page_of_entry[is_left], path_of_entry[is_left]
        if not page_of_entry.size:
            break
        gains = np.bincount(page_of_entry, weight[path_of_entry])
        best = int(np.argmax(gains >= gains.max() * (1 - _ROUNDING)))
        is_unseen[path_of_entry[page_of_entry == best]] = False
        is_open[best] = False
        picks.append(SampledPage(best, float(gains[best]), 1 - float(weight[is_unseen].sum() / total)))
    return picks


def check_count(k: int) -> None:
    """Raise what is wrong with a number of pages before pages are read for it."""
    if k < 1:
        raise UsageError(f"The number of pages to choose must be at least 1, not {k}.")
