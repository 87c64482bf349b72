"""Jobs that fetch pages from the web."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteloom.apps.server.job_kinds import Argument, JobKind, Report
from siteloom.apps.server.work.ingesting import Arrivals
from siteloom.core.errors import UsageError
from siteloom.sources.crawling.crawl_source import Crawl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteloom.core.settings import Settings
    from siteloom.store.store import Store

_NAMES_TOLD = 5


def fetch(store: Store, settings: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Fetch pages into the workspace, and find the templates of sites that have none.

    Links are followed from a start page, and if it is wanted from other URLs, too.
    """
    start: str | None = arguments["start"]
    urls = tuple(dict.fromkeys([*([start] if start else ()), *(arguments["urls"] or ())]))
    if not urls:
        raise UsageError("There is nothing to fetch: name URLs, or a start page.")
    follows = start is not None or bool(arguments["follow"])
    wanted: int | None = arguments["most_pages"]
    if wanted is not None and wanted < 1:
        raise UsageError("At least one page must be fetched: raise most_pages.")
    most_pages = wanted or (max(len(urls), settings.crawl.most_pages) if follows else len(urls))

    def tell(done: int, total: int | None, what: str) -> None:
        if total is None:  # while pages come in
            report(done, most_pages, "pages fetched")
        else:
            report(done, total, what)

    arrivals = Arrivals(store, None, tell)
    crawl = Crawl(urls, most_pages, follows, settings.crawl, settings.pages)
    told = arrivals.take_in([crawl], urls[:_NAMES_TOLD], settings, "crawl")
    return {**told, **arrivals.follow_up(settings, with_templates=bool(arguments["cluster"]))}


KINDS = {
    "fetch": JobKind(
        fetch,
        "Fetch pages",
        {
            "urls": Argument("urls"),
            "start": Argument("url"),
            "follow": Argument("flag"),
            "most_pages": Argument("number"),
            "cluster": Argument("flag"),
        },
    ),
}
