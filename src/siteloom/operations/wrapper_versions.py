"""history and rollback: the versions of wrappers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from siteloom.core.errors import StoreError
from siteloom.maintenance.repair_result import (
    RuleDifference,
    ValueDifference,
    WrapperDifference,
    rule_differences,
)
from siteloom.operations.context import Context
from siteloom.operations.relearn import is_acceptable
from siteloom.operations.request_fields import Number, WrapperName
from siteloom.operations.watch import WatchedWrapper, watch_new_version
from siteloom.store.queries.watches_and_repairs import RepairState, StoredCheck
from siteloom.store.queries.wrappers import WITHDRAWN
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from siteloom.store.queries.watches_and_repairs import StoredRepair
    from siteloom.store.queries.wrappers import StoredWrapper
    from siteloom.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRequest:
    """One wrapper, or all; `has_versions` asks for every version with what it changed, which takes longer."""

    wrapper: WrapperName | None = None
    has_versions: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapperVersion:
    """A version of a wrapper: when and by what it was made, and how it differs from the one before.

    `outcome` and `confidence` are those of the repair that made the version, if one did.
    """

    version: int
    created_at: datetime
    origin: str
    note: str
    outcome: str | None
    confidence: float | None
    difference: WrapperDifference


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRepair:
    """A repair that waits: to be accepted, as a whole or in part, or for examples, for the `reason` given."""

    repair: int
    version_before: int
    state: RepairState
    is_acceptable: bool
    reason: str
    difference: WrapperDifference


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSummary:
    """The result of a check: the tests that found a change, and whether pages look different."""

    at: datetime
    is_healthy: bool
    has_drifted: bool
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapperHistory:
    """The versions of a wrapper, the newest last, its last check and the repairs that wait."""

    wrapper: str
    newest_version: int
    created_at: datetime
    origin: str
    last_check: CheckSummary | None
    waiting: tuple[WaitingRepair, ...]
    versions: tuple[WrapperVersion, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryResult:
    """The history of each wrapper that was requested."""

    wrappers: tuple[WrapperHistory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackRequest:
    """The version of a wrapper to put in force again: the one before the newest if None."""

    wrapper: WrapperName
    version: Number | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackResult:
    """A wrapper whose new `version` equals its `restored_version`; `previous_version` was in force before.

    `can_undo` is False if the previous version only took the wrapper out of force.
    """

    wrapper: str
    site: str
    version: int
    restored_version: int
    previous_version: int
    can_undo: bool
    watched: WatchedWrapper | None


def history(context: Context, request: HistoryRequest) -> HistoryResult:
    """The versions of wrappers, why each was made, what the last check found, and what waits for a person."""
    store = context.store
    chosen = store.wrappers() if request.wrapper is None else [store.wrapper(request.wrapper)]
    return HistoryResult(
        wrappers=tuple(_wrapper_history(store, stored, request.has_versions) for stored in chosen)
    )


def rollback(context: Context, request: RollbackRequest) -> RollbackResult:
    """Put an earlier version of a wrapper in force again, as its newest version, so that nothing is lost."""
    store, name = context.store, request.wrapper
    versions = store.wrapper_versions(name)
    previous, number = versions[-1], request.version
    if number is None:
        if len(versions) < 2:
            raise StoreError(f"The wrapper {name} has only one version: there is nothing to go back to.")
        number = versions[-2].version
    restored = store.wrapper(name, number)
    if restored.origin == WITHDRAWN:
        raise StoreError(
            f"Version {number} of the wrapper {name} only took it out of force: name another one, or "
            f"withdraw its site with siteloom bootstrap --withdraw {restored.site}."
        )
    if restored.version == previous.version:
        raise StoreError(f"Version {number} of the wrapper {name} is in force already.")
    with store.recording("rollback", {"wrapper": name, "version": number}):
        version = store.save_wrapper(name, restored.site, restored.text, "rollback", f"as version {number}")
    return RollbackResult(
        wrapper=name,
        site=restored.site,
        version=version,
        restored_version=number,
        previous_version=previous.version,
        can_undo=previous.origin != WITHDRAWN,
        watched=watch_new_version(context, name),
    )


def _wrapper_history(store: Store, newest: StoredWrapper, has_versions: bool) -> WrapperHistory:
    repairs = store.repairs(newest.name)
    return WrapperHistory(
        wrapper=newest.name,
        newest_version=newest.version,
        created_at=newest.created_at,
        origin=newest.origin,
        last_check=_last_check(store, newest),
        waiting=tuple(
            WaitingRepair(
                repair=repair.id,
                version_before=repair.version_before,
                state=repair.state,
                is_acceptable=is_acceptable(repair),
                reason=repair.content["reason"],
                difference=WrapperDifference(
                    rules=tuple(
                        RuleDifference(**_with_tuples(row)) for row in repair.content["diff"]["rules"]
                    ),
                    values=_values(repair),
                ),
            )
            for repair in repairs
            if repair.state in ("review", "annotation")
        ),
        versions=_versions(store, newest.name, repairs) if has_versions else (),
    )


def _last_check(store: Store, newest: StoredWrapper) -> CheckSummary | None:
    """The worse of the newest checks of both kinds; those of the version in force come first."""
    worst: StoredCheck | None = min(
        store.newest_checks(newest.name),
        key=lambda check: (
            check.version != newest.version,
            check.is_healthy,
            not check.content.get("drifted"),
        ),
        default=None,
    )
    if worst is None:
        return None
    return CheckSummary(
        at=worst.at,
        is_healthy=worst.is_healthy,
        has_drifted=bool(worst.content.get("drifted")),
        tests=tuple(change["test"] for change in worst.content.get("changes", ())),
    )


def _versions(store: Store, name: str, repairs: list[StoredRepair]) -> tuple[WrapperVersion, ...]:
    by_version = {repair.version_after: repair for repair in repairs}
    versions: list[WrapperVersion] = []
    before: Wrapper | None = None
    for stored in store.wrapper_versions(name):
        wrapper = Wrapper.from_json(stored.text)
        repair = by_version.get(stored.version)
        versions.append(
            WrapperVersion(
                version=stored.version,
                created_at=stored.created_at,
                origin=stored.origin,
                note=stored.note,
                outcome=repair.outcome if repair else None,
                confidence=repair.confidence if repair else None,
                difference=WrapperDifference(
                    rules=() if before is None else rule_differences(before, wrapper),
                    values=_values(repair) if repair else (),
                ),
            )
        )
        before = wrapper
    return tuple(versions)


def _values(repair: StoredRepair) -> tuple[ValueDifference, ...]:
    return tuple(ValueDifference(**_with_tuples(row)) for row in repair.content["diff"]["values"])


def _with_tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
