"""Forgetting sites and pages: nothing of them is left anywhere, and all else is as it was."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import event, func, insert, select, text

from siteloom.core.confined_folder import ConfinedFolder
from siteloom.core.errors import NotStored, PackError, StoreBusy
from siteloom.core.model import Failure
from siteloom.core.settings import StoreSettings
from siteloom.operations.clean import segment_table
from siteloom.operations.cluster import cluster_store
from siteloom.operations.search import SearchRequest, search, update_index
from siteloom.sources.crawling.crawl_journal import CrawlJournal, DiscoveredLinks, DiscoveredUrl
from siteloom.store import schema
from siteloom.store.erasure import disk_erasure, erasure
from siteloom.store.erasure.erasure import PAGES as TABLES_OF_PAGES
from siteloom.store.erasure.erasure import UNTOUCHED, forget, would_forget
from siteloom.store.erasure.row_erasure import FORGOTTEN, STEPS, TextRedaction
from siteloom.store.keys import address_key
from siteloom.store.packs import pack_file, page_writer
from siteloom.store.packs.pack_file import Pack
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.operations.calls import extract_records
from tests.operations.contexts import context_of
from tests.store.helpers import all_versions, assert_sound, newest, page, put, random_page
from tests.store.remembered import KEPT, LOST, PAGES, live, own_word, url, where_stands

LOST_WORDS = ("quexolith", "exolith", "quexol", *(own_word(LOST, number) for number in range(PAGES)))


def test_every_table_has_its_way_to_forget() -> None:
    told_of = [table for step in STEPS for table in step.tables] + [*TABLES_OF_PAGES, *UNTOUCHED]
    assert sorted(table.name for table in told_of) == sorted(schema.metadata.tables)


def in_postgres_files(store: Store, *words: str) -> list[str]:
    """The files of tables and indexes that have any of some words in them."""
    if store.engine.dialect.name == "sqlite":
        return []
    with store.engine.connect() as connection:
        connection.execute(text("CHECKPOINT"))
        query = text(
            "SELECT pg_relation_filepath(oid), relname FROM pg_class WHERE relkind IN ('r', 'i', 't')"
        )
        files = [(path, name) for path, name in connection.execute(query) if path]
        folder = Path(connection.execute(text("SHOW data_directory")).scalar_one())
    return [
        name for path, name in files if any(word.encode() in (folder / path).read_bytes() for word in words)
    ]


def left_of(store: Store, site: str) -> dict[str, object]:
    """All that there is of a site."""
    wrapper = f"{site}/1"
    return {
        "pages": newest(store, site),
        "versions": [store.versions(url(site, number), site) for number in range(PAGES)],
        "records": sorted(line for line in store.records() if json.loads(line)["wrapper"] == wrapper),
        "examples": store.examples(site),
        "wrapper": store.wrapper(wrapper),
        "watch": store.watch(wrapper),
        "repairs": store.repairs(wrapper),
        "clusters": [one for one in store.clusters()[0] if one.site == site and one.members],
        "schema": store.cluster_schema(wrapper),
        "seeds": list(store.seeds([site])),
        "table": store.counted_segments(site).counts.pages,
    }


def works_on(store: Store, site: str) -> None:
    """Everything that can be done with a site."""
    update_index(context_of(store))
    assert store.search_index.is_current()
    found = search(context_of(store), SearchRequest(text=site.partition(".")[0], count=50)).hits
    assert {one.site for one in found} == {site}
    cluster_store(store, "vertex")
    extract_records(store)
    assert segment_table(store, site).counts().pages > 0
    update_index(context_of(store))
    assert_sound(store)


def test_nothing_is_left_of_a_forgotten_page_and_then_of_its_site(store: Store) -> None:
    live(store)
    filled = {table.name for table in schema.metadata.tables.values() if _count(store, table)}
    assert filled == set(schema.metadata.tables)  # else nothing is proved of those that are empty
    _forget_page(store)
    _forget_site(store)


def _forget_page(store: Store) -> None:
    own, others = own_word(LOST, 1), [own_word(LOST, number) for number in range(PAGES) if number != 1]
    assert len(where_stands(store, own)) > 10
    kept, pages = left_of(store, KEPT), newest(store, LOST)

    forgotten = forget(store, [url(LOST, 1)])

    assert forgotten.counts["versions"] == 2
    assert forgotten.to_relearn == (f"{LOST}/1",)
    assert where_stands(store, own) == []
    assert in_postgres_files(store, own) == []
    assert newest(store, LOST) == {one: html for one, html in pages.items() if own not in one}
    assert all(where_stands(store, word) for word in others)
    assert left_of(store, KEPT) == kept
    assert store.counted_segments(LOST).counted_to == 0
    works_on(store, LOST)
    assert where_stands(store, own) == []


def _forget_site(store: Store) -> None:
    assert len(where_stands(store, *LOST_WORDS)) > 100
    kept = left_of(store, KEPT)
    would = would_forget(store, [LOST])
    assert left_of(store, KEPT) == kept
    reports: list[tuple[int, int | None]] = []

    forgotten = forget(store, [LOST], lambda done, total, _: reports.append((done, total)))

    assert forgotten.counts == {**would.counts, "sites": 1}
    assert forgotten.counts["pages"] == PAGES - 1
    assert forgotten.counts["versions"] == 2 * (PAGES - 1)
    done = forgotten.counts["versions"] + forgotten.counts["search documents"]
    assert reports[-1] == (done, done)
    assert where_stands(store, *LOST_WORDS) == []
    assert in_postgres_files(store, *LOST_WORDS) == []
    assert left_of(store, KEPT) == kept
    assert [site.name for site in store.sites()] == [KEPT]
    works_on(store, KEPT)
    assert where_stands(store, *LOST_WORDS) == []


def _count(store: Store, table: object) -> int:
    with store.engine.connect() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())  # type: ignore[arg-type]


def test_a_page_can_be_named_without_its_scheme_and_with_others(sqlite_store: Store) -> None:
    urls = ["https://a.example/1", "http://a.example/2", "http://b.example/3", "http://c.example/4"]
    put(sqlite_store, *map(page, urls))
    forget(sqlite_store, ["a.example/1", "http://a.example/2", "c.example"])
    assert set(newest(sqlite_store)) == {"http://b.example/3"}
    assert [site.name for site in sqlite_store.sites()] == ["b.example"]


def test_wrappers_that_quote_a_value_of_a_page_alone_are_named(store: Store) -> None:
    put(store, *(page(f"http://a.example/{number}") for number in (1, 2)))
    choices = {"attributes": {"kind": {"contract": {"choices": ["inn", "Jane's inn"]}}}}
    store.save_wrapper("a.example/1", "a.example", json.dumps(choices), "learn")
    with store.recording("extract", {}) as run, store.engine.begin() as connection:
        for number, values in ((1, ["inn", "Jane's inn"]), (2, ["inn", "other"])):
            url = f"http://a.example/{number}"
            content = json.dumps({"url": url, "values": {"kind": values}})
            known = {"run_id": run.id, "shard": 0, "place": number, "url": url, "url_key": address_key(url)}
            row = {**known, "wrapper": "a.example/1", "wrapper_version": 1, "content": content}
            connection.execute(insert(schema.records), row)
    assert would_forget(store, ["http://a.example/1"]).to_relearn == ("a.example/1",)
    assert forget(store, ["http://a.example/2"]).to_relearn == ()  # "inn" is on the other page, too


def test_a_url_goes_from_every_site_that_has_it(sqlite_store: Store) -> None:
    put(sqlite_store, page("http://a.example/1"), page("http://a.example/2"))
    put(sqlite_store, page("http://a.example/1"), site="mine")
    forget(sqlite_store, ["http://a.example/1"])
    assert [(site.name, site.pages) for site in sqlite_store.sites()] == [("a.example", 1)]


def test_a_site_of_ones_own_naming_goes_with_what_tells_of_its_urls(store: Store) -> None:
    """But for those of which something stays."""
    live(store)
    put(
        store,
        *(page(f"http://www.azqvw.example/{number}") for number in (1, 2)),
        *(page(f"http://www.bzqvw.example/{number}") for number in (1, 2)),
        Failure("http://www.azqvw.example/gone", "status 404"),
        Failure("http://www.bzqvw.example/gone", "status 404", "as www.azqvw.example says"),
        page(f"http://www.{KEPT}/mine", "mine"),
        page("file:///pages/mine.html"),
        site="mine",
    )
    put(store, page("http://www.bzqvw.example/3"))
    extract_records(store)
    assert any("extracted_shards" in place for place in where_stands(store, "azqvw"))
    kept = left_of(store, KEPT)
    forget(store, ["mine"])
    assert where_stands(store, "azqvw") == []
    assert set(newest(store, "bzqvw.example")) == {"http://www.bzqvw.example/3"}
    assert left_of(store, KEPT) == kept


def test_what_is_neither_a_site_nor_a_url_is_refused(store: Store) -> None:
    put(store, page("http://a.example/1"))
    for ask in (forget, would_forget):
        with pytest.raises(NotStored, match=r"^b is no site .* no URL .*: its sites are a\.example\.$"):
            ask(store, ["a.example", "b"])
    assert len(newest(store)) == 1
    assert [run.verb for run in store.runs(5)] == ["ingest"]


def test_a_run_does_not_tell_what_it_forgot(store: Store) -> None:
    put(store, page("http://a.example/1"))
    forget(store, ["a.example"])
    run, ingested = store.runs(2)
    assert (run.verb, run.arguments, run.status) == ("forget", {}, "done")
    assert run.counts == {"pages": 1, "versions": 1, "sites": 1} | {
        kind: 0 for kind, count in run.counts.items() if not count
    }
    assert ingested.verb == "ingest"


def test_some_of_many_packs_keep_what_they_have(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_writer, "_BYTES_OF_A_PACK", 20_000)
    monkeypatch.setattr(page_writer, "_PAGES_OF_A_BLOCK", 5)
    monkeypatch.setattr(page_writer, "_PAGES_LOOKED_UP", 5)
    random = Random(20261116)
    urls = [f"http://{site}.example/{number}" for site in "ab" for number in range(40)]
    expected: Counter[tuple[str, bytes]] = Counter()
    for _ in range(4):
        fresh = [random_page(random, one, 700) for one in random.sample(urls, 30)]
        put(sqlite_store, *fresh)
        expected.update((one.url, one.html) for one in fresh)
        gone = set(random.sample(sorted({one for one, _ in expected}), 12))
        forget(sqlite_store, gone)
        expected = Counter({key: count for key, count in expected.items() if key[0] not in gone})
        assert all_versions(sqlite_store) == expected
        assert_sound(sqlite_store)
        files = {str(file.relative_to(sqlite_store.packs_folder)) for file in _packs(sqlite_store)}
        with sqlite_store.engine.connect() as connection:
            assert files == set(connection.execute(select(schema.packs.c.file)).scalars())


def test_many_packs_are_not_looked_through_for_each_of_them(sqlite_store: Store) -> None:
    put(sqlite_store, *(page(f"http://a{site}.example/{number}") for site in range(30) for number in (1, 2)))
    asked: list[str] = []
    event.listen(sqlite_store.engine, "before_cursor_execute", lambda *told: asked.append(told[2]))
    forget(sqlite_store, [f"http://a{site}.example/1" for site in range(30)])
    with sqlite_store.engine.connect() as connection:
        plans = {
            str(row[3])
            for query in {one for one in asked if one.startswith(("SELECT versions", "UPDATE versions"))}
            if "pack_id = ?" in query or query.startswith("UPDATE")
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", (None,) * query.count("?"))
        }
    assert any("SEARCH versions" in plan for plan in plans)
    assert not [plan for plan in plans if plan.startswith("SCAN versions")]
    assert len(newest(sqlite_store)) == 30


def _packs(store: Store) -> list[Path]:
    return sorted(store.packs_folder.glob("*/*"))


def test_readers_find_what_they_knew_or_nothing(sqlite_store: Store) -> None:
    old = [page(f"http://a.example/{number}", f"old {number}") for number in range(3)]
    put(sqlite_store, *old)
    places = sqlite_store.newest_places([PageAddress("a.example", one.url) for one in old])
    with closing(Pack(sqlite_store.packs_folder, places[0].file)) as opened:
        forget(sqlite_store, ["http://a.example/1"])
        first = opened.document(places[0].offset, places[0].slot)
    assert first.body == old[0].html  # as it was when the reader opened the file
    forget(sqlite_store, ["a.example"])
    put(sqlite_store, *(page(f"http://a.example/{number}", f"new {number}") for number in range(3)))
    with pytest.raises(PackError, match="cannot be opened"):
        list(sqlite_store.pages_in(places))


class Killed(BaseException):
    """Nothing catches it."""


def is_killed_after(
    store: Store, steps: int, do: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> bool:
    """Do something, and fall down once so many commits, removals and waits for the disk were done."""
    left = steps

    def step(*_: object, **__: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    def stepping(done: Callable[..., object]) -> Callable[..., object]:
        def do(*arguments: object, **options: object) -> object:
            step()
            return done(*arguments, **options)

        return do

    with monkeypatch.context() as patch:
        patch.setattr(ConfinedFolder, "sync", stepping(ConfinedFolder.sync))
        patch.setattr(ConfinedFolder, "remove", stepping(ConfinedFolder.remove))
        patch.setattr(Path, "unlink", stepping(Path.unlink))
        patch.setattr(disk_erasure, "_wipe_sqlite", stepping(disk_erasure._wipe_sqlite))
        patch.setattr(disk_erasure, "_wipe_postgres", stepping(disk_erasure._wipe_postgres))
        event.listen(store.engine, "commit", step)
        try:
            do()
        except Killed:
            return True
        finally:
            event.remove(store.engine, "commit", step)
    return False


# At some of the moments; `make torture` kills it at any, again and again.
@pytest.mark.parametrize(
    ("store_settings", "name", "stride"),
    [("sqlite", "http://a.example/7", 3), ("sqlite", "a.example", 4), ("postgres", "a.example", 9)],
    indirect=["store_settings"],
)
def test_it_can_end_at_some_moments_and_be_done_again(
    store: Store, name: str, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [
        page(f"http://{site}.example/{number}", f"{site}zq{number}vw") for site in "ab" for number in (7, 8)
    ]
    gone = {one.url for one in pages if name in one.url}
    others = {one.url: one.html for one in pages if one.url not in gone}
    words = ["azq7vw"] if name.startswith("http") else ["azq", "a.example"]
    crawl = CrawlJournal(store.folder, "crawls/0123.jsonl")
    steps = 1
    was_killed = True
    while was_killed:
        put(store, *pages)
        update_index(context_of(store))
        crawl.append([DiscoveredLinks(tuple(DiscoveredUrl(one.url, 1) for one in pages))])
        was_killed = is_killed_after(store, steps, lambda: forget(store, [name]), monkeypatch)
        with closing(open_store(_settings(store))) as opened:
            assert_sound(opened)
            found = newest(opened)
            assert others.items() <= found.items() <= {one.url: one.html for one in pages}.items()
            if disk_erasure.is_unfinished(opened.folder) or len(found) > len(others):
                forget(opened, [name])
            assert newest(opened) == others
            assert not disk_erasure.is_unfinished(opened.folder)
            assert where_stands(opened, *words) == []
            assert {one.url for one in crawl.read().discovered} == others.keys()
            assert_sound(opened)
            assert search(context_of(opened), SearchRequest(text="azq7vw")).hits == ()
            assert len(search(context_of(opened), SearchRequest(text="bzq7vw")).hits) == 1
        steps += stride
    assert steps > 10


def test_files_forget_while_the_names_are_still_known(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else no one could ask for it again."""
    put(sqlite_store, page("http://a.example/1"))
    crawl = CrawlJournal(sqlite_store.folder, "crawls/0123.jsonl")
    crawl.append(
        [DiscoveredLinks((DiscoveredUrl("http://a.example/1", 1), DiscoveredUrl("http://b.example/1", 1)))]
    )

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(erasure, "_redact_journal", die)
        with pytest.raises(Killed):
            forget(sqlite_store, ["a.example"])
    forget(sqlite_store, ["a.example"])
    assert [one.url for one in crawl.read().discovered] == ["http://b.example/1"]


