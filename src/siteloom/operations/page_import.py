"""Import the pages of sources into a store: the part of `ingest`, `crawl` and `monitor` that is the same."""

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

ImportVerb = Literal["ingest", "crawl", "fetch"]
"""The verb that a run which imports pages is recorded as."""

# In the order in which they are shown.
_OUTCOMES = ("new", "changed", "unchanged", "failed", "skipped")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """How many documents were read, by outcome.

    `resources` is how many of the new, changed and unchanged documents are no pages. `added_pages` and
    `changed_pages` count new and changed pages by site.
    """

    run_id: int
    new: int
    changed: int
    unchanged: int
    bytes: int
    failures: Mapping[str, int]
    skipped: Mapping[str, int]
    resources: int
    added_pages: Mapping[str, int]
    changed_pages: Mapping[str, int]

    @property
    def kept(self) -> int:
        """Documents of the sources that are in the store now, whether or not they were before."""
        return self.new + self.changed + self.unchanged


def import_pages(
    store: Store,
    sources: Iterable[PageSource],
    *,
    site: str | None = None,
    jobs: int = 1,
    names: Iterable[str] = (),
    on_item: Callable[[SourceItem], object] = lambda _: None,
    verb: ImportVerb = "ingest",
    on_commit: Callable[[], object] = lambda: None,
) -> ImportReport:
    """Put the pages of sources into the store; those it has already are not stored again.

    Each page goes to the site of its URL, or to `site` if that is given. `names` are the sources as the user
    wrote them, for the record of runs. `on_item` is called for everything that is read.

    Pages from the web arrive slowly; they are those of a `crawl`, or the watched pages of a `fetch`. While
    these verbs wait for pages, others can write to the store, except for another run of the same verb.
    `on_commit` is called each time that everything read so far is safely in the store.
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
    _log.info("ingest ends: %s", ", ".join(f"{run.counts[outcome]} {outcome}" for outcome in _OUTCOMES))
    return ImportReport(
        run_id=run.id,
        new=run.counts["new"],
        changed=run.counts["changed"],
        unchanged=run.counts["unchanged"],
        bytes=size,
        failures=dict(run.failures_by_reason),
        skipped=dict(skipped),
        resources=resources,
        added_pages=dict(writer.added_pages),
        changed_pages=dict(writer.changed_pages),
    )


def note_failure(run: RunRecorder, failure: Failure) -> None:
    """Count a failure with its run, and log it."""
    _log.warning("failed %s: %s (%s)", failure.url, failure.reason, failure.detail)
    run.fail(failure)
