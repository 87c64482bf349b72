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
from siteloom.relearning import MOST_PAGES, Relearned, relearn, reuse_candidates
from siteloom.relearning.report import relearned_row, rule_diff
from siteloom.spacing import evenly_spaced
from siteloom.store import PageAddress
from siteloom.wrapper.layouts import MOST_EARLIER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from siteloom.extraction import Tally
    from siteloom.matching import NamedWrapper
    from siteloom.model import Change, Cluster, Page
    from siteloom.monitoring import Checkup, Watch
    from siteloom.store import RunRecorder, Store, StoredCheck, StoredRepair, StoredWatch, StoredWrapper

ACCEPTED_FROM = 0.9
"""A repair is put in force by itself if its confidence is at least this: nine values held back, all right."""

# Of a large site so many shards of some hundred pages are looked at to choose bellwethers.
_MOST_SHARDS = 20
# So many checks are looked through for runs in which all was well.
_MOST_CHECKS = 10_000
# Of so many pages all versions are looked at, to see which values change.
_PAGES_WITH_HISTORY = 100
# If fewer bellwethers can be compared, nothing can be said of the site.
_LEAST_COMPARED = 3
# Pages that look different but give what they gave are worth a new version of a wrapper if they are more than
# this share: some pages of a site always do.
_MANY_DRIFTED = 0.1


class Watched(NamedTuple):
    """A wrapper whose bellwethers were chosen, or why there are none."""

    wrapper: str
    version: int
    watch: Watch | None
    reason: str = ""


class Checked(NamedTuple):
    """What the bellwethers of a wrapper have shown.

    If `is_renewed`, they were of another version than the one in force: they are chosen anew, and compared
    from the next time on.
    """

    wrapper: str
    checkup: Checkup
    is_renewed: bool = False

    @property
    def is_telling(self) -> bool:
        """Whether enough pages were compared to say anything."""
        return len(self.checkup.compared) >= min(_LEAST_COMPARED, len(self.checkup.watch.bellwethers))

    @property
    def has_drifted(self) -> bool:
        """Whether so many pages look different that the wrapper should know them."""
        return _have_drifted(len(self.checkup.drifted), len(self.checkup.compared))


