"""The health of what was extracted, run after run."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from siteloom.extraction import add_tally, tally_from
from siteloom.upkeep.watching import change_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.extraction import Tally
    from siteloom.matching import NamedWrapper
    from siteloom.model import Change
    from siteloom.store import Store, StoredCheck

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
