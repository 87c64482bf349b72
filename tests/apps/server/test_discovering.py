"""The table of a template in the browser: made by a job, shown, renamed, and its columns made attributes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from lxml import html
from lxml.html import HtmlElement
from sqlalchemy import event

from siteloom.apps.server import create_app
from siteloom.apps.server.operation_jobs import job_result
from siteloom.core.errors import Overtaken, SourceError, UsageError
from siteloom.core.model import Page
from siteloom.core.settings import ParseSettings, Settings, StoreSettings
from siteloom.operations.cluster import cluster_store
from siteloom.operations.discover import state_of_pages
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.demo.sites import guide, of_kind
from tests.apps.server.access import CHEAP
from tests.apps.server.browsing import Browser
from tests.apps.server.running_jobs import run_job
from tests.store.helpers import put
from tests.store.test_overview import cluster

GUIDE = "larkmoor-guide.example"
TEMPLATE = f"{GUIDE}/1"
RESTAURANTS = of_kind(guide(), "restaurant")[:20]
EVIL = "evil.example"
TAG = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Restaurants of the guide in templates, pages that are hostile, and two that are the same."""
    folder = tmp_path_factory.mktemp("discover") / ".siteloom"
    with closing(open_store(StoreSettings(workspace=str(folder)), create=True)) as store:
        put(store, *(one.page for one in RESTAURANTS))
        cluster_store(store, "vertex")
        hostile = [Page(f"https://{EVIL}/{n}?a=\"'><b>", _evil(n), charset="utf-8") for n in range(12)]
        same = [Page(f"https://same.example/{n}", b"<p>always the same") for n in range(3)]
        put(store, *hostile, *same)
        for pages in (hostile, same):
            site = pages[0].url.split("/")[2]
            with store.clustering({"site": site}) as run:
                addresses = [PageAddress(site, one.url) for one in pages]
                store.save_clusters(run.id, [cluster(f"{site}/1", *range(len(pages)))], addresses)
    return folder


def _evil(number: int) -> bytes:
    label, text = (f"{one} {TAG}".replace("<", "&lt;") for one in ("Bad", f"value {number * 37}"))
    long = f"Letter {number} " + "\N{SNAKE}" * 500
    rows = "".join(f"<dt>Field {n}<dd>{n} {long}" for n in range(30))
    return f"<html><body><h1>Thing {number}</h1><dl><dt>{label}<dd>{text}{rows}</dl></body></html>".encode()


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Iterator[Store]:
    folder = copytree(made, tmp_path / ".siteloom")
    with closing(open_store(StoreSettings(workspace=str(folder)))) as opened:
        yield opened


@pytest.fixture
def client(store: Store) -> Browser:
    return Browser(create_app(store, Settings()))


TABLES: dict[str, dict[str, Any]] = {}
"""What the job has found in the workspace that all tests begin with."""


def done(store: Store, cluster: str = TEMPLATE) -> Mapping[str, Any]:
    """Have the table of a cluster made, as the server's job does."""
    job = store.jobs.add("discover", {"cluster": cluster}, "ana")
    if cluster not in TABLES:
        TABLES[cluster] = run_job(store, "discover", cluster=cluster)
    result = TABLES[cluster]
    assert store.jobs.end(job.id, "done", result)
    return result


def looked(client: Browser, path: str) -> HtmlElement:
    client.look(path)
    return html.document_fromstring(client.get(path).text)


def text_of(element: HtmlElement) -> str:
    return " ".join(element.text_content().split())


def number_of(result: Mapping[str, Any], label: str) -> int:
    return [column["label"] for column in result["columns"]].index(label)


def seen(store: Store) -> dict[str, str]:
    """The field of the form that tells which table was looked at."""
    made = store.jobs.newest("discover", {"cluster": TEMPLATE}, "done")
    assert made is not None
    return {"table": str(made.id)}


def test_a_job_makes_the_table(store: Store) -> None:
    heard: list[tuple[int, int | None, str]] = []
    (found,), addresses = store.clusters(TEMPLATE)
    result = run_job(store, "discover", report=lambda *told: heard.append(told), cluster=TEMPLATE)
    pages = len(found.members)
    assert heard == [(number, pages, "pages: Reading") for number in range(pages + 1)]
    counted = [result[name] for name in ("pages", "of_pages", "row_count", "failed")]
    assert counted == [pages, pages, pages, 0]
    names = {one.page.url: one.truth["name"][0] for one in RESTAURANTS}
    title = number_of(result, "title")
    assert {row["url"]: row["cells"][title] for row in result["rows"]} == {
        addresses[member].url: names[addresses[member].url] for member in found.members
    }
    assert result["columns"][title]["name"] == "title"
    assert result["columns"][title]["filled"] == 1
    assert set(result["columns"][title]["examples"]) <= set(names.values())


