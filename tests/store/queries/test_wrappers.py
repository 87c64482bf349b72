"""Wrappers: each name has versions, none of which is lost or overwritten."""

from __future__ import annotations

import subprocess
import sys

import pytest

from siteloom.core.errors import StoreError
from siteloom.core.settings import StoreSettings
from siteloom.store.queries.wrappers import StoredWrapper
from siteloom.store.store import Store
from tests.patience import SECONDS
from tests.store.helpers import page, put

SAVE = """
import sys
from siteloom.core.settings import StoreSettings
from siteloom.store.workspace_folder import open_store
store = open_store(StoreSettings(sys.argv[1], sys.argv[2]))
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    print(store.save_wrapper("shop", "a.example", f"{sys.argv[3]} {number}", "learn"))
store.close()
"""


def test_a_wrapper_comes_back_as_it_was_given(store: Store) -> None:
    before = store.clock()
    text = '{"rules": "\N{SNAKE} \\u0000 \\ud800\'"}\n'
    assert store.save_wrapper("a.example/1", "a.example", text, "learn", "five\0 examples") == 1
    found = store.wrapper("a.example/1")
    assert before <= found.created_at <= store.clock()
    assert found == StoredWrapper(
        "a.example/1",
        "a.example",
        1,
        text,
        found.created_at,
        "learn",
        "five\N{REPLACEMENT CHARACTER} examples",
    )


def test_each_name_has_versions_of_its_own(store: Store) -> None:
    saved = [("shop", "one"), ("guide", "two"), ("shop", "three"), ("shop", "one")]
    assert [store.save_wrapper(name, "a.example", text, "learn") for name, text in saved] == [1, 1, 2, 3]
    assert [(found.version, found.text) for found in store.wrapper_versions("shop")] == [
        (1, "one"),
        (2, "three"),
        (3, "one"),
    ]
    assert store.wrapper("shop").version == 3
    assert store.wrapper("shop", 2).text == "three"
    assert store.wrapper("guide").text == "two"


def test_more_than_nine_versions_stand_in_the_order_of_their_numbers(store: Store) -> None:
    for number in range(1, 13):
        store.save_wrapper("shop", "a.example", str(number), "learn")
    assert store.wrapper("shop").text == "12"
    assert [found.version for found in store.wrapper_versions("shop")] == list(range(1, 13))


def test_the_newest_of_each_wrapper_are_listed_by_site_and_name(store: Store) -> None:
    assert store.wrappers() == []
    for name, site in (("x", "b.example"), ("b", "a.example"), ("B", "a.example"), ("b", "a.example")):
        store.save_wrapper(name, site, "text", "learn")
    listed = [(found.site, found.name, found.version) for found in store.wrappers()]
    assert listed == [("a.example", "B", 1), ("a.example", "b", 2), ("b.example", "x", 1)]


def test_the_wrappers_of_a_site_are_counted_by_name(store: Store) -> None:
    put(store, page("http://a.example/1"), page("http://b.example/1"))
    for name in ("one", "other", "one"):
        store.save_wrapper(name, "a.example", "text", "learn")
    assert [(site.name, site.wrappers) for site in store.sites()] == [("a.example", 2), ("b.example", 0)]


def test_a_wrapper_that_is_not_there_is_answered_with_those_that_are(store: Store) -> None:
    with pytest.raises(StoreError, match=r"^There is no wrapper shop: there are none yet\.$"):
        store.wrapper("shop")
    for name in "abcdefghij":
        store.save_wrapper(name, "a.example", "text", "learn")
    for ask in (store.wrapper, store.wrapper_versions):
        with pytest.raises(
            StoreError, match=r"^There is no wrapper shop: there are a, b, c, d, e, f, g, h, \.\.\.\.$"
        ):
            ask("shop")


def test_a_version_that_is_not_there_is_answered_with_those_that_are(store: Store) -> None:
    for text in ("one", "two"):
        store.save_wrapper("shop", "a.example", text, "learn")
    with pytest.raises(StoreError, match=r"^There is no version 3 of the wrapper shop: there are 1, 2\.$"):
        store.wrapper("shop", 3)


@pytest.mark.parametrize(
    ("name", "site", "text"),
    [
        ("a\0", "a.example", "{}"),
        ("a", "a\ud800", "{}"),
        ("a", "a.example", '"\udfff"'),
        ("é" * 151, "a", ""),
    ],
)
def test_what_databases_refuse_is_refused_with_a_sentence(
    store: Store, name: str, site: str, text: str
) -> None:
    with pytest.raises(
        StoreError, match=r"of the wrapper .* (that databases refuse|longer than 300 bytes)\.$"
    ):
        store.save_wrapper(name, site, text, "learn")
    assert store.wrappers() == []


def test_processes_that_save_at_once_get_different_versions(
    store_settings: StoreSettings, store: Store
) -> None:
    savers = [
        subprocess.Popen(
            [sys.executable, "-c", SAVE, store_settings.workspace, store_settings.url, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two", "three")
    ]
    for saver in savers:
        assert saver.stdout is not None
        assert saver.stdout.readline() == "ready\n"
    for saver in savers:
        assert saver.stdin is not None
        saver.stdin.write("go\n")
        saver.stdin.flush()
    told = [[int(line) for line in saver.communicate(timeout=SECONDS)[0].split()] for saver in savers]
    assert sorted(version for versions in told for version in versions) == list(range(1, 61))
    assert len({found.text for found in store.wrapper_versions("shop")}) == 60
