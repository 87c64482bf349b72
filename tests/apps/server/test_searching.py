"""The search page and its JSON: hits, facets, what is not indexed yet, and whatever people type."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from html import escape
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html
from lxml.html import HtmlElement

from siteloom.apps.server import create_app
from siteloom.apps.server.views.search import marked, search_link
from siteloom.core.model import Page
from siteloom.core.settings import Settings, StoreSettings
from siteloom.operations.search import SearchRequest, update_index
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.server.browsing import Browser
from tests.apps.server.conftest import People
from tests.apps.server.running_jobs import run_job
from tests.operations.contexts import context_of
from tests.operations.test_search import extract
from tests.store.helpers import day, put
from tests.store.test_overview import cluster

SITE = "a.example"
TREES = ("Oak", "Elm", "Fir", "Ash", "Yew")
EVIL = '<script>alert("boo")</script>'
MANY = 230


def tree(name: str, about: str = "of the north") -> Page:
    text = f"<title>{name} - Garden</title><body><h1>{name}</h1><p>It is {about}.</p></body>"
    return Page(f"http://{SITE}/{name}", text.encode(), day(0))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A garden: trees with pages and records, two records on one page, a page that is hostile, and moss."""
    folder = tmp_path_factory.mktemp("search") / ".siteloom"
    with closing(open_store(StoreSettings(workspace=str(folder)), create=True)) as opened:
        put(opened, *map(tree, TREES))
        escaped = escape(EVIL)
        evil = f"<title>{escaped}</title><p>evil: {escaped}</p>"
        put(opened, Page("http://evil.example/", evil.encode(), day(0)))
        put(opened, *(Page(f"http://moss.example/{n}", f"<p>moss {n * 7919}".encode()) for n in range(MANY)))
        _cluster(opened)
        opened.save_wrapper("plants", SITE, "{}", "learn")
        extract(opened, [("Oak", "sun"), ("Elm", "full shade"), ("Elm", "half shade"), ("Yew", EVIL)])
        update_index(context_of(opened))
        yield opened


def _cluster(store: Store) -> None:
    addresses = [PageAddress(SITE, f"http://{SITE}/{name}") for name in TREES]
    with store.clustering({"site": None}) as run:
        store.save_clusters(run.id, [cluster(f"{SITE}/1", 0, 1, 2)], addresses)


@pytest.fixture(scope="module")
def client(store: Store) -> Browser:
    return Browser(create_app(store, Settings()))


def looked(client: Browser, path: str, status: int = 200) -> HtmlElement:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    return html.document_fromstring(answer.text)


