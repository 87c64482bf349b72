"""The papers' study of thresholds: which changes are found, and how many alarms are false, from 10 to 50 %.

Every visit of every set is the first one once: a wrapper is learned and watched there, and some later visits,
evenly spaced, are compared with it, without repair. So there are more changes than if each were met once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import siteloom
from evals.change_data import change_set
from evals.change_play import BELLWETHERS, learned
from evals.change_scores import BADLY_BROKEN, answers, broken_shares
from evals.tables import table
from siteloom.core.sequences import evenly_spaced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5)

_LATER_VISITS = 4

_SECTION = """\
The papers tried thresholds from 10 to 50 %. Every visit of the four sites is the first one once, and up to
{later} later visits, evenly spaced, are compared with it, without repair: so there are more pairs of visits
with a change between them. Changes that break more than {badly:.0%} of the values of an attribute and those
that break less are counted apart. An alarm is false if nothing breaks.

{study}

The threshold matters little here, as most of what is found does not depend on it alone: a known value that
still stands on its page but is not found needs to be seen on a third of the threshold only."""


class Compared(NamedTuple):
    """Two visits: the largest share of an attribute that broke, and the thresholds that report it."""

    site: str
    first: str
    later: str
    broken: float
    reported: Mapping[float, bool]


def starts(data: Path, sites: Sequence[str]) -> list[tuple[Path, str, int]]:
    """The arguments of `compare_from`: every visit that has later ones."""
    return [(data, site, place) for site in sites for place in range(len(change_set(data, site).visits) - 1)]


def compare_from(data: Path, name: str, place: int) -> list[Compared]:
    """Compare visits after one with it."""
    site = change_set(data, name)
    first, *later = site.visits[place:]
    wrapper = learned(first, site.schema)
    watch = siteloom.watch(wrapper, first.pages, k=BELLWETHERS)
    known = answers((wrapper.extract(page) for page in first.pages), first.truths)
    compared = []
    for visit in evenly_spaced(later, _LATER_VISITS):
        pages = visit.pages
        now = answers((wrapper.extract(page) for page in pages), visit.truths)
        broken = max(broken_shares(site.schema, known, now).values(), default=0.0)
        reported = {
            threshold: bool(siteloom.monitor(watch, pages, threshold=threshold)) for threshold in THRESHOLDS
        }
        compared.append(Compared(name, first.name, visit.name, broken, reported))
    return compared


def section(compared: Sequence[Compared]) -> str:
    """What the page says."""
    return _SECTION.format(later=_LATER_VISITS, badly=BADLY_BROKEN, study=_study(compared))


def _study(compared: Sequence[Compared]) -> str:
    """Changes found and false alarms by threshold."""
    badly = [pair for pair in compared if pair.broken > BADLY_BROKEN]
    partly = [pair for pair in compared if 0 < pair.broken <= BADLY_BROKEN]
    not_at_all = [pair for pair in compared if not pair.broken]
    rows = [
        [
            f"{threshold:.0%}",
            *(
                f"{sum(pair.reported[threshold] for pair in pairs)} of {len(pairs)}"
                for pairs in (badly, partly, not_at_all)
            ),
        ]
        for threshold in THRESHOLDS
    ]
    return table(
        [
            "threshold",
            f"found, more than {BADLY_BROKEN:.0%} broken",
            "found, less broken",
            "false alarms",
        ],
        rows,
    )


def figures(compared: Sequence[Compared]) -> dict[str, float]:
    """What the threshold in the middle finds, and how often it is right to be silent."""
    default = THRESHOLDS[len(THRESHOLDS) // 2]
    badly = [pair for pair in compared if pair.broken > BADLY_BROKEN]
    unbroken = [pair for pair in compared if not pair.broken]
    return {
        "change_pairs_found": round(sum(pair.reported[default] for pair in badly) / max(1, len(badly)), 4),
        "change_pairs_quiet": round(
            sum(not pair.reported[default] for pair in unbroken) / max(1, len(unbroken)), 4
        ),
    }
