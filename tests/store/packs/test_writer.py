"""Pages on their way into the store."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import event, select

from siteloom.core.errors import PackError, StoreError
from siteloom.core.model import Failure, Page, Resource
from siteloom.core.settings import StoreSettings
from siteloom.core.urls import site_of
from siteloom.store import schema
from siteloom.store.keys import folder_name
from siteloom.store.packs import page_writer
from siteloom.store.packs.page_writer import PageWriter
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.patience import SECONDS
from tests.store.helpers import all_versions, assert_sound, day, newest, page, put, random_page
from tests.store.test_keys import HOSTILE


def unlocked_writer(store: Store, counts: Counter[str] | None = None, jobs: int = 1) -> PageWriter:
    return PageWriter(
        store.engine,
        store.packs_folder,
        now=day(0),
        counts=Counter() if counts is None else counts,
        jobs=jobs,
    )


def only_pack(store: Store) -> Path:
    (pack,) = store.packs_folder.glob("*/*")
    return pack


def test_a_url_fetched_again_is_a_new_version_and_the_same_content_again_is_not(store: Store) -> None:
    url = "http://a.example/1"
    assert put(store, page(url, "old", 1)).new == 1
    assert put(store, page(url, "new", 2)).changed == 1
    assert put(store, page(url, "new", 3)).unchanged == 1
    assert [version.html for version in store.versions(url)] == [b"<p>old</p>", b"<p>new</p>"]
    assert newest(store) == {url: b"<p>new</p>"}
    assert_sound(store)


def test_content_that_comes_back_is_the_newest_again_without_being_stored_again(store: Store) -> None:
    url = "http://a.example/1"
    for text, on_day in (("summer", 1), ("winter", 2), ("summer", 3)):
        put(store, page(url, text, on_day))
    assert newest(store) == {url: b"<p>summer</p>"}
    assert len(store.versions(url)) == 2


def test_versions_of_one_batch_are_told_apart_as_those_of_many_runs_are(store: Store) -> None:
    url = "http://a.example/1"
    report = put(store, *(page(url, text, on_day) for on_day, text in enumerate("abacb")))
    assert (report.new, report.changed, report.unchanged) == (1, 2, 2)
    assert [version.html for version in store.versions(url)] == [b"<p>a</p>", b"<p>c</p>", b"<p>b</p>"]


def test_an_older_archive_read_later_does_not_hide_what_is_newer(store: Store) -> None:
    url = "http://a.example/1"
    put(store, page(url, "today", 100))
    put(store, page(url, "years ago", 1))
    put(store, page(url, "today", 50))
    assert newest(store) == {url: b"<p>today</p>"}


def test_a_page_without_a_time_was_fetched_when_the_run_began(store_settings: StoreSettings) -> None:
    store = open_store(store_settings, create=True, clock=lambda: day(5))
    put(store, page("http://a.example/1", "before", 4), Page("http://a.example/1", b"now"))
    put(store, page("http://a.example/2", "after", 6), Page("http://a.example/2", b"now"))
    assert newest(store) == {"http://a.example/1": b"now", "http://a.example/2": b"<p>after</p>"}
    assert [version.fetched_at for version in store.versions("http://a.example/1")] == [day(4), None]
    store.close()


def test_a_page_comes_back_with_its_charset_and_the_moment_it_was_fetched(store: Store) -> None:
    far_west = timezone(timedelta(hours=-9, minutes=-30))
    kept = Page("http://a.example/", b"\xff\x00\x80", datetime(2025, 3, 9, 2, 30, tzinfo=far_west), "koi8-r")
    put(store, kept)
    assert list(store.pages()) == [kept]


def test_a_time_without_a_zone_is_utc(store: Store) -> None:
    url = "http://a.example/1"
    put(store, Page(url, b"early", datetime(2025, 3, 1, 10)))  # noqa: DTZ001 - what callers may pass
    put(store, Page(url, b"late", datetime(2025, 3, 1, 11, tzinfo=UTC)))
    put(store, Page(url, b"early", datetime(2025, 3, 1, 10, 30)))  # noqa: DTZ001
    assert newest(store) == {url: b"late"}
    assert store.versions(url)[0].fetched_at == datetime(2025, 3, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize("time", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)])
def test_the_first_and_last_moment_of_the_calendar_are_times_like_others(
    store: Store, time: datetime
) -> None:
    kept = Page("http://a.example/1", b"page", time)
    for _ in range(2):
        put(store, kept)
    assert list(store.pages()) == [kept]


@pytest.mark.parametrize(
    "time",
    [
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
        datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-1))),
    ],
)
def test_a_time_that_is_off_the_calendar_in_utc_is_a_failure_and_the_rest_goes_on(
    store: Store, time: datetime
) -> None:
    good = page("http://a.example/good")
    report = put(store, Page("http://a.example/bad", b"page", time), good)
    assert list(store.failures(report.run_id)) == [
        Failure("http://a.example/bad", "bad fetched_at", f"{time} is off the calendar in UTC")
    ]
    assert list(store.pages()) == [good]


def test_pages_without_a_time_were_fetched_in_the_order_they_came(store_settings: StoreSettings) -> None:
    url = "http://a.example/1"
    with closing(open_store(store_settings, create=True, clock=lambda: day(5))) as store:
        put(store, *(Page(url, content) for content in (b"A", b"B", b"A")))
        assert newest(store) == {url: b"A"}
    with closing(open_store(store_settings, create=True, clock=lambda: day(6))) as store:
        put(store, *(Page(url, content) for content in (b"A", b"B", b"A", b"B")))
        assert newest(store) == {url: b"B"}


def test_blocks_of_many_sites_share_transactions(store: Store) -> None:
    commits = 0

    def count(*_: object) -> None:
        nonlocal commits
        commits += 1

    pages = [page(f"http://site{number}.example/") for number in range(500)]
    with unlocked_writer(store, jobs=2) as writing:
        for each in pages:
            writing.add(each, site_of(each.url))
        event.listen(store.engine, "commit", count)
    assert commits <= 3
    assert newest(store) == {p.url: p.html for p in pages}
    assert_sound(store)


def test_the_bytes_of_a_batch_are_on_the_disk_before_the_tables_speak_of_them(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    put(store, page("http://a.example/1"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(StoreError, match=r"cannot be written: No space left on device\.$"):
            put(store, *(page(f"http://{site}.example/2") for site in "abc"))
    assert set(newest(store)) == {"http://a.example/1"}
    assert store.runs(1)[0].counts["new"] == 0
    put(store, *(page(f"http://{site}.example/2") for site in "abc"))
    assert len(newest(store)) == 4
    assert_sound(store)


def test_pages_of_300_sites_that_come_mixed_are_each_kept_in_their_site(store: Store) -> None:
    pages = [page(f"http://site{site}.example/{n}", f"{site} {n}") for n in range(5) for site in range(300)]
    report = put(store, *pages, jobs=2)
    assert report.new == 1500
    assert {site.name: site.pages for site in store.sites()} == {f"site{n}.example": 5 for n in range(300)}
    assert newest(store) == {p.url: p.html for p in pages}
    assert newest(store, "site7.example") == {p.url: p.html for p in pages if "//site7." in p.url}
    assert_sound(store)


def test_resources_are_kept_apart_from_pages(store: Store) -> None:
    url = "http://a.example/x"
    style = Resource("http://a.example/s.css", b"p{}", "text/css", day(0))
    put(store, style, Resource(url, b"same", "image/gif", day(2)), Page(url, b"same", day(1)))
    assert newest(store) == {url: b"same"}
    assert store.versions(style.url) == ()
    (site,) = store.sites()
    assert (site.pages, site.versions, site.bytes) == (1, 1, 11)
    again = put(store, style, Resource(url, b"same", "image/gif", day(2)), Page(url, b"same", day(1)))
    assert again.unchanged == 3
    assert_sound(store)


def test_one_url_may_stand_in_two_sites(store: Store) -> None:
    put(store, page("http://a.example/", "one"), site="first")
    put(store, page("http://a.example/", "two", 1), site="second")
    assert newest(store, "first") == {"http://a.example/": b"<p>one</p>"}
    assert newest(store, "second") == {"http://a.example/": b"<p>two</p>"}


def test_hostile_site_names_stay_in_the_folder_of_packs(store: Store) -> None:
    short = [site for site in HOSTILE if len(site.encode()) <= 255]
    with unlocked_writer(store) as writing:
        for number, site in enumerate(short):
            assert writing.add(page(f"http://x/{number}", site), site) is None
    assert [site.name for site in store.sites()] == sorted(short, key=str.encode)
    for number, site in enumerate(short):
        assert newest(store, site) == {f"http://x/{number}": f"<p>{site}</p>".encode()}
        assert (store.packs_folder / folder_name(site) / "000001.pack").is_file()
    assert {entry.name for entry in store.folder.iterdir()} <= {
        *("packs", "lock", "workspace.json", "siteloom.db", "siteloom.db-wal", "siteloom.db-shm")
    }
    assert_sound(store)


ODD_URLS = [
    "http://a.example/" + "x" * 10_000,
    "http://a.example/?" + "é" * 10_000,
    "http://a.example/a b\tc\n",
    "http://a.example/Straße/日本語/🍲",
    "http://a.example/%00/%zz",
    "http://a.example/'; DROP TABLE urls; --",
    "http://[broken/",
    "http://../",
    "urn:x",
    "\u202e\ufffe\x01",
    " ",
]


def test_long_and_odd_urls_are_kept_as_they_are(store: Store) -> None:
    pages = [page(url, str(number)) for number, url in enumerate(ODD_URLS)]
    assert put(store, *pages).new == len(pages)
    assert put(store, *pages).unchanged == len(pages)
    for kept in pages:
        assert store.versions(kept.url) == (kept,)


@pytest.mark.parametrize("character", ["\0", "\ud800"])
def test_a_document_with_text_that_databases_refuse_is_a_failure_and_the_rest_goes_on(
    store: Store, character: str
) -> None:
    good = page("http://a.example/good")
    report = put(
        store,
        page(f"http://a.example/{character}"),
        page(f"http://a{character}.example/"),
        Resource("http://a.example/i", b"", f"image/{character}"),
        good,
    )
    assert report.failures == {"bad URL": 2, "bad media type": 1}
    assert list(store.pages()) == [good]
    assert [failure.url for failure in store.failures(report.run_id)] == [
        "http://a.example/�",
        "http://a�.example/",
        "http://a.example/i",
    ]


def test_a_site_name_that_databases_refuse_is_the_failure_of_each_page(store: Store) -> None:
    assert put(store, page("http://a.example/"), site="x\udc80").failures == {"bad site name": 1}


def test_a_site_name_longer_than_any_host_is_the_failure_of_each_page(store: Store) -> None:
    random = Random(5)
    host = "".join(random.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=10_000))
    report = put(store, page(f"http://{host}/"), page("http://a.example/"))
    assert report.failures == {"bad site name": 1}
    assert put(store, page("http://a.example/"), site="é" * 128).failures == {"bad site name": 1}
    assert put(store, page("http://a.example/"), site="x" * 255).new == 1


def test_any_charset_a_server_names_is_kept(store: Store) -> None:
    kept = Page("http://a.example/", b"x", day(0), "utf\0-\ud8008")
    put(store, kept)
    assert list(store.pages()) == [kept]


def test_what_waits_in_memory_stays_bounded_however_many_sites_are_mixed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_writer, "_BYTES_WAITING", 100_000)
    random = Random(1)
    most_waiting = 0
    with unlocked_writer(store, jobs=2) as writing:
        for number in range(600):
            site = f"site{number % 50}"
            writing.add(random_page(random, f"http://{site}/{number}", 2_000), site)
            waiting = sum(len(item.document.body) for item in writing._uncommitted.values())
            most_waiting = max(most_waiting, waiting + writing._arrived.bytes)
        assert len(writing._uncommitted) > 0
    # Besides what waits: one lookup's worth of arrivals and the blocks that are being compressed.
    allowed = page_writer._PAGES_LOOKED_UP + 3 * page_writer._PAGES_OF_A_BLOCK
    assert 100_000 < most_waiting <= 100_000 + allowed * 2_000
    assert writing._uncommitted == {}
    assert len(newest(store)) == 600
    assert_sound(store)


def test_large_pages_fill_a_block_before_many_of_them_wait(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_writer, "_BYTES_OF_A_BLOCK", 10_000)
    monkeypatch.setattr(page_writer, "_BYTES_LOOKED_UP", 10_000)
    random = Random(2)
    with unlocked_writer(store) as writing:
        for number in range(20):
            writing.add(random_page(random, f"http://a/{number}", 5_000), "a")
            assert writing._arrived.bytes < 10_000
            assert len(writing._uncommitted) <= 6
    assert_sound(store)


def test_a_full_pack_is_followed_by_another(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_writer, "_BYTES_OF_A_PACK", 100_000)
    random = Random(3)
    pages = [random_page(random, f"http://a.example/{number}", 1_000) for number in range(400)]
    put(store, *pages[:200])
    put(store, *pages[200:])
    files = sorted(file.name for file in store.packs_folder.glob("a.example/*"))
    assert files == ["000001.pack", "000002.pack", "000003.pack"]
    assert newest(store) == {p.url: p.html for p in pages}
    assert_sound(store)


def test_a_writer_that_is_abandoned_leaves_only_what_it_committed(store: Store) -> None:
    pages = [page(f"http://a.example/{number}", str(number)) for number in range(300)]
    counts: Counter[str] = Counter()
    abandoned = unlocked_writer(store, counts)
    for each in pages:
        abandoned.add(each, "a.example")
    abandoned._compressors.shutdown()
    assert 0 < counts["new"] < 300
    assert len(newest(store)) == counts["new"]
    assert_sound(store)
    report = put(store, *pages)
    assert (report.new, report.unchanged) == (300 - counts["new"], counts["new"])
    assert newest(store) == {p.url: p.html for p in pages}
    assert_sound(store)


@pytest.mark.parametrize(
    "tail", [b"garbage", b"SLBK", b"SLBK\x05\0\0\0\x09\0\0\0abcdhalf of a bl", b"\0" * 70_000]
)
def test_a_torn_tail_is_neither_read_nor_in_the_way(store: Store, tail: bytes) -> None:
    put(store, page("http://a.example/1"))
    with only_pack(store).open("ab") as file:
        file.write(tail)
    assert_sound(store)
    put(store, page("http://a.example/2"))
    assert set(newest(store)) == {"http://a.example/1", "http://a.example/2"}
    assert sum(site.packed_bytes for site in store.sites()) == only_pack(store).stat().st_size
    assert_sound(store)


def test_nothing_is_added_to_a_pack_that_lost_committed_bytes(store: Store) -> None:
    put(store, page("http://a.example/1"))
    length = only_pack(store).stat().st_size
    with only_pack(store).open("r+b") as file:
        file.truncate(length - 5)
    with pytest.raises(PackError, match=rf"000001\.pack is shorter than the {length} bytes"):
        put(store, page("http://a.example/2"))
    assert only_pack(store).stat().st_size == length - 5
    assert store.runs(1)[0].status == "failed"


def press_ctrl_c(store: Store, during: str) -> None:
    """Send this process SIGINT when the database first works on a statement."""
    presses = iter([signal.SIGINT])

    def press_once(*details: Any) -> None:
        if during in details[2]:
            for press in presses:
                signal.raise_signal(press)

    event.listen(store.engine, "after_cursor_execute", press_once)


@pytest.mark.parametrize("statement", ["FROM urls JOIN versions", "INSERT INTO versions", "UPDATE packs"])
def test_ctrl_c_while_the_database_is_at_work_loses_nothing_that_was_read(
    store: Store, statement: str
) -> None:
    pages = [page(f"http://a.example/{number}", str(number)) for number in range(200)]
    press_ctrl_c(store, statement)
    with pytest.raises(KeyboardInterrupt):
        put(store, *pages)
    read = len(newest(store))
    # the lookup, or the flush at the end, was interrupted
    assert read in (page_writer._PAGES_LOOKED_UP, 200)
    run = store.runs(1)[0]
    assert (run.status, run.counts["new"]) == ("interrupted", read)
    assert_sound(store)
    put(store, *pages)
    assert len(newest(store)) == 200
    assert_sound(store)


def test_pages_that_come_slowly_do_not_wait_for_others(store: Store) -> None:
    now = 0.0
    counts: Counter[str] = Counter()
    with PageWriter(
        store.engine, store.packs_folder, now=day(0), counts=counts, jobs=4, seconds=lambda: now
    ) as slowly:
        for number in range(40):
            now += 1
            slowly.add(page(f"http://a.example/{number}"), "a.example")
        assert counts["new"] == len(newest(store)) == 30
        for number in range(2_000):
            now += 0.02
            slowly.add(page(f"http://b.example/{number}"), "b.example")
        assert counts["new"] == len(newest(store)) < 1_900  # what comes fast fills its blocks
    assert counts["new"] == len(newest(store)) == 2_040


def test_a_killed_writers_last_commit_may_still_be_under_way_in_postgresql(
    postgres_url: str, tmp_path: Path
) -> None:
    settings = StoreSettings(str(tmp_path / "workspace"), postgres_url)
    store = open_store(settings, create=True)
    put(store, page("http://a.example/1"))
    dying, may_commit, about_to_commit = open_store(settings), threading.Event(), threading.Event()

    def wait(*details: Any) -> None:
        if details[2].startswith("INSERT INTO versions"):
            about_to_commit.set()
            may_commit.wait(SECONDS)

    def die() -> None:
        with unlocked_writer(dying) as writing:  # its lock is gone, as after kill -9
            writing.add(page("http://a.example/2", "from the dying"), "a.example")

    event.listen(dying.engine, "after_cursor_execute", wait)
    with ThreadPoolExecutor(2) as threads:
        death = threads.submit(die)
        assert about_to_commit.wait(SECONDS)
        successor = threads.submit(put, store, page("http://a.example/3"))
        with pytest.raises(TimeoutError):
            successor.result(0.5)
        may_commit.set()
        death.result()
        assert successor.result().new == 1
    assert set(newest(store)) == {f"http://a.example/{number}" for number in (1, 2, 3)}
    assert_sound(store)
    dying.close()
    store.close()


def test_each_version_is_stored_once_with_any_number_of_compressors(store: Store) -> None:
    pages = [page(f"http://s{n % 3}.example/{n // 2}", str(n % 400)) for n in range(1000)]
    expected = Counter({(p.url, p.html) for p in pages})
    put(store, *pages, jobs=4)
    assert all_versions(store) == expected
    with store.engine.connect() as connection:
        assert len(connection.execute(select(schema.versions.c.id)).all()) == len(expected)
