"""`siteloom crawl` from end to end, on a site that is served on loopback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from siteloom.config import StoreSettings
from siteloom.model import Page
from siteloom.pages import open_source
from siteloom.pages.crawl import Journal
from siteloom.store import open_store

from ..pages.web_site import WebSite, served_site, shop
from .command import Command, one_sentence

OPTIONS = (
    "--delay",
    "0",
    "--private",
    "--no-sitemap",
    "--include",
    "/shop/item/*",
    "--exclude",
    "/calendar/*",
)
ITEMS = {f"/shop/item/{number}.html" for number in range(16)}
# The verb, with what it commits now and then committed after each page.
COMMITTING = """
import siteloom.store.writer
siteloom.store.writer._SECONDS_WAITING = 0
from siteloom.cli import main
main()
"""


@pytest.fixture
def site() -> Iterator[WebSite]:
    with served_site(also=shop(lists=4, items_of_a_list=4)) as site:
        yield site


def stored(siteloom: Command) -> set[str]:
    store = open_store(StoreSettings(workspace=str(siteloom.folder / ".siteloom")))
    try:
        return {"/" + page.url.split("/", 3)[3] for page in store.pages()}
    finally:
        store.close()


def stopped_crawl(siteloom: Command, site: WebSite, how: signal.Signals, after: int) -> str:
    """Crawl until so many items were asked for, and be stopped then; what was said."""
    command = [sys.executable, "-c", COMMITTING, "crawl", site.address + "/shop", *OPTIONS]
    with subprocess.Popen(
        command, cwd=siteloom.folder, env=siteloom.environment, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 60
        while sum(path.startswith("/shop/item/") for path in site.paths) < after:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(how)
        assert process.stderr is not None
        return process.stderr.read()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_crawl_that_was_stopped_goes_on_where_it_was(
    siteloom: Command, site: WebSite, how: signal.Signals
) -> None:
    said = stopped_crawl(siteloom, site, how, after=8)
    assert ("Interrupted; what was done so far is kept." in said) == (how is signal.SIGINT)
    (file,) = (siteloom.folder / ".siteloom" / "crawls").iterdir()
    done = {one.url.removeprefix(site.address) for one in Journal(file).read().done}
    assert "/shop" in done
    assert len(done & ITEMS) >= 3
    assert done & ITEMS <= stored(siteloom) < ITEMS
    begin = len(site.asked)

    result = siteloom("crawl", site.address + "/shop", *OPTIONS)
    assert result.returncode == 0, result.stderr
    assert "The same crawl was stopped after" in result.stderr
    assert "known URLs left" in result.stderr
    assert stored(siteloom) == ITEMS
    assert not done & set(site.paths[begin:])
    # It is finished, and the same command would begin anew.
    assert not list((siteloom.folder / ".siteloom" / "crawls").iterdir())


def test_what_is_found_is_listed_by_shape_before_anything_is_fetched(
    siteloom: Command, site: WebSite
) -> None:
    urls = "".join(f"<url><loc>{site.address}{path}</loc></url>" for path in sorted(ITEMS))
    site.also = {**site.also, "/sitemap.xml": f'<?xml version="1.0"?><urlset>{urls}</urlset>'.encode()}
    options = ("--private", "--delay", "0", "--pages", "9", "--dry-run")
    result = siteloom("crawl", site.address + "/shop", *options, "-o", "-")
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    host = "#.#.#.#:#"
    assert [(row["shape"].removeprefix(host), row["urls"], row["fetched"]) for row in rows] == [
        ("/shop/item/*.html", 16, 6),
        ("/*", 1, 1),
        ("/calendar/#/*", 1, 1),
        ("/shop/*?page", 1, 1),
    ]
    assert rows[0]["example"] == f"{site.address}/shop/item/0.html"
    assert set(site.paths) == {"/robots.txt", "/shop", "/sitemap.xml"}
    assert not (siteloom.folder / ".siteloom").exists()

    shown = siteloom("crawl", site.address + "/shop", *options)
    assert "how many of 9 pages would be of each" in shown.stderr
    assert "nothing is kept" in shown.stderr


def test_pages_go_to_an_archive_and_no_workspace_is_made(siteloom: Command, site: WebSite) -> None:
    arguments = ("crawl", site.address + "/shop", *OPTIONS, "--pages", "5", "-o", "items.warc.gz")
    result = siteloom(*arguments, "--failures", "failed.jsonl")
    assert result.returncode == 0, result.stderr
    pages = [item for item in open_source(siteloom.folder / "items.warc.gz").read() if isinstance(item, Page)]
    assert len(pages) == 5
    assert {page.url.removeprefix(site.address) for page in pages} <= ITEMS
    assert not (siteloom.folder / ".siteloom").exists()
    assert (siteloom.folder / "failed.jsonl").read_text() == ""
    assert "items.warc.gz is there already" in one_sentence(siteloom(*arguments))


def test_what_could_not_be_fetched_is_told(siteloom: Command, site: WebSite) -> None:
    refused = siteloom("crawl", site.address)
    assert "No page could be fetched: all of them failed, as shown above" in one_sentence(refused)
    assert "private address" in refused.stderr
    assert site.asked == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["ftp://x.example/"], "is no address of a web page"),
        (["pages"], "pages is a file or folder: siteloom ingest reads those"),
        (["x.example", "--include", "products"], "'*products*'"),
        (["x.example", "--exclude", " "], "must not be empty"),
        (["x.example", "y.example", "--pages", "1"], "at least 2"),
        (["x.example", "--pages", "0"], "at least 1"),
        (["x.example", "--delay", "-1"], "from 0 on"),
        (["x.example", "-o", "pages.zip"], ".warc.gz"),
        (["x.example", "-o", "pages.warc", "--site", "x"], "leave one out"),
        (["x.example", "-o", "no/such/folder.warc"], "no/such"),
        (["x.example", "--failures", "f.txt"], "Cannot tell the format of f.txt"),
        (["x.example", "--dry-run", "-o", "x.warc"], "Cannot tell the format of x.warc"),
    ],
)
def test_mistakes_are_told_in_a_sentence(siteloom: Command, arguments: list[str], expected: str) -> None:
    Path(siteloom.folder, "pages").mkdir()
    assert expected in one_sentence(siteloom("crawl", *arguments))
    assert not (siteloom.folder / ".siteloom").exists()
