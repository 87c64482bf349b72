"""Bellwethers in a workspace: chosen, kept, and held against their pages as they are now."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from siteloom.core.errors import StoreError, UsageError
from siteloom.core.sequences import evenly_spaced
from siteloom.core.settings import CHANGE_THRESHOLD
from siteloom.maintenance.change_tests import check
from siteloom.maintenance.watch_file import watch_from_json, watch_to_json
from siteloom.maintenance.watched_pages import MOST_BELLWETHERS, choose, refilled
from siteloom.operations.stored_wrappers import loaded, newest_pages, pages_by_wrapper, stored_wrappers
from siteloom.store.queries.clusters import PageAddress

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from siteloom.core.model import Change, Page
    from siteloom.maintenance.change_tests import Checkup
    from siteloom.maintenance.watched_pages import Watch
    from siteloom.operations.context import Context
    from siteloom.operations.monitor import Fetched
    from siteloom.operations.stored_wrappers import PagesByWrapper
    from siteloom.store.queries.runs import RunRecorder
    from siteloom.store.queries.watches_and_repairs import StoredWatch
    from siteloom.store.queries.wrappers import StoredWrapper
    from siteloom.store.store import Store

# Of so many pages all versions are looked at, to see which values change.
_PAGES_WITH_HISTORY = 100
# If fewer bellwethers can be compared, nothing can be said of the site.
_LEAST_COMPARED = 3
# Pages that look different but give what they gave are worth a new version of a wrapper if they are more than
# this share: some pages of a site always do.
_MANY_DRIFTED = 0.1


Verdict = Literal["changed", "mostly gone", "healthy", "chosen anew", "too few to say", "nothing to compare"]


class Watched(NamedTuple):
    """A wrapper whose bellwethers were chosen, or why there are none.

    `pages` are those that it is for by their URLs, `fruitless` those of them that give it no whole record.
    """

    wrapper: str
    version: int
    watch: Watch | None
    reason: str = ""
    pages: int = 0
    fruitless: int = 0

    @property
    def warning(self) -> str:
        """What is to be said if it works on less than half of its pages: then those say little that do."""
        if 2 * self.fruitless <= self.pages:
            return ""
        return (
            f"{self.wrapper} finds nothing, or not all that a record must have, on {self.fruitless:,} of "
            f"{self.pages:,} pages: repair it or put an earlier version in force, and watch its pages then."
        )


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
    def is_mostly_gone(self) -> bool:
        """Whether more than half of the pages are gone at once: no change, but nothing to be silent about."""
        return 2 * len(self.checkup.gone) > len(self.checkup.watch.bellwethers)

    @property
    def warning(self) -> str:
        """What is to be said if most of the pages are gone."""
        if not self.is_mostly_gone:
            return ""
        return (
            f"{len(self.checkup.gone)} of {len(self.checkup.watch.bellwethers)} watched pages of "
            f"{self.wrapper} are gone: the site may have moved its pages, so crawl it again (siteloom crawl) "
            "and watch anew (siteloom watch)."
        )

    @property
    def verdict(self) -> Verdict:
        """What is to be told of it in a word or two."""
        if self.is_renewed:
            return "chosen anew"
        if self.checkup.changes:
            return "changed"
        if self.is_mostly_gone:
            return "mostly gone"
        if self.is_telling:
            return "healthy"
        return "too few to say" if self.checkup.compared or self.checkup.gone else "nothing to compare"

    @property
    def has_drifted(self) -> bool:
        """Whether so many pages look different that the wrapper should know them."""
        return have_drifted(len(self.checkup.drifted), len(self.checkup.compared))


def watch_wrappers(
    store: Store,
    names: Collection[str] = (),
    k: int = MOST_BELLWETHERS,
    on_wrapper: Callable[[int], object] = lambda _: None,
) -> list[Watched]:
    """Choose and keep the bellwethers of wrappers, of all unless some are named.

    `on_wrapper` is called when one is done, with the number of pages that were looked at.
    """
    chosen = stored_wrappers(store, names)
    watched: list[Watched] = []
    with store.recording("watch", {"wrappers": [one.name for one in chosen], "k": k}) as run:
        for site in dict.fromkeys(one.site for one in chosen):
            of_site = pages_by_wrapper(store, site)
            for stored in (one for one in chosen if one.site == site):
                found = _watched(store, stored, of_site, k)
                watched.append(found)
                on_wrapper(len(of_site.pages.get(stored.name, [])))
                run.counts["bellwethers"] += len(found.watch.bellwethers) if found.watch else 0
        run.counts["wrappers"] += len(chosen)
    return watched


def _watched(store: Store, stored: StoredWrapper, of_site: PagesByWrapper, k: int) -> Watched:
    pages, strays = of_site.pages.get(stored.name, []), of_site.strays.get(stored.name, 0)
    known = len(pages) + strays
    with_history = [PageAddress(stored.site, page.url) for page in evenly_spaced(pages, _PAGES_WITH_HISTORY)]
    history: dict[str, list[Page]] = defaultdict(list)
    for version in store.versions_at(with_history):
        history[version.url].append(version)
    versions = [version for page in pages for version in history.get(page.url, (page,))]
    try:
        found, looked_at, working = choose(loaded(stored).wrapper, versions, k, name=stored.name)
    except UsageError as error:
        return Watched(stored.name, stored.version, None, str(error), known, known)
    store.save_watch(stored.name, stored.site, stored.version, watch_to_json(found))
    fruitless = strays + round(len(pages) * (1 - working / looked_at))  # of many pages, some were looked at
    return Watched(stored.name, stored.version, found, "", known, fruitless)


def check_watches(
    store: Store,
    names: Collection[str] = (),
    fresh: Iterable[Page] | None = None,
    threshold: float = CHANGE_THRESHOLD,
    on_wrapper: Callable[[int], object] = lambda _: None,
    fetched: Fetched | None = None,
) -> list[Checked]:
    """Hold the bellwethers of wrappers against their pages as they are now, and keep what came of it.

    With `fresh` pages given they are compared instead of the stored ones, and nothing is kept. If they were
    `fetched` into the store, no others are compared: of those it is not known how they are now. `on_wrapper`
    is called when a wrapper is done, with the number of pages that were compared.
    """
    chosen = chosen_watches(store, names)
    if fresh is not None:
        watches = {name: stored_watch(store, name).watch for name in chosen}
        wanted = {one.page.url for watch in watches.values() for one in watch.bellwethers}
        pages = [page for page in fresh if page.url in wanted]
        return [Checked(name, check(watch, pages, threshold)) for name, watch in watches.items()]
    checked: list[Checked] = []
    with store.recording("monitor", {"wrappers": chosen}) as run:
        for name in chosen:
            one = _checked(store, run, name, threshold, fetched)
            checked.append(one)
            on_wrapper(len(one.checkup.compared))
            run.counts.update(
                wrappers=1,
                changed=bool(one.checkup.changes),
                compared=len(one.checkup.compared),
                gone=len(one.checkup.gone),
            )
    return checked


def chosen_watches(store: Store, names: Collection[str]) -> list[str]:
    """The wrappers that are watched, of all unless some are named; a StoreError if there are none."""
    watched = store.watched()
    if unknown := sorted(set(names) - watched.keys()):
        raise StoreError(f"No page of the wrapper {unknown[0]} is watched: run siteloom watch first.")
    if not watched:
        raise StoreError("No pages are watched yet: run siteloom watch first.")
    return [name for name in watched if not names or name in names]


def _checked(store: Store, run: RunRecorder, name: str, threshold: float, fetched: Fetched | None) -> Checked:
    again = renew_watch(store, name)
    if again is not None and again.watch is not None:
        return Checked(name, check(again.watch, ()), is_renewed=True)
    stored = _kept_watch(store, name)
    found = watch_from_json(stored.text)
    urls = [one.page.url for one in found.bellwethers]
    if fetched is None:
        checkup = check(found, newest_pages(store, stored.site, urls), threshold)
    else:
        seen = fetched.seen.intersection(urls)
        checkup = check(found, newest_pages(store, stored.site, seen), threshold, fetched.gone)
    checked = Checked(name, checkup)
    if not checked.is_telling:
        return Checked(name, replace(checkup, changes=()))
    content = {**checkup_row(checkup), "changes": [change_row(one) for one in checkup.changes]}
    if checkup.changes or not checked.is_mostly_gone:  # else nothing speaks for its health
        store.save_check(run.id, name, stored.version, "bellwethers", not checkup.changes, content)
    if not checkup.changes:
        fuller = _refilled(store, stored.site, checkup)
        store.save_watch(name, stored.site, stored.version, watch_to_json(fuller))
    return checked


class SiteWatch(NamedTuple):
    """What is watched of a wrapper's pages, and the site that they are kept under."""

    site: str
    watch: Watch


