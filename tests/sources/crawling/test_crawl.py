"""Pages from the web: real processes that fetch from a real server."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import HtmlResponse
from torture.warm import run_warm

from siteloom.core.errors import MissingExtra, UsageError
from siteloom.core.model import Failure, Page, Resource, Skipped
from siteloom.core.settings import CrawlSettings, PagesSettings
from siteloom.sources.crawling import crawl_source
from siteloom.sources.crawling.crawl_journal import DiscoveredLinks, DiscoveredUrl, FetchedUrl
from siteloom.sources.crawling.crawl_source import Crawl
from siteloom.sources.crawling.frontier import Frontier, template_shape
from siteloom.sources.crawling.links import links_of, stylesheets_of
from siteloom.sources.crawling.url_filters import UrlPatterns, checked_url
from tests.patience import SECONDS, wait_until
from tests.sources.crawling.web_site import A_LIST, CROOKED, GUIDE, LARGE, WebSite, served_site

ROOT = Path(__file__).parents[3]
HERE = CrawlSettings(delay=0, timeout=SECONDS, private=True, contact="crawls@example.org")


@pytest.fixture(scope="module")
def site() -> Iterator[WebSite]:
    with served_site() as site:
        yield site


def fetch(crawl: Crawl) -> dict[str, Page | Failure | Skipped]:
    items = [item for item in crawl.read() if not isinstance(item, Resource)]
    by_url = {item.url: item for item in items}
    assert len(by_url) == len(items)
    return by_url


def reason(item: Page | Failure | Skipped) -> str:
    assert not isinstance(item, Page)
    return item.reason


def test_each_url_of_a_list_is_a_page_or_a_failure_with_its_reason(site: WebSite) -> None:
    unused = "http://127.0.0.1:1/ü"
    no_name = "http://a..b/"
    # Another site, so that no page waits for it.
    busy = f"http://127.0.0.3:{site.port}/busy"
    paths = (
        *("/moved", "/latin", "/loop", "/large", "/packed", "/data", "/untyped", "/broken", "/door"),
        *("/members/ann", "/nowhere", "/latin#top", "/lost", "/crooked"),
    )
    urls = (busy, *(site.address + path for path in paths), unused, no_name)
    begin, began = len(site.asked), datetime.now(UTC)
    found = fetch(Crawl(urls, len(urls), settings=HERE, pages=PagesSettings(LARGE - 1)))
    asked = site.asked[begin:]

    page = found[site.address + A_LIST]  # where /moved leads to
    assert isinstance(page, Page)
    assert (page.html, page.charset) == (GUIDE[A_LIST], "utf-8")
    assert page.fetched_at is not None
    assert began <= page.fetched_at <= datetime.now(UTC)
    latin = found[site.address + "/latin"]
    assert isinstance(latin, Page)
    assert latin.charset == "iso-8859-1"
    assert isinstance(found[busy], Page)
    assert isinstance(found[site.address + "/crooked"], Page)  # though it leads to what is no address
    assert found[site.address + "/door"] == Skipped(
        site.address + "/door", "redirected to a page that was fetched before"
    )
    failures = {url: item for url, item in found.items() if isinstance(item, Failure)}
    assert {url.removeprefix(site.address): item.reason for url, item in failures.items()} == {
        "/loop": "too many redirects",
        "/large": "page too large",
        "/packed": "page too large",
        "/data": "not HTML",
        "/untyped": "not HTML",
        "/broken": "status 500",
        "/members/ann": "forbidden by robots.txt",
        "/nowhere": "status 404",
        "/lost": "status 302",
        unused: "connection refused",
        no_name: "unknown host",
    }
    assert failures[unused].detail == ""
    assert failures[site.address + "/data"].detail == "it is application/json"
    assert len(found) == len(urls) - 1  # the fragment does not make another page

    counted = Counter(path for path, _, _ in asked)
    assert counted["/members/ann"] == 0
    assert counted["/robots.txt"] == 2  # of two hosts
    assert counted["/broken"] == 3
    first, second = [moment for path, moment, _ in asked if path == "/busy"]
    assert second - first >= 0.95
    (agent,) = {agent for _, _, agent in asked}
    assert re.fullmatch(r"Siteloom/[0-9.a-z]+ \(\+crawls@example\.org\)", agent)


def test_a_page_that_takes_too_long_is_a_failure(site: WebSite) -> None:
    settings = replace(HERE, timeout=1)
    (failure,) = fetch(Crawl((site.address + "/slow",), 1, settings=settings)).values()
    assert reason(failure) == "too slow"


def test_from_a_start_page_all_shapes_of_the_site_get_their_share(site: WebSite) -> None:
    begin = len(site.asked)
    found = fetch(Crawl((site.address + "/",), 60, follows=True, settings=HERE))
    paths = [path for path, _, _ in site.asked[begin:]]
    pages = [url for url, item in found.items() if isinstance(item, Page)]
    assert len(pages) == 60
    shapes = Counter(url.removeprefix(site.address).split("/")[1] for url in pages)
    assert {"", "cuisine", "restaurants", "calendar", "nest"} <= shapes.keys()
    assert max(shapes["calendar"], shapes["nest"]) <= 15
    assert shapes["restaurants"] >= 15
    assert "/members/ann" not in paths
    assert reason(found[site.address + "/members/ann"]) == "forbidden by robots.txt"
    assert found[site.address + "/away"] == Skipped(site.address + "/away", "redirected to another site")
    assert paths.count("/") == 1  # and not a second time at the other address
    assert found[site.address + "/data"] == Skipped(site.address + "/data", "not HTML but application/json")
    assert isinstance(found[site.address + "/nowhere"], Failure)
    assert site.address + "/moved" not in pages
    assert site.address + "/nest/" in pages  # which is linked behind links that lead nowhere


def test_a_process_that_cannot_begin_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl_source, "_PROGRAM", "no.such.program")
    (lost,) = Crawl(("http://x.example/" + "x" * 1_000_000,), 1).read()
    assert isinstance(lost, Failure)
    assert (lost.reason, lost.detail) == ("process lost", "what fetches pages ended with status 1")


def test_nothing_within_private_networks_is_fetched(site: WebSite) -> None:
    names = (
        *(
            "127.0.0.1",
            "LocalHost",
            "127.1",
            "2130706433",
            "0x7f.0.0.1",
            "0x7f.1",
            "0177.0.0.1",
            "0.0.0.0",
            "0",
        ),
        *("169.254.169.254", "192.0.0.192", "192.88.99.1", "[::1]", "[::ffff:7f00:1]", "[::127.0.0.1]"),
        *("[64:ff9b::127.0.0.1]", "[64:ff9b:1::127.0.0.1]", "[2002:7f00:1::]", "[fec0::1]", "[ff02::1]"),
    )
    # Whether these are addresses at all is for the system to say.
    others = ("127.0.0.2.", "localhost.", "[::1%25lo]", "[fe80::1%25lo]", "%31%32%37.0.0.1", "x@127.0.0.3")
    urls = tuple(f"http://{name}:{site.port}/" for name in (*names, *others))
    begin = len(site.asked)
    found = fetch(Crawl(urls, len(urls), settings=CrawlSettings(delay=0)))
    assert len(found) == len(urls)
    assert {reason(found[url]) for url in urls[: len(names)]} == {"private address"}
    assert not [one for one in found.values() if isinstance(one, Page)]
    assert len(site.asked) == begin


def test_letters_that_stand_for_digits_lead_into_no_private_network(site: WebSite) -> None:
    hosts = ("\u2460\u2461\u2466.0.0.1", "127\u30020\u30020\u30022", "\uff11\uff12\uff17.0.0.3")
    urls = tuple(f"http://{host}:{site.port}/" for host in hosts)
    begin = len(site.asked)
    found = fetch(Crawl(urls, len(urls), settings=CrawlSettings(delay=0)))
    assert {reason(item) for item in found.values()} == {"private address"}
    assert len(site.asked) == begin


def test_redirects_and_names_do_not_lead_into_private_networks(
    site: WebSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawl_source, "_PROGRAM", "tests.sources.crawling.crawl_near_127_0_0_1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # which would find addresses on its own
    hosts = ("inside", "both", "outside")
    urls = (site.address + "/away", *(f"http://{name}.example:{site.port}/latin" for name in hosts))
    found = fetch(Crawl(urls, len(urls), settings=CrawlSettings(delay=0)))
    away, inside, both, outside = (found[url] for url in urls)
    assert away == Failure(
        site.address + "/away",
        "private address",
        "127.0.0.2 is within a private network: to allow this, give --private, or set private = true "
        "under [crawl] in siteloom.toml, or SITELOOM_CRAWL_PRIVATE=true, and start Siteloom again; "
        f"redirected to http://127.0.0.2:{site.port}/",
    )
    assert reason(inside) == "private address"
    assert isinstance(both, Page)
    assert isinstance(outside, Page)


def test_what_is_no_address_keeps_no_other_from_being_found() -> None:
    page = HtmlResponse("http://x.example/a/", body=CROOKED, encoding="utf-8")
    assert [*links_of(page), *stylesheets_of(page)] == []
    without_base = page.replace(body=CROOKED.replace(b"<base", b"<i") + b'<a href="b">b</a>')
    assert set(links_of(without_base)) == {"http://x.example/nest/", "http://x.example/a/b"}


def children() -> set[int]:
    """The processes that this one has started and that still run."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text().split()}


