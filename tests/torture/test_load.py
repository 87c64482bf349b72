"""A small crawl goes through all verbs, some people work with it at once, and what is wrong is noticed."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from torture.crawl import Crawl, steps, write_crawl
from torture.users import visits

_PAGES = 410  # a little more than one city guide


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("load")


@pytest.fixture(scope="module")
def crawl(folder: Path) -> Crawl:
    return write_crawl(folder, _PAGES, seed=1)


def test_a_crawl_goes_through_all_verbs(folder: Path, crawl: Crawl) -> None:
    done = list(steps(folder, crawl))
    assert [(step.verb, step.fault) for step in done] == [
        (f"siteloom {verb}", "") for verb in ("ingest", "cluster", "learn", "extract", "clean")
    ]
    assert len(crawl.names) > _PAGES // 2
    assert all(step.ran.peak_bytes > 0 and step.ran.cpu_seconds > 0 for step in done)


def test_people_work_at_once_and_nothing_is_lost(folder: Path, crawl: Crawl) -> None:
    # In a thread: where tests in a real browser have run, this one has a loop of events already.
    with ThreadPoolExecutor(1) as one:
        outcome, *latencies = one.submit(list, visits(folder, users=6, seconds=6, seed=1)).result()
    assert outcome.is_borne, outcome.found
    assert "no error" in outcome.found
    assert "to say what a value is" in {one.what for one in latencies}


def test_what_is_wrong_is_noticed(folder: Path, crawl: Crawl) -> None:
    from torture.crawl import _records_fault

    assert _records_fault(folder, crawl) == ""
    records = folder / "records.jsonl"
    lines = records.read_text().splitlines()
    first = json.loads(lines[0])
    first["values"]["name"] = ["Another"]
    records.write_text("\n".join([json.dumps(first), *lines[1:-1], lines[-2]]) + "\n")
    fault = _records_fault(folder, crawl)
    assert fault.startswith("1 pages without record or reason, 1 wrong, 0 of ")
    assert fault.endswith(" names missed, 1 twice")
