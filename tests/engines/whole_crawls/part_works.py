"""What tests of engines do with parts and shards; new processes load little with it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from siteloom.engines.engine import PartitionWork, Work, group_batches
from siteloom.html.time_limit import Lost
from tests.engines.works import Refused, is_first

if TYPE_CHECKING:
    from siteloom.sources.page_source import PageSource, SourceItem

Step = Callable[[int], None]


class Files(NamedTuple):
    """Files of rows; `siteloom.engines.whole_crawls` has its own, but would load all stages."""

    files: Sequence[str]
    schema: Any

    def read(self, file: str, partitions: frozenset[int]) -> Iterator[Any]:
        rows = pq.ParquetFile(file).read()
        yield from rows.filter(pc.is_in(rows["part"], pa.array(sorted(partitions), pa.int32()))).to_batches()


def listing() -> PartitionWork[list[tuple[str, list[tuple[int, bytes]]]]]:
    """Lists the rows of a part by their keys."""
    return _list


def _list(partition: int, batches: Iterator[Any]) -> list[tuple[str, list[tuple[int, bytes]]]]:
    return [
        (
            key,
            [
                (row["place"], row["content"])
                for batch in found
                for row in batch.to_pylist()
                if row["part"] == partition
            ],
        )
        for key, found in group_batches("key", batches)
    ]


def refuses() -> PartitionWork[None]:
    """Refuses part 1."""
    return _refuse


def _refuse(partition: int, batches: Iterator[Any]) -> None:
    if partition == 1:
        raise Refused(1, "no luck")


def waits_to_be_killed(folder: Path) -> Callable[[], Work[list[int], list[int]]]:
    """Squares, but the first process at shard 1 tells its number and waits until it is killed."""
    return partial(partial, _squares_but_wait, folder)


def _squares_but_wait(folder: Path, shard: list[int], lost: Lost, step: Step) -> list[int]:
    step(0)
    if shard[0] == 1:
        _wait_to_be_killed(folder)
    return [number * number for number in shard if 0 not in lost.steps]


class WaitingSource(NamedTuple):
    """A source, but the first process that reads it tells its number and waits until it is killed."""

    source: PageSource
    folder: Path

    def read(self) -> Iterator[SourceItem]:
        _wait_to_be_killed(self.folder)
        return self.source.read()

    def shards(self) -> Sequence[PageSource]:
        return (self,)


def _wait_to_be_killed(folder: Path) -> None:
    if is_first(folder / "begun"):
        (folder / "process.tmp").write_text(str(os.getpid()))
        (folder / "process.tmp").rename(folder / "process")
        time.sleep(600)
