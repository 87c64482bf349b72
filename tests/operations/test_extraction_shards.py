"""Runs of extract: what is done is kept, and done once, whatever happens in between."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from siteloom.core.errors import OutputError, SourceError, StoreError, WrapperError
from siteloom.core.model import Failure, Page
from siteloom.core.settings import PagesSettings, ParseSettings
from siteloom.extraction.extraction_counts import ExtractionCounts, sum_of
from siteloom.extraction.shard_extraction import ExtractedRow, ShardResult
from siteloom.operations import extraction_shards
from siteloom.operations.extraction_shards import (
    FolderJournal,
    Journal,
    Plan,
    StoreJournal,
    in_order,
    run_extraction,
    shards_of,
    source_files,
)
from siteloom.operations.stored_wrappers import wrappers_of_store
from siteloom.sources.open_sources import open_source
from siteloom.sources.page_source import Items
from siteloom.store.store import Store
from siteloom.wrappers.matching import NO_WRAPPER_FOR_URL, NamedWrapper
from siteloom.wrappers.named_wrappers import wrappers_of_files
from siteloom.wrappers.wrapper import Wrapper
from tests.extraction.test_extraction import SHOP, named, shop
from tests.operations.calls import extract_records
from tests.store.helpers import put

EMPTY = Wrapper({}).to_json()
FAILURE = Failure("a.jsonl:1", "not valid JSON", "at\nline 1")
ODD = Page.from_text("https://shop.example/about/us", "<p>We sell.")


@cache
def plan() -> Plan:
    """Five shards; the last but one gives nothing, the last only failures."""
    shards = [Items(SHOP[:3]), Items((FAILURE, *SHOP[3:5])), Items((SHOP[5], ODD)), Items(()), Items((ODD,))]
    return Plan((named(shop()),), ParseSettings(), shards)


def result(*contents: str, failures: Sequence[Failure] = ()) -> ShardResult:
    rows = [ExtractedRow(f"https://a.example/{one}", "w", 1, json.dumps({"is": one})) for one in contents]
    counts = ExtractionCounts.from_rows([["pages", 3], ["failed", "so", len(failures)]])
    return ShardResult(rows, list(failures), counts)


class Stopped(Exception):
    pass


def stop_after(shards: int) -> Iterator[None]:
    yield from [None] * (shards - 1)
    raise Stopped


def stop_midway(journal: Journal, shards: int) -> None:
    steps = stop_after(shards)
    with pytest.raises(Stopped):
        run_extraction(plan(), journal, 1, lambda *_: next(steps))


# ---- fingerprints


def test_a_fingerprint_changes_with_all_that_decides_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("{}\n")
    one = plan()
    assert one.fingerprint([file]) == replace(one).fingerprint([file])
    (wrapper,) = one.wrappers
    others = {
        "name": replace(one, wrappers=[wrapper._replace(name="other")]),
        "version": replace(one, wrappers=[wrapper._replace(version=2)]),
        "wrapper": replace(one, wrappers=[wrapper._replace(wrapper=Wrapper({}))]),
        "one more": replace(one, wrappers=[wrapper, wrapper]),
        "limits": replace(one, limits=ParseSettings(max_tags=7)),
        "shards": replace(one, shards=one.shards[:-1]),
        "order": replace(one, shards=one.shards[::-1]),
    }
    found = {what: other.fingerprint([file]) for what, other in others.items()}
    found["itself"] = one.fingerprint([file])
    found["no file"] = one.fingerprint()
    os.utime(file, ns=(1, 1))
    found["touched"] = one.fingerprint([file])
    file.write_text("{}\n\n")
    os.utime(file, ns=(1, 1))
    found["longer"] = one.fingerprint([file])
    file.unlink()
    found["gone"] = one.fingerprint([file])
    monkeypatch.setattr("siteloom.operations.extraction_shards.__version__", "999")
    found["of another Siteloom"] = one.fingerprint()
    assert len(set(found.values())) == len(found)


def folder_fingerprint(folder: Path) -> str:
    source = open_source(folder, PagesSettings())
    return Plan((), ParseSettings(), source.shards()).fingerprint(source_files(source))


def test_the_fingerprint_of_a_folder_is_that_of_its_pages(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("a.html", "deep/b.HTM", "c.txt"):
        (tmp_path / name).write_text("<p>x")
    (tmp_path / "index.csv").write_text("file,url\nc.txt,https://a.example/c\nnone.txt,https://a.example/d\n")
    before = folder_fingerprint(tmp_path)
    # What is written beside the pages, be it our own output, changes nothing.
    (tmp_path / "out.jsonl").write_text("{}")
    (tmp_path / "out.jsonl.parts").mkdir()
    assert folder_fingerprint(tmp_path) == before
    # Any page does, also one that only the index knows.
    found = {before}
    for name in ("a.html", "deep/b.HTM", "c.txt", "index.csv", "none.txt"):
        with (tmp_path / name).open("a") as file:
            file.write("\n")
        found.add(folder_fingerprint(tmp_path))
    (tmp_path / "new.html").write_text("<p>y")
    found.add(folder_fingerprint(tmp_path))
    assert len(found) == 7


# ---- order


def test_results_come_in_order() -> None:
    results = [(number, result(str(number))) for number in (2, 0, 1, 4, 3)]
    assert list(in_order(results)) == [result(str(number)) for number in range(5)]


def test_no_result_is_held_longer_than_needed() -> None:
    given: list[int] = []

    def results() -> Iterator[tuple[int, ShardResult]]:
        for number in (1, 0, 2):
            given.append(number)
            yield number, result(str(number))

    ordered = in_order(results())
    assert next(ordered) == result("0")
    assert next(ordered) == result("1")
    assert given == [1, 0]


# ---- the folder


def test_what_is_committed_is_there_again_and_gone_in_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "out.jsonl.parts"
    failures = (FAILURE, Failure("é\ud800", "so", "\u2028"))
    results = {
        7: result("a\u2028b", "é\x85", failures=failures),
        0: result(failures=failures[:1]),
        12: result("x" * 100_000),
        3: result(),
    }
    with suppress(Stopped), FolderJournal(folder, "f") as journal:
        for shard, one in results.items():
            journal.commit(shard, one)
        raise Stopped
    with FolderJournal(folder, "f") as again:
        assert again.done == set(results)
        assert again.counts == sum_of(one.counts for one in results.values())
        assert list(again.lines()) == [
            line.content for shard in sorted(results) for line in results[shard].rows
        ]
        assert list(again.failures()) == [*failures[:1], *failures]
    assert not folder.exists()


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "out.parts"
    with FolderJournal(tmp_path / "whole.parts", "f") as whole:
        run_extraction(plan(), whole, 1)
        total = whole.counts
        lines, failures = list(whole.lines()), list(whole.failures())
    with suppress(Stopped), FolderJournal(folder, "f") as journal:
        stop_midway(journal, 2)
        raise Stopped
    told: list[int] = []
    with FolderJournal(folder, "f") as journal:
        assert list(journal.done) == [0, 1]
        run_extraction(plan(), journal, 1, lambda shard, _: told.append(shard))
        assert journal.counts == total
        assert len(told) == len(plan().shards) - 2
        assert list(journal.lines()) == lines
        # A failure of the source is counted once.
        assert list(journal.failures()) == failures
        assert failures.count(FAILURE) == 1
    assert total.failures[FAILURE.reason] == 1
    assert total.pages == 8
    assert len(lines) == 6


def test_another_fingerprint_begins_anew(tmp_path: Path) -> None:
    folder = tmp_path / "out.parts"
    with suppress(Stopped), FolderJournal(folder, "one") as journal:
        journal.commit(0, result("old"))
        raise Stopped
    with suppress(Stopped), FolderJournal(folder, "two") as journal:
        assert journal.done == set()
        journal.commit(1, result("new"))
        raise Stopped
    with FolderJournal(folder, "two") as journal:
        assert list(journal.lines()) == ['{"is": "new"}']


@pytest.mark.parametrize(
    "left",
    [
        [],
        ["lock"],
        ["run.tmp"],
        ["lock", "00000003.jsonl", "00000004.tmp"],
        ["run.unfinished", "00000004.jsonl.unfinished"],
    ],
)
def test_what_a_killed_process_left_is_no_hindrance(tmp_path: Path, left: list[str]) -> None:
    """It may be killed before it has written its mark, while it writes, and while it removes the folder."""
    folder = tmp_path / "out.parts"
    folder.mkdir()
    for name in left:
        (folder / name).write_text('{"records": ')
    with FolderJournal(folder, "f") as journal:
        assert journal.done == set()
        journal.commit(3, result("a"))
        assert list(journal.lines()) == ['{"is": "a"}']
    assert not folder.exists()


def test_a_half_written_file_is_not_done(tmp_path: Path) -> None:
    folder = tmp_path / "out.parts"
    with suppress(Stopped), FolderJournal(folder, "f") as journal:
        journal.commit(0, result("a"))
        (folder / "00000001.jsonl.unfinished").write_text('{"records": 1')
        raise Stopped
    with FolderJournal(folder, "f") as journal:
        assert list(journal.done) == [0]
        journal.commit(1, result("b"))
        assert len(list(journal.lines())) == 2


@pytest.mark.parametrize("name", ["run", "letters", "note.jsonl"])
def test_a_folder_of_someone_else_is_refused_and_left_alone(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "out.parts"
    folder.mkdir()
    (folder / "run").write_text("mine")
    (folder / "family.jpg").write_text("mine")
    (folder / name).write_text("mine")
    with pytest.raises(OutputError, match="something else is there: move it away"):
        FolderJournal(folder, "f")
    assert {file.read_text() for file in folder.iterdir()} == {"mine"}


def test_a_file_or_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file.parts").write_text("mine")
    (tmp_path / "link.parts").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    for name in ("file.parts", "link.parts"):
        with pytest.raises(OutputError, match="something else is there"):
            FolderJournal(tmp_path / name, "f")
    assert (tmp_path / "file.parts").read_text() == "mine"


@pytest.mark.parametrize("kind", ["a link", "a hard link", "a pipe"])
@pytest.mark.parametrize(
    "name",
    [
        "run",
        "run.unfinished",
        "run.tmp",
        "lock",
        "00000000.jsonl",
        "00000000.jsonl.unfinished",
        "00000000.tmp",
    ],
)
def test_nothing_is_read_or_written_through_what_someone_else_has_put_there(
    tmp_path: Path, name: str, kind: str
) -> None:
    folder, victim = tmp_path / "out.jsonl.parts", tmp_path / "victim"
    victim.write_text("f\n")
    with suppress(Stopped), FolderJournal(folder, "f") as journal:
        journal.commit(1, result("b"))
        raise Stopped
    (folder / name).unlink(missing_ok=True)
    if kind == "a pipe":
        os.mkfifo(folder / name)
    elif kind == "a link":
        (folder / name).symlink_to(victim)
    else:
        (folder / name).hardlink_to(victim)
    with suppress(OutputError), FolderJournal(folder, "f") as journal:
        journal.commit(0, result("a"))
        assert [line for line in journal.lines() if line not in ('{"is": "a"}', '{"is": "b"}')] == []
    assert victim.read_text() == "f\n"


def test_the_results_of_shards_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "out.jsonl.parts"
    with FolderJournal(folder, "f") as journal:
        journal.commit(0, result("a"))
        modes = {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()}
        assert (folder.stat().st_mode & 0o777, set(modes.values())) == (0o700, {0o600})


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written: No such file or directory"):
        FolderJournal(tmp_path / "none" / "out.parts", "f")


def test_a_result_that_cannot_be_kept_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "out.parts"
    with FolderJournal(folder, "f") as journal:
        (folder / "00000002.jsonl.unfinished").mkdir()
        with pytest.raises(OutputError, match="cannot be written"):
            journal.commit(2, result("a"))
        assert 2 not in journal.done
        (folder / "00000002.jsonl.unfinished").rmdir()


@pytest.mark.parametrize("fingerprint", ["f", "other"])
def test_two_runs_cannot_write_to_the_same_place(tmp_path: Path, fingerprint: str) -> None:
    folder = tmp_path / "out.jsonl.parts"
    with FolderJournal(folder, "f") as journal:
        journal.commit(0, result("a"))
        with pytest.raises(OutputError, match=r"Another process is extracting to .*/out\.jsonl: try again"):
            FolderJournal(folder, fingerprint)
        assert len(list(journal.lines())) == 1


# ---- the store


def test_the_store_keeps_what_the_folder_keeps(tmp_path: Path, sqlite_store: Store) -> None:
    with FolderJournal(tmp_path / "out.parts", "f") as folder:
        run_extraction(plan(), folder, 1)
        total = folder.counts
        lines, failures = list(folder.lines()), list(folder.failures())
    with suppress(Stopped), sqlite_store.extracting({}, "f") as extraction:
        stop_midway(StoreJournal(sqlite_store, extraction), 3)
        raise Stopped
    with sqlite_store.extracting({}, "f") as extraction:
        journal = StoreJournal(sqlite_store, extraction)
        assert list(journal.done) == [0, 1, 2]
        run_extraction(plan(), journal, 1)
        assert journal.counts == total
        assert list(journal.lines()) == lines
        assert list(journal.failures()) == failures
    (run,) = sqlite_store.runs(5)
    assert (run.status, run.counts) == ("done", {"pages": 8, "records": 6, "failed": 3})
    (summary,) = sqlite_store.shard_summaries(run.id)  # one for all, whichever process did the shards
    assert ExtractionCounts.from_rows(summary["tally"]) == total


# ---- wrappers


def test_wrappers_of_files_are_named_as_these(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.json", "b.json", "more/a.json")]
    (tmp_path / "more").mkdir()
    for file in files:
        file.write_text(EMPTY)
    found = wrappers_of_files([str(file) for file in files])
    assert found == [
        NamedWrapper(str(files[0]), None, Wrapper({})),
        NamedWrapper("b", None, Wrapper({})),
        NamedWrapper(str(files[2]), None, Wrapper({})),
    ]


def test_wrappers_are_read_from_elsewhere_too(tmp_path: Path) -> None:
    elsewhere = pytest.importorskip("fsspec").filesystem("memory")
    elsewhere.pipe_file("/wrappers/guide.json", EMPTY.encode())
    assert wrappers_of_files(["memory://wrappers/guide.json"]) == [NamedWrapper("guide", None, Wrapper({}))]
    (tmp_path / "guide.json").write_text(EMPTY)
    both = wrappers_of_files(["memory://wrappers/guide.json", (tmp_path / "guide.json").as_uri()])
    assert [one.name for one in both] == ["memory://wrappers/guide.json", (tmp_path / "guide.json").as_uri()]
    elsewhere.rm("/wrappers", recursive=True)
    with pytest.raises(
        SourceError, match=r"There is no file memory://wrappers/guide\.json: check the address"
    ):
        wrappers_of_files(["memory://wrappers/guide.json"])


def wrapped(folder: Path, wrappers: Sequence[str]) -> Path:
    """A folder as `siteloom bootstrap` makes it, of a site with some wrappers."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    (folder / "site=a.example").mkdir(parents=True)
    file = folder / "site=a.example/0.parquet"
    table = pa.table({"wrapper": wrappers})
    pyarrow.parquet.write_table(table, file, compression="zstd", dictionary_pagesize_limit=1 << 30)
    (folder / "_SUCCESS").write_text(json.dumps({"outcomes": {"wrapped": 1}}), encoding="utf-8")
    return folder


