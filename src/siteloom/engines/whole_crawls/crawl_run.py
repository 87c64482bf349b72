"""Resumable runs over many files: stages of shards and of partitions, each completed once.

The output is a folder. Everything that a stage makes of a shard is in files before a final one, the mark,
records that the shard is done. So after a run was killed anywhere, the same command completes it. A shard
that is repeated, because its mark was missing, gives the same files.

    OUT/_SUCCESS                 the run is done; below are its results
    OUT/site=shop.example/...    Parquet files, by site
    OUT/_failures/...            Parquet files of failures
    OUT/_run/plan.json           identifies the run; another one is refused
    OUT/_run/STAGE/7.json        the mark of shard 7 of a stage, with its counts
    OUT/_run/STAGE/empty         the partitions without rows, once all are done
    OUT/_run/STAGE/7.parquet     its rows for the next stage, removed in the end
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from siteloom.core.errors import OutputError
from siteloom.core.model import Failure
from siteloom.core.table_files import Column, arrow_schema, arrow_table, load_pyarrow
from siteloom.engines.whole_crawls.output_folder import SUCCESS, OutputFolder, Rows, as_json, site_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from siteloom.engines.engine import Engine
    from siteloom.html.time_limit import Lost

_RUN = "_run"
_PLAN = f"{_RUN}/plan.json"
_FAILURES = "_failures"
_MARK = ".json"
_EMPTY = "empty"

FAILURE_COLUMNS = (Column("url"), Column("reason"), Column("detail"))
"""The columns of failures."""

# Half as many partitions as shards still occupy many processors; one per shard would make twice as many
# files.
_SHARDS_OF_A_PARTITION = 2
_MOST_PARTITIONS = 4_096
_KEY_BYTES = 8

# A place combines the number of a shard with that of an item in it.
_ITEM_BITS = 32

Counts = dict[str, Any]
"""The counts of a shard or a partition, as JSON values."""

Shard_contra = TypeVar("Shard_contra", contravariant=True)
Shard = TypeVar("Shard")


class ShardStage(Protocol[Shard_contra]):
    """The work of a stage on a shard."""

    def __call__(self, shard: Shard_contra, lost: Lost, step: Callable[[int], None], out: Outbox) -> None:
        """Process a shard: see `siteloom.engines.engine.Work`."""
        ...


class PartitionStage(Protocol):
    """The work of a stage on a partition."""

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        """Process a partition: see `siteloom.engines.engine.PartitionWork`."""
        ...


def place_of(shard: int, item: int) -> int:
    """Return the position of an item among all items of all shards."""
    return shard << _ITEM_BITS | item


def shard_and_item(place: int) -> tuple[int, int]:
    """Return the shard and the item of a place."""
    return place >> _ITEM_BITS, place & (1 << _ITEM_BITS) - 1


def partition_count(shards: int) -> int:
    """Return the number of partitions for the rows of a number of shards."""
    return min(_MOST_PARTITIONS, max(1, -(-shards // _SHARDS_OF_A_PARTITION)))


def partition_of(key: str, partitions: int) -> int:
    """Return the partition of a key, the same on all machines."""
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()
    return int.from_bytes(digest) % partitions


def row_schema(*columns: tuple[str, Any]) -> Any:
    """Return the schema of rows to regroup: the columns that an engine needs, and others."""
    pa = load_pyarrow()
    return pa.schema([("part", pa.int32()), ("key", pa.string()), ("place", pa.int64()), *columns])


class Outbox:
    """Collects the results of a stage for a shard or a partition; `close` completes them with a mark."""

    def __init__(self, folder: OutputFolder, stage: str, number: int, partitions: int) -> None:
        self.number = number
        self.counts: Counts = {}
        self.failures: list[Failure] = []
        self._folder = folder
        self._stage = stage
        self._partitions = partitions
        self._rows: list[dict[str, Any]] = []
        self._files: dict[str, int] = {}

    def send(self, key: str, place: int, **cells: object) -> None:
        """Send a row to the partition of its key in the next stage."""
        self._rows.append({"part": partition_of(key, self._partitions), "key": key, "place": place, **cells})

    def write(self, site: str, table: Any) -> None:
        """Write results of a site."""
        folder = site_folder(site)
        count = self._files.get(folder, 0)
        self._files[folder] = count + 1
        # The names sort in the order in which the files were written.
        self._folder.write_rows(f"{folder}/{self._stage}-{self.number:08}-{count:06}.parquet", table)

    def store_content(self, shard: int, content: bytes) -> None:
        """Store content for the work on a shard in a later stage: see `BulkRun.stored_contents`."""
        self._folder.write(_content_name(self._stage, shard), content)

    def close(self, schema: Any) -> Counts:
        """Write the sent rows, the failures, and finally the mark; returns the mark."""
        pa = load_pyarrow()
        name = f"{_RUN}/{self._stage}/{self.number:08}"
        if self._rows:
            self._rows.sort(key=lambda row: (row["part"], row["key"], row["place"]))
            self._folder.write_rows(f"{name}.parquet", pa.Table.from_pylist(self._rows, schema))
        failures_file = f"{_FAILURES}/{self._stage}-{self.number:08}.parquet"
        if self.failures:
            table = arrow_table(arrow_schema(FAILURE_COLUMNS), map(asdict, self.failures))
            self._folder.write_rows(failures_file, table)
        else:
            self._folder.remove(
                failures_file
            )  # it may remain from an attempt that was killed before its mark
        mark = {"rows": len(self._rows), "failures": len(self.failures), "counts": self.counts}
        self._folder.write(f"{name}{_MARK}", as_json(mark))
        return mark


class StoredContents(NamedTuple):
    """The content that a stage has stored for shards, which any process can read."""

    folder: OutputFolder
    stage: str

    def read(self, shard: int) -> bytes | None:
        """Return the content stored for a shard, if any."""
        content = self.folder.read(_content_name(self.stage, shard))
        if content is None:
            self.folder.check_unfinished()  # a finished run removes contents
        return content


def _content_name(stage: str, shard: int) -> str:
    return f"{_RUN}/{stage}/for-{shard:08}"


class _Stage(NamedTuple):
    """What the processes of a stage need in addition to its work."""

    folder: OutputFolder
    name: str
    partitions: int
    schema: Any

    def outbox(self, number: int) -> Outbox:
        return Outbox(self.folder, self.name, number, self.partitions)


class _ShardWork:
    """Adapts the work of a stage on shards to an engine."""

    def __init__(self, stage: _Stage, start: Callable[[], ShardStage[Any]]) -> None:
        self._stage = stage
        self._do = start()

    def __call__(self, shard: tuple[int, Any], lost: Lost, step: Callable[[int], None]) -> Counts:
        number, content = shard
        out = self._stage.outbox(number)
        self._do(content, lost, step, out)
        return out.close(self._stage.schema)


class _PartitionWork:
    """Adapts the work of a stage on partitions to an engine."""

    def __init__(self, stage: _Stage, start: Callable[[], PartitionStage]) -> None:
        self._stage = stage
        self._do = start()

    def __call__(self, partition: int, batches: Iterator[Any]) -> Counts:
        out = self._stage.outbox(partition)
        self._do(batches, out)
        return out.close(self._stage.schema)


class BulkRun:
    """A new or resumed run into a folder; a folder with anything else is refused.

    `on_stage` is called for each stage with the number of its shards or partitions, and how many of them are
    done; it returns a function that is called with further ones.
    """

    def __init__(
        self,
        engine: Engine,
        folder: OutputFolder,
        fingerprint: str,
        partitions: int,
        on_stage: Callable[[str, int, int], Callable[[int], object]],
    ) -> None:
        self._engine = engine
        self._folder = folder
        self._partitions = partitions
        self._on_stage = on_stage
        self._schemas: dict[str, Any] = {}
        self._marks_by_stage: dict[str, dict[int, Counts]] = {}
        plan = folder.read(_PLAN)
        # A run that was killed at the very start has left only its folder.
        if plan is None and (folder.names() not in ([], [_RUN]) or folder.names(_RUN)):
            raise OutputError(f"{folder.shown} holds something else already: give another -o.")
        if plan is None:
            folder.write(_PLAN, as_json({"fingerprint": fingerprint}))
        elif json.loads(plan)["fingerprint"] != fingerprint:
            raise OutputError(
                f"{folder.shown} holds the results of another run, of other pages or with other choices: "
                "give another -o, or remove it."
            )

    @property
    def finished(self) -> Counts | None:
        """The counts, if the run is done."""
        content = self._folder.read(SUCCESS)
        if content is None:
            return None
        self._clear()  # the process that finished it may have been killed before that
        counts: Counts = json.loads(content)
        return counts

    def shards(
        self,
        stage: str,
        start: Callable[[], ShardStage[Shard]],
        shards: Sequence[Shard],
        schema: Any = None,
    ) -> list[Counts]:
        """Run a stage on all shards, and return their counts in order.

        The rows that it sends have the schema.
        """
        marks = self._marks(stage)
        remaining = [(number, (number, shard)) for number, shard in enumerate(shards) if number not in marks]
        advance = self._on_stage(stage, len(shards), len(marks))
        work = partial(_ShardWork, self._stage(stage, schema), start)
        marks.update(self._engine.run(work, remaining, advance))
        return [marks[number]["counts"] for number in range(len(shards))]

    def partitions(
        self, stage: str, start: Callable[[], PartitionStage], *, of: str | Sequence[str], schema: Any = None
    ) -> list[Counts]:
        """Run a stage on the partitions of rows that earlier stages have sent, and return their counts.

        The rows of several stages must have the same schema.
        """
        stages = [of] if isinstance(of, str) else of
        marks = {
            (sender, number): mark
            for sender in stages
            for number, mark in sorted(self._marks(sender).items())
        }
        files = [
            f"{_RUN}/{sender}/{number:08}.parquet" for (sender, number), mark in marks.items() if mark["rows"]
        ]
        marks_by_partition = self._marks(stage)
        empty_name = f"{_RUN}/{stage}/{_EMPTY}"
        empty_content = self._folder.read(empty_name)
        empty_partitions = set() if empty_content is None else set(json.loads(empty_content))
        remaining = [
            partition
            for partition in range(self._partitions)
            if partition not in marks_by_partition and partition not in empty_partitions
        ]
        advance = self._on_stage(stage, self._partitions, self._partitions - len(remaining))
        work = partial(_PartitionWork, self._stage(stage, schema), start)
        if remaining:
            rows = Rows(self._folder, files, self._schemas[stages[0]])
            marks_by_partition.update(self._engine.regroup(work, rows, remaining, advance))
        if empty_content is None:
            self._folder.write(
                empty_name,
                as_json([partition for partition in remaining if partition not in marks_by_partition]),
            )
        return [marks_by_partition[partition]["counts"] for partition in sorted(marks_by_partition)]

    def stored_contents(self, stage: str) -> StoredContents:
        """Return the content that a stage has stored for shards."""
        return StoredContents(self._folder, stage)

    def failures(self) -> Iterator[Failure]:
        """Yield all failures of the run, in the order of the shards."""
        for name in self._folder.names(_FAILURES):
            for row in self._folder.read_rows(f"{_FAILURES}/{name}").to_pylist():
                yield Failure(**row)

    def finish(self, counts: Counts) -> Counts:
        """Mark the run as done with its counts, and remove what stages stored for others.

        A run without `pages` is never done: its files may have been empty by mistake.
        """
        if counts.get("pages") == 0:
            return counts
        self._folder.write(SUCCESS, as_json(counts))
        self._clear()
        return counts

    def _clear(self) -> None:
        for name in self._folder.names(_RUN):
            if f"{_RUN}/{name}" != _PLAN:
                self._folder.remove(f"{_RUN}/{name}")

    def _stage(self, name: str, schema: Any) -> _Stage:
        self._schemas[name] = schema
        return _Stage(self._folder, name, self._partitions, schema)

    def _marks(self, stage: str) -> dict[int, Counts]:
        """Return the marks of a stage. They are read once, because there may be very many."""
        if stage not in self._marks_by_stage:
            folder = f"{_RUN}/{stage}"
            names = [name for name in self._folder.names(folder) if name.endswith(_MARK)]
            contents = self._folder.read_all([f"{folder}/{name}" for name in names])
            self._marks_by_stage[stage] = {
                int(name.removesuffix(_MARK)): json.loads(content)
                for name, content in zip(names, contents, strict=True)
            }
        return self._marks_by_stage[stage]
