"""Records: each run keeps its own, shard by shard, and a run that stopped half way goes on."""

from __future__ import annotations

import json
import signal
import time
import tracemalloc
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from sqlalchemy import event, insert, select, update

from siteloom.core.errors import StoreBusy, StoreError
from siteloom.core.model import Failure
from siteloom.core.settings import StoreSettings
from siteloom.extraction.shard_extraction import ExtractedRow
from siteloom.store import schema
from siteloom.store.queries import records
from siteloom.store.queries.records import StoredRecord
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.patience import SECONDS
from tests.store.helpers import page, put


def row(number: int, text: str = "text") -> ExtractedRow:
    content = json.dumps({"number": number, "text": text})
    return ExtractedRow(f"http://a.example/{number}", "shop", 1, content)


def rows(shard: int, count: int = 3) -> list[ExtractedRow]:
    return [row(shard * 1_000 + place) for place in range(count)]


def extract(store: Store, shards: Iterable[int], fingerprint: str = "f") -> int:
    """A run that ends well; returns its id."""
    with store.extracting({}, fingerprint) as extraction:
        for shard in shards:
            extraction.commit(shard, rows(shard), [], {})
    return extraction.run_id


def stop(store: Store, shards: Iterable[int], fingerprint: str = "f") -> int:
    """A run that is broken off when some shards are committed; returns its id."""
    with suppress(ZeroDivisionError), store.extracting({}, fingerprint) as extraction:
        for shard in shards:
            extraction.commit(shard, rows(shard), [], {"of": shard})
        raise ZeroDivisionError
    return extraction.run_id


def contents(shards: Iterable[int]) -> list[str]:
    return [row.content for shard in shards for row in rows(shard)]


def test_records_come_back_in_the_order_of_shard_and_place(store: Store) -> None:
    extract(store, [2, 0, 10, 1])
    assert list(store.records()) == contents([0, 1, 2, 10])


def test_without_records_a_sentence_says_what_to_do(store: Store) -> None:
    stop(store, [0])
    with pytest.raises(StoreError, match=r"^No records were extracted yet: run siteloom extract\.$"):
        store.records()
    assert store.records_of("http://a.example/0")[0].content == row(0).content


def test_a_run_that_is_none_of_extract_is_named(store: Store) -> None:
    run_id = put(store, page("http://a.example/1")).run_id
    for asked in (run_id, 99):
        with pytest.raises(StoreError, match=rf"^There is no run {asked} of extract: siteloom status lists"):
            store.records(asked)


def test_the_newest_run_that_ended_well_is_meant_unless_one_is_named(store: Store) -> None:
    first = extract(store, [0], "one")
    second = extract(store, [1], "two")
    third = stop(store, [2], "three")
    assert list(store.records()) == contents([1])
    assert [list(store.records(run)) for run in (first, second, third)] == [contents([n]) for n in range(3)]


def test_a_run_may_have_found_nothing(store: Store) -> None:
    extract(store, [])
    assert list(store.records()) == []
    with store.extracting({}, "f") as extraction:
        extraction.commit(0, [], [], {})
    assert list(store.records()) == []


@pytest.mark.parametrize("count", [499, 500, 501, 1_000, 1_750])
def test_more_records_than_are_read_together_come_all_and_once(store: Store, count: int) -> None:
    with store.extracting({}, "f") as extraction:
        extraction.commit(0, rows(0, count), [], {})
        extraction.commit(1, rows(1, 7), [], {})
    assert list(store.records()) == [row.content for row in (*rows(0, count), *rows(1, 7))]


