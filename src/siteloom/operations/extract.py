"""The health of what was extracted, run after run."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from siteloom.extraction.extractor import add_tally, tally_from
from siteloom.extraction.output_health import output_changes
from siteloom.maintenance.alarms import change_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.core.model import Change
    from siteloom.extraction.extractor import Tally
    from siteloom.store.queries.watches_and_repairs import StoredCheck
    from siteloom.store.store import Store
    from siteloom.wrappers.matching import NamedWrapper

# So many checks are looked through for runs in which all was well.
_MOST_CHECKS = 10_000


def output_before(store: Store) -> Tally | None:
    """What runs of extract counted while all was well, to hold the next one against.

    Of each wrapper and of each site the last run counts in whose output nothing was wrong with it: else
    what was lost once would not be missed the next time.
    """
    checks: dict[int, list[StoredCheck]] = defaultdict(list)  # the newest run first
    for one in store.checks(limit=_MOST_CHECKS):
        if one.kind == "output":
            checks[one.run_id].append(one)
    if not checks:
        last = store.last_extract_run()
        return None if last is None else _tally_of_run(store, last)
    total: Tally = Counter()
    left = {one.wrapper for found in checks.values() for one in found}
    for run_id, found in checks.items():
        if not left:
            break
        known = {key[1] for key in total}
        healthy = {one.wrapper for one in found if one.is_healthy} & left
        ill = {change["wrapper"] for one in found for change in one.content["changes"]}
        for key, count in _tally_of_run(store, run_id).items():
            is_of_wrapper = key[0] in ("records of", "filled") and key[1] in healthy
            is_of_site = key[0] in ("pages of", "fruitless") and key[1] not in ill | known
            if is_of_wrapper or is_of_site:
                total[key] = count
        left -= healthy
    return total


def _tally_of_run(store: Store, run_id: int) -> Tally:
    total: Tally = Counter()
    for summary in store.shard_summaries(run_id):
        add_tally(total, tally_from(summary["tally"]))
    return total


def keep_output_checks(
    store: Store, run_id: int, wrappers: Iterable[NamedWrapper], changes: Sequence[Change]
) -> None:
    """Keep what the output of a run has shown of each wrapper; what is seen of a site is of all of them."""
    for name, version, wrapper in wrappers:
        found = [change_row(one) for one in changes if one.wrapper in (name, *wrapper.footprint.sites)]
        store.save_check(run_id, name, version, "output", not found, {"changes": found})


class UsualOutput:
    """What runs of extract gave while all was well; made before a run that is to be held against it.

    A run of one site is asked about the wrappers of this site only. Without a store nothing is known of
    runs before.
    """

    def __init__(
        self, store: Store | None, wrappers: Sequence[NamedWrapper], site: str | None = None
    ) -> None:
        self._store = store
        self._wrappers = wrappers
        if store is not None and site is not None:
            stored = {one.name: one.site for one in store.wrappers()}
            self._wrappers = [named for named in wrappers if _is_of(site, named, stored)]
        self._before = output_before(store) if store is not None else None

    def changes(self, tally: Tally, threshold: float, run_id: int | None = None) -> list[Change]:
        """What is unusual about what a run has counted; kept if the run is one in the store."""
        wrappers = {named.name: named.wrapper for named in self._wrappers}
        found = output_changes(tally, wrappers, self._before, threshold)
        if self._store is not None and run_id is not None:
            # Of a wrapper none of whose pages were there, a run has shown nothing.
            seen = [
                named
                for named in self._wrappers
                if any(tally["pages of", site] for site in named.wrapper.footprint.sites)
            ]
            keep_output_checks(self._store, run_id, seen, found)
        return found


def _is_of(site: str, named: NamedWrapper, stored: Mapping[str, str]) -> bool:
    """Whether a wrapper is for pages of a site alone; one in the workspace has its site there."""
    kept_for = stored.get(named.name) if named.version is not None else None
    return {site}.issuperset([kept_for] if kept_for else named.wrapper.footprint.sites)
