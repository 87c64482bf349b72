"""Runs inside the environment of sparse_dot_topn: texts and values come in as JSON, pairs go out.

To name the best value of each text: {"job": "best", "texts": [...], "values": [...]} comes in, [number of the
value, or null] goes out. To time a join: {"job": "join", "threshold": least cosine, "most": how many values a
text may have} and the like come in, {"pairs": PAIRS, "vectors": CPU seconds, "seconds": CPU seconds} goes
out. For what is to be found: {"job": "exact"} and the like come in, PAIRS go out, of a plain product of
matrices. PAIRS are [number of the text * number of all values + number of the value].
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sparse_dot_topn import sp_matmul_topn  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from collections.abc import Callable

_GRAM = 3
_TEXTS_AT_ONCE = 500  # a product of all would not fit into memory


def main() -> None:
    work = json.load(sys.stdin)
    json.dump(_JOBS[work["job"]](work), sys.stdout)


def _best(work: dict[str, Any]) -> list[int | None]:
    """As its documentation and most who use it do: character grams by scikit-learn, the one best value."""
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(_GRAM, _GRAM))
    vectorizer.fit(work["values"] + work["texts"])
    texts, values = (vectorizer.transform(work[part]) for part in ("texts", "values"))
    found = sp_matmul_topn(texts, values.T, top_n=1).tocsr()
    return [
        int(found.indices[start]) if end > start else None
        for start, end in zip(found.indptr[:-1], found.indptr[1:], strict=True)
    ]


def _join(work: dict[str, Any]) -> dict[str, Any]:
    """With the vectors that Siteloom compares, so that the same pairs are to be found."""
    start = time.process_time()
    texts, values = _vectors(work["texts"], work["values"])
    vectors = time.process_time() - start
    start = time.process_time()
    found = sp_matmul_topn(texts, values.T, top_n=work["most"], threshold=work["threshold"], n_threads=1)
    seconds = time.process_time() - start
    return {"pairs": _pairs(found), "vectors": vectors, "seconds": seconds}


def _exact(work: dict[str, Any]) -> list[int]:
    texts, values = _vectors(work["texts"], work["values"])
    pairs: list[int] = []
    for first in range(0, texts.shape[0], _TEXTS_AT_ONCE):
        product = (texts[first : first + _TEXTS_AT_ONCE] @ values.T).tocsr()
        product.data[product.data < work["threshold"]] = 0
        product.eliminate_zeros()
        pairs += (pair + first * product.shape[1] for pair in _pairs(product))
    return pairs


def _vectors(texts: list[str], values: list[str]) -> tuple[Any, Any]:
    counter = CountVectorizer(analyzer=_grams, dtype=np.float32)
    counts = counter.fit_transform(values + texts)
    of_values = counts[: len(values)]
    having = np.bincount(of_values.indices, minlength=counts.shape[1])
    rarity = np.log1p(len(values) / np.maximum(having, 1)).astype(np.float32)
    weighted = counts @ sparse.diags(rarity)
    norms = np.sqrt(weighted.multiply(weighted).sum(axis=1)).A1
    scaled = sparse.diags(1 / np.maximum(norms, 1e-9)) @ weighted
    scaled = scaled.tocsr().astype(np.float32)
    return scaled[len(values) :], scaled[: len(values)]


def _grams(text: str) -> list[str]:
    """The grams of each word, padded as Siteloom pads them."""
    padded = (f"##{word}$$" for word in text.split())
    return [word[place : place + _GRAM] for word in padded for place in range(len(word) - _GRAM + 1)]


def _pairs(found: Any) -> list[int]:
    matrix = found.tocoo()
    pairs: list[int] = (matrix.row.astype(np.int64) * matrix.shape[1] + matrix.col).tolist()
    return pairs


_JOBS: dict[str, Callable[[dict[str, Any]], object]] = {"best": _best, "join": _join, "exact": _exact}


if __name__ == "__main__":
    main()
