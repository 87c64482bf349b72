"""Floors: what was reached once must not be lost. A figure is better the higher it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FLOORS = Path(__file__).with_name("floors.json")


class FloorError(Exception):
    """Figures that do not hold up to the floors, or floors that do not belong to them."""


def check(corpus: str, figures: Mapping[str, float], *, is_part: bool = False) -> None:
    """Compare figures with the floors that were measured on the same corpus.

    `is_part`: not all evaluations were run, so floors without a figure are left alone.
    """
    pinned = json.loads(FLOORS.read_text(encoding="utf-8"))
    if pinned["corpus"] != corpus:
        raise FloorError(
            f"The floors belong to another corpus ({pinned['corpus']}, this is {corpus}): run with --update."
        )
    if low := _below(_compared(pinned["floors"], figures, is_part), figures):
        raise FloorError(f"Below the floor: {low}")


def update(
    corpus: str, figures: Mapping[str, float], allow_regression: bool, *, is_part: bool = False
) -> None:
    """Make figures the floors; a floor is lowered or left out only if that is allowed.

    `is_part`: not all evaluations were run, so floors without a figure stay as they are.
    """
    pinned = json.loads(FLOORS.read_text(encoding="utf-8"))
    if is_part and pinned["corpus"] != corpus:
        raise FloorError(
            f"The other floors belong to another corpus ({pinned['corpus']}, this is {corpus}): "
            "run all evaluations."
        )
    low = _below(_compared(pinned["floors"], figures, is_part), figures)
    if low and not allow_regression:
        raise FloorError(f"These floors would be lowered: {low}. If they should be, add --allow-regression.")
    floors = {**pinned["floors"], **figures} if is_part else dict(figures)
    FLOORS.write_text(json.dumps({"corpus": corpus, "floors": floors}, indent=2) + "\n", encoding="utf-8")


def _compared(floors: Mapping[str, float], figures: Mapping[str, float], is_part: bool) -> dict[str, float]:
    return {name: floor for name, floor in floors.items() if not is_part or name in figures}


def _below(floors: Mapping[str, float], figures: Mapping[str, float]) -> dict[str, str]:
    return {
        name: f"{figures.get(name, 'not measured')} < {floor}"
        for name, floor in floors.items()
        if name not in figures or figures[name] < floor
    }
