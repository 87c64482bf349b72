"""What was kept for long enough is forgotten."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import insert, select

from siteloom.core.file_lock import packs_lock
from siteloom.core.model import Example, Failure, Resource
from siteloom.core.settings import RetentionSettings
from siteloom.store import schema
from siteloom.store.erasure.erasure import forget_after_work, forget_expired, would_forget_expired
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from tests.store.helpers import all_versions, assert_sound, day, newest, page, put
from tests.store.remembered import where_stands


@pytest.fixture
def old_store(store: Store) -> Store:
    """The same on the hundredth day."""
    return replace(store, clock=lambda: day(100))


def test_pages_that_were_not_seen_again_are_forgotten(old_store: Store) -> None:
    put(
        old_store,
        page("http://a.example/old", "zqoldvw", 10),
        page("http://a.example/again", "seen", 10),
        Resource("http://a.example/old.css", b"zqcssvw", "text/css", day(20)),
    )
    put(old_store, page("http://a.example/again", "seen", 95), page("http://b.example/old", "zqoldvw", 69))
    keep = RetentionSettings(days=30)
    would = would_forget_expired(old_store, keep)
    forgotten = forget_expired(old_store, keep)
    assert forgotten.counts == {"pages": 3, "versions": 3, "sites": 1}
    assert would.counts == {"pages": 3, "versions": 3}
    assert set(newest(old_store)) == {"http://a.example/again"}
    assert [site.name for site in old_store.sites()] == ["a.example"]
    assert where_stands(old_store, "zqoldvw", "zqcssvw", "b.example") == []
    assert_sound(old_store)


def test_so_many_versions_are_kept_and_those_that_were_annotated(old_store: Store) -> None:
    address = PageAddress("a.example", "http://a.example/1")
    for number in range(6):
        put(old_store, page(address.url, f"zq{number}vw", number), page("http://a.example/2", "same", number))
        if number == 1:
            old_store.save_example(address, Example(old_store.page(address), {"name": ("zq1vw",)}))
    put(old_store, page(address.url, "zq4vw", 9))  # the fifth has come back
    forget_expired(old_store, RetentionSettings(versions=2))
    texts = [one.html for one in old_store.versions(address.url)]
    assert texts == [b"<p>zq1vw</p>", b"<p>zq5vw</p>", b"<p>zq4vw</p>"]
    assert sum(all_versions(old_store).values()) == 4
    assert len(old_store.examples()) == 1
    assert where_stands(old_store, "zq0vw", "zq2vw", "zq3vw") == []
    assert_sound(old_store)


def test_what_becomes_more_and_more_is_forgotten_with_time(store: Store) -> None:
    old, now = replace(store, clock=lambda: day(10)), replace(store, clock=lambda: day(100))
    for then in (old, now):
        number = (then.clock() - day(0)).days
        put(then, page("http://a.example/", "x", 99), Failure(f"http://a.example/{number}", "status 500"))
        with then.recording("monitor", {}) as run:
            for wrapper in ("a.example/1", f"a.example/{number}"):
                then.save_check(run.id, wrapper, 1, "bellwethers", True, {"changes": []})
        job = then.jobs.add("cluster", {}, "eve")
        then.jobs.end(job.id, "done", {})
        then.jobs.add("cluster", {}, "eve")
        with then.engine.begin() as connection:
            failed = {"name": "eve", "address": "192.0.2.1", "at": then.clock()}
            connection.execute(insert(schema.failed_sign_ins), failed)
            session = {"key_hash": bytes([number]), "created_at": then.clock()}
            session["expires_at"] = then.clock() + timedelta(days=5)
            connection.execute(insert(schema.sessions), session)
    forgotten = forget_expired(now, RetentionSettings(days=30))
    assert forgotten.counts == {"failures": 1, "checks": 1, "jobs": 1, "sessions": 1, "failed sign-ins": 1}
    with now.engine.connect() as connection:
        assert connection.execute(select(schema.failures.c.url)).scalars().all() == ["http://a.example/100"]
        checks = connection.execute(select(schema.checks.c.wrapper).order_by(schema.checks.c.id))
        assert checks.scalars().all() == ["a.example/10", "a.example/1", "a.example/100"]
        states = connection.execute(select(schema.jobs.c.state).order_by(schema.jobs.c.id))
        assert states.scalars().all() == ["waiting", "done", "waiting"]
    assert len(newest(now)) == 1


# Where the database does not matter.
in_sqlite = pytest.mark.parametrize("store_settings", ["sqlite"], indirect=True)


@in_sqlite
def test_nothing_is_done_where_all_is_kept(old_store: Store) -> None:
    put(old_store, page("http://a.example/", "x", 50))
    runs = len(old_store.runs(100))
    for keep in (RetentionSettings(), RetentionSettings(days=51, versions=1)):
        assert forget_expired(old_store, keep).counts == {}
    assert len(old_store.runs(100)) == runs
    assert len(newest(old_store)) == 1


@in_sqlite
def test_wrappers_outlive_the_pages_of_their_site(old_store: Store) -> None:
    put(old_store, page("http://a.example/", "x", 1))
    old_store.save_wrapper("a.example/1", "a.example", "{}", "learn")
    forget_expired(old_store, RetentionSettings(days=30))
    assert [one.name for one in old_store.wrappers()] == ["a.example/1"]
    assert [(site.name, site.pages) for site in old_store.sites()] == [("a.example", 0)]
    put(old_store, page("http://a.example/", "x", 99))
    assert_sound(old_store)
    with closing(old_store):
        assert len(newest(old_store)) == 1


@in_sqlite
def test_what_stands_in_the_way_is_told_and_the_work_before_it_counts(old_store: Store) -> None:
    put(old_store, page("http://a.example/old", "zqoldvw", 10), page("http://a.example/new", "x", 99))
    keep = RetentionSettings(days=30)
    with packs_lock(old_store.folder):  # as someone has it who makes a backup
        forgotten, hindrance = forget_after_work(old_store, keep)
    assert forgotten.counts == {}
    assert re.search(
        r"^What was kept for long enough is not .* again .*: Another process .* ends\.$", hindrance
    )
    assert len(newest(old_store)) == 2
    forgotten, hindrance = forget_after_work(old_store, keep)
    assert (forgotten.counts["pages"], hindrance) == (1, "")
    assert where_stands(old_store, "zqoldvw") == []
