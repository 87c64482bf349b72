"""How well wrappers are learned; writes docs/evaluation/wrappers.md and its plot.

While working on the learner, this is faster and shows what goes wrong:

    python -m evals.learning DATA [--k 1,3,5] [--sites NAME,NAME] [--method united] [-v]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from evals import css_selectors, learning_page, learning_runs
from evals.learners import ABSOLUTE_PATHS, METHODS
from evals.learning_scores import CONFIDENT, confident, mean_annotated, total
from evals.swde import swde_sites

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evals.learning_page import Rows
    from evals.learning_scores import Answer

DOCS = Path(__file__).parents[1] / "docs" / "evaluation"

_GOOD_ENOUGH = 0.97
_WRONG_PAGES_SHOWN = 2
_WRONG_PAGES_SHOWN_IF_VERBOSE = 10


def figures(data: Path) -> dict[str, float]:
    from evals.plots import plot_learning  # noqa: PLC0415 - the command below is quicker without it

    plan: learning_runs.Plan = dict.fromkeys((*METHODS, ABSOLUTE_PATHS), learning_page.COUNTS)
    results = list(learning_runs.run(list(swde_sites(data)), plan))
    rows: Rows = {
        method: {
            count: [
                row
                for result in results
                for row in result.rows
                if (row.method, row.examples) == (method, count)
            ]
            for count in counts
        }
        for method, counts in plan.items()
    }

    DOCS.mkdir(parents=True, exist_ok=True)
    plot_learning(
        {
            method: {count: total(learned, "strict") for count, learned in of_count.items()}
            for method, of_count in rows.items()
        },
        DOCS / "learning.svg",
    )
    document = learning_page.document(rows)
    (DOCS / "wrappers.md").write_text(document, encoding="utf-8")
    print(document)
    print(f"One wrong page for each cause, {learning_page.MAIN_COUNT} examples\n")
    print(learning_page.failures(rows[learning_page.OWN][learning_page.MAIN_COUNT]), "\n")
    for note in (note for result in results for note in result.notes):
        print(note)
    return _figures(rows)


def _figures(rows: Rows) -> dict[str, float]:
    """What has floors: Siteloom's own learner."""
    own = rows[learning_page.OWN]
    found = {
        "learning_k1_strict": total(own[1], "strict"),
        "learning_k3_strict": total(own[3], "strict"),
        "learning_k3_top1": total(own[3], "top1"),
        "learning_k5_strict": total(own[5], "strict"),
        "learning_k5_top1": total(own[5], "top1"),
        "learning_k10_strict": total(own[10], "strict"),
        "confident_right": confident(own[learning_page.MAIN_COUNT]).share,
    }
    return {name: round(value, 4) for name, value in found.items()}


def develop(data: Path, counts: Sequence[int], names: Sequence[str], method: str, verbose: bool) -> None:
    """Totals, and what is not good enough with the most examples."""
    began = time.perf_counter()
    sites = [
        site
        for site in swde_sites(data)
        if not names or {site.full_name, site.name, site.vertical} & set(names)
    ]
    if not sites:
        sys.exit(f"There are no such sites at {data}.")
    results = list(learning_runs.run(sites, {method: tuple(counts)}))
    rows = [row for result in results for row in result.rows]
    most = [row for row in rows if row.examples == max(counts)]

    print(f"{method}, {len(sites)} sites, {time.perf_counter() - began:.0f} s\n")
    print(f"{'K':>4} {'annotated':>10} {'strict':>8} {'top-1':>8}")
    for count in counts:
        learned = [row for row in rows if row.examples == count]
        print(
            f"{count:4} {mean_annotated(learned):10.1f} "
            f"{total(learned, 'strict'):8.4f} {total(learned, 'top1'):8.4f}"
        )
    sure = confident(most)
    if sure.values:
        print(f"\nOf {sure.values} values with confidence >= {CONFIDENT:g}, {sure.share:.2%} are right.")
    print(f"\nWrong pages with K = {max(counts)}, by cause:")
    for cause, pages in Counter(answer.cause for row in most for answer in row.wrong).most_common():
        print(f"{pages:6} {cause}")

    strict = {(row.site, row.attribute, row.examples): row.strict for row in rows}
    print(f"\nStrict F1 with K = {', '.join(map(str, counts))}, then top-1 and wrong pages with the last:")
    for row in sorted(most, key=lambda row: row.strict):
        if row.strict >= _GOOD_ENOUGH and not verbose:
            continue
        of_counts = " ".join(f"{strict[row.site, row.attribute, count]:.3f}" for count in counts)
        print(f"{row.site:26} {row.attribute:18} {of_counts}  {row.top1:.3f}  {len(row.wrong)}")
        for answer in row.wrong[: _WRONG_PAGES_SHOWN_IF_VERBOSE if verbose else _WRONG_PAGES_SHOWN]:
            print(_wrong(answer))
    for note in (note for result in results for note in result.notes):
        print(note)


def _wrong(answer: Answer) -> str:
    truth = ", ".join(map(repr, answer.truth)) or "nothing"
    found = ", ".join(map(repr, answer.found)) or "nothing"
    confidence = " ".join(f"{value:.2f}" for value in answer.confidence)
    return (
        f"    {answer.cause}: {answer.url}\n      truth {truth}\n      found {found}  {confidence}".rstrip()
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m evals.learning", description="Learning on real pages, while working on it."
    )
    parser.add_argument("data", type=Path, help="where scripts/unpack-data put the pages")
    parser.add_argument("--k", default="1,3,5", help="numbers of examples, separated by commas")
    parser.add_argument("--sites", default="", help="sites or verticals, separated by commas (all)")
    parser.add_argument(
        "--method",
        default="united",
        choices=[*METHODS, ABSOLUTE_PATHS, css_selectors.NAME, *learning_runs.PEERS],
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="all attributes, more wrong pages")
    arguments = parser.parse_args()
    peer = learning_runs.PEERS.get(arguments.method)
    if peer is not None and (reason := peer.why_missing()):
        parser.exit(1, f"{peer.name} cannot be installed: {reason}\n")
    develop(
        arguments.data,
        sorted({int(count) for count in arguments.k.split(",")}),
        [name for name in arguments.sites.split(",") if name],
        arguments.method,
        arguments.verbose,
    )
