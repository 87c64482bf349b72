"""What docs/evaluation/wrappers.md says, from the rows of all methods."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evals.learners import ABSOLUTE_PATHS
from evals.learning_runs import PAGES_OF_A_SITE
from evals.learning_scores import (
    CONFIDENT,
    Cause,
    by_vertical,
    confident,
    mean_annotated,
    reliability,
    total,
)
from evals.tables import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evals.learning_scores import Row

    # By method, then by number of examples.
    Rows = Mapping[str, Mapping[int, Sequence[Row]]]

OWN = "united"
COUNTS = (1, 3, 5, 10)
MAIN_COUNT = 5

_WHAT = {
    OWN: "Siteloom, by default",
    "vertex": 'Siteloom, `method="vertex"`: one XPath for each attribute (Gulhane et al., ICDE 2011)',
    ABSOLUTE_PATHS: "absolute paths that at least half of the examples with a value agree on",
}

_DOCUMENT = """\
# How well wrappers are learned

Made, with its plot, by

    make eval    # or: python -m evals DATA --only learning

The pages are {pages} evenly spaced ones of each of {sites} sites of the SWDE data set (Hao et al., SIGIR
2011). Every second page is for the learner: the first K that `siteloom.sample` names are annotated with all
true values, the others are unlabelled. The wrapper is tested on the pages between them. An attribute that has
no true value on a whole site is left out; a true value that does not stand on its page is left out of the
example.

*Strict*: a page is right if exactly the true values were extracted. *Top-1*: it is right if the first
extracted value is a true one. Precision is the share of right pages among those with output, recall that
among those with a true value. F1 is taken for each attribute of each site; an attribute's is the mean over
the sites of its vertical, a vertical's the mean over its attributes, the total the mean over verticals.

## Few examples

All K pages are annotated by their true values.

{totals}

## Against other methods

All are given the same pages. How other programs do is in [the comparison](../evaluation.md).

![Strict F1 of each method over the number of pages to annotate](learning.svg)

{compared}

{what}

## Verticals, {main} examples

{verticals}

## What goes wrong, {main} examples

Attributes of test pages that are not right, {wrong} of {answers}.

{causes}

## Confidence, {main} examples

Of values with confidence >= {confident:g}, **{confident_share:.2f} %** are right: {confident_right:,} of
{confident_values:,}. A value is right if it is among the true ones of its page.

{reliability}

## Every site and attribute, {main} examples

{by_site}
"""


def document(rows: Rows) -> str:
    """The page."""
    own = rows[OWN][MAIN_COUNT]
    sure = confident(own)
    return _DOCUMENT.format(
        pages=PAGES_OF_A_SITE,
        sites=len({row.site for row in own}),
        main=MAIN_COUNT,
        totals=_totals(rows[OWN]),
        compared=_compared(rows),
        what="\n".join(f"- `{method}`: {_WHAT[method]}" for method in rows),
        verticals=_verticals(own),
        wrong=f"{sum(len(row.wrong) for row in own):,}",
        answers=f"{sum(len(row.answers) for row in own):,}",
        causes=_causes(own),
        confident=CONFIDENT,
        confident_share=100 * sure.share,
        confident_right=sure.right,
        confident_values=sure.values,
        reliability=_reliability(own),
        by_site=_by_site(own),
    )


def failures(rows: Sequence[Row]) -> str:
    """One wrong page for each cause. To be printed only: pages of the data set are no part of the project."""
    lines = []
    for cause in Cause:
        wrong = [(row, answer) for row in rows for answer in row.wrong if answer.cause is cause]
        lines.append(f"{cause}: {len(wrong)}")
        for row, answer in wrong[:1]:
            lines.append(f"    {row.site} {row.attribute} {answer.url}")
            lines.append(f"    truth {list(answer.truth)}, found {list(answer.found)}")
    return "\n".join(lines)


def _totals(of_count: Mapping[int, Sequence[Row]]) -> str:
    return table(
        ("K", "annotated pages, mean", "strict", "top-1"),
        [
            (
                str(count),
                f"{mean_annotated(rows):.1f}",
                f"{total(rows, 'strict'):.4f}",
                f"{total(rows, 'top1'):.4f}",
            )
            for count, rows in of_count.items()
        ],
    )


def _compared(rows: Rows) -> str:
    return table(
        ("method", *(f"K = {count}, {score}" for count in COUNTS for score in ("strict", "top-1"))),
        [
            (
                f"`{method}`",
                *(
                    f"{value:.4f}"
                    for count in COUNTS
                    for value in (total(of_count[count], "strict"), total(of_count[count], "top1"))
                ),
            )
            for method, of_count in rows.items()
        ],
    )


def _verticals(rows: Sequence[Row]) -> str:
    top1 = by_vertical(rows, "top1")
    return table(
        ("vertical", "strict", "top-1"),
        [
            (vertical, f"{strict:.4f}", f"{top1[vertical]:.4f}")
            for vertical, strict in by_vertical(rows, "strict").items()
        ],
    )


def _causes(rows: Sequence[Row]) -> str:
    pages: Counter[Cause | None] = Counter()
    attributes: Counter[Cause | None] = Counter()
    for row in rows:
        causes = [answer.cause for answer in row.wrong]
        pages.update(causes)
        attributes.update(set(causes))
    return table(
        ("cause", "pages", "in attributes of sites"),
        [(str(cause), f"{pages[cause]:,}", str(attributes[cause])) for cause in Cause],
    )


def _reliability(rows: Sequence[Row]) -> str:
    return table(
        ("confidence", "values", "right"),
        [
            (f"{part.low:g} to {part.high:g}", f"{part.values:,}", f"{part.share:.4f}" if part.values else "")
            for part in reliability(rows)
        ],
    )


def _by_site(rows: Sequence[Row]) -> str:
    return table(
        ("site", "attribute", "annotated", "strict", "top-1", "pages wrong"),
        [
            (
                row.site,
                row.attribute,
                str(row.annotated),
                f"{row.strict:.4f}",
                f"{row.top1:.4f}",
                f"{len(row.wrong)} of {len(row.answers)}",
            )
            for row in rows
        ],
    )
