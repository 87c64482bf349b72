"""Rows of one entity become one, each attribute from the page that is surest of it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import OutputError, UsageError
from siteloom.core.urls import site_of
from siteloom.extraction import record_joining as joining_module
from siteloom.extraction.record_joining import join_rows, parse_key
from siteloom.extraction.record_rows import Row
from tests.extraction.records import row, rows

SKU = parse_key("sku")
NUMBER = parse_key(r"/item/(\d+)")


def test_the_pages_of_an_entity_become_one_record() -> None:
    detail = row("http://a.example/item/1", 0.9, "detail", 2, sku=["x"], name=["Desk"])
    detail["typed"] = {"sku": ["X"]}
    specification = row("http://a.example/item/1/spec", 0.8, "spec", None, sku=["x"], width=["1 m", "2 m"])
    specification["typed"] = {"width": [None, "2"]}
    (joined,) = join_rows([detail, specification], SKU)
    first, second = detail["url"], specification["url"]
    assert joined == {
        "url": first,
        "wrapper": "detail",
        "version": 2,
        "values": {"sku": ["x"], "name": ["Desk"], "width": ["1 m", "2 m"]},
        "typed": {"sku": ["X"], "width": [None, "2"]},
        "confidence": {"sku": [0.9], "name": [0.9], "width": [0.8, 0.8]},
        "provenance": {
            "sku": [{"rule": "sku#1", "node": "/html[1]/p[1]", "url": first}],
            "name": [{"rule": "name#1", "node": "/html[1]/p[1]", "url": first}],
            "width": [
                {"rule": "width#1", "node": "/html[1]/p[1]", "url": second},
                {"rule": "width#1", "node": "/html[1]/p[2]", "url": second},
            ],
        },
        "withheld": {},
        "duplicate_of": None,
        "pages": [
            {"url": first, "wrapper": "detail", "version": 2},
            {"url": second, "wrapper": "spec", "version": None},
        ],
    }
    assert list(joined)[-1] == "pages"


def test_an_attribute_comes_whole_from_the_row_that_is_surest_of_it() -> None:
    unsure = row("http://a.example/1", sku=["x"], tags=["a", "b"])
    unsure["confidence"]["tags"] = [1.0, 0.3]
    unsure["typed"]["tags"] = ["A", "B"]
    surer = row("http://a.example/2", 0.4, sku=["x"], tags=["c"])
    equal = row("http://a.example/3", 0.4, sku=["x"], tags=["d"])
    (joined,) = join_rows([unsure, surer, equal], SKU)
    assert joined["values"]["tags"] == ["c"]
    assert joined["confidence"]["tags"] == [0.4]
    assert joined["typed"] == {}
    assert [origin["url"] for origin in joined["provenance"]["tags"]] == ["http://a.example/2"]


def test_what_was_withheld_is_kept_from_all_pages() -> None:
    one, two = row("http://a.example/1", sku=["x"]), row("http://a.example/2", sku=["x"])
    one["withheld"] = two["withheld"] = {"price": [{"text": "ask", "reason": "no price", "node": "/p"}]}
    (joined,) = join_rows([one, two], SKU)
    assert [(text["text"], text["url"]) for text in joined["withheld"]["price"]] == [
        ("ask", "http://a.example/1"),
        ("ask", "http://a.example/2"),
    ]


def test_rows_keep_the_order_in_which_their_entities_appear() -> None:
    urls = ["/item/1", "/about", "/item/2/spec", "/item/1/spec", "/item/2", "/contact"]
    joined = list(join_rows([row(f"http://a.example{url}") for url in urls], NUMBER))
    assert [[page["url"].removeprefix("http://a.example") for page in one["pages"]] for one in joined] == [
        ["/item/1", "/item/1/spec"],
        ["/about"],
        ["/item/2/spec", "/item/2"],
        ["/contact"],
    ]


def test_another_site_has_other_entities() -> None:
    urls = ["http://a.example/item/1", "http://b.example/item/1", "https://www.a.example/item/1/spec"]
    assert [len(one["pages"]) for one in join_rows(map(row, urls), NUMBER)] == [2, 1]


def test_rows_without_the_attribute_stay_alone() -> None:
    assert len(list(join_rows([row("http://a.example/1"), row("http://a.example/2")], SKU))) == 2


def test_several_values_are_a_key_whatever_their_order() -> None:
    keys = [["x", "y"], ["y", "x", "x"], ["x"]]
    joined = join_rows([row(f"http://a.example/{n}", sku=key) for n, key in enumerate(keys)], SKU)
    assert [len(one["pages"]) for one in joined] == [2, 1]


@pytest.mark.parametrize("pattern", [r"/item/(\d*)", r"/item/(\d+)?"])
def test_a_group_that_finds_nothing_is_no_key(pattern: str) -> None:
    given_rows = [row("http://a.example/item/"), row("http://a.example/item/?x")]
    assert len(list(join_rows(given_rows, parse_key(pattern)))) == 2


def test_the_rows_given_are_left_as_they_were() -> None:
    given_rows = [
        row("http://a.example/item/1", name=["a"]),
        row("http://a.example/item/1", 0.95, name=["b"]),
    ]
    before = json.dumps(given_rows)
    list(join_rows(given_rows, NUMBER))
    assert json.dumps(given_rows) == before


def reference(given_rows: list[Row], attribute: str) -> list[tuple[list[str], dict[str, list[str]]]]:
    """The URLs and the values of each joined row, found the short way, all in memory."""
    groups: dict[object, list[Row]] = defaultdict(list)
    for number, each in enumerate(given_rows):
        key = tuple(sorted(set(each["values"].get(attribute, ()))))
        groups[(site_of(each["url"]), key) if key else number].append(each)
    joined = []
    for group in groups.values():
        values = {}
        for name in {name for each in group for name in each["values"]}:
            having = [each for each in group if name in each["values"]]
            values[name] = max(having, key=lambda each: min(each["confidence"][name]))["values"][name]
        joined.append(([each["url"] for each in group], values))
    return joined


@given(
    rows(
        ["sku", "name"],
        st.sampled_from("ab\0\ud800"),
        st.sampled_from(["http://a.example/", "http://b.example/"]),
    )
)
def test_rows_are_joined_as_by_the_short_way(given_rows: list[Row]) -> None:
    joined = list(join_rows(given_rows, SKU))
    assert [([p["url"] for p in one["pages"]], one["values"]) for one in joined] == reference(
        given_rows, "sku"
    )
    for one in joined:
        assert one["confidence"].keys() == one["provenance"].keys() == one["values"].keys()
        for name, texts in one["values"].items():
            assert len(texts) == len(one["confidence"][name]) == len(one["provenance"][name])
            assert len(one["typed"].get(name, texts)) == len(texts)


MEMORY = """
import resource, sys
from siteloom.extraction.record_joining import join_rows, parse_key
def rows(count):
    for number in range(count):
        yield {"url": f"http://a.example/{number}", "wrapper": "w", "version": 1, "duplicate_of": None,
               "values": {"name": ["x" * 2000]}, "typed": {}, "confidence": {"name": [0.5]},
               "provenance": {}, "withheld": {}}
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
key = parse_key(r"(\\d+)\\d$")
sum(1 for _ in join_rows(rows(500), key))
before = peak()
assert sum(1 for _ in join_rows(rows(20_000), key)) == 2009
print((peak() - before) // 1024)
"""


def test_memory_does_not_grow_with_the_rows() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 15  # MB, where the rows take more than 40


def test_a_spool_that_fails_is_one_clear_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def small() -> sqlite3.Connection:
        spool = sqlite3.connect("")
        spool.execute("PRAGMA max_page_count = 10")
        return spool

    monkeypatch.setattr(joining_module, "temporary_sqlite", small)
    endless = (row(f"http://a.example/{number}", name=["x" * 1000]) for number in range(1000))
    with pytest.raises(OutputError, match=r"records wait to be joined cannot be used: .* is full\.$"):
        list(join_rows(endless, SKU))


def test_an_error_of_the_rows_stays_its_own() -> None:
    def broken() -> Iterator[Row]:
        yield row("http://a.example/1")
        raise sqlite3.OperationalError("their own")

    with pytest.raises(sqlite3.OperationalError, match="their own"):
        list(join_rows(broken(), SKU))


# Keys


def test_a_name_is_an_attribute() -> None:
    assert parse_key("product id.+[").attribute == "product id.+["


def test_a_parenthesis_makes_it_a_pattern() -> None:
    key = parse_key(r"id=(?:a|b)(\w+)")
    assert key.attribute is None
    assert key.of(row("http://a.example/?id=axy")) == ["xy"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("/item/(", r"^The pattern /item/\( for URLs is no regular expression: .*\.$"),
        (r"/item/\(", r"has 0 groups: put parentheses around the one part that names the entity"),
        (
            "(a)(b)",
            r"has 2 groups: put parentheses around the one part .*write \(\?:\.\.\.\) for any others\.$",
        ),
    ],
)
def test_a_bad_pattern_is_wrong_use(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        parse_key(text)
