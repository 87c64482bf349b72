"""What people said of a cluster stays with its pages when clusters are found anew."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from siteloom.core.model import Attribute, Page
from siteloom.operations.cluster import cluster_store
from siteloom.store import schema
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from tests.store.helpers import page, put
from tests.store.test_overview import cluster

SITE = "shop.example"
URLS = [f"https://{SITE}/{number}" for number in range(10)]
ADDRESSES = [PageAddress(SITE, url) for url in URLS]
NAME, PRICE = {"name": Attribute(multi=False)}, {"price": Attribute(type="price")}


def found(store: Store, *members: range, site: str | None = None) -> None:
    """Keep clusters of pages as those that were found last."""
    with store.clustering({"site": site}) as run:
        numbered = [cluster(f"{SITE}/{number}", *some) for number, some in enumerate(members, 1)]
        store.save_clusters(run.id, numbered, ADDRESSES)


def say(store: Store, number: int, attributes: dict[str, Attribute], author: str) -> None:
    name = f"{SITE}/{number}"
    follows = store.cluster_schema(name).revision
    assert store.apply_updates(name, [], author, attributes=attributes, schema_follows=follows)


@pytest.fixture
def shop(store: Store) -> Store:
    """Five pages with names, and five with prices."""
    put(store, *map(page, URLS))
    found(store, range(5), range(5, 10))
    say(store, 1, NAME, "ana")
    say(store, 2, PRICE, "ben")
    return store


def said(store: Store) -> list[dict[str, Attribute]]:
    """What is said of the first three clusters."""
    return [dict(store.cluster_schema(f"{SITE}/{number}").attributes) for number in (1, 2, 3)]


@pytest.mark.parametrize("site", [None, SITE])
def test_numbers_that_change_hands(shop: Store, site: str | None) -> None:
    found(shop, range(5, 10), range(5), site=site)
    assert said(shop) == [PRICE, NAME, {}]
    assert shop.cluster_schema(f"{SITE}/1").revision == 2


def test_a_number_that_goes_to_other_pages_takes_nothing_with_it(shop: Store) -> None:
    found(shop, range(1), range(1, 5), range(5, 10))
    assert said(shop) == [{}, NAME, PRICE]
    found(shop, range(1), range(1, 5))  # the third is gone, with all that was said of it
    found(shop, range(1, 5), range(1), range(5, 10))
    assert said(shop) == [NAME, {}, {}]


def test_clusters_that_stay_as_they_are_have_no_new_revision(shop: Store) -> None:
    found(shop, range(4), range(4, 10))
    assert said(shop) == [NAME, PRICE, {}]
    assert shop.cluster_schema(f"{SITE}/1").revision == 1


def test_less_than_half_of_the_pages_is_too_little(shop: Store) -> None:
    found(shop, range(5, 10), range(2), range(2, 4))
    assert said(shop) == [PRICE, {}, {}]


def test_of_clusters_that_became_one_all_is_kept(shop: Store) -> None:
    say(shop, 2, {**PRICE, "name": Attribute(multi=True)}, "ben")
    found(shop, range(6, 10), range(6))
    assert said(shop) == [{**PRICE, "name": Attribute(multi=True)}, NAME, {}]
    found(shop, range(10))
    assert list(said(shop)[0].items()) == [*NAME.items(), *PRICE.items()]


def test_a_run_that_does_not_come_to_a_good_end_changes_nothing(shop: Store) -> None:
    def is_interrupted() -> None:
        with shop.clustering({"site": None}) as run:
            shop.save_clusters(run.id, [cluster(f"{SITE}/1", *range(5, 10))], ADDRESSES)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        is_interrupted()
    assert said(shop) == [NAME, PRICE, {}]


def test_what_is_carried_is_said_by_who_said_it(shop: Store) -> None:
    found(shop, range(5, 10), range(5))
    columns = schema.cluster_schemas.c
    query = select(columns.author).where(columns.cluster == f"{SITE}/1").order_by(columns.revision)
    with shop.engine.connect() as connection:
        assert connection.execute(query).scalars().all() == ["ana", "ben"]


def test_clustering_anew_when_a_smaller_template_has_become_the_larger(store: Store) -> None:
    def shop(number: int) -> Page:
        html = f"<div><h1>Shop {number}</h1><p>Price: <b>{number}</b></p><ul><li>a</ul></div>"
        return Page(f"https://{SITE}/shop/{number}", html.encode())

    def news(number: int) -> Page:
        html = f"<table><tr><td><i>News {number}</i><td>By <em>x</em></table><form><input></form>"
        return Page(f"https://{SITE}/news/{number}", html.encode())

    put(store, *map(shop, range(12)), *map(news, range(8)))
    cluster_store(store, "vertex")
    say(store, 1, PRICE, "ana")
    put(store, *map(news, range(8, 24)))
    clustering, addresses = cluster_store(store, "vertex", site=SITE)
    first = [addresses[member].url.split("/")[3] for member in clustering.clusters[0].members]
    assert set(first) == {"news"}
    assert said(store) == [{}, PRICE, {}]
