"""relearn: reuse or repair changed wrappers and store the outcome."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from siteloom.core.errors import SourceError, StoreError
from siteloom.core.model import Example, Page, Record
from siteloom.core.sequences import evenly_spaced
from siteloom.maintenance.old_wrapper_fit import reuse_candidates
from siteloom.maintenance.repair_result import (
    AttributeOutcome,
    Outcome,
    Relearned,
    WrapperDifference,
    repair_row,
    rule_differences,
)
from siteloom.maintenance.wrapper_repair import MOST_PAGES
from siteloom.maintenance.wrapper_repair import relearn as relearn_wrapper
from siteloom.operations.context import Context
from siteloom.operations.monitor import is_drift
from siteloom.operations.request_fields import NOT_STORED, Site, Unstored, Wrappers
from siteloom.operations.stored_wrappers import (
    last_good_records,
    lineage,
    loaded,
    newest_pages,
    stored_wrappers,
)
from siteloom.operations.watch import (
    WatchedWrapper,
    keep_watched_pages,
    reselect_all_outdated,
    reselect_within_run,
)
from siteloom.store.queries.watches_and_repairs import NewVersion, RepairState
from siteloom.templates.clustering.methods import cluster, cluster_footprints
from siteloom.templates.footprint import extend_footprint, merge_footprints
from siteloom.wrappers.matching import NamedWrapper
from siteloom.wrappers.page_layouts import MOST_EARLIER
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.core.model import Cluster
    from siteloom.store.queries.watches_and_repairs import StoredCheck, StoredRepair
    from siteloom.store.queries.wrappers import StoredWrapper
    from siteloom.store.store import Store

RelearnState = Literal[RepairState, "unchanged", "outdated"]
"""The state of a stored repair; `unchanged` if nothing was to be repaired, and `outdated` if the wrapper got
another version meanwhile. In both cases nothing is stored. Nor is it for a repair that is `rejected`, because
a person has rejected the very same before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelearnRequest:
    """The wrappers to repair: those named, else those that changed, of a site or all.

    A dry run stores nothing. `named_wrapper` is a wrapper of a file; it is repaired from its last good
    `records` and from `fresh_pages` of the same URLs, and nothing is stored.
    """

    wrappers: Wrappers = ()
    site: Site | None = None
    dry_run: bool = False
    named_wrapper: NamedWrapper | None = None
    records: tuple[Record, ...] = ()
    fresh_pages: Iterable[Page] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairedWrapper:
    """What reusing or repairing a wrapper has led to.

    `version_after` is in force now, if the repair was put in force, in part if the state is `annotation`.
    `confidence` is the estimated probability that a value of the least certain repaired attribute is right,
    `attributes` has the outcome of each attribute, and `reason` says why something was not repaired.
    `annotate` are the pages to annotate, with what is known filled in, and `repaired` is the new wrapper.
    """

    wrapper: str
    site: str | None
    run: int | None
    outcome: Outcome
    state: RelearnState | None
    confidence: float
    version_before: int | None
    version_after: int | None
    attributes: Mapping[str, AttributeOutcome]
    reason: str
    difference: Unstored[WrapperDifference] = field(default=WrapperDifference(), metadata=NOT_STORED)
    annotate: Unstored[tuple[Example, ...]] = field(default=(), metadata=NOT_STORED)
    repaired: Unstored[Wrapper | None] = field(default=None, metadata=NOT_STORED)

    def attributes_in_state(self, *states: str) -> tuple[str, ...]:
        """The attributes that have one of these outcomes."""
        return tuple(name for name, outcome in self.attributes.items() if outcome.state in states)

    @property
    def is_waiting(self) -> bool:
        """Whether a repair waits to be accepted or rejected, as a whole or in part."""
        is_partial = self.state == "annotation" and bool(self.attributes_in_state("repaired"))
        return self.version_after is None and (self.state == "review" or is_partial)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelearnResult:
    """The outcome of each wrapper, and the wrappers whose watched pages were selected again.

    `sites_to_extract` are the sites of the wrappers that have a new version in force.
    """

    site: str | None
    repairs: tuple[RepairedWrapper, ...]
    watched: tuple[WatchedWrapper, ...]
    sites_to_extract: tuple[str, ...]


