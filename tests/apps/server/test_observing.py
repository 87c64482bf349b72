"""What programs are told that watch over the server."""

from __future__ import annotations

import logging
import re

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import text

import siteloom
from siteloom.apps.server import create_app
from siteloom.core.settings import Settings
from siteloom.store.store import Store
from tests.apps.server.browsing import Browser
from tests.apps.server.conftest import People
from tests.store.helpers import day, page, put


@pytest.fixture
def client(people: People) -> Browser:
    """Someone who has not signed in, though there is an account."""
    return Browser(people.app)


def samples(client: Browser) -> dict[tuple[str, ...], float]:
    """All numbers, by name and labels."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (one.name, *(value for _, value in sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(answer.text)
        for one in family.samples
    }


def test_a_server_that_is_well_says_so_to_anyone(client: Browser) -> None:
    answer = client.get("/health")
    assert (answer.status_code, answer.json()) == (
        200,
        {"status": "ok", "version": siteloom.__version__},
    )


def test_a_database_that_does_not_answer_is_told_without_its_address(
    client: Browser, empty_store: Store
) -> None:
    with empty_store.engine.begin() as connection:
        connection.execute(text("ALTER TABLE workspace RENAME TO elsewhere"))
    answer = client.get("/health")
    assert answer.status_code == 503
    assert answer.json()["status"] == "failing"
    assert answer.json()["detail"].startswith("The database does not answer")
    assert str(empty_store.folder) not in answer.text


def test_a_page_says_so_if_the_database_fails(people: People, empty_store: Store) -> None:
    browser = people.browser("ana", "admin")
    with empty_store.engine.begin() as connection:
        for table in ("repairs", "wrappers"):
            connection.execute(text(f"ALTER TABLE {table} RENAME TO no_{table}"))
    for path in ("/wrappers", "/review", "/"):
        answer = browser.get(path)
        assert answer.status_code == 503, path
        assert "Try again in a moment." in answer.text
        assert "default-src" in answer.headers["content-security-policy"]


def test_requests_are_counted_by_their_routes(client: Browser) -> None:
    for path in ("/health", "/health", "/jobs/1", "/jobs/2", "/no/such/page", "/static/jobs.js"):
        client.get(path)
    client.send("BREW", "/health")
    found = samples(client)
    count = "siteloom_request_seconds_count"
    assert found[count, "GET", "/health", "200"] == 2
    assert found[count, "GET", "/jobs/{job_id:int}", "303"] == 2
    assert found[count, "GET", "/static", "200"] == 1
    assert found[count, "GET", "none", "404"] == 1
    assert found[count, "other", "/health", "405"] == 1
    assert found["siteloom_request_seconds_sum", "GET", "/health", "200"] > 0


def test_what_is_in_the_workspace_is_counted_and_not_named(client: Browser, empty_store: Store) -> None:
    put(empty_store, page("https://a.example/1"), page("https://a.example/2"), page("https://b.example/"))
    job = empty_store.jobs.add("cluster", {"site": "a.example"}, "ana")
    empty_store.jobs.add("learn", {"cluster": "a.example/1"}, "ana")
    empty_store.jobs.end(job.id, "failed", "It failed.")
    found = samples(client)
    assert (found["siteloom_sites",], found["siteloom_addresses",]) == (2, 3)
    assert found["siteloom_jobs", "cluster", "failed"] == found["siteloom_jobs", "learn", "waiting"] == 1
    told = client.get("/metrics").text
    assert "example" not in told
    assert "ana" not in told


def test_jobs_and_relearning_are_measured(empty_store: Store) -> None:
    app = create_app(empty_store, Settings())
    job = empty_store.jobs.add("extract", {"site": None}, "ana")
    metrics = app.state.services.metrics
    metrics.observe_job(job)  # one that was cancelled before it began took no time
    metrics.observe_job(job._replace(state="done", started_at=day(1), ended_at=day(2)))
    metrics.observe_relearning(0.3)
    found = samples(Browser(app))
    assert found["siteloom_job_seconds_sum", "extract", "done"] == 86_400
    assert found["siteloom_relearn_seconds_bucket", "0.25"] == 0
    assert found["siteloom_relearn_seconds_bucket", "0.5"] == 1


def test_each_application_counts_for_itself(empty_store: Store) -> None:
    first, second = (Browser(create_app(empty_store, Settings())) for _ in range(2))
    first.get("/health")
    key = ("siteloom_request_seconds_count", "GET", "/health", "200")
    assert samples(first)[key] == 1
    assert key not in samples(second)


def test_a_request_is_one_line_of_the_log(client: Browser, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "siteloom"):
        client.get("/health%0aGET%20/%C3%A9:%20200%1b[1m")
    (line,) = [record.getMessage() for record in caplog.records if "GET" in record.getMessage()]
    assert line.startswith("GET /health%0AGET%20/%C3%A9:%20200%1B%5B1m: 404 in ")


def test_requests_are_written_to_the_log(client: Browser, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "siteloom"):
        client.get("/health?key=secret")
    (line,) = [record.getMessage() for record in caplog.records if "GET" in record.getMessage()]
    assert re.fullmatch(r"GET /health: 200 in \d+\.\d{3} s", line)
