"""The engine of Apache Spark: each shard is a task.

Tasks read their data themselves, so pages never pass through Java. Only rows to be regrouped do, by Spark's
shuffle.

A page that kills its process, for instance by taking all memory or time, would fail its task again and again.
So a repeated task passes its shard to the local engine, which finds such pages and leaves them out.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self
from uuid import uuid4

from siteloom.core.child_processes import SAFE_PATH
from siteloom.core.errors import EngineError, MissingExtra
from siteloom.engines.engine import (
    BYTES_OF_A_BATCH,
    RETRY_DELAYS,
    ROWS_OF_A_BATCH,
    TRANSIENT_ERRORS,
    PartitionWork,
    Result,
    RowFiles,
    Shard,
    Work,
    group_batches,
    split_batch,
)
from siteloom.engines.local_engine import picklable_error, run_shards
from siteloom.html.time_limit import Lost, killable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

_log = logging.getLogger(__name__)

# Twice Spark's default: processes and machines may be lost, and one failure is caused by a page.
_MOST_FAILURES_OF_A_TASK = 8

_SECONDS_BETWEEN_LOOKS = 0.2
_SECONDS_TO_REACH_A_MASTER = 10
_SECONDS_UNTIL_A_WORKER_IS_MISSED = 30

_PROCESSES_FOR_ONE = 2  # only one is started; with one, the shard would run in this process

# The number of files, which are small, that a task reads rows from.
_FILES_OF_A_TASK = 16

_LOGGING = Path(__file__).with_name("log4j2.properties")
_STANDALONE = "spark://"

_SETTINGS = {
    "spark.app.name": "siteloom",
    "spark.task.maxFailures": str(_MOST_FAILURES_OF_A_TASK),
    "spark.driver.maxResultSize": "0",  # results of shards are small, but there may be very many
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_OF_A_BATCH),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(BYTES_OF_A_BATCH),
    "spark.sql.adaptive.enabled": "false",  # there is one shuffle with a known partitioning
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
    "spark.ui.showConsoleProgress": "false",
    # Python processes of Spark look for modules in the current folder, too.
    f"spark.executorEnv.{SAFE_PATH}": "1",
}
# Nobody would see the web UI of a session within this process.
_LOCAL_SETTINGS = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}


class SparkEngine:
    """A Spark session, used in a `with` block. Its workers need Siteloom installed, too."""

    def __init__(
        self,
        master: str | None = None,
        settings: Mapping[str, str] | None = None,
        warn: Callable[[str], object] = _log.warning,
    ) -> None:
        try:
            from pyspark import SparkConf  # noqa: PLC0415 - an extra, and slow to load
        except ImportError as error:
            raise MissingExtra("The engine spark", "spark") from error
        _check_java()
        self._warn = warn
        conf = SparkConf(loadDefaults=False).setAll(list(_SETTINGS.items()))
        if master is not None:
            _check_reachable(master)
            conf.setMaster(_retrying_master(master))
            if master.startswith("local"):
                conf.setAll(list(_LOCAL_SETTINGS.items()))
        conf.setAll(list((settings or {}).items()))
        self._session = _start_session(conf, master)
        self._context = self._session.sparkContext
        # By default, Spark uses the first python3 it finds, even where it should be that of this process.
        python = self._context.getConf().get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
        if python or self._context.master.startswith("local"):
            self._context.pythonExec = python or sys.executable

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
        on_progress: Callable[[int], object] = lambda _: None,
    ) -> list[tuple[int, Result]]:
        """Process shards: see `siteloom.engines.engine.Engine`. Each task processes one shard."""
        if not shards:
            return []
        with self._broadcast(start) as work:
            tasks = self._context.parallelize(shards, len(shards)).mapPartitions(_ShardTask(work))
            return _results(self._await(tasks.collect, len(shards), on_progress))

    def regroup(
        self,
        start: Callable[[], PartitionWork[Result]],
        rows: RowFiles,
        partitions: Sequence[int],
        on_progress: Callable[[int], object] = lambda _: None,
    ) -> list[tuple[int, Result]]:
        """Process partitions after a shuffle, one per task: see `siteloom.engines.engine.Engine`."""
        if not partitions or not rows.files:
            return []
        with (
            self._broadcast(start) as work,
            self._broadcast((rows, frozenset(partitions))) as rows_and_partitions,
        ):
            numbers = self._session.range(
                len(rows.files), numPartitions=-(-len(rows.files) // _FILES_OF_A_TASK)
            )
            read = numbers.mapInArrow(_RowReading(rows_and_partitions), _spark_schema(rows.schema))
            # If only some partitions are left, one task may get two of them.
            sorted_rows = read.repartitionById(len(partitions), "part").sortWithinPartitions(
                "part", "key", "place"
            )
            results = sorted_rows.mapInArrow(_PartitionTask(work), "part int, answer binary")
            result_rows = self._await(results.collect, len(partitions), on_progress)
        return _results((row.part, pickle.loads(row.answer)) for row in result_rows)  # noqa: S301 - our own

    @contextmanager
    def _broadcast(self, value: object) -> Iterator[Any]:
        """Share a value with all processes of a stage while it runs."""
        sent = self._context.broadcast(value)
        try:
            yield sent
        finally:
            sent.destroy()

    def _await(self, collect: Callable[[], Any], tasks: int, on_progress: Callable[[int], object]) -> Any:
        """Return Spark's result; meanwhile report progress and react to Ctrl-C."""
        from pyspark import InheritableThread  # noqa: PLC0415 - an extra

        from siteloom.core.interrupts import held_back_interrupt  # noqa: PLC0415 - tasks need no database

        answer: dict[str, Any] = {}
        group = uuid4().hex

        def ask() -> None:
            self._context.setJobGroup(group, "siteloom", interruptOnCancel=True)
            try:
                answer["found"] = collect()
            except Exception as error:  # noqa: BLE001 - raised below
                answer["error"] = error

        thread: threading.Thread = InheritableThread(target=ask, daemon=True)
        thread.start()
        reported = 0
        missing_since: float | None = time.monotonic()
        try:
            while thread.is_alive():
                thread.join(_SECONDS_BETWEEN_LOOKS)
                with held_back_interrupt():  # otherwise the next call to Java would get this one's answer
                    finished = min(self._tasks_done(group), tasks)
                    missing_since = None if finished else self._look_for_workers(missing_since)
                on_progress(max(0, finished - reported))
                reported = max(reported, finished)
        except BaseException:
            self._context.cancelJobGroup(group)
            raise
        if "error" in answer:
            raise _engine_error(answer["error"])
        on_progress(tasks - reported)
        return answer["found"]

    def _tasks_done(self, group: str) -> int:
        """Return how many tasks of the last stage are done, which is that of shards or of partitions."""
        tracker = self._context.statusTracker()
        stages = [
            stage
            for job in tracker.getJobIdsForGroup(group)
            if (info := tracker.getJobInfo(job)) is not None
            for stage in info.stageIds
        ]
        last_stage = tracker.getStageInfo(max(stages)) if stages else None
        return 0 if last_stage is None else last_stage.numCompletedTasks

    def _look_for_workers(self, missing_since: float | None) -> float | None:
        """Warn once if Spark has no worker for long; returns since when, or None once that is reported."""
        if missing_since is None or time.monotonic() < missing_since + _SECONDS_UNTIL_A_WORKER_IS_MISSED:
            return missing_since
        tracker = self._context._jsc.sc().statusTracker()  # noqa: SLF001 - Python's own knows no executors
        is_driver_alone = len(tracker.getExecutorInfos()) == 1
        if is_driver_alone and not self._context.master.startswith("local"):
            self._warn("Spark gives no worker yet: see whether some are free, and have the memory asked for.")
        return None