def relearn(context: Context, request: RelearnRequest) -> RelearnResult:
    """Reuse or repair wrappers after a change, from their last good records.

    A repair is put in force if its confidence is at least that of the settings. Otherwise it waits for a
    person to accept it, or to annotate pages.
    """
    if request.named_wrapper is not None:
        repaired = _relearn_file(request.named_wrapper, request.records, request.fresh_pages)
        return RelearnResult(site=None, repairs=(repaired,), watched=(), sites_to_extract=())
    store = context.store
    watched = [] if request.dry_run else list(reselect_all_outdated(context))
    if request.wrappers:
        chosen = stored_wrappers(store, request.wrappers)
    else:
        chosen = [stored for stored in changed_wrappers(store) if request.site in (None, stored.site)]
    context.progress.start("Relearning", len(chosen), "wrapper")
    repairs = []
    for stored in chosen:
        repaired, reselected = _relearn_stored(context, stored, request)
        repairs.append(repaired)
        if reselected is not None:
            watched.append(reselected)
        context.progress.advance()
    sites = {repaired.site for repaired in repairs if repaired.version_after and repaired.site}
    return RelearnResult(
        site=request.site,
        repairs=tuple(repairs),
        watched=tuple(watched),
        sites_to_extract=tuple(sorted(sites)),
    )


def changed_wrappers(store: Store) -> list[StoredWrapper]:
    """The wrappers with a change, or with many pages that look different but give the same values.

    Of each wrapper the newest check of its watched pages and the newest of its output count, if they belong
    to the version in force. If either shows a change, the other does not make up for it.
    """
    current = {stored.name: stored for stored in stored_wrappers(store)}
    changed = {
        stored_check.wrapper
        for stored_check in store.newest_checks()
        if stored_check.wrapper in current
        and stored_check.version == current[stored_check.wrapper].version
        and (not stored_check.is_healthy or _shows_drift(stored_check))
    }
    return [stored for name, stored in current.items() if name in changed]


def _shows_drift(stored_check: StoredCheck) -> bool:
    content = stored_check.content
    return is_drift(len(content.get("drifted", ())), content.get("compared", 0))


def _relearn_file(
    named: NamedWrapper, records: Iterable[Record], fresh_pages: Iterable[Page]
) -> RepairedWrapper:
    records = list(records)
    urls = {record.url for record in records}
    pages = [page for page in fresh_pages if page.url in urls]
    if not pages:
        raise SourceError(
            "None of the pages of the records is in the SOURCE: it must have the same URLs, fetched again."
        )
    relearned = relearn_wrapper(named.wrapper, records, pages)
    state: RelearnState | None = "annotation" if relearned.outcome == "needs-annotation" else None
    return _repaired(named.name, None, None, state, named.wrapper, relearned)


def _relearn_stored(
    context: Context, stored: StoredWrapper, request: RelearnRequest
) -> tuple[RepairedWrapper, WatchedWrapper | None]:
    store = context.store
    records = last_good_records(store, stored)
    if not records and request.wrappers:
        raise StoreError(f"{_no_records_reason(stored)}.")
    urls = evenly_spaced(list(dict.fromkeys(record.url for record in records)), MOST_PAGES)
    relearned = _best_repair(store, stored, records, list(newest_pages(store, stored.site, urls)))
    state = _state(store, stored, relearned, context.settings.change.accepted_confidence)
    repaired = _repaired(stored.name, stored.site, stored.version, state, loaded(stored).wrapper, relearned)
    if request.dry_run:
        return repaired, None
    return _save(context, stored, repaired, relearned)


