"""Extract the records of whole crawls: from each shard by wrapper, then flag duplicates per wrapper."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.core.model import Page
from siteloom.core.table_files import load_pyarrow
from siteloom.core.urls import site_of
from siteloom.engines.engine import group_batches
from siteloom.engines.whole_crawls.crawl_run import place_of, row_schema
from siteloom.engines.whole_crawls.output_folder import without_folder
from siteloom.extraction.extractor import ShardExtraction, add_tally, tally_from, tally_rows
from siteloom.extraction.record_formats import record_tables
from siteloom.extraction.record_rows import flag_duplicates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from siteloom.core.settings import ParseSettings
    from siteloom.engines.whole_crawls.crawl_run import BulkRun, Counts, Outbox
    from siteloom.extraction.extractor import Tally
    from siteloom.extraction.record_rows import Row
    from siteloom.html.time_limit import Lost
    from siteloom.sources.page_source import PageSource, SourceItem
    from siteloom.wrappers.named_wrappers import WrapperText

_ROWS_OF_A_FILE = 10_000  # of some kilobytes each

# The counts of all shards are collected on one machine, so they must be small: of the shapes of URLs without
# a wrapper, only the most frequent ones are kept.
_SHAPES_OF_A_SHARD = 32


def extract_in_bulk(
    run: BulkRun, shards: Sequence[PageSource], wrappers: Sequence[WrapperText], limits: ParseSettings
) -> Counts:
    """Extract the records of all pages, and write them by site with the failures and counts."""
    schema = row_schema(("record", load_pyarrow().string()))
    counted = run.shards("extract", partial(_Extracting, wrappers, limits), shards, schema)
    attributes = list(
        dict.fromkeys(name for wrapper_text in wrappers for name in wrapper_text.loaded().wrapper.attributes)
    )
    written = run.partitions("records", partial(_Writing, attributes), of="extract")
    total: Tally = Counter()
    for counts in counted:
        add_tally(total, tally_from(json.loads(counts["tally"])))
    return run.finish(
        {
            "pages": total["pages",],
            "tally": tally_rows(total),
            "duplicates": sum(counts["duplicates"] for counts in written),
        }
    )


class _Extracting:
    """Sends the records of a shard to their wrapper."""

    def __init__(self, wrappers: Sequence[WrapperText], limits: ParseSettings) -> None:
        self._extract = ShardExtraction(wrappers, limits)

    def __call__(self, shard: PageSource, lost: Lost, step: Callable[[int], None], out: Outbox) -> None:
        extraction = self._extract(_WithFolders(shard), lost, step)
        for number, line in enumerate(extraction.lines):
            out.send(line.wrapper, place_of(out.number, number), record=line.content)
        out.failures.extend(extraction.failures)
        tally: Tally = Counter()
        add_tally(tally, Counter(dict(extraction.tally.most_common())), _SHAPES_OF_A_SHARD)
        out.counts["tally"] = json.dumps(tally_rows(tally))  # a text takes a tenth of the memory


class _WithFolders(NamedTuple):
    """A shard without pages of sites that cannot have a folder."""

    shard: PageSource

    def read(self) -> Iterator[SourceItem]:
        return (
            (without_folder(item.url) or item) if isinstance(item, Page) else item
            for item in self.shard.read()
        )

    def shards(self) -> Sequence[PageSource]:
        return (self,)


class _Writing:
    """Writes the records of wrappers, in the order of pages."""

    def __init__(self, attributes: Sequence[str]) -> None:
        self._table = record_tables(attributes)

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        waiting: defaultdict[str, list[Row]] = defaultdict(list)
        duplicates = 0
        for _, of_wrapper in group_batches("key", batches):
            for row in flag_duplicates(_rows(of_wrapper)):
                site = site_of(row["url"])
                waiting[site].append(row)
                duplicates += row["duplicate_of"] is not None
                if len(waiting[site]) >= _ROWS_OF_A_FILE:
                    out.write(site, self._table(waiting.pop(site)))
        for site, rows in waiting.items():
            out.write(site, self._table(rows))
        out.counts["duplicates"] = duplicates


def _rows(batches: Iterable[Any]) -> Iterator[Row]:
    return (json.loads(text) for batch in batches for text in batch.column("record").to_pylist())
