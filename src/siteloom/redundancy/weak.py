"""How similar two short texts are by the parts of words they share: indifferent to the order of words,
forgiving slips and endings, and with little regard for what every value has.

A text's words, padded, are cut into overlapping grams, and each gram weighs more
the fewer values have it. The similarity is the cosine of the weighted grams.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.redundancy.folding import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

LONGEST = 160
"""How many characters of a text count. Values are short; a longer text is prose, which its beginning tells
from other prose. Prose shares some grams with every value, and would take most of the time."""

WEAKLY_SIMILAR = 0.5
"""From here on two values may be the same: the threshold of the paper."""


class Joined(NamedTuple):
    """Pairs of a text and a value, by their numbers, sorted by text and then by value."""

    text: NDArray[np.int32]
    value: NDArray[np.int32]
    similarity: NDArray[np.float32]


class WeakIndex:
    """Distinct values by the grams of their words; values that are equal once folded count as one."""

    def __init__(self, values: Sequence[str], q: int = 3) -> None:
        from siteloom.kernels import joining  # noqa: PLC0415 - loads numba

        if not 1 <= q <= joining.LONGEST_GRAM:
            raise ValueError(f"grams have 1 to {joining.LONGEST_GRAM} characters, not {q}")
        self._joining = joining
        self._q = q
        self._groups = _Groups(values)
        codes, starts = _codes(self._groups.distinct)
        number = max(len(self._groups.distinct), 1)
        self._table, texts, occurrences = joining.count_grams(codes, starts, q)
        # A gram that no value has is taken to be as rare as one that a single value has.
        self._unseen_idf = math.log(1 + number)
        self._idf: NDArray[np.float64] = np.log1p(number / np.maximum(texts, 1))
        self._posting_starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(occurrences)))
        norms, repeated = joining.norms_of(codes, starts, q, self._table, self._idf, self._unseen_idf)
        self._order = np.argsort(norms, kind="stable")
        self._norms, self._repeated = norms[self._order], repeated[self._order]
        self._postings, self._left = joining.fill_postings(
            codes, starts, q, self._table, self._idf, self._posting_starts, self._order
        )

    def similarity(self, x: str, y: str) -> float:
        """How similar two texts are, from 0 to 1; a text without letters or digits is similar to none."""
        return float(self.similarities([x], [y])[0])

    def similarities(self, xs: Sequence[str], ys: Sequence[str]) -> NDArray[np.float64]:
        """How similar each text is to the one beside it."""
        result: NDArray[np.float64] = self._joining.similarities(
            *_codes(map(_counted, xs)), *_codes(map(_counted, ys)), self._q,
            self._table, self._idf, self._unseen_idf,
        )  # fmt: skip
        return result

    def weights(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """How much each text says, as a squared norm: what its words say adds up."""
        norms, _ = self._joining.norms_of(
            *_codes(map(_counted, texts)), self._q, self._table, self._idf, self._unseen_idf
        )
        result: NDArray[np.float64] = norms**2
        return result

    def join(self, texts: Sequence[str], threshold: float = WEAKLY_SIMILAR) -> Joined:
        """All pairs of a text and a value that are at least this similar."""
        if not 0 < threshold <= 1:
            raise ValueError(f"a threshold of similarity lies above 0 and up to 1, not at {threshold}")
        groups = _Groups(texts)
        text, value, similarity = self._joining.join(
            *_codes(groups.distinct), self._q, self._table, self._idf, self._unseen_idf,
            self._posting_starts, self._postings, self._left, self._norms, self._repeated, threshold,
        )  # fmt: skip
        pairs, value = self._groups.members(self._order[value])
        text, similarity = text[pairs], similarity[pairs]
        pairs, text = groups.members(text)
        value, similarity = value[pairs], similarity[pairs]
        order = np.lexsort((value, text))
        return Joined(text[order], value[order], similarity[order])


class _Groups:
    """Texts that are equal once folded, as one: `distinct` are the folded texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        numbers: dict[str, int] = {}
        group_of = np.fromiter((numbers.setdefault(_counted(text), len(numbers)) for text in texts), np.int32)
        self.distinct = list(numbers)
        self._sizes = np.bincount(group_of, minlength=len(numbers))
        self._order = np.argsort(group_of, kind="stable").astype(np.int32)
        self._starts = np.cumsum(self._sizes) - self._sizes

    def members(self, groups: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The numbers of the texts in each of some groups, and before them which of these groups it was."""
        sizes = self._sizes[groups]
        which = np.repeat(np.arange(groups.size), sizes)
        place = np.arange(which.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return which, self._order[self._starts[groups][which] + place]


def _counted(text: str) -> str:
    """The part of a text that counts, folded; signs and blanks that folding drops may double its length."""
    return folded(text[: 2 * LONGEST])[:LONGEST]


def _codes(texts: Iterable[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The code points of all texts in one row, and where each begins, with the end of the last."""
    listed = list(texts)
    starts = np.zeros(len(listed) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, listed), np.int64, len(listed)), out=starts[1:])
    return np.frombuffer("".join(listed).encode("utf-32-le"), np.uint32), starts