def _repaired(
    name: str,
    site: str | None,
    version: int | None,
    state: RelearnState | None,
    old: Wrapper,
    relearned: Relearned,
) -> RepairedWrapper:
    return RepairedWrapper(
        wrapper=name,
        site=site,
        run=None,
        outcome=relearned.outcome,
        state=state,
        confidence=relearned.confidence,
        version_before=version,
        version_after=None,
        attributes=relearned.attributes,
        reason=relearned.reason,
        difference=WrapperDifference(rule_differences(old, relearned.wrapper), relearned.values),
        annotate=relearned.annotate,
        repaired=relearned.wrapper,
    )


def relearned_row(repaired: RepairedWrapper) -> dict[str, Any]:
    """An outcome as the store keeps it and -o FILE has it; without versions for a wrapper of a file."""
    row: dict[str, Any] = {"wrapper": repaired.wrapper}
    if repaired.version_before is not None:
        row |= {"version": repaired.version_before, "state": repaired.state}
    return row | repair_row(
        outcome=repaired.outcome,
        confidence=repaired.confidence,
        reason=repaired.reason,
        attributes=repaired.attributes,
        difference=repaired.difference,
        annotate=repaired.annotate,
    )


def _save(
    context: Context, stored: StoredWrapper, repaired: RepairedWrapper, relearned: Relearned
) -> tuple[RepairedWrapper, WatchedWrapper | None]:
    """Store a repair: put it in force, or let it wait for a person."""
    store, state, version_before = context.store, repaired.state, stored.version
    is_confident = relearned.confidence >= context.settings.change.accepted_confidence
    is_put_in_force = _is_better(relearned) and is_confident and state in ("applied", "annotation")
    if state == "rejected" or (not is_put_in_force and _is_already_waiting(store, repaired)):
        return repaired, None
    with store.recording("relearn", {"wrapper": stored.name}) as run:
        if store.wrapper(stored.name).version != version_before:
            return replace(repaired, state="outdated"), None
        run.counts[relearned.outcome] += 1
        text = relearned.wrapper.to_json()
        new_version = NewVersion(stored.site, text, relearned.outcome, _note(relearned))
        if state != "unchanged":
            assert state is not None
            assert state != "outdated"
            store.save_repair(
                run_id=run.id,
                wrapper=stored.name,
                version_before=version_before,
                version_after=None,
                outcome=relearned.outcome,
                state=state,
                confidence=relearned.confidence,
                text=None if is_put_in_force else text,
                content=relearned_row(repaired),
                new_version=new_version if is_put_in_force else None,
            )
        version_after = store.wrapper(stored.name).version if is_put_in_force else None
        repaired = replace(repaired, run=run.id, version_after=version_after)
        if state == "annotation" and is_put_in_force:
            keep_watched_pages(store, stored.name)
            return repaired, None
        return repaired, reselect_within_run(store, stored.name)


def _is_already_waiting(store: Store, repaired: RepairedWrapper) -> bool:
    """Whether an equal repair waits for a person already."""
    for waiting in store.repairs(repaired.wrapper):
        is_similar = (waiting.version_before, waiting.outcome, waiting.state) == (
            repaired.version_before,
            repaired.outcome,
            repaired.state,
        )
        if is_similar and waiting.state == "review":
            assert repaired.repaired is not None
            return waiting.text == repaired.repaired.to_json()
        if is_similar and waiting.state == "annotation":
            return bool(waiting.content["attributes"] == relearned_row(repaired)["attributes"])
    return False


def _state(
    store: Store, stored: StoredWrapper, relearned: Relearned, accepted_confidence: float
) -> RelearnState:
    """What is to be done with a repair."""
    text = relearned.wrapper.to_json()
    if any(
        (repair.state, repair.version_before, repair.text) == ("rejected", stored.version, text)
        for repair in store.repairs(stored.name)
    ):
        return "rejected"
    if relearned.outcome == "needs-annotation":
        return "annotation"
    if text == stored.text:
        return "unchanged"
    is_uncertain = relearned.confidence < accepted_confidence
    if is_uncertain or (relearned.outcome == "repaired" and _was_rolled_back(store, stored, relearned)):
        return "review"
    return "applied"


