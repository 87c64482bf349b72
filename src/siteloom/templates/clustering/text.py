"""TEXT: cluster documents of many unknown templates by minimum description length.

After Kim and Shim (TKDE 23(4), 2011). Clusters are good if their templates, and the differences of each
document from its template, take few bits; so neither a number of clusters nor a threshold of similarity is
needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from siteloom.core.errors import UsageError
from siteloom.templates.clustering.text_mdl import (
    equal_documents,
    essential_paths,
    select_documents,
    text_mdl,
)
from siteloom.templates.clustering.text_minhash import PathBands, members, path_bands, text_hash, text_max

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from siteloom.templates.clustering.text_mdl import PathSets

__all__ = ["SIGNATURE_LENGTH", "PathBands", "TextMethod", "path_bands", "text_clusters"]

TextMethod: TypeAlias = Literal["text-mdl", "text-hash", "text-max"]

SIGNATURE_LENGTH = 256
"""Of 64, 128 and 256, each tried with six families of permutations on 10 to 400 pages of each of 32 real
sites, only 256 never mixed pages of two sites; it takes a fifth more time than 128."""


# The costs of all pairs of this many documents take 600 MB.
_MOST_COMPARED = 5_000


def text_clusters(
    documents: Sequence[NDArray[np.uint64]],
    method: TextMethod = "text-max",
    signature_length: int = SIGNATURE_LENGTH,
) -> tuple[tuple[int, ...], ...]:
    """Cluster documents, each a sorted array of distinct path hashes.

    A cluster has the documents' indices, ascending. Clusters are ordered by size, largest first, then by
    their first document. A document without paths is a cluster of its own.

    Documents with the same essential paths are described once, however many there are: otherwise many copies
    would justify a separate template for every variant of a template.
    """
    filled = [index for index, document in enumerate(documents) if document.size]
    empty = [(index,) for index, document in enumerate(documents) if not document.size]
    if not filled:
        return tuple(empty)
    sets = essential_paths([documents[index] for index in filled])
    different, copy_of = np.unique(equal_documents(sets), return_inverse=True)
    clusters = _merge(select_documents(sets, different), method, signature_length)

    cluster_of = np.empty(different.size, np.int64)
    for number, cluster in enumerate(clusters):
        cluster_of[cluster] = number
    groups: list[tuple[int, ...]] = [
        tuple(filled[member] for member in group) for group in members(cluster_of[copy_of])
    ]
    return tuple(sorted([*groups, *empty], key=lambda group: (-len(group), group[0])))


def _merge(sets: PathSets, method: TextMethod, signature_length: int) -> list[list[int]]:
    """Cluster distinct documents, none of them empty."""
    if method != "text-max" and len(sets) > _MOST_COMPARED:
        raise UsageError(
            f"{method} compares every two of {len(sets):,} different pages, "
            f"and does so for {_MOST_COMPARED:,} at most: use text-max."
        )
    match method:
        case "text-mdl":
            return text_mdl(sets, [[document] for document in range(len(sets))])
        case "text-hash":
            # exact costs have the last word, as in TEXT-MAX
            return text_mdl(sets, text_hash(sets, signature_length))
        case "text-max":
            return text_max(sets, signature_length)
