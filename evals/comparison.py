"""Siteloom and what people would use instead, on the same pages; writes its parts of docs/evaluation.md.

What other evaluations measure with the same contestants is taken from them, and measured once.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from evals import (
    clustering,
    css_selectors,
    learning_runs,
    mixes,
    mlscraper_peer,
    mutations,
    scrapling_peer,
    text_words,
    titles,
)
from evals.comparison_page import OWN, Measure, Part, contestants_of, keep, left_out
from evals.learners import ABSOLUTE_PATHS
from evals.learning_scores import total
from evals.mutations_outcome import OURS, PEER_WAYS, mean
from evals.swde import swde_sites

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from evals.comparison_sections import Name
    from evals.learning_runs import Failed
    from evals.learning_scores import Row, Score
    from evals.mixes import Outcome

_SITES = slice(0, None, 2)  # every second site: two of each vertical
_COUNTS = (1, 3, 5)
_SCORES: dict[str, Score] = {"strict": "strict", "first value": "top1"}
_LEARNERS = {
    "united": OWN,
    "autoscraper": "AutoScraper",
    "mlscraper": "mlscraper",
    ABSOLUTE_PATHS: "absolute XPath",
    css_selectors.NAME: "CSS by id and class",
}
_CLUSTERINGS = {
    "vertex": f"{OWN}, `vertex`",
    "paths": f"{OWN}, `paths`",
    "text-max": f"{OWN}, `text-max`",
    "dbscan": "DBSCAN",
    "agglomerative": "agglomerative",
    "rtdm": "RTDM",
}


def figures(data: Path) -> dict[str, float]:
    measured: dict[Name, Callable[[Path], Part]] = {
        "titles": _titles,
        "text": _text,
        "clustering": _clustering,
        "healing": _healing,
        "learning": _learning,
    }
    parts: dict[Name, Part] = {}
    for name, measure in measured.items():
        parts[name] = measure(data)
        print(keep(name, parts[name]))
    return {
        "compared_learning_k1_ahead": _ahead(parts["learning"], "strict, K = 1"),
        "compared_learning_k3_ahead": _ahead(parts["learning"], "strict, K = 3"),
        "compared_learning_k5_ahead": _ahead(parts["learning"], "strict, K = 5"),
        "compared_text_ahead": _ahead(parts["text"], "F1"),
    }


def _ahead(part: Part, what: str) -> float:
    """By how much Siteloom, as it is by default, is better than the best of the others; has a floor."""
    (measure,) = [measure for measure in part.measures if measure.what == what]
    others = [
        value
        for contestant, value in zip(part.contestants, measure.values, strict=True)
        if not contestant.is_ours and value is not None
    ]
    return round((measure.values[0] or 0.0) - max(others), 4)


def _learning(data: Path) -> Part:
    sites = list(swde_sites(data))[_SITES]
    missing = {name: peer.why_missing() for name, peer in learning_runs.PEERS.items()}
    methods = [method for method in _LEARNERS if not missing.get(method)]
    results = list(learning_runs.run(sites, dict.fromkeys(methods, _COUNTS)))
    rows = [row for result in results for row in result.rows]
    failed = [one for result in results for one in result.failed]

    def each(count: int, value: Callable[[Sequence[Row]], float]) -> tuple[float, ...]:
        return tuple(
            value([row for row in rows if (row.method, row.examples) == (method, count)])
            for method in methods
        )

    return Part(
        contestants_of({_LEARNERS[method]: learning_runs.PEERS.get(method) for method in methods}),
        (
            *(
                Measure(f"{name}, K = {count}", each(count, partial(total, score=score)))
                for name, score in _SCORES.items()
                for count in _COUNTS
            ),
            *(Measure(f"nothing found, K = {count}", each(count, _empty), "less", "d") for count in _COUNTS),
        ),
        {
            "sites": str(len(sites)),
            "attributes": str(len({(row.site, row.attribute) for row in rows})),
            "pages": str(learning_runs.PAGES_OF_A_SITE),
            "tests": str(len(rows[0].answers)),
            "seconds": str(mlscraper_peer.LEARNING_SECONDS),
        },
        (*left_out({_LEARNERS[name]: reason for name, reason in missing.items()}), *_failures(failed)),
    )


def _empty(rows: Sequence[Row]) -> int:
    return sum(not any(answer.found for answer in row.answers) for row in rows)


def _failures(failed: Sequence[Failed]) -> list[str]:
    """A note for each peer and number of examples."""
    counted = Counter(failed)
    notes = []
    for method, count in dict.fromkeys((one.method, one.examples) for one in failed):
        reasons = Counter(
            {
                one.reason: times
                for one, times in counted.items()
                if (one.method, one.examples) == (method, count)
            }
        )
        notes.append(
            f"{_LEARNERS[method]}, K = {count}: nothing learned for {reasons.total()} attributes: "
            + ", ".join(f"{reason} ({times})" for reason, times in reasons.most_common())
            + "."
        )
    return notes


def _text(data: Path) -> Part:
    words = text_words.words_kept(data)
    own = {text_words.COMBINED: OWN, text_words.DEFAULT: f"{OWN}, without template"}
    peers = {peer.name: peer for peer in text_words.PEERS}
    methods = [*own, *(method for method in words.by_site if method.partition(",")[0] in peers)]
    scores = [words.total(method) for method in methods]
    return Part(
        contestants_of({own.get(method, method): peers.get(method.partition(",")[0]) for method in methods}),
        (
            Measure("F1", tuple(score.f1 for score in scores)),
            Measure("precision", tuple(score.precision for score in scores)),
            Measure("recall", tuple(score.recall for score in scores)),
            Measure(
                "pages that it failed on", tuple(words.failed.get(name, 0) for name in methods), "less", "d"
            ),
        ),
        {
            "pages": str(text_words.PAGES_OF_A_SITE * len(words.by_site[text_words.DEFAULT])),
            "seen": str(text_words.PAGES_OF_A_SITE),
        },
        left_out(words.missing),
    )


def _clustering(data: Path) -> Part:
    mixed = clustering.mixed(data)
    outcomes = {pages: {outcome.method: outcome for outcome in mix.outcomes} for pages, mix in mixed.items()}
    methods = [name for name in _CLUSTERINGS if any(name in of_mix for of_mix in outcomes.values())]

    def each(pages: int, value: Callable[[Outcome], float]) -> tuple[float | None, ...]:
        return tuple(value(outcomes[pages][name]) if name in outcomes[pages] else None for name in methods)

    measures = [
        measure
        for pages in outcomes
        for measure in (
            Measure(f"clusters, {pages} pages a site", each(pages, lambda one: one.clusters), "neither", "d"),
            Measure(f"precision, {pages} pages a site", each(pages, lambda one: one.precision)),
            Measure(f"recall, {pages} pages a site", each(pages, lambda one: one.recall)),
            Measure(f"coverage, {pages} pages a site", each(pages, lambda one: one.coverage)),
            Measure(
                f"seconds, {pages} pages a site",
                each(pages, lambda one: one.feature_seconds + one.cluster_seconds),
                "less",
                ".2f",
            ),
        )
    ]
    return Part(
        contestants_of(
            {
                _CLUSTERINGS[name]: mixes.PEER if name in ("dbscan", "agglomerative") else None
                for name in methods
            }
        ),
        tuple(measures),
        {
            "sites": str(len(list(swde_sites(data)))),
            "few": str(mixes.FEW_PAGES),
            "many": str(mixes.MANY_PAGES),
        },
        left_out({name: reason for mix in mixed.values() for name, reason in mix.failed.items()}),
    )


def _titles(data: Path) -> Part:
    found = titles.measure(data)
    named = found.by_program
    return Part(
        contestants_of({program: titles.PEERS.get(program) for program in named}),
        (
            Measure("right", tuple(one.right / found.titles for one in named.values())),
            Measure(
                "right, of those written differently",
                tuple(one.right_of_different / found.different for one in named.values()),
            ),
            Measure("right, of those named", tuple(one.right / max(1, one.named) for one in named.values())),
        ),
        {"titles": str(found.titles), "different": str(found.different)},
        left_out(found.failed),
    )


def _healing(data: Path) -> Part:  # noqa: ARG001 - the pages are built in
    outcomes, missing = mutations.mutated_outcomes()
    unrepaired, repaired = OURS
    ways = {repaired: OWN, unrepaired: f"{OWN}, {unrepaired}"}
    if missing is None:
        ways |= {way: way for way in PEER_WAYS}

    def right(kind: str | None) -> tuple[float | None, ...]:
        answers = [
            [
                is_right
                for one in outcomes
                if kind in (None, one.kind)
                for is_right in one.compared.get(way, ())
            ]
            for way in ways
        ]
        return tuple(mean(of_way) if of_way else None for of_way in answers)

    kinds = dict.fromkeys(outcome.kind for outcome in outcomes if outcome.compared[repaired])
    return Part(
        contestants_of(
            {name: scrapling_peer.PEER if way in PEER_WAYS else None for way, name in ways.items()}
        ),
        (Measure("all values", right(None)), *(Measure(kind, right(kind)) for kind in kinds)),
        {
            "changes": str(len(outcomes)),
            "values": str(sum(len(outcome.compared[repaired]) for outcome in outcomes)),
        },
        left_out({"Scrapling": missing}),
    )
