"""Jobs that fetch pages: from a form to pages in the workspace, cancelled, and asked for wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from siteloom.apps.server import create_app
from siteloom.apps.server.event_stream import Changes
from siteloom.apps.server.job_kinds import Report, form_arguments
from siteloom.apps.server.job_runner import JobRunner
from siteloom.apps.server.work import KINDS
from siteloom.core.errors import SourceError, UsageError
from siteloom.core.settings import CrawlSettings, Settings, StoreSettings
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.server.job_waiting import wait_for
from tests.apps.server.serving import program, serving
from tests.sources.crawling.web_site import A_LIST, WebSite, served_site

SITE = "127.0.0.1"


@pytest.fixture(scope="module")
def site() -> Iterator[WebSite]:
    with served_site() as site:
        yield site


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    workspace = StoreSettings(workspace=str(tmp_path / "workspace"))
    return Settings(store=workspace, crawl=CrawlSettings(delay=0, private=True, most_pages=30))


@pytest.fixture
def store(settings: Settings, empty_workspace: Path) -> Iterator[Store]:
    copytree(empty_workspace, settings.store.workspace)
    opened = open_store(settings.store)
    yield opened
    opened.close()


@pytest.fixture
def runner(store: Store, settings: Settings) -> Iterator[JobRunner]:
    found = JobRunner(store, settings, Changes())
    found.start()
    yield found
    found.stop()


def result_of(store: Store, job_id: int) -> dict[str, Any]:
    job = wait_for(store, job_id)
    assert isinstance(job.result, dict), job.result
    return job.result


def test_a_start_page_becomes_a_site_with_templates(site: WebSite, store: Store, settings: Settings) -> None:
    with serving(create_app(store, settings)) as address, program(address, store, "editor") as client:
        asked = {"start": f"{site.address}/", "cluster": True}
        job = client.post("/api/jobs", json={"kind": "fetch", "arguments": asked}).json()
        result = result_of(store, job["id"])
        assert (result["site"], result["pages"], result["added"]) == (SITE, 30, 30)
        assert result["failures"]["status 404"] >= 1
        assert result["skipped"]["forbidden by robots.txt"] == 1
        assert result["first_failures"][0]["url"].startswith(site.address)
        assert result["url"] is None
        (told,) = result["sites"]
        assert told["templates"] == len(store.clusters()[0]) > 0
        assert (told["next_step"]["kind"], store.sites()[0].pages) == ("annotate", 30)
        done = wait_for(store, job["id"])
        assert done.total is not None
        page = client.get(f"/jobs/{job['id']}").text
        assert f'href="/sites/{SITE}' in page


def run(
    store: Store, settings: Settings, arguments: dict[str, object], report: Report = lambda *_: None
) -> dict[str, Any]:
    """What a job does, without a process for it."""
    return KINDS["fetch"].run(store, settings, dict.fromkeys(KINDS["fetch"].arguments) | arguments, report)


def test_one_url_is_one_page_and_what_failed_is_told(site: WebSite, store: Store, settings: Settings) -> None:
    url = site.address + A_LIST
    reports: list[tuple[int, int | None, str]] = []
    locked: list[bool] = []

    def report(*told: Any) -> None:
        reports.append(told)
        locked.append(store.is_being_written)

    fetched = run(store, settings, {"urls": [url]}, report)
    assert (fetched["url"], fetched["pages"], fetched["failures"]) == (url, 1, {})
    assert reports[-1] == (1, 1, "pages: Fetching")
    assert not any(locked)  # others can write meanwhile
    again = run(store, settings, {"urls": [url, url, f"{site.address}/broken"]})
    assert (again["added"], again["unchanged"], again["failures"]) == (0, 1, {"status 500": 1})
    with pytest.raises(SourceError, match=r"^No page could be read: status 404\.$"):
        run(store, settings, {"urls": [f"{site.address}/nowhere"]})


def test_what_a_cancelled_job_has_fetched_is_kept(site: WebSite, store: Store, runner: JobRunner) -> None:
    asked = {"start": f"{site.address}/calendar/2026/1", "most_pages": 100_000}
    job = runner.submit("fetch", asked, "ana").id
    assert wait_for(store, job, lambda job: job.done >= 3).message == "pages: Fetching"
    runner.cancel(job)
    assert wait_for(store, job).state == "cancelled"
    (kept,) = store.sites()
    assert (kept.name, kept.pages >= 3) == (SITE, True)
    assert store.runs(1)[0].status == "interrupted"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"urls": ["https://x.example/", "ftp://x.example/"]}, "'ftp://x.example/' is no address"),
        ({"start": "no page"}, "'no page' is no address of a web page"),
        ({"urls": "https://x.example/"}, "must be a list of texts"),
        ({"start": "x.example", "most_pages": "9"}, "must be a whole number"),
    ],
)
def test_a_mistake_is_told_at_once(runner: JobRunner, arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        runner.submit("fetch", arguments, "ana")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "There is nothing to fetch: name URLs, or a start page."),
        ({"start": "x.example", "most_pages": 0}, "At least one page must be fetched: raise most_pages."),
    ],
)
def test_a_job_without_anything_to_fetch_fails(
    store: Store, settings: Settings, arguments: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        run(store, settings, arguments)
    assert str(caught.value) == sentence


def test_urls_come_out_of_one_field_of_a_form() -> None:
    fields = {"urls": ["https://x.example/1\r\nx.example/2\n\n"], "follow": ["on"], "start": [""]}
    assert form_arguments(KINDS["fetch"], fields) == {
        "urls": ["https://x.example/1", "x.example/2"],
        "follow": True,
    }
