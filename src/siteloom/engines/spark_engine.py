"""The engine of Apache Spark: a shard is a task, wherever there is room for it.

Tasks are told what to read, and read it themselves: pages never pass through Java. Only rows that are
to be regrouped do, which is what Spark's shuffle is for.

A page that takes its process down, of all memory or time for instance, would fail its task again and again.
So a task that is tried again gives its shard to the local engine, which finds such pages and leaves them out.
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
    ROWS_OF_A_BATCH,
    SECONDS_BEFORE_OTHER_TRIES,
    TRANSIENT,
    PartWork,
    Result,
    RowFiles,
    Shard,
    Work,
    cut_by,
    in_pieces,
)
from siteloom.engines.local_engine import run_shards, sendable
from siteloom.html.time_limit import Lost, killable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

_log = logging.getLogger(__name__)

# Twice what Spark lets a task fail: processes and machines may go, and one of the times is the page's.
_MOST_FAILURES_OF_A_TASK = 8

_SECONDS_BETWEEN_LOOKS = 0.2
_SECONDS_TO_REACH_A_MASTER = 10
_SECONDS_UNTIL_A_WORKER_IS_MISSED = 30

_PROCESSES_FOR_ONE = 2  # of which only one is started; with one, a shard would be done in this process

# A task that reads files of rows takes so many, which are small.
_FILES_OF_A_TASK = 16

_LOGGING = Path(__file__).with_name("log4j2.properties")
_STANDALONE = "spark://"

_SETTINGS = {
    "spark.app.name": "siteloom",
    "spark.task.maxFailures": str(_MOST_FAILURES_OF_A_TASK),
    "spark.driver.maxResultSize": "0",  # what a shard has counted is small, but there may be very many
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_OF_A_BATCH),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(BYTES_OF_A_BATCH),
    "spark.sql.adaptive.enabled": "false",  # there is one shuffle, and how it is divided is known
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
    "spark.ui.showConsoleProgress": "false",
    # Python processes of Spark look for modules in the current folder, too.
    f"spark.executorEnv.{SAFE_PATH}": "1",
}
# Of a session within this process no one sees the pages that it would serve.
_LOCAL_SETTINGS = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}


class SparkEngine:
    """A session of Spark, to be used in a `with` block. Its workers need Siteloom installed, too."""

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
            conf.setMaster(_forgiving(master))
            if master.startswith("local"):
                conf.setAll(list(_LOCAL_SETTINGS.items()))
        conf.setAll(list((settings or {}).items()))
        self._session = _started(conf, master)
        self._context = self._session.sparkContext
        # Spark would take whatever python3 it finds first, also where it should be that of this process.
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
        on_done: Callable[[int], object] = lambda _: None,
    ) -> list[tuple[int, Result]]:
        """Do shards: see `siteloom.engines.engine.Engine`. A task does one shard."""
        if not shards:
            return []
        with self._broadcast(start) as made:
            tasks = self._context.parallelize(shards, len(shards)).mapPartitions(_ShardTask(made))
            return _results(self._awaited(tasks.collect, len(shards), on_done))

    def regroup(
        self,
        start: Callable[[], PartWork[Result]],
        rows: RowFiles,
        parts: Sequence[int],
        on_done: Callable[[int], object] = lambda _: None,
    ) -> list[tuple[int, Result]]:
        """Do parts: see `siteloom.engines.engine.Engine`. The rows are shuffled; a task does one part."""
        if not parts or not rows.files:
            return []
        with self._broadcast(start) as made, self._broadcast((rows, frozenset(parts))) as wanted:
            numbers = self._session.range(
                len(rows.files), numPartitions=-(-len(rows.files) // _FILES_OF_A_TASK)
            )
            read = numbers.mapInArrow(_RowReading(wanted), _spark_schema(rows.schema))
            # If only some parts are left, two of them may come to one task.
            together = read.repartitionById(len(parts), "part").sortWithinPartitions("part", "key", "place")
            done = together.mapInArrow(_PartTask(made), "part int, answer binary")
            found = self._awaited(done.collect, len(parts), on_done)
        return _results((row.part, pickle.loads(row.answer)) for row in found)  # noqa: S301 - our own

    @contextmanager
    def _broadcast(self, value: object) -> Iterator[Any]:
        """A value that all processes of a stage have, as long as it takes."""
        sent = self._context.broadcast(value)
        try:
            yield sent
        finally:
            sent.destroy()

    def _awaited(self, collect: Callable[[], Any], tasks: int, on_done: Callable[[int], object]) -> Any:
        """What Spark gives in the end; meanwhile it is told how many tasks are done, and Ctrl-C is heard."""
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
        told = 0
        missing_since: float | None = time.monotonic()
        try:
            while thread.is_alive():
                thread.join(_SECONDS_BETWEEN_LOOKS)
                with held_back_interrupt():  # or the next question to Java would get the answer to this one
                    done = min(self._tasks_done(group), tasks)
                    missing_since = None if done else self._look_for_workers(missing_since)
                on_done(max(0, done - told))
                told = max(told, done)
        except BaseException:
            self._context.cancelJobGroup(group)
            raise
        if "error" in answer:
            raise _as_told(answer["error"])
        on_done(tasks - told)
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

    def _look_for_workers(self, missing_since: float | None) -> float | None:
        """Warn once if Spark gives no worker for long; returns since when there is none that was not told."""
        if missing_since is None or time.monotonic() < missing_since + _SECONDS_UNTIL_A_WORKER_IS_MISSED:
            return missing_since
        tracker = self._context._jsc.sc().statusTracker()  # noqa: SLF001 - Python's own knows no executors
        is_driver_alone = len(tracker.getExecutorInfos()) == 1
        if is_driver_alone and not self._context.master.startswith("local"):
            self._warn("Spark gives no worker yet: see whether some are free, and have the memory asked for.")
        return None


def _started(conf: Any, master: str | None) -> Any:
    """A session. Java is started once for a process; what it says of itself is read if it fails."""
    from pyspark import SparkContext  # noqa: PLC0415 - an extra
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - an extra
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    on_interrupt = signal.getsignal(signal.SIGINT)
    with tempfile.TemporaryFile() as said:
        try:
            launched = SparkContext._gateway  # noqa: SLF001 - a second Java would be left alone
            gateway = launched or launch_gateway(conf, {"stderr": said})  # type: ignore[no-untyped-call]
            session = SparkSession(SparkContext(conf=conf, gateway=gateway))
        except Exception as error:  # whatever Java says
            said.seek(0)
            why = _said(f"{error}\n{said.read().decode('utf-8', 'replace')}")
            raise EngineError(
                f"Spark cannot be started on {master or 'its default master'}: {why}."
            ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, on_interrupt)  # Spark's own would ask Java in the midst of a question
    return session


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if home and shutil.which("java", path=str(Path(home, "bin"))) is None:
        raise EngineError(f"There is no Java at {home}, which JAVA_HOME names: correct it, or unset it.")
    if not home and shutil.which("java") is None:
        raise EngineError("The engine spark needs Java: install version 17 or newer, or set JAVA_HOME.")


def _check_reachable(master: str) -> None:
    """Refuse a master that does not answer: Spark would try for long, and then tell of something else."""
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
    """The results of all tasks, if none had an error."""
    results = []
    for number, (result, error) in answers:
        if error is not None:
            raise error
        results.append((number, result))
    return results


class _Task:
    """What a task does by the work of its process, which is made once and kept until another is asked for."""

    _made: ClassVar[tuple[str, Any]] = ("", None)  # of this process

    def __init__(self, start: Any) -> None:
        self._start = start  # a broadcast
        self._token = uuid4().hex

    def work(self) -> Any:
        token, work = _Task._made
        if token != self._token:
            work = self._start.value()
            _Task._made = (self._token, work)
        return work

    def answer(self, do: Callable[[], Any]) -> tuple[Any, Exception | None]:
        """What comes of the work, or its error: Spark would try it again and again, and print it each time.

        Only what may be the fault of a disk or a network is left to Spark for a while, which may do it on
        another machine.
        """
        try:
            return do(), None
        except Exception as error:
            tries = _tries_before()
            if isinstance(error, TRANSIENT) and tries < len(SECONDS_BEFORE_OTHER_TRIES):
                time.sleep(SECONDS_BEFORE_OTHER_TRIES[tries])
                raise
            return None, sendable(error, "In a task of Spark")


class _ShardTask(_Task):
    """The task of a shard."""

    def __call__(self, shards: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, tuple[Any, Any]]]:
        for number, shard in shards:
            yield number, self.answer(partial(self._do, shard))

    def _do(self, shard: Any) -> Any:
        if _tries_before() == 0:
            killable()
            return self.work()(shard, Lost({}), lambda _: None)
        with closing(run_shards(self._start.value, [(0, shard)], _PROCESSES_FOR_ONE)) as done:
            ((_, result),) = done
        return result


class _PartTask(_Task):
    """The task of a part, or of some, of which all rows come one after the other."""

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - an extra

        for part, rows in cut_by("part", batches):
            answer = pickle.dumps(self.answer(partial(self._do, part, rows)))
            yield pa.RecordBatch.from_pydict(
                {"part": pa.array([part], pa.int32()), "answer": pa.array([answer], pa.binary())}
            )

    def _do(self, part: int, rows: Iterator[Any]) -> Any:
        return self.work()(part, rows)


def _tries_before() -> int:
    """How often the task that this is in was tried in vain."""
    from pyspark import TaskContext  # noqa: PLC0415 - an extra

    context = TaskContext.get()
    return 0 if context is None else context.attemptNumber()


class _RowReading:
    """Reads the rows of some files, which are told by their numbers."""

    def __init__(self, wanted: Any) -> None:
        self._wanted = wanted  # a broadcast

    def __call__(self, numbers: Iterator[Any]) -> Iterator[Any]:
        rows, parts = self._wanted.value
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for found in rows.read(rows.files[number], parts):
                    yield from in_pieces(found)


def _forgiving(master: str) -> str:
    """The master of a session within this process, with tasks that are tried again as elsewhere."""
    found = re.fullmatch(r"local(?:\[([0-9]+|\*)\])?", master)
    return master if found is None else f"local[{found[1] or 1},{_MOST_FAILURES_OF_A_TASK}]"


def _spark_schema(schema: Any) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - an extra

    return from_arrow_schema(schema)


def _as_told(error: Exception) -> EngineError:
    told = str(error) or repr(error)
    if (lacking := re.search(r"No module named '([\w.]+)'", told)) is not None:
        return EngineError(
            f"The Python of Spark's workers has no {lacking[1]}: install Siteloom there, too, or name one "
            "that has it by --spark-conf spark.pyspark.python=FILE."
        )
    return EngineError(f"Spark failed: {_said(told)}. The same command goes on where it was.")


def _said(text: str) -> str:
    """What an error of Spark is about: of a trace through two languages, the line that tells most."""
    telling = re.findall(r"\w+(?:Error|Exception|Busy|Extra): .+", text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return str((telling or lines)[-1]).rstrip(".")
