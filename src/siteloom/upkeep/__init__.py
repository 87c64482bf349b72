"""Upkeep: the wrappers of a workspace are watched, checked, reused and repaired, and every step is kept."""

from siteloom.upkeep.fetching import Fetched, fetch_pages, fetch_watched
from siteloom.upkeep.mending import (
    ACCEPTED_FROM,
    Mended,
    changed_wrappers,
    is_acceptable,
    leave_out,
    lost_attributes,
    mend_wrappers,
    reopen_review,
    roll_back,
    settle_review,
)
from siteloom.upkeep.output import UsualOutput, keep_output_checks, output_before
from siteloom.upkeep.watching import (
    Checked,
    Verdict,
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
    "Fetched",
    "Mended",
    "UsualOutput",
    "Verdict",
    "Watched",
    "change_row",
    "changed_wrappers",
    "check_watches",
    "checkup_row",
    "fetch_pages",
    "fetch_watched",
    "is_acceptable",
    "keep_output_checks",
    "leave_out",
    "lost_attributes",
    "mend_wrappers",
    "output_before",
    "reopen_review",
    "roll_back",
    "settle_review",
    "watch_again",
    "watch_wrappers",
]
