"""What an open store tells."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import event

from siteloom.apps.demo.sites import directory_site, guide_site
from siteloom.core.errors import PackError, StoreError
from siteloom.core.model import DamagedPage, Failure, Page, Resource
from siteloom.core.settings import StoreSettings
from siteloom.html.parser import parse
from siteloom.store.packs.pack_file import Pack
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.store.helpers import StoredPages, assert_sound, day, newest, page, put


def test_an_empty_store_has_nothing_to_tell(store: Store) -> None:
    assert (store.sites(), store.runs(5), list(store.pages()), list(store.check())) == ((), (), [], [])


def test_the_built_in_sites_come_back_byte_for_byte(store: Store) -> None:
    pages = [made.page for made in (*guide_site(), *directory_site())]
    put(store, *pages)
    assert sorted(store.pages(), key=lambda p: p.url) == sorted(pages, key=lambda p: p.url)
    for site in store.sites():
        assert site.bytes == sum(len(p.html) for p in newest_of(store, site.name))
        assert site.packed_bytes * 5 < site.bytes
    assert_sound(store)


def newest_of(store: Store, site: str) -> list[Page]:
    return list(StoredPages(store, site).read())


def test_sites_are_told_in_numbers_by_name(store: Store) -> None:
    put(
        store,
        page("http://b.example/1", "xx"),
        page("http://b.example/1", "yyy", 1),
        page("http://b.example/2"),
    )
    put(store, page("http://a.example/1"), Resource("http://a.example/x", b"12345", "image/png"))
    put(store, Resource("http://c.example/x", b"12345", "image/png"))
    told = [(s.name, s.pages, s.versions, s.bytes) for s in store.sites()]
    assert told == [("a.example", 1, 1, 16), ("b.example", 2, 3, 30), ("c.example", 0, 0, 5)]
    for site in store.sites():
        files = (store.packs_folder / site.name).iterdir()
        assert site.packed_bytes == sum(file.stat().st_size for file in files)


def test_more_pages_than_are_fetched_together_all_come_once(store: Store) -> None:
    pages = [page(f"http://a.example/{number}", str(number)) for number in range(2_100)]
    put(store, *pages, *(page(p.url, "changed", 1) for p in pages[::7]))
    assert newest(store) == {
        p.url: b"<p>changed</p>" if number % 7 == 0 else p.html for number, p in enumerate(pages)
    }


def test_the_versions_of_many_pages_are_those_of_each(store: Store) -> None:
    pages = [page(f"http://a.example/{number}", str(number)) for number in range(600)]
    put(store, *pages, *(page(p.url, "changed", 1) for p in pages[::7]))
    asked = [PageAddress("a.example", p.url) for p in reversed(pages)]
    expected = [version for one in asked for version in store.versions(one.url)]
    assert list(store.versions_at([*asked, PageAddress("a.example", "http://a.example/none")])) == expected


def test_a_site_that_is_not_there_has_no_pages(store: Store) -> None:
    put(store, page("http://a.example/1"))
    assert list(store.pages("b.example")) == []
    assert store.versions("http://b.example/1") == ()


def test_the_store_is_a_source_of_pages_for_another(store: Store, tmp_path: Path) -> None:
    put(store, *(page(f"http://a.example/{number}") for number in range(5)))
    assert put(store, *StoredPages(store).read()).unchanged == 5


def test_pages_can_be_read_while_others_are_written(store: Store) -> None:
    put(store, *(page(f"http://a.example/{number}", str(number)) for number in range(200)))
    with store.ingesting({}, jobs=1) as (_, writer):
        for number in range(200, 400):
            writer.add(page(f"http://a.example/{number}", str(number)), "a.example")
        during = newest(store)
        assert 200 <= len(during) < 400
        assert_sound(store)
    assert len(newest(store)) == 400


def test_pages_are_those_of_the_moment_when_reading_began(store: Store) -> None:
    first = {f"http://a.example/{n}": page(f"http://a.example/{n}", f"first {n}") for n in range(1_500)}
    second = {url: page(url, f"second {url}", 1) for url in first}
    put(store, *first.values())
    put(store, *second.values())
    reading = store.pages()
    read = [next(reading)]
    seen_again = [page(url, f"first {n}", 2) for n, url in enumerate(first)]
    put(store, *seen_again[:1_000])
    put(store, *(page(url, "third", 3) for url in list(first)[500:]), page("http://a.example/new"))
    read += reading
    assert len(read) == len(second)
    assert {each.url: each for each in read} == second


def when_first_asked(store: Store, statement: str, act: Callable[[], object]) -> None:
    """Do something as soon as the database has answered a statement for the first time."""
    acts = iter([act])

    def act_once(*details: Any) -> None:
        if statement in details[2]:
            for waiting in acts:
                waiting()

    event.listen(store.engine, "after_cursor_execute", act_once)


def test_the_check_does_not_miss_what_is_written_while_it_reads(store: Store) -> None:
    put(store, page("http://a.example/1"))
    when_first_asked(store, "FROM packs", lambda: put(store, page("http://a.example/2")))
    assert list(store.check()) == []
    assert len(newest(store)) == 2


def test_the_newest_version_of_a_resource_is_read_back(store: Store) -> None:
    url = "http://a.example/s.css"
    old, new = (Resource(url, text, "text/css", day(n)) for n, text in enumerate((b"p{}", b"p{color:red}")))
    put(store, new, old, Page(url, b"<p>no such file</p>", day(2)))
    assert store.resource(url) == new
    assert store.resource("http://a.example/none") is None
    assert store.resource(url, "other") is None
    put(store, old, site="other")
    assert store.resource(url, "other") == old


def test_a_database_that_breaks_while_the_store_is_open_is_told_in_a_sentence(tmp_path: Path) -> None:
    with closing(open_store(StoreSettings(str(tmp_path)), create=True)) as store:
        put(store, *(page(f"http://a.example/{number}", str(number)) for number in range(300)))
        run = put(store, Failure("f", "no URL")).run_id
    with closing(open_store(StoreSettings(str(tmp_path)))) as store:
        database = tmp_path / "siteloom.db"
        head = database.read_bytes()[:4096]  # it names the tables
        database.write_bytes(head + Random(1).randbytes(database.stat().st_size - len(head)))
        questions: list[Callable[[], object]] = [
            store.sites,
            lambda: store.runs(5),
            lambda: list(store.failures(run)),
            lambda: list(store.pages()),
            lambda: store.versions("http://a.example/1"),
            lambda: store.resource("http://a.example/1"),
            store.examples,
            store.wrappers,
            lambda: store.save_wrapper("shop", "a.example", "{}", "learn"),
            store.records,
            lambda: store.records_of("http://a.example/1"),
            lambda: store.extracting({}, "f").__enter__(),
            lambda: list(store.check()),
            lambda: put(store, page("http://a.example/new")),
        ]
        for ask in questions:
            with pytest.raises(StoreError, match=r"^The database .*siteloom\.db cannot be used: .+\.$"):
                ask()


def test_a_store_is_read_wherever_the_process_has_gone(
    store_settings: StoreSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(open_store(StoreSettings("here", store_settings.url), create=True)) as store:
        monkeypatch.chdir("/")
        put(store, page("http://a.example/1"))
        store.engine.dispose()  # it must find the way again
        assert set(newest(store)) == {"http://a.example/1"}
        assert_sound(store)
    assert (tmp_path / "here" / "packs" / "a.example").is_dir()


def test_runs_are_told_newest_first(store: Store) -> None:
    for number in range(4):
        put(store, page(f"http://a.example/{number}"))
    runs = store.runs(3)
    assert len(runs) == 3
    assert [run.id for run in runs] == sorted((run.id for run in runs), reverse=True)
    assert {(run.verb, run.status, run.counts["new"]) for run in runs} == {("ingest", "done", 1)}
    assert all(run.ended_at is not None and run.started_at <= run.ended_at for run in runs)


def test_failures_are_told_run_by_run_in_their_order(store: Store) -> None:
    many = [Failure(f"http://a.example/{n}", "no HTML", f"number {n}") for n in range(1_200)]
    first = put(store, *many)
    second = put(store, Failure("f:1", "no URL"))
    assert list(store.failures(first.run_id)) == many
    assert list(store.failures(second.run_id)) == [Failure("f:1", "no URL")]


def test_a_flipped_byte_is_found_by_the_check_and_never_read_as_a_page(store: Store) -> None:
    put(store, page("http://a.example/1"), page("http://b.example/1"))
    file = store.packs_folder / "a.example" / "000001.pack"
    content = bytearray(file.read_bytes())
    content[-3] ^= 0x10
    file.write_bytes(content)
    (problem,) = store.check()
    assert problem.place == "a.example/000001.pack"
    assert "is damaged in the block at byte 8" in problem.text
    damaged, whole = store.pages()
    assert isinstance(damaged, DamagedPage)
    assert (damaged.url, damaged.html) == ("http://a.example/1", b"")
    assert "is damaged in the block at byte 8" in damaged.damage
    assert parse(damaged) == damaged.failure
    assert whole.url == "http://b.example/1"
    assert isinstance(next(iter(store.page_shards()[0].read())), DamagedPage)
    with pytest.raises(PackError, match="is damaged"):
        store.page(PageAddress("a.example", damaged.url))
    assert set(newest(store, "b.example")) == {"http://b.example/1"}


def test_a_pack_that_is_gone_is_found_by_the_check(store: Store) -> None:
    put(store, page("http://a.example/1"))
    (store.packs_folder / "a.example" / "000001.pack").unlink()
    (problem,) = store.check()
    assert "cannot be opened" in problem.text


def test_a_pack_that_was_cut_is_found_by_the_check(store: Store) -> None:
    put(store, page("http://a.example/1"))
    file = store.packs_folder / "a.example" / "000001.pack"
    file.write_bytes(file.read_bytes()[:-1])
    (problem,) = store.check()
    assert "ends before byte" in problem.text


def test_the_pack_of_another_site_is_found_by_the_check(store: Store) -> None:
    put(store, page("http://a.example/1"), page("http://b.example/1"))
    a, b = (store.packs_folder / site / "000001.pack" for site in ("a.example", "b.example"))
    a.write_bytes(b.read_bytes())
    assert all(problem.place == "a.example/000001.pack" for problem in store.check())
    assert list(store.check()) != []


def test_a_worker_needs_only_a_path_to_read_a_sites_pages(store: Store) -> None:
    pages = [page(f"http://a.example/{number}", str(number)) for number in range(70)]
    put(store, *pages)
    store.close()
    folder = pickle.loads(pickle.dumps(store.packs_folder))
    pack = Pack(folder, "a.example/000001.pack")
    documents = [d for _, block in pack.blocks() for d in block]
    pack.close()
    assert [(d.url, d.body, d.fetched_at) for d in documents] == [
        (p.url, p.html, p.fetched_at) for p in pages
    ]


def test_a_callers_own_trouble_is_not_blamed_on_the_store(store: Store) -> None:
    with pytest.raises(BrokenPipeError), store.ingesting({}, jobs=1):
        raise BrokenPipeError
    assert store.runs(1)[0].status == "failed"