def test_what_a_job_leaves_is_small_whatever_pages_have(store: Store) -> None:
    result = done(store, f"{EVIL}/1")
    assert len(result["columns"]) > 20
    assert 0 < len(result["rows"]) < result["row_count"] == 12
    assert len(json.dumps(result)) < 100_000


def test_before_there_is_a_table_it_can_be_made_from_the_page(store: Store, client: Browser) -> None:
    shown = looked(client, f"/clusters/{TEMPLATE}/discover")
    assert "No table yet" in text_of(shown)
    (action,) = shown.xpath("//form[.//button[.='Make the table']]/@action")
    answer = client.post(str(action), {})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/clusters/{TEMPLATE}/discover")
    shown = looked(client, f"/clusters/{TEMPLATE}/discover")
    job = store.jobs.newest("discover", {"cluster": TEMPLATE})
    assert job is not None
    assert shown.xpath("//*[@data-job]/@data-job") == [str(job.id)]
    assert shown.xpath("//button[.='Make the table']") == []
    store.jobs.end(job.id, "failed", "None of the pages can be read: empty.")
    shown = looked(client, f"/clusters/{TEMPLATE}/discover")
    assert "could not be made: None of the pages can be read: empty." in text_of(shown)
    assert shown.xpath("//button[.='Make the table']")


def test_the_table_is_shown(store: Store, client: Browser) -> None:
    result = done(store)
    shown = looked(client, f"/clusters/{TEMPLATE}/discover")
    often = [one for one in result["columns"] if one["filled"] >= 0.25]
    rarely = [one for one in result["columns"] if one["filled"] < 0.25]
    tables = shown.xpath("//table")
    assert len(tables[0].xpath(".//th[contains(@class, 'column')]//input[@type='text']")) == len(often)
    if rarely:
        assert len(tables[1].xpath(".//input[@type='text']")) == len(rarely)
    assert shown.xpath("//input[@name='name-0']/@value") == [result["columns"][0]["name"]]
    links = shown.xpath("//tbody/tr/th/a/@href")
    assert links[0].startswith("/pages/at?url=https%3A")
    view = client.get(f"/api/clusters/{TEMPLATE}/discover").json()
    assert view["table"]["columns"] == result["columns"]
    assert view["table"]["rows"] == result["rows"]
    assert view["table"]["outdated"] is None
    assert view["job"]["state"] == "done"


def test_what_pages_say_is_only_text(store: Store, client: Browser) -> None:
    done(store, f"{EVIL}/1")
    answer = client.get(f"/clusters/{EVIL}/1/discover")
    assert TAG not in answer.text
    shown = html.document_fromstring(answer.text)
    assert any(TAG in text_of(cell) for cell in shown.xpath("//td"))
    assert shown.xpath("//tbody//b") == []


def test_a_template_in_which_nothing_varies(store: Store, client: Browser) -> None:
    done(store, "same.example/1")
    shown = text_of(looked(client, "/clusters/same.example/1/discover"))
    assert "Nothing varies" in shown
    assert "Make these attributes" not in shown


def test_an_outdated_table_says_so(store: Store, client: Browser) -> None:
    result = done(store)
    url = result["rows"][0]["url"]
    assert "Make it anew to see" not in text_of(looked(client, f"/clusters/{TEMPLATE}/discover"))
    put(store, Page(url, b"<html><body><p>gone</p></body></html>"))
    assert "Pages have changed since" in text_of(looked(client, f"/clusters/{TEMPLATE}/discover"))
    cluster_store(store, "vertex", site=GUIDE)
    assert "were found anew since" in text_of(looked(client, f"/clusters/{TEMPLATE}/discover"))


def test_the_state_of_pages_is_asked_for_once(store: Store) -> None:
    queries: list[str] = []
    event.listen(store.engine, "before_cursor_execute", lambda *told: queries.append(told[2]))
    urls = [one.page.url for one in RESTAURANTS]
    assert state_of_pages(store, GUIDE, urls) != state_of_pages(store, GUIDE, urls[:-1])
    assert sum(query.startswith("SELECT") for query in queries) == 2


