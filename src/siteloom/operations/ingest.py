"""Pages into the store."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from siteloom.core.model import Failure, Page, Resource, Skipped
from siteloom.core.urls import site_of
from siteloom.sources.open_sources import read_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from siteloom.sources.page_source import PageSource, SourceItem
    from siteloom.store.queries.runs import RunRecorder
    from siteloom.store.store import Store

_log = logging.getLogger(__name__)

IngestVerb = Literal["ingest", "crawl", "fetch"]
"""As what a run that puts pages into a store is recorded."""

# In this order they are shown.
_OUTCOMES = ("new", "changed", "unchanged", "failed", "skipped")


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What became of everything that was read.

    `resources` is how many of what was new, changed or unchanged are no pages.
    """

    run_id: int
    new: int
    changed: int
    unchanged: int
    bytes: int
    failures: Mapping[str, int]
    skipped: Mapping[str, int]
    resources: int

    @property
    def kept(self) -> int:
        """Documents of the sources that are in the store now, whether or not they were before."""
        return self.new + self.changed + self.unchanged


def ingest(
    store: Store,
    sources: Iterable[PageSource],
    *,
    site: str | None = None,
    jobs: int = 1,
    names: Iterable[str] = (),
    on_item: Callable[[SourceItem], object] = lambda _: None,
    verb: IngestVerb = "ingest",
    on_commit: Callable[[], object] = lambda: None,
) -> IngestReport:
    """Put the pages of sources into the store; those it has already are not stored again.

    Each page goes to the site of its URL, or to the one named. `names` are the
    sources as the user wrote them, for the record of runs; `on_item` is called
    for all that is read, for showing progress.

    Pages of the web, which come slowly, are those of a `crawl`, or the watched ones of
    a `fetch`: others can write to the store while they are waited for, but for another
    run of the same verb. `on_commit` is called each time that all which was read before
    is in the store for good.
    """
    skipped: Counter[str] = Counter()
    size = 0
    resources = 0
    _log.info("ingest begins: %s", ", ".join(names))
    arguments = {"sources": list(names), "site": site}
    opened = (
        store.ingesting(arguments, jobs)
        if verb == "ingest"
        else store.collecting(verb, arguments, jobs, on_commit)
    )
    with opened as (run, writer):
        run.counts.update(dict.fromkeys(_OUTCOMES, 0))
        for item in read_sources(sources):
            match item:
                case Page() | Resource():
                    if failure := writer.add(item, site or site_of(item.url)):
                        note_failure(run, failure)
                    else:
                        size += len(item.html if isinstance(item, Page) else item.body)
                        resources += isinstance(item, Resource)
                case Failure():
                    note_failure(run, item)
                    writer.flush_when_due()
                case Skipped():
                    _log.debug("skipped %s: %s", item.url, item.reason)
                    run.counts["skipped"] += 1
                    skipped[item.reason] += 1
                    writer.flush_when_due()
            on_item(item)
    _log.info("ingest ends: %s", ", ".join(f"{run.counts[what]} {what}" for what in _OUTCOMES))
    return IngestReport(
        run.id,
        run.counts["new"],
        run.counts["changed"],
        run.counts["unchanged"],
        size,
        dict(run.failures_by_reason),
        dict(skipped),
        resources,
    )


def note_failure(run: RunRecorder, failure: Failure) -> None:
    """Count a failure with its run, and tell of it in the log."""
    _log.warning("failed %s: %s (%s)", failure.url, failure.reason, failure.detail)
    run.fail(failure)