def _start_session(conf: Any, master: str | None) -> Any:
    """Start a session. Java is started once per process; its output is read if that fails."""
    from pyspark import SparkContext  # noqa: PLC0415 - an extra
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - an extra
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    on_interrupt = signal.getsignal(signal.SIGINT)
    with tempfile.TemporaryFile() as java_output:
        try:
            launched = SparkContext._gateway  # noqa: SLF001 - a second Java would be left alone
            gateway = launched or launch_gateway(conf, {"stderr": java_output})  # type: ignore[no-untyped-call]
            session = SparkSession(SparkContext(conf=conf, gateway=gateway))
        except Exception as error:  # Java may raise anything
            java_output.seek(0)
            why = _main_line(f"{error}\n{java_output.read().decode('utf-8', 'replace')}")
            raise EngineError(
                f"Spark cannot be started on {master or 'its default master'}: {why}."
            ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, on_interrupt)  # Spark's own handler would call Java during another call
    return session


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if home and shutil.which("java", path=str(Path(home, "bin"))) is None:
        raise EngineError(f"There is no Java at {home}, which JAVA_HOME names: correct it, or unset it.")
    if not home and shutil.which("java") is None:
        raise EngineError("The engine spark needs Java: install version 17 or newer, or set JAVA_HOME.")


