"""The health of what extract gives: held against the run before, kept, told, and alarmed about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.cli.change_words import raise_alarm, say_wrapped, show_changes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.cli.shell import Shell
    from siteloom.extraction import Tally
    from siteloom.extraction_runs import Journal
    from siteloom.matching import NamedWrapper
    from siteloom.model import Change
    from siteloom.store import Store


class OutputHealth:
    """Made before a run, for it remembers what the one before has given."""

    def __init__(
        self, shell: Shell, store: Store | None, wrappers: Sequence[NamedWrapper], site: str | None = None
    ) -> None:
        from siteloom.upkeep import UsualOutput

        self._shell = shell
        self._is_of_workspace = store is not None
        self._usual = UsualOutput(store, wrappers, site)
        self._changes: list[Change] = []

    def check(self, tally: Tally, journal: Journal | None) -> None:
        """Look at what a run has counted; a workspace keeps what is seen, before the run ends."""
        from siteloom.extraction_runs import StoreJournal

        threshold = self._shell.settings.change.threshold / 100
        run_id = journal.run_id if isinstance(journal, StoreJournal) else None
        self._changes = self._usual.changes(tally, threshold, run_id)

    def tell(self) -> None:
        """Say what changed, and raise the alarm."""
        if not self._changes:
            return
        show_changes(self._shell, self._changes)
        if self._is_of_workspace:
            say_wrapped(self._shell, "siteloom relearn repairs what it can from earlier records.", hanging=0)
        raise_alarm(self._shell, self._changes)
