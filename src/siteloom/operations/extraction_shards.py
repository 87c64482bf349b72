"""Runs of extract: every shard is done once, whatever happens in between.

What came of a shard is committed as a whole, to the store or to a folder beside
the output. A run that was killed is taken up again by the same command: its
fingerprint tells that nothing has changed since, and what is committed is not done again.
"""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import re
import shutil
from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from siteloom import __version__
from siteloom.core.atomic_files import sync_to_disk
from siteloom.core.errors import OutputError
from siteloom.core.interrupts import held_back_interrupt
from siteloom.core.model import Failure
from siteloom.engines.local_engine import run_shards
from siteloom.extraction.extractor import (
    ShardExtraction,
    ShardResult,
    Tally,
    add_tally,
    tally_from,
    tally_rows,
)
from siteloom.html.parser import PARSER
from siteloom.operations.stored_wrappers import wrapper_texts_of_store
from siteloom.sources.html_folder import HTML_SUFFIXES, INDEX_FILE, Folder
from siteloom.sources.open_sources import place_on_disk
from siteloom.sources.page_source import Items
from siteloom.store.queries.records import ExtractedRow
from siteloom.wrappers.named_wrappers import WrapperText, wrapper_texts_of_files

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Generator, Iterable, Iterator, Sequence
    from types import TracebackType

    from siteloom.core.settings import ParseSettings
    from siteloom.sources.page_source import PageSource
    from siteloom.store.queries.records import Extraction
    from siteloom.store.store import Store

_FINGERPRINT_BYTES = 16

# As many as files of a folder: some seconds of work, and a few megabytes.
_ITEMS_OF_A_SHARD = 256

# The files of a folder journal.
_MARK = "run"
_LOCK = "lock"
_OWN_FILE = re.compile(r"run|run\.tmp|lock|[0-9]{8,}\.(?:jsonl|tmp)")


@dataclass(frozen=True, slots=True)
class Stream:
    """A source that can only be read from its start, such as a compressed file: it is read here, and cut."""

    source: PageSource

    def cut(self) -> Iterator[Items]:
        """Its items in shards, the same each time."""
        items = self.source.read()
        while some := tuple(islice(items, _ITEMS_OF_A_SHARD)):
            yield Items(some)


def shards_of(source: PageSource) -> Sequence[PageSource | Stream]:
    """The shards of a source, or else the source as a stream."""
    shards = source.shards()
    return shards if len(shards) > 1 else [Stream(source)]


@dataclass(frozen=True, slots=True)
class Plan:
    """All that decides what an extraction gives: wrappers, limits, and the pages in shards."""

    wrappers: Sequence[WrapperText]
    limits: ParseSettings
    shards: Sequence[PageSource | Stream]

    @property
    def shard_count(self) -> int | None:
        """How many shards there are, if that is known before all is read."""
        return None if any(isinstance(shard, Stream) for shard in self.shards) else len(self.shards)

    def fingerprint(self, files: Iterable[Path] = ()) -> str:
        """The same for plans that give the same; `files` are those of the pages, see `source_files`."""
        return fingerprint((list(self.wrappers), self.limits), self.shards, files)

    def results(self, jobs: int, done: Container[int] = ()) -> Generator[tuple[int, ShardResult], None, None]:
        """What comes of each shard that is not done yet, with its number, as soon as it is there."""
        left = ((number, shard) for number, shard in enumerate(self._cut()) if number not in done)
        return run_shards(partial(ShardExtraction, self.wrappers, self.limits), left, jobs)

    def _cut(self) -> Iterator[PageSource]:
        for shard in self.shards:
            if isinstance(shard, Stream):
                yield from shard.cut()
            else:
                yield shard


