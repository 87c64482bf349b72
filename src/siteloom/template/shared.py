"""The template of a cluster: the paths that most of its pages have; and how one page departs from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.model import Template, TemplatePath
from siteloom.template.paths import path_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from siteloom.dom import Element


class SharedPaths(NamedTuple):
    """Paths that most pages have, ascending, and how many pages have each."""

    paths: NDArray[np.uint64]
    support: NDArray[np.int64]


class Delta(NamedTuple):
    """How a page departs from its template: the paths that it adds, and those that it lacks."""

    added: NDArray[np.uint64]
    lacking: NDArray[np.uint64]


def shared_paths(pages: Sequence[NDArray[np.uint64]]) -> SharedPaths:
    """The paths of the shortest description of the pages: those on more than half of them.

    A path in the template costs one entry there and one for each page without
    it; left out, it costs one for each page with it (Kim and Shim, TKDE 2011).
    """
    paths, support = np.unique(np.concatenate([np.empty(0, np.uint64), *pages]), return_counts=True)
    is_shared = 2 * support >= len(pages) + 1
    return SharedPaths(paths[is_shared], support[is_shared])


def page_delta(page: NDArray[np.uint64], template: NDArray[np.uint64]) -> Delta:
    """What a page adds to its template, and what it lacks."""
    return Delta(
        np.setdiff1d(page, template, assume_unique=True),
        np.setdiff1d(template, page, assume_unique=True),
    )


def describe_template(shared: SharedPaths, pages: int, roots: Iterable[Element]) -> Template:
    """The template in words, which are taken from trees of its pages, in the order they stand there."""
    support = dict(zip(shared.paths.tolist(), shared.support.tolist(), strict=True))
    missing = set(support)
    described: list[TemplatePath] = []
    for root in roots:
        found = path_texts(root, missing)
        described += [TemplatePath(words.tags, words.text, support[path]) for path, words in found.items()]
        missing -= set(found)
        if not missing:
            break
    return Template(tuple(described), pages)