def stored_watch(store: Store, name: str) -> SiteWatch:
    """What is watched of the pages of a wrapper, which must be watched."""
    kept = _kept_watch(store, name)
    return SiteWatch(kept.site, watch_from_json(kept.text))


def _kept_watch(store: Store, name: str) -> StoredWatch:
    found = store.watch(name)
    assert found is not None, name
    return found


def _refilled(store: Store, site: str, checkup: Checkup) -> Watch:
    """What to compare with the next time, others in the place of pages that are gone."""
    if not checkup.gone:
        return checkup.watch
    others = pages_by_wrapper(store, site).pages.get(checkup.watch.name, [])
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


def watch_again(store: Store, name: str) -> Watched | None:
    """Choose the bellwethers of a wrapper anew, if those that it has are of another version than it is.

    If this does not come to its end, the next check does it.
    """
    if not _is_watch_outdated(store, name):
        return None
    with store.recording("watch", {"wrappers": [name]}):
        return renew_watch(store, name)


def finish_watching(store: Store) -> None:
    """Choose the bellwethers anew of all wrappers that came in force without it, for someone was killed."""
    watched = store.watched()
    for stored in stored_wrappers(store):
        if watched.get(stored.name, stored.version) != stored.version:
            watch_again(store, stored.name)


def renew_watch(store: Store, name: str) -> Watched | None:
    """The same within a run that is recorded: there are as many as before."""
    if not _is_watch_outdated(store, name):
        return None
    stored = store.wrapper(name)
    of_site = pages_by_wrapper(store, stored.site)
    return _watched(store, stored, of_site, len(stored_watch(store, name).watch.bellwethers))


