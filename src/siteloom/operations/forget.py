"""forget: erase sites and pages with everything derived from them, by name or by age."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from siteloom.core.errors import UsageError
from siteloom.operations.context import Context
from siteloom.operations.request_fields import SitesOrUrls
from siteloom.store.erasure import erasure
from siteloom.store.erasure.row_erasure import FORGOTTEN

if TYPE_CHECKING:
    from siteloom.core.progress import Progress
    from siteloom.store.erasure.erasure import ErasureResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRequest:
    """What to erase: sites and URLs of pages by `names`, or what the retention settings let expire.

    With neither, only the traces that earlier erasures have left are removed.
    """

    names: SitesOrUrls
    expired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetResult:
    """How much was erased, by kind; the result never names what it was.

    The wrappers of `to_learn_again` stay, but they may quote pages that are gone.
    """

    counts: Mapping[str, int]
    to_learn_again: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetPreview:
    """How much would be erased, by kind; `sites` and `urls` are the names as the store has them."""

    sites: tuple[str, ...]
    urls: tuple[str, ...]
    counts: Mapping[str, int]
    to_learn_again: tuple[str, ...]


def forget(context: Context, request: ForgetRequest) -> ForgetResult:
    """Erase sites, pages, or what has expired. It is safe to stop this and start it again.

    Names that an earlier request has erased meanwhile are ignored. If none is left, only the remaining
    traces of earlier erasures are removed.
    """
    _check(context, request)
    report = _StageReport(context.progress)
    if request.expired:
        return _result(erasure.forget_expired(context.store, context.settings.retention, report))
    names = [name for name in request.names if name != FORGOTTEN]
    return _result(erasure.forget(context.store, names, report))


def preview(context: Context, request: ForgetRequest) -> ForgetPreview:
    """Count what `forget` would erase; nothing is changed."""
    _check(context, request)
    sites: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    if request.expired:
        counted = erasure.would_forget_expired(context.store, context.settings.retention)
    else:
        sites, urls = erasure.erasure_targets(context.store, request.names)
        counted = erasure.would_forget(context.store, [*sites, *urls])
    return ForgetPreview(
        sites=sites, urls=urls, counts=counted.counts, to_learn_again=tuple(counted.to_relearn)
    )


def apply_retention(context: Context) -> tuple[ForgetResult, str]:
    """Erase what has expired after other work; also returns what prevented that, or an empty text.

    The work before it counts all the same, and the next import tries again.
    """
    forgotten, problem = erasure.forget_after_work(context.store, context.settings.retention)
    return _result(forgotten), problem


def _check(context: Context, request: ForgetRequest) -> None:
    if request.expired and request.names:
        raise UsageError("Name the sites or URLs to forget, or choose what has expired, and not both.")
    retention = context.settings.retention
    if request.expired and not (retention.days or retention.versions):
        raise UsageError(
            "Everything is kept for ever: set days or versions under [retention] in siteloom.toml first."
        )


def _result(forgotten: ErasureResult) -> ForgetResult:
    return ForgetResult(counts=forgotten.counts, to_learn_again=tuple(forgotten.to_relearn))


class _StageReport:
    """Passes the stages of an erasure on to a progress reporter."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._stage = ""
        self._done = 0

    def __call__(self, done: int, total: int | None, stage: str) -> None:
        if stage != self._stage:
            self._progress.start(stage, total, unit="step", done=done)
        else:
            self._progress.advance(done - self._done)
        self._stage, self._done = stage, done
