"""Read the pages of shards, exchange them between stages, and read requested pages again."""

from __future__ import annotations

import logging
import marshal
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import zstandard

from siteloom.core.errors import SourceError
from siteloom.core.model import Failure, Page, Skipped, in_utc
from siteloom.core.table_files import load_pyarrow
from siteloom.core.urls import site_of
from siteloom.engines.engine import group_batches
from siteloom.engines.whole_crawls.crawl_run import shard_and_item
from siteloom.engines.whole_crawls.output_folder import without_folder
from siteloom.sources.page_source import refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from numpy.typing import NDArray

    from siteloom.engines.whole_crawls.crawl_run import BulkRun, Counts, Outbox, StoredContents
    from siteloom.html.time_limit import Lost
    from siteloom.sources.page_source import PageSource, SourceItem


_log = logging.getLogger(__name__)

BROKEN = "processing failed"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def numbered_items(shard: PageSource, step: Callable[[int], None]) -> Iterator[tuple[int, SourceItem]]:
    """Yield the numbered items of a shard; each is a step, which includes reading it."""
    step(0)
    for number, item in enumerate(shard.read()):
        yield number, item
        step(number + 1)


def shard_pages(
    shard: PageSource, lost: Lost, step: Callable[[int], None], out: Outbox
) -> Iterator[tuple[int, Page]]:
    """Yield the pages of a shard, each with its number among all items of the shard.

    Failures go to `out`, also for pages that a store would refuse. At the end the counts of `out` have
    `pages`, `skipped`, and `failed` by reason, including failures that the caller added.
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


def stage_failure(url: str, error: Exception) -> Failure:
    """Return the failure of a page or a cluster at which a stage failed, which must not end all the work."""
    _log.debug("a stage failed on %s", url, exc_info=error)
    return Failure(url, BROKEN, repr(error))


def failed_by_reason(failures: Iterable[Failure]) -> Counter[str]:
    """Count failures by reason."""
    return Counter(failure.reason for failure in failures)


def total(counted: Iterable[Counts], *names: str) -> Counts:
    """Sum the counts with the given names, and those of `failed` by reason."""
    sums = Counter(dict.fromkeys(names, 0))
    failed: Counter[str] = Counter()
    for counts in counted:
        sums.update({name: counts.get(name, 0) for name in names})
        failed.update(counts.get("failed", {}))
    return {**sums, "failed": failed}


def version_columns() -> tuple[tuple[str, Any], ...]:
    """Return the columns by which `newest` distinguishes versions of pages, besides `place`."""
    pa = load_pyarrow()
    return (("url", pa.string()), ("content", pa.binary()), ("seen", pa.int64()))


def version_cells(page: Page) -> dict[str, object]:
    """Return the cells of a page in these columns: its URL, the hash of its content, and its time."""
    seen_at = None if page.fetched_at is None else (in_utc(page.fetched_at) - _EPOCH) // _MICROSECOND
    # Only contents of one URL are compared, so the store's hash, which takes twice as long, is not needed.
    content = sha1(page.html, usedforsecurity=False).digest()
    return {"url": page.url, "content": content, "seen": seen_at}


def versions(rows: Any) -> Any:
    """Select the rows that a store of these pages of one site would keep.

    `rows` is a table of Arrow, in the order of places. Each content of each URL is kept once, at its first
    occurrence.
    """
    if rows.num_rows < 2:  # nothing to select
        return rows
    _, first_rows = np.unique(
        _codes(rows["url"]) * rows.num_rows + _codes(rows["content"]), return_index=True
    )
    return _rows_at(rows, first_rows)


def newest(rows: Any) -> Any:
    """Select the rows that a store of these pages of one site would return as the newest.

    `rows` is a table of Arrow, in the order of places. For each URL it is the content that was seen last, at
    its first occurrence. Of contents seen at the same time the later row is newer, and a row without a time
    counts as seen when it is read, after all that have one.
    """
    if rows.num_rows < 2:
        return rows
    url, content = _codes(rows["url"]), _codes(rows["content"])
    _, first_rows, version = np.unique(url * rows.num_rows + content, return_index=True, return_inverse=True)
    last_seen_rank = np.zeros(len(first_rows), np.int64)
    np.maximum.at(last_seen_rank, version, _ranks(rows["seen"]))
    order = np.lexsort((first_rows, last_seen_rank, url[first_rows]))
    is_last_of_url = np.diff(url[first_rows][order], append=-1) != 0
    return _rows_at(rows, first_rows[order][is_last_of_url])


def _rows_at(rows: Any, numbers: NDArray[np.int64]) -> Any:
    """Select rows by number, in their order. Arrow's `take` fails for columns of more than 2 GB."""
    is_selected = np.zeros(rows.num_rows, bool)
    is_selected[numbers] = True
    return rows.filter(load_pyarrow().array(is_selected))


