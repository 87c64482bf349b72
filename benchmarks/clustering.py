"""Clustering: what a signature costs, and how time and memory grow with the pages. P is as in `parsing`."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from lxml import etree

from benchmarks.corpus import sample_of_each_site
from benchmarks.measure import ROUNDS, Figure, cpu_seconds
from siteloom.core.model import Page
from siteloom.templates.clustering.methods import page_features
from siteloom.templates.clustering.text import text_clusters
from siteloom.templates.clustering.text_mdl import equal_documents, essential_paths
from siteloom.templates.clustering.vertex import cluster_signatures
from siteloom.templates.signature import SIGNATURE_BYTES, signature

if TYPE_CHECKING:
    from collections.abc import Callable, Sized

    from numpy.typing import NDArray

    from siteloom.templates.clustering.text import TextMethod

TITLE = "Clustering"

_SIGNATURES = (250_000, 500_000, 1_000_000)
_DOCUMENTS = (5_000, 10_000, 20_000, 40_000)
_MOST_DOCUMENTS = 100_000
# With how much probability a document has a path of its template. Documents that have the same essential
# paths are clustered once: with .97 one of each template is left, with .9 nearly all are.
_PRESENCES = (".97", ".90")
_REAL_PAGES_OF_A_SITE = (10, 30)
_TEXT_METHODS: tuple[TextMethod, ...] = ("text-mdl", "text-hash", "text-max")


class _Run(NamedTuple):
    """The CPU seconds of clustering, in a process of its own, and that process's peak memory.

    `different` is how many documents were left to be clustered.
    """

    seconds: float
    megabytes: float
    clusters: int
    different: int


def figures(data: Path) -> list[Figure]:
    vertex = {size: _in_own_process("vertex", size) for size in _SIGNATURES}
    return [
        _signature_cost(data),
        *(
            Figure(
                f"Vertex, {size:,} generated signatures",
                _written(run),
                "about a minute, 2,000 MB" if size == _SIGNATURES[-1] else "",
            )
            for size, run in vertex.items()
        ),
        Figure("Vertex, growth on doubling", _growth(vertex, _SIGNATURES), "2 (linear)"),
        *(figure for presence in _PRESENCES for figure in _text_max(presence)),
        *(figure for pages in _REAL_PAGES_OF_A_SITE for figure in _text_on_real_pages(data, pages)),
    ]


def _text_max(presence: str) -> list[Figure]:
    runs = {size: _in_own_process("text-max", size, presence) for size in (*_DOCUMENTS, _MOST_DOCUMENTS)}
    return [
        *(
            Figure(
                f"TEXT-MAX, {size:,} generated documents (p = {presence}), {run.different:,} different",
                _written(run),
            )
            for size, run in runs.items()
        ),
        Figure(f"TEXT-MAX, growth on doubling (p = {presence})", _growth(runs, _DOCUMENTS), "at most 2.6"),
    ]


def _signature_cost(data: Path) -> Figure:
    pages = sample_of_each_site(data, 40)
    signature(pages[0])  # compiles, or loads what was compiled
    seconds = cpu_seconds(
        {
            "P": lambda: [None for html in pages if etree.HTML(html) is None],
            "signature": lambda: [None for html in pages if signature(html) is None],
        }
    )
    return Figure("`signature`", f"{seconds['signature'] / seconds['P']:.3f} P", "at most 0.10 P")


def _text_on_real_pages(data: Path, pages_of_a_site: int) -> list[Figure]:
    """The variants of TEXT over finding the path sets that they are given."""
    pages = [Page("", html) for html in sample_of_each_site(data, pages_of_a_site)]
    start = time.process_time()
    found = [page_features(page, "text-max").paths for page in pages]
    paths = [page_paths for page_paths in found if page_paths is not None]
    features = time.process_time() - start
    contestants: dict[str, Callable[[], object]] = {
        method: partial(text_clusters, paths, method) for method in _TEXT_METHODS
    }
    for run in contestants.values():  # compiles, or loads what was compiled
        run()
    seconds = cpu_seconds(contestants)
    return [
        Figure(
            f"{method}, {len(paths)} real pages, over finding their paths",
            f"{seconds[method] / features:.3f} times ({seconds[method]:.3f} s)",
        )
        for method in _TEXT_METHODS
    ]


def _written(run: _Run) -> str:
    return f"{run.seconds:.2f} s, peak {run.megabytes:,.0f} MB, {run.clusters:,} clusters"


def _growth(runs: dict[int, _Run], sizes: tuple[int, ...]) -> str:
    return ", ".join(f"{runs[after].seconds / runs[before].seconds:.2f}" for before, after in pairwise(sizes))


def _in_own_process(method: str, size: int, presence: str = "") -> _Run:
    command = [sys.executable, "-m", "benchmarks.clustering", method, str(size), presence]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return _Run(*json.loads(output))


def _generated_signatures(count: int) -> list[bytes]:
    """Pages of 200 templates; each byte is another with a probability of .05."""
    random = np.random.default_rng(1)
    templates = random.integers(0, 256, (200, SIGNATURE_BYTES), np.uint8)
    pages = templates[random.integers(0, len(templates), count)]
    is_changed = random.random(pages.shape) < 0.05
    pages[is_changed] = random.integers(0, 256, int(is_changed.sum()), np.uint8)
    joined = pages.tobytes()
    return [joined[start : start + SIGNATURE_BYTES] for start in range(0, len(joined), SIGNATURE_BYTES)]


def _generated_documents(count: int, presence: float) -> list[NDArray[np.uint64]]:
    """20 documents a template of 300 paths, each there with some probability, and other paths."""
    random = np.random.default_rng(1)

    def paths(number: int) -> NDArray[np.uint64]:
        return random.integers(0, 2**64, number, np.uint64)

    common = paths(30)
    documents = []
    for _ in range(count // 20):
        template = paths(300)
        documents += [
            np.unique(np.concatenate([common, template[random.random(300) < presence], paths(200)]))
            for _ in range(20)
        ]
    return documents


def _vertex(signatures: list[bytes]) -> Sized:
    return cluster_signatures(signatures).clusters


def _print_run(method: str, size: int, presence: str) -> None:
    run: Callable[[], Sized]
    documents: list[NDArray[np.uint64]] = []
    if method == "vertex":
        _vertex(_generated_signatures(1_000))  # compiles, or loads what was compiled
        run = partial(_vertex, _generated_signatures(size))
    else:
        text_clusters(_generated_documents(4_000, float(presence)))
        documents = _generated_documents(size, float(presence))
        run = partial(text_clusters, documents)
    times = []
    for _ in range(1 if size == _MOST_DOCUMENTS else ROUNDS):
        start = time.process_time()
        clusters = len(run())
        times.append(time.process_time() - start)
    # Not getrusage, whose peak a process inherits from the one that started it.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (peak,) = re.findall(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    different = np.unique(equal_documents(essential_paths(documents))).size if documents else size
    print(json.dumps([statistics.median(times), int(peak) / 1e3, clusters, different]))


if __name__ == "__main__":
    _print_run(sys.argv[1], int(sys.argv[2]), sys.argv[3])
