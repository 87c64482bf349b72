"""Watching, monitoring and relearning a store, as most tests need them: with default settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from siteloom.core.model import Page
from siteloom.core.settings import ChangeSettings, Settings
from siteloom.operations.context import Context
from siteloom.operations.monitor import MonitorRequest, WrapperCheck, monitor
from siteloom.operations.relearn import RelearnRequest, RepairedWrapper, relearn
from siteloom.operations.review import ReviewRequest, ReviewResult, accept_repair, reject_repair
from siteloom.operations.watch import WatchedWrapper, WatchRequest, watch
from siteloom.store.store import Store


def context_of(store: Store, settings: Settings = Settings()) -> Context:
    return Context(store=store, settings=settings)


def watch_stored(store: Store, *wrappers: str, count: int = 20) -> tuple[WatchedWrapper, ...]:
    return watch(context_of(store), WatchRequest(wrappers=wrappers, count=count)).watched


def check_stored(
    store: Store, *wrappers: str, fresh_pages: Iterable[Page] | None = None
) -> tuple[WrapperCheck, ...]:
    return monitor(context_of(store), MonitorRequest(wrappers=wrappers, fresh_pages=fresh_pages)).checks


def repair_stored(
    store: Store, *wrappers: str, accept: int = 90, dry_run: bool = False
) -> tuple[RepairedWrapper, ...]:
    """Relearn wrappers; with `accept` above 100, no repair is put in force by itself."""
    settings = replace(Settings(), change=ChangeSettings(accept=accept))
    return relearn(context_of(store, settings), RelearnRequest(wrappers=wrappers, dry_run=dry_run)).repairs


def decide(store: Store, wrapper: str, *, accept: bool, repair: int | None = None) -> ReviewResult:
    request = ReviewRequest(wrapper=wrapper, repair=repair)
    return (accept_repair if accept else reject_repair)(context_of(store), request)
