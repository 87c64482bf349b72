"""The local engine: processes of this machine, each working on one shard at a time.

A shard is pickled to a process, which reads the data it names itself and returns the result. Shards are taken
one by one, no more are in progress than there are processes, and finished ones are dropped, so memory stays
flat.

If a process dies, for instance because a page takes all memory, a new process repeats its shard. A single
death proves nothing, because processes may be killed for any reason; after a second one at the same step,
that step is left out. If the time limit of pages has killed the process, a single death is enough.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import tempfile
import threading
import time
import traceback
from collections import defaultdict, deque
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from siteloom.core.child_processes import safe_path
from siteloom.core.errors import EngineError
from siteloom.core.table_files import load_pyarrow
from siteloom.core.terminal_text import guard_process
from siteloom.engines.engine import (
    BYTES_OF_A_BATCH,
    NO_STEP,
    RETRY_DELAYS,
    ROWS_OF_A_BATCH,
    TRANSIENT_ERRORS,
    PartitionWork,
    Result,
    RowFiles,
    Shard,
    Work,
    group_batches,
)
from siteloom.html.time_limit import ENDED_BY, Lost, ended_by, killable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

# New processes, not copies of this one: a copy would hold its locks and its connections to databases.
_PROCESSES = multiprocessing.get_context("spawn")

# Per process, how many shards may finish early: a caller who needs them in order must hold them.
_MAX_SHARDS_AHEAD = 8

# The rows of these files are in memory together, about as many as a partition has.
_FILES_PARTITIONED_TOGETHER = 16

_MOST_DEATHS = 20  # of processes per shard; more are not caused by pages
_MOST_UNEXPLAINED = 1  # of these, outside any step or at one that was left out


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Runs work in `jobs` processes of this machine."""

    jobs: int = 1

    def run(
        self,
        start: Callable[[], Work[Shard, Result]],
        shards: Sequence[tuple[int, Shard]],
        on_progress: Callable[[int], object] = lambda _: None,
    ) -> list[tuple[int, Result]]:
        """Process shards: see `siteloom.engines.engine.Engine`."""
        results = []
        with closing(run_shards(partial(_RetryingWork, start), shards, self.jobs)) as results_iterator:
            for result in results_iterator:
                results.append(result)
                on_progress(1)
        return results

    def regroup(
        self,
        start: Callable[[], PartitionWork[Result]],
        rows: RowFiles,
        partitions: Sequence[int],
        on_progress: Callable[[int], object] = lambda _: None,
    ) -> list[tuple[int, Result]]:
        """Process partitions: see `siteloom.engines.engine.Engine`.

        Each file is read once. Its rows are written to files in a temporary folder, grouped by partition, so
        they need not be in memory.
        """
        starts = range(0, len(rows.files), _FILES_PARTITIONED_TOGETHER)
        groups = [(start, rows.files[start : start + _FILES_PARTITIONED_TOGETHER]) for start in starts]
        with tempfile.TemporaryDirectory(prefix="siteloom-") as folder:
            engine = LocalEngine(
                self.jobs if len(groups) > 1 else 1
            )  # a new process costs more than one group
            partitioned = sorted(
                engine.run(partial(_PartitioningWork, rows, frozenset(partitions), folder), groups)
            )
            pieces: dict[int, list[_Piece]] = {partition: [] for partition in partitions}
            for _, pieces_by_partition in partitioned:
                for partition, piece in pieces_by_partition.items():
                    pieces[partition].append(piece)
            nonempty = {
                partition: partition_pieces
                for partition, partition_pieces in pieces.items()
                if partition_pieces
            }
            on_progress(len(partitions) - len(nonempty))
            shards = [
                (partition, (partition, partition_pieces)) for partition, partition_pieces in nonempty.items()
            ]
            return self.run(partial(_RegroupingWork, start), shards, on_progress)


class _RetryingWork(Generic[Shard, Result]):
    """Work that is retried after transient errors."""

    def __init__(self, start: Callable[[], Work[Shard, Result]]) -> None:
        self._work = start()

    def __call__(self, shard: Shard, lost: Lost, step: Callable[[int], None]) -> Result:
        for seconds in RETRY_DELAYS:
            try:
                return self._work(shard, lost, step)
            except TRANSIENT_ERRORS:
                time.sleep(seconds)
        return self._work(shard, lost, step)


class _Piece(NamedTuple):
    """Rows of a partition: an Arrow stream that begins at a position in a file."""

    file: str
    start: int

    def read(self) -> Any:
        pa = load_pyarrow()

        with pa.memory_map(self.file) as content:
            content.seek(self.start)
            return pa.ipc.open_stream(content).read_all()