def _was_rolled_back(store: Store, stored: StoredWrapper, relearned: Relearned) -> bool:
    """Whether a person has undone a version with the same rules: then a person should decide again."""
    in_force = lineage(store, stored.name)
    return any(
        not rule_differences(loaded(version).wrapper, relearned.wrapper)
        for version in store.wrapper_versions(stored.name)
        if version.version not in in_force
    )


def _is_better(relearned: Relearned) -> bool:
    """Whether there is a better wrapper than before, if only in part."""
    has_repaired = any(outcome.state == "repaired" for outcome in relearned.attributes.values())
    return relearned.outcome != "needs-annotation" or has_repaired


def _note(relearned: Relearned) -> str:
    """Why a version was made, in a few words."""
    by_state: dict[str, list[str]] = defaultdict(list)
    for name, outcome in relearned.attributes.items():
        if outcome.state != "kept":
            by_state[outcome.state].append(name)
    notes = [f"{state}: {', '.join(names)}" for state, names in by_state.items()]
    return "; ".join(notes) or "pages have another structure, and give the same values"


def _no_records_reason(stored: StoredWrapper) -> str:
    return (
        f"Nothing is known of the pages of {stored.name}: run siteloom extract or siteloom watch "
        "while the wrapper works"
    )


def _best_repair(
    store: Store, stored: StoredWrapper, records: Sequence[Record], pages: Sequence[Page]
) -> Relearned:
    """The wrapper itself, reused or repaired, or another wrapper of its site that fits its pages now."""
    named = loaded(stored)
    if not records:
        return Relearned("needs-annotation", named.wrapper, 0.0, {}, reason=_no_records_reason(stored))
    relearned = relearn_wrapper(named.wrapper, records, pages)
    if relearned.outcome != "reused":
        others = [
            loaded(candidate)
            for candidate in store.wrappers()
            if candidate.site == stored.site and candidate != stored
        ]
        clusters = cluster(pages, method="vertex").clusters if others else ()
        relearned = _reuse_other_wrapper(named, others, clusters, records, pages) or relearned
    footprints = cluster_footprints(page for page in pages if page.url in relearned.pages)
    footprint = extend_footprint(relearned.wrapper.footprint, merge_footprints(footprints))
    return replace(relearned, wrapper=replace(relearned.wrapper, footprint=footprint))


def _reuse_other_wrapper(
    named: NamedWrapper,
    others: Sequence[NamedWrapper],
    clusters: Sequence[Cluster],
    records: Sequence[Record],
    pages: Sequence[Page],
) -> Relearned | None:
    """Another wrapper of the site for the pages of one, if it passes all tests."""
    attributes = named.wrapper.attributes.keys()
    capable = [other for other in others if other.wrapper.attributes.keys() >= attributes]
    candidates = {other.name: other for found in clusters for other in reuse_candidates(found, capable)}
    for candidate in candidates.values():
        substitute = replace(
            candidate.wrapper,
            attributes={name: candidate.wrapper.attributes[name] for name in attributes},
            footprint=named.wrapper.footprint,
            earlier=named.wrapper.layouts[:MOST_EARLIER],
        )
        relearned = relearn_wrapper(substitute, records, pages)
        if relearned.outcome == "reused":
            return relearned
    return None


def is_acceptable(repair: StoredRepair) -> bool:
    """Whether a repair waits for a person to accept it, as a whole or for the part that was repaired."""
    if repair.state == "annotation" and repair.version_after is None:
        outcomes = repair.content["attributes"].values()
        return any(outcome["state"] == "repaired" for outcome in outcomes)
    return repair.state == "review"


def lost_attributes(repair: StoredRepair) -> list[str]:
    """The attributes that a repair could not find again."""
    outcomes = repair.content["attributes"]
    return [name for name, outcome in outcomes.items() if outcome["state"] in ("unrepaired", "vanished")]
