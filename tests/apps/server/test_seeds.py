"""Known records on pages and as JSON: tables looked at and taken in, sites wrapped, accepted and refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI
from lxml import html

from siteloom.apps.server import create_app
from siteloom.apps.server.upload_folder import new_upload
from siteloom.apps.server.views.known_records import sites_to_look_at
from siteloom.apps.server.work import KINDS
from siteloom.core.errors import NotFound, SiteloomError, UsageError
from siteloom.core.model import Page, Seed
from siteloom.core.settings import Settings, StoreSettings
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.server.access import CHEAP
from tests.apps.server.browsing import Browser
from tests.apps.server.conftest import People
from tests.apps.server.running_jobs import run_job
from tests.operations.test_bootstrap import CORE, DIRECTORY, directory, filled, guide, known_of
from tests.store.helpers import put

POOR = "nothing.example"
EVIL = "<script>alert(1)</script>"


def uploaded(store: Store, name: str, content: bytes) -> str:
    upload = new_upload(store.folder)
    (upload.files / name).write_bytes(content)
    return upload.id


def taken_in(store: Store, upload: str, **given: Any) -> dict[str, Any]:
    return run_job(store, "seeds", upload=upload, **given)


@pytest.fixture(scope="module")
def grown_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which the directory was wrapped from known records, and another site could not be."""
    folder = tmp_path_factory.mktemp("seeds") / ".siteloom"
    with closing(open_store(StoreSettings(str(folder)), create=True)) as store:
        filled(store, known_of(guide(), "table"), directory())
        put(store, *(Page(f"https://{POOR}/{n}", f"<p>Stone {n}</p>".encode()) for n in range(8)))
        told: list[str] = []
        came = run_job(
            store,
            "bootstrap",
            report=lambda done, total, message: told.append(f"{done} of {total} {message}"),
            core=list(CORE),
        )
        assert {one["site"]: one["state"] for one in came["sites"]} == {DIRECTORY: "wrapped", POOR: "poor"}
        assert f"0 of 2 Round 1, site 1 of 2: {POOR}" in told
        assert f"1 of 2 Round 1, site 2 of 2: {DIRECTORY}" in told
        assert [run.verb for run in store.runs(2)] == ["extract", "bootstrap"]
    return folder


@pytest.fixture
def grown(grown_folder: Path, tmp_path: Path) -> Iterator[Store]:
    copytree(grown_folder, tmp_path / "grown")
    with closing(open_store(StoreSettings(str(tmp_path / "grown")))) as store:
        yield store


@pytest.fixture
def client(grown: Store) -> Browser:
    return Browser(create_app(grown, Settings()))


@pytest.fixture
def browser(app: FastAPI) -> Browser:
    return Browser(app)


# ---- tables

INNS = (
    "Name,Street,tel\nOak,1 High Street,0117 496 0001\nElm,2 High Street,\nFir,3 High Street,0117 496 0003\n"
)


def test_a_table_is_shown_before_anything_is_kept(browser: Browser, empty_store: Store) -> None:
    upload = uploaded(empty_store, "inns.csv", INNS.encode())
    shown = browser.get(f"/api/seeds/uploads/{upload}").json()
    assert (shown["file"], shown["source"], shown["records"], shown["is_whole"]) == (
        "inns.csv",
        "inns",
        3,
        True,
    )
    assert [(one["name"], one["filled"], one["is_proposed"]) for one in shown["columns"]] == [
        ("Name", 3, True),
        ("Street", 3, True),
        ("tel", 2, False),
    ]
    assert shown["rows"][1] == {"Name": ["Elm"], "Street": ["2 High Street"]}
    page = browser.look(f"/seeds/uploads/{upload}")
    assert "3 records with 3 attributes. Nothing is kept yet." in page
    assert "0117 496 0003" in page
    assert list(empty_store.seeds()) == []


