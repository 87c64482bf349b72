"""Sites and pages forgotten in the web application: by admins, after a question, and from memory, too."""

from __future__ import annotations

import gc
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

import httpx
import pytest
from sqlalchemy import func, select, update

from siteloom.apps.server import create_app
from siteloom.apps.server.work import KINDS
from siteloom.core.database import writing
from siteloom.core.file_lock import write_lock
from siteloom.core.settings import RetentionSettings, Settings, StoreSettings
from siteloom.operations.annotation.annotation_session import Workbench
from siteloom.store import schema
from siteloom.store.erasure.disk_erasure import begin, is_unfinished
from siteloom.store.erasure.erasure import forget as forget_in_store
from siteloom.store.erasure.row_erasure import FORGOTTEN
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.queries.jobs import Job
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.server.browsing import Browser
from tests.apps.server.conftest import People
from tests.apps.server.job_waiting import wait_for
from tests.apps.server.serving import program, serving
from tests.patience import wait_until
from tests.store.helpers import page, put
from tests.store.remembered import KEPT, LOST, PAGES, live, own_word, url, where_stands


def words_of(site: str) -> list[str]:
    return [site.partition(".")[0], *(own_word(site, number) for number in range(PAGES))]


def remains(store: Store, *words: str) -> list[str]:
    """Where words stand in a workspace that is served.

    While the copy is made, a transaction keeps others from writing, and SQLite from removing its log. Another
    process makes it: whoever closes a file that SQLite has open in the same process takes its locks.
    """
    with TemporaryDirectory() as place:
        with writing(store.engine):
            subprocess.run(["cp", "-r", store.folder, place], check=True)
        with closing(open_store(StoreSettings(str(Path(place, store.folder.name))))) as copy:
            return where_stands(copy, *words)


def page_id(store: Store, site: str, number: int) -> int:
    (found,) = store.page_ids([PageAddress(site, url(site, number))])
    return found


def records_of(store: Store, site: str) -> str:
    """Where the first records are that were found of a site: it has changed since."""
    with store.engine.connect() as connection:
        first = connection.execute(select(func.min(schema.records.c.run_id))).scalar_one()
    return f"/api/records?site={site}&run={first}&limit=100"


