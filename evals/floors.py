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


def check(corpus: str, figures: Mapping[str, float]) -> None:
    """Compare figures with the floors that were measured on the same corpus."""
    pinned = json.loads(FLOORS.read_text(encoding="utf-8"))
    if pinned["corpus"] != corpus:
        raise FloorError(
            f"The floors belong to another corpus ({pinned['corpus']}, this is {corpus}): run with --update."
        )
    if low := _below(pinned["floors"], figures):
        raise FloorError(f"Below the floor: {low}")


def update(corpus: str, figures: Mapping[str, float], allow_regression: bool) -> None:
    """Make figures the floors; a floor is lowered or left out only if that is allowed."""
    pinned = json.loads(FLOORS.read_text(encoding="utf-8"))
    low = _below(pinned["floors"], figures)
    if low and not allow_regression:
        raise FloorError(f"These floors would be lowered: {low}. If they should be, add --allow-regression.")
    FLOORS.write_text(
        json.dumps({"corpus": corpus, "floors": dict(figures)}, indent=2) + "\n", encoding="utf-8"
    )


def _below(floors: Mapping[str, float], figures: Mapping[str, float]) -> dict[str, str]:
    return {
        name: f"{figures.get(name, 'not measured')} < {floor}"
        for name, floor in floors.items()
        if name not in figures or figures[name] < floor
    }