def _codes(column: Any) -> NDArray[np.int64]:
    """Number the distinct values. The chunks of a large site may be too large for Arrow to combine."""
    chunks = column.dictionary_encode().unify_dictionaries().chunks
    codes: NDArray[np.int64] = np.concatenate([chunk.indices.to_numpy() for chunk in chunks]).astype(np.int64)
    return codes


def _ranks(times: Any) -> NDArray[np.int64]:
    """Return ranks in the order of times; rows without one follow, one after the other."""
    has_time = times.is_valid().to_numpy()
    different, order = np.unique(times.fill_null(0).to_numpy(), return_inverse=True)
    ranks: NDArray[np.int64] = np.where(has_time, order, len(different) + np.arange(len(order)))
    return ranks


# The segments of 32 pages of SWDE shrink to a tenth, those of 128 hardly further.
_PAGES_OF_A_PACK = 32
_SIZE_OF_A_PACK = 4_000_000  # a few pages with very long texts are enough
_MOST_WAITING = 64_000_000  # of all packs, because a shard may have pages of very many sites

_LEVEL = 1  # higher levels take longer without smaller packs
_MARSHAL_FORMAT = 4  # readable by Python 3.11 and later

Kind = TypeVar("Kind", bound="Hashable")
Content = TypeVar("Content")


def pack_content(content: Any) -> bytes:
    """Serialize and compress plain lists, texts and the like."""
    return zstandard.compress(marshal.dumps(content, _MARSHAL_FORMAT), _LEVEL)


def unpack_content(pack: bytes) -> Any:
    """Restore packed content."""
    return marshal.loads(zstandard.decompress(pack))  # noqa: S302 - written by this very program


class Packs(Generic[Kind, Content]):
    """Collects content by kind, in order of arrival, and sends a pack once there is enough."""

    def __init__(self, send: Callable[[Kind, list[Content]], None]) -> None:
        self._send = send
        self._waiting: defaultdict[Kind, list[Content]] = defaultdict(list)
        self._sizes: Counter[Kind] = Counter()
        self._size = 0

    def add(self, kind: Kind, content: Content, size: int) -> None:
        """Add content with an approximate size in characters or bytes."""
        self._waiting[kind].append(content)
        self._sizes[kind] += size
        self._size += size
        if len(self._waiting[kind]) >= _PAGES_OF_A_PACK or self._sizes[kind] >= _SIZE_OF_A_PACK:
            self._send_pack(kind)
        elif self._size >= _MOST_WAITING:
            self.send_remaining()

    def send_remaining(self) -> None:
        """Send all incomplete packs."""
        for kind in list(self._waiting):
            self._send_pack(kind)

    def _send_pack(self, kind: Kind) -> None:
        self._size -= self._sizes.pop(kind)
        self._send(kind, self._waiting.pop(kind))


_STAGE = "wanted"
_SHARD = "shard "


def request_column() -> tuple[str, Any]:
    """Return the column for rows of a stage that requests pages again."""
    return "wanted", load_pyarrow().binary()


def request_page(place: int, purpose: bytes, out: Outbox) -> None:
    """Request a page from its shard; it is returned together with the purpose."""
    shard, _ = shard_and_item(place)
    out.send(f"{_SHARD}{shard}", place, wanted=purpose)


def all_requests(run: BulkRun, stage: str) -> StoredContents:
    """Collect all requests of a stage for `requested_pages`."""
    run.partitions(_STAGE, _StoringRequests, of=stage)
    return run.stored_contents(_STAGE)


class _StoringRequests:
    """Stores for each shard which of its items are requested."""

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        for key, key_batches in group_batches("key", batches):
            if key.startswith(_SHARD):
                purposes = {
                    shard_and_item(place)[1]: purpose
                    for batch in key_batches
                    for place, purpose in zip(
                        batch.column("place").to_pylist(), batch.column("wanted").to_pylist(), strict=True
                    )
                }
                out.store_content(int(key.removeprefix(_SHARD)), pack_content(purposes))


def requested_pages(
    requests: StoredContents, shard: PageSource, lost: Lost, step: Callable[[int], None], out: Outbox
) -> Iterator[tuple[int, Page, bytes]]:
    """Yield the requested pages of a shard, each with its number and purpose.

    Other items are not reported, because they were when all were first read. A page that was read before and
    cannot be read now must not silently disappear, so the work on this shard fails.
    """
    content = requests.read(out.number)
    if content is None:
        return
    purposes: dict[int, bytes] = unpack_content(content)
    missing = set(purposes) - lost.steps.keys()
    why = ""
    for number, item in numbered_items(shard, step):
        if isinstance(item, Failure):
            why = why or f": {item.url}, {item.reason}"
        if number in purposes and isinstance(item, Page):
            if number in lost.steps:
                out.failures.append(lost.failure(number, item.url))
            else:
                missing.discard(number)
                yield number, item, purposes[number]
    if missing:
        raise SourceError(
            f"{len(missing):,} pages that were read before cannot be read again{why}. The same command goes "
            "on once they can."
        )
    out.counts["failed"] = failed_by_reason(out.failures)
