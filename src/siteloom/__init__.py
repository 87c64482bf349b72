"""Siteloom turns template-based web sites into structured records.

Importing it is cheap: a public name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from siteloom.core.errors import ExampleNotFound, SiteloomError
    from siteloom.core.model import (
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
    from siteloom.learning.discovery.table_discovery import DiscoveredTable, discover
    from siteloom.learning.induction.learner import learn
    from siteloom.learning.known_records.bootstrap_result import Bootstrapped
    from siteloom.learning.known_records.site_bootstrap import bootstrap
    from siteloom.maintenance.change_tests import monitor
    from siteloom.maintenance.repair_result import Relearned
    from siteloom.maintenance.watched_pages import Watch, watch
    from siteloom.maintenance.wrapper_repair import relearn
    from siteloom.operations.read_records import read_records
    from siteloom.sources.open_sources import read_pages
    from siteloom.templates.clustering.methods import cluster
    from siteloom.templates.sampling import sample
    from siteloom.templates.template_text import SegmentTable
    from siteloom.templates.text_blocks import Block
    from siteloom.wrappers.wrapper import Wrapper

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
    "Attribute": "siteloom.core.model",
    "Block": "siteloom.templates.text_blocks",
    "Bootstrapped": "siteloom.learning.known_records.bootstrap_result",
    "Change": "siteloom.core.model",
    "Cluster": "siteloom.core.model",
    "Clustering": "siteloom.core.model",
    "DiscoveredTable": "siteloom.learning.discovery.table_discovery",
    "Evidence": "siteloom.core.model",
    "Example": "siteloom.core.model",
    "ExampleNotFound": "siteloom.core.errors",
    "Failure": "siteloom.core.model",
    "Footprint": "siteloom.core.model",
    "Page": "siteloom.core.model",
    "Provenance": "siteloom.core.model",
    "Record": "siteloom.core.model",
    "Relearned": "siteloom.maintenance.repair_result",
    "Resource": "siteloom.core.model",
    "Seed": "siteloom.core.model",
    "SegmentTable": "siteloom.templates.template_text",
    "SiteloomError": "siteloom.core.errors",
    "Template": "siteloom.core.model",
    "Watch": "siteloom.maintenance.watched_pages",
    "Withheld": "siteloom.core.model",
    "Wrapper": "siteloom.wrappers.wrapper",
    "bootstrap": "siteloom.learning.known_records.site_bootstrap",
    "cluster": "siteloom.templates.clustering.methods",
    "discover": "siteloom.learning.discovery.table_discovery",
    "learn": "siteloom.learning.induction.learner",
    "monitor": "siteloom.maintenance.change_tests",
    "read_pages": "siteloom.sources.open_sources",
    "read_records": "siteloom.operations.read_records",
    "relearn": "siteloom.maintenance.wrapper_repair",
    "sample": "siteloom.templates.sampling",
    "watch": "siteloom.maintenance.watched_pages",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'siteloom' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
