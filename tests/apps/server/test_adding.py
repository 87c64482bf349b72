"""Pages in: from files that were sent to sites with templates."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from siteloom.apps.server import create_app
from siteloom.apps.server.operation_jobs import job_result
from siteloom.apps.server.upload_folder import new_upload
from siteloom.apps.server.work import KINDS
from siteloom.core.errors import NotFound, SourceError, UsageError
from siteloom.core.settings import Settings, StoreSettings
from siteloom.operations.cluster import cluster_store
from siteloom.operations.watch import watch_wrappers
from siteloom.sources.example_files import ExampleLine
from siteloom.store.store import Store
from tests.apps.demo.sites import guide, of_kind
from tests.apps.server.browsing import Browser
from tests.apps.server.serving import program, serving
from tests.maintenance import guide as watched_guide
from tests.operations.calls import annotate_pages, learn_wrappers
from tests.sources.warc_records import gzip_members, http, page_record, plain, record, warcinfo
from tests.store.helpers import page, put

GUIDE = "larkmoor-guide.example"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(store=StoreSettings(workspace=str(tmp_path / "workspace")))


@pytest.fixture
def store(sqlite_store: Store) -> Store:
    """The store that is where the settings say."""
    return sqlite_store


def uploaded(store: Store, files: Mapping[str, bytes]) -> str:
    upload = new_upload(store.folder)
    for name, content in files.items():
        place = upload.files / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return upload.id


def taken_in(store: Store, files: Mapping[str, bytes], **arguments: object) -> dict[str, Any]:
    """What a job tells of files that were sent; as JSON, for the table of jobs keeps it so."""
    given = dict.fromkeys(("site", "url", "resources", "cluster"), None) | {"upload": uploaded(store, files)}
    told = KINDS["ingest"].run(store, Settings(), given | arguments, lambda *_: None)
    return dict(json.loads(json.dumps(told)))


def warc(count: int = 12) -> bytes:
    pages = [one.page for one in of_kind(guide(), "restaurant")[:count]]
    style = record(f"https://www.{GUIDE}/style.css", http(b"p{}", media_type="text/css"))
    return plain([warcinfo(), *(page_record(page.url, page.html) for page in pages), style]).content


def left(store: Store) -> list[Path]:
    return list((store.folder / "uploads").glob("*"))


def test_an_archive_becomes_a_site_with_templates(store: Store) -> None:
    told = taken_in(store, {"crawl.warc": warc()}, cluster=True, resources=True)
    (site,) = told["sites"]
    assert (told["site"], told["pages"], told["url"]) == (GUIDE, 12, None)
    assert (site["site"], site["pages"], site["added"]) == (GUIDE, 12, 12)
    assert site["templates"] == len(store.cluster_summaries(GUIDE)) > 0
    assert site["next_step"]["kind"] == "annotate"
    assert store.resource(f"https://www.{GUIDE}/style.css") is not None
    assert left(store) == []
    runs = [run.verb for run in store.runs(9)]
    again = taken_in(store, {"crawl.warc": warc()}, cluster=True)
    assert (again["added"], again["unchanged"], again["sites"][0]["added"]) == (0, 12, 0)
    assert [run.verb for run in store.runs(9)] == ["ingest", *runs]  # templates are not looked for again


def test_the_templates_of_many_sites_are_found_in_one_run(store: Store) -> None:
    sites = [f"shop-{number}.example" for number in range(5)]
    lines = [{"url": f"https://{site}/{n}", "html": f"<p>Thing {n}"} for site in sites for n in range(3)]
    told = taken_in(store, {"crawl.jsonl": "\n".join(map(json.dumps, lines)).encode()}, cluster=True)
    assert [(one["site"], one["templates"] > 0) for one in told["sites"]] == [(site, True) for site in sites]
    assert [run.verb for run in store.runs(9)] == ["cluster", "ingest"]
    # Another run for one of them takes the place of this one for that only, and so does one for some.
    editions = {one.name: store.cluster_edition(one.name) for one in store.cluster_summaries()}
    cluster_store(store, "vertex", site=sites[0])
    cluster_store(store, "vertex", site=sites[1:3])
    anew = {name for name, edition in editions.items() if store.cluster_edition(name) != edition}
    assert {name.rpartition("/")[0] for name in anew} == set(sites[:3])
    assert {one.name for one in store.cluster_summaries()} == editions.keys()
    with pytest.raises(UsageError, match=r"There is no site no\.example among the pages"):
        cluster_store(store, "vertex", site=[sites[0], "no.example"])


def test_without_templates_the_next_step_is_to_find_them_and_with_wrappers_to_extract(store: Store) -> None:
    told = taken_in(store, {"crawl.warc": warc()})
    assert told["sites"][0]["next_step"]["kind"] == "cluster"
    assert store.resource(f"https://www.{GUIDE}/style.css") is None
    taken_in(store, {"crawl.warc": warc()}, cluster=True)
    one = of_kind(guide(), "restaurant")[0]
    annotate_pages(store, [ExampleLine(one.page.url, one.truth, (), {})])
    (name,) = [found.name for found in store.cluster_summaries() if found.annotated]
    learn_wrappers(store, name)
    told = taken_in(store, {"more.warc.gz": gzip.compress(warc(14))}, cluster=True)
    assert (told["added"], told["sites"][0]["next_step"]["kind"]) == (2, "extract")


def test_pages_that_come_again_are_held_against_those_that_are_watched(store: Store) -> None:
    put(store, *watched_guide.pages())
    cluster_store(store, "vertex")
    (name,) = [found.name for found in store.cluster_summaries()][:1]
    store.save_wrapper(name, GUIDE, watched_guide.wrapper().to_json(), "learn")
    watch_wrappers(store)
    lines = [{"url": one.url, "html": one.html.decode()} for one in watched_guide.pages("redesign")]
    told = taken_in(store, {"crawl.jsonl": "\n".join(map(json.dumps, lines)).encode()})
    assert told["changed_pages"] == len(lines)
    assert told["changed_wrappers"] == [name]
    (found,) = store.newest_checks(name)
    assert not found.is_healthy
    assert told["sites"][0]["next_step"]["kind"] == "repair"


def test_the_page_of_an_import_with_changed_pages_can_be_looked_at(store: Store, settings: Settings) -> None:
    put(store, page("https://a.example/1", "before"))
    browser = Browser(create_app(store, settings))
    told = taken_in(store, {"a.jsonl": b'{"url": "https://a.example/1", "html": "<p>now"}\n'})
    assert told["changed_pages"] == 1
    job = store.jobs.add("ingest", {"upload": "gone", "name": "a.jsonl"}, "local")
    store.jobs.end(job.id, "done", told)
    text = browser.look(f"/jobs/{job.id}")
    assert "1 page read, 0 of them new" in " ".join(text.split())
    assert "changed since the last time" in text


def test_what_version_1_0_stored_of_an_import_does_not_break_its_page(
    store: Store, settings: Settings
) -> None:
    stored = {
        "new": 0, "changed": 12, "unchanged": 0, "failures": {}, "skipped": {}, "first_failures": [],
        "site": GUIDE, "site_count": 1, "sites": [], "pages": 12, "url": None,
    }  # fmt: skip
    browser = Browser(create_app(store, settings))
    for kind in ("ingest", "fetch"):
        job = store.jobs.add(kind, {}, "local")
        store.jobs.end(job.id, "done", stored)
        assert GUIDE in browser.look(f"/jobs/{job.id}") or kind == "fetch"
        assert job_result(job) is None


def test_a_folder_keeps_the_urls_of_its_index_and_other_files_get_stable_ones(store: Store) -> None:
    files = {
        "site/index.csv": b"file,url\nsub/a.html,https://a.example/a\n../../../siteloom.db,https://evil.example/\n",
        "site/sub/a.html": b"<p>a",
        "site/b.html": b"<p>b",
        "site/pages.jsonl": b'{"url": "https://j.example/", "html": "<p>j"}\n',
        "plain c.html": b"<p>c",
        "canonical.html": b'<link rel="canonical" href="https://c.example/d"><p>d',
    }
    told = taken_in(store, files)
    urls = {page.url for page in store.pages()}
    assert urls == {
        "https://a.example/a",
        "file:///site/b.html",
        "https://j.example/",
        "file:///plain%20c.html",
        "https://c.example/d",
    }
    assert told["failures"] == {"outside the folder": 1}
    assert told["site_count"] == len(told["sites"]) == 4
    assert taken_in(store, files)["added"] == 0


def test_all_pages_go_to_the_site_that_is_named(store: Store) -> None:
    told = taken_in(store, {"a.html": b"<p>a", "b.html": b"<p>b"}, site="mine")
    assert (told["site"], [site.name for site in store.sites()]) == ("mine", ["mine"])


def test_one_page_can_be_given_its_address(store: Store) -> None:
    told = taken_in(store, {"saved.html": b"<p>a"}, url="https://a.example/x")
    assert told["url"] == "https://a.example/x"
    assert [page.url for page in store.pages()] == ["https://a.example/x"]
    for files in ({"a.html": b"<p>a", "b.html": b"<p>b"}, {"crawl.warc": warc(2)}):
        with pytest.raises(UsageError, match="Only a single page"):
            taken_in(store, files, url="https://a.example/y")


def test_a_page_without_an_address_is_found_by_the_one_of_its_file(store: Store) -> None:
    assert taken_in(store, {"saved.html": b"<p>a"})["url"] == "file:///saved.html"


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("x.warc", b"junk", "No page could be read: damaged record"),
        ("x.warc.gz", b"junk", "No page could be read: "),
        ("x.jsonl", b"junk\n", "No page could be read: not valid JSON"),
        ("x.parquet", b"junk", "No page could be read: truncated or damaged file"),
        ("y.parquet", b"PAR1" + bytes(100) + b"PAR1", "No page could be read: truncated or damaged file"),
        ("index.csv", b"nothing\n", "/index.csv has no column file"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_sentence_without_where_it_stood(
    store: Store, name: str, content: bytes, why: str
) -> None:
    with pytest.raises(SourceError) as error:
        taken_in(store, {name: content})
    assert why in str(error.value)
    assert "\n" not in str(error.value)
    assert str(store.folder) not in str(error.value)


def test_failures_of_some_do_not_keep_others_out(store: Store) -> None:
    told = taken_in(store, {"bad.warc": b"junk", "crawl.warc": warc(3)})
    assert (told["pages"], told["failures"]) == (3, {"damaged record": 1})
    assert told["first_failures"][0]["url"] == "/bad.warc"
    assert told["skipped"]


def test_a_bomb_is_a_failure(store: Store) -> None:
    small = Settings(pages=type(Settings().pages)(max_bytes=100_000))
    bomb = page_record("https://a.example/bomb", gzip.compress(b"<p>" * 10**6), "Content-Encoding: gzip")
    archive = gzip_members([bomb, page_record("https://a.example/", b"<p>fine")]).content
    given = dict.fromkeys(("site", "url", "resources", "cluster"), None)
    given |= {"upload": uploaded(store, {"x.warc.gz": archive})}
    told = KINDS["ingest"].run(store, small, given, lambda *_: None)
    assert (told["pages"], told["failures"]) == (1, {"page too large": 1})


def test_an_upload_that_is_gone_is_told_of(store: Store) -> None:
    for upload in ("f" * 32, "../packs"):
        with pytest.raises(NotFound, match="not there any more"):
            KINDS["ingest"].run(store, Settings(), {"upload": upload}, lambda *_: None)


def test_from_sending_a_file_to_its_next_step(store: Store, settings: Settings) -> None:
    with serving(create_app(store, settings)) as address, program(address, store, "editor") as client:
        upload = client.put("/api/uploads/crawl.warc", content=warc()).json()["upload"]
        given = {"upload": upload, "name": "crawl.warc and 2 more", "resources": True, "cluster": True}
        order = {"kind": "ingest", "arguments": given}
        job = client.post("/api/jobs", json=order).json()
        with client.stream("GET", f"/api/jobs/{job['id']}/events") as stream:
            assert "event: ended" in list(stream.iter_lines())
        page = " ".join(client.get(job["url"]).text.split())
        assert "Annotate a template" in page
        assert f"/sites/{GUIDE}/urls" in page
        assert "12 pages read, 12 of them new" in page
        assert "crawl.warc and 2 more" in page
        assert "crawl.warc and 2 more" in client.get("/jobs").text
        with program(address, store, "viewer") as viewer:
            assert "Annotate a template" not in viewer.get(job["url"]).text
            assert viewer.post("/api/jobs", json=order).status_code == 403


def test_the_page_to_add_pages_is_there(store: Store) -> None:
    browser = Browser(create_app(store, Settings()))
    told = browser.look("/add")
    for words in ("Drop a WARC", "One on each line", "A start page", "Just try one page"):
        assert words in told
