"""The health of what extract gives: held against the run before, kept, told, and alarmed about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.cli.change_words import raise_alarm, say_wrapped, show_changes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from siteloom.cli.shell import Shell
    from siteloom.extraction import Tally
    from siteloom.extraction_runs import Journal
    from siteloom.matching import NamedWrapper
    from siteloom.model import Change
    from siteloom.store import Store


class OutputHealth:
    """Made before a run, for it remembers what the one before has given.

    A run of one site is asked about the wrappers of this site only.
    """

    def __init__(
        self, shell: Shell, store: Store | None, wrappers: Sequence[NamedWrapper], site: str | None = None
    ) -> None:
        from siteloom.upkeep import output_before

        self._shell = shell
        self._store = store
        self._wrappers = wrappers
        if store is not None and site is not None:
            stored = {one.name: one.site for one in store.wrappers()}
            self._wrappers = [named for named in wrappers if _is_of(site, named, stored)]
        self._before = output_before(store) if store is not None else None
        self._changes: list[Change] = []

    def check(self, tally: Tally, journal: Journal | None) -> None:
        """Look at what a run has counted; a workspace keeps what is seen, before the run ends."""
        from siteloom.extraction_runs import StoreJournal
        from siteloom.monitoring.output import output_changes
        from siteloom.upkeep import keep_output_checks

        threshold = self._shell.settings.change.threshold / 100
        wrappers = {named.name: named.wrapper for named in self._wrappers}
        self._changes = output_changes(tally, wrappers, self._before, threshold)
        if self._store is not None and isinstance(journal, StoreJournal):
            # Of a wrapper none of whose pages were there, a run has shown nothing.
            seen = [
                named
                for named in self._wrappers
                if any(tally["pages of", site] for site in named.wrapper.footprint.sites)
            ]
            keep_output_checks(self._store, journal.run_id, seen, self._changes)

    def tell(self) -> None:
        """Say what changed, and raise the alarm."""
        if not self._changes:
            return
        show_changes(self._shell, self._changes)
        if self._store is not None:
            say_wrapped(self._shell, "siteloom relearn repairs what it can from earlier records.", hanging=0)
        raise_alarm(self._shell, self._changes)


def _is_of(site: str, named: NamedWrapper, stored: Mapping[str, str]) -> bool:
    """Whether a wrapper is for pages of a site alone; one in the workspace has its site there."""
    kept_for = stored.get(named.name) if named.version is not None else None
    return {site}.issuperset([kept_for] if kept_for else named.wrapper.footprint.sites)
