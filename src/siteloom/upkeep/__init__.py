"""Upkeep: the wrappers of a workspace are watched, checked, reused and repaired, and every step is kept."""

from siteloom.upkeep.mending import (
    ACCEPTED_FROM,
    Mended,
    changed_wrappers,
    is_acceptable,
    mend_wrappers,
    roll_back,
    settle_review,
)
from siteloom.upkeep.output import UsualOutput, keep_output_checks, output_before
from siteloom.upkeep.watching import (
    Checked,
    Watched,
    change_row,
    check_watches,
    checkup_row,
    watch_again,
    watch_wrappers,
)

__all__ = [
    "ACCEPTED_FROM",
    "Checked",
    "Mended",
    "UsualOutput",
    "Watched",
    "change_row",
    "changed_wrappers",
    "check_watches",
    "checkup_row",
    "is_acceptable",
    "keep_output_checks",
    "mend_wrappers",
    "output_before",
    "roll_back",
    "settle_review",
    "watch_again",
    "watch_wrappers",
]
