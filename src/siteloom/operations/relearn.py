"""Wrappers of a workspace after a change: reused, repaired, put before a person, or put back."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.core.errors import Overtaken, StoreError
from siteloom.core.sequences import evenly_spaced
from siteloom.maintenance.old_wrapper_fit import reuse_candidates
from siteloom.maintenance.repair_result import Relearned, relearned_row, rule_diff
from siteloom.maintenance.wrapper_repair import MOST_PAGES, relearn
from siteloom.operations.stored_wrappers import (
    last_good_records,
    lineage,
    loaded,
    newest_pages,
    stored_wrappers,
)
from siteloom.operations.watch import finish_watching, go_on_watching, have_drifted, renew_watch
from siteloom.store.queries.watches_and_repairs import NewVersion
from siteloom.store.queries.wrappers import WITHDRAWN
from siteloom.templates.clustering.methods import cluster, cluster_footprints
from siteloom.templates.footprint import extend_footprint, merge_footprints
from siteloom.wrappers.page_layouts import MOST_EARLIER
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from siteloom.core.model import Cluster, Page, Record
    from siteloom.store.queries.watches_and_repairs import StoredCheck, StoredRepair
    from siteloom.store.queries.wrappers import StoredWrapper
    from siteloom.store.store import Store
    from siteloom.wrappers.matching import NamedWrapper

ACCEPTED_FROM = 0.9
"""A repair is put in force by itself if its confidence is at least this: nine values held back, all right."""


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
    if not dry_run:
        finish_watching(store)
    chosen = stored_wrappers(store, names) if names else changed_wrappers(store)
    mended: list[Mended] = []
    for stored in chosen:
        records = last_good_records(store, stored)
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
    if one.state == "rejected" or (not is_saved and _waits_already(store, one)):
        return one
    with store.recording("relearn", {"wrapper": one.wrapper}) as run:
        if store.wrapper(one.wrapper).version != one.version_before:
            return one._replace(state="outdated", row={**one.row, "state": "outdated"})
        run.counts[found.outcome] += 1
        text = found.wrapper.to_json()
        if one.state != "unchanged":
            store.save_repair(
                run.id,
                one.wrapper,
                one.version_before,
                None,
                found.outcome,
                one.state,
                found.confidence,
                None if is_saved else text,
                dict(one.row),
                NewVersion(stored.site, text, found.outcome, _note(found)) if is_saved else None,
            )
        if is_saved:
            one = one._replace(version_after=store.wrapper(one.wrapper).version)
        if one.state == "annotation" and is_saved:
            go_on_watching(store, one.wrapper)
        else:
            renew_watch(store, one.wrapper)
    return one


def _waits_already(store: Store, one: Mended) -> bool:
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
    in_force = {one.name: one for one in stored_wrappers(store)}
    ill = {
        one.wrapper
        for one in store.newest_checks()
        if one.wrapper in in_force
        and one.version == in_force[one.wrapper].version
        and (not one.is_healthy or _shows_drift(one))
    }
    return [one for name, one in in_force.items() if name in ill]


def _shows_drift(one: StoredCheck) -> bool:
    return have_drifted(len(one.content.get("drifted", ())), one.content.get("compared", 0))


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
    in_force = lineage(store, stored.name)
    return any(
        not rule_diff(loaded(one).wrapper, found.wrapper)
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
    row |= relearned_row(loaded(stored).wrapper, found)
    return Mended(stored.name, stored.version, None, state, found, row)


def _fresh_pages(store: Store, stored: StoredWrapper, records: Sequence[Record]) -> list[Page]:
    """The pages of records as they are now."""
    urls = evenly_spaced(list(dict.fromkeys(record.url for record in records)), MOST_PAGES)
    return list(newest_pages(store, stored.site, urls))


def _relearned(
    store: Store, stored: StoredWrapper, records: Sequence[Record], fresh: Sequence[Page]
) -> Relearned:
    """What comes of relearning a wrapper from its last good records."""
    named = loaded(stored)
    if not records:
        return Relearned("needs-annotation", named.wrapper, 0.0, {}, reason=_nothing_known(stored))
    found = relearn(named.wrapper, records, fresh)
    if found.outcome != "reused":
        others = [loaded(one) for one in store.wrappers() if one.site == stored.site and one != stored]
        clusters = cluster(fresh, method="vertex").clusters if others else ()
        found = _reused_other(named, others, clusters, records, fresh) or found
    tested = cluster_footprints(page for page in fresh if page.url in found.pages)
    footprint = extend_footprint(found.wrapper.footprint, merge_footprints(tested))
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


def settle_review(store: Store, name: str, *, accept: bool, repair: int | None = None) -> int | None:
    """Put the repair of a wrapper that waits for review in force, or reject it; returns the new version.

    Of one that needs examples, what could be repaired may be put in force so. If a person has looked at the
    repair of a number, only that one is meant: another that waits by now is not touched. What is watched is
    not chosen anew here (see `watch_again`): that takes its time, and the decision does not hang on it.
    """
    _to_settle(store, name, repair, accept=accept)  # what is refused is no run
    with store.recording("relearn", {"wrapper": name, "accept": accept}):
        waiting = _to_settle(store, name, repair, accept=accept)  # now that no other process can write
        if accept:
            return store.reviewing.accept(waiting, store.wrapper(name).site)
        store.settle_repair(waiting.id, "rejected")
    return None


def _to_settle(store: Store, name: str, repair: int | None, *, accept: bool) -> StoredRepair:
    """The repair of a wrapper that waits for review, if it is the one that is meant and can be settled so."""
    waiting = next((one for one in store.repairs(name) if is_acceptable(one)), None)
    if waiting is None:
        raise StoreError(
            f"No repair of the wrapper {name} waits for review: siteloom history tells what is there."
        )
    if repair not in (None, waiting.id):
        raise Overtaken(
            f"The repair of the wrapper {name} that you looked at waits no more, for there is a newer one: "
            "look at that first."
        )
    version = store.wrapper(name).version
    if accept and version != waiting.version_before:
        raise StoreError(
            f"The wrapper {name} has version {version} by now, and the repair is of version "
            f"{waiting.version_before}: run siteloom relearn again."
        )
    return waiting


LEFT_OUT = "edit"
"""What made a version that goes on without attributes which its site has no more."""


def leave_out(store: Store, name: str, repair: int) -> int:
    """Go on without the attributes that a repair which waits could not find again; returns the new version.

    What it could repair is in force then. What is watched is not chosen anew here: see `watch_again`.
    """
    _without_lost(store, name, repair)  # what is refused is no run
    with store.recording("relearn", {"wrapper": name, "leave_out": repair}):
        waiting, text = _without_lost(store, name, repair)  # now that no other process can write
        note = f"without {', '.join(lost_attributes(waiting))}"
        return store.reviewing.put_in_force(waiting, store.wrapper(name).site, text, LEFT_OUT, note)


def _without_lost(store: Store, name: str, repair: int) -> tuple[StoredRepair, str]:
    """A repair that waits, and the wrapper as it proposes it, without what it could not find again."""
    waiting = next((one for one in store.reviewing.repairs(name) if one.id == repair), None)
    if waiting is None:
        raise Overtaken(f"The repair of the wrapper {name} that you looked at waits no more: look again.")
    lost = lost_attributes(waiting)
    if not lost:
        raise StoreError(f"The repair of the wrapper {name} has found all attributes: none can be left out.")
    proposed = Wrapper.from_json(waiting.text or store.wrapper(name).text)
    if proposed.attributes.keys() <= set(lost):
        raise StoreError(f"Nothing would be left of the wrapper {name}: annotate its pages as they are now.")
    return waiting, proposed.without(lost).to_json()


def lost_attributes(repair: StoredRepair) -> list[str]:
    """The attributes that a repair could not find again."""
    attributes = repair.content["attributes"]
    return [name for name, one in attributes.items() if one["state"] in ("unrepaired", "vanished")]


def reopen_review(store: Store, name: str, repair: int) -> None:
    """Let a repair that was rejected wait for review again, as long as nothing came after it."""
    _check_reopening(store, name, repair)  # what is refused is no run
    with store.recording("relearn", {"wrapper": name, "reopen": repair}):
        _check_reopening(store, name, repair)  # now that no other process can write
        store.reviewing.reopen(repair)


def _check_reopening(store: Store, name: str, repair: int) -> None:
    newest = next(iter(store.repairs(name)), None)
    if newest is None or (newest.id, newest.state) != (repair, "rejected"):
        raise Overtaken(f"The repair of the wrapper {name} is not what was rejected last: look at it first.")
    if store.wrapper(name).version != newest.version_before:
        raise Overtaken(
            f"The wrapper {name} has another version by now than the one that was to be repaired: relearn it."
        )


def is_acceptable(repair: StoredRepair) -> bool:
    """Whether a repair waits for a person to say yes: as a whole, or to what could be repaired in part."""
    if repair.state == "annotation" and repair.version_after is None:
        return any(one["state"] == "repaired" for one in repair.content["attributes"].values())
    return repair.state == "review"


def roll_back(store: Store, name: str, version: int | None = None) -> tuple[int, int]:
    """Put an earlier version of a wrapper in force again, the one before the newest unless one is named.

    It becomes the newest version, and nothing is lost; returns the number that it had and the one it has.
    What is watched is not chosen anew here: see `watch_again`.
    """
    versions = store.wrapper_versions(name)
    if version is None:
        if len(versions) < 2:
            raise StoreError(f"The wrapper {name} has only one version: there is nothing to go back to.")
        version = versions[-2].version
    old = store.wrapper(name, version)
    if old.origin == WITHDRAWN:
        raise StoreError(
            f"Version {version} of the wrapper {name} only took it out of force: name another one, or "
            f"withdraw its site with siteloom bootstrap --withdraw {old.site}."
        )
    if old.version == versions[-1].version:
        raise StoreError(f"Version {version} of the wrapper {name} is in force already.")
    with store.recording("rollback", {"wrapper": name, "version": version}):
        new = store.save_wrapper(name, old.site, old.text, "rollback", f"as version {version}")
    return version, new
