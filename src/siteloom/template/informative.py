"""Which paths carry information: those whose content differs from page to page.

    I(X) = 1 - (sum over contents t of F(X, t)) / (M * number of contents)
    w(X) = F(X) * I(X)

F(X) is the number of pages that have the path X, F(X, t) of those that have the
content t there, M the number of all pages (Gulhane et al., ICDE 2011).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from siteloom.template.paths import PathSet

_HEAVIEST = 20  # paths whose mean informativeness stands for a whole cluster


class Informativeness(NamedTuple):
    """The text-bearing paths of a cluster, ascending, with what is known of each."""

    paths: NDArray[np.uint64]
    pages: NDArray[np.int64]
    contents: NDArray[np.int64]
    informativeness: NDArray[np.float64]

    @property
    def weight(self) -> NDArray[np.float64]:
        """How much it would tell to see a page with the path."""
        return self.pages * self.informativeness


def informativeness(pages: Sequence[PathSet]) -> Informativeness:
    """How much each path that bears text tells about a page."""
    empty = np.empty(0, np.uint64)
    parents = np.concatenate([empty, *(page.parents for page in pages)])
    texts = np.concatenate([empty, *(page.texts for page in pages)])
    paths, occurrences = np.unique(parents, return_counts=True)
    _, first = np.unique(texts, return_index=True)
    contents = np.bincount(np.searchsorted(paths, parents[first]), minlength=len(paths))
    parents_of_pages = np.concatenate([empty, *(np.unique(page.parents) for page in pages)])
    pages_with_path = np.bincount(np.searchsorted(paths, parents_of_pages), minlength=len(paths))
    told = 1 - occurrences / (max(1, len(pages)) * np.maximum(1, contents))
    return Informativeness(paths, pages_with_path, contents, told)


def importance(pages: Sequence[PathSet], cluster_size: int) -> float:
    """How much a cluster is worth a person's time: its pages times how much its heaviest paths tell."""
    found = informativeness(pages)
    heaviest = np.argsort(-found.weight, kind="stable")[:_HEAVIEST]
    return float(cluster_size * found.informativeness[heaviest].mean()) if heaviest.size else 0.0
