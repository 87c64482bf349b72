"""Noticing that a site has changed, by pages that are watched and by what is extracted."""

from siteloom.monitoring.bellwethers import (
    MOST_BELLWETHERS,
    MOST_LOOKED_AT,
    Bellwether,
    Watch,
    choose,
    refilled,
    watch,
)
from siteloom.monitoring.checking import THRESHOLD, Checkup, check, monitor

__all__ = [
    "MOST_BELLWETHERS",
    "MOST_LOOKED_AT",
    "THRESHOLD",
    "Bellwether",
    "Checkup",
    "Watch",
    "check",
    "choose",
    "monitor",
    "refilled",
    "watch",
]
