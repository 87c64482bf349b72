"""Do wrappers live with change? Sites over time, followed from their first visit to their last.

A wrapper is learned from five pages of the first visit and watched. At each later visit the fresh pages are
compared with what is known; after an alarm the wrapper is relearned from the records of the visit before, and
only if that fails from five annotated pages of the visit.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING

from evals import change_thresholds
from evals.change_data import DENMARK, IPYTHON, MALTA, NZ, SETS, change_set
from evals.change_page import Section, write_section
from evals.change_play import BELLWETHERS, EXAMPLES, play
from evals.change_scores import BADLY_BROKEN
from evals.learning_runs import PROCESSES
from evals.tables import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from evals.change_play import Alarm, Played

_NZ_CHANGE = ("2016-08-22", "2016-08-23")  # the day on which old and new template are mixed, and the next
_ENOUGH_KEPT = 20  # pages that keep their values: so many known records are enough for a repair
_ASKED = "needs-annotation"


def figures(data: Path) -> dict[str, float]:
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        plays = {name: pool.submit(_play, data, name) for name in SETS}
        comparisons = [
            pool.submit(change_thresholds.compare_from, *start)
            for start in change_thresholds.starts(data, SETS)
        ]
        played = {name: future.result() for name, future in plays.items()}
        compared = [pair for future in comparisons for pair in future.result()]
    section = _section(played)
    write_section(Section.SITES, section)
    write_section(Section.THRESHOLDS, change_thresholds.section(compared))
    print(section, "\n")
    print(change_thresholds.section(compared), "\n")
    return {
        **_nz_figures(played[NZ]),
        **_ipython_figures(played[IPYTHON]),
        **_unchanged_figures("malta", played[MALTA]),
        **_unchanged_figures("denmark", played[DENMARK]),
        "change_quiet_alone": _quiet(
            [
                visit._replace(alarms=visit.alone)
                for visits in played.values()
                for visit in visits
                if not visit.broken
            ]
        ),
        **change_thresholds.figures(compared),
    }


def _play(data: Path, name: str) -> list[Played]:
    return play(change_set(data, name))


def _nz_figures(visits: Sequence[Played]) -> dict[str, float]:
    changing = [visit for visit in visits if visit.visit in _NZ_CHANGE]
    others = [visit for visit in visits if visit.visit not in _NZ_CHANGE]
    outcomes = {visit.outcome for visit in changing if visit.alarms}
    return {
        "change_nz_reported": float(any(visit.alarms for visit in changing)),
        "change_nz_without_annotation": float(bool(outcomes) and _ASKED not in outcomes),
        "change_nz_quiet": _quiet(others),
        "change_nz_least_right": _least(visits),
    }


def _ipython_figures(visits: Sequence[Played]) -> dict[str, float]:
    breaks = [visit for visit in visits if visit.worst_break > BADLY_BROKEN]
    reported = [visit for visit in breaks if visit.alarms]
    as_hoped = [visit for visit in reported if (visit.outcome == _ASKED) == (visit.kept < _ENOUGH_KEPT)]
    first = visits.index(breaks[0]) if breaks else len(visits)
    return {
        "change_ipython_reported": round(len(reported) / max(1, len(breaks)), 4),
        "change_ipython_outcomes": round(len(as_hoped) / max(1, len(breaks)), 4),
        "change_ipython_quiet": _quiet([visit for visit in visits if not visit.broken]),
        "change_ipython_least_right_before": _least(visits[:first]),
        # The records cannot tell what became of headings that were changed together with the template.
        "change_ipython_kept_right_after": round(
            min((visit.kept_score.share for visit in breaks if visit.outcome != _ASKED), default=0.0), 4
        ),
        "change_ipython_least_same": round(min(visit.same for visit in visits), 4),
    }


def _unchanged_figures(name: str, visits: Sequence[Played]) -> dict[str, float]:
    return {
        f"change_{name}_quiet": _quiet(visits),
        f"change_{name}_least_right": _least(visits),
        f"change_{name}_unbroken": float(not any(visit.broken for visit in visits)),
    }


def _quiet(visits: Sequence[Played]) -> float:
    return round(sum(not visit.alarms for visit in visits) / max(1, len(visits)), 4)


def _least(visits: Sequence[Played]) -> float:
    return round(min(visit.score.share for visit in visits), 4)


_TEXTS = {
    NZ: """\
Members of the New Zealand parliament in 2016: heading, e-mail address, electorate and party. The template
changes on 22 August, when old and new pages are mixed.""",
    MALTA: """\
Members of the Maltese parliament in 2017: heading, faction and e-mail addresses. Nothing changes but the
members. The addresses of three in ten pages are wrong from the first visit on, as five examples do not show
all the ways in which they are written there; what was right stays right.""",
    DENMARK: """\
Members of the Folketing in 2016 and 2017: name, e-mail addresses and periods. Nothing changes but the
members.""",
    IPYTHON: """\
Releases of the documentation of IPython: the heading of each page, and its title, which names the release and
so is a changing attribute. The template changes five times; only release 1 breaks a rule. It also puts
"Module:" in front of three headings in four. The records say `core.magics`, so the repaired rule finds
`core.magics`. That agrees with the records, in later releases too, but not with the data set, which says that
`Module: core.magics` is right from then on. So there are two more columns: *right of kept* counts only pages
whose true heading is the same as at the visit before, and *as before* is the share of headings that are found
as they were found at the visit before, whatever is true. The API alone does not notice release 1: it still
watches pages of release 0.9, of which 13 are left, none of them with "Module:". `siteloom monitor` has put
others in the place of pages that are gone, and notices.""",
}


def _section(played: Mapping[str, Sequence[Played]]) -> str:
    parts = [
        f"""\
A wrapper is learned from {EXAMPLES} pages of the first visit, and up to {BELLWETHERS} pages are watched. At
each later visit these are compared with what they were, as `siteloom monitor` does, which learns from quiet
visits; after an alarm the wrapper is relearned from the records of the visit before. *By the API alone* are
the alarms of `siteloom.monitor` with the watch of the last repair, without that history. *Broke* is the share
of right values that the wrapper of the visit before gets wrong; *right* is after the repair, if there is one.
"""
    ]
    for name, visits in played.items():
        has_kept = name == IPYTHON
        parts += [f"### {name}\n", f"{_TEXTS[name]}\n", f"{_table(visits, has_kept=has_kept)}\n"]
    return "\n".join(parts)


def _table(visits: Sequence[Played], *, has_kept: bool) -> str:
    kept_head = ["heading kept", "right of kept", "as before"] if has_kept else []
    return table(
        ["visit", "template", "pages", "broke", "alarms", "by the API alone", "outcome", "right", *kept_head],
        [
            [
                visit.visit,
                visit.template,
                str(visit.pages),
                ", ".join(f"{name} {share:.0%}" for name, share in visit.broken.items()),
                "; ".join(map(_alarm, visit.alarms)),
                "; ".join(map(_alarm, visit.alone)),
                visit.outcome if visit.confidence is None else f"{visit.outcome}, {visit.confidence:.2f}",
                f"{visit.score.share:.4f}",
                *(
                    [str(visit.kept), f"{visit.kept_score.share:.4f}", f"{visit.same:.4f}"]
                    if has_kept
                    else []
                ),
            ]
            for visit in visits
        ],
    )


def _alarm(alarm: Alarm) -> str:
    return f"{alarm.test}: {', '.join(alarm.attributes)} {alarm.share:.0%}"