def _settings(store: Store) -> StoreSettings:
    is_sqlite = store.engine.dialect.name == "sqlite"
    return StoreSettings(
        str(store.folder), "" if is_sqlite else store.engine.url.render_as_string(hide_password=False)
    )


FORGET_AND_DIE = """
import os, signal, sys
from siteloom.core.settings import StoreSettings
from siteloom.store.erasure import disk_erasure as compacting
from siteloom.store.erasure.erasure import forget
from siteloom.store.workspace_folder import open_store
store = open_store(StoreSettings(sys.argv[1]))
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
compacting._move = die
forget(store, ["http://a.example/7"])
"""


def test_kill_9_leaves_a_workspace_that_is_sound_and_can_finish(sqlite_store: Store) -> None:
    pages = [page(f"http://a.example/{number}", f"zq{number}vw") for number in range(9)]
    put(sqlite_store, *pages)
    command = [sys.executable, "-c", FORGET_AND_DIE, str(sqlite_store.folder)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert_sound(sqlite_store)
    assert disk_erasure.is_unfinished(sqlite_store.folder)
    assert len(_packs(sqlite_store)) == 2
    with sqlite_store.collecting("crawl", {}, 1, lambda: None):  # what no table speaks of is removed
        assert len(_packs(sqlite_store)) == 1
    forget(sqlite_store, ["http://a.example/7"])
    assert where_stands(sqlite_store, "zq7vw") == []
    assert len(newest(sqlite_store)) == 8
    assert_sound(sqlite_store)


def test_a_reader_in_the_way_is_told_of_and_the_rest_is_done_later(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_erasure, "_SECONDS_OF_PATIENCE", 0.1)
    put(sqlite_store, page("http://a.example/1", "zq1vw"), page("http://b.example/1"))
    with sqlite_store.engine.connect() as reader:
        reader.execute(select(schema.urls)).all()
        with pytest.raises(StoreBusy, match=r"^It is removed, but .* once more\.$"):
            forget(sqlite_store, ["a.example"])
    assert disk_erasure.is_unfinished(sqlite_store.folder)
    forget(sqlite_store, ["a.example"])
    assert where_stands(sqlite_store, "zq1vw", "a.example") == []


def test_no_backup_of_an_upgrade_remembers(store: Store) -> None:
    put(store, page("http://a.example/1"))
    with store.engine.begin() as connection:
        if store.engine.dialect.name == "sqlite":
            (store.folder / "siteloom.db.before-0012").write_bytes(b"http://a.example/1")
        else:
            connection.execute(text("CREATE SCHEMA siteloom_before_0012"))
            for table in ("urls", "workspace"):
                connection.execute(text(f"CREATE TABLE siteloom_before_0012.{table} AS TABLE {table}"))
    forget(store, ["a.example"])
    assert not list(store.folder.glob("siteloom.db.before-*"))
    with store.engine.connect() as connection:
        if store.engine.dialect.name != "sqlite":
            found = text("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'siteloom_before_%'")
            assert connection.execute(found).scalar_one() == 0


def test_a_crawl_under_way_is_not_raced(sqlite_store: Store) -> None:
    put(sqlite_store, page("http://a.example/1"))
    with (
        sqlite_store.collecting("crawl", {}, 1, lambda: None),
        pytest.raises(StoreBusy, match="Another crawl"),
    ):
        forget(sqlite_store, ["a.example"])
    assert len(newest(sqlite_store)) == 1


def test_blocks_that_nothing_goes_from_are_copied_as_they_are(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_writer, "_PAGES_OF_A_BLOCK", 2)
    monkeypatch.setattr(page_writer, "_PAGES_LOOKED_UP", 2)
    pages = [page(f"http://a.example/{number}", str(number)) for number in range(20)]
    put(sqlite_store, *pages)
    encoded = 0

    def counted(documents: list[object]) -> bytes:
        nonlocal encoded
        encoded += len(documents)
        return encode_block(documents)  # type: ignore[arg-type]

    encode_block = pack_file.encode_block
    monkeypatch.setattr(pack_file, "encode_block", counted)
    forget(sqlite_store, ["http://a.example/4"])
    assert encoded == 1
    assert_sound(sqlite_store)


def test_texts_that_name_it_are_found() -> None:
    it = TextRedaction(frozenset({"a.example"}), frozenset({"a.example/1"}), frozenset({"file:///x/1.html"}))
    for named in (
        "a.example",
        "a.example/1",
        "http://www.a.example/x?y",
        r"^https?://www\.a\.example/[^/]+$",
        "It was on http://a.example/x.",
        "see file:///x/1.html, please",
        "shop.a.example is away",
    ):
        assert it.are_in(named), named
    for other in ("data.example", "a.example.org", "b.example/1", "file:///x/1.html5", "example", ""):
        assert not it.are_in(other), other


def test_what_its_url_looks_like_names_it_too() -> None:
    """Pages without a wrapper are counted by that, and of a short address nothing is left out."""
    it = TextRedaction(urls=frozenset({"https://people.example/jane", "http://127.0.0.1:8932/a/b/7.html"}))
    told = {"tally": [["unmatched", "people.example/jane", 1], ["unmatched", "people.example/joe", 2]]}
    assert it.without(told) == {"tally": [["unmatched", "people.example/joe", 2]]}
    assert it.are_in("127.0.0.1:8932/a/b/*.html")


def test_what_others_are_called_is_let_be() -> None:
    it = TextRedaction(frozenset({"github.io", "inns"}), other_names=frozenset({"old inns", "old inns/1"}))
    for named in ("github.io", r"^https?://github\.io/", "http://github.io/1", "of inns", "inns/1"):
        assert it.are_in(named), named
    for other in ("alice.github.io", r"^https?://alice\.github\.io/", "old inns", "old inns/1"):
        assert not it.are_in(other), other


def test_a_site_below_a_forgotten_one_is_as_it_was(store: Store) -> None:
    """What stands under github.io is of others, and so is a name of one's own that has another in it."""
    put(store, page("http://github.io/1"), page("http://alice.github.io/1"))
    put(store, Failure("http://alice.github.io/2", "status 404", ""))
    put(store, page("file:///1"), site="inns")
    put(store, page("file:///2"), site="old inns")
    for site in ("alice.github.io", "old inns"):
        with store.recording("extract", {"site": site}):
            pass
    job = store.jobs.add("learn", {"cluster": "alice.github.io/1"}, "eve")
    counts = forget(store, ["github.io", "inns"]).counts
    assert counts == {"pages": 2, "versions": 2, "sites": 2}
    assert {site.name for site in store.sites()} == {"alice.github.io", "old inns"}
    asked = [run.arguments.get("site") for run in store.runs(9) if run.verb == "extract"]
    assert asked == ["old inns", "alice.github.io"]
    assert store.jobs.get(job.id) == job


def test_rows_go_and_texts_are_marked() -> None:
    it = TextRedaction(frozenset({"a"}))
    told = {
        "a": {"a": 1, "b": 2},
        "site": "a",
        "sites": ["a", "b"],
        "rows": [{"site": "a", "x": 1}, {"site": "b", "x": {"a": 1}}, ["a", 3], ["b", 3]],
    }
    assert it.without(told) == {
        "a": {"b": 2},
        "site": FORGOTTEN,
        "sites": [FORGOTTEN, "b"],
        "rows": [{"site": "b", "x": {}}, ["b", 3]],
    }