def test_a_folder_of_wrappers_leads_nowhere_else(tmp_path: Path) -> None:
    """It may be unpacked from what someone else has made."""
    private = wrapped(tmp_path / "private", [EMPTY])
    assert [one.wrapper for one in wrappers_of_files([str(private)])] == [Wrapper({})]
    folder = wrapped(tmp_path / "unpacked", ["{}"])
    (folder / "site=b.example").symlink_to(private / "site=a.example")
    with pytest.raises(WrapperError, match="it leads out of"):
        wrappers_of_files([str(folder)])


def test_a_wrapper_that_is_kept_once_does_not_become_many(tmp_path: Path) -> None:
    folder = wrapped(tmp_path, [" " * 1_000_000] * 1_100)
    with pytest.raises(WrapperError, match="what they say has more than 1,073,741,824 bytes"):
        wrappers_of_files([str(folder)])


def test_a_wrapper_without_end_is_told() -> None:
    with pytest.raises(WrapperError, match="it has more than 67,108,864 bytes"):
        wrappers_of_files(["/dev/zero"])


def test_wrappers_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(WrapperError, match=r"There is no wrapper none\.json: check the path\."):
        wrappers_of_files(["none.json"])
    (tmp_path / "a.json").write_bytes(b"\xff")
    for file in ("a.json", ""):
        with pytest.raises(WrapperError, match="cannot be read"):
            wrappers_of_files([str(tmp_path / file)])


