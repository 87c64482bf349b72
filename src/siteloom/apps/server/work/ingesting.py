"""Jobs that take pages in: what was uploaded, and where it is worth it their templates at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from siteloom.apps.server.job_kinds import Argument, JobKind, Report
from siteloom.apps.server.upload_folder import find_upload
from siteloom.apps.server.views.sites import NextStep, site_summaries
from siteloom.apps.server.work.wrapping import find_templates
from siteloom.core.errors import SourceError, UsageError
from siteloom.core.model import Failure, Page
from siteloom.core.urls import site_of
from siteloom.html.visible_text import normalize
from siteloom.operations.context import Context
from siteloom.operations.ingest import ingest
from siteloom.operations.monitor import MonitorRequest, monitor
from siteloom.sources.html_folder import INDEX_FILE
from siteloom.sources.open_sources import open_source
from siteloom.sources.source_formats import file_format
from siteloom.store.erasure.erasure import forget_after_work

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from siteloom.core.settings import PagesSettings, Settings
    from siteloom.operations.ingest import IngestReport, IngestVerb
    from siteloom.sources.page_source import PageSource, SourceItem
    from siteloom.store.store import Store

_FAILURES_TOLD = 5
# More than fit on a screen; all of them are on the first page.
_SITES_TOLD = 50


def ingest_upload(
    store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report
) -> dict[str, Any]:
    """Put the pages of an upload into the workspace, and find the templates of sites that have none."""
    upload = find_upload(store.folder.absolute(), arguments["upload"])
    sources = sources_of(upload.files, settings.pages, with_resources=bool(arguments["resources"]))
    address: str | None = arguments["url"]
    if address is not None:
        sources = [_AtAddress(_only_page(sources), address)]
    arrivals = Arrivals(store, arguments["site"], report)
    names = sorted(str(file.relative_to(upload.files)) for file in _files(upload.files))
    told = arrivals.take_in(sources, names[:_FAILURES_TOLD], settings)
    upload.remove()
    return {**told, **arrivals.follow_up(settings, with_templates=bool(arguments["cluster"]))}


def sources_of(folder: Path, settings: PagesSettings, *, with_resources: bool) -> list[PageSource]:
    """What is in the folder of an upload: folders with an index, and all other files.

    Their pages are told of as if the folder were the root of the disk: where it really is, is nobody's
    business, and would differ the next time.
    """
    indexed = [file.parent for file in _files(folder) if file.name == INDEX_FILE]
    whole = [one for one in indexed if not any(other in one.parents for other in indexed)]
    single = [
        file
        for file in _files(folder)
        if file_format(file.name) is not None and not any(one in file.parents for one in whole)
    ]
    # A folder with an index may have archives beside its pages, which it does not read itself.
    beside = [file for one in whole for file in _files(one) if file_format(file.name) not in (None, "HTML")]
    try:
        return [
            _Uploaded(open_source(place, settings, with_resources=with_resources), folder)
            for place in (*whole, *beside, *single)
        ]
    except SourceError as error:
        raise SourceError(_as_root(folder, str(error))) from error


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def _only_page(sources: Sequence[PageSource]) -> PageSource:
    if len(sources) != 1:
        raise UsageError("Only a single page can be given an address: upload one HTML file.")
    return sources[0]


@dataclass(frozen=True, slots=True)
class _Uploaded:
    """A source in the folder of an upload, which is told of as if it were the root."""

    source: PageSource
    folder: Path

    def read(self) -> Iterator[SourceItem]:
        """All that is in the source."""
        for item in self.source.read():
            if isinstance(item, Failure):
                yield replace(item, url=self._told(item.url), detail=self._told(item.detail))
            else:
                yield replace(item, url=self._told(item.url))

    def shards(self) -> Sequence[_Uploaded]:
        """The shards of the source."""
        return [_Uploaded(shard, self.folder) for shard in self.source.shards()]

    def _told(self, text: str) -> str:
        return _as_root(self.folder, text)


def _as_root(folder: Path, text: str) -> str:
    """A text in which a folder is the root of the disk, in paths and in URLs of files."""
    return text.replace(f"{folder.as_uri()}/", "file:///").replace(f"{folder}/", "/")


@dataclass(frozen=True, slots=True)
class _AtAddress:
    """A source of one page whose address is known to who sent it."""

    source: PageSource
    url: str

    def read(self) -> Iterator[SourceItem]:
        """The page; more than one would be versions of it that never were."""
        pages = 0
        for item in self.source.read():
            pages += isinstance(item, Page)
            if pages > 1:
                raise UsageError("Only a single page can be given an address: upload one HTML file.")
            yield replace(item, url=self.url) if isinstance(item, Page) else item

    def shards(self) -> Sequence[_AtAddress]:
        """The source itself."""
        return (self,)


class Arrivals:
    """Pages that come into a store, counted by site, and what is best done with them next."""

    def __init__(self, store: Store, site: str | None, report: Report) -> None:
        self._store = store
        self._site = site
        self._report = report
        self._before = {one.name: one.pages for one in store.sites()}
        self._pages: Counter[str] = Counter()
        self._first: str | None = None
        self._has_news = False
        self._has_changed = False

    def take_in(
        self,
        sources: Sequence[PageSource],
        names: Sequence[str],
        settings: Settings,
        verb: IngestVerb = "ingest",
    ) -> dict[str, Any]:
        """Put the pages of sources into the store; what became of them, as JSON."""
        self._report(0, None, "Pages are read.")
        taken = ingest(
            self._store,
            sources,
            site=self._site,
            jobs=settings.run.jobs,
            names=names,
            on_item=self._count,
            verb=verb,
        )
        if not self._pages or not taken.kept:
            raise SourceError(f"No page could be read: {self._why_none(taken)}.")
        self._has_news = bool(taken.new or taken.changed)
        self._has_changed = bool(taken.changed)
        return {
            "new": taken.new,
            "changed": taken.changed,
            "unchanged": taken.unchanged,
            "failures": dict(taken.failures),
            "skipped": dict(taken.skipped),
            "first_failures": [
                {"url": one.url, "reason": one.reason, "detail": one.detail}
                for one in islice(self._store.failures(taken.run_id), _FAILURES_TOLD)
            ],
        }

    def follow_up(self, settings: Settings, *, with_templates: bool) -> dict[str, Any]:
        """Find the templates of sites that have none, if that is wanted; what there is now, as JSON.

        Where pages have come again that are watched, it is looked whether they have changed.
        """
        forget_after_work(self._store, settings.retention)
        known = {one.name: one.pages for one in self._store.sites()}
        sites = [site for site in self._pages if site in known]  # the name of one may have been too long
        if with_templates:
            clustered = {one.site for one in self._store.cluster_summaries()}
            # One run for all of them: a crawl may have thousands.
            if unseen := [site for site in sites if site not in clustered]:
                pages = sum(known[site] for site in unseen)
                find_templates(
                    self._store,
                    settings,
                    unseen[0] if len(unseen) == 1 else unseen,
                    pages,
                    self._report,
                )
        if self._has_changed:
            watched = self._store.watched()
            of_watched = {one.site for one in self._store.wrappers() if one.name in watched}
            for site in (one for one in sites if one in of_watched):
                monitor(Context(store=self._store, settings=settings), MonitorRequest(site=site))
        told: list[dict[str, Any]] = []
        for summary in site_summaries(self._store):
            if summary.site not in self._pages:
                continue
            step = summary.next_step
            if summary.wrappers and self._has_news and step.kind != "repair":
                step = NextStep(kind="extract", text="Extract its records")
            told.append(
                {
                    "site": summary.site,
                    "pages": self._pages[summary.site],
                    "new": summary.pages - self._before.get(summary.site, 0),
                    "templates": summary.templates,
                    "next_step": step.model_dump(),
                }
            )
        return {
            "site": sites[0] if len(sites) == 1 else None,
            "site_count": len(sites),
            "sites": sorted(told, key=lambda one: -one["pages"])[:_SITES_TOLD],
            "pages": self._pages.total(),
            "url": self._first if self._pages.total() == 1 else None,
        }

    def _count(self, item: SourceItem) -> None:
        if isinstance(item, Page):
            self._first = self._first or item.url
            self._pages[self._site or site_of(item.url)] += 1
            read = self._pages.total()
            self._report(read, None, f"{read:,} page{'s' * (read != 1)} read")

    def _why_none(self, taken: IngestReport) -> str:
        failure: Failure | None = next(self._store.failures(taken.run_id), None)
        if failure is not None:
            detail = normalize(failure.detail)  # what libraries tell may have several lines
            return f"{failure.reason} ({detail})" if detail else failure.reason
        if taken.skipped:
            return f"all {sum(taken.skipped.values()):,} documents were skipped"
        return "there is nothing in it"


KINDS = {
    "ingest": JobKind(
        ingest_upload,
        "Take in pages",
        {
            "upload": Argument("text", is_needed=True),
            "name": Argument("text"),
            "site": Argument("text"),
            "url": Argument("url"),
            "resources": Argument("flag"),
            "cluster": Argument("flag"),
        },
    ),
}