def _is_watch_outdated(store: Store, name: str) -> bool:
    watched = store.watched()
    return name in watched and watched[name] != store.wrapper(name).version


def go_on_watching(store: Store, name: str) -> None:
    """Watch a wrapper that is repaired in part by what was known before: what is missing is not forgotten."""
    kept, stored = store.watch(name), store.wrapper(name)
    if kept is not None:
        watching = replace(watch_from_json(kept.text), wrapper=loaded(stored).wrapper)
        store.save_watch(name, stored.site, stored.version, watch_to_json(watching))


def have_drifted(drifted: int, compared: int) -> bool:
    """Whether so many of the pages look different that the wrapper should know them."""
    return drifted > _MANY_DRIFTED * compared


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedWrapper:
    """A wrapper whose watched pages were chosen; `reason` says why there are none."""

    wrapper: str
    version: int | None
    watched_pages: int
    reason: str = ""
    warning: str = ""


def watch_new_version(context: Context, wrapper: str) -> WatchedWrapper | None:
    """Choose the watched pages of a wrapper that is new or has another version than the one that is watched.

    Learning, accepting a repair and rolling back end with this. The new version is in force already, so an
    interrupt only ends the choice: returns None, and the next check catches up. Also returns None if nothing
    was to be done.
    """
    store = context.store
    with suppress(KeyboardInterrupt):
        if wrapper in store.watched() and not _is_watch_outdated(store, wrapper):
            return None
        context.progress.start("Choosing pages to watch", 1, "wrapper")
        watched = watch_again(store, wrapper) or watch_wrappers(store, [wrapper])[0]
        return WatchedWrapper(
            wrapper=watched.wrapper,
            version=watched.version,
            watched_pages=len(watched.watch.bellwethers) if watched.watch else 0,
            reason=watched.reason,
            warning=watched.warning,
        )
    return None
