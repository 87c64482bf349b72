"""monitor: fetch watched pages again, run the change tests, store checks, raise alarms."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from siteloom.core.errors import SourceError, StoreError, UsageError
from siteloom.core.model import Change, ChangeTest, Failure, Page, Resource, Skipped
from siteloom.core.urls import site_of
from siteloom.core.wording import plural
from siteloom.maintenance.alarms import change_row, raise_alarm
from siteloom.maintenance.change_tests import Checkup, check
from siteloom.maintenance.watch_file import watch_to_json
from siteloom.maintenance.watched_pages import Watch, refilled
from siteloom.operations.context import Context
from siteloom.operations.page_import import import_pages
from siteloom.operations.request_fields import NOT_STORED, Site, Unstored, Wrappers
from siteloom.operations.stored_wrappers import newest_pages, pages_by_wrapper
from siteloom.operations.watch import requested_wrappers, reselect_within_run, stored_watch
from siteloom.sources.crawling.crawl_source import NOT_MODIFIED, Crawl
from siteloom.sources.crawling.url_filters import ALLOWING_PRIVATE, PRIVATE, checked_url
from siteloom.store.erasure.erasure import forget_after_work
from siteloom.store.queries.clusters import PageAddress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from siteloom.core.model import Validators
    from siteloom.core.settings import Settings
    from siteloom.operations.watch import SiteWatch
    from siteloom.sources.page_source import SourceItem
    from siteloom.store.queries.runs import RunRecorder
    from siteloom.store.store import Store

# If fewer watched pages can be compared, they say nothing about the site.
_LEAST_COMPARED = 3
# If more than this share of the pages look different but give the same values, a new version of the wrapper
# is worthwhile: some pages of a site always look different.
_MANY_DRIFTED = 0.1
_FETCHED = "fetched"
# With these a server says that a page does not exist any more; 403 or 503 may depend on who asks, or when.
_REMOVED = ("status 404", "status 410")

CheckState = Literal["healthy", "changed", "not-checked"]
NotCheckedReason = Literal["mostly removed", "re-selected", "too few pages", "nothing to compare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorRequest:
    """The watched pages to check: those of the wrappers named, of a site, or all.

    The newest stored versions of the pages are compared. With `fetch` the pages are fetched first: rendered
    in a browser with `render`, from private networks too with `private`, and without the browser's sandbox
    with `no_sandbox`. With `fresh_pages`, these are compared instead and nothing is stored. `watches` are
    those of a file, checked instead of those of the store. `threshold` is the share of pages above which
    something is a change, if it is not that of the settings.
    """

    wrappers: Wrappers = ()
    site: Site | None = None
    fetch: bool = False
    render: bool = False
    private: bool = False
    no_sandbox: bool = False
    threshold: float | None = None
    watches: tuple[Watch, ...] = ()
    fresh_pages: Iterable[Page] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a change test has found: on `share` of the pages, the attributes fail the test."""

    test: ChangeTest
    attributes: tuple[str, ...]
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapperCheck:
    """What the watched pages of a wrapper have shown.

    `reason` says why the wrapper was not checked. Of the `watched` pages, `compared` were compared, `removed`
    do not exist any more, `not_checked` were not fetched again, `unreadable` could not be parsed, and
    `drifted` have another structure but give the same values. `version` is in force, `watched_version` is the
    one that the watched pages were chosen for; both are None for a watch of a file.
    """

    wrapper: str
    state: CheckState
    reason: NotCheckedReason | None
    version: int | None
    watched_version: int | None
    watched: int
    compared: int
    removed: int
    unreadable: int
    drifted: int
    findings: tuple[Finding, ...]
    warning: str
    changes: Unstored[tuple[Change, ...]] = field(default=(), metadata=NOT_STORED)
    not_checked: tuple[str, ...] = field(default=(), metadata=NOT_STORED)

    @property
    def is_mostly_removed(self) -> bool:
        """Whether more than half of the watched pages were removed at once."""
        return _is_mostly(self.removed, self.watched)

    @property
    def has_enough_pages(self) -> bool:
        """Whether enough pages were compared to say anything about the site."""
        return _is_enough(self.compared, self.watched)

    @property
    def has_drifted(self) -> bool:
        """Whether the wrapper should be taught the new structure of its pages."""
        return is_drift(self.drifted, self.compared)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchCounts:
    """How many watched pages were fetched, were not modified, were removed, or failed for which reason.

    `unreachable` are the sites of which no page could be fetched, each with its counts by reason.
    """

    fetched: int
    not_modified: int
    removed: Mapping[str, int]
    failures: Mapping[str, int]
    unreachable: Mapping[str, Mapping[str, int]]

    @property
    def warning(self) -> str:
        """A sentence about the sites that could not be reached, if there are any."""
        if not self.unreachable:
            return ""
        sites = [
            f"{site} ({', '.join(f'{reason}: {count}' for reason, count in reasons.items())})"
            for site, reasons in self.unreachable.items()
        ]
        is_private = any(PRIVATE in reasons for reasons in self.unreachable.values())
        advice = f"; {ALLOWING_PRIVATE}" if is_private else ", so try again later"
        return (
            f"No watched page could be fetched of {', '.join(sites)}: whether anything has changed there "
            f"cannot be told{advice}."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorResult:
    """What the watched pages of each wrapper have shown.

    `problems` are sentences about alarms that could not be raised, and about expired pages that could not be
    removed; neither stops the work.
    """

    run: int | None
    site: str | None
    checks: tuple[WrapperCheck, ...]
    fetched: FetchCounts | None
    problems: tuple[str, ...]


def monitor(context: Context, request: MonitorRequest) -> MonitorResult:
    """Compare watched pages with what they were, store what was observed, and raise alarms.

    A removed page is replaced by another one. Watched pages of an older version of their wrapper are selected
    again, and are compared from the next time on.
    """
    threshold = request.threshold
    if threshold is None:
        threshold = context.settings.change.threshold_share
    run: int | None = None
    problems: tuple[str, ...] = ()
    fetched: _FetchedPages | None = None
    if request.watches or request.fresh_pages is not None:
        checks, fetched = _compare_only(context, request, threshold)
    else:
        names = _watched_names(context.store, request)
        if request.fetch:
            fetched = _fetch_stored(context, request, names)
        run, checks = _check_stored(context, names, threshold, fetched)
        if request.fetch:
            problems = _remove_expired(context)
    changes = [change_row(change) for result in checks for change in result.changes]
    return MonitorResult(
        run=run,
        site=request.site,
        checks=tuple(checks),
        fetched=fetched.counts() if fetched else None,
        problems=(*problems, *raise_alarm(changes, context.settings.alarm)),
    )


def _watched_names(store: Store, request: MonitorRequest) -> list[str]:
    """The wrappers that are requested and watched; raises StoreError if there are none."""
    versions = store.watched()
    if unknown := sorted(set(request.wrappers) - versions.keys()):
        raise StoreError(f"No page of the wrapper {unknown[0]} is watched: run siteloom watch first.")
    names = list(versions)
    if request.wrappers:
        names = [name for name in names if name in request.wrappers]
    elif request.site is not None:
        of_site = {stored.name for stored in requested_wrappers(store, (), request.site)}
        names = [name for name in names if name in of_site]
        if not names:
            raise StoreError(f"No page of {request.site} is watched: watch its wrappers first.")
    if not names:
        raise StoreError("No pages are watched yet: run siteloom watch first.")
    return names


def _compare_only(
    context: Context, request: MonitorRequest, threshold: float
) -> tuple[list[WrapperCheck], _FetchedPages | None]:
    """Compare pages that were supplied, or fetched for the watches of a file; nothing is stored."""
    versions = {stored.name: stored.version for stored in context.store.wrappers()}
    watches: list[tuple[Watch, int | None]] = [(watch, None) for watch in request.watches]
    if not watches:
        saved = [stored_watch(context.store, name) for name in _watched_names(context.store, request)]
        watches = [(site_watch.watch, site_watch.version) for site_watch in saved]
    urls = [watched.page.url for watch, _ in watches for watched in watch.bellwethers]
    fetched = None
    if request.fresh_pages is not None:
        wanted = set(urls)
        pages = [page for page in request.fresh_pages if page.url in wanted]
        if not pages:
            raise SourceError(
                f"None of the {plural(len(urls), 'page')} that are watched is in the SOURCE: "
                "it must have the same URLs, fetched again."
            )
    else:
        pages, fetched = _fetch_urls(context, request, urls)
    return [
        _wrapper_check(
            check(watch, pages, threshold, fetched.removed if fetched else ()),
            version=versions.get(watch.name) if version is not None else None,
            watched_version=version,
        )
        for watch, version in watches
    ], fetched


def _check_stored(
    context: Context, names: Sequence[str], threshold: float, fetched: _FetchedPages | None
) -> tuple[int, list[WrapperCheck]]:
    """Check the newest stored versions of watched pages; of fetched ones only what was fetched is known."""
    context.progress.start("Comparing", len(names), "wrapper")
    checks = []
    with context.store.recording("monitor", {"wrappers": list(names)}) as run:
        for name in names:
            result = _check_wrapper(context.store, run, name, threshold, fetched)
            checks.append(result)
            context.progress.advance()
            run.counts.update(
                wrappers=1,
                changed=bool(result.changes),
                compared=result.compared,
                gone=result.removed,
            )
    return run.id, checks


def _check_wrapper(
    store: Store, run: RunRecorder, name: str, threshold: float, fetched: _FetchedPages | None
) -> WrapperCheck:
    version = store.wrapper(name).version
    reselected = reselect_within_run(store, name)
    if reselected is not None and reselected.watch is not None:
        return _wrapper_check(check(reselected.watch, ()), version=version, is_reselected=True)
    saved = stored_watch(store, name)
    checkup = _checkup(store, saved, threshold, fetched)
    if not _is_enough(len(checkup.compared), len(saved.watch.bellwethers)):
        checkup = replace(checkup, changes=())
    result = _wrapper_check(checkup, version=version, watched_version=saved.version)
    if not result.has_enough_pages:
        return result
    # Without a change, pages that are mostly removed are no evidence that the others are well.
    if result.changes or not result.is_mostly_removed:
        store.save_check(
            run.id, name, saved.version, "bellwethers", not result.changes, _check_content(checkup)
        )
    if not result.changes:
        store.save_watch(
            name, saved.site, saved.version, watch_to_json(_refilled(store, saved.site, checkup))
        )
    return result


def _checkup(store: Store, saved: SiteWatch, threshold: float, fetched: _FetchedPages | None) -> Checkup:
    urls = [watched.page.url for watched in saved.watch.bellwethers]
    if fetched is None:
        return check(saved.watch, newest_pages(store, saved.site, urls), threshold)
    current = fetched.current.intersection(urls)
    return check(saved.watch, newest_pages(store, saved.site, current), threshold, fetched.removed)


def _wrapper_check(
    checkup: Checkup, *, version: int | None, watched_version: int | None = None, is_reselected: bool = False
) -> WrapperCheck:
    name, watched = checkup.watch.name, len(checkup.watch.bellwethers)
    compared, removed = len(checkup.compared), len(checkup.gone)
    reason: NotCheckedReason | None = None
    if is_reselected:
        reason = "re-selected"
    elif not checkup.changes and _is_mostly(removed, watched):
        reason = "mostly removed"
    elif not checkup.changes and not _is_enough(compared, watched):
        reason = "too few pages" if compared or removed else "nothing to compare"
    warning = (
        f"{removed} of {watched} watched pages of {name} were removed: the site may have moved its "
        "pages, so crawl it again (siteloom crawl) and choose the pages to watch again (siteloom watch)."
    )
    return WrapperCheck(
        wrapper=name,
        state="changed" if checkup.changes else "not-checked" if reason else "healthy",
        reason=reason,
        version=version,
        watched_version=version if is_reselected else watched_version,
        watched=watched,
        compared=compared,
        removed=removed,
        unreadable=len(checkup.unread),
        drifted=len(checkup.drifted),
        findings=tuple(
            Finding(test=change.test, attributes=change.attributes, share=change.share)
            for change in checkup.changes
        ),
        warning=warning if _is_mostly(removed, watched) else "",
        changes=checkup.changes,
        not_checked=checkup.missing,
    )


def _is_mostly(removed: int, watched: int) -> bool:
    return 2 * removed > watched


def _is_enough(compared: int, watched: int) -> bool:
    return compared >= min(_LEAST_COMPARED, watched)


def is_drift(drifted: int, compared: int) -> bool:
    """Whether so many of the compared pages look different that the wrapper should know their structure."""
    return drifted > _MANY_DRIFTED * compared


def _check_content(checkup: Checkup) -> dict[str, Any]:
    """What the store keeps of a check."""
    return {
        "compared": len(checkup.compared),
        "gone": list(checkup.gone),
        "unread": list(checkup.unread),
        "missing": list(checkup.missing),
        "drifted": list(checkup.drifted),
        "changes": [change_row(change) for change in checkup.changes],
    }


def _refilled(store: Store, site: str, checkup: Checkup) -> Watch:
    """The watch for the next time, with other pages in the place of those removed."""
    if not checkup.gone:
        return checkup.watch
    candidates = pages_by_wrapper(store, site).pages.get(checkup.watch.name, [])
    return refilled(checkup.watch, checkup.gone, candidates)


def _remove_expired(context: Context) -> tuple[str, ...]:
    """Apply the retention settings, as every operation does that imports pages."""
    forgotten, problem = forget_after_work(context.store, context.settings.retention)
    if forgotten.counts:
        counts = ", ".join(f"{count:,} {name}" for name, count in forgotten.counts.items())
        context.progress.message(f"Removed, as the settings of retention say: {counts}.")
    return (problem,) if problem else ()


@dataclass(frozen=True, slots=True)
class _FetchedPages:
    """The outcome of each URL that was fetched again: `fetched`, `not modified`, or why there is no page."""

    outcomes: Mapping[str, str]

    @property
    def current(self) -> set[str]:
        """The URLs of pages whose current version is known."""
        return {url for url, outcome in self.outcomes.items() if outcome in (_FETCHED, NOT_MODIFIED)}

    @property
    def removed(self) -> set[str]:
        """The URLs of pages that do not exist any more, as their server says."""
        return {url for url, outcome in self.outcomes.items() if outcome in _REMOVED}

    def counts(self) -> FetchCounts:
        """The outcomes as counts."""
        counts = Counter(self.outcomes.values())
        reachable = {site_of(url) for url in self.current | self.removed}
        unreachable: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for url, outcome in self.outcomes.items():
            if (site := site_of(url)) not in reachable:
                unreachable[site][outcome] += 1
        return FetchCounts(
            fetched=counts.pop(_FETCHED, 0),
            not_modified=counts.pop(NOT_MODIFIED, 0),
            removed={reason: counts.pop(reason) for reason in _REMOVED if reason in counts},
            failures=dict(counts.most_common()),
            unreachable={site: dict(reasons.most_common()) for site, reasons in unreachable.items()},
        )

    def require_any(self) -> None:
        """Raise SourceError if nothing is known of any page, so that there is nothing to compare."""
        if not self.current and not self.removed and (warning := self.counts().warning):
            raise SourceError(warning)


def _fetch_stored(context: Context, request: MonitorRequest, names: Sequence[str]) -> _FetchedPages:
    """Fetch the watched pages of wrappers and import them into the store.

    Servers are told which versions the store has, and send only what differs.
    """
    store, progress = context.store, context.progress
    by_site: defaultdict[str | None, dict[str, PageAddress]] = defaultdict(dict)
    for name in names:
        saved = stored_watch(store, name)
        for watched in saved.watch.bellwethers:
            url = watched.page.url
            # Pages stored under the site of their URLs are fetched together, so that sites take turns.
            by_site[None if saved.site == site_of(url) else saved.site][url] = PageAddress(saved.site, url)
    outcomes: dict[str, str] = {}
    progress.start("Fetching")
    for site, addresses in by_site.items():
        settings = _fetch_settings(context.settings, request)
        import_pages(
            store,
            [_StoredVisit(store, addresses, settings, request.render, outcomes)],
            site=site,
            jobs=settings.run.jobs,
            names=["watched pages, from the web"],
            on_item=lambda _: progress.advance(),
            verb="fetch",
        )
    fetched = _FetchedPages(outcomes)
    fetched.require_any()
    return fetched


def _fetch_urls(
    context: Context, request: MonitorRequest, urls: Sequence[str]
) -> tuple[list[Page], _FetchedPages]:
    """Fetch watched pages without storing them."""
    outcomes: dict[str, str] = {}
    pages = []
    settings = _fetch_settings(context.settings, request)
    context.progress.start("Fetching")
    for item in _visit(list(dict.fromkeys(urls)), settings, request.render, {}, outcomes):
        context.progress.advance()
        if isinstance(item, Page):
            pages.append(item)
    fetched = _FetchedPages(outcomes)
    fetched.require_any()
    return pages, fetched


def _fetch_settings(settings: Settings, request: MonitorRequest) -> Settings:
    crawl = settings.crawl
    return replace(
        settings,
        crawl=replace(
            crawl,
            private=crawl.private or request.private,
            sandbox=crawl.sandbox and not request.no_sandbox,
        ),
    )


@dataclass(frozen=True, slots=True)
class _StoredVisit:
    """A page source that fetches stored pages again, and notes the outcome of each."""

    store: Store
    addresses: Mapping[str, PageAddress]
    settings: Settings
    renders: bool
    outcomes: dict[str, str]

    def read(self) -> Iterator[SourceItem]:
        validators = self.store.validators(self.addresses.values())
        for item in _visit(list(self.addresses), self.settings, self.renders, validators, self.outcomes):
            if isinstance(item, Skipped) and item.reason == NOT_MODIFIED:
                # The page was observed now, which marks its stored version as the newest.
                (page,) = newest_pages(self.store, self.addresses[item.url].site, [item.url])
                yield replace(page, fetched_at=datetime.now(UTC))
            else:
                yield item

    def shards(self) -> Sequence[_StoredVisit]:
        return (self,)


def _visit(
    urls: Sequence[str],
    settings: Settings,
    renders: bool,
    validators: Mapping[str, Validators],
    outcomes: dict[str, str],
) -> Iterator[SourceItem]:
    web_urls = []
    for url in urls:
        if _is_web_address(url):
            outcomes[url] = "no answer"  # until one arrives
            web_urls.append(url)
        else:
            outcomes[url] = "no address of the web"
            yield Failure(url, outcomes[url])
    if not web_urls:
        return
    crawl = Crawl(
        tuple(web_urls),
        len(web_urls),
        settings=settings.crawl,
        pages=settings.pages,
        # What scripts make of a page may change while all that the server sends stays the same.
        validators={} if renders else validators,
        as_asked=True,
        renders=renders,
    )
    for item in crawl.read():
        if not isinstance(item, Resource):
            outcomes[item.url] = _FETCHED if isinstance(item, Page) else item.reason
        yield item


def _is_web_address(url: str) -> bool:
    """Whether a page can be fetched: pages imported from a folder may have addresses that only it knows."""
    try:
        return checked_url(url) == url
    except UsageError:
        return False
