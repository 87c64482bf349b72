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
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, Self, TextIO

from siteloom import __version__
from siteloom.core.confined_folder import ConfinedFolder
from siteloom.core.errors import OutputError
from siteloom.core.interrupts import held_back_interrupt
from siteloom.core.model import Failure
from siteloom.engines.local_engine import run_shards
from siteloom.extraction.extraction_counts import ExtractionCounts, sum_of
from siteloom.extraction.shard_extraction import ShardExtraction, ShardResult
from siteloom.html.parser import PARSER
from siteloom.sources.html_folder import HTML_SUFFIXES, INDEX_FILE, Folder
from siteloom.sources.open_sources import place_on_disk
from siteloom.sources.page_source import Items

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Generator, Iterable, Iterator, Sequence
    from types import TracebackType

    from siteloom.core.settings import ParseSettings
    from siteloom.sources.page_source import PageSource
    from siteloom.store.queries.records import Extraction
    from siteloom.store.store import Store
    from siteloom.wrappers.matching import NamedWrapper

_FINGERPRINT_BYTES = 16

# As many as files of a folder: some seconds of work, and a few megabytes.
_ITEMS_OF_A_SHARD = 256

# The files of a folder journal.
_MARK = "run"
_LOCK = "lock"
_SHARD = re.compile(r"[0-9]{8,}\.jsonl")
# Version 1.0 wrote to files that ended in .tmp.
_OWN_FILE = re.compile(rf"(?:run|{_SHARD.pattern})(?:\.unfinished)?|lock|run\.tmp|[0-9]{{8,}}\.tmp")


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

    wrappers: Sequence[NamedWrapper]
    limits: ParseSettings
    shards: Sequence[PageSource | Stream]

    @property
    def shard_count(self) -> int | None:
        """How many shards there are, if that is known before all is read."""
        return None if any(isinstance(shard, Stream) for shard in self.shards) else len(self.shards)

    def fingerprint(self, files: Iterable[Path] = ()) -> str:
        """Equal for plans that produce the same output; `files` are those of the pages: `source_files`."""
        wrappers = [
            (named.name, named.version, named.site, named.wrapper.to_json()) for named in self.wrappers
        ]
        return fingerprint((wrappers, self.limits), self.shards, files)

    def results(self, jobs: int, done: Container[int] = ()) -> Generator[tuple[int, ShardResult], None, None]:
        """The result of each shard that is not done yet, with its number, as soon as it is there."""
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
    def counts(self) -> ExtractionCounts:
        """The counts of the shards that are committed."""
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
    plan: Plan, journal: Journal, jobs: int, on_shard: Callable[[int, ShardResult], object] = lambda *_: None
) -> None:
    """Extract all shards that are not in the journal, and put them there."""
    with closing(plan.results(jobs, frozenset(journal.done))) as results:
        for shard, result in results:
            journal.commit(shard, result)
            on_shard(shard, result)


class StoreJournal:
    """A run in the store."""

    def __init__(self, store: Store, extraction: Extraction) -> None:
        self._store = store
        self._extraction = extraction
        self.run_id = extraction.run_id
        self.done = set(extraction.done_summaries)
        self.counts = sum_of(
            ExtractionCounts.from_rows(summary["tally"]) for summary in extraction.done_summaries.values()
        )
        self._update_run(self.counts)
        extraction.sum_up = lambda: _summary(self.counts)

    def commit(self, shard: int, result: ShardResult) -> None:
        """Keep a result in one transaction."""
        self._extraction.commit(shard, result.rows, result.failures, _summary(result.counts))
        self.done.add(shard)
        self.counts.add(result.counts)
        self._update_run(result.counts)

    def _update_run(self, counts: ExtractionCounts) -> None:
        """Add to the counts of the run, which `status` shows."""
        self._extraction.counts.update(pages=counts.pages, records=counts.records, failed=counts.failed)

    def lines(self) -> Iterator[str]:
        """The records of the run in order."""
        return self._store.records(self._extraction.run_id)

    def failures(self) -> Iterator[Failure]:
        """The failures of the run."""
        return self._store.failures(self._extraction.run_id)


def _summary(counts: ExtractionCounts) -> dict[str, object]:
    return {"tally": counts.to_rows()}


