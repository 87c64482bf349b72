"""What is known of the pages of a wrapper: its last good records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from siteloom.model import Record
from siteloom.monitoring.watch_format import watch_from_json
from siteloom.relearning import MOST_PAGES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from siteloom.store import Store, StoredCheck, StoredWrapper


def last_good_records(store: Store, stored: StoredWrapper) -> list[Record]:
    """What was known of pages when all was well: the values of the bellwethers, and of others those of a run.

    What versions have found that were rolled back does not count, nor what a version has found since it was
    last seen to be well: between a change and its repair, runs go on.
    """
    versions = lineage(store, stored.name)
    kept = store.watch(stored.name)
    if kept is not None and kept.version not in versions:
        kept = None
    records = [
        Record(one.page.url, values, {}, {})
        for one in (watch_from_json(kept.text).bellwethers if kept is not None else ())
        for values in one.records
    ]
    known = {record.url for record in records}
    checks = store.checks(stored.name)
    for version in reversed(versions):
        until = _well_until([one for one in checks if one.version == version], store.clock())
        if kept is not None and kept.version == version:
            until = kept.saved_at
        lines = () if until is None else store.records_as_of(stored.name, until, [version], MOST_PAGES)
        if found := [_record(json.loads(line)) for line in lines]:
            return records + [record for record in found if record.url not in known]
    return records


def _well_until(checks: Sequence[StoredCheck], now: datetime) -> datetime | None:
    """Up to when all checks of a version were healthy: now if there are none, None if none was."""
    if not checks:
        return now
    ill = [one.at for one in checks if not one.is_healthy]
    return max((one.at for one in checks if not ill or one.at < min(ill)), default=None)


def lineage(store: Store, name: str) -> tuple[int, ...]:
    """The versions that led to the one in force: without those that were rolled back."""
    lineages: dict[int, tuple[int, ...]] = {}
    by_text: dict[str, int] = {}
    newest: tuple[int, ...] = ()
    for one in store.wrapper_versions(name):
        if one.origin == "rollback" and one.text in by_text:
            newest = lineages[by_text[one.text]]
        newest = lineages[one.version] = (*newest, one.version)
        by_text[one.text] = one.version
    return newest


def _record(row: Mapping[str, Any]) -> Record:
    return Record(row["url"], {name: tuple(texts) for name, texts in row["values"].items()}, {}, {})
