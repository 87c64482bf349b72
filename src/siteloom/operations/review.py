"""review: decisions of a person about repairs that wait, and about clusters worth annotating."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from siteloom.core.errors import Overtaken, StoreError
from siteloom.operations.context import Context
from siteloom.operations.relearn import is_acceptable, lost_attributes
from siteloom.operations.request_fields import ClusterName, Number, WrapperName
from siteloom.operations.watch import WatchedWrapper, watch_new_version
from siteloom.store.queries.watches_and_repairs import NewVersion, RepairState
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Callable

    from siteloom.store.queries.watches_and_repairs import StoredRepair
    from siteloom.store.store import Store

LEFT_OUT = "edit"
"""The origin of a version that goes on without attributes that its site does not have any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRequest:
    """The repair of a wrapper that a person has looked at.

    The decision is refused if another repair waits by now. Without a number it is about whichever waits.
    """

    wrapper: WrapperName
    repair: Number | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewResult:
    """The state of a repair after a decision; of its wrapper, `version` is in force, `version_before` was.

    `lost_attributes` are those that the repair could not find again, `watched` are the pages that are watched
    from now on if the version in force is a new one.
    """

    wrapper: str
    site: str
    repair: int
    state: RepairState
    version: int
    version_before: int
    lost_attributes: tuple[str, ...]
    watched: WatchedWrapper | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReviewRequest:
    """A cluster that a person has looked at; refused if the clusters were found again since `edition`."""

    cluster: ClusterName
    edition: Number | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReviewResult:
    """Whether a cluster waits to be annotated."""

    cluster: str
    state: Literal["dismissed", "waiting"]


def accept_repair(context: Context, request: ReviewRequest) -> ReviewResult:
    """Put a repair in force that waits for review, or the repaired part of one that needs examples."""

    def accept(store: Store) -> StoredRepair:
        repair = _decidable_repair(store, request)
        version = store.wrapper(request.wrapper).version
        if version != repair.version_before:
            raise StoreError(
                f"The wrapper {request.wrapper} has version {version} by now, and the repair is of version "
                f"{repair.version_before}: run siteloom relearn again."
            )
        return repair

    return _decide(context, request, {"accept": True}, accept, _put_in_force)


def reject_repair(context: Context, request: ReviewRequest) -> ReviewResult:
    """Reject a repair; relearning does not propose it again."""
    return _decide(
        context,
        request,
        {"accept": False},
        lambda store: _decidable_repair(store, request),
        lambda store, repair, _: store.close_repair(repair.id, "rejected"),
    )


def leave_out_lost(context: Context, request: ReviewRequest) -> ReviewResult:
    """Go on without the attributes that a repair could not find again; what it repaired is put in force."""

    def leave_out(store: Store, repair: StoredRepair, site: str) -> None:
        text = _without_lost(store, repair).to_json()
        note = f"without {', '.join(lost_attributes(repair))}"
        store.reviewing.put_in_force(repair, site, text, LEFT_OUT, note)

    def with_lost(store: Store) -> StoredRepair:
        waiting = store.reviewing.repairs(request.wrapper)
        repair = next((repair for repair in waiting if request.repair in (None, repair.id)), None)
        if repair is None:
            raise Overtaken(
                f"The repair of the wrapper {request.wrapper} that you looked at waits no more: look again."
            )
        _without_lost(store, repair)
        return repair

    return _decide(context, request, {"leave_out": request.repair}, with_lost, leave_out)


def reopen_repair(context: Context, request: ReviewRequest) -> ReviewResult:
    """Undo a decision: the repair waits for review again, and the version before it is in force again.

    Refused if anything came after the decision, or if the repair was put in force without one.
    """

    def reopen(store: Store, repair: StoredRepair, site: str) -> None:
        number = _version_to_restore(store, repair)
        restored = None
        if number is not None:
            text = store.wrapper(request.wrapper, number).text
            restored = NewVersion(site, text, "rollback", f"as version {number}")
        store.reviewing.reopen(repair, restored)

    def decided(store: Store) -> StoredRepair:
        repair = next(iter(store.repairs(request.wrapper)), None)
        if repair is None or request.repair not in (None, repair.id):
            raise Overtaken(
                f"The repair of the wrapper {request.wrapper} is not the last one: look at it first."
            )
        _version_to_restore(store, repair)
        return repair

    return _decide(context, request, {"reopen": request.repair}, decided, reopen)


