"""The tables of a store, for all that reads and writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from sqlalchemy import Engine


@dataclass(frozen=True, slots=True)
class Tables:
    """Where the tables are, and the clock by which what is written there is dated.

    Each module that knows what some of the tables hold has a class of what can be asked of them and written
    to them; a store can do what all of these can.
    """

    engine: Engine
    clock: Callable[[], datetime]
