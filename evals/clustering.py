"""How well pages are clustered; writes docs/evaluation/clustering.md and its plots."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evals import by_site, false_alarms, mixes
from evals.plots import plot_methods, plot_times
from evals.swde import swde_sites
from evals.tables import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evals.by_site import BySite
    from evals.false_alarms import FalseAlarms
    from evals.mixes import Mixed, Outcome, TextTimes

DOCS = Path(__file__).parents[1] / "docs" / "evaluation"

_PAGES_FOR_TIMES = (mixes.FEW_PAGES, 30, mixes.MANY_PAGES)


_DOCUMENT = """\
# How well pages are clustered

Made, with its plots, by

    make eval    # or: python -m evals DATA

The pages are those of {sites} sites of the SWDE data set (Hao et al., SIGIR 2011), each site taken as one
template, and of four sites that were fetched again and again. Pages of a site are evenly spaced. Seconds
are CPU seconds and differ from run to run; everything else is the same in every run.

## Goals

{goals}

## Mixes of all sites

Each found cluster is compared with the site that it shares most pages with. Precision is the share of its
pages that are of this site, recall the share of the site's pages that it has; both are means over clusters,
so a fragment counts as much as a whole site. Template precision and recall are the same for the paths of
templates: the cluster's against those of all pages of the site in the mix. Coverage is the share of
pages that are in a cluster.

`vertex` and `paths` are told the site of each page; the others are not. `agglomerative` (average linkage,
distance .6) and `dbscan` (distance .5) are scikit-learn's, on Jaccard distances of path sets. `rtdm`
ran on {few_pages} pages a site only.{failed}

![Precision, recall and number of clusters of each method](methods.svg)

### {few_pages} pages a site

{few}

### {many_pages} pages a site

{many}

### Time of TEXT

CPU seconds of clustering, path sets given. Pages with the same essential paths are clustered once;
different pages are those that remain. How time grows with them is measured on generated documents in
[benchmarks/results.md](../../benchmarks/results.md).

![CPU seconds over the number of pages](times.svg)

{times}

## Each site by itself

Plain coverage is that of the three passes, coverage that after leftovers have joined. Clusters of different
sites should have nothing in common: shared signatures are accepted by clusters of two sites, and a page is
taken by others if `assign` would give it to another site's cluster.

{by_site}

## False alarms

Pages of one site over days or versions in which its template did not change. Those of the first are
clustered; a later fetch of a page that was in a cluster then, and that `assign` now gives to none, is a false
alarm. The last columns count all pages of the first day that were fetched again, also those that were in
no cluster then: a method that clusters fewer pages has fewer to raise an alarm about.

{alarms}
"""


class _Goal(NamedTuple):
    what: str
    value: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def row(self) -> tuple[str, str, str, str]:
        if self.at_least is not None:
            goal, is_reached = f"at least {self.at_least:g}", self.value >= self.at_least
        else:
            assert self.at_most is not None
            goal, is_reached = f"at most {self.at_most:g}", self.value <= self.at_most
        return self.what, f"{self.value:.4f}", goal, "yes" if is_reached else "**no**"


@cache
def mixed(data: Path) -> dict[int, Mixed]:
    """All methods on mixes of few and of many pages a site; made once in a process."""
    sites = list(swde_sites(data))
    return {pages: mixes.measure(sites, pages) for pages in (mixes.FEW_PAGES, mixes.MANY_PAGES)}


def figures(data: Path) -> dict[str, float]:
    sites = list(swde_sites(data))
    outcomes = {pages: mix.outcomes for pages, mix in mixed(data).items()}
    failed = {name: reason for mix in mixed(data).values() for name, reason in mix.failed.items()}
    times = [mixes.text_times(sites, pages) for pages in _PAGES_FOR_TIMES]
    of_sites = list(by_site.measure(sites))
    alarms = list(false_alarms.measure(data))

    DOCS.mkdir(parents=True, exist_ok=True)
    plot_methods(outcomes, len(sites), DOCS / "methods.svg")
    plot_times(times, DOCS / "times.svg")
    document = _document(len(sites), outcomes, failed, times, of_sites, alarms)
    (DOCS / "clustering.md").write_text(document, encoding="utf-8")
    print(document)
    return _figures(outcomes, of_sites, alarms)


def _figures(
    outcomes: Mapping[int, Sequence[Outcome]], of_sites: Sequence[BySite], alarms: Sequence[FalseAlarms]
) -> dict[str, float]:
    """What has floors: Siteloom's own methods, turned so that more is better."""
    found: dict[str, float] = {}
    for pages, mix in outcomes.items():
        for outcome in mix:
            if outcome.method in mixes.TEXT_METHODS:
                name = f"{outcome.method.replace('-', '_')}_{pages}"
                found[f"{name}_precision"] = outcome.precision
                found[f"{name}_recall"] = outcome.recall
                found[f"{name}_template_precision"] = outcome.template_precision
                found[f"{name}_template_recall"] = outcome.template_recall
    for row in of_sites:
        name = f"{row.method}_{row.pages_of_a_site}"
        found[f"{name}_plain_coverage"] = row.plain_coverage
        found[f"{name}_coverage"] = row.coverage
        found[f"{name}_sites_per_cluster"] = 1 / row.clusters_of_a_site
        found[f"{name}_not_taken_by_others"] = 1 - row.taken_by_others
    for method in ("vertex", "paths"):
        found[f"{method}_no_false_alarm"] = 1 - _all_alarms(alarms, method)
        found[f"{method}_not_refused"] = 1 - _all_refused(alarms, method)
    return {name: round(value, 4) for name, value in found.items()}


