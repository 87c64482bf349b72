"""Upkeep: the wrappers of a workspace are watched, checked, reused and repaired, and every step is kept."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.clustering import cluster, cluster_footprint, extended, united
from siteloom.errors import StoreError, UsageError
from siteloom.extraction import WrapperText, add_tally, tally_from
from siteloom.matching import Matcher
from siteloom.model import Record
from siteloom.monitoring import MOST_BELLWETHERS, THRESHOLD, check, refilled, watch
from siteloom.monitoring.watch_format import watch_from_json, watch_to_json
from siteloom.relearning import MOST_PAGES, relearn, reuse_candidates
from siteloom.relearning.report import relearned_row
from siteloom.spacing import evenly_spaced
from siteloom.wrapper.layouts import MOST_EARLIER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from siteloom.extraction import Tally
    from siteloom.matching import NamedWrapper
    from siteloom.model import Change, Cluster, Page
    from siteloom.monitoring import Checkup, Watch
    from siteloom.relearning import Relearned
    from siteloom.store import Store, StoredCheck, StoredRepair, StoredWrapper

ACCEPTED_FROM = 0.9
"""A repair is put in force by itself if its confidence is at least this: nine values held back, all right."""

# Of a large site so many shards of some hundred pages are looked at to choose bellwethers.
_MOST_SHARDS = 20
# So many checks are looked through for runs in which all was well.
_MOST_CHECKS = 10_000
# Of so many pages all versions are looked at, to see which values change.
_PAGES_WITH_HISTORY = 100


class Watched(NamedTuple):
    """A wrapper whose bellwethers were chosen, or why there are none."""

    wrapper: str
    version: int
    watch: Watch | None
    reason: str = ""


class Checked(NamedTuple):
    """What the bellwethers of a wrapper have shown."""

    wrapper: str
    checkup: Checkup


class Mended(NamedTuple):
    """What became of a wrapper after a change.

    `state` is `applied` if `version_after` is in force, `review` if a person has to say yes, `annotation` if
    examples are needed, and `unchanged` if nothing was to be done.
    """

    wrapper: str
    version_before: int
    version_after: int | None
    state: str
    relearned: Relearned
    row: Mapping[str, Any]


def watch_wrappers(
    store: Store,
    names: Collection[str] = (),
    k: int = MOST_BELLWETHERS,
    on_wrapper: Callable[[int], object] = lambda _: None,
) -> list[Watched]:
    """Choose and keep the bellwethers of wrappers, of all unless some are named.

    `on_wrapper` is called when one is done, with the number of pages that were looked at.
    """
    chosen = _stored_wrappers(store, names)
    watched: list[Watched] = []
    with store.recording("watch", {"wrappers": [one.name for one in chosen], "k": k}) as run:
        for site in dict.fromkeys(one.site for one in chosen):
            pages = _pages_by_wrapper(store, site)
            for stored in (one for one in chosen if one.site == site):
                found = _watched(store, stored, pages.get(stored.name, []), k)
                watched.append(found)
                on_wrapper(len(pages.get(stored.name, [])))
                run.counts["bellwethers"] += len(found.watch.bellwethers) if found.watch else 0
        run.counts["wrappers"] += len(chosen)
    return watched


def _watched(store: Store, stored: StoredWrapper, pages: Sequence[Page], k: int) -> Watched:
    with_history = {page.url for page in evenly_spaced(pages, _PAGES_WITH_HISTORY)}
    versions = [
        version
        for page in pages
        for version in (store.versions(page.url, stored.site) if page.url in with_history else (page,))
    ]
    try:
        found = watch(_named(stored).wrapper, versions, k, name=stored.name)
    except UsageError as error:
        return Watched(stored.name, stored.version, None, str(error))
    store.save_watch(stored.name, stored.site, stored.version, watch_to_json(found))
    return Watched(stored.name, stored.version, found)


def check_watches(
    store: Store,
    names: Collection[str] = (),
    fresh: Iterable[Page] | None = None,
    threshold: float = THRESHOLD,
    on_wrapper: Callable[[int], object] = lambda _: None,
) -> list[Checked]:
    """Hold the bellwethers of wrappers against their pages as they are now, and keep what came of it.

    With `fresh` pages given they are compared instead of the stored ones, and nothing is kept. `on_wrapper`
    is called when a wrapper is done, with the number of pages that were compared.
    """
    watches = [one for one in store.watches() if not names or one.wrapper in names]
    if unknown := sorted(set(names) - {one.wrapper for one in watches}):
        raise StoreError(f"No page of the wrapper {unknown[0]} is watched: run siteloom watch first.")
    if not watches:
        raise StoreError("No pages are watched yet: run siteloom watch first.")
    loaded = {one.wrapper: watch_from_json(one.text) for one in watches}
    if fresh is not None:
        wanted = {one.page.url for found in loaded.values() for one in found.bellwethers}
        pages = [page for page in fresh if page.url in wanted]
        return [Checked(name, check(found, pages, threshold)) for name, found in loaded.items()]
    checked: list[Checked] = []
    with store.recording("monitor", {"wrappers": list(loaded)}) as run:
        for stored in watches:
            found = loaded[stored.wrapper]
            pages = list(_newest(store, stored.site, (one.page.url for one in found.bellwethers)))
            checkup = check(found, pages, threshold)
            checked.append(Checked(stored.wrapper, checkup))
            on_wrapper(len(checkup.compared))
            content = {**checkup_row(checkup), "changes": [change_row(one) for one in checkup.changes]}
            store.save_check(
                run.id, stored.wrapper, stored.version, "bellwethers", not checkup.changes, content
            )
            if not checkup.changes:
                fuller = _refilled(store, stored.site, checkup)
                store.save_watch(stored.wrapper, stored.site, stored.version, watch_to_json(fuller))
            run.counts.update(
                wrappers=1,
                changed=bool(checkup.changes),
                compared=len(checkup.compared),
                gone=len(checkup.gone),
            )
    return checked


def _refilled(store: Store, site: str, checkup: Checkup) -> Watch:
    """What to compare with the next time, others in the place of pages that are gone."""
    if not checkup.gone:
        return checkup.watch
    others = _pages_by_wrapper(store, site).get(checkup.watch.name, [])
    return refilled(checkup.watch, checkup.gone, others)


def change_row(change: Change) -> dict[str, Any]:
    """A change as a line of output."""
    return asdict(change)


def checkup_row(checkup: Checkup) -> dict[str, Any]:
    """How many pages were compared, and what became of the others."""
    return {
        "compared": len(checkup.compared),
        "gone": list(checkup.gone),
        "unread": list(checkup.unread),
        "missing": list(checkup.missing),
        "drifted": list(checkup.drifted),
    }


def mend_wrappers(
    store: Store,
    names: Collection[str] = (),
    *,
    accept: float = ACCEPTED_FROM,
    dry_run: bool = False,
    on_wrapper: Callable[[int], object] = lambda _: None,
) -> list[Mended]:
    """Reuse or repair wrappers after a change: those named, or all that a change was noticed of.

    A dry run keeps nothing. `on_wrapper` is called when one is relearned, with the number of its pages.
    """
    chosen = _stored_wrappers(store, names) if names else changed_wrappers(store)
    mended: list[Mended] = []
    for stored in chosen:
        found, fresh = _relearned(store, stored)
        on_wrapper(len(fresh))
        state = _state(stored, found, accept)
        if dry_run or state == "unchanged":
            mended.append(_mended(stored, found, None, state))
            continue
        with store.recording("relearn", {"wrapper": stored.name}) as run:
            run.counts[found.outcome] += 1
            version = _saved_version(store, stored, found, accept)
            one = _mended(stored, found, version, state)
            store.save_repair(
                run.id,
                stored.name,
                stored.version,
                version,
                found.outcome,
                state,
                found.confidence,
                None if version is not None else found.wrapper.to_json(),
                dict(one.row),
            )
        if version is not None:
            _watched(store, store.wrapper(stored.name), fresh, MOST_BELLWETHERS)
        mended.append(one)
    return mended


def changed_wrappers(store: Store) -> list[StoredWrapper]:
    """The wrappers of which a change was noticed, or pages that look different but give what they gave.

    Of each wrapper the newest check of its bellwethers and the newest of its output count, if they were
    made since its newest version is in force: if either saw a change, the other does not make up for it.
    """
    since = {one.name: one for one in _stored_wrappers(store, ())}
    ill = {
        one.wrapper
        for one in store.newest_checks()
        if one.wrapper in since
        and one.at >= since[one.wrapper].created_at
        and (not one.is_healthy or one.content.get("drifted"))
    }
    return [one for name, one in since.items() if name in ill]


def _state(stored: StoredWrapper, found: Relearned, accept: float) -> str:
    """What is to be done with what came of relearning."""
    if found.outcome == "needs-annotation":
        return "annotation"
    if found.wrapper.to_json() == stored.text:
        return "unchanged"
    return "applied" if found.confidence >= accept else "review"


def _saved_version(store: Store, stored: StoredWrapper, found: Relearned, accept: float) -> int | None:
    """The number of the new version, if there is one now: also of one that is repaired in part."""
    has_repaired = any(one.state == "repaired" for one in found.attributes.values())
    is_better = found.outcome != "needs-annotation" or has_repaired
    if not is_better or found.confidence < accept:
        return None
    return store.save_wrapper(stored.name, stored.site, found.wrapper.to_json(), found.outcome, _note(found))


def _note(found: Relearned) -> str:
    """Why a version was made, in a few words."""
    states: dict[str, list[str]] = defaultdict(list)
    for name, one in found.attributes.items():
        if one.state != "kept":
            states[one.state].append(name)
    told = [f"{state}: {', '.join(names)}" for state, names in states.items()]
    return "; ".join(told) or "pages have another structure, and give the same values"


def _mended(stored: StoredWrapper, found: Relearned, version: int | None, state: str) -> Mended:
    row = {"wrapper": stored.name, "version": stored.version, "state": state}
    row |= relearned_row(_named(stored).wrapper, found)
    return Mended(stored.name, stored.version, version, state, found, row)


def _relearned(store: Store, stored: StoredWrapper) -> tuple[Relearned, list[Page]]:
    """What comes of relearning a wrapper, and the pages that it is for as they are now."""
    named = _named(stored)
    records = _last_good_records(store, stored)
    urls = evenly_spaced(list(dict.fromkeys(record.url for record in records)), MOST_PAGES)
    fresh = list(_newest(store, stored.site, urls))
    found = relearn(named.wrapper, records, fresh)
    clusters = cluster(fresh, method="vertex").clusters
    if found.outcome != "reused":
        others = [_named(one) for one in store.wrappers() if one.site == stored.site and one != stored]
        found = _reused_other(named, others, clusters, records, fresh) or found
    footprints = [cluster_footprint(one, [fresh[member].url for member in one.members]) for one in clusters]
    footprint = extended(found.wrapper.footprint, united(footprints))
    return replace(found, wrapper=replace(found.wrapper, footprint=footprint)), fresh


def _reused_other(
    named: NamedWrapper,
    others: Sequence[NamedWrapper],
    clusters: Sequence[Cluster],
    records: Sequence[Record],
    fresh: Sequence[Page],
) -> Relearned | None:
    """What comes of another wrapper of the site for the pages of one, if it passes all tests."""
    wanted = named.wrapper.attributes.keys()
    able = [other for other in others if other.wrapper.attributes.keys() >= wanted]
    for other in (one for found in clusters for one in reuse_candidates(found, able)):
        rules = {name: other.wrapper.attributes[name] for name in wanted}
        standing_in = replace(
            other.wrapper,
            attributes=rules,
            footprint=named.wrapper.footprint,
            earlier=named.wrapper.layouts[:MOST_EARLIER],
        )
        found = relearn(standing_in, records, fresh)
        if found.outcome == "reused":
            return found
    return None


def _last_good_records(store: Store, stored: StoredWrapper) -> list[Record]:
    """What was known of pages when all was well: the records of a run, and those of the bellwethers."""
    kept = store.watch(stored.name)
    before = kept.saved_at if kept is not None else _last_healthy_output(store, stored.name)
    records = [_record(json.loads(line)) for line in store.records_as_of(stored.name, before)]
    if kept is not None:
        known = {record.url for record in records}
        for one in watch_from_json(kept.text).bellwethers:
            if one.page.url not in known:
                records += [Record(one.page.url, values, {}, {}) for values in one.records]
    if not records:
        raise StoreError(
            f"Nothing is known of the pages of {stored.name}: run siteloom extract or siteloom watch "
            "while the wrapper works."
        )
    return records


def _last_healthy_output(store: Store, name: str) -> datetime:
    healthy = next((one for one in store.checks(name) if one.kind == "output" and one.is_healthy), None)
    return store.clock() if healthy is None else healthy.at


def _record(row: Mapping[str, Any]) -> Record:
    return Record(row["url"], {name: tuple(texts) for name, texts in row["values"].items()}, {}, {})


def settle_review(store: Store, name: str, *, accept: bool) -> int | None:
    """Put the repair of a wrapper that waits for review in force, or reject it; returns the new version.

    Of one that needs examples, what could be repaired may be put in force so.
    """
    waiting = next((one for one in store.repairs(name) if is_acceptable(one)), None)
    if waiting is None:
        raise StoreError(
            f"No repair of the wrapper {name} waits for review: siteloom history tells what is there."
        )
    version = None
    with store.recording("relearn", {"wrapper": name, "accept": accept}):
        if accept:
            stored = store.wrapper(name)
            if stored.version != waiting.version_before:
                raise StoreError(
                    f"The wrapper {name} has version {stored.version} by now, and the repair is of version "
                    f"{waiting.version_before}: run siteloom relearn again."
                )
            assert waiting.text is not None
            version = store.save_wrapper(
                name, stored.site, waiting.text, waiting.outcome, "accepted by review"
            )
        store.settle_repair(waiting.id, "applied" if accept else "rejected", version)
    if version is not None:
        _watch_again(store, name)
    return version


def is_acceptable(repair: StoredRepair) -> bool:
    """Whether a repair waits for a person to say yes: as a whole, or to what could be repaired in part."""
    if repair.state == "annotation" and repair.version_after is None:
        return any(one["state"] == "repaired" for one in repair.content["attributes"].values())
    return repair.state == "review"


def roll_back(store: Store, name: str, version: int | None = None) -> tuple[int, int]:
    """Put an earlier version of a wrapper in force again, the one before the newest unless one is named.

    It becomes the newest version, and nothing is lost; returns the number that it had and the one it has.
    """
    versions = store.wrapper_versions(name)
    if version is None:
        if len(versions) < 2:
            raise StoreError(f"The wrapper {name} has only one version: there is nothing to go back to.")
        version = versions[-2].version
    old = store.wrapper(name, version)
    if old.version == versions[-1].version:
        raise StoreError(f"Version {version} of the wrapper {name} is in force already.")
    with store.recording("rollback", {"wrapper": name, "version": version}):
        new = store.save_wrapper(name, old.site, old.text, "rollback", f"as version {version}")
    _watch_again(store, name)
    return version, new


def _watch_again(store: Store, name: str) -> None:
    """Choose the bellwethers of a wrapper anew, if it was watched."""
    if store.watch(name) is not None:
        watch_wrappers(store, [name])


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


def _stored_wrappers(store: Store, names: Collection[str]) -> list[StoredWrapper]:
    found = store.wrappers()
    if not found:
        raise StoreError("There are no wrappers yet: run siteloom learn first.")
    if unknown := sorted(set(names) - {one.name for one in found}):
        known = ", ".join(one.name for one in found[:5])
        raise StoreError(f"There is no wrapper {unknown[0]}: there are {known}.")
    return [one for one in found if not names or one.name in names]


def _named(stored: StoredWrapper) -> NamedWrapper:
    return WrapperText(stored.name, stored.version, stored.text).loaded()


def _pages_by_wrapper(store: Store, site: str) -> dict[str, list[Page]]:
    """Some pages of a site as they are now, by the wrapper that each is for."""
    matcher = Matcher(_named(one) for one in store.wrappers() if one.site == site)
    found: dict[str, list[Page]] = defaultdict(list)
    for shard in evenly_spaced(store.page_shards(site), _MOST_SHARDS):
        for page in shard.read():
            for named in matcher.match(page).chosen:
                found[named.name].append(page)
    return found


def _newest(store: Store, site: str, urls: Iterable[str]) -> Iterator[Page]:
    """The newest versions of pages, as far as they are stored."""
    for url in urls:
        if versions := store.versions(url, site):
            yield versions[-1]
