"""What servers said by which to ask whether a page has changed, kept with its versions."""

from __future__ import annotations

from dataclasses import replace

from siteloom.core.model import Page, Validators
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from tests.store.helpers import day, page, put

URL = "http://a.example/1"


def told(store: Store, *urls: str, site: str = "a.example") -> dict[str, Validators]:
    return store.validators([PageAddress(site, url) for url in urls])


def saying(text: str, on_day: int, **validators: str) -> Page:
    return replace(page(URL, text, on_day), validators=Validators(**validators) if validators else None)


def test_they_are_those_of_the_newest_version(store: Store) -> None:
    put(store, saying("old", 0, etag='"1"', last_modified="Sat, 01 Mar 2025 12:00:00 GMT"))
    assert told(store, URL, "http://a.example/none") == {
        URL: Validators('"1"', "Sat, 01 Mar 2025 12:00:00 GMT")
    }
    put(store, saying("new", 2, etag='"2"'))
    assert told(store, URL) == {URL: Validators('"2"')}
    put(store, saying("between", 1, etag='"3"'))
    assert told(store, URL) == {URL: Validators('"2"')}
    put(store, saying("newest", 3))
    assert told(store, URL) == {}
    put(store, saying("old", 4))  # what was said of this content holds
    assert told(store, URL)[URL].etag == '"1"'


def test_content_seen_again_is_asked_for_by_what_was_said_last(store: Store) -> None:
    put(store, saying("same", 0, etag='"a"'), saying("same", 1, etag='"b"'))  # committed together
    assert told(store, URL) == {URL: Validators('"b"')}
    put(store, saying("same", 2, etag='"c"'))
    assert told(store, URL) == {URL: Validators('"c"')}
    put(store, saying("same", 1, etag='"late"'))
    assert told(store, URL) == {URL: Validators('"c"')}


def test_a_page_of_a_named_site_is_found_there(store: Store) -> None:
    put(store, saying("same", 0, etag='"a"'), site="shop")
    assert told(store, URL) == {}
    assert told(store, URL, site="shop") == {URL: Validators('"a"')}


def test_they_are_no_part_of_what_a_page_is(store: Store) -> None:
    one = saying("same", 0, etag='"a"')
    assert one == page(URL, "same") == replace(one, validators=None)
    assert hash(one) == hash(page(URL, "same"))
    assert one != replace(one, fetched_at=day(1))
    put(store, one)
    assert store.versions(URL) == (one,)
