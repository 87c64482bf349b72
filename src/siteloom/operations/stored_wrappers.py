"""The wrappers of a workspace, loaded once, with their pages and last good records."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.core.errors import StoreError, WrapperError
from siteloom.core.model import Record
from siteloom.core.sequences import evenly_spaced
from siteloom.maintenance.watch_file import watch_from_json
from siteloom.maintenance.wrapper_repair import MOST_PAGES
from siteloom.store.queries.clusters import PageAddress
from siteloom.templates.url_patterns import matches
from siteloom.wrappers.matching import Matcher
from siteloom.wrappers.named_wrappers import read_wrapper
from siteloom.wrappers.safe_patterns import tells_pages_apart
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from siteloom.core.model import Page
    from siteloom.store.queries.watches_and_repairs import StoredCheck
    from siteloom.store.queries.wrappers import StoredWrapper
    from siteloom.store.store import Store
    from siteloom.wrappers.matching import NamedWrapper


# Of a large site so many shards of some hundred pages are looked at.
_MOST_SHARDS = 20


def stored_wrappers(store: Store, names: Collection[str] = ()) -> list[StoredWrapper]:
    """The newest versions of wrappers, of all unless some are named."""
    found = store.wrappers()
    if not found:
        raise StoreError("There are no wrappers yet: run siteloom learn first.")
    if unknown := sorted(set(names) - {one.name for one in found}):
        known = ", ".join(one.name for one in found[:5])
        raise StoreError(f"There is no wrapper {unknown[0]}: there are {known}.")
    return [one for one in found if not names or one.name in names]


def loaded(stored: StoredWrapper) -> NamedWrapper:
    """A stored wrapper, ready for use."""
    return read_wrapper(stored.name, stored.version, stored.text, stored.site)


def wrapper_of_cluster(store: Store, cluster: str, urls: Sequence[str]) -> Wrapper | None:
    """The wrapper of a cluster: that of its name, or the one that most of these pages are extracted by."""
    stored = {wrapper.name: wrapper for wrapper in store.wrappers()}
    if cluster not in stored:
        counts = Counter(name for name in store.wrappers_of(urls).values() if name in stored)
        if not counts:
            return None
        cluster = counts.most_common(1)[0][0]
    return Wrapper.from_json(stored[cluster].text)


class PagesByWrapper(NamedTuple):
    """Pages by the wrapper that each is for; of those that none is for, how many have the URL of each."""

    pages: Mapping[str, list[Page]]
    strays: Mapping[str, int]


def pages_by_wrapper(store: Store, site: str) -> PagesByWrapper:
    """Some pages of a site as they are now, by wrapper."""
    matcher = Matcher(loaded(one) for one in store.wrappers() if one.site == site)
    found: dict[str, list[Page]] = defaultdict(list)
    strays: Counter[str] = Counter()
    for shard in evenly_spaced(store.page_shards(site), _MOST_SHARDS):
        for page in shard.read():
            chosen = matcher.match(page).chosen
            for named in chosen:
                found[named.name].append(page)
            if not chosen:
                strays.update(one.name for one in matcher.by_url(page.url) if _is_meant(one, page.url))
    return PagesByWrapper(found, strays)


def _is_meant(named: NamedWrapper, url: str) -> bool:
    """Whether a URL tells that a page was made for a wrapper: a pattern for all of a site's does not."""
    patterns = named.wrapper.footprint.url_patterns
    return any(tells_pages_apart(pattern) and matches(pattern, url) for pattern in patterns)


def newest_pages(store: Store, site: str, urls: Iterable[str]) -> Iterator[Page]:
    """The newest versions of pages, as far as they are stored."""
    return store.pages_at([PageAddress(site, url) for url in urls], skips_missing=True)


def readable(stored: Iterable[StoredWrapper]) -> list[NamedWrapper]:
    """Wrappers ready for use; one of a later version, or one that is damaged, must not be in others' way."""
    found = []
    for one in stored:
        try:
            found.append(loaded(one))
        except WrapperError:
            continue
    return found


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


def wrappers_of_store(store: Store, *, tell: Callable[[str], object] | None = None) -> list[NamedWrapper]:
    """The newest version of each wrapper of a workspace, ready for use; for `tell` see `read_wrapper`."""
    stored = store.wrappers()
    if not stored:
        raise StoreError(
            "The workspace has no wrapper: annotate some pages and learn one first, or give --wrapper FILE."
        )
    return [read_wrapper(row.name, row.version, row.text, row.site, tell=tell) for row in stored]