class _PartitioningWork:
    """The work of grouping the rows of files by partition."""

    def __init__(self, rows: RowFiles, partitions: frozenset[int], folder: str) -> None:
        self._rows = rows
        self._partitions = partitions
        self._folder = folder

    def __call__(
        self,
        shard: Sequence[str],
        lost: Lost,  # noqa: ARG002 - there are no pages
        step: Callable[[int], None],  # noqa: ARG002
    ) -> dict[int, _Piece]:
        """Return the partitions with rows in these files, and where the rows were written."""
        pa = load_pyarrow()

        batches_by_partition: defaultdict[int, list[Any]] = defaultdict(list)
        for file in shard:
            for partition, batches in group_batches("part", self._rows.read(file, self._partitions)):
                batches_by_partition[partition].extend(batches)
        pieces = {}
        with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as output:
            for partition, partition_pieces in batches_by_partition.items():
                pieces[partition] = _Piece(output.name, output.tell())
                table = pa.Table.from_batches(partition_pieces)
                with pa.ipc.new_stream(output, self._rows.schema) as stream:
                    # Many small batches would be slower, and combining large ones needs twice the memory.
                    stream.write_table(table if table.nbytes > BYTES_OF_A_BATCH else table.combine_chunks())
        return pieces


class _RegroupingWork(Generic[Result]):
    """The work on a partition that consists of pieces."""

    def __init__(self, start: Callable[[], PartitionWork[Result]]) -> None:
        self._work = start()

    def __call__(
        self,
        shard: tuple[int, Sequence[_Piece]],
        lost: Lost,  # noqa: ARG002 - a part has no steps
        step: Callable[[int], None],  # noqa: ARG002
    ) -> Result:
        """Return the result of the partition."""
        partition, pieces = shard
        return self._work(
            partition, _sorted_batches([batch for piece in pieces for batch in piece.read().to_batches()])
        )