def test_columns_become_attributes_of_a_wrapper(store: Store, client: Browser) -> None:
    result = done(store)
    client.look(f"/clusters/{TEMPLATE}/discover")
    title, phone = (str(number_of(result, label)) for label in ("title", "Phone"))
    form: dict[str, Any] = {"take": [title, phone], f"name-{title}": " Name  of it", f"name-{phone}": "phone"}
    form |= seen(store)
    answer = client.post(f"/clusters/{TEMPLATE}/discover", form)
    assert answer.status_code == 303
    job = store.jobs.newest("accept_columns")
    assert job is not None
    assert answer.headers["location"] == f"/jobs/{job.id}"
    assert job.arguments == {
        "cluster": TEMPLATE,
        "names": {"Name of it": "title", "phone": "Phone"},
        "edition": store.cluster_edition(TEMPLATE),
    }

    came_of_it = run_job(store, "accept_columns", **job.arguments)

    assert came_of_it["agreement"].keys() == {"Name of it", "phone"}
    assert min(came_of_it["agreement"].values()) >= 0.8
    (wrapper,) = came_of_it["learned"]["wrappers"]
    assert wrapper["attributes"]["Name of it"] == 1
    assert store.wrapper(wrapper["name"]).version == wrapper["version"] == 1
    store.jobs.end(job.id, "done", {**came_of_it, "left_out": {"odd": 0.4}})
    shown = looked(client, f"/jobs/{job.id}")
    assert "odd is left out: no rule was found that gives more than 40" in text_of(shown)
    assert shown.xpath("//form[.//button[.='Extract the records']]//input[@name='site']/@value") == [GUIDE]
    assert shown.xpath("//a[.='Check them by annotating']/@href") == [f"/clusters/{TEMPLATE}/annotate"]


MISTAKES: list[tuple[dict[int, str], str]] = [
    ({}, "No column was taken: take at least one."),
    ({0: " "}, "An attribute needs a name"),
    ({0: "a/b"}, "The name a/b would be lost"),
    ({0: "_id"}, "begins with _"),
    ({0: "x" * 101}, "at most 100 characters"),
    ({0: "same", 1: " same"}, "Two columns would both be called same"),
]


def test_what_was_typed_stays_if_it_cannot_be_done(store: Store, client: Browser) -> None:
    done(store)
    client.look(f"/clusters/{TEMPLATE}/discover")
    for names, sentence in MISTAKES:
        taken = list(map(str, names))
        form: dict[str, Any] = {"take": taken, **{f"name-{n}": text for n, text in names.items()}}
        form |= seen(store)
        answer = client.post(f"/clusters/{TEMPLATE}/discover", {**form, "name-2": "kept"})
        assert answer.status_code == 400
        shown = html.document_fromstring(answer.text)
        assert sentence in text_of(shown.xpath("//*[@role='alert']")[0])
        assert shown.xpath("//input[@name='take'][@checked]/@value") == taken
        for number, text in {**names, 2: "kept"}.items():
            assert shown.xpath(f"//input[@name='name-{number}']/@value") == [text]
    assert store.jobs.newest("accept_columns") is None


def test_a_table_that_was_made_anew_is_looked_at_first(store: Store, client: Browser) -> None:
    result = done(store)
    client.look(f"/clusters/{TEMPLATE}/discover")
    title = number_of(result, "title")
    form: dict[str, Any] = {"take": str(title), f"name-{title}": "name of it"} | seen(store)
    newer = store.jobs.add("discover", {"cluster": TEMPLATE}, "bo")
    store.jobs.end(newer.id, "done", dict(result) | {"columns": result["columns"][::-1]})

    answer = client.post(f"/clusters/{TEMPLATE}/discover", form)

    assert answer.status_code == 409
    assert store.jobs.newest("accept_columns") is None
    shown = html.document_fromstring(answer.text)
    (number,) = shown.xpath("//input[@name='take'][@checked]/@value")
    assert result["columns"][::-1][int(number)]["label"] == "title"
    assert shown.xpath(f"//input[@name='name-{number}']/@value") == ["name of it"]
    assert "made anew since you looked" in text_of(shown.xpath("//*[@role='alert']")[0])
    again = {"take": number, f"name-{number}": "name of it"}
    assert client.post(f"/clusters/{TEMPLATE}/discover", again).status_code == 409
    assert client.post(f"/clusters/{TEMPLATE}/discover", again | {"table": "9" * 30}).status_code == 409
    assert client.post(f"/clusters/{TEMPLATE}/discover", again | seen(store)).status_code == 303
    accepted = store.jobs.newest("accept_columns")
    assert accepted is not None
    assert accepted.arguments["names"] == {"name of it": "title"}


def test_what_another_version_has_left_is_no_table(store: Store, client: Browser) -> None:
    for left in ({"columns": 7}, {}, {"edition": 1, "rows": [3]}):
        job = store.jobs.add("discover", {"cluster": TEMPLATE}, "ana")
        store.jobs.end(job.id, "done", left)
        assert "No table yet" in client.look(f"/clusters/{TEMPLATE}/discover")


