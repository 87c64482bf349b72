"""The workbenches that people are at."""

from __future__ import annotations

import gc
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

from siteloom.core.settings import ParseSettings
from siteloom.operations.annotation.annotation_session import Workbench

if TYPE_CHECKING:
    from siteloom.store.store import Store

# Each holds some ten pages with their trees: some tens of megabytes, if pages are large.
_MOST_OPEN = 8


class _Place:
    """Room for the workbench of one cluster, so that two people who come at once do not make it twice."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.bench: Workbench | None = None


class Workbenches:
    """The workbenches that were asked for last, made when they are first asked for."""

    def __init__(self, store: Store, limits: ParseSettings = ParseSettings()) -> None:
        self._store = store
        self._limits = limits
        self._places: OrderedDict[str, _Place] = OrderedDict()
        self._lock = Lock()

    def bench(self, cluster: str) -> Workbench:
        """The workbench of a cluster, made anew if the cluster was found anew, or pages were forgotten."""
        with self._lock:
            place = self._places.setdefault(cluster, _Place())
            self._places.move_to_end(cluster)
            while len(self._places) > _MOST_OPEN:
                self._places.popitem(last=False)
        with place.lock:
            edition = self._store.cluster_edition(cluster)
            if place.bench is None or place.bench.edition != edition or place.bench.is_outdated:
                place.bench = None  # it need not stay until the next one is made
                place.bench = Workbench(self._store, cluster, self._limits)
                _spare_collector()
            return place.bench

    def drop_forgotten(self) -> None:
        """Drop the workbenches that were made before the store has forgotten something.

        All of them, whatever their site: they show what is known from other sites, too. One that is only
        being made is for whoever waits for it, and no one else.
        """
        forgetting = self._store.erasure_mark()
        with self._lock:
            outdated = [
                cluster
                for cluster, place in self._places.items()
                if place.bench is None or place.bench.forgetting != forgetting
            ]
            for cluster in outdated:
                del self._places[cluster]
        if outdated:
            _spare_collector()


def _spare_collector() -> None:
    """Keep Python's garbage collector from walking all trees again and again while people click.

    They are hundreds of thousands of objects, and live as long as their workbench; what has become garbage
    since the last workbench was opened is collected first.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
