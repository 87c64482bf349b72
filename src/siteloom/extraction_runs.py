"""Runs of extract: every shard is done once, whatever happens in between.

What came of a shard is committed as a whole, to the store or to a folder beside
the output. A run that was killed is taken up again by the same command: its
fingerprint tells that nothing has changed since, and what is committed is not done again.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections import Counter
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from siteloom.engine import run_shards
from siteloom.errors import OutputError, StoreError, WrapperError
from siteloom.extraction import ShardExtraction, ShardResult, Tally, WrapperText, tally_from, tally_rows
from siteloom.model import Failure
from siteloom.store import ExtractedRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from siteloom.config import ParseSettings
    from siteloom.pages import PageSource
    from siteloom.store import Extraction, Store

_FINGERPRINT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Plan:
    """All that decides what an extraction gives: wrappers, limits, and the pages in shards."""

    wrappers: Sequence[WrapperText]
    limits: ParseSettings
    shards: Sequence[PageSource]

    def fingerprint(self, sources: Iterable[str]) -> str:
        """The same for plans that give the same; `sources` are the files and folders of the pages."""
        digest = blake2b(digest_size=_FINGERPRINT_BYTES)
        digest.update(repr((list(self.wrappers), self.limits)).encode("utf-8", "surrogatepass"))
        for shard in self.shards:
            digest.update(pickle.dumps(shard, protocol=4))
        for source in sources:
            state = Path(source).stat()
            digest.update(repr((str(Path(source).resolve()), state.st_size, state.st_mtime_ns)).encode())
        return digest.hexdigest()

    def results(self, jobs: int, done: Iterable[int] = ()) -> Iterator[tuple[int, ShardResult]]:
        """What comes of each shard that is not done yet, with its number, as soon as it is there."""
        left = sorted(set(range(len(self.shards))).difference(done))
        return run_shards(partial(ShardExtraction, self.wrappers, self.limits), self.shards, left, jobs)


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
    def done(self) -> Mapping[int, Tally]:
        """The tally of each shard that is committed."""
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
    total: Tally = Counter()
    for tally in journal.done.values():
        total.update(tally)
        on_shard(tally)
    for shard, result in plan.results(jobs, journal.done):
        journal.commit(shard, result)
        total.update(result.tally)
        on_shard(result.tally)
    return total


class StoreJournal:
    """A run in the store."""

    def __init__(self, store: Store, extraction: Extraction) -> None:
        self._store = store
        self._extraction = extraction
        self.done = {shard: tally_from(summary["tally"]) for shard, summary in extraction.done.items()}
        for tally in self.done.values():
            self._count(tally)

    def commit(self, shard: int, result: ShardResult) -> None:
        """Keep a result in one transaction."""
        rows = [ExtractedRow(*line) for line in result.lines]
        self._extraction.commit(shard, rows, result.failures, {"tally": tally_rows(result.tally)})
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


class FolderJournal:
    """A folder beside the output, with a file for each shard that is done.

    A file has its numbers in the first line, then the records, then the failures, one a
    line. It appears complete or not at all.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder = folder
        self.done: dict[int, Tally] = {}
        try:
            if self._mark.is_file() and self._mark.read_text() == fingerprint:
                for file in sorted(folder.glob("*.jsonl")):
                    with file.open(encoding="utf-8") as lines:
                        self.done[int(file.stem)] = tally_from(json.loads(next(lines))["tally"])
                return
            if folder.exists():
                _check_is_journal(folder)
                shutil.rmtree(folder)
            folder.mkdir()
            _write_whole(self._mark, [fingerprint])
        except OSError as error:
            raise _unwritable(folder, error) from error

    @property
    def _mark(self) -> Path:
        return self.folder / "run"

    def commit(self, shard: int, result: ShardResult) -> None:
        """Keep a result in a file of its own."""
        header = {"records": len(result.lines), "tally": tally_rows(result.tally)}
        lines = [json.dumps(header), *(line.content for line in result.lines)]
        lines += [json.dumps([one.url, one.reason, one.detail]) for one in result.failures]
        try:
            _write_whole(self._file(shard), lines)
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        self.done[shard] = result.tally

    def lines(self) -> Iterator[str]:
        """The records of all shards in order."""
        for shard in sorted(self.done):
            records, lines = self._read(shard)
            for _ in range(records):
                yield next(lines)

    def failures(self) -> Iterator[Failure]:
        """The failures of all shards in order."""
        for shard in sorted(self.done):
            records, lines = self._read(shard)
            for number, line in enumerate(lines):
                if number >= records:
                    yield Failure(*json.loads(line))

    def close(self) -> None:
        """Remove the folder, once what it holds is elsewhere."""
        shutil.rmtree(self.folder)

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
    if not (folder / "run").is_file():
        raise OutputError(
            f"{folder} is where the results of a run are kept until it is done, but something else is there: "
            "move it away, or give another -o."
        )


def _write_whole(file: Path, lines: Iterable[str]) -> None:
    temporary = file.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8", errors="replace", newline="\n") as output:
        output.write("\n".join(lines))
        output.flush()
        os.fsync(output.fileno())
    temporary.replace(file)


def _unwritable(folder: Path, error: OSError) -> OutputError:
    return OutputError(f"{folder} cannot be written: {error.strerror or error}.")


def wrapper_texts_of_files(files: Sequence[str]) -> list[WrapperText]:
    """The wrappers of files, each named as its file; where that is not enough to tell them apart, by the path."""
    stems = Counter(Path(file).stem for file in files)
    texts = []
    for file in files:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise WrapperError(f"There is no wrapper {file}: check the path.") from error
        except (OSError, UnicodeDecodeError) as error:
            raise WrapperError(f"The wrapper {file} cannot be read: {error}.") from error
        name = Path(file).stem if stems[Path(file).stem] == 1 else file
        texts.append(WrapperText(name, None, text))
    return texts


def wrapper_texts_of_store(store: Store) -> list[WrapperText]:
    """The newest version of each wrapper of a workspace."""
    found = [WrapperText(one.name, one.version, one.text) for one in store.wrappers()]
    if not found:
        raise StoreError("The workspace has no wrapper: learn one first, or give --wrapper FILE.")
    return found