def _all_alarms(alarms: Sequence[FalseAlarms], method: str) -> float:
    rows = [row for row in alarms if row.method == method]
    return sum(row.alarms for row in rows) / sum(row.checked for row in rows)


def _all_refused(alarms: Sequence[FalseAlarms], method: str) -> float:
    rows = [row for row in alarms if row.method == method]
    return sum(row.refused for row in rows) / sum(row.fetched_again for row in rows)


def _goals(outcomes: Mapping[int, Sequence[Outcome]], of_sites: Sequence[BySite]) -> list[_Goal]:
    vertex = {row.pages_of_a_site: row for row in of_sites if row.method == "vertex"}
    text_max = {
        pages: outcome for pages, mix in outcomes.items() for outcome in mix if outcome.method == "text-max"
    }
    return [
        _Goal("`vertex`, 400 pages a site, coverage", vertex[400].coverage, at_least=0.99),
        _Goal("`vertex`, 400 pages a site, clusters a site", vertex[400].clusters_of_a_site, at_most=3),
        _Goal("`vertex`, 50 pages a site, coverage", vertex[50].coverage, at_least=0.97),
        *(
            goal
            for pages, outcome in text_max.items()
            for goal in (
                _Goal(f"`text-max`, {pages} pages a site, precision", outcome.precision, at_least=0.99),
                _Goal(f"`text-max`, {pages} pages a site, recall", outcome.recall, at_least=0.95),
            )
        ),
    ]


def _document(
    site_count: int,
    outcomes: Mapping[int, Sequence[Outcome]],
    failed: Mapping[str, str],
    times: Sequence[TextTimes],
    of_sites: Sequence[BySite],
    alarms: Sequence[FalseAlarms],
) -> str:
    seconds = [
        (
            f"{mix.pages:,}",
            str(mix.different),
            *(f"{mix.seconds[method]:.3f}" for method in mixes.TEXT_METHODS),
        )
        for mix in times
    ]
    return _DOCUMENT.format(
        sites=site_count,
        few_pages=mixes.FEW_PAGES,
        many_pages=mixes.MANY_PAGES,
        failed="".join(f" `{name}` is left out: {reason}." for name, reason in failed.items()),
        goals=table(
            ("what", "measured", "goal", "reached"), [goal.row for goal in _goals(outcomes, of_sites)]
        ),
        few=_mix_table(outcomes[mixes.FEW_PAGES]),
        many=_mix_table(outcomes[mixes.MANY_PAGES]),
        times=table(("pages", "different pages", *(f"`{method}`" for method in mixes.TEXT_METHODS)), seconds),
        by_site=_by_site_table(of_sites),
        alarms=_alarm_table(alarms),
    )


def _mix_table(mix: Sequence[Outcome]) -> str:
    head = (
        "method",
        "clusters",
        "precision",
        "recall",
        "coverage",
        "template precision",
        "template recall",
        "features, s",
        "clustering, s",
    )
    return table(
        head,
        [
            (
                f"`{row.method}`",
                str(row.clusters),
                f"{row.precision:.4f}",
                f"{row.recall:.4f}",
                f"{row.coverage:.4f}",
                f"{row.template_precision:.4f}",
                f"{row.template_recall:.4f}",
                f"{row.feature_seconds:.2f}",
                f"{row.cluster_seconds:.3f}",
            )
            for row in mix
        ],
    )


def _by_site_table(rows: Sequence[BySite]) -> str:
    head = (
        "method",
        "pages a site",
        "plain coverage",
        "coverage",
        "clusters a site",
        "most",
        "shared signatures",
        "taken by others",
    )
    return table(
        head,
        [
            (
                f"`{row.method}`",
                str(row.pages_of_a_site),
                f"{row.plain_coverage:.4f}",
                f"{row.coverage:.4f}",
                f"{row.clusters_of_a_site:.2f}",
                "{} ({})".format(*row.most_clusters),
                str(row.shared_signatures),
                f"{row.taken_by_others:.4f}",
            )
            for row in rows
        ],
    )


def _alarm_table(rows: Sequence[FalseAlarms]) -> str:
    """Both methods side by side."""
    of_method = {method: [row for row in rows if row.method == method] for method in ("vertex", "paths")}
    lines = []
    for vertex, paths in zip(of_method["vertex"], of_method["paths"], strict=True):
        lines.append(
            (
                vertex.pages,
                str(vertex.first_pages),
                *(f"{row.clusters} ({row.coverage:.3f})" for row in (vertex, paths)),
                *(f"{row.alarms} of {row.checked:,} ({row.share:.4f})" for row in (vertex, paths)),
                *(f"{row.refused} of {row.fetched_again:,}" for row in (vertex, paths)),
            )
        )
    lines.append(
        (
            "all",
            "",
            "",
            "",
            *(f"{_all_alarms(rows, method):.4f}" for method in ("vertex", "paths")),
            *(f"{_all_refused(rows, method):.4f}" for method in ("vertex", "paths")),
        )
    )
    return table(
        (
            "pages",
            "pages at first",
            "`vertex`: clusters (coverage)",
            "`paths`: clusters (coverage)",
            "`vertex`: false alarms",
            "`paths`: false alarms",
            "`vertex`: in no cluster",
            "`paths`: in no cluster",
        ),
        lines,
    )
