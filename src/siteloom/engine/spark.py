"""The engine of Apache Spark: a shard is a task, wherever there is room for it.

Tasks are told what to read, and read it themselves: pages never pass through Java. Only rows that are
to be regrouped do, which is what Spark's shuffle is for.

A page that takes its process down, of all memory for instance, would fail its task again and again. So the
number of the step is noted on the machine of the task; a second death at the same step tells that it is
the page, and it is left out from then on. One death tells nothing, for machines may go at any time.
"""

from __future__ import annotations

import json
import mmap
import pickle
import re
import struct
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from siteloom.engine.local import sendable
from siteloom.engine.work import NO_STEP, Lost, PartWork, Result, RowFiles, Shard, Work, cut_by
from siteloom.errors import EngineError, MissingExtra, OutputError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

# Two for each page that takes its process down, and some for machines that go.
_MOST_FAILURES_OF_A_TASK = 20

# Rows are handed to Python in batches of so many: those with whole pages take some 100 kB each.
_ROWS_OF_A_BATCH = 500

_SECONDS_BETWEEN_LOOKS = 0.2

_TRIES_OF_DISKS = 3  # and of networks, which may be well again a moment later

# A task that reads files of rows takes so many, which are small; one that brings parts together takes some.
_FILES_OF_A_TASK = 16

_DIED_TWICE = "died twice at this page"
_STEP = struct.Struct("q")

_LOGGING = Path(__file__).with_name("log4j2.properties")

_SETTINGS = {
    "spark.app.name": "siteloom",
    "spark.task.maxFailures": str(_MOST_FAILURES_OF_A_TASK),
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(_ROWS_OF_A_BATCH),
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
}
# Of a session within this process no one sees the pages that it would serve.
_LOCAL_SETTINGS = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}