def test_jobs_that_failed_or_are_done_have_a_page(store: Store, client: Browser) -> None:
    arguments: dict[str, dict[str, Any]] = {
        "index": {},
        "discover": {"cluster": TEMPLATE},
        "accept_columns": {"cluster": TEMPLATE, "names": {"size": "shoe size"}},
    }
    for kind, given in arguments.items():
        job = store.jobs.add(kind, given, "ana")
        store.jobs.end(job.id, "failed", "It went wrong.")
        assert "It went wrong." in client.look(f"/jobs/{job.id}")
    assert "Back to the table" in client.look(f"/jobs/{job.id}")
    result = done(store)
    made = store.jobs.newest("discover", {"cluster": TEMPLATE})
    assert made is not None
    shown = looked(client, f"/jobs/{made.id}")
    assert shown.xpath("//a[.='See the table']/@href") == [f"/clusters/{TEMPLATE}/discover"]
    assert f"columns{len(result['columns'])}" in text_of(shown)
    indexed = store.jobs.add("index", {}, "ana")
    store.jobs.end(indexed.id, "done", run_job(store, "index"))
    shown = looked(client, f"/jobs/{indexed.id}")
    assert f"pages indexed{len(RESTAURANTS) + 15}" in text_of(shown)


def test_columns_that_are_gone_are_told(store: Store) -> None:
    with pytest.raises(UsageError, match="There is no column 'shoe size'"):
        run_job(store, "accept_columns", cluster=TEMPLATE, names={"size": "shoe size"})


def test_a_job_keeps_to_the_parse_limits_of_the_user(store: Store) -> None:
    strict = Settings(parse=ParseSettings(max_bytes=10))
    with pytest.raises(SourceError, match="page too large"):
        run_job(store, "discover", settings=strict, cluster=TEMPLATE)


def test_templates_that_were_found_anew_are_looked_at_first(store: Store) -> None:
    edition = store.cluster_edition(TEMPLATE)
    assert edition is not None
    with pytest.raises(Overtaken, match="were found anew since you looked at"):
        run_job(store, "accept_columns", cluster=TEMPLATE, names={"a": "title"}, edition=edition + 1)


def test_what_earlier_versions_stored_is_shown(store: Store, client: Browser) -> None:
    table = {name: value for name, value in done(store).items() if name not in ("failures", "is_cluster")}
    results: dict[str, dict[str, Any]] = {
        "discover": table,
        "accept_columns": {
            "cluster": TEMPLATE,
            "site": GUIDE,
            "wrappers": [
                {
                    "name": TEMPLATE,
                    "version": 1,
                    "lost": [],
                    "is_learned": True,
                    "attributes": {"name": 1.0},
                    "disagreements": [],
                }
            ],
            "agreement": {"name": 1.0},
            "left_out": {"odd": 0.4},
            "tried": 12,
        },
        "index": {
            "added_pages": 3,
            "removed_pages": 0,
            "added_records": 0,
            "removed_records": 0,
            "failures": {"empty page": 1},
        },
    }
    for kind, result in results.items():
        job = store.jobs.add(kind, {"cluster": TEMPLATE}, "ana")
        store.jobs.end(job.id, "done", result)
        stored = store.jobs.get(job.id)
        assert stored is not None
        assert job_result(stored) is not None
        client.look(f"/jobs/{job.id}")
        for other in ({"cluster": 7}, {}):
            strange = store.jobs.add(kind, {"cluster": TEMPLATE}, "ana")
            store.jobs.end(strange.id, "done", other)
            client.look(f"/jobs/{strange.id}")


def test_forms_that_no_page_sends(store: Store, client: Browser) -> None:
    client.look("/")
    for form in ({"take": "0"}, {"take": "-1"}, {"take": "x", "name-x": "y"}, {"take": "9" * 30}):
        assert client.post(f"/clusters/{TEMPLATE}/discover", form).status_code == 400
    for path in ("/clusters/nowhere/1/discover", "/clusters/nowhere/1/discover/start"):
        assert client.post(path, {}).status_code == 404
    assert client.get("/clusters/nowhere/1/discover").status_code == 404
    assert client.get("/api/clusters/nowhere/1/discover").status_code == 404


def test_viewers_look_but_change_nothing(store: Store) -> None:
    done(store)
    app = create_app(store, Settings())
    object.__setattr__(app.state.services, "passwords", CHEAP)
    store.accounts.add("ana", "admin", CHEAP.hashed("the password of ana"))
    store.accounts.add("vic", "viewer", CHEAP.hashed("the password of vic"))
    viewer = Browser(app)
    assert viewer.sign_in("vic", "the password of vic").status_code == 303
    shown = looked(viewer, f"/clusters/{TEMPLATE}/discover")
    assert shown.xpath("//main//button | //main//input[@type!='hidden']") == []
    assert "title" in text_of(shown.xpath("//thead")[0])
    for path in ("discover", "discover/start"):
        assert viewer.post(f"/clusters/{TEMPLATE}/{path}", {"take": "0"}).status_code == 403
    assert looked(viewer, "/clusters/same.example/1/discover").xpath("//main//button") == []
