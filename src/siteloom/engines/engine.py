"""What engines do: shards of work, one by one or side by side, here or on many machines."""

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

# Rows are handed over in batches of so many, or fewer if they are large: those with whole pages take some
# 100 kB each, but a page may have many megabytes.
ROWS_OF_A_BATCH = 500
BYTES_OF_A_BATCH = 64_000_000

# What may be the fault of a disk or a network, which may be well again some moments later: then the same is
# tried again after so many seconds.
TRANSIENT = (OSError, OutputError, SourceError)
SECONDS_BEFORE_OTHER_TRIES = (0.5, 5.0)


class Work(Protocol[Shard_contra, Result_co]):
    """What is done with a shard; done twice, it gives the same."""

    def __call__(self, shard: Shard_contra, lost: Lost, step: Callable[[int], None]) -> Result_co:
        """Do it, and call `step` with the number of each step before it; those that are lost are left out."""
        ...


class PartWork(Protocol[Result_co]):
    """What is done with a part of the rows that shards have written; done twice, it gives the same."""

    def __call__(self, part: int, batches: Iterator[Any]) -> Result_co:
        """Do it: Arrow's batches have all rows of the part, by `key` and then by `place`."""
        ...


class Engine(Protocol):
    """Where work is done: `siteloom.engines.local_engine` and `siteloom.engines.spark_engine` have the
    two there are.

    What is handed to an engine pickles, and so does what comes of it, which is small: workers read pages
    and write rows themselves.
    """

    def run(
        self,
        start: Callable[[], Work[Shard, Result]],
        shards: Sequence[tuple[int, Shard]],
        on_done: Callable[[int], object],
    ) -> list[tuple[int, Result]]:
        """Do shards that come with their numbers, and give what comes of each, in whatever order.

        `start` makes what is done, once a process. `on_done` is told how many more are done.
        """
        ...

    def regroup(
        self,
        start: Callable[[], PartWork[Result]],
        rows: RowFiles,
        parts: Sequence[int],
        on_done: Callable[[int], object],
    ) -> list[tuple[int, Result]]:
        """Bring the rows of each of some parts together out of all files, and do the parts that have any."""
        ...


class RowFiles(Protocol):
    """Files of rows that were written by the work on shards. They have the columns `part`, `key` and `place`.

    `part` (int32) follows from `key` (text). `place` (int64) is where a row stands among all rows of a key.
    Of rows with the same key and place the order may be another each time: whoever sends them must not mind.
    """

    @property
    def files(self) -> Sequence[str]:
        """Their names."""
        ...

    @property
    def schema(self) -> Any:
        """Arrow's schema of all of them."""
        ...

    def read(self, file: str, parts: frozenset[int]) -> Iterator[Any]:
        """Batches with the rows of a file that are of some parts."""
        ...


def cut_by(column: str, batches: Iterator[Any]) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Batches whose rows stand together by a column: each of its values, with the batches of its rows.

    As with `itertools.groupby`, those of a value are gone when the next one is asked for.
    """
    pieces = (
        (value, batch.slice(start, length))
        for batch in batches
        for value, start, length in _runs(batch.column(column).to_pylist())
    )
    for value, found in groupby(pieces, key=itemgetter(0)):
        yield value, (batch for _, batch in found)


def in_pieces(batch: Any) -> Iterator[Any]:
    """A batch in pieces that are small enough to be handed over."""
    if batch.num_rows > ROWS_OF_A_BATCH or (batch.num_rows > 1 and batch.nbytes > BYTES_OF_A_BATCH):
        half = batch.num_rows // 2
        yield from in_pieces(batch.slice(0, half))
        yield from in_pieces(batch.slice(half))
    else:
        yield batch


def _runs(values: Sequence[Any]) -> Iterator[tuple[Any, int, int]]:
    """Equal values that follow one another: the value, where they start, and how many there are."""
    start = 0
    for value, found in groupby(values):
        length = sum(1 for _ in found)
        yield value, start, length
        start += length
