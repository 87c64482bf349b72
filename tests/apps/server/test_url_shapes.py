"""URLs by shape: what is found in a text, what is counted, what differs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import product
from string import ascii_lowercase
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.apps.server import create_app
from siteloom.core.model import Page, Resource
from siteloom.core.settings import Settings, StoreSettings
from siteloom.core.urls import url_shape
from siteloom.operations.cluster import cluster_store
from siteloom.operations.list_urls import group_urls, urls_in_text
from siteloom.sources.example_files import ExampleLine
from siteloom.store.queries.pages import PageUrl
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.demo.sites import directory, guide, of_kind
from tests.apps.server.browsing import Browser
from tests.operations.calls import annotate_pages, learn_wrappers
from tests.store.helpers import put

GUIDE = "larkmoor-guide.example"
SITEMAP = """<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc> https://a.example/1&amp;2 </loc></url>
<url><loc><![CDATA[https://a.example/3]]></loc></url>
</urlset>"""


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        (
            "https://a.example/1\n\n https://a.example/2 \nhttps://a.example/1",
            ["https://a.example/1", "https://a.example/2"],
        ),
        (
            "shop.example/p?id=1\nwww.shop.example",
            ["https://shop.example/p?id=1", "https://www.shop.example"],
        ),
        (
            "See https://a.example/x_(y), then (http://b.example/z).",
            ["https://a.example/x_(y", "http://b.example/z"],
        ),
        ("https://a.example/x_(y)", ["https://a.example/x_(y)"]),
        (
            '<p><a href="https://a.example/?a=1&amp;b=2">http://not.example</a>',
            ["https://a.example/?a=1&b=2"],
        ),
        (
            SITEMAP,
            ["https://a.example/1&2", "https://a.example/3"],
        ),
        ("nothing here, e.g. in readme.md or at ftp://a.example/", []),
        ("", []),
    ],
)
def test_urls_are_found_in_lines_sentences_html_and_sitemaps(text: str, urls: list[str]) -> None:
    assert urls_in_text(text).urls == urls


def test_urls_of_all_kinds_are_found_together_and_lines_without_are_counted() -> None:
    text = """https://a.example/1
See https://a.example/2, and
<ul>
<li><a href="https://a.example/3?a=1&amp;b=2">https://a.example</a>
</ul>
b.example/4

javascript:void(0)
ftp://a.example/5
https://[::1
just text"""
    found = urls_in_text(text)
    assert found.urls == [
        "https://a.example/1",
        "https://a.example/2",
        "https://a.example/3?a=1&b=2",
        "https://b.example/4",
    ]
    assert found.lines_without == 4


def test_of_a_whole_page_only_the_links_are_taken() -> None:
    text = """<html><body><script>
load("https://cdn.example/x.js")
</script><a
 href="https://a.example/1">One</a></body></html>"""
    assert urls_in_text(text) == (["https://a.example/1"], 0)


@given(st.text())
def test_any_text_can_be_searched(text: str) -> None:
    for url in urls_in_text(text).urls:
        assert url.lower().startswith(("http://", "https://"))
        assert not any(letter.isspace() for letter in url)


def test_long_texts_take_no_time() -> None:
    for text in (
        "a" * 10**6,
        "a." * 10**6,
        "http://" * 10**5,
        "<loc>" * 10**5,
        "href=" * 10**5,
        "-." * 10**6,
    ):
        urls_in_text(text)


@pytest.mark.parametrize(
    "start", ["href=", "href", 'href="', "href='", "<loc>", "<loc><![CDATA[", "http://a", "a.b", ""]
)
def test_blanks_take_no_longer_than_letters(start: str) -> None:
    assert _seconds(start.ljust(10**6)) < 0.2 + 20 * _seconds("a" * 10**6)


def _seconds(text: str) -> float:
    begun = process_time()
    urls_in_text(text)
    return process_time() - begun


_STEP = st.text("ab1-.", max_size=4)
_URLS = st.builds(
    lambda host, steps, query: f"https://{host}.example/{'/'.join(steps)}{query}",
    st.sampled_from(["a", "b"]),
    st.lists(_STEP, max_size=3),
    st.sampled_from(["", "?", "?id=1", "?id=2&q=x", "?q=&id=1", "#part", "?id"]),
)


@given(st.lists(st.tuples(_URLS, st.sampled_from([None, "t/1", "t/2"]))))
def test_every_url_is_counted_once_and_can_be_put_together_from_its_parts(
    pages: list[tuple[str, str | None]],
) -> None:
    def wrappers_for(url: str) -> list[str]:
        return ["w/1", "w/2"] if "a" in url else []

    found = group_urls([PageUrl(*page) for page in pages], wrappers_for)
    assert found.urls == sum(row.count for row in found.rows) == len(pages)
    assert found.shapes == len(found.rows) == len({url_shape(url) for url, _ in pages})
    assert found.unmatched == sum("a" not in url for url, _ in pages)
    assert [row.count for row in found.rows] == sorted((row.count for row in found.rows), reverse=True)
    for row in found.rows:
        own = [page for page in pages if url_shape(page[0]) == row.shape]
        assert list(row.examples) == [url for url, _ in own][:3]
        assert {one.name: one.count for one in row.templates} == {
            name: count for name in ("t/1", "t/2") if (count := sum(cluster == name for _, cluster in own))
        }
        assert sum(one.count for one in row.wrappers) == 2 * (row.count - row.unmatched)
        steps = [part for part in row.parts if part.kind != "query"]
        path = [step for step in row.shape.split("?")[0].split("/") if step]
        assert all(any(value in url for url, _ in own) for part in row.parts for value in part.values)
        assert all(part.varies == (len(part.values) > 1) for part in row.parts)
        assert steps[0].kind == "host"
        assert [part.name for part in steps] == path


def test_words_choose_urls_and_a_limit_the_largest_shapes() -> None:
    urls = [PageUrl(f"https://a.example/{kind}/{n}", None) for kind in ("p", "Q") for n in range(3)]
    urls.append(PageUrl("https://a.example/p/list", None))
    found = group_urls(urls, lambda _: [], "example q")
    assert [(row.shape, row.count) for row in found.rows] == [("a.example/Q/*", 3)]
    limited = group_urls(urls, lambda _: [], limit=1)
    assert (limited.urls, limited.shapes, [row.shape for row in limited.rows]) == (7, 2, ["a.example/p/*"])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The guide, whose restaurants have a wrapper, and the directory, which has none."""
    folder = tmp_path_factory.mktemp("urls") / ".siteloom"
    with closing(open_store(StoreSettings(workspace=str(folder)), create=True)) as opened:
        places = of_kind(guide(), "restaurant")[:24]
        put(opened, *(one.page for one in places))
        put(opened, *(one.page for one in of_kind(guide(), "event")[:8]))
        put(opened, Resource(f"https://www.{GUIDE}/style.css", b"p{}", "text/css"))
        cluster_store(opened, "vertex")
        annotate_pages(opened, [ExampleLine(one.page.url, one.truth, (), {}) for one in places[:4]])
        for name in [one.name for one in opened.cluster_summaries() if one.annotated]:
            learn_wrappers(opened, name)
        put(opened, *(one.page for one in of_kind(directory(), "restaurant")[:3]))
        put(opened, Page("https://x.example/<b>", b"<p>"), site="odd <i>/site")
        opened.save_wrapper("broken/1", "broken", "{}", "learn")
        yield opened


@pytest.fixture(scope="module")
def client(store: Store) -> Browser:
    browser = Browser(create_app(store, Settings()))
    browser.look("/")
    return browser


def test_the_urls_of_a_site_tell_their_wrappers_and_templates(client: Browser, store: Store) -> None:
    told = client.get(f"/api/sites/{GUIDE}/urls").json()
    assert told["urls"] == store.page_count(GUIDE) == 32
    assert sum(row["count"] for row in told["rows"]) == 32
    wrappers = {one.name for one in store.wrappers() if one.site == GUIDE}
    for row in told["rows"]:
        names = {one["name"] for one in row["wrappers"]}
        assert bool(names) == ("/restaurants/" in row["shape"])
        assert names <= wrappers
        assert row["templates"]
    assert told["unmatched"] == 8  # the events
    page = client.look(f"/sites/{GUIDE}/urls?words=EVENTS")
    assert "8 URLs with “EVENTS”" in page
    assert "/restaurants/" not in page
    assert "No URL has “nowhere” in it" in client.look(f"/sites/{GUIDE}/urls?words=nowhere")


def test_names_and_urls_are_texts_on_the_page(client: Browser) -> None:
    answer = client.get("/sites/odd%20%3Ci%3E/site/urls")
    assert answer.status_code == 200
    assert "<i>" not in answer.text
    assert "<b>" not in answer.text
    assert client.get("/api/sites/odd%20%3Ci%3E/site/urls").json()["urls"] == 1


def test_there_are_no_urls_of_a_site_that_is_not_there(client: Browser) -> None:
    for path in ("/api/sites/b.example/urls", "/sites/b.example/urls"):
        assert client.get(path).status_code == 404
    assert client.get(f"/api/sites/{GUIDE}/urls?limit=0").status_code == 422


@pytest.mark.parametrize(
    "url", ["https://a.example/" + "/".join("x" * 400_000), "https://a.example/?" + "&".join("x" * 400_000)]
)
def test_a_url_of_very_many_parts_is_refused_and_those_beside_it_are_sorted(
    client: Browser, url: str
) -> None:
    refused = client.send("POST", "/api/urls", {"urls": [url]})
    assert refused.status_code == 400
    assert refused.json()["detail"].endswith(f"it has {len(url):,} characters; at most 16,000 are taken.")
    assert len(refused.content) < 500
    told = client.send("POST", "/api/urls", {"text": f"https://a.example/1\n{url}"}).json()
    assert (told["urls"], told["lines_without"]) == (1, 1)


def test_an_answer_has_a_bounded_number_of_parts_and_shapes(client: Browser) -> None:
    """A request has at most a megabyte, and its answer must not be many times as large."""
    names = ["".join(letters) for letters in product(ascii_lowercase, repeat=3)]
    deep = [f"https://a.example/{name}{'/x' * 190}" for name in names[:600]]
    rows = client.send("POST", "/api/urls", {"urls": deep}).json()["rows"]
    assert [url for row in rows for url in row["urls"]] == deep
    assert {len(row["parts"]) for row in rows[:100]} == {192}
    assert sum(len(row["parts"]) for row in rows) <= 20_000
    wide = [f"https://a.example/{name}" for name in names]
    assert len(client.send("POST", "/api/urls", {"urls": wide[:10_000]}).json()["rows"]) == 10_000
    refused = client.send("POST", "/api/urls", {"urls": wide[:10_001]})
    assert refused.status_code == 400
    assert "10,001 shapes" in refused.json()["detail"]


def test_pasted_urls_are_sorted_and_not_kept(client: Browser, store: Store) -> None:
    known = of_kind(guide(), "restaurant")[0].page.url
    text = f"{known}\n{known}x\nhttps://new.example/p/1\n"
    told = client.send("POST", "/api/urls", {"text": text, "urls": ["https://new.example/p/2"]}).json()
    assert (told["urls"], told["archived"]) == (4, 1)
    rows = {row["shape"]: row for row in told["rows"]}
    new = rows["new.example/p/*"]
    assert (new["urls"], new["archived"]) == (["https://new.example/p/2", "https://new.example/p/1"], 0)
    assert (new["wrappers"], new["unmatched"]) == ([], 2)
    (guides,) = [row for shape, row in rows.items() if shape.endswith("*.html")]
    assert guides["wrappers"][0]["count"] == guides["archived"] == 1
    assert "new.example" not in {site.name for site in store.sites()}
    refused = client.send("POST", "/api/urls", {"text": "none"})
    assert refused.status_code == 400
    assert refused.json()["detail"].startswith("There is no URL in this")