class Mended(NamedTuple):
    """What became of a wrapper after a change.

    `state` is `applied` if `version_after` is in force, `review` if a person has to say yes, `annotation` if
    examples are needed, and `unchanged` if nothing was to be done. It is `rejected` if a person has rejected
    the very same, and `outdated` if the wrapper has another version by now: then nothing is kept.
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
    watched = store.watched()
    if unknown := sorted(set(names) - watched.keys()):
        raise StoreError(f"No page of the wrapper {unknown[0]} is watched: run siteloom watch first.")
    if not watched:
        raise StoreError("No pages are watched yet: run siteloom watch first.")
    chosen = [name for name in watched if not names or name in names]
    if fresh is not None:
        wanted = {one.page.url for name in chosen for one in _watch_of(store, name).bellwethers}
        pages = [page for page in fresh if page.url in wanted]
        return [Checked(name, check(_watch_of(store, name), pages, threshold)) for name in chosen]
    checked: list[Checked] = []
    with store.recording("monitor", {"wrappers": chosen}) as run:
        for name in chosen:
            one = _checked(store, run, name, threshold)
            checked.append(one)
            on_wrapper(len(one.checkup.compared))
            run.counts.update(
                wrappers=1,
                changed=bool(one.checkup.changes),
                compared=len(one.checkup.compared),
                gone=len(one.checkup.gone),
            )
    return checked


def _checked(store: Store, run: RunRecorder, name: str, threshold: float) -> Checked:
    again = _watch_again(store, name)
    if again is not None and again.watch is not None:
        return Checked(name, check(again.watch, ()), is_renewed=True)
    stored = _stored_watch(store, name)
    found = watch_from_json(stored.text)
    pages = list(_newest(store, stored.site, [one.page.url for one in found.bellwethers]))
    checkup = check(found, pages, threshold)
    checked = Checked(name, checkup)
    if not checked.is_telling:
        return Checked(name, replace(checkup, changes=()))
    content = {**checkup_row(checkup), "changes": [change_row(one) for one in checkup.changes]}
    store.save_check(run.id, name, stored.version, "bellwethers", not checkup.changes, content)
    if not checkup.changes:
        fuller = _refilled(store, stored.site, checkup)
        store.save_watch(name, stored.site, stored.version, watch_to_json(fuller))
    return checked


def _watch_of(store: Store, name: str) -> Watch:
    return watch_from_json(_stored_watch(store, name).text)


def _stored_watch(store: Store, name: str) -> StoredWatch:
    found = store.watch(name)
    assert found is not None, name
    return found


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
        records = _last_good_records(store, stored)
        if not records and names:
            raise StoreError(f"{_nothing_known(stored)}.")
        fresh = _fresh_pages(store, stored, records)
        found = _relearned(store, stored, records, fresh)
        on_wrapper(len(fresh))
        one = _mended(stored, found, _state(store, stored, found, accept))
        mended.append(one if dry_run else _kept(store, stored, one, accept))
    return mended


def _kept(store: Store, stored: StoredWrapper, one: Mended, accept: float) -> Mended:
    """What is known of a wrapper after it was put in force, or put where a person will see it."""
    found = one.relearned
    is_saved = _is_better(found) and found.confidence >= accept and one.state in ("applied", "annotation")
    if one.state == "rejected" or (not is_saved and _is_waiting(store, one)):
        return one
    with store.recording("relearn", {"wrapper": one.wrapper}) as run:
        if store.wrapper(one.wrapper).version != one.version_before:
            return one._replace(state="outdated", row={**one.row, "state": "outdated"})
        run.counts[found.outcome] += 1
        text = found.wrapper.to_json()
        if is_saved:
            version = store.save_wrapper(one.wrapper, stored.site, text, found.outcome, _note(found))
            one = one._replace(version_after=version)
        if one.state != "unchanged":
            store.save_repair(
                run.id,
                one.wrapper,
                one.version_before,
                one.version_after,
                found.outcome,
                one.state,
                found.confidence,
                None if is_saved else text,
                dict(one.row),
            )
        if one.state == "annotation" and is_saved:
            _go_on_watching(store, one.wrapper)
        else:
            _watch_again(store, one.wrapper)
    return one


def _go_on_watching(store: Store, name: str) -> None:
    """Watch a wrapper that is repaired in part by what was known before: what is missing is not forgotten."""
    kept, stored = store.watch(name), store.wrapper(name)
    if kept is not None:
        watching = replace(watch_from_json(kept.text), wrapper=_named(stored).wrapper)
        store.save_watch(name, stored.site, stored.version, watch_to_json(watching))


def _is_waiting(store: Store, one: Mended) -> bool:
    """Whether the same waits for a person already."""
    for waiting in store.repairs(one.wrapper):
        is_like = (waiting.version_before, waiting.outcome, waiting.state) == (
            one.version_before,
            one.relearned.outcome,
            one.state,
        )
        if is_like and waiting.state == "review":
            return waiting.text == one.relearned.wrapper.to_json()
        if is_like and waiting.state == "annotation":
            return bool(waiting.content["attributes"] == one.row["attributes"])
    return False


def changed_wrappers(store: Store) -> list[StoredWrapper]:
    """The wrappers of which a change was noticed, or many pages that look different but give what they gave.

    Of each wrapper the newest check of its bellwethers and the newest of its output count, if they are of
    the version in force: if either saw a change, the other does not make up for it.
    """
    in_force = {one.name: one for one in _stored_wrappers(store, ())}
    ill = {
        one.wrapper
        for one in store.newest_checks()
        if one.wrapper in in_force
        and one.version == in_force[one.wrapper].version
        and (not one.is_healthy or _shows_drift(one))
    }
    return [one for name, one in in_force.items() if name in ill]


def _shows_drift(one: StoredCheck) -> bool:
    return _have_drifted(len(one.content.get("drifted", ())), one.content.get("compared", 0))


def _have_drifted(drifted: int, compared: int) -> bool:
    return drifted > _MANY_DRIFTED * compared


def _state(store: Store, stored: StoredWrapper, found: Relearned, accept: float) -> str:
    """What is to be done with what came of relearning."""
    text = found.wrapper.to_json()
    if any(
        (one.state, one.version_before, one.text) == ("rejected", stored.version, text)
        for one in store.repairs(stored.name)
    ):
        return "rejected"
    if found.outcome == "needs-annotation":
        return "annotation"
    if text == stored.text:
        return "unchanged"
    if found.confidence < accept or (found.outcome == "repaired" and _was_rolled_back(store, stored, found)):
        return "review"
    return "applied"


def _was_rolled_back(store: Store, stored: StoredWrapper, found: Relearned) -> bool:
    """Whether a person has undone a version with the same rules: then another should be asked first."""
    in_force = _lineage(store, stored.name)
    return any(
        not rule_diff(_named(one).wrapper, found.wrapper)
        for one in store.wrapper_versions(stored.name)
        if one.version not in in_force
    )


def _is_better(found: Relearned) -> bool:
    """Whether there is a better wrapper than before, if only in part."""
    has_repaired = any(one.state == "repaired" for one in found.attributes.values())
    return found.outcome != "needs-annotation" or has_repaired


def _note(found: Relearned) -> str:
    """Why a version was made, in a few words."""
    states: dict[str, list[str]] = defaultdict(list)
    for name, one in found.attributes.items():
        if one.state != "kept":
            states[one.state].append(name)
    told = [f"{state}: {', '.join(names)}" for state, names in states.items()]
    return "; ".join(told) or "pages have another structure, and give the same values"


def _mended(stored: StoredWrapper, found: Relearned, state: str) -> Mended:
    row = {"wrapper": stored.name, "version": stored.version, "state": state}
    row |= relearned_row(_named(stored).wrapper, found)
    return Mended(stored.name, stored.version, None, state, found, row)


def _fresh_pages(store: Store, stored: StoredWrapper, records: Sequence[Record]) -> list[Page]:
    """The pages of records as they are now."""
    urls = evenly_spaced(list(dict.fromkeys(record.url for record in records)), MOST_PAGES)
    return list(_newest(store, stored.site, urls))


def _relearned(
    store: Store, stored: StoredWrapper, records: Sequence[Record], fresh: Sequence[Page]
) -> Relearned:
    """What comes of relearning a wrapper from its last good records."""
    named = _named(stored)
    if not records:
        return Relearned("needs-annotation", named.wrapper, 0.0, {}, reason=_nothing_known(stored))
    found = relearn(named.wrapper, records, fresh)
    clusters = cluster(fresh, method="vertex").clusters
    if found.outcome != "reused":
        others = [_named(one) for one in store.wrappers() if one.site == stored.site and one != stored]
        found = _reused_other(named, others, clusters, records, fresh) or found
    tested = [page for page in fresh if page.url in found.pages]
    footprints = [
        cluster_footprint(one, [tested[member].url for member in one.members])
        for one in cluster(tested, method="vertex").clusters
    ]
    footprint = extended(found.wrapper.footprint, united(footprints))
    return replace(found, wrapper=replace(found.wrapper, footprint=footprint))


def _nothing_known(stored: StoredWrapper) -> str:
    return (
        f"Nothing is known of the pages of {stored.name}: run siteloom extract or siteloom watch "
        "while the wrapper works"
    )


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
    candidates = {other.name: other for found in clusters for other in reuse_candidates(found, able)}
    for other in candidates.values():
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
    """What was known of pages when all was well: the values of the bellwethers, and of others those of a run.

    What versions have found that were rolled back does not count.
    """
    versions = _lineage(store, stored.name)
    kept = store.watch(stored.name)
    if kept is not None and kept.version not in versions:
        kept = None
    before = kept.saved_at if kept is not None else _last_healthy_output(store, stored.name, versions)
    records = [
        Record(one.page.url, values, {}, {})
        for one in (watch_from_json(kept.text).bellwethers if kept is not None else ())
        for values in one.records
    ]
    known = {record.url for record in records}
    lines = store.records_as_of(stored.name, before, versions, MOST_PAGES)
    return records + [found for found in map(_record, map(json.loads, lines)) if found.url not in known]


def _lineage(store: Store, name: str) -> tuple[int, ...]:
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


def _last_healthy_output(store: Store, name: str, versions: Collection[int]) -> datetime:
    for one in store.checks(name):
        if one.kind == "output" and one.is_healthy and one.version in versions:
            return one.at
    return store.clock()


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


def watch_again(store: Store, name: str) -> Watched | None:
    """Choose the bellwethers of a wrapper anew, if those that it has are of another version than it is."""
    if not _is_watch_outdated(store, name):
        return None
    with store.recording("watch", {"wrappers": [name]}):
        return _watch_again(store, name)


def _watch_again(store: Store, name: str) -> Watched | None:
    """The same within a run that is recorded: there are as many as before."""
    if not _is_watch_outdated(store, name):
        return None
    stored = store.wrapper(name)
    pages = _pages_by_wrapper(store, stored.site).get(name, [])
    return _watched(store, stored, pages, len(_watch_of(store, name).bellwethers))


def _is_watch_outdated(store: Store, name: str) -> bool:
    watched = store.watched()
    return name in watched and watched[name] != store.wrapper(name).version


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
    return store.pages_at([PageAddress(site, url) for url in urls], skips_missing=True)
