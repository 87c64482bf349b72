"""Which pages were made from one template, for one site or for pages of unknown origin."""

from siteloom.clustering.pages import (
    METHODS,
    SITE_METHODS,
    Method,
    PageFeatures,
    checked_method,
    cluster,
    cluster_features,
    describing_members,
    joined,
    page_features,
    renumbered,
)
from siteloom.clustering.url_patterns import matches, url_patterns
from siteloom.clustering.vertex import assign, cluster_signatures

__all__ = [
    "METHODS",
    "SITE_METHODS",
    "Method",
    "PageFeatures",
    "assign",
    "checked_method",
    "cluster",
    "cluster_features",
    "cluster_signatures",
    "describing_members",
    "joined",
    "matches",
    "page_features",
    "renumbered",
    "url_patterns",
]
