"""What comes of finishing at a workbench, where a wrapper is in force already."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from siteloom.apps.demo.sites import guide_site
from siteloom.core.model import Attribute, Example, Page
from siteloom.core.settings import StoreSettings
from siteloom.operations.annotate import annotated_templates
from siteloom.operations.annotation.annotation_session import Workbench
from siteloom.operations.cluster import cluster_store
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.operations.calls import finish_cluster, learned_template

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
