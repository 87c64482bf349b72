"""watch: choose and store the watched pages, by which changes of a site are noticed."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from siteloom.core.errors import StoreError, UsageError
from siteloom.core.model import Footprint
from siteloom.core.sequences import evenly_spaced
from siteloom.core.urls import site_of
from siteloom.maintenance.watch_file import watch_from_json, watch_to_json
from siteloom.maintenance.watched_pages import (
    MOST_BELLWETHERS,
    MOST_CANDIDATES,
    Watch,
    choose_watched_pages,
    constant_attributes,
)
from siteloom.operations.context import Context
from siteloom.operations.request_fields import NOT_STORED, Site, Unstored, Wrappers
from siteloom.operations.stored_wrappers import loaded, pages_by_wrapper, stored_wrappers
from siteloom.store.queries.clusters import PageAddress
from siteloom.wrappers.matching import Matcher, NamedWrapper

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from siteloom.core.model import Page
    from siteloom.operations.stored_wrappers import PagesByWrapper
    from siteloom.store.queries.wrappers import StoredWrapper
    from siteloom.store.store import Store

# Of at most this many pages all stored versions are read, to learn which values change.
_PAGES_WITH_HISTORY = 100
_REASONS_IN_ERROR = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """The wrappers whose pages are to be watched: those named, those of a site, or all.

    `named_wrappers` are wrappers of files. Their pages are chosen among the pages of SOURCE, and nothing is
    stored. `count` is the number of pages to watch for each wrapper.
    """

    wrappers: Wrappers = ()
    site: Site | None = None
    count: int = MOST_BELLWETHERS
    named_wrappers: tuple[NamedWrapper, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedWrapper:
    """A wrapper whose watched pages were chosen; `reason` says why there are none.

    `pages` are the pages whose URLs belong to the wrapper. `pages_without_record` of them give no complete
    record; if they are the majority, `warning` says so, because the watched pages then represent few pages.
    """

    wrapper: str
    version: int | None
    watched_pages: int
    pages: int
    pages_without_record: int
    changing_attributes: tuple[str, ...] = ()
    reason: str = ""
    warning: str = ""
    watch: Unstored[Watch | None] = field(default=None, metadata=NOT_STORED)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchResult:
    """The wrappers with their watched pages."""

    run: int | None
    site: str | None
    watched: tuple[WatchedWrapper, ...]


def watch(context: Context, request: WatchRequest) -> WatchResult:
    """Choose and store the watched pages of wrappers.

    Raises UsageError if no page of any wrapper can be watched.
    """
    if request.named_wrappers:
        run, watched = None, _watch_sources(context, request.named_wrappers, request.count)
    else:
        run, watched = _watch_stored(context, request)
    if not any(result.watch for result in watched):
        reasons = "; ".join(f"{result.wrapper}: {result.reason}" for result in watched[:_REASONS_IN_ERROR])
        raise UsageError(
            "Nothing is watched: no wrapper finds what it should on any of the pages. Repair it, or put an "
            f"earlier version in force, and choose its pages then. ({reasons.rstrip('.')})"
        )
    return WatchResult(run=run, site=request.site, watched=tuple(watched))


def _watch_stored(context: Context, request: WatchRequest) -> tuple[int, list[WatchedWrapper]]:
    store, progress = context.store, context.progress
    chosen = requested_wrappers(store, request.wrappers, request.site)
    progress.start("Choosing pages to watch", len(chosen), "wrapper")
    watched: list[WatchedWrapper] = []
    with store.recording(
        "watch", {"wrappers": [stored.name for stored in chosen], "k": request.count}
    ) as run:
        for site in dict.fromkeys(stored.site for stored in chosen):
            pages = pages_by_wrapper(store, site)
            for stored in (stored for stored in chosen if stored.site == site):
                result = _watch_wrapper(store, stored, pages, request.count)
                watched.append(result)
                progress.advance()
                run.counts["bellwethers"] += result.watched_pages
        run.counts["wrappers"] += len(chosen)
    return run.id, watched


def requested_wrappers(store: Store, names: Collection[str], site: str | None) -> list[StoredWrapper]:
    """The stored wrappers that a request names, else those of its site, else all."""
    if names or site is None:
        return stored_wrappers(store, names)
    chosen = [stored for stored in store.wrappers() if stored.site == site]
    if not chosen:
        raise StoreError(f"There is no wrapper for {site} yet: annotate a template of it first.")
    return chosen


def _watch_wrapper(store: Store, stored: StoredWrapper, pages: PagesByWrapper, count: int) -> WatchedWrapper:
    """Choose and store the watched pages of a wrapper among the pages of its site."""
    own_pages, strays = pages.pages.get(stored.name, []), pages.strays.get(stored.name, 0)
    with_history = evenly_spaced(own_pages, _PAGES_WITH_HISTORY)
    history: dict[str, list[Page]] = defaultdict(list)
    for version in store.versions_at([PageAddress(stored.site, page.url) for page in with_history]):
        history[version.url].append(version)
    versions = [version for page in own_pages for version in history.get(page.url, (page,))]
    total = len(own_pages) + strays
    try:
        chosen, candidates, working = choose_watched_pages(
            loaded(stored).wrapper, versions, count, name=stored.name
        )
    except UsageError as error:
        return _watched(
            stored.name, stored.version, None, pages=total, without_record=total, reason=str(error)
        )
    store.save_watch(stored.name, stored.site, stored.version, watch_to_json(chosen))
    # Of many pages only some were candidates.
    without_record = strays + round(len(own_pages) * (1 - working / candidates))
    return _watched(stored.name, stored.version, chosen, pages=total, without_record=without_record)


def _watched(
    name: str, version: int | None, watch: Watch | None, *, pages: int, without_record: int, reason: str = ""
) -> WatchedWrapper:
    constant = constant_attributes(watch.wrapper, watch.past) if watch else []
    warning = (
        f"{name} finds nothing, or not all that a record must have, on {without_record:,} of "
        f"{pages:,} pages: repair it or put an earlier version in force, and watch its pages then."
    )
    return WatchedWrapper(
        wrapper=name,
        version=version,
        watched_pages=len(watch.bellwethers) if watch else 0,
        pages=pages,
        pages_without_record=without_record,
        changing_attributes=tuple(
            attribute
            for attribute in (watch.wrapper.attributes if watch else ())
            if attribute not in constant
        ),
        reason=reason,
        warning=warning if 2 * without_record > pages else "",
        watch=watch,
    )


def _watch_sources(context: Context, wrappers: Sequence[NamedWrapper], count: int) -> list[WatchedWrapper]:
    """Choose the pages to watch of wrappers of files, among the pages of SOURCE."""
    urls = _urls_by_wrapper(context, wrappers)
    return [_watch_source_pages(context.store, named, urls[named.name], count) for named in wrappers]


def _urls_by_wrapper(context: Context, wrappers: Sequence[NamedWrapper]) -> dict[str, list[str]]:
    """The URLs of the pages that belong to each wrapper; of all pages if it has no footprint."""
    matcher = Matcher(wrappers)
    without_footprint = [named.name for named in wrappers if named.wrapper.footprint == Footprint()]
    urls: dict[str, list[str]] = {named.name: [] for named in wrappers}
    context.progress.start("Matching")
    for page in context.store.pages():
        context.progress.advance()
        for name in [*(named.name for named in matcher.match(page).chosen), *without_footprint]:
            urls[name].append(page.url)
    return urls


def _watch_source_pages(store: Store, named: NamedWrapper, urls: Sequence[str], count: int) -> WatchedWrapper:
    if not urls:
        reason = "no page is for this wrapper"
        return _watched(named.name, named.version, None, pages=0, without_record=0, reason=reason)
    addresses = [PageAddress(site_of(url), url) for url in evenly_spaced(urls, MOST_CANDIDATES)]
    try:
        chosen, candidates, working = choose_watched_pages(
            named.wrapper, store.versions_at(addresses), count, name=named.name
        )
    except UsageError as error:
        return _watched(
            named.name, named.version, None, pages=len(urls), without_record=len(urls), reason=str(error)
        )
    without_record = round(len(urls) * (1 - working / candidates))
    return _watched(named.name, named.version, chosen, pages=len(urls), without_record=without_record)


def watch_new_version(context: Context, wrapper: str) -> WatchedWrapper | None:
    """Choose the watched pages of a wrapper that is new or has another version than the one that is watched.

    Learning, accepting a repair and rolling back end with this. The new version is in force already, so an
    interrupt only ends the choice: returns None, and the next check catches up. Also returns None if nothing
    was to be done.
    """
    with suppress(KeyboardInterrupt):
        if wrapper in context.store.watched():
            return reselect_watched_pages(context, wrapper)
        return _watch_stored(context, WatchRequest(wrappers=(wrapper,)))[1][0]
    return None


def reselect_watched_pages(context: Context, wrapper: str) -> WatchedWrapper | None:
    """Choose the watched pages of a wrapper again if those stored belong to another of its versions."""
    if not _is_watch_outdated(context.store, wrapper):
        return None
    context.progress.start("Choosing pages to watch", 1, "wrapper")
    with context.store.recording("watch", {"wrappers": [wrapper]}):
        return reselect_within_run(context.store, wrapper)


def reselect_all_outdated(context: Context) -> tuple[WatchedWrapper, ...]:
    """Choose the watched pages again of all wrappers for which an interrupted operation has not done so."""
    versions = context.store.watched()
    outdated = [
        stored.name
        for stored in stored_wrappers(context.store)
        if versions.get(stored.name, stored.version) != stored.version
    ]
    results = (reselect_watched_pages(context, name) for name in outdated)
    return tuple(result for result in results if result is not None)


def reselect_within_run(store: Store, wrapper: str) -> WatchedWrapper | None:
    """Choose outdated watched pages again, as many as before, within a run that is being recorded."""
    if not _is_watch_outdated(store, wrapper):
        return None
    stored = store.wrapper(wrapper)
    count = len(stored_watch(store, wrapper).watch.bellwethers)
    return _watch_wrapper(store, stored, pages_by_wrapper(store, stored.site), count)


def _is_watch_outdated(store: Store, wrapper: str) -> bool:
    versions = store.watched()
    return wrapper in versions and versions[wrapper] != store.wrapper(wrapper).version


def keep_watched_pages(store: Store, wrapper: str) -> None:
    """Watch a partly repaired wrapper by the pages and values stored before: lost values must stay missed."""
    saved, stored = store.watch(wrapper), store.wrapper(wrapper)
    if saved is not None:
        watch_before = replace(watch_from_json(saved.text), wrapper=loaded(stored).wrapper)
        store.save_watch(wrapper, stored.site, stored.version, watch_to_json(watch_before))


@dataclass(frozen=True, slots=True)
class SiteWatch:
    """The watch of a wrapper, the site that its pages are stored under, and the version that is watched."""

    site: str
    version: int | None
    watch: Watch


def stored_watch(store: Store, wrapper: str) -> SiteWatch:
    """The watch of a wrapper, which must have one."""
    saved = store.watch(wrapper)
    assert saved is not None, wrapper
    return SiteWatch(saved.site, saved.version, watch_from_json(saved.text))
