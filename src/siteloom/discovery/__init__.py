"""A table of what varies on the pages of a cluster, without any examples."""

from siteloom.discovery.accepting import Accepted, accept_columns
from siteloom.discovery.table import (
    DiscoveredColumn,
    DiscoveredRow,
    DiscoveredTable,
    TableOutline,
    discover,
    outline,
)

__all__ = [
    "Accepted",
    "DiscoveredColumn",
    "DiscoveredRow",
    "DiscoveredTable",
    "TableOutline",
    "accept_columns",
    "discover",
    "outline",
]
