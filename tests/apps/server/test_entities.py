"""The same things on several sites: linked by a job, listed, side by side, downloaded."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from lxml import html

from siteloom.apps.server import create_app
from siteloom.core.errors import UsageError
from siteloom.core.model import Seed
from siteloom.core.settings import Settings, StoreSettings
from siteloom.extraction.shard_extraction import ExtractedRow
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.server.browsing import Browser
from tests.apps.server.running_jobs import run_job
from tests.learning.known_records.test_linking import site as site_seeds
from tests.store.helpers import page, put

COUNT = 30
SITES = ("a.example", "b.example")
OTHER_PHONE = "(212) 555-1111"
EVIL = "<script>alert(1)</script>"


def linked(store: Store, *core: str, seeds: bool = False) -> dict[str, Any]:
    result = run_job(store, "entities", core=list(core), seeds=seeds)
    return {name: result[name] for name in ("records", "entities", "on_several")}


def extracted(store: Store, site: str, seeds: list[Seed]) -> None:
    """Keep records of a site as a run of extract would."""
    store.save_wrapper(f"{site}/1", site, "{}", "learn")
    rows = [
        ExtractedRow(
            seed.url,
            f"{site}/1",
            1,
            json.dumps({"url": seed.url, "wrapper": f"{site}/1", "version": 1, "values": seed.values}),
        )
        for seed in seeds
    ]
    with store.extracting({"site": site}, site) as extraction:
        extraction.commit(0, rows, [], {"tally": [["records of", f"{site}/1", len(rows)]]})


def told(site: str) -> list[Seed]:
    """The records of a site; the second has another phone of one thing, and a hostile value."""
    seeds = site_seeds(site, range(COUNT))
    if site == SITES[1]:
        seeds[7] = Seed({**seeds[7].values, "phone": (OTHER_PHONE,), "note": (EVIL,)}, site, seeds[7].url)
    return seeds


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Records of two sites that tell of the same things."""
    folder = tmp_path_factory.mktemp("entities") / ".siteloom"
    with closing(open_store(StoreSettings(str(folder)), create=True)) as opened:
        for site in SITES:
            put(opened, page(f"https://{site}/0"))
            extracted(opened, site, told(site))
        result = linked(opened, "name")
        assert result == {"records": 2 * COUNT, "entities": COUNT, "on_several": COUNT}
        yield opened


@pytest.fixture(scope="module")
def client(store: Store) -> Browser:
    return Browser(create_app(store, Settings()))


def listed(client: Browser, query: str = "") -> list[int]:
    return [one["entity"] for one in client.get(f"/api/entities?{query}").json()["entities"]]


def test_entities_are_told_in_numbers(client: Browser) -> None:
    view = client.get("/api/entities").json()
    assert (view["found"], len(view["entities"])) == (COUNT, COUNT)
    linking = view["linking"]
    assert (linking["core"], linking["records"], linking["spread"]) == (["name"], 2 * COUNT, [[2, COUNT]])
    assert linking["sources"] == dict.fromkeys(SITES, COUNT)
    assert {one["name"]: one["differing"] for one in linking["attributes"] if one["differing"]} == {
        "phone": 1
    }
    text = client.look("/entities")
    assert f"{2 * COUNT} records tell of {COUNT} things, known by name" in text


def test_they_are_found_by_words_and_by_what_differs(client: Browser) -> None:
    assert listed(client, f"words={OTHER_PHONE}") == [8]
    assert listed(client, "conflicts=true") == [8]
    assert listed(client, "attribute=phone") == [8]
    assert listed(client, "attribute=name") == []
    assert listed(client, "words=nowhere") == []
    assert listed(client, "sources=3") == []
    assert listed(client, "start=28&limit=9") == [29, 30]
    assert "No thing is like that." in client.look("/entities?words=nowhere")
    assert "There is no page 9" in client.look("/entities?page=9")
    assert client.get("/api/entities?limit=100000").status_code == 422


def test_an_entity_is_shown_side_by_side(client: Browser) -> None:
    detail = client.get("/api/entities/8").json()
    first = detail["attributes"][0]
    assert (first["name"], first["has_conflicts"], len(first["differing"])) == ("phone", True, 1)
    assert first["by_source"][SITES[1]] == [{"text": OTHER_PHONE, "url": f"https://{SITES[1]}/7"}]
    answer = client.get("/entities/8")
    assert EVIL not in answer.text
    shown = html.fromstring(answer.text)
    heads = [" ".join(cell.text_content().split()) for cell in shown.xpath("//thead//th")]
    assert heads == ["Attribute", "Most say", *SITES]
    marked = shown.xpath("//td[@class='other']")
    assert len(marked) == 2  # one against one: neither is taken for right
    assert shown.xpath("//td[span='no majority']")
    (link,) = marked[1].xpath(".//a/@href")
    assert link.startswith("/pages/at?url=https%3A%2F%2F")
    assert "&attribute=phone" in link
    assert not html.fromstring(client.get("/entities/9").text).xpath("//td[@class='other']")