def _check_reachable(master: str) -> None:
    """Raise EngineError if a master does not answer: Spark would retry for long with misleading errors."""
    if not master.startswith(_STANDALONE):
        return
    for address in master.removeprefix(_STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        with (
            suppress(OSError, ValueError, OverflowError),
            socket.create_connection((host.strip("[]"), int(port)), _SECONDS_TO_REACH_A_MASTER),
        ):
            return
    raise EngineError(
        f"No master of Spark answers at {master}: see whether it runs, and what its address is."
    )


def _results(answers: Iterable[tuple[int, tuple[Any, Exception | None]]]) -> list[tuple[int, Any]]:
    """Return the results of all tasks, or raise the first error."""
    results = []
    for number, (result, error) in answers:
        if error is not None:
            raise error
        results.append((number, result))
    return results


class _Task:
    """A task; its process creates the work once, and keeps it until other work is needed."""

    _current_work: ClassVar[tuple[str, Any]] = ("", None)  # of this process

    def __init__(self, start: Any) -> None:
        self._start = start  # a broadcast
        self._token = uuid4().hex

    def work(self) -> Any:
        token, work = _Task._current_work
        if token != self._token:
            work = self._start.value()
            _Task._current_work = (self._token, work)
        return work

    def answer(self, do: Callable[[], Any]) -> tuple[Any, Exception | None]:
        """Return the result of the work or its error, because Spark would retry and print errors repeatedly.

        Only transient errors are raised at first, so that Spark retries, perhaps on another machine.
        """
        try:
            return do(), None
        except Exception as error:
            tries = _failed_attempts()
            if isinstance(error, TRANSIENT_ERRORS) and tries < len(RETRY_DELAYS):
                time.sleep(RETRY_DELAYS[tries])
                raise
            return None, picklable_error(error, "In a task of Spark")


class _ShardTask(_Task):
    """The task of a shard."""

    def __call__(self, shards: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, tuple[Any, Any]]]:
        for number, shard in shards:
            yield number, self.answer(partial(self._do, shard))

    def _do(self, shard: Any) -> Any:
        if _failed_attempts() == 0:
            killable()
            return self.work()(shard, Lost({}), lambda _: None)
        with closing(run_shards(self._start.value, [(0, shard)], _PROCESSES_FOR_ONE)) as results:
            ((_, result),) = results
        return result


class _PartitionTask(_Task):
    """The task of one or several partitions, whose rows arrive one after the other."""

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - an extra

        for partition, rows in group_batches("part", batches):
            answer = pickle.dumps(self.answer(partial(self._do, partition, rows)))
            yield pa.RecordBatch.from_pydict(
                {"part": pa.array([partition], pa.int32()), "answer": pa.array([answer], pa.binary())}
            )

    def _do(self, partition: int, rows: Iterator[Any]) -> Any:
        return self.work()(partition, rows)


def _failed_attempts() -> int:
    """Return how often the current task has failed."""
    from pyspark import TaskContext  # noqa: PLC0415 - an extra

    context = TaskContext.get()
    return 0 if context is None else context.attemptNumber()


class _RowReading:
    """Reads the rows of files given by their numbers."""

    def __init__(self, rows_and_partitions: Any) -> None:
        self._rows_and_partitions = rows_and_partitions  # a broadcast

    def __call__(self, numbers: Iterator[Any]) -> Iterator[Any]:
        rows, partitions = self._rows_and_partitions.value
        for number_batch in numbers:
            for number in number_batch.column(0).to_pylist():
                for batch in rows.read(rows.files[number], partitions):
                    yield from split_batch(batch)


def _retrying_master(master: str) -> str:
    """Return the master; for a session within this process, with retries as elsewhere."""
    match = re.fullmatch(r"local(?:\[([0-9]+|\*)\])?", master)
    return master if match is None else f"local[{match[1] or 1},{_MOST_FAILURES_OF_A_TASK}]"


def _spark_schema(schema: Any) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - an extra

    return from_arrow_schema(schema)


def _engine_error(error: Exception) -> EngineError:
    message = str(error) or repr(error)
    if (lacking := re.search(r"No module named '([\w.]+)'", message)) is not None:
        return EngineError(
            f"The Python of Spark's workers has no {lacking[1]}: install Siteloom there, too, or name one "
            "that has it by --spark-conf spark.pyspark.python=FILE."
        )
    return EngineError(f"Spark failed: {_main_line(message)}. The same command goes on where it was.")


def _main_line(text: str) -> str:
    """Return the most informative line of a Spark error, which traces through two languages."""
    error_lines = re.findall(r"\w+(?:Error|Exception|Busy|Extra): .+", text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return str((error_lines or lines)[-1]).rstrip(".")
