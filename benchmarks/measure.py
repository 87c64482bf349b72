"""How things are measured: CPU seconds, alternating contestants, the median of several rounds."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROUNDS = 3  # machines are shared, so contestants take turns and the median round counts


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure, and what it should reach."""

    what: str
    value: str
    goal: str = ""


def cpu_seconds(contestants: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The CPU seconds that each contestant takes, threads included."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, run in contestants.items():
            times[name].append(cpu_time(run))
    return {name: statistics.median(values) for name, values in times.items()}


def cpu_time(run: Callable[[], object]) -> float:
    """The CPU seconds that something takes, threads included."""
    start = time.process_time()
    run()
    return time.process_time() - start


def as_table(title: str, figures: Sequence[Figure]) -> str:
    """Figures as a Markdown table."""
    lines = [f"## {title}", "", "| what | measured | goal |", "|---|---|---|"]
    lines += [f"| {figure.what} | {figure.value} | {figure.goal} |" for figure in figures]
    return "\n".join(lines) + "\n"
