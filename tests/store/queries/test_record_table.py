"""Tables of records: which records are in them, in which order, and that every database agrees."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event

from siteloom.core.errors import NotFound
from siteloom.core.model import Provenance, Record
from siteloom.core.values.value_types import Price, Rating
from siteloom.extraction.record_rows import record_row
from siteloom.extraction.shard_extraction import ExtractedRow
from siteloom.store.queries import record_filters
from siteloom.store.queries.record_filters import (
    Condition,
    Operator,
    RecordColumns,
    RecordCount,
    RecordQuery,
    magnitude,
    matching_records,
)
from siteloom.store.queries.wrappers import WITHDRAWN
from siteloom.store.store import Store

SHOP, BOOKS = "shop.example", "books.example"


def line(
    url: str,
    values: dict[str, list[str]],
    typed: dict[str, list[object]] | None = None,
    confidence: dict[str, list[float]] | None = None,
    *,
    wrapper: str = f"{SHOP}/1",
    version: int | None = 1,
) -> ExtractedRow:
    """A record as runs of extract write it."""
    sure = confidence or {}
    origins = {
        name: tuple(
            Provenance(name, "//p", "/html/body/p", share) for share in sure.get(name, [0.9] * len(texts))
        )
        for name, texts in values.items()
    }
    record = Record(
        url,
        {name: tuple(texts) for name, texts in values.items()},
        typed={name: tuple(some) for name, some in (typed or {}).items()},
        provenance=origins,
    )
    row = record_row(record, wrapper, version)
    return ExtractedRow(url, wrapper, version, json.dumps(row, ensure_ascii=False))


def extract(store: Store, *shards: Sequence[ExtractedRow], site: str | None = None) -> int:
    """A run that finds these records; returns its number."""
    with store.extracting({"site": site}, f"{site} {len(shards)} {store.clock()}") as extraction:
        for number, rows in enumerate(shards):
            extraction.commit(number, rows, [], {})
    return extraction.run_id


def urls(store: Store, ids: Sequence[int], run: int | None = None) -> list[str]:
    table = store.record_table
    return [row.url for row in table.rows(table.scope(run), ids)]


def test_rows_come_as_their_ids_do_with_their_place_on_the_page(store: Store) -> None:
    store.save_wrapper(f"{SHOP}/1", SHOP, "{}", "learn")
    several = [
        line("http://shop.example/list", {"name": [text]}, confidence={"name": [0.25]}) for text in "abc"
    ]
    extract(store, several)  # an earlier run has its own
    extract(store, [*several, line("http://shop.example/one", {"name": ["one"], "tag": ["x", "y"]})])
    table = store.record_table
    scope = table.scope()
    ids = table.ids(scope)
    rows = table.rows(scope, ids[::-1])
    assert [(row.url[-4:], row.place, dict(row.values)) for row in rows] == [
        ("/one", 0, {"name": ["one"], "tag": ["x", "y"]}),
        ("list", 2, {"name": ["c"]}),
        ("list", 1, {"name": ["b"]}),
        ("list", 0, {"name": ["a"]}),
    ]
    assert {(row.site, row.wrapper, row.version) for row in rows} == {(SHOP, f"{SHOP}/1", 1)}
    assert rows[1].confidence == {"name": [0.25]}
    assert [json.loads(text)["values"] for text in table.contents(ids)] == [
        {"name": ["a"]}, {"name": ["b"]}, {"name": ["c"]}, {"name": ["one"], "tag": ["x", "y"]}
    ]  # fmt: skip
    assert table.rows(scope, [ids[0] + 10_000]) == []


def test_other_runs_are_not_looked_through_for_the_places_on_a_page(sqlite_store: Store) -> None:
    extract(sqlite_store, [line("http://shop.example/list", {"name": ["a"]})])
    table, queries = sqlite_store.record_table, []

    def remember(*told: Any) -> None:
        queries.append(told[2:4])

    scope = table.scope()
    ids = table.ids(scope)
    event.listen(sqlite_store.engine, "before_cursor_execute", remember)
    table.rows(scope, ids)
    event.remove(sqlite_store.engine, "before_cursor_execute", remember)
    ((query, parameters),) = (one for one in queries if one[0].startswith("SELECT"))
    with sqlite_store.engine.connect() as connection:
        plan = [row.detail for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", parameters)]
    (beside,) = (step for step in plan if "beside" in step)
    assert "USING COVERING INDEX" in beside
    assert "url_key=? AND run_id=?" in beside


def test_what_is_known_of_a_run_that_goes_on_is_known_no_more(store: Store) -> None:
    table = store.record_table
    first, second = ([line(f"http://shop.example/{number}", {"name": ["a"]})] for number in range(2))
    with store.extracting({"site": None}, "all") as extraction:
        extraction.commit(0, first, [], {})
        scope = table.scope(extraction.run_id)
        assert scope == table.scope(extraction.run_id)
        extraction.commit(1, second, [], {})
        assert scope != table.scope(extraction.run_id)


def test_what_holds_is_what_the_store_says_holds(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_filters, "_RECORDS_AT_A_TIME", 2)
    for name, site in ((f"{SHOP}/1", SHOP), (f"{SHOP}/2", SHOP), (f"{BOOKS}/1", BOOKS)):
        store.save_wrapper(name, site, "{}", "learn")
    everywhere = [
        line("http://shop.example/1", {"name": ["old"]}),
        line("http://shop.example/2", {"name": ["old"]}, wrapper=f"{SHOP}/2"),
        line("http://books.example/1", {"name": ["book"]}, wrapper=f"{BOOKS}/1"),
        line("http://files.example/1", {"name": ["file"]}, wrapper="of-a-file", version=None),
        line("http://shop.example/3", {"name": ["old file"]}, wrapper="of-a-file", version=None),
    ]
    first = extract(store, everywhere[:3], everywhere[3:])
    extract(
        store,
        [line(f"http://shop.example/{number}", {"name": ["new"]}) for number in range(5)]
        + [line("http://shop.example/9", {"name": ["withdrawn"]}, wrapper=f"{SHOP}/2")],
        site=SHOP,
    )
    store.save_wrapper(f"{SHOP}/2", SHOP, "{}", WITHDRAWN)
    table = store.record_table
    scope = table.scope()
    held = list(store.records_in_force())
    assert sorted(urls(store, table.ids(scope))) == sorted(row["url"] for _, row in held)
    assert table.counts(scope) == [
        RecordCount(SHOP, f"{SHOP}/1", 5),
        RecordCount(BOOKS, f"{BOOKS}/1", 1),
        RecordCount("files.example", "of-a-file", 1),
    ]
    for site in (SHOP, BOOKS, "files.example", "nowhere.example"):
        expected = sorted(row["url"] for home, row in held if home == site)
        assert sorted(urls(store, table.ids(scope, site))) == expected
        assert sum(map(len, table.chunks(scope, site))) == len(expected)
    assert urls(store, table.ids(scope, None, "of-a-file")) == ["http://files.example/1"]
    assert list(table.ids(scope, BOOKS, f"{SHOP}/1")) == []
    whole = table.scope(first)
    assert urls(store, table.ids(whole), first) == [row.url for row in everywhere]
    assert RecordCount(SHOP, f"{SHOP}/2", 1) in table.counts(whole)
    assert scope == table.scope()
    extract(store, [line("http://shop.example/1", {"name": ["newest"]})], site=SHOP)
    assert scope != table.scope()


def test_of_a_run_that_is_not_there_a_sentence_says_so(store: Store) -> None:
    with pytest.raises(NotFound, match=r"^There is no run 7 of extract\.$"):
        store.record_table.scope(7)
    assert list(store.record_table.ids(store.record_table.scope())) == []


def pounds(*amounts: str) -> dict[str, list[object]]:
    return {"price": [Price(Decimal(amount), "GBP") for amount in amounts]}


ROWS = [
    line("http://a.example/0", {"name": ["Blue Fern"], "price": ["£ 9.50"]}, pounds("9.5")),
    line("http://a.example/1", {"name": ["blue turnip"], "price": ["£ 12.50"]}, pounds("12.5")),
    line(
        "http://a.example/2",
        {"name": ["Éclair"], "price": ["ask"]},
        {"price": [None]},
        {"name": [0.3], "price": [0.9]},
    ),
    line("http://a.example/3", {"tag": ["x", "100%"], "price": ["£ 100.00", "£ 3"]}, pounds("100.00", "3")),
    line(
        "http://a.example/4",
        {"name": ["a_c \"quoted\" \\ 'x'"], "day": ["1 May 2026"], "stars": ["4/5"]},
        {"day": [date(2026, 5, 1)], "stars": [Rating(Decimal(4), Decimal(5))]},
    ),
    line(
        "http://a.example/5",
        {"day": ["June"], "stars": ["9"], "plain": ["10"]},
        {"day": [datetime(2026, 6, 1, tzinfo=UTC)], "stars": [Decimal("4.5")]},
    ),
    line("http://a.example/6", {"plain": ["9"]}),
    line("http://a.example/7", {}),
]


def found(query: RecordQuery) -> list[int]:
    columns = RecordColumns((number, row.url, row.content) for number, row in enumerate(ROWS))
    return list(matching_records([columns], query))


@pytest.mark.parametrize(
    ("attribute", "operator", "text", "expected"),
    [
        ("name", "contains", "BLUE", [0, 1]),
        ("name", "contains", "éCL", [2]),
        ("name", "contains", "_", [4]),
        ("tag", "contains", "%", [3]),
        ("name", "contains", '"quoted" \\', [4]),
        ("name", "is", "blue fern", [0]),
        ("name", "is", "blue", []),
        ("tag", "is", "x", [3]),
        ("tag", "is not", "x", [0, 1, 2, 4, 5, 6, 7]),
        ("price", "is empty", "", [4, 5, 6, 7]),
        ("price", "has a value", "", [0, 1, 2, 3]),
        ("price", "greater", "9.5", [1, 3]),
        ("price", "at least", "9.5", [0, 1, 3]),
        ("price", "less", "9.5", [3]),
        ("price", "at most", "9.5", [0, 3]),
        ("day", "less", "2026-05-15", [4]),
        ("day", "greater", "2026-05-15", [5]),
        ("stars", "greater", "4", [5]),
        ("plain", "greater", "9", [5]),
        ("name", "unsure", "0.5", [2]),
        ("price", "unsure", "0.5", []),
        ("price", "greater", "many", []),
        ("nothing", "contains", "x", []),
        ("nothing", "is empty", "", list(range(8))),
    ],
)
def test_conditions(attribute: str, operator: Operator, text: str, expected: list[int]) -> None:
    assert found(RecordQuery(conditions=(Condition(attribute, operator, text),))) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (RecordQuery(sort="attribute", attribute="price"), [0, 1, 3, 2, 4, 5, 6, 7]),
        (RecordQuery(sort="attribute", attribute="price", descending=True), [2, 3, 1, 0, 4, 5, 6, 7]),
        (RecordQuery(sort="attribute", attribute="name"), [4, 0, 1, 2, 3, 5, 6, 7]),
        (RecordQuery(sort="attribute", attribute="plain"), [6, 5, 0, 1, 2, 3, 4, 7]),
        (RecordQuery(sort="attribute", attribute="day"), [4, 5, 0, 1, 2, 3, 6, 7]),
        (RecordQuery(sort="confidence"), [2, 0, 1, 3, 4, 5, 6, 7]),
        (RecordQuery(sort="url", descending=True), [7, 6, 5, 4, 3, 2, 1, 0]),
        (RecordQuery(descending=True), [7, 6, 5, 4, 3, 2, 1, 0]),
        (RecordQuery(words="blue 12.50"), [1]),
        (RecordQuery(words="A.EXAMPLE/6"), [6]),
        (RecordQuery(words=" "), list(range(8))),
        (RecordQuery(url="/4"), [4]),
        (RecordQuery(confidence_below=0.5), [2]),
        (RecordQuery(words="blue", conditions=(Condition("price", "greater", "10"),)), [1]),
    ],
)
def test_words_confidence_and_order(query: RecordQuery, expected: list[int]) -> None:
    assert found(query) == expected


def test_numbers_and_days_are_compared_as_such() -> None:
    assert magnitude("-12.5") == -12.5
    days = [
        magnitude(text) or 0 for text in ("2026-05-01", "2026-05-01T23:30:00", "2026-05-01T23:30:00-01:00")
    ]
    assert days == sorted(days)
    assert len(set(days)) == len(days)
    for text in ("", "1e5", "12,5", "£ 3", "2026-13-01", "٣", "2026-05-01Tx", "0001-01-01T25:00"):
        assert magnitude(text) is None


def test_a_record_whose_parts_stand_in_another_order_is_read_too() -> None:
    content = json.dumps({"confidence": {"a": [0.2]}, "typed": {"a": ["7"]}, "values": {"a": ["seven"]}})
    columns = RecordColumns([(1, "u", content)])
    assert columns.values("a") == ["seven"]
    assert list(columns.numbers("a")) == [(7.0,)]
    assert list(columns.confidence("a")) == [0.2]


@pytest.mark.parametrize(
    ("ask", "seam"),
    [
        (RecordColumns.haystacks, "values"),
        (lambda columns: columns.numbers("price"), "values"),
        (RecordColumns.confidence, "_items"),
    ],
)
def test_whoever_asks_while_another_is_told_gets_the_same(
    ask: Callable[[RecordColumns], Sequence[object]], seam: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = RecordColumns((number, row.url, row.content) for number, row in enumerate(ROWS))
    place = RecordColumns if seam == "values" else record_filters
    go_on = getattr(place, seam)
    told: list[Sequence[object]] = []

    def interrupted(*arguments: object) -> object:
        monkeypatch.undo()
        told.append(list(ask(columns)))  # as another thread would half way
        return go_on(*arguments)

    monkeypatch.setattr(place, seam, interrupted)
    told.append(list(ask(columns)))
    told.append(list(ask(columns)))
    expected = list(ask(RecordColumns((number, row.url, row.content) for number, row in enumerate(ROWS))))
    assert list(map(repr, told)) == [repr(expected)] * 3  # NaN is not equal to itself


# What SQL, JSON and the marks between the parts of a record could stumble over.
TEXTS = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        ["%", "_", "'", '"', "\\", "ß", "SS", "İ", "é", '"values": {', ', "typed": {', "3.5", "\ud800", "\0"]
    ),
)
NAMES = st.sampled_from(["name", "price", "values", "typed", 'con"fidence', "provenance"])
RECORDS = st.lists(
    st.tuples(
        TEXTS,
        st.dictionaries(NAMES, st.lists(TEXTS, min_size=1, max_size=3), max_size=4),
        st.sampled_from([0.1, 0.5, 0.9]),
    ),
    max_size=12,
)
OPERATORS: list[Operator] = ["contains", "is", "is not", "is empty", "has a value", "less", "unsure"]
QUERIES = st.builds(
    RecordQuery,
    words=TEXTS,
    url=st.sampled_from(["", "a", "%"]),
    conditions=st.lists(st.builds(Condition, NAMES, st.sampled_from(OPERATORS), TEXTS), max_size=2).map(
        tuple
    ),
    confidence_below=st.sampled_from([None, 0.5]),
    sort=st.sampled_from(["page", "url", "confidence", "attribute"]),
    attribute=NAMES,
    descending=st.booleans(),
)


def plainly(rows: Sequence[dict[str, Any]], query: RecordQuery) -> list[int]:
    """The same, one record at a time."""

    def fits(row: dict[str, Any], condition: Condition) -> bool:
        texts = [text.casefold() for text in row["values"].get(condition.attribute, [])]
        wanted, limit = condition.text.casefold(), magnitude(condition.text)
        match condition.operator:
            case "contains":
                return any(wanted in text for text in texts)
            case "is":
                return wanted in texts
            case "is not":
                return wanted not in texts
            case "is empty":
                return not texts
            case "has a value":
                return bool(texts)
            case "unsure":
                shares = row["confidence"].get(condition.attribute, [])
                return limit is not None and any(share < limit for share in shares)
            case _:
                numbers = map(magnitude, row["values"].get(condition.attribute, []))
                return limit is not None and any(one is not None and one < limit for one in numbers)

    def lowest(row: dict[str, Any]) -> float:
        return min((share for shares in row["confidence"].values() for share in shares), default=math.nan)

    def is_meant(row: dict[str, Any]) -> bool:
        texts = "\n".join(
            [row["url"], *(text for some in row["values"].values() for text in some)]
        ).casefold()
        return (
            all(word in texts for word in query.words.casefold().split())
            and query.url.casefold() in row["url"].casefold()
            and all(fits(row, condition) for condition in query.conditions)
            and (query.confidence_below is None or lowest(row) < query.confidence_below)
        )

    def key(row: dict[str, Any]) -> tuple[int, float, str] | None:
        if query.sort == "url":
            return (1, 0, row["url"].casefold())
        if query.sort == "confidence":
            return None if math.isnan(lowest(row)) else (0, lowest(row), "")
        texts = row["values"].get(query.attribute)
        if not texts:
            return None
        numbers = [one for one in map(magnitude, texts) if one is not None]
        return (0, numbers[0], "") if numbers else (1, 0, texts[0].casefold())

    meant = [number for number, row in enumerate(rows) if is_meant(row)]
    if query.sort == "page":
        return meant[::-1] if query.descending else meant
    keys = {number: key(rows[number]) for number in meant}
    sortable = [number for number in meant if keys[number] is not None]
    sortable.sort(key=lambda number: keys[number] or (0, 0, ""), reverse=query.descending)
    return sortable + [number for number in meant if keys[number] is None]


@given(RECORDS, QUERIES, st.integers(1, 5))
def test_filtering_sorting_and_paging_is_the_same_as_in_plain_python(
    store: Store, records: list[tuple[str, dict[str, list[str]], float]], query: RecordQuery, size: int
) -> None:
    lines = []
    for url, values, sure in records:
        confidence = {name: [sure] * len(texts) for name, texts in values.items()}
        lines.append(line(f"http://a.example/{url}", values, confidence=confidence))
    run = extract(store, lines[:size], lines[size:])
    table = store.record_table
    scope = table.scope(run)
    kept = [json.loads(text) for text in table.contents(table.ids(scope))]
    for row, url in zip(kept, urls(store, table.ids(scope), run), strict=True):
        row["url"] = url
    places = {record_id: place for place, record_id in enumerate(table.ids(scope))}
    ids = matching_records(table.chunks(scope), query)
    assert [places[one] for one in ids] == plainly(kept, query)
    pages = [table.rows(scope, ids[start : start + size]) for start in range(0, len(ids), size)]
    assert [row.id for rows in pages for row in rows] == list(ids)
