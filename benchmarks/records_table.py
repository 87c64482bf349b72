"""The table of records: how long a person waits for a filter, an order, a page, a download."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
import tracemalloc
from contextlib import closing
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from benchmarks.measure import Figure, cpu_seconds, cpu_time
from siteloom.apps.server.result_cache import Choice, FoundRecords
from siteloom.core.database import SQLITE_FILE
from siteloom.core.settings import StoreSettings
from siteloom.extraction.record_formats import stream_records
from siteloom.extraction.record_rows import flag_duplicates
from siteloom.extraction.shard_extraction import ExtractedRow
from siteloom.store.queries.record_filters import Condition, RecordQuery
from siteloom.store.workspace_folder import open_store

if TYPE_CHECKING:
    from siteloom.store.queries.record_filters import RecordTable
    from siteloom.store.store import Store

TITLE = "Table of records"

_RECORDS = 100_000
_OF_A_SHARD = 500
_OF_A_PAGE = 50
_SITE = "guide.example"
_WRAPPER = f"{_SITE}/1"
_WORDS = ("Blue", "Fern", "Golden", "Lotus", "Harbour", "Kitchen", "Old", "Mill", "Café", "Heron")
_NAMES = [f"{one} {other}" for one, other in product(_WORDS, _WORDS)]


def figures(_: Path) -> list[Figure]:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(open_store(StoreSettings(workspace=folder), create=True)) as store,
    ):
        _fill(store)
        return _measured(store, Path(folder) / SQLITE_FILE)


def _measured(store: Store, file: Path) -> list[Figure]:
    table = store.record_table
    choice = Choice(table.scope(), _SITE, _WRAPPER)
    by_price = RecordQuery(sort="attribute", attribute="price", descending=True)
    queries = {
        "words": RecordQuery(words="blue 77"),
        "contains": RecordQuery(conditions=(Condition("name", "contains", "fern"),)),
        "price": by_price,
        "sure": RecordQuery(confidence_below=0.5),
    }
    seconds = cpu_seconds(
        {
            "scan": lambda: _scan(file),
            "all": lambda: FoundRecords().ids(table, choice, RecordQuery()),
            **{f"first {name}": partial(_ask, table, choice, query) for name, query in queries.items()},
        }
    )
    known = FoundRecords()
    tracemalloc.start()
    known.prepare(table, choice)
    known.ids(table, choice, by_price)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    for query in queries.values():
        known.ids(table, choice, query)
    again = {
        "words": RecordQuery(words="blue 778"),
        "contains": RecordQuery(conditions=(Condition("name", "contains", "ferns"),)),
        "price": RecordQuery(sort="attribute", attribute="price"),
        "sure": RecordQuery(confidence_below=0.6),
    }
    later = {name: cpu_time(partial(known.ids, table, choice, query)) for name, query in again.items()}
    ids = known.ids(table, choice, by_price)
    pages = range(0, _RECORDS, _RECORDS // 50)
    paging = cpu_time(lambda: [table.rows(choice.scope, ids[at : at + _OF_A_PAGE]) for at in pages])
    start, whole = _download(store, choice)

    def ratio(name: str) -> str:
        return f"{seconds[name] / seconds['scan']:.1f} ({seconds[name]:.2f} s)"

    return [
        Figure("records", f"{_RECORDS:,} of eight attributes, {file.stat().st_size / 1e6:,.0f} MB"),
        Figure("first page of all, over reading all contents from the file", ratio("all")),
        Figure("first filter by words, over the same", ratio("first words"), "at most 1.5 s"),
        Figure("first filter by an attribute, over the same", ratio("first contains"), "at most 1.5 s"),
        Figure("first sorting by price, over the same", ratio("first price"), "at most 1.5 s"),
        Figure("first filter by confidence, over the same", ratio("first sure"), "at most 1.5 s"),
        *(Figure(f"next question ({name})", f"{1000 * value:.0f} ms") for name, value in later.items()),
        Figure("a page of 50, anywhere", f"{1000 * paging / len(pages):.1f} ms", "at most 100 ms"),
        Figure("memory that is kept for the next question", f"{kept / 1e6:.0f} MB"),
        Figure("download as CSV, first bytes", f"{1000 * start:.0f} ms"),
        Figure(
            "download as CSV, over reading all contents", f"{whole / seconds['scan']:.1f} ({whole:.1f} s)"
        ),
    ]


def _ask(table: RecordTable, choice: Choice, query: RecordQuery) -> None:
    """The first question about records of which nothing is known."""
    FoundRecords().ids(table, choice, query)


def _scan(file: Path) -> int:
    """The yardstick: all contents as SQLite gives them."""
    with closing(sqlite3.connect(file)) as connection:
        return sum(len(content) for (content,) in connection.execute("SELECT content FROM records"))


def _download(store: Store, choice: Choice) -> tuple[float, float]:
    """CPU seconds until the first bytes, and until the last."""
    ids = store.record_table.ids(*choice)
    rows = flag_duplicates(map(json.loads, store.record_table.contents(ids)))
    before = time.process_time()
    pieces = stream_records(".csv", ["name", "address", "price"], rows)
    next(pieces)
    first = time.process_time() - before
    for _ in pieces:
        pass
    return first, time.process_time() - before


def _fill(store: Store) -> None:
    random = Random(1)
    store.save_wrapper(_WRAPPER, _SITE, "{}", "learn")
    with store.extracting({"site": None}, "benchmark") as extraction:
        for shard in range(_RECORDS // _OF_A_SHARD):
            start = shard * _OF_A_SHARD
            rows = [_record(number, random) for number in range(start, start + _OF_A_SHARD)]
            extraction.commit(shard, rows, [], {"tally": []})


def _record(number: int, random: Random) -> ExtractedRow:
    """A record as large as those of real sites: most of it is where its values were found."""
    pounds = f"{random.randrange(500, 9_000) / 100:.2f}"
    values = {
        "name": [f"{random.choice(_NAMES)} {number}"],
        "address": [f"{number % 300} {random.choice(_NAMES)} Street"],
        "phone": [f"01632 {random.randrange(10**6):06}"],
        "price": [f"£ {pounds}"],
        "cuisine": random.sample(["Thai", "Vegan", "Italian", "Sushi"], random.randrange(1, 3)),
        "rating": [f"{random.randrange(10, 50) / 10}"],
        "description": [" ".join(random.choices(_WORDS, k=20))],
        "opened": [f"{random.randrange(1, 28)} May {random.randrange(2010, 2026)}"],
    }
    if random.random() < 0.2:
        del values["phone"]
    node = "/html[1]/body[1]/div[2]/div[1]/div[{0}]/ul[1]/li[{0}]/span[2]/text()[1]"
    url = f"https://{_SITE}/restaurants/{number}/index.html"
    row = {
        "url": url,
        "wrapper": _WRAPPER,
        "version": 1,
        "values": values,
        "typed": {"price": [{"amount": pounds, "currency": "GBP"}], "rating": values["rating"]},
        "confidence": {
            name: [round(random.uniform(0.4, 1), 4) for _ in texts] for name, texts in values.items()
        },
        "provenance": {
            name: [{"rule": name, "node": node.format(place)} for place, _ in enumerate(texts, 1)]
            for name, texts in values.items()
        },
        "withheld": {},
        "duplicate_of": None,
    }
    return ExtractedRow(url, _WRAPPER, 1, json.dumps(row, ensure_ascii=False))
