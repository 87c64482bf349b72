"""How stages read the pages of shards, send them to each other, and read some a second time."""

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
from siteloom.engines.engine import cut_by
from siteloom.engines.whole_crawls.crawl_run import shard_and_item
from siteloom.engines.whole_crawls.output_folder import without_folder
from siteloom.sources.page_source import refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from numpy.typing import NDArray

    from siteloom.engines.whole_crawls.crawl_run import BulkRun, Counts, Kept, Outbox
    from siteloom.html.time_limit import Lost
    from siteloom.sources.page_source import PageSource, SourceItem


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


# The segments of 32 pages of SWDE shrink to a tenth, those of 128 hardly further.
_PAGES_OF_A_PACK = 32
_SIZE_OF_A_PACK = 4_000_000  # so few pages with endless texts are enough
_MOST_WAITING = 64_000_000  # of all packs, for a shard may have pages of very many sites

_LEVEL = 1  # a higher one takes longer, and the packs are no smaller
_MARSHAL_FORMAT = 4  # the one that Python 3.11 and later versions read

Kind = TypeVar("Kind", bound="Hashable")
Content = TypeVar("Content")


def packed(content: Any) -> bytes:
    """Plain lists, texts and the like as few bytes."""
    return zstandard.compress(marshal.dumps(content, _MARSHAL_FORMAT), _LEVEL)


def unpacked(pack: bytes) -> Any:
    """What was packed."""
    return marshal.loads(zstandard.decompress(pack))  # noqa: S302 - written by this very program


class Packs(Generic[Kind, Content]):
    """Gathers what is of a kind, in the order in which it comes, and sends what is enough for a pack."""

    def __init__(self, send: Callable[[Kind, list[Content]], None]) -> None:
        self._send = send
        self._waiting: defaultdict[Kind, list[Content]] = defaultdict(list)
        self._sizes: Counter[Kind] = Counter()
        self._size = 0

    def add(self, kind: Kind, content: Content, size: int) -> None:
        """Add something of about so many characters or bytes."""
        self._waiting[kind].append(content)
        self._sizes[kind] += size
        self._size += size
        if len(self._waiting[kind]) >= _PAGES_OF_A_PACK or self._sizes[kind] >= _SIZE_OF_A_PACK:
            self._send_kind(kind)
        elif self._size >= _MOST_WAITING:
            self.send_rest()

    def send_rest(self) -> None:
        """Send what waits for more of its kind."""
        for kind in list(self._waiting):
            self._send_kind(kind)

    def _send_kind(self, kind: Kind) -> None:
        self._size -= self._sizes.pop(kind)
        self._send(kind, self._waiting.pop(kind))


_STAGE = "wanted"
_SHARD = "shard "


def wanted_column() -> tuple[str, Any]:
    """The column that the rows of a stage need which wants pages again."""
    return "wanted", load_pyarrow().binary()


def want(place: int, what_for: bytes, out: Outbox) -> None:
    """Ask the shard of a page for it; it comes with what it is wanted for."""
    shard, _ = shard_and_item(place)
    out.send(f"{_SHARD}{shard}", place, wanted=what_for)


def all_wanted(run: BulkRun, stage: str) -> Kept:
    """All that a stage wants, for `wanted_pages`."""
    run.parts(_STAGE, _Keeping, of=stage)
    return run.kept(_STAGE)


class _Keeping:
    """Keeps for each shard which of its items are wanted."""

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        for key, of_key in cut_by("key", batches):
            if key.startswith(_SHARD):
                wanted = {
                    shard_and_item(place)[1]: what_for
                    for batch in of_key
                    for place, what_for in zip(
                        batch.column("place").to_pylist(), batch.column("wanted").to_pylist(), strict=True
                    )
                }
                out.keep(int(key.removeprefix(_SHARD)), packed(wanted))


def wanted_pages(
    kept: Kept, shard: PageSource, lost: Lost, step: Callable[[int], None], out: Outbox
) -> Iterator[tuple[int, Page, bytes]]:
    """The wanted pages of a shard, each with its number and what it is wanted for.

    Nothing is told of other items, for that was done when all were read. A page that was read before and
    cannot be now must not be left out, as if it had never been: then the work on this shard is not done.
    """
    content = kept.read(out.number)
    if content is None:
        return
    wanted: dict[int, bytes] = unpacked(content)
    missing = set(wanted) - lost.steps.keys()
    why = ""
    for number, item in numbered_items(shard, step):
        if isinstance(item, Failure):
            why = why or f": {item.url}, {item.reason}"
        if number in wanted and isinstance(item, Page):
            if number in lost.steps:
                out.failures.append(lost.failure(number, item.url))
            else:
                missing.discard(number)
                yield number, item, wanted[number]
    if missing:
        raise SourceError(
            f"{len(missing):,} pages that were read before cannot be read again{why}. The same command goes "
            "on once they can."
        )
    out.counts["failed"] = failed_by_reason(out.failures)
