"""After a change: the old wrapper if it still works, else one repaired by the records that are known."""

from siteloom.relearning.outcome import AttributeOutcome, Outcome, Relearned, ValueDiff
from siteloom.relearning.repairing import MOST_PAGES, relearn
from siteloom.relearning.reuse import reuse_candidates

__all__ = [
    "MOST_PAGES",
    "AttributeOutcome",
    "Outcome",
    "Relearned",
    "ValueDiff",
    "relearn",
    "reuse_candidates",
]