def test_the_newest_wrappers_of_a_store_are_taken(sqlite_store: Store) -> None:
    with pytest.raises(StoreError, match="has no wrapper"):
        wrappers_of_store(sqlite_store)
    old = Wrapper({}).to_json()
    sqlite_store.save_wrapper("shop", "shop.example", old, "learn")
    sqlite_store.save_wrapper("shop", "shop.example", shop().to_json(), "learn")
    assert wrappers_of_store(sqlite_store) == [NamedWrapper("shop", 2, shop(), "shop.example")]


def test_a_damaged_file_is_done_again(tmp_path: Path) -> None:
    folder = tmp_path / "out.parts"
    with suppress(Stopped), FolderJournal(folder, "f") as journal:
        journal.commit(0, result("a"))
        journal.commit(1, result("b"))
        (folder / "00000001.jsonl").write_text("")
        raise Stopped
    with FolderJournal(folder, "f") as journal:
        assert journal.done == {0}


def test_what_cannot_be_read_in_parts_is_cut_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream is cut anew when a run goes on, and what was done before is not done again."""
    monkeypatch.setattr(extraction_shards, "_ITEMS_OF_A_SHARD", 2)
    parts = plan()
    items = [item for shard in parts.shards if isinstance(shard, Items) for item in shard.read()]
    stream = replace(parts, shards=shards_of(Items(tuple(items))))
    assert stream.shard_count is None
    with FolderJournal(tmp_path / "whole.parts", "f") as whole:
        run_extraction(parts, whole, 1)
        total = whole.counts
        lines = list(whole.lines())
    for jobs in (1, 2):
        with suppress(Stopped), FolderJournal(tmp_path / "cut.parts", "f") as journal:
            results = stream.results(jobs)
            for _, (shard, one) in zip(range(2), results, strict=False):
                journal.commit(shard, one)
            results.close()
            raise Stopped
        with FolderJournal(tmp_path / "cut.parts", "f") as journal:
            assert len(journal.done) == 2
            run_extraction(stream, journal, jobs)
            assert journal.counts == total
            assert list(journal.lines()) == lines


def test_what_is_counted_is_that_of_the_sites_of_the_workspace(sqlite_store: Store) -> None:
    put(sqlite_store, *SHOP[:4], ODD, site="mine")
    put(sqlite_store, *SHOP[:2], site="theirs")
    put(sqlite_store, Page.from_text("https://shop.example/new", "<p>New."))
    sqlite_store.save_wrapper("shop", "mine", shop().to_json(), "learn")
    counts = extract_records(sqlite_store).counts
    mine = counts.sites["mine"]
    assert (counts.pages, mine.pages, mine.passed_url) == (8, 5, 4)
    assert list(mine.failures) == [NO_WRAPPER_FOR_URL]
    assert counts.sites.keys() == {"mine"}  # the others are without wrappers
