"""After a change: the old wrapper if it still works, else one repaired by the records that are known."""

from siteloom.relearning.outcome import AttributeOutcome, Outcome, Relearned, ValueDiff
from siteloom.relearning.repairing import relearn

__all__ = ["AttributeOutcome", "Outcome", "Relearned", "ValueDiff", "relearn"]
