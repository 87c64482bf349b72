"""What comes of finishing at a workbench, where a wrapper is in force already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from siteloom.apps.demo.sites import guide_site
from siteloom.apps.server import create_app
from siteloom.apps.server.operation_jobs import to_plain
from siteloom.core.model import Attribute, Example, Page
from siteloom.core.settings import Settings, StoreSettings
from siteloom.operations.annotate import annotated_templates
from siteloom.operations.annotation.annotation_session import Workbench
from siteloom.operations.cluster import cluster_store
from siteloom.sources.example_files import ExampleLine
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.server.serving import program, serving
from tests.operations.calls import annotate_pages, finish_cluster, learned_template

SITE = "guide"
ATTRIBUTES = ("name", "phone", "rating")


def put(store: Store, pages: list[Page]) -> None:
    with store.ingesting({}, 1) as (_, writer):
        for page in pages:
            writer.add(page, SITE)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A site whose restaurants were annotated, wrapped and then redesigned; it was not clustered since."""
    restaurants = [one for one in guide_site() if one.kind == "restaurant"][:60]
    with closing(open_store(StoreSettings(str(tmp_path / "workspace")), create=True)) as opened:
        put(opened, [one.page for one in restaurants])
        cluster_store(opened, "vertex")
        for one in islice(restaurants, 0, 60, 12):
            values = {name: list(one.truth[name]) for name in ATTRIBUTES}
            opened.save_example(PageAddress(SITE, one.page.url), Example(one.page, values))
        for template in annotated_templates(opened):
            learned_template(opened, template)
        urls = {one.page.url for one in restaurants}
        put(opened, [one.page for one in guide_site("redesign") if one.page.url in urls])
        yield opened


def test_one_attribute_annotated_anew_is_found_on_all_pages_as_they_are_now(store: Store) -> None:
    clusters, _ = store.clusters()
    cluster = max(clusters, key=lambda found: found.size).id
    bench = Workbench(store, cluster)
    assert [one.name for one in bench.sheet().attributes] == list(ATTRIBUTES)
    truth = {one.page.url: one.truth for one in guide_site("redesign")}
    bench.describe("name", Attribute(), "ana", seen=0)
    for page in bench.pages[:3]:
        (name,) = truth[page.page.url]["name"]
        value = page.value(name, None)
        assert value.pick is not None
        bench.say(page.id, {"name": [value.pick]}, "ana", version=page.version, seen={})

    result = finish_cluster(store, cluster)

    (wrapper,) = result.learned.wrappers
    assert wrapper.lost_attributes == ()
    assert result.pages_with_record == result.cluster_pages
    assert result.extracted.records >= result.cluster_pages
    assert store.watched() == {wrapper.name: wrapper.version}  # so that the next change is noticed


INNS = 60


def inn(number: int) -> tuple[Page, dict[str, str]]:
    texts = {
        "phone": ("by post only", f"0117 496 {number:04}", f"0117 496 {number:04} ext. 2")[number % 3],
        "hours": ("closed", "9 - 17", "daily 9 to 5")[number * 7 // 3 % 3],
    }
    html = f"<h2>Inn</h2><p><b>Phone</b>: {texts['phone']}</p><p><b>Hours</b>: {texts['hours']}</p>"
    return Page.from_text(f"https://inns.example/inn/{number}", f"<html><body>{html}</body></html>"), texts


def say(store: Store, numbers: Iterable[int], lead: str) -> None:
    lines = []
    for number in numbers:
        page, texts = inn(number)
        lines.append(ExampleLine(page.url, {name: (lead + text,) for name, text in texts.items()}, (), {}))
    annotate_pages(store, lines)


def test_pages_that_had_a_record_and_have_none_now_are_told_with_the_way_back(tmp_path: Path) -> None:
    """Some values are cut, and others that were annotated before are not: few rules fit both."""
    settings = Settings(store=StoreSettings(str(tmp_path / "workspace")))
    with closing(open_store(settings.store, create=True)) as store:
        with store.ingesting({}, 1) as (_, writer):
            for number in range(INNS):
                writer.add(inn(number)[0], "inns.example")
        cluster_store(store, "vertex")
        cluster = store.clusters()[0][0].id
        say(store, range(6), ": ")
        before = finish_cluster(store, cluster)
        assert (before.pages_with_record, before.lost_records) == (INNS, 0)
        say(store, range(3), "")
        result = finish_cluster(store, cluster)

        assert result.extracted.previous_run == before.extracted.run
        assert result.pages_with_record < INNS
        assert result.pages_with_record + result.lost_records == INNS
        with_record = store.urls_with_record(result.extracted.run or 0)
        assert result.lost_urls
        assert with_record.isdisjoint(result.lost_urls)
        assert {one.url for one in result.learned.wrappers[0].not_reproduced}

        job = store.jobs.add("finish", {"cluster": cluster}, "ana")
        store.jobs.start(job.id)
        store.jobs.end(job.id, "done", to_plain(result))
        with serving(create_app(store, settings)) as address, program(address, store, "editor") as client:
            page = client.get(f"/jobs/{job.id}").text
            assert f"{result.lost_records} pages that had a record have none now" in page
            assert f"/records?run={before.extracted.run}" in page
            assert "Go back to version 1" in page
