"""The stages in order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from siteloom.model import Failure, Page, Resource, Skipped
from siteloom.pages import read_sources
from siteloom.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from siteloom.pages import PageSource, SourceItem
    from siteloom.store import Store

# In this order they are shown.
_OUTCOMES = ("new", "changed", "unchanged", "failed", "skipped")


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What became of everything that was read."""

    run_id: int
    new: int
    changed: int
    unchanged: int
    bytes: int
    failures: Mapping[str, int]
    skipped: Mapping[str, int]

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
) -> IngestReport:
    """Put the pages of sources into the store; those it has already are not stored again.

    Each page goes to the site of its URL, or to the one named. `names` are the
    sources as the user wrote them, for the record of runs; `on_item` is called
    for all that is read, for showing progress.
    """
    skipped: Counter[str] = Counter()
    size = 0
    with store.ingesting({"sources": list(names), "site": site}, jobs) as (run, writer):
        run.counts.update(dict.fromkeys(_OUTCOMES, 0))
        for item in read_sources(sources):
            match item:
                case Page() | Resource():
                    if failure := writer.add(item, site or site_of(item.url)):
                        run.fail(failure)
                    else:
                        size += len(item.html if isinstance(item, Page) else item.body)
                case Failure():
                    run.fail(item)
                case Skipped():
                    run.counts["skipped"] += 1
                    skipped[item.reason] += 1
            on_item(item)
    return IngestReport(
        run.id,
        run.counts["new"],
        run.counts["changed"],
        run.counts["unchanged"],
        size,
        dict(run.failures_by_reason),
        dict(skipped),
    )