def dismiss_cluster(context: Context, request: ClusterReviewRequest) -> ClusterReviewResult:
    """Stop asking people to annotate a cluster, until the clusters are found again."""
    check_edition(context.store, request.cluster, request.edition)
    context.store.reviewing.dismiss(request.cluster)
    return ClusterReviewResult(cluster=request.cluster, state="dismissed")


def restore_cluster(context: Context, request: ClusterReviewRequest) -> ClusterReviewResult:
    """Ask people again to annotate a cluster that was dismissed."""
    check_edition(context.store, request.cluster, request.edition)
    context.store.reviewing.restore(request.cluster)
    return ClusterReviewResult(cluster=request.cluster, state="waiting")


def check_edition(store: Store, cluster: str, edition: int | None) -> None:
    """Raise Overtaken if a cluster was found again since a person looked at it.

    Its name may be that of another cluster now. `edition` is the number that it had then, if it is known.
    """
    store.require_cluster(cluster)
    if edition not in (None, store.cluster_edition(cluster)):
        raise Overtaken(f"The templates were found anew since you looked at {cluster}: look at it again.")


def _decide(
    context: Context,
    request: ReviewRequest,
    arguments: dict[str, Any],
    choose: Callable[[Store], StoredRepair],
    apply: Callable[[Store, StoredRepair, str], object],
) -> ReviewResult:
    """Apply a decision to the repair that `choose` returns, in a recorded run.

    `choose` is called before as well, because a decision that is refused is no run. Within the run no other
    process can write.
    """
    store, name = context.store, request.wrapper
    choose(store)
    with store.recording("relearn", {"wrapper": name, **arguments}):
        repair, before = choose(store), store.wrapper(name)
        apply(store, repair, before.site)
    version = store.wrapper(name).version
    return ReviewResult(
        wrapper=name,
        site=before.site,
        repair=repair.id,
        state=next(stored.state for stored in store.repairs(name) if stored.id == repair.id),
        version=version,
        version_before=before.version,
        lost_attributes=tuple(lost_attributes(repair)),
        watched=watch_new_version(context, name) if version != before.version else None,
    )


def _put_in_force(store: Store, repair: StoredRepair, site: str) -> None:
    store.reviewing.accept(repair, site)


def _decidable_repair(store: Store, request: ReviewRequest) -> StoredRepair:
    """The repair of a wrapper that waits to be accepted or rejected, if it is the one requested."""
    repair = next((repair for repair in store.repairs(request.wrapper) if is_acceptable(repair)), None)
    if repair is None:
        raise StoreError(
            f"No repair of the wrapper {request.wrapper} waits for review: siteloom history tells what is "
            "there."
        )
    if request.repair not in (None, repair.id):
        raise Overtaken(
            f"The repair of the wrapper {request.wrapper} that you looked at waits no more, for there is a "
            "newer one: look at that first."
        )
    return repair


def _without_lost(store: Store, repair: StoredRepair) -> Wrapper:
    """The wrapper that a repair proposes, without the attributes that it could not find again."""
    lost = lost_attributes(repair)
    if not lost:
        raise StoreError(
            f"The repair of the wrapper {repair.wrapper} has found all attributes: none can be left out."
        )
    proposed = Wrapper.from_json(repair.text or store.wrapper(repair.wrapper).text)
    if proposed.attributes.keys() <= set(lost):
        raise StoreError(
            f"Nothing would be left of the wrapper {repair.wrapper}: annotate its pages as they are now."
        )
    return proposed.without(lost)


def _version_to_restore(store: Store, repair: StoredRepair) -> int | None:
    """The version that was in force before the decision about a repair, or None if it was rejected.

    Raises Overtaken if anything came after the decision, or if nobody decided.
    """
    newest = store.wrapper(repair.wrapper)
    if repair.state == "rejected":
        if newest.version != repair.version_before:
            raise Overtaken(
                f"The wrapper {repair.wrapper} has another version by now than the one that was to be "
                "repaired: relearn it."
            )
        return None
    if repair.state == "applied" and repair.version_after is not None:
        # The text of a repair that was put in force without a decision is only stored with its version.
        is_accepted = repair.text is not None and newest.version == repair.version_after
        if is_accepted and newest.origin in (repair.outcome, LEFT_OUT):
            return repair.version_before
        if newest.version == repair.version_after + 1 and newest.origin == LEFT_OUT:
            return repair.version_after
    raise Overtaken(
        f"The repair of the wrapper {repair.wrapper} is not what was decided last: look at it first."
    )
