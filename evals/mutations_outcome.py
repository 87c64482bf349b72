"""What came of a seeded change of the built-in guide."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evals.change_scores import BADLY_BROKEN, BROKEN
from siteloom.apps.demo.sites import CHANGING_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evals.change_play import Alarm

OURS = ("without repair", "repaired")
PEER_WAYS = ("Scrapling, as documented", "Scrapling, at its best")
PEER_PAGES = 12


class Outcome(NamedTuple):
    """One mutation.

    `broken` has the share of each attribute that is wrong now though it was right, `dropped` by how much
    the share of pages with a value has fallen. `right`, `repaired` and `unseen` are shares of right values
    over all attributes, with the old wrapper, with the new one, and with the new one on pages that were not
    used; `again` and `again_unseen` over the attributes that broke. `worse` are attributes that the
    new wrapper gets wrong on clearly more pages than the old one. `compared` says for each way to get the
    values that broke whether each value of some pages is right.
    """

    mutation: str
    kind: str
    broken: Mapping[str, float]
    dropped: Mapping[str, float]
    alarms: tuple[Alarm, ...]
    outcome: str
    confidence: float | None
    right: float
    repaired: float
    unseen: float
    again: float | None
    again_unseen: float | None
    worse: tuple[str, ...]
    compared: Mapping[str, Sequence[bool]]

    @property
    def must_be_found(self) -> bool:
        """Whether a constant attribute or a contract is broken."""
        return bool(self.dropped) or any(
            share > (BADLY_BROKEN if attribute in CHANGING_ATTRIBUTES else BROKEN)
            for attribute, share in self.broken.items()
        )

    @property
    def named(self) -> list[bool]:
        """Whether each attribute that broke is named in an alarm."""
        names = {name for alarm in self.alarms for name in alarm.attributes}
        return [name in names for name in {**self.broken, **self.dropped}]

    @property
    def is_harmless(self) -> bool:
        """Whether nothing breaks at all."""
        return not self.broken and not self.dropped

    @property
    def is_mended(self) -> bool:
        """Whether the new wrapper gets all right that the old one got right before the change."""
        return self.outcome in ("reused", "repaired") and self.again is not None and self.again > 1 - BROKEN


def mean(values: Sequence[float]) -> float:
    """The mean, 0 of none."""
    return sum(values) / max(1, len(values))
