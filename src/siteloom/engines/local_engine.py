"""The local engine: processes of this machine, each doing one shard at a time.

A shard is handed to a process as it is, and what comes of it is handed back; what
it names, the process reads itself. Shards are taken one by one, no more are under way
than there are processes, and one that is done is forgotten, so memory stays flat.

A process that dies, of a page that takes all memory for instance, takes only its own shard down:
a new process begins it again. One death tells nothing, for processes may be killed for any reason; after
a second one at the same step, that step is left out. If it is the time limit of pages that has killed it, one
death tells all.
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
    ROWS_OF_A_BATCH,
    SECONDS_BEFORE_OTHER_TRIES,
    TRANSIENT,
    PartWork,
    Result,
    RowFiles,
    Shard,
    Work,
    cut_by,
)
from siteloom.html.time_limit import ENDED_BY, Lost, ended_by, killable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

# New processes, not copies of this one: a copy would hold its locks and its connections to databases.
_PROCESSES = multiprocessing.get_context("spawn")

# For each process, how many shards may be done before their turn: whoever wants them in order must hold them.
_AHEAD = 8

# Their rows are in memory at a time, about as many as a part has.
_FILES_DIVIDED_TOGETHER = 16

_MOST_DEATHS = 20  # of processes in one shard; then it is not the pages that kill them
_MOST_UNEXPLAINED = 1  # of these, at no step or at one that was left out


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """So many processes of this machine."""

    jobs: int = 1

    def run(
        self,
        start: Callable[[], Work[Shard, Result]],
        shards: Sequence[tuple[int, Shard]],
        on_done: Callable[[int], object] = lambda _: None,
    ) -> list[tuple[int, Result]]:
        """Do shards: see `siteloom.engines.engine.Engine`."""
        results = []
        with closing(run_shards(partial(_Patient, start), shards, self.jobs)) as done:
            for result in done:
                results.append(result)
                on_done(1)
        return results

    def regroup(
        self,
        start: Callable[[], PartWork[Result]],
        rows: RowFiles,
        parts: Sequence[int],
        on_done: Callable[[int], object] = lambda _: None,
    ) -> list[tuple[int, Result]]:
        """Do parts: see `siteloom.engines.engine.Engine`.

        Each file is read once. Its rows are divided in files of a temporary folder, where those of a part
        stand together and need not be in memory.
        """
        starts = range(0, len(rows.files), _FILES_DIVIDED_TOGETHER)
        groups = [(start, rows.files[start : start + _FILES_DIVIDED_TOGETHER]) for start in starts]
        with tempfile.TemporaryDirectory(prefix="siteloom-") as folder:
            here = LocalEngine(self.jobs if len(groups) > 1 else 1)  # a new process costs more than one group
            divided = sorted(here.run(partial(_Dividing, rows, frozenset(parts), folder), groups))
            pieces: dict[int, list[_Piece]] = {part: [] for part in parts}
            for _, of_parts in divided:
                for part, piece in of_parts.items():
                    pieces[part].append(piece)
            found = {part: of_part for part, of_part in pieces.items() if of_part}
            on_done(len(parts) - len(found))
            shards = [(part, (part, of_part)) for part, of_part in found.items()]
            return self.run(partial(_Regrouping, start), shards, on_done)


class _Patient(Generic[Shard, Result]):
    """Work that is tried again if it fails of what may be gone some moments later."""

    def __init__(self, start: Callable[[], Work[Shard, Result]]) -> None:
        self._work = start()

    def __call__(self, shard: Shard, lost: Lost, step: Callable[[int], None]) -> Result:
        for seconds in SECONDS_BEFORE_OTHER_TRIES:
            try:
                return self._work(shard, lost, step)
            except TRANSIENT:
                time.sleep(seconds)
        return self._work(shard, lost, step)


class _Piece(NamedTuple):
    """Rows of a part: a stream of Arrow that begins somewhere in a file."""

    file: str
    start: int

    def read(self) -> Any:
        pa = load_pyarrow()

        with pa.memory_map(self.file) as content:
            content.seek(self.start)
            return pa.ipc.open_stream(content).read_all()


class _Dividing:
    """The work of dividing the rows of some files by their parts."""

    def __init__(self, rows: RowFiles, parts: frozenset[int], folder: str) -> None:
        self._rows = rows
        self._parts = parts
        self._folder = folder

    def __call__(
        self,
        shard: Sequence[str],
        lost: Lost,  # noqa: ARG002 - there are no pages
        step: Callable[[int], None],  # noqa: ARG002
    ) -> dict[int, _Piece]:
        """The parts that have rows in these files, and where these are now."""
        pa = load_pyarrow()

        found: defaultdict[int, list[Any]] = defaultdict(list)
        for file in shard:
            for part, batches in cut_by("part", self._rows.read(file, self._parts)):
                found[part].extend(batches)
        pieces = {}
        with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as divided:
            for part, of_part in found.items():
                pieces[part] = _Piece(divided.name, divided.tell())
                table = pa.Table.from_batches(of_part)
                with pa.ipc.new_stream(divided, self._rows.schema) as stream:
                    # Many small batches would take longer, and large ones twice the memory.
                    stream.write_table(table if table.nbytes > BYTES_OF_A_BATCH else table.combine_chunks())
        return pieces


class _Regrouping(Generic[Result]):
    """The work on a part, of which there are pieces."""

    def __init__(self, start: Callable[[], PartWork[Result]]) -> None:
        self._work = start()

    def __call__(
        self,
        shard: tuple[int, Sequence[_Piece]],
        lost: Lost,  # noqa: ARG002 - a part has no steps
        step: Callable[[int], None],  # noqa: ARG002
    ) -> Result:
        """What comes of the part."""
        part, pieces = shard
        return self._work(part, _in_order([batch for piece in pieces for batch in piece.read().to_batches()]))


def _in_order(batches: Sequence[Any]) -> Iterator[Any]:
    """Batches with the rows of others by `key` and `place`.

    Only these two columns are brought together: Arrow holds no more than 2 GB of a column in one piece.
    """
    import numpy as np  # noqa: PLC0415 - slow to load, and workers may not need it

    pa = load_pyarrow()

    places = pa.Table.from_batches(batches).select(["key", "place"])
    by = [("key", "ascending"), ("place", "ascending")]
    order = pa.compute.sort_indices(places, sort_keys=by).to_numpy().astype(np.int64)
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])

    def gathered(rows: Any) -> Iterator[Any]:
        sources = np.searchsorted(starts, rows, side="right") - 1
        taken = [
            batches[source].take(pa.array(rows[sources == source] - starts[source]))
            for source in np.unique(sources)
        ]
        if len(rows) > 1 and sum(batch.nbytes for batch in taken) > BYTES_OF_A_BATCH:
            yield from gathered(rows[: len(rows) // 2])
            yield from gathered(rows[len(rows) // 2 :])
        else:
            together = pa.Table.from_batches(taken).combine_chunks()
            yield from together.take(np.argsort(np.argsort(sources, kind="stable"))).to_batches()

    for start in range(0, len(order), ROWS_OF_A_BATCH):
        yield from gathered(order[start : start + ROWS_OF_A_BATCH])


def run_shards(
    start: Callable[[], Work[Shard, Result]], shards: Iterable[tuple[int, Shard]], jobs: int
) -> Generator[tuple[int, Result], None, None]:
    """Do shards that come with their numbers, and give what comes of each as soon as it is there.

    `start` makes what is done, once a process; with one job, all is done in this process.
    Close the generator if not all is wanted: the processes end with it.
    """
    if jobs == 1:
        work = start()
        for number, shard in shards:
            yield number, work(shard, Lost({}), lambda _: None)
        return
    pool: list[_Worker[Shard, Result]] = []
    waiting = _Waiting(shards)
    try:
        while True:
            while len(pool) < jobs and waiting.first is not None:
                pool.append(_Worker.started(start))
                _hand_out(waiting, pool, most_ahead=_AHEAD * jobs)
            _hand_out(waiting, pool, most_ahead=_AHEAD * jobs)
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
                if isinstance(answer, _Died):
                    _note_death(task, answer)
                    waiting.put_back(task)
                    pool.remove(worker)
                    worker.end()
                else:
                    yield task.number, answer
    finally:
        for worker in pool:
            worker.end()


def _hand_out(waiting: _Waiting[Shard], pool: Sequence[_Worker[Shard, Result]], most_ahead: int) -> None:
    """Give each idle process a shard, but none that is too far ahead of one that is not done."""
    for worker in pool:
        under_way = [other.task.place for other in pool if other.task is not None]
        if worker.task is None and (task := waiting.first) is not None:
            if under_way and task.place - min(under_way) > most_ahead:
                return
            worker.take(task)
            waiting.drop_first()


@dataclass(slots=True)
class _Task(Generic[Shard]):
    """A shard with its number and its place in the order, and the steps that killed processes."""

    number: int
    place: int
    shard: Shard
    lost: dict[int, str] = field(default_factory=dict)
    suspected: set[int] = field(default_factory=set)
    deaths: int = 0
    unexplained: int = 0


class _Waiting(Generic[Shard]):
    """The shards that are still to be begun, of which only the first is known, or begun again."""

    def __init__(self, shards: Iterable[tuple[int, Shard]]) -> None:
        self._coming = (_Task(number, place, shard) for place, (number, shard) in enumerate(shards))
        self._known: deque[_Task[Shard]] = deque()

    @property
    def first(self) -> _Task[Shard] | None:
        """The next one, if there is one."""
        if not self._known:
            self._known.extend(islice(self._coming, 1))
        return self._known[0] if self._known else None

    def drop_first(self) -> None:
        """Let it go: it is begun."""
        self._known.popleft()

    def put_back(self, task: _Task[Shard]) -> None:
        """Take one back that must be begun again, before all others."""
        self._known.appendleft(task)


class _Died(NamedTuple):
    """A process that ended before its shard: at which step, and how."""

    step: int
    how: str


def _note_death(task: _Task[Any], death: _Died) -> None:
    is_explained = death.step != NO_STEP and death.step not in task.lost
    is_too_long = is_explained and death.how == ended_by(ENDED_BY)
    task.deaths += not is_too_long  # of such pages there may be as many as there are pages
    task.unexplained += not is_explained
    if task.deaths > _MOST_DEATHS or task.unexplained > _MOST_UNEXPLAINED:
        raise EngineError(
            f"Worker processes die one after the other, the last of them {death.how}: "
            "see whether there is memory enough, and run the same command again to go on."
        )
    if is_too_long or (is_explained and death.step in task.suspected):
        task.lost[death.step] = death.how
    task.suspected.add(death.step)


class _Worker(Generic[Shard, Result]):
    """A process and what it is doing."""

    def __init__(self, process: Any, pipe: Connection, at_step: Any) -> None:
        self.process = process
        self.pipe = pipe
        self.task: _Task[Shard] | None = None
        self._at_step = at_step

    @classmethod
    def started(cls, start: Callable[[], Work[Shard, Result]]) -> _Worker[Shard, Result]:
        pipe, other_end = _PROCESSES.Pipe()
        at_step = _PROCESSES.Value("q", NO_STEP, lock=False)
        process = _PROCESSES.Process(target=_serve, args=(start, other_end, at_step), daemon=True)
        worker = cls(process, pipe, at_step)
        try:
            with safe_path(), _interrupts_blocked():
                process.start()
        except KeyboardInterrupt:
            worker.end()
            raise
        other_end.close()
        return worker

    def take(self, task: _Task[Shard]) -> None:
        """Begin a shard."""
        self.task = task
        self._at_step.value = NO_STEP
        # A process that is dead is found so when its answer is awaited.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.pipe.send((task.shard, Lost(task.lost)))

    def answer(self) -> Any:
        """What came of the shard."""
        try:
            result, error = self.pipe.recv()
        except (EOFError, OSError):  # the latter if it died while answering
            self.process.join()
            return _Died(self._at_step.value, _ending(self.process.exitcode))
        if error is not None:
            raise error
        return result

    def end(self) -> None:
        if self.process.pid is not None:  # it is None if Ctrl-C was pressed before it could start
            self.process.kill()
            self.process.join()
        self.pipe.close()


def _ending(code: int) -> str:
    return ended_by(-code) if code < 0 else f"ended with status {code}"


def _serve(start: Callable[[], Work[Any, Any]], pipe: Connection, at_step: Any) -> None:
    """The life of a process: shards in, results out, until there is no one to ask for them."""
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
            except Exception as error:  # noqa: BLE001 - raised where the shards come from
                answer = pickle.dumps((None, sendable(error, "In a worker process")))
            step(NO_STEP)
            pipe.send_bytes(answer)


def sendable(error: Exception, where: str) -> Exception:
    """An error with the place where it happened; another that says the same if it cannot be sent as it is."""
    error.add_note(f"{where}:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - whatever its class does when it is made again
        return EngineError(f"A worker process failed with {error!r}.")
    return error


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Let Ctrl-C, which reaches all processes, wait here, and never be heard by those started meanwhile."""
    from siteloom.core.interrupts import held_back_interrupt  # noqa: PLC0415 - workers need no database

    resource_tracker.ensure_running()  # or it would be started meanwhile and let interrupts through
    # What is blocked stays so in new processes, but here another thread may get it: so it is held back, too,
    # or a process that was only half started would complain.
    with held_back_interrupt():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, even if it was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        signal.raise_signal(signal.SIGKILL)