def test_a_table_is_taken_in_with_its_columns_renamed(browser: Browser, empty_store: Store) -> None:
    upload = uploaded(empty_store, "inns.csv", INNS.encode())
    browser.look(f"/seeds/uploads/{upload}")
    form = {"source": " The inns ", "core": "Street", "separator-3": " "}
    for number, (old, new) in enumerate([("Name", "name"), ("Street", "address"), ("tel", "tel")], 1):
        form |= {f"column-{number}": old, f"name-{number}": new}
    answer = browser.post(f"/seeds/uploads/{upload}", form)
    assert answer.status_code == 303
    (job,) = empty_store.jobs.latest(1)
    assert answer.headers["location"] == f"/jobs/{job.id}"
    assert job.arguments["renamed"] == {"Name": "name", "Street": "address"}
    result = run_job(empty_store, "seeds", **job.arguments)
    assert {name: value for name, value in result.items() if name != "run"} == {
        "source": "The inns",
        "added": 3,
        "unchanged": 0,
        "removed": 0,
        "failures": {},
        "skipped": {},
        "core": ["address"],
    }
    seeds = list(empty_store.seeds())
    assert seeds[0] == Seed(
        {"name": ("Oak",), "address": ("1 High Street",), "tel": ("0117 496 0001",)}, "The inns"
    )
    assert browser.get(f"/seeds/uploads/{upload}").status_code == 404  # the file is gone
    empty_store.jobs.end(job.id, "done", result)
    assert "3 records of The inns are new" in browser.look(f"/jobs/{job.id}")
    assert "/seeds/wrap?core=address" in browser.get(f"/jobs/{job.id}").text
    assert "The inns" in browser.look("/jobs")


def test_lists_in_one_text_are_split(empty_store: Store) -> None:
    upload = uploaded(empty_store, "inns.csv", b"name,cuisine\nOak,Thai|Greek\n")
    taken_in(empty_store, upload, several={"cuisine": "|"})
    assert [seed.values["cuisine"] for seed in empty_store.seeds()] == [("Thai", "Greek")]


