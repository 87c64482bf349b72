"""Siteloom turns template-based web sites into structured records.

Importing it is cheap: a public name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from siteloom.clustering import cluster
    from siteloom.errors import SiteloomError
    from siteloom.model import Cluster, Clustering, Failure, Page, Resource, Template
    from siteloom.pages import read_pages
    from siteloom.sampling import sample

__all__ = [
    "Cluster",
    "Clustering",
    "Failure",
    "Page",
    "Resource",
    "SiteloomError",
    "Template",
    "cluster",
    "read_pages",
    "sample",
]

__version__ = "0.1.0"

_HOME = {
    "Cluster": "siteloom.model",
    "Clustering": "siteloom.model",
    "Failure": "siteloom.model",
    "Page": "siteloom.model",
    "Resource": "siteloom.model",
    "SiteloomError": "siteloom.errors",
    "Template": "siteloom.model",
    "cluster": "siteloom.clustering",
    "read_pages": "siteloom.pages",
    "sample": "siteloom.sampling",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'siteloom' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