def test_few_records_are_held_at_a_time(store: Store) -> None:
    size = 10_000
    with store.extracting({}, "f") as extraction:
        for shard in range(10):
            found = [row(place)._replace(content=json.dumps("x" * size)) for place in range(1_000)]
            extraction.commit(shard, found, [], {})
    del found
    tracemalloc.start()
    assert sum(len(content) for content in store.records()) == 10 * 1_000 * (size + 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * records._RECORDS_AT_A_TIME * size


def test_a_run_that_stopped_goes_on_where_it_was(store: Store) -> None:
    stopped = stop(store, [0, 2])
    with store.extracting({"other": "arguments"}, "f") as extraction:
        assert extraction.run_id == stopped
        assert extraction.done_summaries == {0: {"of": 0}, 2: {"of": 2}}
        assert extraction.counts == {}
        (run,) = store.runs(5)
        assert (run.status, run.ended_at) == ("running", None)
        extraction.commit(1, rows(1), [], {})
        extraction.counts["records"] = 9
    (run,) = store.runs(5)
    assert (run.status, run.counts) == ("done", {"records": 9})
    assert run.ended_at is not None
    assert list(store.records()) == contents([0, 1, 2])


def test_a_run_goes_on_as_often_as_it_stops(store: Store) -> None:
    assert len({stop(store, [shard]) for shard in range(5)}) == 1
    with store.extracting({}, "f") as extraction:
        assert list(extraction.done_summaries) == list(range(5))
    assert list(store.records()) == contents(range(5))


def test_after_ctrl_c_a_run_goes_on(store: Store) -> None:
    with suppress(KeyboardInterrupt), store.extracting({}, "f") as extraction:
        extraction.commit(0, rows(0), [], {})
        raise KeyboardInterrupt
    assert store.runs(1)[0].status == "interrupted"
    with store.extracting({}, "f") as again:
        assert (again.run_id, set(again.done_summaries)) == (extraction.run_id, {0})


def test_ctrl_c_while_a_shard_is_committed_waits_until_it_is(store: Store) -> None:
    def press(*details: object) -> None:
        if "INSERT INTO records" in str(details[2]):
            signal.raise_signal(signal.SIGINT)

    event.listen(store.engine, "after_cursor_execute", press)
    with pytest.raises(KeyboardInterrupt), store.extracting({}, "f") as extraction:
        extraction.commit(0, rows(0), [Failure("f", "no HTML")], {})
    assert store.runs(1)[0].status == "interrupted"
    assert list(store.records(extraction.run_id)) == contents([0])
    assert len(list(store.failures(extraction.run_id))) == 1


def test_another_fingerprint_begins_anew(store: Store) -> None:
    stopped = stop(store, [0], "one")
    with store.extracting({}, "two") as extraction:
        assert extraction.run_id != stopped
        assert extraction.done_summaries == {}
        extraction.commit(0, rows(5), [], {})
    assert list(store.records()) == contents([5])
    assert [run.status for run in store.runs(5)] == ["done", "failed"]


def test_only_the_newest_run_goes_on(store: Store) -> None:
    first = stop(store, [0], "one")
    second = stop(store, [0], "two")
    assert stop(store, [0], "one") not in (first, second)


def test_a_run_that_ended_well_does_not_go_on(store: Store) -> None:
    first = extract(store, [0])
    second = extract(store, [0])
    assert first != second
    assert list(store.records(first)) == list(store.records(second)) == contents([0])


def test_runs_of_other_verbs_do_not_matter(store: Store) -> None:
    stopped = stop(store, [0])
    put(store, page("http://a.example/1"))
    assert extract(store, [1]) == stopped


def test_what_was_asked_is_kept_with_the_fingerprint(store: Store) -> None:
    with store.extracting({"sources": ["a.warc"]}, "f"):
        pass
    with store.engine.connect() as connection:
        arguments = connection.execute(select(schema.runs.c.arguments)).scalar_one()
    assert arguments == {"sources": ["a.warc"], "fingerprint": "f"}


def test_no_other_process_writes_meanwhile(store: Store, store_settings: StoreSettings) -> None:
    other = open_store(store_settings)
    with store.extracting({}, "f"):
        with pytest.raises(StoreBusy), other.extracting({}, "f"):
            pass
        with pytest.raises(StoreBusy):
            put(other, page("http://a.example/1"))
    other.close()


def test_a_shard_that_is_committed_twice_is_kept_once(store: Store) -> None:
    with store.extracting({}, "f") as extraction:
        extraction.commit(0, rows(0), [Failure("f", "no HTML")], {"of": 0})
        with pytest.raises(StoreError):
            extraction.commit(0, rows(1), [Failure("f", "no HTML")], {"of": 1})
        extraction.commit(1, rows(1), [], {})
    assert list(store.records()) == contents([0, 1])
    assert len(list(store.failures(extraction.run_id))) == 1


def test_what_cannot_be_written_as_a_whole_is_not_written_at_all(store: Store) -> None:
    def refuse(*details: object) -> None:
        if "INSERT INTO failures" in str(details[2]):
            raise ZeroDivisionError

    event.listen(store.engine, "before_cursor_execute", refuse)
    with store.extracting({}, "f") as extraction:
        with pytest.raises(ZeroDivisionError):
            extraction.commit(0, rows(0), [Failure("f", "no HTML")], {})
        extraction.commit(0, rows(1), [], {})
    assert list(store.records()) == contents([1])


def test_failures_stand_with_those_of_other_runs(store: Store) -> None:
    failures = [Failure(f"http://a.example/{number}", "no HTML", str(number)) for number in range(3)]
    with store.extracting({}, "f") as extraction:
        extraction.commit(0, [], failures[:2], {})
        extraction.commit(1, [], failures[2:], {})
    assert list(store.failures(extraction.run_id)) == failures


def test_a_summary_may_hold_anything_that_json_does(store: Store) -> None:
    summary = {"reasons": {"no \0HTML\ud800": 2}, "share": 0.5, "names": ["a", None]}
    with suppress(ZeroDivisionError), store.extracting({}, "f") as extraction:
        extraction.commit(0, [], [], summary)
        raise ZeroDivisionError
    with store.extracting({}, "f") as extraction:
        assert extraction.done_summaries == {0: summary}


def test_text_that_no_database_takes_is_kept(store: Store) -> None:
    value = {"name": "a\0b \ud800 c\udfff \N{SNAKE} \x1b \u2028 'quoted' \\u0041 \\"}
    urls = ["http://a.example/\ud800", "http://a.example/\0", "http://a.example/" + "x" * 10_000]
    with store.extracting({}, "f") as extraction:
        found = [ExtractedRow(url, "shop\udc80", None, json.dumps(value, ensure_ascii=False)) for url in urls]
        extraction.commit(0, found, [Failure("a\0", "b\ud800", "c\udc80")], {})
    assert [json.loads(content) for content in store.records()] == [value] * 3
    for url in urls:
        (record,) = store.records_of(url)
        assert (record.wrapper, record.version) == ("shop\N{REPLACEMENT CHARACTER}", None)
    assert all(content.encode() for content in store.records())


def test_the_records_of_a_page_are_told_newest_run_first(store: Store) -> None:
    url = "http://a.example/1"
    told: list[StoredRecord] = []
    for version, fingerprint in enumerate(("one", "two", "three"), start=1):
        found = [ExtractedRow(url, "shop", version, f'"{version} {place}"') for place in range(2)]
        with store.extracting({}, fingerprint) as extraction:
            extraction.commit(0, [*found, row(7)], [], {})
        (run,) = store.runs(1)
        told = [StoredRecord(extraction.run_id, run.started_at, *each[1:4]) for each in found] + told
    assert store.records_of(url) == told
    assert store.records_of("http://a.example/none") == []


def test_records_are_read_while_others_are_written(store: Store) -> None:
    with store.extracting({}, "one") as extraction:
        extraction.commit(0, rows(0, 900), [], {})
    reading = store.records()
    read = [next(reading)]
    extract(store, [1, 2], "two")
    read += reading
    assert read == [row.content for row in rows(0, 900)]


def test_a_run_goes_on_only_when_the_last_commit_of_the_dead_process_is_over(store: Store) -> None:
    if store.engine.dialect.name == "sqlite":
        pytest.skip("in SQLite a commit dies with its process")
    stopped = stop(store, [0])
    with store.engine.begin() as connection:
        connection.execute(update(schema.runs).values(status="running"))

    def done_shards() -> set[int]:
        with store.extracting({}, "f") as extraction:
            assert extraction.run_id == stopped
            return set(extraction.done_summaries)

    with ThreadPoolExecutor(1) as threads:
        with store.engine.begin() as connection:
            mark = {"run_id": stopped, "shard": 1, "summary": {}}
            connection.execute(insert(schema.extracted_shards), mark)
            found = threads.submit(done_shards)
            time.sleep(0.3)
            assert not found.done()
        assert found.result(SECONDS) == {0, 1}
