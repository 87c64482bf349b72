"""`siteloom crawl` from end to end, on a site that is served on loopback."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from torture.warm import run_warm

from siteloom.core.errors import SourceError
from siteloom.core.model import Failure, Page, Skipped
from siteloom.core.settings import StoreSettings
from siteloom.sources.crawling.crawl_journal import CrawlJournal
from siteloom.sources.crawling.crawl_source import Crawl
from siteloom.sources.open_sources import open_source
from siteloom.store.workspace_folder import open_store
from tests.apps.cli.command import Command, one_sentence, work_inside
from tests.apps.cli.verbs.test_learn import within
from tests.sources.crawling.web_site import WebSite, served_site, shop

OPTIONS = (
    "--delay",
    "0.001",
    "--private",
    "--no-sitemap",
    "--include",
    "/shop/item/*",
    "--exclude",
    "/calendar/*",
)
ITEMS = {f"/shop/item/{number}.html" for number in range(16)}
# The verb, with what it commits now and then committed after each page; it is stopped when pages are in the
# store and about to be noted as done for so many times.
STOPPED = """
import os, sys
import siteloom.store.packs.page_writer
from siteloom.sources.crawling.crawl_journal import CrawlJournal
siteloom.store.packs.page_writer._SECONDS_WAITING = 0
how, left, append = int(sys.argv.pop(1)), int(sys.argv.pop(1)), CrawlJournal.append
def stop(journal, events):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), how)
    append(journal, events)
CrawlJournal.append = stop
from siteloom.apps.cli.main import main
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


def done_items(siteloom: Command, site: WebSite) -> set[str]:
    """The items that need not be fetched again, by what an unfinished crawl knows."""
    workspace = siteloom.folder / ".siteloom"
    journals = [CrawlJournal(workspace, f"crawls/{file.name}") for file in (workspace / "crawls").glob("*")]
    done = {one.url.removeprefix(site.address) for journal in journals for one in journal.read().fetched}
    return done & ITEMS


def test_a_crawl_that_was_stopped_goes_on_where_it_was(siteloom: Command, site: WebSite) -> None:
    known: set[str] = set()
    for how in (signal.SIGKILL, signal.SIGINT):
        begin = len(site.asked)
        arguments = ["-c", STOPPED, str(int(how)), "7", "crawl", site.address + "/shop", *OPTIONS]
        said = run_warm(arguments, siteloom.folder, siteloom.environment).stderr
        assert ("Interrupted; what was done so far is kept." in said) == (how is signal.SIGINT)
        assert ("The same command goes on where this one was stopped." in said) == (how is signal.SIGINT)
        assert ("The same crawl was stopped after" in said) == bool(known)
        assert not known & set(site.paths[begin:])
        known = done_items(siteloom, site)
        assert set() < known <= stored(siteloom) < ITEMS

    old = {"url": "http://a.example/old", "html": "<p>", "fetched_at": "2001-01-01T00:00:00Z"}
    (siteloom.folder / "old.jsonl").write_text(json.dumps(old), encoding="utf-8")
    assert siteloom("ingest", "old.jsonl").returncode == 0
    begin = len(site.asked)
    keep = {"SITELOOM_RETENTION_DAYS": "30"}
    result = siteloom("crawl", site.address + "/shop", *OPTIONS, environment=keep)
    assert result.returncode == 0, result.stderr
    assert "known URLs left" in result.stderr
    assert "Fetched into" in result.stderr
    assert stored(siteloom) == ITEMS  # without what was kept for long enough
    assert not (known | {"/shop"}) & set(site.paths[begin:])
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
    host = site.address.removeprefix("http://")
    assert [(row["shape"].removeprefix(host), row["urls"], row["fetched"]) for row in rows] == [
        ("/shop/item/*.html", 16, 6),
        ("/*", 1, 1),
        ("/calendar/#/*", 1, 1),
        ("/shop/*?page", 1, 1),
    ]
    assert rows[0]["example"] == f"{site.address}/shop/item/0.html"
    assert set(site.paths) == {"/robots.txt", "/shop", "/sitemap.xml"}
    assert not (siteloom.folder / ".siteloom").exists()

    site.robots = b"User-agent: *\nDisallow: /shop/item/\n"
    written = siteloom("crawl", site.address + "/shop", *options, "-o", "shapes.csv")
    assert written.stderr == "What was found, by shape, is in shapes.csv.\n"
    lines = (siteloom.folder / "shapes.csv").read_text().splitlines()
    assert lines[1].startswith(f"{host}/shop/item/*.html,16,0,")  # what is forbidden is not fetched

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
    without = ("--private", "--delay", "0", "--include", "/none/*", "--exclude", "/calendar/*")
    unmatched = siteloom("crawl", site.address + "/shop/list?page=4", *without)
    assert one_sentence(unmatched) == (
        "No page matches --include '/none/*', of 5 pages that were walked for links: "
        "--dry-run lists the URLs by shape."
    )


def test_stylesheets_are_told_apart_from_pages(siteloom: Command, site: WebSite) -> None:
    site.also = {"/": b"<link rel=stylesheet href=/guide.css>", "/guide.css": b"p {}"}
    options = ("--private", "--delay", "0", "--pages", "1", "--requisites")
    told = " ".join(siteloom("crawl", site.address, *options).stderr.split())
    assert "│ new │ 2 │" in told
    assert "│ of these, stylesheets and images │ 1 │" in told
    told = " ".join(siteloom("crawl", site.address, *options, "-o", "a.warc").stderr.split())
    assert "│ pages │ 1 │ │ stylesheets │ 1 │" in told


def test_a_server_without_https_is_told(siteloom: Command, site: WebSite) -> None:
    result = siteloom("crawl", site.address.removeprefix("http://"), "--private", "--delay", "0")
    assert "the server does not speak https: try an address with http://" in " ".join(
        result.stderr.replace("│", " ").split()
    )


def test_an_archive_of_a_crawl_that_ended_early_is_no_success(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    work_inside(tmp_path, monkeypatch)
    page = Page("http://a.example/", b"<h1>A</h1>")
    lost = Failure(page.url, "process lost", "")

    def fetched(*events: object) -> Callable[[Crawl], Iterator[object]]:
        return lambda _: (event for event in events)

    arguments = ("crawl", page.url, "-o", "a.warc")
    monkeypatch.setattr(Crawl, "events", fetched(page, lost))
    assert "ended early, as shown above: what was fetched until then is in a.warc" in one_sentence(
        within(*arguments)
    )
    assert [item.url for item in open_source("a.warc").read()] == [page.url]
    Path("a.warc").unlink()

    def broken(_: Crawl) -> Iterator[object]:
        yield Skipped(page.url, "not HTML")
        raise SourceError("There is no browser.")

    monkeypatch.setattr(Crawl, "events", broken)
    assert one_sentence(within(*arguments)) == "There is no browser."
    assert not Path("a.warc").exists()  # which would be in the way the next time


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["ftp://x.example/"], "is no address of a web page"),
        (["pages"], "pages is a file or folder: siteloom ingest reads those"),
        (["x.example", "--include", "products"], "'*products*'"),
        (["x.example", "--exclude", " "], "must not be empty"),
        (["x.example", "y.example", "--pages", "1"], "at least 2"),
        (["x.example", "--pages", "0"], "at least 1"),
        (["x.example", "--delay", "-0.5"], "from 0 on"),
        (["x.example", "--delay", "nan"], "from 0 on"),
        (
            ["x.example", "--delay", "soon"],
            "--delay is a number of seconds from 0 on, such as 0.5, not soon.",
        ),
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