def test_whoever_stops_reading_ends_the_process(site: WebSite) -> None:
    before = children()
    items = iter(Crawl((site.address + "/calendar/2026/1",), 100_000, follows=True, settings=HERE).read())
    assert isinstance(next(items), Page)
    (process,) = children() - before
    items.close()  # type: ignore[attr-defined]
    assert children() == before

    items = iter(Crawl((site.address + "/calendar/2026/1",), 100_000, follows=True, settings=HERE).read())
    first = next(items)
    (process,) = children() - before
    os.kill(process, signal.SIGKILL)
    *_, last = items
    assert last == Failure(first.url, "process lost", "what fetches pages ended with status -9")
    assert children() == before


def test_the_process_does_not_outlive_the_one_that_reads(site: WebSite) -> None:
    program = f"""
import os, signal
from pathlib import Path
from siteloom.core.settings import CrawlSettings
from siteloom.sources.crawling.crawl_source import Crawl
settings = CrawlSettings(delay=0, private=True)
for _ in Crawl(("{site.address}/calendar/2026/1",), 100_000, True, settings).read():
    print(Path("/proc/self/task", str(os.getpid()), "children").read_text(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    told = run_warm(["-c", program], ROOT, os.environ)
    assert told.returncode == -signal.SIGKILL
    wait_until(lambda: not Path("/proc", told.stdout.strip()).exists())


def test_the_process_ends_in_peace_while_its_input_is_open(site: WebSite) -> None:
    with subprocess.Popen(
        [sys.executable, "-P", "-W", "ignore", "-m", "siteloom.sources.crawling"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        pickle.dump(Crawl((site.address + A_LIST,), 1, settings=HERE), process.stdin)
        process.stdin.flush()
        url = site.address + A_LIST
        assert pickle.load(process.stdout) == DiscoveredLinks((DiscoveredUrl(url, 0),))
        assert isinstance(pickle.load(process.stdout), Page)
        assert pickle.load(process.stdout) == FetchedUrl(url, url, is_collected=True)
        assert pickle.load(process.stdout) == crawl_source.CrawlEnded()
        assert (process.wait(SECONDS), process.stderr.read()) == (0, b"")


def test_without_scrapy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl_source, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"siteloom\[crawl\]"):
        next(iter(Crawl(("http://x.example/",), 1).read()))


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("https://example.org/a?b=c", "https://example.org/a?b=c"),
        (" example.org ", "https://example.org"),
        ("HTTP://Example.org:8080/", "HTTP://Example.org:8080/"),
        ("http://café.example/ü", "http://café.example/ü"),
    ],
)
def test_an_address_is_taken_as_a_person_writes_it(written: str, url: str) -> None:
    assert checked_url(written) == url


@pytest.mark.parametrize(
    "written",
    [
        *(
            "",
            "  ",
            "https://",
            "ftp://example.org/",
            "file:///etc/passwd",
            "http://[",
            "http://a b.example/",
        ),
        *(
            "http://x.example:99999/",
            "http://x.example:0/",
            "mailto:a@b.example",
            "http://a..b/",
            "http://x\n/",
            "http://x.example/\ud800",
        ),
        *("http://ann:secret@x.example/", "http://ann@x.example/"),
    ],
)
def test_what_is_no_address_is_told_in_a_sentence(written: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked_url(written)
    assert str(caught.value).endswith(".")
    assert "secret" not in str(caught.value)


def drain(frontier: Frontier) -> Iterator[DiscoveredUrl]:
    while (found := frontier.next_url()) is not None:
        yield found
        frontier.ended(is_collected=True)


def test_shapes_take_turns_and_what_was_asked_for_comes_first() -> None:
    frontier = Frontier(9)
    for number in range(20):
        frontier.add(DiscoveredUrl(f"http://x.example/shop/{number}.html", 1))
    for number in range(3):
        frontier.add(DiscoveredUrl(f"http://x.example/news/{number}.html", 1))
    assert not frontier.add(DiscoveredUrl("http://x.example/shop/3.html#top", 1))
    frontier.add(DiscoveredUrl("http://x.example/", 0))
    first, *rest = [found.url for found in drain(frontier)]
    assert first == "http://x.example/"
    assert [url.split("/")[3] for url in rest] == ["shop", "news"] * 3 + ["shop"] * 2
    assert not frontier.has_urls_left


def test_names_right_under_the_host_are_of_one_shape() -> None:
    assert template_shape("http://x.example/red-shoes") == template_shape("http://x.example/blue-shoes")
    assert template_shape("http://x.example/") != template_shape("http://x.example/blue-shoes")
    assert template_shape("http://x.example/a?page=1") == "x.example/*?page"


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), max_size=40),
    st.integers(1, 12),
    st.lists(st.booleans(), max_size=80),
)
def test_never_more_pages_than_wanted_and_none_twice(
    links: list[tuple[int, int]], most_pages: int, outcomes: list[bool]
) -> None:
    frontier = Frontier(most_pages)
    for number, clicks in links:
        frontier.add(DiscoveredUrl(f"http://x.example/{'abc'[number % 3]}/{number}", clicks))
    taken: list[str] = []
    under_way = pages = 0
    while (found := frontier.next_url()) is not None or under_way:
        if found is not None:
            taken.append(found.url)
            under_way += 1
        if found is None or under_way == 3:
            is_page = outcomes.pop() if outcomes else True
            frontier.ended(is_collected=is_page)
            pages += is_page
            under_way -= 1
    assert pages <= most_pages
    assert len(taken) == len(set(taken))
    known = len({number for number, _ in links})
    assert pages == most_pages or len(taken) == min(known, 5 * most_pages)


def test_a_site_whose_links_are_dead_is_given_up() -> None:
    frontier = Frontier(2)
    for number in range(1_000):
        frontier.add(DiscoveredUrl(f"http://x.example/a/{number}", 1))
    tried = 0
    while frontier.next_url() is not None:
        frontier.ended(is_collected=False)
        tried += 1
    assert tried == 10
    assert not frontier.has_urls_left


def test_an_address_that_is_too_long_is_no_link() -> None:
    assert not Frontier(1).add(DiscoveredUrl("http://x.example/" + "a" * 3_000, 1))


def test_a_site_that_makes_up_links_does_not_fill_the_memory() -> None:
    frontier = Frontier(2)
    taken = [
        frontier.add(DiscoveredUrl(f"http://x.example/a{number:030b}/{number}", 1)) for number in range(1_000)
    ]
    assert taken == [True] * 10 + [False] * 990  # of one shape, as many as would be tried
    shapes = [f"http://x.example/{'a' * number}/1" for number in range(1_000)]
    assert [frontier.add(DiscoveredUrl(url, 1)) for url in shapes] == [True] * 390 + [False] * 610
    assert frontier.add(DiscoveredUrl("http://x.example/asked-for", 0))
    assert frontier.next_url() == DiscoveredUrl("http://x.example/asked-for", 0)


def test_an_address_is_known_in_whatever_way_it_is_written() -> None:
    frontier = Frontier(9)
    assert frontier.add(DiscoveredUrl("http://x.example/a?b=1&a=2", 1))
    for same in ("http://x.example/a?b=1&a=2", "http://x.example/a?a=2&b=1", "http://X.example/a?a=2&b=1#c"):
        assert not frontier.add(DiscoveredUrl(same, 1))


def walked(most_pages: int, patterns: UrlPatterns = UrlPatterns()) -> tuple[Counter[str], list[str]]:
    """How many pages of each kind are fetched of a made-up site, and all of them.

    It has a list of 60 pages with 10 items each, an endless calendar, and an endless nest.
    """
    frontier = Frontier(most_pages, patterns)
    frontier.add(DiscoveredUrl("http://x.example/", 0))
    fetched: list[str] = []
    while (found := frontier.next_url()) is not None:
        path = found.url.removeprefix("http://x.example")
        fetched.append(path)
        match path.strip("/").replace("?page=", "/").split("/"):
            case ["list", "all", page]:
                items = [f"/item/{int(page) * 10 + number}" for number in range(10)]
                links = [
                    "/",
                    "/about",
                    *items,
                    *([f"/list/all?page={int(page) + 1}"] if page != "60" else ()),
                ]
            case ["calendar", year, month]:
                at = int(year) * 12 + int(month)
                links = ["/", f"/calendar/{at // 12}/{at % 12 + 1}", f"/calendar/{int(year) + 1}/1"]
            case ["nest", *_]:
                links = [path + "deeper/"]
            case _:
                links = ["/list/all?page=1", "/calendar/2026/1", "/about", "/nest/"]
        frontier.add_links([f"http://x.example{link}" for link in links], found)
        frontier.ended(is_collected=patterns.includes(found.url))
    return Counter(path.split("/")[1] for path in fetched), fetched


def test_long_lists_are_followed_and_an_endless_calendar_takes_little() -> None:
    few, _ = walked(40)
    assert min(few[kind] for kind in ("list", "item", "calendar", "nest", "about")) >= 1
    assert few["calendar"] <= 6
    some, _ = walked(300)
    assert some["list"] == 60
    assert some["calendar"] <= 30
    all_there_is, fetched = walked(10_000)
    assert all_there_is["item"] == 600
    assert all_there_is["calendar"] < 300  # though there would be no end of it
    assert max(path.count("deeper") for path in fetched) == 2


def test_pages_that_are_not_kept_are_walked_until_enough_are_known() -> None:
    counts, fetched = walked(50, UrlPatterns(include=("/item/*",), exclude=("/item/*7", "/nest/*")))
    assert counts["item"] == 50
    assert counts["list"] <= 12
    assert counts["nest"] == 0
    assert not any(path.endswith("7") for path in fetched if path.startswith("/item/"))
    nothing, _ = walked(50, UrlPatterns(include=("/nowhere/*",)))
    assert nothing.total() == 50 * 5 + 200  # there may be many such pages behind the next one


def test_a_slash_in_the_end_makes_no_shape_of_its_own_for_each_page() -> None:
    assert template_shape("http://x.example/posts/a-post/") == template_shape("http://x.example/posts/b/")
    assert template_shape("http://x.example/posts/a/") != template_shape("http://x.example/tags/a/")
    assert template_shape("http://x.example/a/") == template_shape("http://x.example/b/") == "x.example/*/"
    assert template_shape("http://x.example") == template_shape("http://x.example/") == "x.example/"
    assert template_shape("http://x.example/?q=1") == "x.example/?q"
