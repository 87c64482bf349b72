"""Plots of the evaluation, as SVG that is the same whenever the figures are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evals.comparison_page import Part
    from evals.mixes import Outcome, TextTimes
    from evals.redundancy_runs import Point

# Colours that people with any kind of colour vision tell apart (Okabe and Ito).
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
_MARKERS = ("o", "s", "^", "D")

_STYLE: dict[Any, Any] = {
    "font.size": 10,
    "svg.fonttype": "path",
    "svg.hashsalt": "siteloom",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.axisbelow": True,
}


def plot_methods(outcomes: Mapping[int, Sequence[Outcome]], true_clusters: int, file: Path) -> None:
    """Precision, recall and number of clusters of each method, a marker for each mix."""
    methods = list(dict.fromkeys(outcome.method for mix in outcomes.values() for outcome in mix))
    panels: dict[str, Callable[[Outcome], float]] = {
        "precision": lambda outcome: outcome.precision,
        "recall": lambda outcome: outcome.recall,
        "number of clusters": lambda outcome: outcome.clusters,
    }
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.6), sharey=True, layout="constrained")
        for axis, (label, value) in zip(axes, panels.items(), strict=True):
            for place, (pages, mix) in enumerate(outcomes.items()):
                rows = [methods.index(outcome.method) + 0.3 * (place - 0.5) for outcome in mix]
                axis.plot(
                    [value(outcome) for outcome in mix],
                    rows,
                    _MARKERS[place],
                    color=_COLOURS[place],
                    markersize=7,
                    clip_on=False,
                    label=f"{pages} pages a site",
                )
            axis.set_xlabel(label)
        axes[0].set_yticks(range(len(methods)), methods)
        axes[0].set_ylim(len(methods) - 0.5, -0.5)
        for axis in axes[:2]:
            axis.set_xlim(0, 1)
            axis.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
        axes[2].set_xlim(left=0)
        axes[2].axvline(true_clusters, color="#555555", linestyle="--", linewidth=1)
        axes[2].set_title(f"dashed: the {true_clusters} sites", fontsize=9, color="#555555")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=2, frameon=False)
        _save(figure, file)


def plot_times(times: Sequence[TextTimes], file: Path) -> None:
    """CPU seconds over the number of pages, a line for each method."""
    sizes = [mix.pages for mix in times]
    with plt.rc_context(_STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
        for place, method in enumerate(times[0].seconds):
            axis.plot(
                sizes,
                [mix.seconds[method] for mix in times],
                marker=_MARKERS[place],
                color=_COLOURS[place],
                label=method,
            )
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axis.xaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_locator(NullLocator())
        axis.set_xlabel("pages")
        axis.set_ylabel("CPU seconds of clustering")
        axis.legend(frameon=False)
        _save(figure, file)


def plot_learning(scores: Mapping[str, Mapping[int, float]], file: Path) -> None:
    """Strict F1 over the number of examples, a line for each method."""
    counts = sorted({count for of_method in scores.values() for count in of_method})
    with plt.rc_context(_STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
        for place, (method, of_method) in enumerate(scores.items()):
            axis.plot(
                list(of_method),
                list(of_method.values()),
                marker=_MARKERS[place],
                color=_COLOURS[place],
                clip_on=False,
                label=method,
            )
        axis.set_xscale("log")
        axis.set_xticks(counts, [str(count) for count in counts])
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_ylim(top=1)
        axis.set_xlabel("K, the pages to annotate")
        axis.set_ylabel("strict F1")
        figure.legend(loc="outside upper left", ncols=len(scores), frameon=False)
        _save(figure, file)


def plot_lifetime(alive: Mapping[str, Sequence[float]], file: Path) -> None:
    """The share of attributes whose rules are alive over later visits, a line for each learner."""
    with plt.rc_context(_STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
        for place, (learner, shares) in enumerate(alive.items()):
            axis.step(
                range(len(shares)),
                shares,
                where="post",
                marker=_MARKERS[place],
                markersize=4,
                color=_COLOURS[place],
                clip_on=False,
                label=learner,
            )
        _save_shares(figure, axis, "later visits", "share of attributes alive", file)


def plot_precision(precision: Mapping[str, Mapping[str, float]], file: Path) -> None:
    """The precision of each attribute, a marker for each method."""
    attributes = list(next(iter(precision.values())))
    with plt.rc_context(_STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 0.5 + 0.3 * len(attributes)), layout="constrained")
        for place, (method, of_method) in enumerate(precision.items()):
            axis.plot(
                [of_method[attribute] for attribute in attributes],
                [row + 0.22 * (place - 1) for row in range(len(attributes))],
                _MARKERS[place],
                color=_COLOURS[place],
                clip_on=False,
                label=method,
            )
        axis.set_yticks(range(len(attributes)), attributes)
        axis.set_ylim(len(attributes) - 0.5, -0.5)
        axis.set_xlim(0, 1)
        axis.set_xlabel("precision")
        figure.legend(loc="outside upper left", ncols=len(precision), frameon=False)
        _save(figure, file)


def plot_thresholds(swept: Mapping[str, Mapping[float, tuple[float, float]]], file: Path) -> None:
    """Precision and coverage over thresholds, a line for each variant."""
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
        for panel, (axis, label) in enumerate(zip(axes, ("precision", "coverage"), strict=True)):
            for place, (variant, of_variant) in enumerate(swept.items()):
                axis.plot(
                    list(of_variant),
                    [both[panel] for both in of_variant.values()],
                    marker=_MARKERS[place],
                    color=_COLOURS[place],
                    clip_on=False,
                    label=variant,
                )
            axis.set_ylim(0, 1)
            axis.set_xlabel("threshold")
            axis.set_ylabel(label)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=len(swept), frameon=False)
        _save(figure, file)


def plot_similarities(points: Sequence[Point], file: Path) -> None:
    """Strong over weak similarity, a panel for each attribute."""
    attributes = sorted({point.attribute for point in points})
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(
            1, len(attributes), figsize=(8, 3.8), sharey=True, squeeze=False, layout="constrained"
        )
        for axis, attribute in zip(axes[0], attributes, strict=True):
            for place, (is_true, label) in enumerate(((True, "true value"), (False, "another text"))):
                shown = [
                    point for point in points if (point.attribute, point.is_true) == (attribute, is_true)
                ]
                axis.plot(
                    [point.weak for point in shown],
                    [point.strong for point in shown],
                    _MARKERS[place],
                    color=_COLOURS[place],
                    markersize=3,
                    alpha=0.5,
                    label=label,
                )
            axis.set_title(attribute)
            axis.set_xlabel("weak similarity")
        axes[0][0].set_ylabel("strong similarity")
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=2, frameon=False)
        _save(figure, file)


def plot_seeds(coverage: Mapping[str, Mapping[int, float]], file: Path) -> None:
    """Core coverage over the number of known records, a line for each method."""
    with plt.rc_context(_STYLE):
        figure, axis = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
        for place, (method, of_method) in enumerate(coverage.items()):
            axis.plot(
                list(of_method),
                list(of_method.values()),
                marker=_MARKERS[place],
                color=_COLOURS[place],
                clip_on=False,
                label=method,
            )
        _save_shares(figure, axis, "known records", "core coverage", file)


def plot_compared(part: Part, charted: Sequence[str], file: Path) -> None:
    """Bars of some measures, a panel for each and a bar for each contestant; Siteloom's are of one colour."""
    names = [contestant.name.replace("`", "") for contestant in part.contestants]
    colours = [_COLOURS[0] if contestant.is_ours else "#999999" for contestant in part.contestants]
    measures = {measure.what: measure for measure in part.measures}
    with plt.rc_context({**_STYLE, "axes.grid": False}):
        figure, axes = plt.subplots(
            1,
            len(charted),
            figsize=(max(6.0, 3.2 * len(charted)), 0.6 + 0.34 * len(names)),
            sharey=True,
            squeeze=False,
            layout="constrained",
        )
        for axis, what in zip(axes[0], charted, strict=True):
            measure = measures[what]
            known = [0.0 if value is None else value for value in measure.values]
            bars = axis.barh(range(len(names)), known, color=colours, height=0.7)
            texts = ["" if value is None else format(value, measure.form) for value in measure.values]
            axis.bar_label(bars, texts, padding=3, fontsize=9)
            axis.set_title(what, fontsize=10)
            axis.set_xlim(0, 1.25 * max(known, default=1.0) or 1.0)
            axis.set_xticks([])
            axis.spines["bottom"].set_visible(False)
        axes[0][0].set_yticks(range(len(names)), names)
        axes[0][0].set_ylim(len(names) - 0.4, -0.6)
        _save(figure, file)


def _save_shares(figure: Figure, axis: Axes, over: str, share: str, file: Path) -> None:
    """Save lines of shares over a number, with one legend."""
    axis.set_ylim(0, 1)
    axis.set_xlim(left=0)
    axis.set_xlabel(over)
    axis.set_ylabel(share)
    figure.legend(loc="outside upper left", ncols=len(axis.lines), frameon=False)
    _save(figure, file)


def _save(figure: Figure, file: Path) -> None:
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    # matplotlib leaves blanks at the ends of lines
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")
