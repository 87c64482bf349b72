"""Are the true values there at all in the trees that Siteloom makes?

Every value of the data set should be a text node of its page. What is not can
never be learned or extracted, so this bounds all other results from above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evals.swde import SwdeSite, swde_sites
from siteloom.core.model import Failure
from siteloom.html.parser import parse
from siteloom.html.visible_text import normalize, text_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from siteloom.core.model import Page

PAGES_OF_A_SITE = 120  # evenly spaced, as in the other evaluations


class Reachable(NamedTuple):
    """How many of a site's true values are text nodes of their pages."""

    site: str
    values: int
    found: int
    unparsed: int


def figures(data: Path) -> dict[str, float]:
    rows = list(measure(data))
    print("True values that are text nodes of their pages\n")
    print(f"{'site':30} {'values':>8} {'found':>8} {'share':>7} {'unparsed pages':>15}")
    for row in rows:
        share = row.found / max(1, row.values)
        print(f"{row.site:30} {row.values:8,} {row.found:8,} {share:7.4f} {row.unparsed:15}")
    return {
        "reachable_values": round(sum(row.found for row in rows) / sum(row.values for row in rows), 4),
        "parsed_sites": sum(row.unparsed == 0 for row in rows),
    }


def measure(data: Path) -> Iterator[Reachable]:
    for site in swde_sites(data):
        yield _measure_site(site)


def page_texts(page: Page) -> set[str] | None:
    """The text nodes of a page and its title, or None where it does not parse."""
    root = parse(page)
    if isinstance(root, Failure):
        return None
    texts = {normalize(text.text) for text in text_nodes(root)}
    return texts | {normalize(title.text or "") for title in root.iter("title")}


def _measure_site(site: SwdeSite) -> Reachable:
    values = found = unparsed = 0
    for number in site.evenly_spaced(PAGES_OF_A_SITE):
        texts = page_texts(site.page(number))
        if texts is None:
            unparsed += 1
            continue
        for true_values in site.truth[number].values():
            values += len(true_values)
            found += sum(value in texts for value in true_values)
    return Reachable(site.full_name, values, found, unparsed)
