"""The pages of shards, as all stages read them."""

from __future__ import annotations

import logging
from collections import Counter
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from typing import TYPE_CHECKING, Any

import numpy as np

from siteloom.arrow import load_pyarrow
from siteloom.bulk.folder import without_folder
from siteloom.model import Failure, Page, Skipped
from siteloom.store.schema import in_utc
from siteloom.store.writer import refusal
from siteloom.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from siteloom.bulk.run import Counts, Outbox
    from siteloom.engine import Lost
    from siteloom.pages import PageSource, SourceItem

_log = logging.getLogger(__name__)

BROKEN = "processing failed"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def numbered_items(shard: PageSource, step: Callable[[int], None]) -> Iterator[tuple[int, SourceItem]]:
    """All that is in a shard, by number; each is a step, and to read it is part of that."""
    step(0)
    for number, item in enumerate(shard.read()):
        yield number, item
        step(number + 1)


def shard_pages(
    shard: PageSource, lost: Lost, step: Callable[[int], None], out: Outbox
) -> Iterator[tuple[int, Page]]:
    """The pages of a shard, each with its number among all that is in the shard.

    Whatever gives no page is a failure in `out`, and so is a page that a store would refuse. At the end the
    counts of `out` have `pages`, `skipped`, and `failed` by reason, those included that were added meanwhile.
    """
    counts = Counter(pages=0, skipped=0)
    for number, item in numbered_items(shard, step):
        match item:
            case Page():
                counts["pages"] += 1
                if number in lost.steps:
                    out.failures.append(lost.failure(number, item.url))
                elif failure := refusal(item, site_of(item.url)) or without_folder(item.url):
                    out.failures.append(failure)
                else:
                    yield number, item
            case Failure():
                out.failures.append(item)
            case Skipped():
                counts["skipped"] += 1
            case _:
                pass  # a stylesheet or an image
    out.counts |= counts
    out.counts["failed"] = failed_by_reason(out.failures)


def broken(url: str, error: Exception) -> Failure:
    """What becomes of a page, or a cluster, at which a stage has failed: it must not end all the work."""
    _log.debug("a stage failed on %s", url, exc_info=error)
    return Failure(url, BROKEN, repr(error))


def failed_by_reason(failures: Iterable[Failure]) -> Counter[str]:
    """How many failures have which reason."""
    return Counter(failure.reason for failure in failures)


def total(counted: Iterable[Counts], *names: str) -> Counts:
    """The sums of what was counted by some names, and of what has `failed` by reason."""
    sums = Counter(dict.fromkeys(names, 0))
    failed: Counter[str] = Counter()
    for counts in counted:
        sums.update({name: counts.get(name, 0) for name in names})
        failed.update(counts.get("failed", {}))
    return {**sums, "failed": failed}


def version_columns() -> tuple[tuple[str, Any], ...]:
    """The columns of rows that `newest` tells versions of pages by, besides `place`."""
    pa = load_pyarrow()
    return (("url", pa.string()), ("content", pa.binary()), ("seen", pa.int64()))


def version_cells(page: Page) -> dict[str, object]:
    """What a page has in these columns: its URL, the hash of its content, and when it was fetched."""
    seen = None if page.fetched_at is None else (in_utc(page.fetched_at) - _EPOCH) // _MICROSECOND
    # Only contents of one URL are compared. It takes half the time of what a store knows them by.
    content = sha1(page.html, usedforsecurity=False).digest()
    return {"url": page.url, "content": content, "seen": seen}


def versions(rows: Any) -> Any:
    """Of rows of pages of one site those that a store of these pages would keep.

    `rows` is a table of Arrow, in the order of places. It is each content of each URL once, where it came
    first.
    """
    if rows.num_rows < 2:  # alone it is the only one
        return rows
    _, first = np.unique(_codes(rows["url"]) * rows.num_rows + _codes(rows["content"]), return_index=True)
    return _rows_at(rows, first)


def newest(rows: Any) -> Any:
    """Of rows of pages of one site those that a store of these pages would give.

    `rows` is a table of Arrow, in the order of places. Of each URL it is the content that was seen last, and
    of that the row that came first. Of those seen at the same time the one that came later is newer, and what
    comes without a time is taken for seen when it is read, after all that have one.
    """
    if rows.num_rows < 2:
        return rows
    url, content = _codes(rows["url"]), _codes(rows["content"])
    _, first, version = np.unique(url * rows.num_rows + content, return_index=True, return_inverse=True)
    last_seen = np.zeros(len(first), np.int64)
    np.maximum.at(last_seen, version, _ranks(rows["seen"]))
    order = np.lexsort((first, last_seen, url[first]))
    is_last_of_url = np.diff(url[first][order], append=-1) != 0
    return _rows_at(rows, first[order][is_last_of_url])


def _rows_at(rows: Any, numbers: NDArray[np.int64]) -> Any:
    """Rows by their numbers, in their order. Arrow cannot take them out of columns of more than 2 GB."""
    is_wanted = np.zeros(rows.num_rows, bool)
    is_wanted[numbers] = True
    return rows.filter(load_pyarrow().array(is_wanted))


def _codes(column: Any) -> NDArray[np.int64]:
    """A number for each different value. In one piece those of a large site may be too much for Arrow."""
    chunks = column.dictionary_encode().unify_dictionaries().chunks
    codes: NDArray[np.int64] = np.concatenate([chunk.indices.to_numpy() for chunk in chunks]).astype(np.int64)
    return codes


def _ranks(seen: Any) -> NDArray[np.int64]:
    """Numbers in the order of times; rows without one follow, one after the other."""
    has_time = seen.is_valid().to_numpy()
    different, order = np.unique(seen.fill_null(0).to_numpy(), return_inverse=True)
    ranks: NDArray[np.int64] = np.where(has_time, order, len(different) + np.arange(len(order)))
    return ranks
