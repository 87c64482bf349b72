"""Pages and values, as what a learner has to find rules for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from siteloom.learning.induction.feature_columns import Table, target_rows
from siteloom.learning.induction.rule_search import CoverProblem, Instance
from siteloom.learning.induction.tree_walk import NONE, TableBuilder
from tests.html.trees import tree


def problem(
    labelled: Sequence[tuple[str, Sequence[str]]],
    unlabelled: Sequence[str] = (),
    *,
    is_multi: bool = False,
    labels: Sequence[str] = (),
) -> CoverProblem:
    """Pages with their values; a value stands wherever a text says it."""
    builder = TableBuilder()
    for html in (*(html for html, _ in labelled), *unlabelled):
        builder.add(tree(html))
    table = Table(builder)
    rows = target_rows(table, "text")
    instances = []
    for unit, (_, values) in enumerate(labelled):
        for value in values:
            shown = np.flatnonzero((rows.unit == unit) & (rows.value == table.words.find(value)))
            instances.append(Instance(unit, tuple(shown.tolist())))
    is_label = np.zeros(len(table.words.texts), np.bool_)
    is_label[[number for text in labels if (number := table.words.find(text)) != NONE]] = True
    return CoverProblem(
        rows,
        instances,
        range(len(labelled)),
        [row for instance in instances for row in instance.rows],
        is_multi=is_multi,
        labels=is_label,
    )