class SparkEngine:
    """A session of Spark, to be used in a `with` block. Its workers need Siteloom installed, too."""

    def __init__(self, master: str | None = None, settings: Mapping[str, str] | None = None) -> None:
        try:
            from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra, and slow to load
        except ImportError as error:
            raise MissingExtra("The engine spark", "spark") from error
        builder = SparkSession.builder
        if master is not None:
            builder = builder.master(_forgiving(master))
        is_local = master is not None and master.startswith("local")
        for name, value in {**_SETTINGS, **(_LOCAL_SETTINGS if is_local else {}), **(settings or {})}.items():
            builder = builder.config(name, value)
        try:
            self._session: Any = builder.getOrCreate()
        except Exception as error:  # whatever Java says
            raise EngineError(
                f"Spark cannot be started on {master or 'its default master'}: {_said(error)}."
            ) from error
        self._context = self._session.sparkContext

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.stop()

    def run(
        self,
        start: Callable[[], Work[Shard, Result]],
        shards: Sequence[tuple[int, Shard]],
        on_done: Callable[[int], object] = lambda _: None,
    ) -> list[tuple[int, Result]]:
        """Do shards: see `siteloom.engine.Engine`. A task does one shard."""
        if not shards:
            return []
        task = _ShardTask(self._context.broadcast(start))
        tasks = self._context.parallelize(shards, len(shards)).mapPartitions(task)
        return _results(self._awaited(tasks.collect, on_done))

    def regroup(
        self,
        start: Callable[[], PartWork[Result]],
        rows: RowFiles,
        parts: Sequence[int],
        on_done: Callable[[int], object] = lambda _: None,
    ) -> list[tuple[int, Result]]:
        """Do parts: see `siteloom.engine.Engine`. The rows are shuffled; a task does one part or several."""
        if not parts:
            return []
        wanted = self._context.broadcast((rows, frozenset(parts)))
        files = self._session.range(len(rows.files), numPartitions=-(-len(rows.files) // _FILES_OF_A_TASK))
        read = files.mapInArrow(_RowReading(wanted), _spark_schema(rows.schema))
        together = read.repartition(len(parts), "part").sortWithinPartitions("part", "key", "place")
        done = together.mapInArrow(_PartTask(self._context.broadcast(start)), "part int, answer binary")
        found = self._awaited(done.collect, on_done)
        return _results((row.part, pickle.loads(row.answer)) for row in found)  # noqa: S301 - our own

    def _awaited(self, collect: Callable[[], Any], on_done: Callable[[int], object]) -> Any:
        """What Spark gives in the end; meanwhile it is told how many tasks are done, and Ctrl-C is heard."""
        answer: dict[str, Any] = {}
        group = uuid4().hex

        def ask() -> None:
            self._context.setJobGroup(group, "siteloom", interruptOnCancel=True)
            try:
                answer["found"] = collect()
            except Exception as error:  # noqa: BLE001 - raised below
                answer["error"] = error

        from pyspark import InheritableThread  # noqa: PLC0415 - an extra

        thread: threading.Thread = InheritableThread(target=ask, daemon=True)
        thread.start()
        told = 0
        try:
            while thread.is_alive():
                thread.join(_SECONDS_BETWEEN_LOOKS)
                done = self._tasks_done(group)
                on_done(max(0, done - told))
                told = max(told, done)
        except BaseException:
            self._context.cancelJobGroup(group)
            raise
        if "error" in answer:
            raise _as_told(answer["error"])
        return answer["found"]

    def _tasks_done(self, group: str) -> int:
        """How many tasks of the last stage are done, which is that of shards or of parts."""
        tracker = self._context.statusTracker()
        stages = [
            stage
            for job in tracker.getJobIdsForGroup(group)
            if (info := tracker.getJobInfo(job)) is not None
            for stage in info.stageIds
        ]
        last = tracker.getStageInfo(max(stages)) if stages else None
        return 0 if last is None else last.numCompletedTasks


def _results(answers: Iterable[tuple[int, tuple[Any, Exception | None]]]) -> list[tuple[int, Any]]:
    """The results of all tasks, if none had an error."""
    results = []
    for number, (result, error) in answers:
        if error is not None:
            raise error
        results.append((number, result))
    return results


class _Starting:
    """What makes the work of a process, which is kept as long as no other is asked for."""

    _made: tuple[str, Any] = ("", None)  # of this process

    def __init__(self, start: Any) -> None:
        self._start = start  # a broadcast
        self._token = uuid4().hex

    def work(self) -> Any:
        token, work = _Starting._made
        if token != self._token:
            work = self._start.value()
            _Starting._made = (self._token, work)
        return work

    def answer(self, do: Callable[[Any], Any]) -> tuple[Any, Exception | None]:
        """What comes of the work, or its error: Spark would try it again and again, and print it each time.

        Only what may be the fault of a disk or a network is left to Spark for a while.
        """
        from pyspark import TaskContext  # noqa: PLC0415 - an extra

        try:
            return do(self.work()), None
        except Exception as error:
            context = TaskContext.get()
            tried = 0 if context is None else context.attemptNumber() + 1
            if isinstance(error, (OSError, OutputError)) and tried < _TRIES_OF_DISKS:
                raise
            return None, sendable(error, "In a task of Spark")


class _ShardTask(_Starting):
    """The task of a shard."""

    def __call__(self, shards: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, tuple[Any, Any]]]:
        for number, shard in shards:
            with _noted_steps(f"{self._token}-{number}") as (lost, step):
                answer = self.answer(lambda work: work(shard, lost, step))  # noqa: B023 - called at once
            yield number, answer


class _PartTask(_Starting):
    """The task of some parts, of which all rows come one after the other."""

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - an extra

        for part, rows in cut_by("part", batches):
            answer = pickle.dumps(self.answer(lambda work: work(part, rows)))  # noqa: B023 - called at once
            yield pa.RecordBatch.from_pydict(
                {"part": pa.array([part], pa.int32()), "answer": pa.array([answer], pa.binary())}
            )


class _RowReading:
    """Reads the rows of some files, which are told by their numbers."""

    def __init__(self, wanted: Any) -> None:
        self._wanted = wanted  # a broadcast

    def __call__(self, numbers: Iterator[Any]) -> Iterator[Any]:
        rows, parts = self._wanted.value
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for found in rows.read(rows.files[number], parts):
                    starts = range(0, found.num_rows, _ROWS_OF_A_BATCH)
                    yield from (found.slice(start, _ROWS_OF_A_BATCH) for start in starts)


@contextmanager
def _noted_steps(name: str) -> Iterator[tuple[Lost, Callable[[int], None]]]:
    """The steps of a task, noted in a file of this machine; lost are those at which it died twice."""
    file = Path(tempfile.gettempdir(), f"siteloom-steps-{name}")
    before = _read_steps(file)
    lost = {step for step in before if before.count(step) > 1}
    file.write_bytes(_STEP.pack(NO_STEP) + json.dumps(before).encode())
    try:
        with file.open("r+b") as opened, mmap.mmap(opened.fileno(), _STEP.size) as noted:

            def step(number: int) -> None:
                _STEP.pack_into(noted, 0, number)

            yield Lost(dict.fromkeys(lost, _DIED_TWICE)), step
    finally:  # an error is no death
        file.unlink()


def _read_steps(file: Path) -> list[int]:
    """The steps at which earlier tasks of the same shard died on this machine."""
    try:
        content = file.read_bytes()
        (last,) = _STEP.unpack_from(content)
        before: list[int] = json.loads(content[_STEP.size :])
    except (FileNotFoundError, ValueError, struct.error):
        return []
    return before if last == NO_STEP else [*before, last]


def _forgiving(master: str) -> str:
    """The master of a session within this process, with tasks that are tried again as elsewhere."""
    found = re.fullmatch(r"local(?:\[([0-9]+|\*)\])?", master)
    return master if found is None else f"local[{found[1] or 1},{_MOST_FAILURES_OF_A_TASK}]"


def _spark_schema(schema: Any) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - an extra

    return from_arrow_schema(schema)


def _as_told(error: Exception) -> EngineError:
    return EngineError(f"Spark failed: {_said(error)}. The same command goes on where it was.")


def _said(error: Exception) -> str:
    """What an error of Spark is about: of a trace through two languages, the line that tells most."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"[\w.]+(?:Error|Exception|Busy|Extra)\b: ", line)]
    return (telling[-1] if telling else lines[0] if lines else repr(error)).rstrip(".")