class FolderJournal:
    """A folder beside the output, with a file for each shard that is done.

    A file has its numbers in the first line, then the records, then the failures, one a
    line. It appears complete or not at all. To be used in a `with` block: the folder is gone
    when that ends well, for what it holds is elsewhere then. Only one process can have it.
    The folder may have come with others of someone else: nothing is read or written through links.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = folder
        self.done: set[int] = set()
        self.counts = ExtractionCounts()
        self._files = ConfinedFolder(folder.parent)
        try:
            folder.parent.stat()  # it is not made here
            _check_is_journal(folder)
            self._files.make_folder(folder.name)
            self._lock = self._locked()
            with ExitStack() as on_failure:
                on_failure.callback(self._lock.close)
                self._begin(fingerprint)
                on_failure.pop_all()
        except OSError as error:
            raise _unwritable(folder, error) from error

    def _begin(self, fingerprint: str) -> None:
        """Go on where a run with this fingerprint has stopped, or begin anew."""
        files = [name for name in self._files.names(self.folder.name) if _SHARD.fullmatch(name)]
        if self._marked_for(fingerprint):
            for name in files:
                self._take_up(name)
            return
        for name in files:  # before the mark: they must never stand beside that of another run
            self._files.remove(self._name(name))
        self._files.write(self._name(_MARK), fingerprint.encode())

    def _name(self, name: str) -> str:
        return f"{self.folder.name}/{name}"

    def _open(self, name: str) -> TextIO:
        return TextIOWrapper(self._files.open(self._name(name), "rb"), encoding="utf-8", newline="\n")

    def _marked_for(self, fingerprint: str) -> bool:
        """Whether the files are those of a run with this fingerprint."""
        try:
            with self._open(_MARK) as mark:
                return mark.read(len(fingerprint) + 1) == fingerprint
        except (FileNotFoundError, UnicodeDecodeError):
            return False

    def _locked(self) -> IO[bytes]:
        """An open file that no other process can have; the system gives it back when this one ends."""
        handle = self._files.open(self._name(_LOCK), "a+b")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = os.path.samestat(os.fstat(handle.fileno()), os.lstat(self.folder / _LOCK))
        except (BlockingIOError, FileNotFoundError):
            is_ours = False
        if not is_ours:  # or whoever had it has just removed it
            handle.close()
            raise OutputError(
                f"Another process is extracting to {self.folder.with_suffix('')}: try again when it ends, "
                "or give another -o."
            )
        return handle

    def _take_up(self, name: str) -> None:
        """Count a shard as done, unless its file is damaged: then it is done again."""
        try:
            with self._open(name) as lines:
                counts = ExtractionCounts.from_rows(json.loads(next(lines))["tally"])
        except (ValueError, KeyError, TypeError, StopIteration):
            return
        self.done.add(int(name.partition(".")[0]))
        self.counts.add(counts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            # The lock last: whoever gets it finds nothing else that is about to go.
            for name in self._files.names(self.folder.name):
                if name != _LOCK:
                    self._files.remove(self._name(name))
            with suppress(OSError):
                self._files.remove_tree(self.folder.name)
        self._lock.close()

    def commit(self, shard: int, result: ShardResult) -> None:
        """Keep a result in a file of its own."""
        header = {"records": len(result.rows), "tally": result.counts.to_rows()}
        lines = [json.dumps(header), *(row.content for row in result.rows)]
        lines += [json.dumps([one.url, one.reason, one.detail]) for one in result.failures]
        try:
            with held_back_interrupt():
                content = "\n".join(lines).encode("utf-8", "replace")
                self._files.write(self._name(_file_of(shard)), content)
                self.done.add(shard)
                self.counts.add(result.counts)
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

    def _read(self, shard: int) -> tuple[int, Iterator[str]]:
        """How many records a file has, and its lines."""
        lines = self._lines(shard)
        return json.loads(next(lines))["records"], lines

    def _lines(self, shard: int) -> Iterator[str]:
        with self._open(_file_of(shard)) as lines:
            yield from lines


def _file_of(shard: int) -> str:
    return f"{shard:08}.jsonl"


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


def _unwritable(folder: Path, error: OSError) -> OutputError:
    return OutputError(f"{folder} cannot be written: {error.strerror or error}.")
