"""The plot of clean text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib import pyplot as plt

from evals.plots import _COLOURS, _MARKERS, _STYLE, _save

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def plot_words(by_pages: Mapping[str, Sequence[float]], flat: Mapping[str, float], file: Path) -> None:
    """F1 over the number of pages seen, a line for each method; those that see one page are dashed."""
    with plt.rc_context(_STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
        for place, (method, scores) in enumerate(by_pages.items()):
            axis.plot(
                range(1, len(scores) + 1),
                scores,
                marker=_MARKERS[place],
                color=_COLOURS[place],
                clip_on=False,
                label=method.replace("`", ""),
            )
        for method, score in flat.items():
            axis.axhline(score, color="#555555", linestyle="--", linewidth=1, label=method)
        axis.set_xlim(left=0)
        axis.set_ylim(top=1)
        axis.set_xlabel("pages of the site that the table has seen")
        axis.set_ylabel("F1 of the kept words")
        figure.legend(loc="outside upper left", ncols=2, frameon=False)
        _save(figure, file)