def test_there_is_no_entity_of_an_unknown_number(client: Browser) -> None:
    for number in (0, COUNT + 1, 2**70):
        assert client.get(f"/entities/{number}").status_code == 404
        answer = client.get(f"/api/entities/{number}")
        assert answer.status_code == 404
        assert answer.json()["detail"].startswith(f"There is no entity {number}:")


def test_they_are_downloaded_as_the_command_line_writes_them(client: Browser, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in client.get("/entities/download.jsonl").text.splitlines()]
    assert [line["entity"] for line in lines] == list(range(1, COUNT + 1))
    assert lines[0].keys() == {"entity", "sources", "urls", "values", "conflicts"}
    phones = [lines[7][part]["phone"][0]["value"] for part in ("values", "conflicts")]
    assert OTHER_PHONE in phones
    assert told(SITES[0])[7].values["phone"][0] in phones
    answer = client.get("/entities/download.csv?conflicts=true")
    assert 'filename="entities.csv"' in answer.headers["content-disposition"]
    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert row["entity"] == "8"
    assert set(row["sources"].split(" | ")) == set(SITES)
    assert json.loads(row["conflicts"]).keys() == {"phone"}
    (tmp_path / "e.parquet").write_bytes(client.get("/entities/download.parquet").content)
    assert pq.read_table(tmp_path / "e.parquet").num_rows == COUNT
    assert client.get("/entities/download.exe").status_code in (404, 422)


def test_attributes_are_proposed(client: Browser, store: Store) -> None:
    text = client.get("/entities/link").text
    assert 'value="name" checked' in text
    client.look("/entities/link")
    assert client.post("/jobs", {"kind": "entities", "core": "name"}).status_code == 303
    (job,) = store.jobs.latest(1)
    assert job.arguments == {"core": ["name"], "seeds": None}
    store.jobs.end(job.id, "done", {"records": 60, "entities": 30, "on_several": 30})
    assert "60 records tell of 30 things" in client.look(f"/jobs/{job.id}")
    store.jobs.end(job.id, "done", {"told": 60, "entities": 30, "on_several": 30})  # as 1.0 stored it
    assert "See them side by side" in client.look(f"/jobs/{job.id}")


def test_an_empty_workspace_says_what_is_needed(app: Any, empty_store: Store) -> None:
    browser = Browser(app)
    assert "Records of two sites are needed" in browser.look("/entities")
    assert "No records were extracted yet" in browser.look("/entities/link")
    assert browser.get("/api/entities").json() == {"linking": None, "found": 0, "entities": []}
    assert browser.get("/entities/1").status_code == 404
    assert browser.get("/entities/download.csv").text.startswith("entity,sources")
    with pytest.raises(UsageError, match="records of two are needed: there are none"):
        linked(empty_store)


def test_records_of_one_site_are_compared_with_seeds(app: Any, empty_store: Store) -> None:
    put(empty_store, page("https://a.example/0"))
    extracted(empty_store, "a.example", told("a.example"))
    with empty_store.recording("seeds", {}) as run:
        # Those of the site itself, under its name, are its records once more.
        empty_store.add_seeds(run.id, [*site_seeds("table", range(5)), *told("a.example")])
    browser = Browser(app)
    assert "There are only those of a.example" in browser.look("/entities")
    with pytest.raises(UsageError, match=r"there are only those of a\.example"):
        linked(empty_store)
    assert linked(empty_store, "name", seeds=True) == {
        "records": COUNT + 5,
        "entities": COUNT,
        "on_several": 5,
    }
    with pytest.raises(UsageError, match="No record has the attribute colour"):
        linked(empty_store, "colour", seeds=True)
    assert "compare" in browser.look("/entities/link").casefold()
    assert not browser.get("/api/entities").json()["linking"]["is_outdated"]
    extracted(empty_store, "a.example", told("a.example")[:3])
    assert browser.get("/api/entities").json()["linking"]["is_outdated"]
    assert "Records were extracted since" in browser.look("/entities")
