"""Which pages were made from one template, for one site or for pages of unknown origin."""

from siteloom.clustering.footprints import cluster_footprint, extended, footprint, united
from siteloom.clustering.pages import (
    METHODS,
    SITE_METHODS,
    Method,
    PageFeatures,
    checked_method,
    cluster,
    cluster_by_signatures,
    cluster_features,
    cluster_footprints,
    cluster_site,
    describe,
    describing_members,
    joined,
    most_common,
    page_features,
    renumbered,
)
from siteloom.clustering.url_patterns import PatternSet, matches, url_patterns
from siteloom.clustering.vertex import assign, cluster_signatures

__all__ = [
    "METHODS",
    "SITE_METHODS",
    "Method",
    "PageFeatures",
    "PatternSet",
    "assign",
    "checked_method",
    "cluster",
    "cluster_by_signatures",
    "cluster_features",
    "cluster_footprint",
    "cluster_footprints",
    "cluster_signatures",
    "cluster_site",
    "describe",
    "describing_members",
    "extended",
    "footprint",
    "joined",
    "matches",
    "most_common",
    "page_features",
    "renumbered",
    "united",
    "url_patterns",
]