def fingerprint(asked: object, shards: Iterable[PageSource | Stream], files: Iterable[Path]) -> str:
    """The same for what is asked of the same pages and would come out the same."""
    digest = blake2b(digest_size=_FINGERPRINT_BYTES)
    digest.update(repr((__version__, PARSER, asked)).encode("utf-8", "surrogatepass"))
    for shard in shards:
        digest.update(pickle.dumps(shard, protocol=4))
    for file in files:
        digest.update(repr((str(file.absolute()), _state(file))).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def source_files(source: PageSource) -> Iterator[Path]:
    """The files of this machine that a source is read from; those elsewhere know their own state.

    Not the folder itself: that changes when anything is written there, be it our own output.
    """
    if not isinstance(source, Folder):
        if (file := place_on_disk(source)) is not None:
            yield file
        return
    yield source.path / INDEX_FILE
    yield from (file for file, _ in source.index)
    for folder, subfolders, names in os.walk(source.path):
        subfolders.sort()
        yield from (Path(folder, name) for name in sorted(names) if name.lower().endswith(HTML_SUFFIXES))


def _state(file: Path) -> tuple[int, int] | None:
    """What changes when the content of a file does."""
    try:
        state = file.stat()
    except (OSError, ValueError):
        return None
    return state.st_size, state.st_mtime_ns


def in_order(results: Iterable[tuple[int, ShardResult]]) -> Iterator[ShardResult]:
    """Results by their numbers, which are those from 0 on; early ones are held until it is their turn."""
    early: dict[int, ShardResult] = {}
    turn = 0
    for number, result in results:
        early[number] = result
        while turn in early:
            yield early.pop(turn)
            turn += 1


class Journal(Protocol):
    """Where the results of shards are kept until all are done."""

    @property
    def done(self) -> Collection[int]:
        """The numbers of the shards that are committed."""
        ...

    @property
    def tally(self) -> Tally:
        """What was counted in the shards that were committed before."""
        ...

    def commit(self, shard: int, result: ShardResult) -> None:
        """Keep a result as a whole."""
        ...

    def lines(self) -> Iterator[str]:
        """The records of all committed shards in order, as lines of JSON."""
        ...

    def failures(self) -> Iterator[Failure]:
        """The failures of all committed shards."""
        ...


def run_extraction(
    plan: Plan, journal: Journal, jobs: int, on_shard: Callable[[Tally], object] = lambda _: None
) -> Tally:
    """Do all shards that are not in the journal, and put them there; the tally is that of all shards."""
    total: Tally = Counter(journal.tally)
    with closing(plan.results(jobs, frozenset(journal.done))) as results:
        for shard, result in results:
            journal.commit(shard, result)
            add_tally(total, result.tally)
            on_shard(result.tally)
    return total


class StoreJournal:
    """A run in the store."""

    def __init__(self, store: Store, extraction: Extraction) -> None:
        self._store = store
        self._extraction = extraction
        self.run_id = extraction.run_id
        self.done = set(extraction.done_summaries)
        self.tally: Tally = Counter()
        for summary in extraction.done_summaries.values():
            add_tally(self.tally, tally_from(summary["tally"]))
        self._total: Tally = Counter(self.tally)
        self._count(self.tally)
        extraction.sum_up = lambda: _summary(self._total)

    def commit(self, shard: int, result: ShardResult) -> None:
        """Keep a result in one transaction."""
        rows = [ExtractedRow(*line) for line in result.lines]
        self._extraction.commit(shard, rows, result.failures, _summary(result.tally))
        self.done.add(shard)
        add_tally(self._total, result.tally)
        self._count(result.tally)

    def _count(self, tally: Tally) -> None:
        """Add to the counts of the run, which `status` shows."""
        failed = sum(count for key, count in tally.items() if key[0] == "failed")
        self._extraction.counts.update(pages=tally["pages",], records=tally["records",], failed=failed)

    def lines(self) -> Iterator[str]:
        """The records of the run in order."""
        return self._store.records(self._extraction.run_id)

    def failures(self) -> Iterator[Failure]:
        """The failures of the run."""
        return self._store.failures(self._extraction.run_id)


def _summary(tally: Tally) -> dict[str, object]:
    return {"tally": tally_rows(tally)}


class FolderJournal:
    """A folder beside the output, with a file for each shard that is done.

    A file has its numbers in the first line, then the records, then the failures, one a
    line. It appears complete or not at all. To be used in a `with` block: the folder is gone
    when that ends well, for what it holds is elsewhere then. Only one process can have it.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = folder
        self.done: set[int] = set()
        self.tally: Tally = Counter()
        try:
            _check_is_journal(folder)
            folder.mkdir(exist_ok=True)
            self._lock = _locked(folder)
            mark = folder / _MARK
            files = sorted(folder.glob("*.jsonl"))
            if mark.is_file() and mark.read_text() == fingerprint:
                for file in files:
                    self._take_up(file)
                return
            for file in files:  # before the mark: they must never stand beside that of another run
                file.unlink()
            _write_whole(mark, [fingerprint])
        except OSError as error:
            raise _unwritable(folder, error) from error

    def _take_up(self, file: Path) -> None:
        """Count a shard as done, unless its file is damaged: then it is done again."""
        try:
            with file.open(encoding="utf-8") as lines:
                tally = tally_from(json.loads(next(lines))["tally"])
        except (ValueError, KeyError, TypeError, StopIteration):
            return
        self.done.add(int(file.stem))
        add_tally(self.tally, tally)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            # The lock last: whoever gets it finds nothing else that is about to go.
            for file in self.folder.iterdir():
                if file.name != _LOCK:
                    file.unlink(missing_ok=True)
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)

    def commit(self, shard: int, result: ShardResult) -> None:
        """Keep a result in a file of its own."""
        header = {"records": len(result.lines), "tally": tally_rows(result.tally)}
        lines = [json.dumps(header), *(line.content for line in result.lines)]
        lines += [json.dumps([one.url, one.reason, one.detail]) for one in result.failures]
        try:
            with held_back_interrupt():
                _write_whole(self._file(shard), lines)
                self.done.add(shard)
        except OSError as error:
            raise _unwritable(self.folder, error) from error

    def lines(self) -> Iterator[str]:
        """The records of all shards in order."""
        for shard in sorted(self.done):
            records, lines = self._read(shard)
            for _ in range(records):
                yield next(lines).rstrip("\n")

    def failures(self) -> Iterator[Failure]:
        """The failures of all shards in order."""
        for shard in sorted(self.done):
            records, lines = self._read(shard)
            for number, line in enumerate(lines):
                if number >= records:
                    yield Failure(*json.loads(line))

    def _file(self, shard: int) -> Path:
        return self.folder / f"{shard:08}.jsonl"

    def _read(self, shard: int) -> tuple[int, Iterator[str]]:
        """How many records a file has, and its lines."""
        lines = self._lines(shard)
        return json.loads(next(lines))["records"], lines

    def _lines(self, shard: int) -> Iterator[str]:
        with self._file(shard).open(encoding="utf-8", newline="\n") as lines:
            yield from lines


def _check_is_journal(folder: Path) -> None:
    """Refuse what someone else has put there; of our own, whatever a process left that was killed is fine."""
    is_there = folder.exists() or folder.is_symlink()
    if is_there and (
        not folder.is_dir()
        or folder.is_symlink()
        or not all(_OWN_FILE.fullmatch(file.name) for file in folder.iterdir())
    ):
        raise OutputError(
            f"{folder} is where the results of a run are kept until it is done, but something else is there: "
            "move it away, or give another -o."
        )


def _locked(folder: Path) -> int:
    """An open file that no other process can have; the system gives it back when this one ends."""
    file = folder / _LOCK
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_ours = file.exists() and os.path.samestat(os.fstat(handle), file.stat())
    except BlockingIOError:
        is_ours = False
    if not is_ours:  # or whoever had it has just removed it
        os.close(handle)
        raise OutputError(
            f"Another process is extracting to {folder.with_suffix('')}: try again when it ends, "
            "or give another -o."
        )
    return handle


def _write_whole(file: Path, lines: Iterable[str]) -> None:
    temporary = file.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8", errors="replace", newline="\n") as output:
        output.write("\n".join(lines))
        output.flush()
        os.fsync(output.fileno())
    temporary.replace(file)
    sync_to_disk(file.parent)  # or the file may be gone after a power cut


def _unwritable(folder: Path, error: OSError) -> OutputError:
    return OutputError(f"{folder} cannot be written: {error.strerror or error}.")


def workspace_plan(
    store: Store, limits: ParseSettings, site: str | None = None, files: Sequence[str] = ()
) -> Plan:
    """What is to be done with the pages of a workspace, or of a site, by its wrappers or those of files."""
    if site is not None:
        store.require_sites([site])
    wrappers = wrapper_texts_of_files(files) if files else wrapper_texts_of_store(store)
    return Plan(wrappers, limits, store.page_shards(site))


@contextmanager
def workspace_journal(store: Store, plan: Plan, site: str | None = None) -> Iterator[StoreJournal]:
    """A run of extract in a workspace: one that was stopped, if the same plan began it, or a new one."""
    arguments = {"site": site, "wrappers": [one.name for one in plan.wrappers]}
    with store.extracting(arguments, plan.fingerprint()) as extraction:
        yield StoreJournal(store, extraction)
