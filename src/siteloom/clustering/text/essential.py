"""Documents as path sets, and the paths of each that tell how it was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from siteloom.kernels.description_length import NumberedPaths, are_essential, number_paths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class PathSets:
    """The path sets of many documents, end to end: document d is `paths[starts[d]:starts[d + 1]]`.

    A path is a number below `path_count`, and `hashes[path]` the hash it was
    given as. Paths are numbered in the order of their hashes, so the numbers
    do not depend on the order of the documents.
    """

    starts: NDArray[np.int64]
    paths: NDArray[np.int32]
    hashes: NDArray[np.uint64]

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of paths of each document."""
        return np.diff(self.starts)

    @property
    def path_count(self) -> int:
        """The number of different paths."""
        return self.hashes.size

    def numbers(self, document: int) -> NDArray[np.int32]:
        """The paths of a document as numbers, ascending."""
        return self.paths[self.starts[document] : self.starts[document + 1]]

    def document(self, document: int) -> NDArray[np.uint64]:
        """The paths of a document as hashes, ascending."""
        return self.hashes[self.numbers(document)]


def path_sets(documents: Sequence[NDArray[np.uint64]]) -> PathSets:
    """All paths of documents, each a sorted array of different path hashes."""
    starts, numbered = _numbered(documents)
    return _sorted(starts, numbered.numbers, numbered.hashes)


def essential_paths(documents: Sequence[NDArray[np.uint64]]) -> PathSets:
    """Of each document the paths that at least t documents contain, t being its own threshold.

    t is the mode of the supports of its paths: the paths of a template occur in
    all documents made from it, and there are many of them. Supports of 1 do not
    count unless there are no others, because most texts are unique.
    """
    starts, numbered = _numbered(documents)
    essential = are_essential(starts, numbered.numbers, numbered.support)
    essential_before = np.concatenate([[0], np.cumsum(essential)])
    return _sorted(essential_before[starts], numbered.numbers[essential], numbered.hashes)


def chosen(sets: PathSets, documents: NDArray[np.int64]) -> PathSets:
    """The path sets of some documents, in the order given."""
    paths = [sets.numbers(document) for document in documents.tolist()]
    joined = np.concatenate([np.empty(0, np.int32), *paths])
    return _sorted(_starts(sets.sizes[documents]), joined, sets.hashes)


def equal_documents(sets: PathSets) -> NDArray[np.int64]:
    """For each document the first one that has the same paths."""
    first: dict[bytes, int] = {}
    return np.array(
        [first.setdefault(sets.numbers(document).tobytes(), document) for document in range(len(sets))],
        np.int64,
    )


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


def _numbered(documents: Sequence[NDArray[np.uint64]]) -> tuple[NDArray[np.int64], NumberedPaths]:
    starts = _starts(np.array([document.size for document in documents], np.int64))
    hashes = np.concatenate([np.empty(0, np.uint64), *documents])
    ascends = np.concatenate([[True], hashes[1:] > hashes[:-1]])
    ascends[starts[starts < hashes.size]] = True
    if not ascends.all():
        raise ValueError(
            "sort the path hashes of each document and drop repeated ones: numpy.unique does both"
        )
    return starts, number_paths(starts, hashes)


def _sorted(starts: NDArray[np.int64], paths: NDArray[np.int32], hashes: NDArray[np.uint64]) -> PathSets:
    """Path sets whose numbers all occur and stand in the order of their hashes."""
    occurs = np.zeros(hashes.size, np.bool_)
    occurs[paths] = True
    used = np.flatnonzero(occurs)
    used = used[np.argsort(hashes[used])]
    numbers = np.empty(hashes.size, np.int32)
    numbers[used] = np.arange(used.size, dtype=np.int32)
    return PathSets(starts, numbers[paths], hashes[used])
