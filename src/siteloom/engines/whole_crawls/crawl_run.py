"""Runs over many files: stages of shards and of parts, each done once, whatever happens in between.

The output is a folder. All that a stage makes of a shard is in files before a last one, the mark, says
that the shard is done. So of a run that was killed, wherever it ran, the same command does the rest. A shard
that is done twice, because its mark was not there yet, gives the same files.

    OUT/_SUCCESS                 the run is done; below are its results
    OUT/site=shop.example/...    Parquet files, by site
    OUT/_failures/...            Parquet files of what gave no result, and why
    OUT/_run/plan.json           what the run is of; another one is refused
    OUT/_run/STAGE/7.json        the mark of shard 7 of a stage, with what was counted
    OUT/_run/STAGE/empty         the parts that have no rows, if all are done
    OUT/_run/STAGE/7.parquet     its rows for the next stage, which are gone in the end
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
"""What is told of a failure."""

# Where shards are enough for many processors, parts are, too. A part for each would be twice as many files.
_SHARDS_OF_A_PART = 2
_MOST_PARTS = 4_096
_KEY_BYTES = 8

# A place is the number of a shard and that of an item in it.
_ITEM_BITS = 32

Counts = dict[str, Any]
"""What was counted in a shard or a part, as JSON holds it."""

Shard_contra = TypeVar("Shard_contra", contravariant=True)
Shard = TypeVar("Shard")


class ShardStage(Protocol[Shard_contra]):
    """What a stage makes of a shard."""

    def __call__(self, shard: Shard_contra, lost: Lost, step: Callable[[int], None], out: Outbox) -> None:
        """Do it: see `siteloom.engines.engine.Work`."""
        ...


class PartStage(Protocol):
    """What a stage makes of a part."""

    def __call__(self, batches: Iterator[Any], out: Outbox) -> None:
        """Do it: see `siteloom.engines.engine.PartWork`."""
        ...


def place_of(shard: int, item: int) -> int:
    """Where an item stands among all items of all shards."""
    return shard << _ITEM_BITS | item


def shard_and_item(place: int) -> tuple[int, int]:
    """The numbers that a place was made of."""
    return place >> _ITEM_BITS, place & (1 << _ITEM_BITS) - 1


def part_count(shards: int) -> int:
    """Into how many parts the rows of so many shards are divided."""
    return min(_MOST_PARTS, max(1, -(-shards // _SHARDS_OF_A_PART)))


def part_of(key: str, parts: int) -> int:
    """The part that the rows of a key are in, the same on all machines."""
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()
    return int.from_bytes(digest) % parts


def row_schema(*columns: tuple[str, Any]) -> Any:
    """The schema of rows that are regrouped: the columns that an engine needs, and others."""
    pa = load_pyarrow()
    return pa.schema([("part", pa.int32()), ("key", pa.string()), ("place", pa.int64()), *columns])


class Outbox:
    """Where a stage puts what comes of a shard or a part. All is there when it is closed, with its mark."""

    def __init__(self, folder: OutputFolder, stage: str, number: int, parts: int) -> None:
        self.number = number
        self.counts: Counts = {}
        self.failures: list[Failure] = []
        self._folder = folder
        self._stage = stage
        self._parts = parts
        self._rows: list[dict[str, Any]] = []
        self._files: dict[str, int] = {}

    def send(self, key: str, place: int, **cells: object) -> None:
        """Send a row to whoever does the part of its key in the next stage."""
        self._rows.append({"part": part_of(key, self._parts), "key": key, "place": place, **cells})

    def write(self, site: str, table: Any) -> None:
        """Write results of a site."""
        folder = site_folder(site)
        count = self._files.get(folder, 0)
        self._files[folder] = count + 1
        # By their names they are in the order in which they were written.
        self._folder.write_rows(f"{folder}/{self._stage}-{self.number:08}-{count:06}.parquet", table)

    def keep(self, shard: int, content: bytes) -> None:
        """Keep something for the work on a shard in a later stage, which finds it with `BulkRun.kept`."""
        self._folder.write(_kept_name(self._stage, shard), content)

    def close(self, schema: Any) -> Counts:
        """Write the rows that were sent, the failures, and in the end the mark; returns what it says."""
        pa = load_pyarrow()
        name = f"{_RUN}/{self._stage}/{self.number:08}"
        if self._rows:
            self._rows.sort(key=lambda row: (row["part"], row["key"], row["place"]))
            self._folder.write_rows(f"{name}.parquet", pa.Table.from_pylist(self._rows, schema))
        told = f"{_FAILURES}/{self._stage}-{self.number:08}.parquet"
        if self.failures:
            table = arrow_table(arrow_schema(FAILURE_COLUMNS), map(asdict, self.failures))
            self._folder.write_rows(told, table)
        else:
            self._folder.remove(told)  # it may be left of another try, that was killed before its mark
        mark = {"rows": len(self._rows), "failures": len(self.failures), "counts": self.counts}
        self._folder.write(f"{name}{_MARK}", as_json(mark))
        return mark


class Kept(NamedTuple):
    """What a stage has kept for shards, which any process can read."""

    folder: OutputFolder
    stage: str

    def read(self, shard: int) -> bytes | None:
        """What was kept for a shard, if anything was."""
        found = self.folder.read(_kept_name(self.stage, shard))
        if found is None:
            self.folder.check_unfinished()  # for then it may be removed
        return found


def _kept_name(stage: str, shard: int) -> str:
    return f"{_RUN}/{stage}/for-{shard:08}"


class _Stage(NamedTuple):
    """What the processes of a stage need to know besides its work."""

    folder: OutputFolder
    name: str
    parts: int
    schema: Any

    def outbox(self, number: int) -> Outbox:
        return Outbox(self.folder, self.name, number, self.parts)


class _ShardWork:
    """The work of a stage on shards, for an engine."""

    def __init__(self, stage: _Stage, start: Callable[[], ShardStage[Any]]) -> None:
        self._stage = stage
        self._do = start()

    def __call__(self, shard: tuple[int, Any], lost: Lost, step: Callable[[int], None]) -> Counts:
        number, content = shard
        out = self._stage.outbox(number)
        self._do(content, lost, step, out)
        return out.close(self._stage.schema)


class _PartWork:
    """The work of a stage on parts, for an engine."""

    def __init__(self, stage: _Stage, start: Callable[[], PartStage]) -> None:
        self._stage = stage
        self._do = start()

    def __call__(self, part: int, batches: Iterator[Any]) -> Counts:
        out = self._stage.outbox(part)
        self._do(batches, out)
        return out.close(self._stage.schema)


class BulkRun:
    """A run into a folder, begun or taken up again; a folder that has something else is refused.

    `on_stage` is told of each stage how many shards or parts it has, and how many of them are done. What it
    gives is told of further ones.
    """

    def __init__(
        self,
        engine: Engine,
        folder: OutputFolder,
        fingerprint: str,
        parts: int,
        on_stage: Callable[[str, int, int], Callable[[int], object]],
    ) -> None:
        self._engine = engine
        self._folder = folder
        self._parts = parts
        self._on_stage = on_stage
        self._schemas: dict[str, Any] = {}
        self._done: dict[str, dict[int, Counts]] = {}
        plan = folder.read(_PLAN)
        # Whoever was killed at the very start has left nothing but its folder.
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
        """What was counted, if the run is done."""
        content = self._folder.read(SUCCESS)
        if content is None:
            return None
        self._clear()  # whoever finished it may have been killed meanwhile
        counts: Counts = json.loads(content)
        return counts

    def shards(
        self,
        stage: str,
        start: Callable[[], ShardStage[Shard]],
        shards: Sequence[Shard],
        schema: Any = None,
    ) -> list[Counts]:
        """Do a stage on all shards, and give what each has counted, in their order.

        The rows that it sends have the schema.
        """
        found = self._marks(stage)
        left = [(number, (number, shard)) for number, shard in enumerate(shards) if number not in found]
        advance = self._on_stage(stage, len(shards), len(found))
        work = partial(_ShardWork, self._stage(stage, schema), start)
        found.update(self._engine.run(work, left, advance))
        return [found[number]["counts"] for number in range(len(shards))]

    def parts(
        self, stage: str, start: Callable[[], PartStage], *, of: str | Sequence[str], schema: Any = None
    ) -> list[Counts]:
        """Do a stage on the parts of the rows that another has sent, and give what each has counted.

        It may be the rows of several stages, if they have one schema.
        """
        stages = [of] if isinstance(of, str) else of
        marks = {(one, number): mark for one in stages for number, mark in sorted(self._marks(one).items())}
        files = [f"{_RUN}/{one}/{number:08}.parquet" for (one, number), mark in marks.items() if mark["rows"]]
        found = self._marks(stage)
        empty_name = f"{_RUN}/{stage}/{_EMPTY}"
        known_empty = self._folder.read(empty_name)
        empty = set() if known_empty is None else set(json.loads(known_empty))
        left = [part for part in range(self._parts) if part not in found and part not in empty]
        advance = self._on_stage(stage, self._parts, self._parts - len(left))
        work = partial(_PartWork, self._stage(stage, schema), start)
        if left:
            rows = Rows(self._folder, files, self._schemas[stages[0]])
            found.update(self._engine.regroup(work, rows, left, advance))
        if known_empty is None:
            self._folder.write(empty_name, as_json([part for part in left if part not in found]))
        return [found[part]["counts"] for part in sorted(found)]

    def kept(self, stage: str) -> Kept:
        """What a stage has kept for shards."""
        return Kept(self._folder, stage)

    def failures(self) -> Iterator[Failure]:
        """All failures of the run, in the order of the shards."""
        for name in self._folder.names(_FAILURES):
            for row in self._folder.read_rows(f"{_FAILURES}/{name}").to_pylist():
                yield Failure(**row)

    def finish(self, counts: Counts) -> Counts:
        """Say that the run is done, and what was counted; what stages kept for others is not needed then.

        A run that counts no `pages` is never done: its files may have been empty by mistake.
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
        return _Stage(self._folder, name, self._parts, schema)

    def _marks(self, stage: str) -> dict[int, Counts]:
        """What is done of a stage. It is read once: there may be very many."""
        if stage not in self._done:
            folder = f"{_RUN}/{stage}"
            names = [name for name in self._folder.names(folder) if name.endswith(_MARK)]
            contents = self._folder.read_all([f"{folder}/{name}" for name in names])
            self._done[stage] = {
                int(name.removesuffix(_MARK)): json.loads(content)
                for name, content in zip(names, contents, strict=True)
            }
        return self._done[stage]
