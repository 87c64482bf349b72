"""What it costs to discover a table in the pages of a cluster. P is as in `parsing`, over the same pages."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from evals.swde import swde_sites
from lxml import etree

import siteloom
from benchmarks.measure import Figure, cpu_seconds
from siteloom.apps.demo.sites import guide_site

if TYPE_CHECKING:
    from pathlib import Path

    from siteloom.core.model import Page

TITLE = "Discovering"

_SITES = slice(0, None, 4)  # one site of each vertical
_PAGES = 200
_GUIDES = 5  # have as many list pages
_GOAL = "at most 30 P"


def figures(data: Path) -> list[Figure]:
    """The ratios of one site of each vertical, and of list pages."""
    costs = {
        site.full_name: _cost([site.page(number) for number in site.evenly_spaced(_PAGES)])
        for site in list(swde_sites(data))[_SITES]
    }
    slowest = max(costs, key=lambda name: costs[name])
    guides = (guide_site(seed=seed) for seed in range(_GUIDES))
    lists = [page.page for guide in guides for page in guide if page.kind == "list"][:_PAGES]
    return [
        Figure(f"discover in {_PAGES} pages, median", f"{statistics.median(costs.values()):.1f} P", _GOAL),
        Figure(f"discover in {_PAGES} pages, slowest ({slowest})", f"{costs[slowest]:.1f} P", _GOAL),
        Figure(f"discover in {len(lists)} list pages (built-in)", f"{_cost(lists):.1f} P", _GOAL),
    ]


def _cost(pages: list[Page]) -> float:
    """CPU seconds as a share of those of a bare parse."""
    times = cpu_seconds(
        {
            "parse": lambda: [etree.HTML(page.html) for page in pages],
            "discover": lambda: siteloom.discover(pages),
        }
    )
    return times["discover"] / times["parse"]
