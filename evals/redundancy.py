"""How well sites are wrapped from known records; writes docs/evaluation/redundancy.md and its plots.

While working on it, this is faster and shows what goes wrong:

    python -m evals.redundancy DATA [--sites NAME,NAME] [--pages 300] [--methods bits]
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

from evals import redundancy_page, redundancy_runs
from evals.redundancy_page import absent, coverage, is_identifying, seeded, swept, totals
from evals.redundancy_runs import METHODS, OWN, STRONG, WEAK
from evals.swde import swde_sites

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evals.redundancy_page import Total
    from evals.redundancy_runs import SiteResult

DOCS = Path(__file__).parents[1] / "docs" / "evaluation"


def figures(data: Path) -> dict[str, float]:
    from evals import plots  # noqa: PLC0415 - the command below is quicker without it

    results = list(redundancy_runs.run(list(swde_sites(data))))
    DOCS.mkdir(parents=True, exist_ok=True)
    plots.plot_precision(
        {
            method: {
                f"{vertical} {attribute}": total.precision if total.extracted else math.nan
                for (vertical, attribute), total in totals(results, method).items()
            }
            for method in METHODS
        },
        DOCS / "redundancy-precision.svg",
    )
    plots.plot_thresholds(swept(results), DOCS / "redundancy-thresholds.svg")
    plots.plot_similarities(
        [point for result in results for point in result.points], DOCS / "redundancy-similarity.svg"
    )
    plots.plot_seeds(seeded(results), DOCS / "redundancy-seeds.svg")
    document = redundancy_page.document(results)
    (DOCS / "redundancy.md").write_text(document, encoding="utf-8")
    print(document)
    for note in (note for result in results for note in result.notes):
        print(note)
    return _figures(results)


def _figures(results: Sequence[SiteResult]) -> dict[str, float]:
    """What has floors: Siteloom's own method, and by how much it is better than the papers'."""
    own = totals(results, OWN)
    found: dict[str, float] = {}
    for (vertical, attribute), total in own.items():
        found[f"redundancy_{vertical}_{attribute}_precision"] = total.precision
        found[f"redundancy_{vertical}_{attribute}_recall"] = total.recall
    for vertical, share in coverage(results, OWN).items():
        found[f"redundancy_{vertical}_coverage"] = share
    invented = [score for score in absent(results, OWN) if score.extracted]
    found["redundancy_not_invented"] = 1 - len(invented) / max(1, len(absent(results, OWN)))
    for method in (STRONG, WEAK):
        others = totals(results, method)
        found[f"redundancy_precision_over_{method}"] = _mean_precision(own) - _mean_precision(others)
        found[f"redundancy_recall_over_{method}"] = _mean_recall(own) - _mean_recall(others)
    return {name: round(value, 4) for name, value in found.items()}


def _mean_precision(of_attributes: dict[tuple[str, str], Total]) -> float:
    """Over attributes of which anything was extracted."""
    extracted = [total.precision for total in of_attributes.values() if total.extracted]
    return sum(extracted) / max(1, len(extracted))


def _mean_recall(of_attributes: dict[tuple[str, str], Total]) -> float:
    return sum(total.recall for total in of_attributes.values()) / max(1, len(of_attributes))


def develop(data: Path, names: Sequence[str], pages: int | None, methods: Sequence[str]) -> None:
    """Precision and recall of some sites, without the other figures."""
    began = time.perf_counter()
    results = list(redundancy_runs.run(list(swde_sites(data)), names, pages, is_swept=False, methods=methods))
    for method in methods:
        print(f"\n{method}, {time.perf_counter() - began:.0f} s\n")
        for (vertical, attribute), total in totals(results, method).items():
            mark = "*" if is_identifying(vertical, attribute) else " "
            print(f"{vertical:12} {attribute:18}{mark} {total.precision:.3f} {total.recall:.3f}")
        for vertical, share in coverage(results, method).items():
            print(f"{vertical:12} core coverage       {share:.3f}")
        for result in results:
            for score in result.scores:
                if score.method == method:
                    print(
                        f"    {score.site:26} {score.attribute:18} {score.true_pages:5} true "
                        f"{score.extracted:5} extracted {score.right:5} right"
                    )
    for result in results:
        print(result.site, {stage: round(seconds, 1) for stage, seconds in result.seconds.items()})
        print(*result.notes, sep="\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m evals.redundancy", description="Wrapping from known records, while working on it."
    )
    parser.add_argument("data", type=Path, help="where scripts/unpack-data put the pages")
    parser.add_argument("--sites", default="", help="sites or verticals, separated by commas (all)")
    parser.add_argument("--pages", type=int, help="so many pages of each site, evenly spaced (all)")
    parser.add_argument("--methods", default=",".join(METHODS), help="separated by commas (all)")
    arguments = parser.parse_args()
    develop(
        arguments.data,
        [name for name in arguments.sites.split(",") if name],
        arguments.pages,
        [name for name in arguments.methods.split(",") if name in METHODS],
    )
