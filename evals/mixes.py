"""Mixes of pages of many sites: does each method find the sites again?

A found cluster is compared with the true cluster, a site, that it shares most
pages with, as Kim and Shim (TKDE 2011) count; their means are over found
clusters, so a fragment counts as much as a whole site.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evals.peers import Peer, PeerFailed
from siteloom.templates.clustering.methods import page_features
from siteloom.templates.clustering.text import text_clusters
from siteloom.templates.clustering.text_mdl import equal_documents, essential_paths
from siteloom.templates.clustering.tree_distance import rtdm_clusters
from siteloom.templates.clustering.vertex import cluster_signatures
from siteloom.templates.essential_paths import shared_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from evals.swde import SwdeSite
    from siteloom.templates.clustering.methods import Method, PageFeatures
    from siteloom.templates.clustering.text import TextMethod

    Clusters = Sequence[Sequence[int]]

FEW_PAGES = 10
MANY_PAGES = 100
TEXT_METHODS: tuple[TextMethod, ...] = ("text-mdl", "text-hash", "text-max")

PEER = Peer("scikit-learn", ("scikit-learn==1.9.1",), "sklearn.cluster", "sklearn")

_DISTANCES = {"agglomerative": 0.6, "dbscan": 0.5}
_ROUNDS = 3


class Mix(NamedTuple):
    """Pages of many sites: the site of each, and what each method that was asked for looks at."""

    sites: tuple[str, ...]
    features: dict[Method, list[PageFeatures]]
    seconds: dict[Method, float]

    def paths(self) -> list[NDArray[np.uint64]]:
        """The path set of each page; an empty one where the page does not parse."""
        kept = [features.paths for features in self.features["text-max"]]
        return [np.empty(0, np.uint64) if paths is None else paths for paths in kept]


class Outcome(NamedTuple):
    """How well a method did, and the CPU seconds that it took."""

    method: str
    clusters: int
    precision: float
    recall: float
    coverage: float
    template_precision: float
    template_recall: float
    feature_seconds: float
    cluster_seconds: float


class Mixed(NamedTuple):
    """The outcome of each method on one mix, and why methods of peers have none."""

    outcomes: list[Outcome]
    failed: Mapping[str, str]


class TextTimes(NamedTuple):
    """CPU seconds of clustering. Only pages that differ in their essential paths are clustered."""

    pages: int
    different: int
    seconds: dict[str, float]


class _Run(NamedTuple):
    """What a method found, and the CPU seconds that it took."""

    clusters: Clusters
    seconds: float


class _Contestant(NamedTuple):
    looks_at: Method
    run: Callable[[Mix], _Run]
    few_pages_only: bool = False


def read_mix(sites: Sequence[SwdeSite], pages_of_a_site: int, methods: Sequence[Method]) -> Mix:
    """Some pages of each site, and what the methods look at in them."""
    mix = Mix(
        tuple(site.full_name for site in sites for _ in site.evenly_spaced(pages_of_a_site)),
        {method: [] for method in methods},
        dict.fromkeys(methods, 0.0),
    )
    for site in sites:
        for number in site.evenly_spaced(pages_of_a_site):
            page = site.page(number)
            for method in methods:
                start = time.process_time()
                mix.features[method].append(page_features(page, method, site.full_name))
                mix.seconds[method] += time.process_time() - start
    return mix


def measure(sites: Sequence[SwdeSite], pages_of_a_site: int) -> Mixed:
    """All methods that are quick enough, on one mix."""
    contestants = {
        name: contestant
        for name, contestant in _CONTESTANTS.items()
        if pages_of_a_site <= FEW_PAGES or not contestant.few_pages_only
    }
    looked_at: list[Method] = list(dict.fromkeys(contestant.looks_at for contestant in contestants.values()))
    few = read_mix(sites[:3], FEW_PAGES, looked_at)
    for name, contestant in contestants.items():
        if name not in _DISTANCES:
            contestant.run(few)  # compiles, or loads what was compiled
    mix = read_mix(sites, pages_of_a_site, looked_at)
    outcomes: list[Outcome] = []
    failed: dict[str, str] = {}
    for name, contestant in contestants.items():
        try:
            clusters, seconds = contestant.run(mix)
        except PeerFailed as error:
            failed[name] = str(error)
            continue
        outcomes.append(_outcome(name, clusters, mix, mix.seconds[contestant.looks_at], seconds))
    return Mixed(outcomes, failed)


def text_times(sites: Sequence[SwdeSite], pages_of_a_site: int) -> TextTimes:
    """How long each variant of TEXT takes for a mix."""
    paths = read_mix(sites, pages_of_a_site, ["text-max"]).paths()
    different = np.unique(equal_documents(essential_paths(paths))).size
    seconds: dict[str, float] = {}
    for method in TEXT_METHODS:
        rounds = []
        for _ in range(_ROUNDS):
            start = time.process_time()
            text_clusters(paths, method)
            rounds.append(time.process_time() - start)
        seconds[method] = sorted(rounds)[_ROUNDS // 2]
    return TextTimes(len(paths), different, seconds)


def _timed(cluster: Callable[[Mix], Clusters]) -> Callable[[Mix], _Run]:
    def run(mix: Mix) -> _Run:
        start = time.process_time()
        clusters = cluster(mix)
        return _Run(clusters, time.process_time() - start)

    return run


def _by_site(method: Method) -> Callable[[Mix], Clusters]:
    def run(mix: Mix) -> Clusters:
        pages_of_site: dict[str, list[int]] = defaultdict(list)
        for page, site in enumerate(mix.sites):
            pages_of_site[site].append(page)
        kept = mix.features[method]
        return [
            [pages[place] for place in cluster.members]
            for pages in pages_of_site.values()
            for cluster in cluster_signatures(
                [kept[page].signature if method == "vertex" else kept[page].sketch for page in pages]
            ).clusters
        ]

    return run


def _text(method: TextMethod) -> Callable[[Mix], Clusters]:
    return lambda mix: text_clusters(mix.paths(), method)


def _rtdm(mix: Mix) -> Clusters:
    trees = {page: kept.tree for page, kept in enumerate(mix.features["rtdm"]) if kept.tree is not None}
    pages = list(trees)
    return [[pages[place] for place in places] for places in rtdm_clusters(list(trees.values()))]


def _peer(method: str) -> Callable[[Mix], _Run]:
    """Scikit-learn on path sets; it times itself, as what it is given takes time to be read."""

    def run(mix: Mix) -> _Run:
        path_sets = mix.paths()
        numbers = np.unique(np.concatenate(path_sets), return_inverse=True)[1]
        ends = np.cumsum([paths.size for paths in path_sets])
        numbered = [part.tolist() for part in np.split(numbers, ends[:-1])]
        answer = PEER.answer({"method": method, "distance": _DISTANCES[method], "paths": numbered})
        return _Run(answer["clusters"], answer["seconds"])

    return run


_CONTESTANTS: dict[str, _Contestant] = {
    "vertex": _Contestant("vertex", _timed(_by_site("vertex"))),
    "paths": _Contestant("paths", _timed(_by_site("paths"))),
    "text-mdl": _Contestant("text-max", _timed(_text("text-mdl"))),
    "text-hash": _Contestant("text-max", _timed(_text("text-hash"))),
    "text-max": _Contestant("text-max", _timed(_text("text-max"))),
    "rtdm": _Contestant("rtdm", _timed(_rtdm), few_pages_only=True),
    "agglomerative": _Contestant("text-max", _peer("agglomerative")),
    "dbscan": _Contestant("text-max", _peer("dbscan")),
}


def _outcome(
    method: str, clusters: Clusters, mix: Mix, feature_seconds: float, cluster_seconds: float
) -> Outcome:
    paths = mix.paths()
    sizes = Counter(mix.sites)
    true_templates = {
        site: shared_paths(
            [page_paths for page_paths, of in zip(paths, mix.sites, strict=True) if of == site]
        )
        for site in sizes
    }
    precision, recall, template_precision, template_recall = [], [], [], []
    for cluster in clusters:
        ((closest, common),) = Counter(mix.sites[page] for page in cluster).most_common(1)
        precision.append(common / len(cluster))
        recall.append(common / sizes[closest])
        true = true_templates[closest].paths
        found = shared_paths([paths[page] for page in cluster]).paths
        common_paths = np.intersect1d(found, true, assume_unique=True).size
        template_precision.append(common_paths / found.size if found.size else 1.0)
        template_recall.append(common_paths / true.size if true.size else 1.0)
    return Outcome(
        method,
        len(clusters),
        fmean(precision),
        fmean(recall),
        sum(map(len, clusters)) / len(mix.sites),
        fmean(template_precision),
        fmean(template_recall),
        feature_seconds,
        cluster_seconds,
    )
