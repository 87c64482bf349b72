"""Importing pages, and what follows it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from siteloom.core.errors import NoPageImported
from siteloom.core.model import Failure, Page, Resource, Skipped
from siteloom.core.settings import AlarmSettings, RetentionSettings, Settings
from siteloom.operations.cluster import cluster_store
from siteloom.operations.context import Context
from siteloom.operations.ingest import IngestRequest, IngestResult, ingest
from siteloom.sources.page_source import Items, SourceItem
from siteloom.store.store import Store
from tests.apps.cli.command import Command
from tests.maintenance import guide
from tests.operations.maintenance import watch_stored
from tests.store.helpers import page, put

SITE = "larkmoor-guide.example"
NAME = f"{SITE}/1"


def imported(store: Store, items: Sequence[SourceItem], settings: Settings = Settings()) -> IngestResult:
    return ingest(Context(store=store, settings=settings), IngestRequest(sources=(Items(items),)))


def watch(store: Store) -> None:
    """Import restaurants, and watch some of them."""
    put(store, *guide.pages())
    cluster_store(store, "vertex")
    store.save_wrapper(NAME, SITE, guide.wrapper().to_json(), "learn")
    watch_stored(store)


def test_pages_are_counted_by_site_and_outcome(store: Store) -> None:
    put(store, page("https://a.example/1", "old"), page("https://a.example/2"))
    result = imported(
        store,
        [
            page("https://a.example/1", "new", on_day=1),
            page("https://a.example/2"),
            page("https://a.example/3"),
            page("https://b.example/1"),
            Resource("https://a.example/a.css", b"p{}", "text/css"),
            Failure("https://a.example/4", "status 500"),
            Skipped("https://a.example/5", "no page"),
        ],
    )
    assert (result.added, result.changed_pages, result.unchanged, result.resources) == (3, 1, 1, 1)
    assert (result.failures, result.skipped) == ({"status 500": 1}, {"no page": 1})
    assert result.first_failures == (Failure("https://a.example/4", "status 500"),)
    assert [(site.site, site.pages, site.added) for site in result.sites] == [
        ("a.example", 3, 1),
        ("b.example", 1, 1),
    ]
    assert (result.pages, result.site, result.site_count, result.url) == (4, None, 2, None)
    assert {site.next_step.kind for site in result.sites} == {"cluster"}


def test_an_import_without_a_page_is_an_error_with_the_result(store: Store) -> None:
    with pytest.raises(NoPageImported, match=r"^No page could be read: status 500 \(why\)\.$") as caught:
        imported(store, [Failure("https://a.example/", "status 500", "why")])
    assert caught.value.result.failures == {"status 500": 1}
    with pytest.raises(NoPageImported, match="all 2 documents were skipped"):
        imported(store, [Skipped("x", "no page")] * 2)
    with pytest.raises(NoPageImported, match="there is nothing in it"):
        imported(store, [])


def test_watched_pages_that_have_changed_are_compared_and_the_alarm_is_raised(
    store: Store, tmp_path: Path
) -> None:
    watch(store)
    same = imported(store, guide.pages())
    assert (same.changes, store.newest_checks(NAME)) == ((), [])
    alarm = tmp_path / "alarm.jsonl"
    settings = Settings(alarm=AlarmSettings(command=f"tee {alarm}"))
    result = imported(store, guide.pages("redesign"), settings)
    assert result.changed_wrappers == (NAME,)
    assert {change.wrapper for change in result.changes} == {NAME}
    assert not store.newest_checks(NAME)[0].is_healthy
    assert json.loads(alarm.read_text().splitlines()[0])["wrapper"] == NAME
    assert result.sites[0].next_step.kind == "repair"


def test_only_sites_with_changed_pages_are_compared(store: Store) -> None:
    watch(store)
    put(store, page("https://b.example/1", "old"))
    imported(store, [page("https://b.example/1", "new", on_day=1), *guide.pages()])
    assert store.newest_checks(NAME) == []


def test_what_has_expired_is_removed_after_an_import(store: Store) -> None:
    old = Page("https://a.example/old", b"<p>", datetime(2001, 1, 1, tzinfo=UTC))
    put(store, old)
    new = replace(old, url="https://a.example/new", fetched_at=datetime.now(UTC))
    result = imported(store, [new], Settings(retention=RetentionSettings(days=30)))
    assert result.forgotten.counts["pages"] == 1
    assert [one.url for one in store.pages()] == [new.url]


def test_the_command_line_compares_watched_pages_too(tmp_path: Path) -> None:
    siteloom = Command(tmp_path)
    lines = {
        name: "\n".join(
            json.dumps({"url": one.url, "html": one.html.decode(), "fetched_at": f"2027-01-0{day}T00:00:00Z"})
            for one in pages
        )
        for day, (name, pages) in enumerate(
            {"before.jsonl": guide.pages(), "after.jsonl": guide.pages("redesign")}.items(), 1
        )
    }
    for name, text in lines.items():
        (siteloom.folder / name).write_text(text, encoding="utf-8")
    examples = [json.dumps({"url": one.url, "values": one.values}) for one in guide.records()[:4]]
    (siteloom.folder / "examples.jsonl").write_text("\n".join(examples), encoding="utf-8")
    for arguments in (
        ("ingest", "before.jsonl"),
        ("cluster",),
        ("learn", "--examples", "examples.jsonl"),
        ("watch",),
    ):
        done = siteloom(*arguments)
        assert done.returncode == 0, done.stderr
    told = siteloom("ingest", "after.jsonl").stderr
    assert f"{NAME} has changed" in told
    assert "siteloom relearn repairs what it can" in told