@pytest.fixture(scope="module")
def remembered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which two sites left traces everywhere."""
    folder = tmp_path_factory.mktemp("remembered") / "workspace"
    with closing(open_store(StoreSettings(str(folder)), create=True)) as store:
        live(store)
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(store=StoreSettings(str(tmp_path / "workspace")))


@pytest.fixture
def lived_in(remembered: Path, settings: Settings) -> Iterator[Store]:
    copytree(remembered, settings.store.workspace)
    with closing(open_store(settings.store)) as store:
        yield store


def test_a_page_and_then_its_site_are_forgotten_by_jobs(lived_in: Store, settings: Settings) -> None:
    store, app = lived_in, create_app(lived_in, settings)
    with serving(app) as address, program(address, store, "admin") as client:
        _look_at_everything(client, store)
        opened = page_id(store, LOST, 1)
        would = client.get("/api/forget", params={"name": url(LOST, 1)}).json()
        assert (would["sites"], would["urls"]) == ([], [url(LOST, 1)])
        assert would["to_learn_again"] == [f"{LOST}/1"]
        job = _forgotten(client, store, [url(LOST, 1).removeprefix("http://")])
        assert job.result == {"counts": would["counts"], "to_learn_again": [f"{LOST}/1"]}
        assert job.arguments == {"names": [FORGOTTEN]}
        assert remains(store, own_word(LOST, 1)) == []
        _is_gone(client, opened)
        table = client.get(records_of(store, LOST)).text
        assert own_word(LOST, 2) in table
        assert own_word(LOST, 1) not in table
        assert own_word(LOST, 1) not in client.get(f"/api/clusters/{LOST}/1/workbench").text

        _look_at_everything(client, store)
        assert _benches() == 2
        opened = page_id(store, LOST, 2)
        would = client.get("/api/forget", params={"name": LOST}).json()
        assert client.get("/forget", params={"name": LOST}).text.count("<dt>") == len(would["counts"])
        job = _forgotten(client, store, [LOST])
        assert job.result == {"counts": {**would["counts"], "sites": 1}, "to_learn_again": []}
        assert remains(store, *words_of(LOST)) == []
        assert job.message == "steps: Removing traces from the database"
        _is_gone(client, opened)
        # Nothing holds them any more, though Python's collector was told to spare them.
        wait_until(lambda: _benches() == 0)
        for path in ("/", "/records", f"/search?words={own_word(LOST, 3)[:-1]}", "/jobs", f"/jobs/{job.id}"):
            assert "quexolith" not in client.get(path).text.casefold(), path
        assert client.get(f"/sites/{LOST}").status_code == 404
        assert client.get(f"/api/clusters/{LOST}/1/workbench").status_code == 404
        assert client.get(f"/api/clusters/{LOST}/1/events").status_code == 404
        assert own_word(KEPT, 1) in client.get(records_of(store, KEPT)).text


def _look_at_everything(client: httpx.Client, store: Store) -> None:
    """Have the server hold all that it ever holds of both sites."""
    for site in (LOST, KEPT):
        assert client.get(f"/api/clusters/{site}/1/workbench").status_code == 200
        assert own_word(site, 2) in client.get(records_of(store, site)).text
        assert client.get(f"/pages/{page_id(store, site, 2)}").status_code == 200
    assert _benches() == 2


def _benches() -> int:
    gc.unfreeze()
    return sum(isinstance(one, Workbench) for one in gc.get_objects())


def _forgotten(client: httpx.Client, store: Store, names: list[str]) -> Job:
    started = client.post("/api/jobs", json={"kind": "forget", "arguments": {"names": names}})
    assert started.status_code == 202, started.text
    job = wait_for(store, started.json()["id"])
    assert job.state == "done", job.result
    return job


def _is_gone(client: httpx.Client, number: int) -> None:
    """Of a page that someone has open, all that can be asked for."""
    for path in ("", "/tree", "/frame", "/tags", "/paths", "/changes", "/resource?url=http://a.example/"):
        answer = client.get(f"/pages/{number}{path}")
        assert answer.status_code == 404, path
        assert f"There is no page {number}" in answer.text, path


def test_a_stream_of_a_workbench_lets_go_of_it(lived_in: Store, settings: Settings) -> None:
    with (
        serving(create_app(lived_in, settings)) as address,
        program(address, lived_in, "admin") as client,
        client.stream("GET", f"/api/clusters/{KEPT}/1/events") as events,
    ):
        lines = events.iter_lines()
        assert next(lines) == "event: changed"
        _forgotten(client, lived_in, [url(LOST, 1)])
        assert not [line for line in lines if line.startswith("event")]  # the server has ended it
        wait_until(lambda: _benches() == 0)


def test_what_the_command_line_forgets_the_server_does_not_show(lived_in: Store, settings: Settings) -> None:
    browser = Browser(create_app(lived_in, settings))
    lived_in.accounts.set_role("eve", "admin")
    headers = {"Authorization": f"Bearer {lived_in.accounts.add_key('eve', 'tests')}"}
    workbench, records = f"/api/clusters/{LOST}/1/workbench", records_of(lived_in, LOST)
    for path in (workbench, records):
        assert url(LOST, 1) in browser.get(path, **headers).text
    forget_in_store(lived_in, [url(LOST, 1)])
    for path in (workbench, records):
        answer = browser.get(path, **headers)
        assert answer.status_code == 200
        assert url(LOST, 1) not in answer.text
        assert url(LOST, 2) in answer.text


@pytest.fixture
def filled(people: People) -> People:
    """Some pages of two sites, and someone of each role."""
    put(people.store, *(page(f"http://a.example/{number}") for number in range(3)))
    put(people.store, page("http://b.example/1"))
    return people


def test_only_admins_can_forget(filled: People) -> None:
    order = {"kind": "forget", "arguments": {"names": ["a.example"]}}
    for name, role in (("eddy", "editor"), ("vera", "viewer")):
        browser = filled.browser(name, role)  # type: ignore[arg-type]
        refused = [
            browser.get("/forget?name=a.example"),
            browser.get("/api/forget?name=a.example"),
            browser.post("/forget", {"name": "a.example", "typed": "a.example"}),
            browser.send("POST", "/api/jobs", order),
            browser.post("/jobs", {"kind": "forget", "names": "a.example"}),
        ]
        assert {answer.status_code for answer in refused} == {403}
        assert filled.store.jobs.latest(10) == []
        for path in ("/sites/a.example", "/pages/1"):
            assert "Forget this" not in browser.look(path)
    admin, editor = filled.browser("ana", "admin"), filled.browser("eddy", "editor")
    assert "Forget this site…" in admin.look("/sites/a.example")
    assert "Forget this page…" in admin.look("/pages/1")
    job = admin.send("POST", "/api/jobs", order).json()
    assert job["arguments"] == {"names": ["a.example"]}
    assert "Cancel" not in editor.look(job["url"])
    assert editor.post(f"{job['url']}/cancel", {}).status_code == 403
    assert editor.send("POST", f"/api{job['url']}/cancel").status_code == 403
    assert editor.post(f"{job['url']}/again", {}).status_code == 403
    assert "Cancel" in admin.look(job["url"])
    assert admin.post(f"{job['url']}/cancel", {}).status_code == 303
    assert len(filled.store.jobs.latest(10)) == 1


def test_the_question_tells_what_goes_and_wants_the_name_of_a_site(filled: People) -> None:
    admin = filled.browser("ana", "admin")
    text = admin.look("/forget?name=a.example")
    assert "<dt>pages</dt><dd>3</dd>" in admin.get("/forget?name=a.example").text
    assert "This cannot be undone." in text
    assert "backups" in text
    for typed in ("", "b.example", "A.EXAMPLE"):
        asked_again = admin.post("/forget", {"name": "a.example", "typed": typed})
        assert asked_again.status_code == 422
        assert "This is not the name of the site." in asked_again.text
        assert f'name="typed" value="{typed}"' in asked_again.text
    assert filled.store.jobs.latest(10) == []
    started = admin.post("/forget", {"name": "a.example", "typed": " a.example "})
    assert started.status_code == 303
    assert "a.example" in admin.look(started.headers["location"])

    assert "Type" not in admin.look("/forget?name=http%3A%2F%2Fb.example%2F1")
    admin.post("/forget", {"name": "http://b.example/1"})
    assert [job.arguments for job in filled.store.jobs.latest(10)] == [
        {"names": ["http://b.example/1"]},
        {"names": ["a.example"]},
    ]
    for path in ("/forget", "/api/forget"):
        unknown = admin.get(f"{path}?name=c.example")
        assert unknown.status_code == 404
        assert "c.example is no site of this workspace" in unknown.text
    nothing = admin.send("POST", "/api/jobs", {"kind": "forget", "arguments": {"names": []}})
    assert nothing.json() == {"detail": "A job of the kind forget needs names: at least one."}
    assert admin.get("/api/forget").status_code == 422


def test_while_another_writes_the_question_is_asked_without_numbers(filled: People) -> None:
    admin = filled.browser("ana", "admin")
    with write_lock(filled.store.folder):
        text = admin.look("/forget?name=a.example")
        assert "It cannot be counted now" in text
        assert "Forget this site" in text
        assert admin.get("/api/forget?name=a.example").status_code == 409


def test_a_job_that_did_not_end_well_leads_on(filled: People) -> None:
    """It may not know any more what it was to forget."""
    store, admin = filled.store, filled.browser("ana", "admin")
    job = store.jobs.add("forget", {"names": ["a.example"]}, "ana")
    store.jobs.end(job.id, "failed", "Another crawl is under way.")
    assert "Start it again" in admin.look(f"/jobs/{job.id}")
    with writing(store.engine) as connection:
        connection.execute(update(schema.jobs).values(arguments={"names": [FORGOTTEN]}))
    assert "Start it again" not in admin.look(f"/jobs/{job.id}")
    assert admin.post("/jobs", {"kind": "forget", "names": FORGOTTEN}).status_code == 404
    begin(store.folder)
    assert "Remove the traces" in admin.look(f"/jobs/{job.id}")
    started = admin.post("/jobs", {"kind": "forget", "names": FORGOTTEN})
    (job, _) = store.jobs.latest(2)
    assert started.headers["location"] == f"/jobs/{job.id}"
    told: list[str] = []
    result = KINDS["forget"].run(store, Settings(), job.arguments, lambda *progress: told.append(progress[2]))
    assert result == {"counts": {}, "to_learn_again": []}
    assert not is_unfinished(store.folder)
    assert [site.name for site in store.sites()] == ["a.example", "b.example"]


def test_a_job_whose_names_another_has_forgotten_has_nothing_to_do(empty_store: Store) -> None:
    put(empty_store, page("http://a.example/1"))
    result = KINDS["forget"].run(empty_store, Settings(), {"names": [FORGOTTEN]}, lambda *_: None)
    assert result["counts"] == {}
    assert len(empty_store.sites()) == 1


def test_settings_tell_how_long_pages_are_kept(empty_store: Store) -> None:
    told = Browser(create_app(empty_store, Settings())).look("/settings")
    assert "Pages are kept for ever" in told
    assert "All versions of a page are kept." in told
    limited = create_app(empty_store, Settings(retention=RetentionSettings(days=90, versions=1)))
    told = Browser(limited).look("/settings")
    assert "not seen for 90 days is forgotten" in told
    assert "the 1 newest version is kept" in told
