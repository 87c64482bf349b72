"""The pages of shards, as all stages read them."""

from __future__ import annotations

import logging
from collections import Counter
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from typing import TYPE_CHECKING, Any

import numpy as np

from siteloom.arrow import load_pyarrow
from siteloom.extraction import LOST
from siteloom.model import Failure, Page, Skipped
from siteloom.store.schema import in_utc
from siteloom.store.writer import refusal
from siteloom.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from numpy.typing import NDArray

    from siteloom.bulk.run import Outbox
    from siteloom.engine import Lost
    from siteloom.pages import PageSource

_log = logging.getLogger(__name__)

BROKEN = "processing failed"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def shard_pages(
    shard: PageSource,
    lost: Lost,
    step: Callable[[int], None],
    out: Outbox,
    only: Container[int] | None = None,
) -> Iterator[tuple[int, Page]]:
    """The pages of a shard, each with its number among all that is in the shard.

    Whatever gives no page is a failure in `out`, and so is a page that a store would refuse. At the end the
    counts of `out` have `pages`, `skipped`, and `failed` by reason, those included that were added meanwhile.
    If `only` items of some numbers are wanted, nothing is told of others: an earlier stage has done so.
    """
    counts = Counter(pages=0, skipped=0)
    step(0)
    for number, item in enumerate(shard.read()):
        match item:
            case _ if only is not None and number not in only:
                pass
            case Page():
                counts["pages"] += 1
                if number in lost.steps:
                    out.failures.append(Failure(item.url, LOST, f"the process {lost.steps[number]}"))
                elif failure := refusal(item, site_of(item.url)):
                    out.failures.append(failure)
                else:
                    yield number, item
            case Failure():
                out.failures.append(item)
            case Skipped():
                counts["skipped"] += 1
            case _:
                pass  # a stylesheet or an image
        step(number + 1)  # to read it is part of it
    out.counts |= counts
    out.counts["failed"] = Counter(failure.reason for failure in out.failures)


def broken(page: Page, error: Exception) -> Failure:
    """What becomes of a page at which a stage has failed: it must not end the work on millions."""
    _log.debug("a stage failed on %s", page.url, exc_info=error)
    return Failure(page.url, BROKEN, repr(error))


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
    """Of rows of pages of one site those that a store of these pages would keep, in the order of places.

    `rows` is a table of Arrow. It is each content of each URL once, where it came first.
    """
    if rows.num_rows < 2:  # alone it is the only one
        return rows
    rows = rows.sort_by("place")
    _, first = np.unique(_codes(rows["url"]) * rows.num_rows + _codes(rows["content"]), return_index=True)
    return rows.take(np.sort(first))


def newest(rows: Any) -> Any:
    """Of rows of pages of one site those that a store of these pages would give, in the order of places.

    `rows` is a table of Arrow. Of each URL it is the content that was seen last, and of that the row that
    came first. Of those seen at the same time the one that came later is newer, and what comes without a
    time is taken for seen when it is read, after all that have one.
    """
    if rows.num_rows < 2:
        return rows
    rows = rows.sort_by("place")
    url, content = _codes(rows["url"]), _codes(rows["content"])
    _, first, version = np.unique(url * rows.num_rows + content, return_index=True, return_inverse=True)
    last_seen = np.zeros(len(first), np.int64)
    np.maximum.at(last_seen, version, _ranks(rows["seen"]))
    order = np.lexsort((first, last_seen, url[first]))
    is_last_of_url = np.diff(url[first][order], append=-1) != 0
    return rows.take(np.sort(first[order][is_last_of_url]))


def _codes(column: Any) -> NDArray[np.int64]:
    """A number for each different value."""
    codes: NDArray[np.int64] = column.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    return codes


def _ranks(seen: Any) -> NDArray[np.int64]:
    """Numbers in the order of times; rows without one follow, one after the other."""
    has_time = seen.is_valid().to_numpy()
    different, order = np.unique(seen.fill_null(0).to_numpy(), return_inverse=True)
    ranks: NDArray[np.int64] = np.where(has_time, order, len(different) + np.arange(len(order)))
    return ranks
