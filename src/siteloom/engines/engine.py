"""The interface of engines, which process shards of work on one or many machines."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from siteloom.core.errors import OutputError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from siteloom.html.time_limit import Lost

Shard_contra = TypeVar("Shard_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)
Shard = TypeVar("Shard")
Result = TypeVar("Result")

NO_STEP = -1

# The size of batches of rows, with fewer rows if they are large: rows with whole pages take some 100 kB each,
# but a page may have many megabytes.
ROWS_OF_A_BATCH = 500
BYTES_OF_A_BATCH = 64_000_000

# Errors that may come from a temporary fault of a disk or a network, and the seconds before each retry.
TRANSIENT_ERRORS = (OSError, OutputError, SourceError)
RETRY_DELAYS = (0.5, 5.0)


class Work(Protocol[Shard_contra, Result_co]):
    """The work on a shard; repeating it gives the same result."""

    def __call__(self, shard: Shard_contra, lost: Lost, step: Callable[[int], None]) -> Result_co:
        """Process a shard; call `step` with the number of each step before it, and leave out lost steps."""
        ...


class PartitionWork(Protocol[Result_co]):
    """The work on a partition of the rows that shards have written; repeating it gives the same result."""

    def __call__(self, partition: int, batches: Iterator[Any]) -> Result_co:
        """Process a partition: the Arrow batches have all its rows, sorted by `key` and then by `place`."""
        ...


class Engine(Protocol):
    """Runs work: see `siteloom.engines.local_engine` and `siteloom.engines.spark_engine`.

    Work, shards and results must be picklable, and results small: workers read pages and write rows
    themselves.
    """

    def run(
        self,
        start: Callable[[], Work[Shard, Result]],
        shards: Sequence[tuple[int, Shard]],
        on_progress: Callable[[int], object],
    ) -> list[tuple[int, Result]]:
        """Process numbered shards, and return their results in any order.

        `start` creates the work once per process. `on_progress` is called with the number of newly finished
        shards.
        """
        ...

    def regroup(
        self,
        start: Callable[[], PartitionWork[Result]],
        rows: RowFiles,
        partitions: Sequence[int],
        on_progress: Callable[[int], object],
    ) -> list[tuple[int, Result]]:
        """Collect the rows of each partition from all files, and process the partitions that have any."""
        ...


class RowFiles(Protocol):
    """Files of rows written by the work on shards, with the columns `part`, `key` and `place`.

    `part` (int32) is the partition, determined by `key` (text). `place` (int64) is the position of a row
    among all rows of a key. The order of rows with the same key and place may vary and must not matter.
    """

    @property
    def files(self) -> Sequence[str]:
        """The names of the files."""
        ...

    @property
    def schema(self) -> Any:
        """The Arrow schema of all files."""
        ...

    def read(self, file: str, partitions: frozenset[int]) -> Iterator[Any]:
        """Yield batches with the rows of a file that belong to the partitions."""
        ...


def group_batches(column: str, batches: Iterator[Any]) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Group batches that are sorted by a column: yields each value with the batches of its rows.

    As with `itertools.groupby`, the batches of a value must be consumed before the next value.
    """
    pieces = (
        (value, batch.slice(start, length))
        for batch in batches
        for value, start, length in _runs(batch.column(column).to_pylist())
    )
    for value, group in groupby(pieces, key=itemgetter(0)):
        yield value, (batch for _, batch in group)


def split_batch(batch: Any) -> Iterator[Any]:
    """Split a batch into pieces within the limits of batches."""
    if batch.num_rows > ROWS_OF_A_BATCH or (batch.num_rows > 1 and batch.nbytes > BYTES_OF_A_BATCH):
        half = batch.num_rows // 2
        yield from split_batch(batch.slice(0, half))
        yield from split_batch(batch.slice(half))
    else:
        yield batch


def _runs(values: Sequence[Any]) -> Iterator[tuple[Any, int, int]]:
    """Yield runs of equal values: the value, the start, and the length."""
    start = 0
    for value, run in groupby(values):
        length = sum(1 for _ in run)
        yield value, start, length
        start += length
