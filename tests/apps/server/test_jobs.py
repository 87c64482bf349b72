"""Jobs through the server: real processes, told of as they go, ended in every way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from siteloom.apps.demo.sites import guide_site
from siteloom.apps.server import create_app, event_stream, job_runner
from siteloom.apps.server.event_stream import Changes
from siteloom.apps.server.job_kinds import JobKind, checked_arguments, form_arguments
from siteloom.apps.server.job_runner import JobRunner
from siteloom.apps.server.work import KINDS
from siteloom.core.errors import UsageError
from siteloom.core.model import Attribute, Cluster, Example
from siteloom.core.settings import Settings, StoreSettings
from siteloom.operations.cluster import cluster_store
from siteloom.store.queries.jobs import Job, JobEnd
from siteloom.store.store import Store
from siteloom.wrappers.wrapper import Wrapper
from tests.apps.server.job_examples import EXAMPLES
from tests.apps.server.job_waiting import wait_for
from tests.apps.server.serving import program, serving
from tests.patience import wait_until
from tests.store.helpers import put

SITE = "larkmoor-guide.example"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(store=StoreSettings(workspace=str(tmp_path / "workspace")))


@pytest.fixture
def store(sqlite_store: Store) -> Store:
    """The store that is where the settings say."""
    return sqlite_store


@pytest.fixture
def runner(store: Store, settings: Settings) -> Iterator[JobRunner]:
    found = JobRunner(store, settings, Changes(), kinds=EXAMPLES)
    found.start()
    yield found
    found.stop()


def fill(store: Store, restaurants: int = 12) -> None:
    pages = [page for page in guide_site() if page.kind == "restaurant"][:restaurants]
    put(store, *(page.page for page in pages))


def annotated_cluster(store: Store) -> Cluster:
    """The largest cluster, three of whose pages are annotated."""
    fill(store)
    cluster_store(store, "vertex")
    clusters, addresses = store.clusters()
    largest = max(clusters, key=lambda found: found.size)
    known = {page.page.url: page for page in guide_site()}
    for member in largest.members[:3]:
        page, truth = known[addresses[member].url].page, known[addresses[member].url].truth
        store.save_example(addresses[member], Example(page, {"name": truth["name"]}), "ana")
    return largest


def has_progress(job: Job) -> bool:
    return job.message != ""


def waits_for_another(job: Job) -> bool:
    return job.message.startswith("Another process is writing")


def events(client: httpx.Client, job_id: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a job until the server ends them."""
    with client.stream("GET", f"/api/jobs/{job_id}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        name = ""
        for line in answer.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield name, json.loads(line.removeprefix("data: "))


def test_a_job_is_followed_to_its_end(store: Store, settings: Settings) -> None:
    fill(store)
    with serving(create_app(store, settings)) as address, program(address, store, "editor") as client:
        started = client.post("/api/jobs", json={"kind": "cluster", "arguments": {"site": SITE}})
        assert started.status_code == 202
        job = started.json()
        assert (job["kind"], job["author"], job["url"]) == ("cluster", "the-editor", f"/jobs/{job['id']}")
        with ThreadPoolExecutor(2) as listeners:
            first, second = listeners.map(lambda _: list(events(client, job["id"])), range(2))
        for seen in (first, second):
            names = [name for name, _ in seen]
            assert names == ["progress"] * (len(names) - 1) + ["ended"]
            assert seen[-1][1]["state"] == "done"
        assert any(told["total"] == 12 for _, told in first)
        assert first[-1][1]["done"] == 12
        assert list(events(client, job["id"])) == first[-1:]
        result = client.get(f"/api/jobs/{job['id']}").json()["result"]
        assert result["pages"] == 12
        assert result["clusters"] == len(store.clusters()[0]) > 0
        page = client.get(f"/jobs/{job['id']}").text
        assert f'href="/sites/{SITE}"' in page
        assert client.get("/jobs").text.count(f'href="/jobs/{job["id"]}"') == 1
        assert "siteloom_job_seconds_count" in client.get("/metrics").text


def test_what_is_annotated_is_learned_and_extracted(store: Store, settings: Settings) -> None:
    cluster = annotated_cluster(store)
    with serving(create_app(store, settings)) as address, program(address, store, "editor") as client:
        job = client.post("/api/jobs", json={"kind": "finish", "arguments": {"cluster": cluster.id}}).json()
        *_, (name, ended) = events(client, job["id"])
        assert (name, ended["state"], ended["problem"]) == ("ended", "done", None)
        result = ended["result"]
        assert result["cluster_pages"] == result["pages_with_record"] == cluster.size
        assert (result["lost_records"], result["lost_urls"]) == (0, [])
        extracted = result["extracted"]
        assert extracted["records"] + sum(extracted["failures"].values()) == extracted["pages"] == 12
        (wrapper,) = result["learned"]["wrappers"]
        assert (wrapper["name"], wrapper["version"], wrapper["lost_attributes"]) == (cluster.id, 1, [])
        assert wrapper["attributes"] == {"name": 1}
        (output,) = extracted["wrappers"]
        assert (output["name"], output["filled"]) == (cluster.id, {"name": extracted["records"]})
        assert [run.verb for run in store.runs(3)] == ["extract", "watch", "learn"]
        assert len(list(store.records(extracted["run"]))) == extracted["records"]
        (check,) = store.newest_checks(cluster.id)
        assert (check.kind, check.run_id) == ("output", extracted["run"])
        page = client.get(f"/jobs/{job['id']}").text
        assert f'href="/clusters/{cluster.id}">See the template' in page


def test_learning_and_extracting_apart(store: Store, runner: JobRunner) -> None:
    cluster = annotated_cluster(store)
    store.apply_updates(cluster.id, [], "ana", attributes={"name": Attribute(multi=True)}, schema_follows=0)
    learn = runner.submit("learn", {"cluster": cluster.id}, "ana").id
    extract = runner.submit("extract", {}, "ana").id
    learned = wait_for(store, learn).result
    assert isinstance(learned, dict)
    assert (learned["cluster"], learned["site"]) == (cluster.id, SITE)
    assert learned["wrappers"][0]["not_reproduced"] == []
    wrapper = Wrapper.from_json(store.wrapper(cluster.id).text)
    assert wrapper.attributes["name"].attribute.multi  # as was said, though no example has several
    extracted = wait_for(store, extract).result
    assert isinstance(extracted, dict)
    assert (extracted["site"], extracted["pages"]) == (None, 12)
    assert extracted["records"] >= cluster.size


def test_a_job_that_does_not_listen_is_killed(
    store: Store, runner: JobRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_runner, "_SECONDS_TO_END", 0.3)
    job = runner.submit("stubborn", {}, "ana")
    wait_for(store, job.id, has_progress)
    runner.cancel(job.id)
    assert wait_for(store, job.id).state == "cancelled"


def test_jobs_come_one_after_the_other_and_may_be_cancelled(store: Store, runner: JobRunner) -> None:
    first, second, third = (runner.submit(kind, {}, "ana").id for kind in ("endless", "quick", "quick"))
    wait_for(store, first, has_progress)
    assert [job.state for job in store.jobs.latest(9)] == ["waiting", "waiting", "running"]
    runner.cancel(second)
    assert wait_for(store, second).started_at is None
    runner.cancel(first)
    told = store.jobs.get(first)
    assert told is not None
    assert told.has_ended or told.message == "It is being cancelled."
    cancelled = wait_for(store, first)
    assert (cancelled.state, cancelled.result) == ("cancelled", "It was cancelled.")
    (run,) = store.runs(9)
    assert (run.verb, run.status) == ("endless", "interrupted")
    done = wait_for(store, third)
    assert (done.state, done.done, done.total) == ("done", 1_000, 1_000)
    for ended in (first, third, 10**9):
        runner.cancel(ended)
    assert [job.state for job in store.jobs.latest(9)] == ["done", "cancelled", "cancelled"]


def test_what_goes_wrong_in_a_job_is_told_in_a_sentence(
    store: Store, runner: JobRunner, caplog: pytest.LogCaptureFixture
) -> None:
    dying, mistaken, broken = (runner.submit(kind, {}, "ana").id for kind in ("dying", "mistaken", "broken"))
    died = wait_for(store, dying)
    assert (died.state, died.done, died.total) == ("failed", 3, 7)
    assert (
        died.result == "Its process was ended by SIGKILL: see whether there is memory enough, and try again."
    )
    assert wait_for(store, mistaken).result == "No page is annotated."
    bug = wait_for(store, broken)
    assert bug.result == "Unexpected error: ZeroDivisionError('a bug')."
    assert "job_examples.py" in caplog.text


def test_a_job_waits_for_a_command_that_writes(store: Store, settings: Settings) -> None:
    fill(store)
    runner = JobRunner(store, settings, Changes())
    runner.start()
    try:
        with store.recording("learn", {}):
            job = runner.submit("cluster", {}, "ana")
            wait_for(store, job.id, waits_for_another)
            other = runner.submit("cluster", {}, "ana")
            runner.cancel(job.id)
            assert wait_for(store, job.id).state == "cancelled"
            wait_for(store, other.id, waits_for_another)
        assert wait_for(store, other.id).state == "done"
    finally:
        runner.stop()


def test_a_job_waits_for_a_command_that_begins_in_the_middle_of_it(store: Store, runner: JobRunner) -> None:
    job = runner.submit("in_two_steps", {}, "ana")
    wait_for(store, job.id, lambda job: job.message == "between")
    with store.recording("learn", {}):
        (store.folder / "go").touch()
        wait_for(store, job.id, waits_for_another)
    assert wait_for(store, job.id).state == "done"
    assert [run.verb for run in store.runs(9)] == ["second", "learn", "first"]


def test_what_goes_wrong_before_a_job_begins_is_told_and_the_next_one_runs(
    store: Store, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    no_process = JobKind(lambda *_: {}, "Cannot be sent to another process", {})

    def forget(_: Job) -> None:
        raise RuntimeError("a bug in what is done when a job ends")

    runner = JobRunner(store, settings, Changes(), forget, EXAMPLES | {"no_process": no_process})
    runner.start()
    try:
        failing, quick = (runner.submit(kind, {}, "ana").id for kind in ("no_process", "quick"))
        assert wait_for(store, quick).state == "done"
    finally:
        runner.stop()
    failed = store.jobs.get(failing)
    assert failed is not None
    assert failed.state == "failed"
    assert str(failed.result).startswith("Unexpected error: ")
    assert "a bug in what is done when a job ends" in caplog.text


def test_whoever_is_shut_out_is_told_no_more(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "_SECONDS_BETWEEN_CHECKS", 0.05)
    app = create_app(store, settings)
    with serving(app) as address, program(address, store, "viewer") as client:
        job = store.jobs.add("cluster", {"site": None}, "ana")  # no one runs it, so nothing happens
        with client.stream("GET", f"/api/jobs/{job.id}/events") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "event: progress"
            store.accounts.disable("the-viewer")
            assert "event" not in "".join(lines)


def test_stopping_the_server_ends_its_jobs(store: Store, settings: Settings) -> None:
    runner = JobRunner(store, settings, Changes(), kinds=EXAMPLES)
    runner.start()
    running, waiting = (runner.submit(kind, {}, "ana").id for kind in ("endless", "quick"))
    wait_for(store, running, has_progress)
    runner.stop()
    runner.stop()
    why = "The server was stopped meanwhile: start it again."
    assert [(job.id, job.state, job.result) for job in store.jobs.latest(9)] == [
        (waiting, "cancelled", why),
        (running, "cancelled", why),
    ]
    assert [run.status for run in store.runs(9)] == ["interrupted"]


def test_what_a_server_that_is_gone_left_is_lost(store: Store, settings: Settings) -> None:
    job = store.jobs.add("cluster", {"site": None}, "ana")
    store.jobs.start(job.id)
    with serving(create_app(store, settings)) as address, program(address, store, "viewer") as client:
        ((name, told),) = events(client, job.id)
        assert (name, told["state"]) == ("ended", "lost")
        assert "start it again" in told["problem"]
        assert told["problem"] in client.get(f"/jobs/{job.id}").text


def test_numbers_are_such_as_databases_take(store: Store) -> None:
    for number in ("9" * 5_000, str(2**31), "١٢" * 9):
        given = form_arguments(KINDS["fetch"], {"start": ["https://a.example/"], "most_pages": [number]})
        with pytest.raises(UsageError, match="must be a whole number of at most 2,147,483,647"):
            checked_arguments(store, "fetch", given, KINDS)
    for huge in (10**30, -(10**30)):
        with pytest.raises(UsageError):
            checked_arguments(store, "fetch", {"most_pages": huge}, KINDS)
    given = form_arguments(KINDS["fetch"], {"most_pages": [str(2**31 - 1)]})
    assert checked_arguments(store, "fetch", given, KINDS)["most_pages"] == 2**31 - 1


def test_the_processes_of_jobs_load_nothing_of_the_web() -> None:
    loaded = (
        "import sys, siteloom.apps.server.work; print(sorted({'fastapi', 'starlette'} & sys.modules.keys()))"
    )
    told = subprocess.run([sys.executable, "-c", loaded], capture_output=True, check=True, text=True)
    assert told.stdout == "[]\n"


def test_wrong_orders_are_refused_with_a_sentence(store: Store, settings: Settings) -> None:
    fill(store, 3)
    app = create_app(store, settings)
    with serving(app) as address, program(address, store, "editor") as client:
        for order, sentence in (  # there is nothing of the name in those that say so
            ({"kind": "dance"}, f"There is no kind of job dance: there are {', '.join(KINDS)}."),
            ({"kind": "finish"}, "A job of the kind finish needs cluster."),
            ({"kind": "learn", "arguments": {"cluster": "a/1"}}, "There is no cluster a/1."),
            ({"kind": "cluster", "arguments": {"site": "b.example"}}, "There is no site b.example."),
            ({"kind": "cluster", "arguments": {"site": 7}}, "The site of a job must be a text."),
            (
                {"kind": "cluster", "arguments": {"cluster": "a/1"}},
                "A job of the kind cluster takes site, method, but not cluster.",
            ),
        ):
            answer = client.post("/api/jobs", json=order)
            status = 404 if sentence in ("There is no cluster a/1.", "There is no site b.example.") else 400
            assert (answer.status_code, answer.json()) == (status, {"detail": sentence})
        for path in ("/api/jobs/7", "/api/jobs/7/events", f"/api/jobs/{10**30}"):
            answer = client.get(path)
            assert answer.status_code == 404
            assert answer.json()["detail"].startswith("There is no job ")
        assert client.post("/api/jobs/7/cancel").status_code == 404
        assert "There is no job 7." in client.get("/jobs/7").text
        assert client.get("/jobs/seven").status_code == 404
        assert client.get("/api/jobs").json() == []
        assert client.get("/api/jobs?limit=0").status_code == 422
        assert "No job was started yet" in client.get("/jobs").text


def test_a_job_with_very_many_urls_is_told_once_and_started_again(store: Store, settings: Settings) -> None:
    given = {
        **dict.fromkeys(KINDS["fetch"].arguments),
        "urls": [f"http://127.0.0.1:9/{n}" for n in range(3_000)],
    }
    job = store.jobs.add("fetch", given, "ana")
    with serving(create_app(store, settings)) as address, program(address, store, "editor") as client:
        ((name, told),) = events(client, job.id)
        assert (name, "arguments" in told) == ("ended", False)
        assert "arguments" not in client.get("/api/jobs").json()[0]
        assert client.get(f"/api/jobs/{job.id}").json()["arguments"] == given
        page = client.get(f"/jobs/{job.id}").text
        assert len(page) < 20_000
        assert f'action="/jobs/{job.id}/again"' in page
        again = client.post(f"/jobs/{job.id}/again")
        assert again.status_code == 303, again.text
        started = int(again.headers["location"].rpartition("/")[2])
        newer = store.jobs.get(started)
        assert newer is not None
        assert (newer.kind, newer.arguments, newer.author) == ("fetch", given, "the-editor")
        client.post(f"/api/jobs/{started}/cancel")
        assert client.post("/jobs/77/again").status_code == 404
        with program(address, store, "viewer") as viewer:
            assert viewer.post(f"/jobs/{job.id}/again").status_code == 403


@pytest.mark.parametrize("state", ["done", "failed"])
def test_jobs_of_another_version_have_a_page(store: Store, settings: Settings, state: JobEnd) -> None:
    with serving(create_app(store, settings)) as address, program(address, store, "editor") as client:
        for kind in ("cluster", "learn", "extract", "finish", "dance"):
            job = store.jobs.add(kind, {"tempo": 3, "names": {"a": "b"}}, "ana")
            store.jobs.end(job.id, state, {"cluster": "a/1"} if state == "done" else "It went wrong.")
            assert client.get(f"/jobs/{job.id}").status_code == 200
            assert client.post(f"/jobs/{job.id}/again").status_code == 400


def test_viewers_look_and_do_not_start(store: Store, settings: Settings) -> None:
    fill(store, 3)
    job = store.jobs.add("cluster", {"site": SITE}, "ana")
    store.jobs.end(job.id, "failed", "Another process is writing to this workspace.")
    with serving(create_app(store, settings)) as address, program(address, store, "viewer") as client:
        assert client.post("/api/jobs", json={"kind": "cluster"}).status_code == 403
        assert client.post(f"/api/jobs/{job.id}/cancel").status_code == 403
        assert client.post("/jobs", data={"kind": "cluster"}).status_code == 403
        assert [found["id"] for found in client.get("/api/jobs?state=failed").json()] == [job.id]
        page = client.get(f"/jobs/{job.id}").text
        assert "Another process is writing" in page
        assert "Start it again" not in page
        with program(address, store, "editor") as editor:
            assert "Start it again" in editor.get(f"/jobs/{job.id}").text
            assert "Start it again" not in editor.get("/jobs").text


def test_jobs_are_started_and_cancelled_by_forms(store: Store, settings: Settings) -> None:
    fill(store, 3)
    with serving(create_app(store, settings)) as address, program(address, store, "editor") as client:
        started = client.post("/jobs", data={"kind": "cluster", "site": SITE, "cluster": ""})
        assert started.status_code == 303
        job_id = int(started.headers["location"].removeprefix("/jobs/"))
        cancelled = client.post(f"/jobs/{job_id}/cancel")
        assert (cancelled.status_code, cancelled.headers["location"]) == (303, f"/jobs/{job_id}")
        assert wait_for(store, job_id).state in ("cancelled", "done")
        refused = client.post("/jobs", data={"kind": "finish"})
        assert refused.status_code == 400
        assert "A job of the kind finish needs cluster." in refused.text


def test_a_page_of_a_job_under_way_shows_how_far_it_is(store: Store, settings: Settings) -> None:
    job = store.jobs.add("cluster", {"site": SITE}, "ana")
    app = create_app(store, settings)
    with serving(app) as address, program(address, store, "editor") as client:
        later = store.jobs.add("extract", {"site": None}, "ana")
        store.jobs.start(later.id)
        store.jobs.progress(later.id, 1_500, 3_000, "pages extracted")
        page = client.get(f"/jobs/{later.id}").text
        assert '<progress aria-label="Progress" max="3000" value="1500">' in page
        assert "1\u202f500 of 3\u202f000 pages extracted" in page
        assert f'data-job="{later.id}"' in page
        assert f'action="/jobs/{later.id}/cancel"' in page
        listed = client.get("/jobs?state=running").text
        assert f'data-job="{later.id}"' in listed
        assert f'href="/jobs/{job.id}"' not in listed
        assert "all sites" in listed
        assert client.get("/static/jobs.js").status_code == 200


def test_the_process_of_a_job_ends_with_its_server(store: Store, settings: Settings) -> None:
    code = (
        "import sys\n"
        "from siteloom.core.settings import Settings, StoreSettings\n"
        "from siteloom.apps.server.job_runner import JobRunner\n"
        "from siteloom.apps.server.event_stream import Changes\n"
        "from siteloom.store.workspace_folder import open_store\n"
        "from tests.apps.server.job_examples import EXAMPLES\n"
        "if __name__ == '__main__':\n"
        "    settings = Settings(store=StoreSettings(workspace=sys.argv[1]))\n"
        "    runner = JobRunner(open_store(settings.store), settings, Changes(), kinds=EXAMPLES)\n"
        "    runner.start()\n"
        "    runner.submit('endless', {}, 'ana')\n"
        "    runner._thread.join()\n"
    )
    script = Path(settings.store.workspace) / "server.py"
    script.write_text(code)
    root = str(Path(__file__).parents[3])
    server = subprocess.Popen(
        [sys.executable, str(script), settings.store.workspace], env={**os.environ, "PYTHONPATH": root}
    )
    try:
        wait_until(lambda: store.jobs.latest(1))
        (job,) = store.jobs.latest(1)
        wait_for(store, job.id, has_progress)
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
    wait_until(lambda: store.runs(1)[0].ended_at)
    assert store.runs(1)[0].status == "interrupted"
