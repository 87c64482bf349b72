"""Runs inside scikit-learn's own environment: path sets come in as JSON, clusters go out.

In: {"method": "agglomerative" or "dbscan", "distance": threshold, "paths": [[number of a path]]}.
Out: {"clusters": [[number of a page]], "seconds": CPU seconds, distances included}.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.cluster import DBSCAN, AgglomerativeClustering


def main() -> None:
    work = json.load(sys.stdin)
    path_sets = [np.array(paths, np.int64) for paths in work["paths"]]
    start = time.process_time()
    distances = _jaccard_distances(path_sets)
    if work["method"] == "dbscan":
        model: Any = DBSCAN(eps=work["distance"], metric="precomputed")
    else:
        model = AgglomerativeClustering(
            n_clusters=None,
            metric="precomputed",
            linkage="average",
            distance_threshold=work["distance"],
        )
    clusters: dict[int, list[int]] = defaultdict(list)
    for page, label in enumerate(model.fit_predict(distances).tolist()):
        if label >= 0:  # its mark for pages in no cluster is -1
            clusters[label].append(page)
    seconds = time.process_time() - start
    json.dump({"clusters": list(clusters.values()), "seconds": seconds}, sys.stdout)


def _jaccard_distances(path_sets: list[Any]) -> Any:
    """How little every two path sets have in common."""
    sizes = np.array([paths.size for paths in path_sets])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    numbers = np.concatenate(path_sets)
    matrix = csr_matrix((np.ones(numbers.size, np.float32), numbers, starts))
    common = (matrix @ matrix.T).toarray()
    return 1 - common / np.maximum(1, np.add.outer(sizes, sizes) - common)


if __name__ == "__main__":
    main()
