"""Performance: how long runs took, and what came of each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from shutil import copytree
from typing import Any
from urllib.parse import quote

import pytest
from lxml import html

from siteloom.apps.server import create_app
from siteloom.core.model import Failure
from siteloom.core.settings import Settings, StoreSettings
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.server.browsing import Browser
from tests.apps.server.conftest import People
from tests.lived_in import GUIDE
from tests.store.helpers import day

HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def client(lived_in_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = copytree(lived_in_folder, tmp_path_factory.mktemp("performance") / ".siteloom")
    with closing(open_store(StoreSettings(str(folder)))) as store:
        yield Browser(create_app(store, Settings()))


def told(browser: Browser, path: str) -> Any:
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def run_of(store: Store, verb: str, seconds: float, arguments: dict[str, Any], **counts: int) -> int:
    """A run that takes so long."""
    times = iter([day(0), day(0) + timedelta(seconds=seconds)])
    with replace(store, clock=lambda: next(times)).recording(verb, arguments) as run:
        run.counts.update(counts)
    return run.id


def test_runs_of_extract_are_told_with_their_speed(client: Browser) -> None:
    found = told(client, "/api/performance")
    assert len(found["runs"]) == found["counts"]["extract"] == 4
    for run in found["runs"]:
        assert run["site"] == GUIDE
        assert run["speed"] == pytest.approx(run["pages"] / run["seconds"])
    shown = client.look("/performance")
    assert "Pages a second" in shown
    assert "Time against size" in shown


def test_runs_of_cluster_are_told_with_what_they_found(empty_store: Store) -> None:
    run_of(empty_store, "cluster", 10, {"site": None}, pages=500, clusters=7, unclustered=50, failed=2)
    (run,) = told(Browser(create_app(empty_store, Settings())), "/api/performance?verb=cluster")["runs"]
    assert (run["seconds"], run["pages"], run["speed"]) == (10, 500, 50)
    assert (run["clusters"], run["coverage"], run["failed"]) == (7, 0.9, 2)


def test_pages_of_other_verbs(empty_store: Store) -> None:
    run_of(empty_store, "ingest", 5, {"site": None}, new=10, changed=5, unchanged=5, failed=1, skipped=3)
    run_of(empty_store, "search", 2, {}, added_pages=8, added_records=3)
    run_of(empty_store, "bootstrap", 60, {"sites": []}, wrapped=1, records=9)
    client = Browser(create_app(empty_store, Settings()))
    pages = {
        verb: [(run["pages"], run["speed"]) for run in told(client, f"/api/performance?verb={verb}")["runs"]]
        for verb in ("ingest", "search", "bootstrap")
    }
    assert pages == {"ingest": [(20, 4)], "search": [(8, 4)], "bootstrap": [(None, None)]}
    for verb in pages:
        assert "usual time" in client.look(f"/performance?verb={verb}")


def test_runs_of_one_site_alone(empty_store: Store) -> None:
    run_of(empty_store, "cluster", 1, {"site": "a.example"}, pages=1)
    run_of(empty_store, "cluster", 1, {"site": None}, pages=2)
    client = Browser(create_app(empty_store, Settings()))
    assert [run["pages"] for run in told(client, "/api/performance?verb=cluster&site=a.example")["runs"]] == [
        1
    ]
    assert "No such runs here" in client.look("/performance?verb=cluster&site=b.example")


@pytest.mark.parametrize(
    ("sort", "first"), [("started", 3), ("seconds", 1), ("pages", 2), ("speed", 1), ("failed", 3)]
)
def test_the_table_is_sorted(empty_store: Store, sort: str, first: int) -> None:
    runs = [
        run_of(empty_store, "cluster", seconds, {"site": None}, pages=pages, failed=failed)
        for seconds, pages, failed in ((100, 10, 0), (10, 1000, 1), (1, 100, 5))
    ]
    answer = Browser(create_app(empty_store, Settings())).get(f"/performance?verb=cluster&sort={sort}")
    root = html.document_fromstring(answer.text)
    links = root.xpath("//table[@class = 'plain']//tbody//th/a/@href")
    assert links[0] == f"/runs/{runs[first - 1]}"
    assert root.xpath("//th[@aria-sort]")


def test_a_run_and_all_that_came_of_it(client: Browser) -> None:
    last = told(client, "/api/performance")["runs"][-1]
    run = told(client, f"/api/runs/{last['run']}")
    assert run["arguments"]["site"] == GUIDE
    assert "fingerprint" not in run["arguments"]
    assert sum(run["failures_by_reason"].values()) == run["failed"] == len(run["failures"])
    assert run["unmatched"][0]["pages"] >= run["unmatched"][-1]["pages"]
    assert {one["is_healthy"] for one in run["checks"]} == {False}
    shown = client.look(f"/runs/{last['run']}")
    for words in (run["failures"][0]["reason"], run["unmatched"][0]["shape"], "Records that have a value"):
        assert words in shown


def test_failures_for_one_reason(client: Browser) -> None:
    last = told(client, "/api/performance")["runs"][-1]["run"]
    reasons = told(client, f"/api/runs/{last}")["failures_by_reason"]
    assert len(reasons) > 1
    for reason, count in reasons.items():
        found = told(client, f"/api/runs/{last}?reason={quote(reason)}")["failures"]
        assert [one["reason"] for one in found] == [reason] * count


def test_only_the_first_failures_are_listed(empty_store: Store) -> None:
    with empty_store.recording("ingest", {"sources": ["a"], "site": None}) as run:
        for number in range(70):
            run.fail(Failure(f"https://a.example/{number}", HOSTILE, HOSTILE))
    client = Browser(create_app(empty_store, Settings()))
    assert len(told(client, f"/api/runs/{run.id}")["failures"]) == 50
    root = html.document_fromstring(client.get(f"/runs/{run.id}").text)
    assert "/pages/at?url=https%3A//a.example/0" in root.xpath("//a/@href")
    assert not root.xpath("//main//img")


def test_every_kind_of_run_has_its_page(client: Browser) -> None:
    newest = told(client, "/api/performance")["runs"][-1]["run"]
    for number in range(1, newest + 1):
        client.look(f"/runs/{number}")


def test_a_run_that_was_cut_short_says_so(empty_store: Store) -> None:
    with suppress(ZeroDivisionError), empty_store.extracting({"site": None}, "a") as extraction:
        extraction.commit(0, [], [], {"tally": [["pages", 3]]})
        raise ZeroDivisionError
    client = Browser(create_app(empty_store, Settings()))
    assert "It ended with an error" in client.look(f"/runs/{extraction.run_id}")
    assert "cut short" in client.look("/performance")


def test_an_empty_workspace_says_what_to_do(people: People) -> None:
    ana = people.browser("ana", "admin")
    for verb in ("extract", "cluster", "ingest", "search", "bootstrap"):
        assert "No such runs" in ana.look(f"/performance?verb={verb}")
    assert ana.get("/performance?verb=dance").status_code == 422


@pytest.mark.parametrize("number", ["0", "77", "99999999999999999999999", "-1"])
def test_there_is_no_such_run(client: Browser, number: str) -> None:
    assert client.get(f"/runs/{number}").status_code == 404
    assert client.get(f"/api/runs/{number}").status_code == 404


def test_a_moment_long_ago(empty_store: Store) -> None:
    with replace(empty_store, clock=lambda: datetime.fromisoformat("1970-01-01T00:00:00+00:00")).recording(
        "cluster", {"site": None}
    ):
        pass
    (run,) = told(Browser(create_app(empty_store, Settings())), "/api/performance?verb=cluster")["runs"]
    assert (run["seconds"], run["pages"], run["speed"]) == (0, None, None)
