"""A cluster's paths and tags as tables: what stands on how many pages, and what it tells."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.template.informative import informativeness
from siteloom.template.paths import page_paths, path_texts
from siteloom.template.shared import shared_paths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.dom import Element


class PathRow(NamedTuple):
    """A path of a cluster, and the text that it goes on to if that is template text.

    Informativeness is known of paths that bear text.
    """

    path: str
    text: str | None
    support: int
    essential: bool
    informativeness: float | None


class TagRow(NamedTuple):
    """How often a tag stands on a page, or on all pages together, and on how many of them."""

    page: int | None
    tag: str
    occurrences: int
    support: int
    essential: bool


def path_rows(roots: Sequence[Element]) -> list[PathRow]:
    """The paths of elements on some pages of a cluster, and the template texts, in the pages' order."""
    path_sets = [page_paths(root) for root in roots]
    elements = np.concatenate([np.empty(0, np.uint64), *(p.elements for p in path_sets)])
    paths, support = np.unique(elements, return_counts=True)
    shared = shared_paths([p.all for p in path_sets])
    told = informativeness(path_sets)
    support_of = dict(zip(paths.tolist(), support.tolist(), strict=True))
    support_of |= dict(zip(shared.paths.tolist(), shared.support.tolist(), strict=True))
    informativeness_of = dict(zip(told.paths.tolist(), told.informativeness.tolist(), strict=True))
    essential = set(shared.paths.tolist())
    rows: dict[int, PathRow] = {}
    for root in roots:
        for path, words in path_texts(root, support_of.keys() - rows.keys()).items():
            rows[path] = PathRow(
                words.tags, words.text, support_of[path], path in essential, informativeness_of.get(path)
            )
    return list(rows.values())


def tag_rows(roots: Sequence[Element]) -> list[TagRow]:
    """The tags of some pages of a cluster: for all pages together, then for each page."""
    counts = [Counter(str(element.tag) for element in root.iter("*")) for root in roots]
    support = Counter(tag for page in counts for tag in page)
    total: Counter[str] = sum(counts, Counter())
    return [
        TagRow(page, tag, tags[tag], support[tag], 2 * support[tag] > len(roots))
        for page, tags in [(None, total), *enumerate(counts)]
        for tag in sorted(tags)
    ]
