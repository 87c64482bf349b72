"""Siteloom turns template-based web sites into structured records.

Importing it is cheap: a public name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from siteloom.clustering import cluster
    from siteloom.discovery import DiscoveredTable, discover
    from siteloom.errors import ExampleNotFound, SiteloomError
    from siteloom.learning import learn
    from siteloom.model import (
        Attribute,
        Change,
        Cluster,
        Clustering,
        Evidence,
        Example,
        Failure,
        Footprint,
        Page,
        Provenance,
        Record,
        Resource,
        Seed,
        Template,
        Withheld,
    )
    from siteloom.monitoring import Watch, monitor, watch
    from siteloom.pages import read_pages
    from siteloom.record_rows import read_records
    from siteloom.redundancy import Bootstrapped, bootstrap
    from siteloom.relearning import Relearned, relearn
    from siteloom.sampling import sample
    from siteloom.template import Block, SegmentTable
    from siteloom.wrapper import Wrapper

__all__ = [
    "Attribute",
    "Block",
    "Bootstrapped",
    "Change",
    "Cluster",
    "Clustering",
    "DiscoveredTable",
    "Evidence",
    "Example",
    "ExampleNotFound",
    "Failure",
    "Footprint",
    "Page",
    "Provenance",
    "Record",
    "Relearned",
    "Resource",
    "Seed",
    "SegmentTable",
    "SiteloomError",
    "Template",
    "Watch",
    "Withheld",
    "Wrapper",
    "bootstrap",
    "cluster",
    "discover",
    "learn",
    "monitor",
    "read_pages",
    "read_records",
    "relearn",
    "sample",
    "watch",
]

__version__ = "1.0.0"

_HOME = {
    "Attribute": "siteloom.model",
    "Block": "siteloom.template",
    "Bootstrapped": "siteloom.redundancy",
    "Change": "siteloom.model",
    "Cluster": "siteloom.model",
    "Clustering": "siteloom.model",
    "DiscoveredTable": "siteloom.discovery",
    "Evidence": "siteloom.model",
    "Example": "siteloom.model",
    "ExampleNotFound": "siteloom.errors",
    "Failure": "siteloom.model",
    "Footprint": "siteloom.model",
    "Page": "siteloom.model",
    "Provenance": "siteloom.model",
    "Record": "siteloom.model",
    "Relearned": "siteloom.relearning",
    "Resource": "siteloom.model",
    "Seed": "siteloom.model",
    "SegmentTable": "siteloom.template",
    "SiteloomError": "siteloom.errors",
    "Template": "siteloom.model",
    "Watch": "siteloom.monitoring",
    "Withheld": "siteloom.model",
    "Wrapper": "siteloom.wrapper",
    "bootstrap": "siteloom.redundancy",
    "cluster": "siteloom.clustering",
    "discover": "siteloom.discovery",
    "learn": "siteloom.learning",
    "monitor": "siteloom.monitoring",
    "read_pages": "siteloom.pages",
    "read_records": "siteloom.record_rows",
    "relearn": "siteloom.relearning",
    "sample": "siteloom.sampling",
    "watch": "siteloom.monitoring",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'siteloom' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