def _sorted_batches(batches: Sequence[Any]) -> Iterator[Any]:
    """Sort the rows of batches by `key` and `place`.

    Only these two columns are combined: Arrow holds at most 2 GB of a column in one piece.
    """
    import numpy as np  # noqa: PLC0415 - slow to load, and workers may not need it

    pa = load_pyarrow()

    places = pa.Table.from_batches(batches).select(["key", "place"])
    sort_keys = [("key", "ascending"), ("place", "ascending")]
    order = pa.compute.sort_indices(places, sort_keys=sort_keys).to_numpy().astype(np.int64)
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])

    def gathered(rows: Any) -> Iterator[Any]:
        sources = np.searchsorted(starts, rows, side="right") - 1
        selected = [
            batches[source].take(pa.array(rows[sources == source] - starts[source]))
            for source in np.unique(sources)
        ]
        if len(rows) > 1 and sum(batch.nbytes for batch in selected) > BYTES_OF_A_BATCH:
            yield from gathered(rows[: len(rows) // 2])
            yield from gathered(rows[len(rows) // 2 :])
        else:
            combined = pa.Table.from_batches(selected).combine_chunks()
            yield from combined.take(np.argsort(np.argsort(sources, kind="stable"))).to_batches()

    for start in range(0, len(order), ROWS_OF_A_BATCH):
        yield from gathered(order[start : start + ROWS_OF_A_BATCH])


def run_shards(
    start: Callable[[], Work[Shard, Result]], shards: Iterable[tuple[int, Shard]], jobs: int
) -> Generator[tuple[int, Result], None, None]:
    """Process numbered shards, and yield each result as soon as it is available.

    `start` creates the work once per process; with one job, everything runs in this process. Closing the
    generator early ends the processes.
    """
    if jobs == 1:
        work = start()
        for number, shard in shards:
            yield number, work(shard, Lost({}), lambda _: None)
        return
    pool: list[_Worker[Shard, Result]] = []
    queue = _ShardQueue(shards)
    try:
        while True:
            while len(pool) < jobs and queue.next_task is not None:
                pool.append(_Worker.started(start))
                _hand_out(queue, pool, max_ahead=_MAX_SHARDS_AHEAD * jobs)
            _hand_out(queue, pool, max_ahead=_MAX_SHARDS_AHEAD * jobs)
            busy = [worker for worker in pool if worker.task is not None]
            if not busy:
                return
            ready = wait([handle for worker in busy for handle in (worker.pipe, worker.process.sentinel)])
            for worker in busy:
                task = worker.task
                if task is None or not {worker.pipe, worker.process.sentinel}.intersection(ready):
                    continue
                answer = worker.answer()
                worker.task = None
                if isinstance(answer, _ProcessDeath):
                    _note_death(task, answer)
                    queue.put_back(task)
                    pool.remove(worker)
                    worker.end()
                else:
                    yield task.number, answer
    finally:
        for worker in pool:
            worker.end()


def _hand_out(queue: _ShardQueue[Shard], pool: Sequence[_Worker[Shard, Result]], max_ahead: int) -> None:
    """Give each idle process a shard, but none that is too far ahead of an unfinished one."""
    for worker in pool:
        under_way = [busy_worker.task.place for busy_worker in pool if busy_worker.task is not None]
        if worker.task is None and (task := queue.next_task) is not None:
            if under_way and task.place - min(under_way) > max_ahead:
                return
            worker.take(task)
            queue.drop_next()


@dataclass(slots=True)
class _Task(Generic[Shard]):
    """A shard with its number and its position in the order, and the steps that killed processes."""

    number: int
    place: int
    shard: Shard
    lost: dict[int, str] = field(default_factory=dict)
    suspected: set[int] = field(default_factory=set)
    deaths: int = 0
    unexplained: int = 0


class _ShardQueue(Generic[Shard]):
    """The shards that are not started, read lazily, and those to be repeated."""

    def __init__(self, shards: Iterable[tuple[int, Shard]]) -> None:
        self._upcoming = (_Task(number, place, shard) for place, (number, shard) in enumerate(shards))
        self._queued: deque[_Task[Shard]] = deque()

    @property
    def next_task(self) -> _Task[Shard] | None:
        """The next task, if any."""
        if not self._queued:
            self._queued.extend(islice(self._upcoming, 1))
        return self._queued[0] if self._queued else None

    def drop_next(self) -> None:
        """Remove the next task, which was started."""
        self._queued.popleft()

    def put_back(self, task: _Task[Shard]) -> None:
        """Return a task that must be repeated before all others."""
        self._queued.appendleft(task)


class _ProcessDeath(NamedTuple):
    """A process that ended before its shard was done: the step, and the reason."""

    step: int
    reason: str


def _note_death(task: _Task[Any], death: _ProcessDeath) -> None:
    is_explained = death.step != NO_STEP and death.step not in task.lost
    is_too_long = is_explained and death.reason == ended_by(ENDED_BY)
    task.deaths += not is_too_long  # the number of such pages is not limited
    task.unexplained += not is_explained
    if task.deaths > _MOST_DEATHS or task.unexplained > _MOST_UNEXPLAINED:
        raise EngineError(
            f"Worker processes die one after the other, the last of them {death.reason}: "
            "see whether there is memory enough, and run the same command again to go on."
        )
    if is_too_long or (is_explained and death.step in task.suspected):
        task.lost[death.step] = death.reason
    task.suspected.add(death.step)


class _Worker(Generic[Shard, Result]):
    """A process and its current task."""

    def __init__(self, process: Any, pipe: Connection, at_step: Any) -> None:
        self.process = process
        self.pipe = pipe
        self.task: _Task[Shard] | None = None
        self._at_step = at_step

    @classmethod
    def started(cls, start: Callable[[], Work[Shard, Result]]) -> _Worker[Shard, Result]:
        pipe, child_pipe = _PROCESSES.Pipe()
        at_step = _PROCESSES.Value("q", NO_STEP, lock=False)
        process = _PROCESSES.Process(target=_serve, args=(start, child_pipe, at_step), daemon=True)
        worker = cls(process, pipe, at_step)
        try:
            with safe_path(), _interrupts_blocked():
                process.start()
        except KeyboardInterrupt:
            worker.end()
            raise
        child_pipe.close()
        return worker

    def take(self, task: _Task[Shard]) -> None:
        """Start a shard."""
        self.task = task
        self._at_step.value = NO_STEP
        # A dead process is detected when its answer is awaited.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.pipe.send((task.shard, Lost(task.lost)))

    def answer(self) -> Any:
        """Return the result of the shard, or the death of the process."""
        try:
            result, error = self.pipe.recv()
        except (EOFError, OSError):  # OSError if it died while answering
            self.process.join()
            return _ProcessDeath(self._at_step.value, _ending(self.process.exitcode))
        if error is not None:
            raise error
        return result

    def end(self) -> None:
        if self.process.pid is not None:  # None if Ctrl-C was pressed before it started
            self.process.kill()
            self.process.join()
        self.pipe.close()


def _ending(code: int) -> str:
    return ended_by(-code) if code < 0 else f"ended with status {code}"


def _serve(start: Callable[[], Work[Any, Any]], pipe: Connection, at_step: Any) -> None:
    """Run in a worker process: receive shards and send results until the pipe is closed."""
    guard_process()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    killable()

    def step(number: int) -> None:
        at_step.value = number

    work: Work[Any, Any] | None = None
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            shard, lost = pipe.recv()
            try:
                work = work or start()
                answer = pickle.dumps((work(shard, lost, step), None))
            except Exception as error:  # noqa: BLE001 - raised in the parent process
                answer = pickle.dumps((None, picklable_error(error, "In a worker process")))
            step(NO_STEP)
            pipe.send_bytes(answer)


def picklable_error(error: Exception, where: str) -> Exception:
    """Add the traceback to an error, and replace the error by an equivalent one if it cannot be pickled."""
    error.add_note(f"{where}:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - unpickling may raise anything
        return EngineError(f"A worker process failed with {error!r}.")
    return error


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Delay Ctrl-C, which reaches all processes, here, and block it in processes started meanwhile."""
    from siteloom.core.interrupts import held_back_interrupt  # noqa: PLC0415 - workers need no database

    resource_tracker.ensure_running()  # otherwise it would be started meanwhile and unblock interrupts
    # New processes inherit the mask, but here another thread may get the signal: so it is also held back,
    # otherwise a half-started process would report an error.
    with held_back_interrupt():
        previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


def _end_with_parent() -> None:
    """End this process when its parent is gone, even if that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        signal.raise_signal(signal.SIGKILL)