@pytest.mark.parametrize("name", ["inns.jsonl", "inns.parquet"])
def test_tables_of_other_formats(empty_store: Store, tmp_path: Path, name: str) -> None:
    rows = [{"name": "Oak", "phone": "1"}, {"name": "Elm", "phone": "2"}]
    if name.endswith(".jsonl"):
        content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    else:
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
        content = (tmp_path / "t.parquet").read_bytes()
    assert taken_in(empty_store, uploaded(empty_store, name, content))["added"] == 2
    (source,) = empty_store.seed_sources()
    assert (source.source, source.records) == ("inns", 2)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", b"\n\n", "a.csv has no names of columns in its first line."),
        ("a.csv", b"name,phone\n", "There is no record in a.csv"),
        ("a.csv", b"name,phone\n,\n", "No row of a.csv could be read as a record: no values."),
        ("a.csv", "name\n\xe9\n".encode("latin-1"), "a.csv is not written in UTF-8, as line 2 shows"),
        ("a.csv", "n\xe4me\nOak\n".encode("latin-1"), "a.csv is not written in UTF-8"),
        ("a.csv", "name\nOak\n".encode("utf-16"), "a.csv is not written in UTF-8"),
        ("a.csv", bytes(range(256)) * 40, "a.csv"),
        ("a.csv", b'name\n"' + b"x" * 2_000_000, "a.csv"),
        ("a.jsonl", b"{\n[1]\n", "No row of a.jsonl could be read as a record"),
        ("a.parquet", b"PAR1 and nothing else", "a.parquet cannot be read beyond row 0"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_sentence(
    browser: Browser, empty_store: Store, name: str, content: bytes, sentence: str
) -> None:
    upload = uploaded(empty_store, name, content)
    answer = browser.get(f"/seeds/uploads/{upload}")
    assert answer.status_code == 400
    assert "This table cannot be read" in answer.text
    told = browser.get(f"/api/seeds/uploads/{upload}")
    assert told.status_code == 400
    assert sentence in told.json()["detail"]
    assert str(empty_store.folder) not in told.text
    with pytest.raises(SiteloomError) as refused:
        taken_in(empty_store, upload)
    assert str(empty_store.folder) not in str(refused.value)
    assert list(empty_store.seeds()) == []


def test_huge_cells_and_what_looks_like_code_are_only_text(browser: Browser, empty_store: Store) -> None:
    rows = f'name,note\n=CMD("x"),{EVIL}\nOak,{"x" * 100_000}\nElm,{"y" * 1_000_000}\n'
    upload = uploaded(empty_store, "a.csv", rows.encode())
    answer = browser.get(f"/seeds/uploads/{upload}")
    assert answer.status_code == 200
    assert EVIL not in answer.text
    assert "x" * 200 not in answer.text
    assert "1 row is left out: bad value." in browser.look(f"/seeds/uploads/{upload}")
    taken_in(empty_store, upload)
    assert {seed.values["name"][0] for seed in empty_store.seeds()} == {'=CMD("x")', "Oak"}
    assert EVIL not in browser.get("/seeds").text


def test_an_upload_is_one_table(browser: Browser, empty_store: Store) -> None:
    upload = uploaded(empty_store, "a.csv", INNS.encode())
    (empty_store.folder / "uploads" / upload / "files" / "b.csv").write_bytes(INNS.encode())
    assert "come as one file" in browser.get(f"/api/seeds/uploads/{upload}").json()["detail"]
    pages = uploaded(empty_store, "a.html", b"<p>no table")
    assert "come as one file" in browser.get(f"/api/seeds/uploads/{pages}").json()["detail"]
    assert browser.get("/api/seeds/uploads/..%2f..%2fetc").status_code == 404
    assert browser.get(f"/api/seeds/uploads/{'0' * 32}").status_code == 404


def test_records_are_of_an_upload_or_of_a_site(empty_store: Store) -> None:
    with pytest.raises(UsageError, match="of an upload or of a site"):
        run_job(empty_store, "seeds")


def test_records_of_a_wrapped_site_become_known(lived_in: Store) -> None:
    site = "larkmoor-guide.example"
    page = Browser(create_app(lived_in, Settings())).look("/seeds")
    assert f"{site} (" in page
    result = run_job(lived_in, "seeds", site=site)
    assert result["source"] == site
    assert result["added"] > 10
    assert site in {one.source for one in lived_in.seed_sources()}


def test_a_source_is_removed(empty_store: Store) -> None:
    taken_in(empty_store, uploaded(empty_store, "inns.csv", INNS.encode()))
    result = run_job(empty_store, "remove_seeds", source="inns")
    assert (result["source"], result["removed"]) == ("inns", 3)
    assert list(empty_store.seeds()) == []
    with pytest.raises(NotFound, match="no known records of inns"):
        run_job(empty_store, "remove_seeds", source="inns")


# ---- pages


def test_an_empty_workspace_says_what_to_do(browser: Browser) -> None:
    assert "Nothing is known yet" in browser.look("/seeds")
    assert "Nothing is known yet" in browser.look("/seeds/wrap")
    assert browser.get("/api/seeds").json() == {"sources": [], "sites": []}
    assert browser.get("/seeds/sites/a.example").status_code == 404


def test_sources_and_sites_are_listed(client: Browser) -> None:
    seeds = client.get("/api/seeds").json()
    assert {one["source"]: one["is_grown"] for one in seeds["sources"]} == {"table": False, DIRECTORY: True}
    assert [(one["site"], one["state"], one["waits"]) for one in seeds["sites"]] == [
        (DIRECTORY, "wrapped", True),
        (POOR, "poor", False),
    ]
    page = client.look("/seeds")
    assert f"Look at {DIRECTORY}" in page
    assert "Waits for a look" in page
    assert "Too little in common" in page


def test_attributes_and_sites_are_chosen(client: Browser, grown: Store) -> None:
    page = client.get("/seeds/wrap").text
    for name in CORE:
        assert f'value="{name}" checked' in page
    assert f'value="{POOR}"' in page
    assert f'value="{DIRECTORY}"' not in page  # it is wrapped
    assert f'value="{POOR}" checked' in client.get(f"/seeds/wrap?site={POOR}&core=phone").text
    client.look("/seeds/wrap")
    answer = client.post("/jobs", {"kind": "bootstrap", "core": "name", "sites": POOR, "rounds": "1"})
    assert answer.status_code == 303
    (job,) = grown.jobs.latest(1)
    assert job.arguments == {"core": ["name"], "sites": [POOR], "rounds": 1}


def test_attributes_must_be_chosen(client: Browser) -> None:
    client.look("/seeds/wrap")
    assert client.post("/jobs", {"kind": "bootstrap"}).status_code == 400


def test_evidence_of_a_wrapped_site(client: Browser, grown: Store) -> None:
    evidence = client.get(f"/api/seeds/sites/{DIRECTORY}").json()
    assert (evidence["state"], evidence["waits"], evidence["wrapper"]) == ("wrapped", True, f"{DIRECTORY}/1")
    assert evidence["sources"].keys() == {"table"}
    assert evidence["seeds_matched"] <= evidence["known"]
    verdicts = {one["name"]: one for one in evidence["verdicts"]}
    assert [one["verdict"] for one in evidence["verdicts"]] == sorted(
        (one["verdict"] for one in evidence["verdicts"]), key=["accepted", "suggested", "refused"].index
    )
    urls = {page.page.url for page in directory()}
    for example in verdicts["name"]["examples"]:
        assert example["url"] in urls
        assert example["node"].startswith("/html")
        assert example["text"].casefold() == example["value"].casefold()
    assert evidence["refusal"] == {
        "records": evidence["records"],
        "wrapper": f"{DIRECTORY}/1",
        "retried": [],
    }
    links = html.fromstring(client.get(f"/seeds/sites/{DIRECTORY}").text).xpath("//a/@href")
    example = verdicts["name"]["examples"][0]
    asked = {"url": example["url"], "site": DIRECTORY, "attribute": "name", "node": example["node"]}
    queries = [dict(parse_qsl(urlsplit(link).query)) for link in links if link.startswith("/pages/at?")]
    assert {**asked, "wrapper": f"{DIRECTORY}/1"} in queries
    assert len(json.dumps(grown.site_outcomes()[1].content)) < 20_000


def test_evidence_of_a_poor_site_says_what_to_do(client: Browser) -> None:
    evidence = client.get(f"/api/seeds/sites/{POOR}").json()
    assert evidence["state"] == "poor"
    page = client.look(f"/seeds/sites/{POOR}")
    assert evidence["reason"] in page
    assert "Find its templates" in page
    assert "Try it again" in page
    assert "Accept" not in page


def test_a_site_is_accepted_once_looked_at(client: Browser, grown: Store) -> None:
    assert [one.site for one in sites_to_look_at(grown)] == [DIRECTORY]
    before = client.get(f"/api/seeds/sites/{DIRECTORY}").json()
    client.look(f"/seeds/sites/{DIRECTORY}")
    (form,) = html.fromstring(client.get(f"/seeds/sites/{DIRECTORY}").text).xpath(
        "//form[contains(@action, '/accept')]/@action"
    )
    assert form == f"/seeds/sites/{DIRECTORY}/accept?version={before['version']}"
    for path in (f"/seeds/sites/{DIRECTORY}/accept", f"/api/seeds/sites/{DIRECTORY}/accept"):
        assert client.send("POST", f"{path}?version={before['version'] + 1}").status_code == 409
    assert [one.site for one in sites_to_look_at(grown)] == [DIRECTORY]
    answer = client.post(form, {})
    assert answer.headers["location"] == f"/seeds/sites/{DIRECTORY}"
    after = client.get(f"/api/seeds/sites/{DIRECTORY}").json()
    assert (after["waits"], after["accepted_by"]) == (False, "local")
    assert after["accepted_at"] is not None
    assert {name: after[name] for name in ("verdicts", "at", "records")} == {
        name: before[name] for name in ("verdicts", "at", "records")
    }
    assert sites_to_look_at(grown) == []
    page = client.look(f"/seeds/sites/{DIRECTORY}")
    assert "accepted by local" in page
    assert "See its records" in page
    assert client.send("POST", f"/api/seeds/sites/{POOR}/accept").status_code == 404


def test_a_site_is_refused_and_can_be_tried_again(client: Browser, grown: Store) -> None:
    page = client.look(f"/seeds/sites/{DIRECTORY}")
    assert f"takes the wrapper {DIRECTORY}/1 out of force and forgets" in page
    result = run_job(grown, "withdraw", site=DIRECTORY)
    assert (result["withdrawn"], result["retried"]) == ([f"{DIRECTORY}/1"], [])
    assert grown.wrappers() == []
    assert sites_to_look_at(grown) == []
    page = client.look(f"/seeds/sites/{DIRECTORY}")
    assert "It was refused" in page
    assert f'value="{DIRECTORY}"' in client.get("/seeds/wrap").text
    job = grown.jobs.add("withdraw", {"site": DIRECTORY}, "ana")
    grown.jobs.end(job.id, "done", result)
    assert f"{DIRECTORY} is refused" in client.look(f"/jobs/{job.id}")


def test_what_came_of_a_run_is_on_its_page(client: Browser, grown: Store) -> None:
    job = grown.jobs.add("bootstrap", {"core": ["name"], "sites": None, "rounds": None}, "ana")
    rows = [
        {
            "site": DIRECTORY,
            "round": 1,
            "state": "wrapped",
            "records": 60,
            "attributes": ["name"],
            "reason": "",
        },
        {"site": POOR, "round": 1, "state": "poor", "records": 0, "attributes": [], "reason": "Nothing."},
    ]
    grown.jobs.end(job.id, "done", {"core": ["name"], "sites": rows})
    page = client.look(f"/jobs/{job.id}")
    assert f"Look at {DIRECTORY}" in page
    assert "Nothing." in page


def test_viewers_look_but_see_no_buttons(grown: Store) -> None:
    app = create_app(grown, Settings())
    app.state.services = replace(app.state.services, passwords=CHEAP)
    everyone = People(app, grown)
    everyone.add("ana", "admin")
    viewer = everyone.browser("vic", "viewer")
    page = viewer.look("/seeds")
    assert "Bring known records" not in page
    assert "Wrap sites" not in page
    page = viewer.look(f"/seeds/sites/{DIRECTORY}")
    assert "Refuse" not in page
    assert viewer.send("POST", f"/api/seeds/sites/{DIRECTORY}/accept").status_code == 403
    assert viewer.post(f"/seeds/sites/{DIRECTORY}/accept", {}).status_code == 403
    assert viewer.get(f"/seeds/uploads/{'0' * 32}").status_code == 403


def test_what_earlier_versions_stored_is_shown(client: Browser, grown: Store) -> None:
    counts = {"added": 3, "unchanged": 0, "removed": 1}
    results: dict[str, tuple[dict[str, Any], str]] = {
        "seeds": (
            {"source": "inns", **counts, "left_out": {"bad value": 2}, "core": ["name"]},
            "3 records of inns are new",
        ),
        "remove_seeds": ({"source": "inns", "removed": 3}, "3 known records of inns are removed"),
        "withdraw": (
            {"site": DIRECTORY, "seeds": 4, "withdrawn": [f"{DIRECTORY}/1"], "retried": []},
            f"{DIRECTORY} is refused",
        ),
        "bootstrap": ({"core": ["name"], "sites": []}, "no site left to try"),
    }
    for kind, (result, sentence) in results.items():
        job = grown.jobs.add(kind, dict.fromkeys(KINDS[kind].arguments), "ana")
        grown.jobs.end(job.id, "done", result)
        assert sentence in client.look(f"/jobs/{job.id}")
        strange = grown.jobs.add(kind, dict.fromkeys(KINDS[kind].arguments), "ana")
        grown.jobs.end(strange.id, "done", {"sites": 7})
        assert "All known records" in client.look(f"/jobs/{strange.id}")