def asked(client: Browser, query: str) -> Any:
    answer = client.get(f"/api/search?{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def text_of(element: HtmlElement) -> str:
    return " ".join(element.text_content().split())


def test_hits_have_their_words_marked_and_lead_to_their_pages(client: Browser) -> None:
    found = asked(client, "words=oak")
    assert {hit["kind"]: hit["url"] for hit in found["hits"]} == dict.fromkeys(
        ("page", "record"), f"http://{SITE}/Oak"
    )
    assert found["facets"] == {
        "site": {SITE: 2},
        "cluster": {f"{SITE}/1": 2},
        "kind": {"page": 1, "record": 1},
        "attribute": {"name": 1},
    }
    page, record = (next(hit for hit in found["hits"] if hit["kind"] == kind) for kind in ("page", "record"))
    assert [page["title"][start:end] for start, end in page["title_places"]] == ["Oak"]
    assert page["cluster"] == record["cluster"] == f"{SITE}/1"
    assert record["attributes"] == ["name"]
    where = urlsplit(page["link"])
    assert (where.path, parse_qs(where.query)) == (
        "/pages/at",
        {"url": [f"http://{SITE}/Oak"], "site": [SITE], "words": ["oak"]},
    )
    assert parse_qs(urlsplit(record["link"]).query) == {
        "url": [f"http://{SITE}/Oak"],
        "site": [SITE],
        "record": ["0"],
        "attribute": ["name"],
    }
    shown = looked(client, "/search?words=oak")
    assert {mark.text for mark in shown.xpath("//*[@data-hit]//mark")} == {"Oak"}
    assert set(shown.xpath("//a[@data-hit]/@href")) == {page["link"], record["link"]}


def test_which_record_of_a_page_is_meant(client: Browser) -> None:
    (half,) = asked(client, "words=half&kind=record")["hits"]
    (full,) = asked(client, "words=full&kind=record")["hits"]
    assert parse_qs(urlsplit(half["link"]).query)["record"] == ["1"]
    assert parse_qs(urlsplit(full["link"]).query)["record"] == ["0"]


def test_hits_are_limited_by_links_that_can_be_taken_back(client: Browser) -> None:
    shown = looked(client, "/search?words=elm")
    assert text_of(shown.xpath("//aside")[0]).startswith("Limit the hits Counts of all 3 hits.")
    (records,) = shown.xpath("//aside//a[starts-with(normalize-space(), 'Records')]/@href")
    shown = looked(client, str(records))
    assert len(shown.xpath("//a[@data-hit]")) == 2
    (back,) = shown.xpath("//aside//a[@class='chosen']/@href")
    assert len(looked(client, str(back)).xpath("//a[@data-hit]")) == 3
    (light,) = looked(client, "/search?words=shade").xpath("//aside//a[starts-with(., 'light')]/@href")
    assert parse_qs(urlsplit(str(light)).query) == {"words": ["shade"], "attribute": ["light"]}
    assert len(looked(client, str(light)).xpath("//a[@data-hit]")) == 2
    assert asked(client, f"words=oak&site={SITE}&cluster={SITE}/1&kind=page")["looked_through"] == 1


def test_a_link_never_asks_for_pages_by_an_attribute() -> None:
    search = SearchRequest(text="x", kind="page", site="a")
    assert search_link(search, {"attribute": "name"}) == "/search?words=x&site=a&attribute=name"
    search = SearchRequest(text="x", attribute="name")
    assert search_link(search, {"kind": "page"}) == "/search?words=x&kind=page"
    assert search_link(search, {}, 3) == "/search?words=x&attribute=name&page=3"


def test_the_best_two_hundred_are_paged_through(client: Browser) -> None:
    seen: list[str] = []
    path: str | None = "/search?words=moss"
    while path is not None:
        shown = looked(client, path)
        assert "More than 200 hits" in text_of(shown)
        seen += [str(link) for link in shown.xpath("//a[@data-hit]/@href")]
        path = next(map(str, shown.xpath("//a[@rel='next']/@href")), None)
    assert len(set(seen)) == len(seen) == 200
    assert "Counts of the best 200 hits; there are more." in text_of(shown)
    assert looked(client, "/search?words=oak&page=9").xpath("//a[@data-hit]") == []
    assert client.get("/search?words=oak&page=11").status_code == 422


def test_if_nothing_has_all_words_some_is_told_so(client: Browser) -> None:
    shown = looked(client, "/search?words=oak+zebra")
    assert "has all of these words; these have some of them" in text_of(shown)
    shown = looked(client, "/search?words=zebra&kind=page")
    assert "Nothing was found" in text_of(shown)
    assert shown.xpath("//a[.='Search everywhere']/@href") == ["/search?words=zebra"]


def test_what_pages_and_records_say_is_only_text(client: Browser) -> None:
    answer = client.get("/search?words=alert")
    assert "<script>alert" not in answer.text
    shown = html.document_fromstring(answer.text)
    titles = {text_of(hit) for hit in shown.xpath("//a[@data-hit]")}
    assert EVIL in titles
    assert any(EVIL in text_of(one) for one in shown.xpath("//p[@class='snippet']"))
    assert set(shown.xpath("//mark/text()")) == {"alert"}


@pytest.mark.parametrize(
    "words",
    [
        '"',
        "'",
        "oak OR (",
        "oak*",
        "title:oak",
        "NEAR(oak, elm)",
        "oak & | !",
        "\\",
        "%",
        "😀",
        "a\0b",
        "^oak{}",
    ],
)
def test_whatever_is_typed_is_words(client: Browser, words: str) -> None:
    answer = client.get(f"/search?words={quote(words)}")
    assert answer.status_code in (200, 400)
    box = html.document_fromstring(answer.text).xpath("//form[@role='search']//input[@name='words']/@value")
    assert box[0].replace("\N{REPLACEMENT CHARACTER}", "\0") == words
    assert client.get(f"/api/search?words={quote(words)}").status_code == answer.status_code


@given(st.text(max_size=30))
def test_no_text_breaks_the_search(client: Browser, words: str) -> None:
    answer = client.get(f"/search?words={quote(words, errors='replace')}")
    assert answer.status_code in (200, 400)


def test_a_whole_text_is_searched_by_its_beginning(client: Browser) -> None:
    answer = client.get(f"/search?words={'oak+' * 2_500}")
    assert answer.status_code == 200
    assert len(answer.text) < 100_000
    assert "Oak" in answer.text


@pytest.mark.parametrize(
    ("query", "status", "sentence"),
    [
        ("words=oak&site=nowhere", 404, "There is no site nowhere."),
        ("words=oak&cluster=a.example/9", 404, "There is no template a.example/9."),
        ("words=oak&attribute=colour", 404, "No record that is indexed has an attribute colour."),
        ("words=oak&attribute=name&kind=page", 400, "Only records have attributes"),
        ("words=-oak", 400, "There is no word to look for besides what is excluded"),
    ],
)
def test_mistakes_are_told_beside_what_was_typed(
    client: Browser, query: str, status: int, sentence: str
) -> None:
    answer = client.get(f"/api/search?{query}")
    assert (answer.status_code, sentence in answer.json()["detail"]) == (status, True)
    shown = looked(client, f"/search?{query}", status)
    assert sentence in text_of(shown.xpath("//*[@role='alert']")[0])
    assert shown.xpath("//input[@name='words']/@value") == [parse_qs(query)["words"][0]]


@given(st.text(), st.data())
def test_marks_add_nothing_to_a_text(text: str, data: st.DataObject) -> None:
    ends = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    places = list(zip(ends[::2], ends[1::2], strict=False))
    shown = marked(text, places)
    assert shown.replace("<mark>", "").replace("</mark>", "").unescape() == marked(text, []).unescape()
    assert shown.count("<mark>") == len(places)


def test_an_empty_workspace_says_what_to_do(people: People) -> None:
    shown = looked(people.browser("vic", "viewer"), "/search?words=oak")
    assert "There is nothing to search yet" in text_of(shown)
    assert shown.xpath("//*[@data-indexing]") == []


def test_what_is_new_is_indexed_by_a_job(people: People, empty_store: Store) -> None:
    put(empty_store, tree("Oak"))
    editor, viewer = people.browser("ed", "editor"), people.browser("vic", "viewer")
    (told,) = looked(editor, "/search?words=oak").xpath("//*[@data-indexing]")
    assert "data-starts-itself" in told.attrib
    assert told.xpath(".//button")[0].text == "Index now"
    (told,) = looked(viewer, "/search").xpath("//*[@data-indexing]")
    assert "data-starts-itself" not in told.attrib
    assert "An editor can have them indexed" in text_of(told)
    assert told.xpath(".//button") == []
    assert viewer.send("POST", "/api/jobs", {"kind": "index"}).status_code == 403

    before = asked(editor, "words=oak")
    assert (before["looked_through"], before["has_more"], before["is_all"]) == (0, False, False)
    waiting = empty_store.jobs.add("index", {}, "ed")
    (told,) = looked(viewer, "/search").xpath("//*[@data-indexing]")
    assert told.get("data-index-job") == str(waiting.id)
    empty_store.jobs.end(waiting.id, "failed", "Another process is writing.")
    (told,) = looked(editor, "/search").xpath("//*[@data-indexing]")
    assert "data-starts-itself" not in told.attrib
    assert "Another process is writing." in text_of(told)

    heard: list[tuple[int, int | None, str]] = []
    result = run_job(empty_store, "index", report=lambda *told: heard.append(told))
    assert (result["added_pages"], result["failures"]) == (1, {})
    assert heard == [(number, 2, "steps: Indexing") for number in range(3)]
    shown = looked(viewer, "/search?words=oak")
    assert shown.xpath("//*[@data-indexing]") == []
    assert len(shown.xpath("//a[@data-hit]")) == 1
    after = asked(editor, "words=oak")
    assert (after["looked_through"], after["has_more"], after["is_all"]) == (1, False, True)
    assert run_job(empty_store, "index")["added_pages"] == 0
