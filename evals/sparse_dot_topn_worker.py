"""Runs inside the environment of sparse_dot_topn: texts and values come in as JSON, pairs go out.

To name the best value of each text: {"job": "best", "texts": [...], "values": [...]} comes in, [number of the
value, or null] goes out. To time a join: {"job": "join", "threshold": least cosine, "most": [how many values a
text may have]} and the like come in, {"pairs": {most: PAIRS}, "exact": PAIRS of a plain product, "vectors": CPU
seconds, "seconds": {most: CPU seconds}} goes out. PAIRS are [number of the text * number of all values + number
of the value].
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import scipy.sparse as sparse  # type: ignore[import-untyped]
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sparse_dot_topn import sp_matmul, sp_matmul_topn  # type: ignore[import-not-found]

_GRAM = 3


def main() -> None:
    work = json.load(sys.stdin)
    json.dump(_best(work) if work["job"] == "best" else _join(work), sys.stdout)


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
    answer: dict[str, Any] = {"vectors": vectors, "pairs": {}, "seconds": {}}
    for most in work["most"]:
        start = time.process_time()
        found = sp_matmul_topn(texts, values.T, top_n=most, threshold=work["threshold"], n_threads=1)
        answer["seconds"][most] = time.process_time() - start
        answer["pairs"][most] = _pairs(found)
    answer["exact"] = _pairs(sp_matmul(texts, values.T, threshold=work["threshold"]))
    return answer


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


def _pairs(found: Any) -> Any:
    matrix = found.tocoo()
    return (matrix.row.astype(np.int64) * matrix.shape[1] + matrix.col).tolist()


if __name__ == "__main__":
    main()
