"""Sites and templates: what their pages and the API show, and that both show the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from lxml import html
from lxml.html import HtmlElement

from siteloom.apps.server import create_app
from siteloom.apps.server.html_rendering import ago, number, readable_pattern, share, short_url
from siteloom.core.model import Example, Page
from siteloom.core.settings import Settings, StoreSettings
from siteloom.extraction.shard_extraction import ExtractedRow
from siteloom.operations.cluster import cluster_store
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from tests.apps.demo.sites import directory, guide, of_kind
from tests.apps.server.browsing import Browser
from tests.apps.server.conftest import People
from tests.store.helpers import day, put

GUIDE, DIRECTORY = "larkmoor-guide.example", "tableatlas.example"
HOSTILE = '<img src=x onerror="alert(1)">'
EVIL_TEXT = "<script>alert(2)</script>"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The guide with a wrapper, the directory with annotations, a hostile site and one not clustered."""
    folder = tmp_path_factory.mktemp("sites") / ".siteloom"
    with closing(open_store(StoreSettings(workspace=str(folder)), create=True)) as opened:
        put(opened, *(one.page for one in of_kind(guide(), "restaurant")[:40]))
        put(opened, *(one.page for one in of_kind(guide(), "list")[:12]))
        put(opened, *(one.page for one in of_kind(directory(), "restaurant")[:20]))
        put(opened, *(Page(f"https://evil.example/{n}", _evil(n)) for n in range(6)), site=HOSTILE)
        cluster_store(opened, "vertex")
        put(opened, Page("https://fresh.example/", b"<p>not clustered</p>"))
        _annotate(opened)
        opened.save_wrapper(f"{GUIDE}/1", GUIDE, "{}", "learn")
        with opened.extracting({"site": None}, "any") as extraction:
            rows = [ExtractedRow(one.page.url, f"{GUIDE}/1", 1, "{}") for one in guide()[:3]]
            extraction.commit(0, rows, [], {"tally": [["records of", f"{GUIDE}/1", 3]]})
        yield opened


def _evil(number: int) -> bytes:
    text = "&lt;script&gt;alert(2)&lt;/script&gt;"
    return f"<html><body><h1>{number}</h1><p>{text}</p><ul><li>{text}<li>x</ul></body></html>".encode()


def _annotate(store: Store) -> None:
    for one in of_kind(directory(), "restaurant")[:2]:
        store.save_example(PageAddress(DIRECTORY, one.page.url), Example(one.page, {"name": ["x"]}))


@pytest.fixture(scope="module")
def client(store: Store) -> Browser:
    return Browser(create_app(store, Settings()))


def tree(client: Browser, path: str) -> HtmlElement:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return html.document_fromstring(answer.text)


def text_of(element: HtmlElement) -> str:
    return " ".join(element.text_content().split())


def links(page: HtmlElement, class_: str) -> list[str]:
    return [str(link) for link in page.xpath(f"//a[contains(@class, '{class_}')]/@href")]


def api(client: Browser, path: str) -> Any:
    answer = client.get(f"/api/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def templates(client: Browser, site: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api(client, f"sites/{quote(site)}")["template_list"]
    return found


def every_page(client: Browser) -> list[str]:
    clusters = [one["cluster"] for site in (GUIDE, HOSTILE) for one in templates(client, site)[:1]]
    a, b = map(quote, clusters)
    return [
        "/",
        f"/sites/{GUIDE}",
        f"/sites/{quote(HOSTILE)}",
        "/sites/fresh.example",
        *(f"/clusters/{name}{part}" for name in (a, b) for part in ("", "/tags", "/sample")),
        "/compare",
        f"/compare?a={a}&b={b}",
        f"/compare/tags?a={a}&b={b}",
    ]


def test_home_shows_what_the_api_tells(client: Browser) -> None:
    cards = tree(client, "/").find_class("site-card")
    sites = api(client, "sites")
    assert [card.xpath("string(.//h2)") for card in cards] == [site["site"] for site in sites]
    for card, site in zip(cards, sites, strict=True):
        numbers = [dd.text_content() for dd in card.xpath(".//dd")]
        assert numbers == [str(site[name]) for name in ("pages", "templates", "records")]
        assert site["next_step"]["text"] in text_of(card)


def test_the_next_step_of_each_site(client: Browser) -> None:
    steps = {site["site"]: site["next_step"] for site in api(client, "sites")}
    assert steps["fresh.example"]["kind"] == "cluster"
    assert steps[DIRECTORY] == {
        "kind": "annotate",
        "text": "Go on annotating",
        "cluster": f"{DIRECTORY}/1",
        "key": None,
    }
    assert steps[HOSTILE]["kind"] == "annotate"
    home = tree(client, "/")
    assert f"/clusters/{DIRECTORY}/1/annotate" in links(home, "primary")
    (form,) = [form for form in home.forms if form.fields.get("site") == "fresh.example"]
    assert (form.action, form.fields["kind"]) == ("/jobs", "cluster")


def test_sites_in_another_order_and_by_name(client: Browser) -> None:
    names = [str(name) for name in tree(client, "/?sort=pages").xpath("//h2/a/text()")]
    assert names[0] == GUIDE
    assert [str(name) for name in tree(client, "/?search=ATLAS").xpath("//h2/a/text()")] == [DIRECTORY]
    assert "No site has “zzz” in its name" in text_of(tree(client, "/?search=zzz"))


def test_an_empty_workspace_says_what_to_do(people: People) -> None:
    seen = people.browser("vic", "viewer").look("/")
    assert "No pages yet" in seen
    assert "An editor can add them" in seen
    seen = people.browser("ed", "editor").look("/")
    assert "Add pages" in seen
    assert "siteloom ingest" in seen


def test_states_of_templates(client: Browser) -> None:
    guide_states = {one["cluster"]: one["state"] for one in templates(client, GUIDE)}
    assert guide_states[f"{GUIDE}/1"] == "live"
    assert "new" in guide_states.values()
    assert templates(client, DIRECTORY)[0]["state"] == "learning"
    assert templates(client, DIRECTORY)[0]["annotated"] == 2


def test_a_site_adds_up(client: Browser) -> None:
    site = api(client, f"sites/{GUIDE}")
    assert site["unclustered"] + sum(one["pages"] for one in site["template_list"]) == site["pages"] == 52
    assert site["templated"] == pytest.approx(sum(one["share"] for one in site["template_list"]))
    assert site["wrapped"] == pytest.approx(
        sum(one["share"] for one in site["template_list"] if one["wrapper"])
    )
    assert site["records"] == 3


def test_a_site_page_shows_its_templates_as_cards(client: Browser) -> None:
    page = tree(client, f"/sites/{GUIDE}")
    cards = page.find_class("template-card")
    found = templates(client, GUIDE)
    assert [card.xpath("string(.//h3)") for card in cards] == [one["cluster"] for one in found]
    for card, one in zip(cards, found, strict=True):
        assert one["state"].capitalize() in text_of(card)
        assert readable_pattern(one["url_patterns"][0]) in text_of(card)
        assert len(card.xpath(".//*[local-name() = 'svg' and @class = 'outline']")) == 1
    (chart,) = page.xpath("//*[@class = 'coverage']")
    assert str(chart.get("aria-label")).startswith(f"{len(found)} templates cover")


def test_templates_by_state_and_order(client: Browser) -> None:
    live = tree(client, f"/sites/{GUIDE}?state=live").find_class("template-card")
    assert [card.xpath("string(.//h3)") for card in live] == [f"{GUIDE}/1"]
    by_state = tree(client, f"/sites/{GUIDE}?sort=state").find_class("template-card")
    assert by_state[-1].xpath("string(.//h3)") == f"{GUIDE}/1"
    assert "No template is broken" in text_of(tree(client, f"/sites/{GUIDE}?state=broken"))


def test_a_site_that_was_not_clustered_offers_to(client: Browser) -> None:
    page = tree(client, "/sites/fresh.example")
    assert "No templates yet" in text_of(page)
    assert {form.fields.get("kind") for form in page.forms if form.action == "/jobs"} == {"cluster"}


def test_viewers_are_offered_nothing_they_may_not_do(people: People) -> None:
    put(people.store, *(one.page for one in of_kind(directory(), "restaurant")[:6]))
    viewer, editor = people.browser("vic", "viewer"), people.browser("eva", "editor")
    assert 'action="/jobs"' in editor.get(f"/sites/{DIRECTORY}").text
    assert 'action="/jobs"' not in viewer.get(f"/sites/{DIRECTORY}").text
    assert "An editor can: Find its templates" in viewer.look(f"/sites/{DIRECTORY}")
    cluster_store(people.store, "vertex")
    for path in ("/", f"/clusters/{DIRECTORY}/1/sample"):
        assert "/annotate" in editor.get(path).text
        assert "/annotate" not in viewer.get(path).text
    assert "See the annotations" in viewer.look(f"/clusters/{DIRECTORY}/1")


def test_a_template_shows_its_tree(client: Browser) -> None:
    paths = api(client, f"clusters/{GUIDE}/1/paths")
    page = tree(client, f"/clusters/{GUIDE}/1")
    (drawn,) = page.find_class("tree")
    texts = [element.text_content() for element in drawn.find_class("template-text")]
    assert sorted(texts) == sorted(path["text"] for path in paths if path["text"] is not None)
    labels = [tag for element in drawn.find_class("tag") for tag in element.text_content().split(" \u203a ")]
    assert sorted(labels) == sorted(path["path"].rpartition("/")[2] for path in paths if path["text"] is None)
    assert all(0.5 < path["share"] <= 1 for path in paths)


def test_a_template_in_numbers(client: Browser) -> None:
    detail = api(client, f"clusters/{GUIDE}/1")
    summary = next(one for one in templates(client, GUIDE) if one["cluster"] == f"{GUIDE}/1")
    assert {name: detail[name] for name in summary} == summary
    paths = api(client, f"clusters/{GUIDE}/1/paths")
    assert detail["essential"] == len(paths)
    assert detail["template_text"] == [path["text"] for path in paths if path["text"] is not None]
    page = text_of(tree(client, f"/clusters/{GUIDE}/1"))
    assert f"{detail['pages']} pages" in page
    assert links(tree(client, f"/clusters/{GUIDE}/1"), "primary") == [f"/clusters/{GUIDE}/1/annotate"]


def test_tag_counts(client: Browser) -> None:
    counts = api(client, f"clusters/{quote(HOSTILE)}/1/tags")
    told = {count["tag"]: (count["per_page"], count["share"]) for count in counts}
    assert told == {tag: (2 if tag == "li" else 1, 1) for tag in ("html", "body", "h1", "p", "ul", "li")}
    rows = tree(client, f"/clusters/{quote(HOSTILE)}/1/tags").xpath("//tbody/tr")
    assert [row.xpath("string(th)") for row in rows] == [count["tag"] for count in counts]
    widths = [float(row.xpath("string(td[1]//*[@class = 'part']/@width)")) for row in rows]
    assert widths == [100, *[50] * (len(rows) - 1)]


def test_sample_pages_in_the_order_of_their_worth(client: Browser, store: Store) -> None:
    sample = api(client, f"clusters/{DIRECTORY}/1/sample")
    assert [page["covered"] for page in sample] == sorted(page["covered"] for page in sample)
    assert {page["url"] for page in sample if page["annotated"]} <= {
        one.page.url for one in of_kind(directory(), "restaurant")[:2]
    }
    first = store.page_by_id(sample[0]["page"])
    assert first is not None
    assert first[1].url == sample[0]["url"]
    hrefs = tree(client, f"/clusters/{DIRECTORY}/1/sample").xpath("//tbody//a/@href")
    assert hrefs == [f"/clusters/{DIRECTORY}/1/annotate?page={page['page']}" for page in sample]


def test_templates_of_two_sites_compared(client: Browser) -> None:
    a, b = f"{GUIDE}/1", f"{DIRECTORY}/1"
    found = api(client, f"compare?a={a}&b={b}")
    paths = [
        {(path["path"], path["text"]) for path in api(client, f"clusters/{name}/paths")} for name in (a, b)
    ]
    groups = [
        {(path["path"], path["text"]) for path in found[group]} for group in ("only_a", "both", "only_b")
    ]
    assert groups == [paths[0] - paths[1], paths[0] & paths[1], paths[1] - paths[0]]
    layouts = [{path for path, text in some if text is None} for some in paths]
    assert found["layout_similarity"] == pytest.approx(
        len(layouts[0] & layouts[1]) / len(layouts[0] | layouts[1])
    )
    page = tree(client, f"/compare?a={a}&b={b}")
    shown = [text_of(group).split()[-1] for group in page.xpath("//*[contains(@class, 'path-group')]//h3")]
    assert shown == [str(len(group)) for group in groups]
    assert len(page.xpath("//*[@class = 'outline']")) == 2


def test_a_template_compared_with_itself(client: Browser) -> None:
    found = api(client, f"compare?a={GUIDE}/1&b={GUIDE}/1")
    assert (found["layout_similarity"], found["text_similarity"]) == (1, 1)
    assert found["only_a"] == found["only_b"] == []
    assert all(tag["a"] == tag["b"] for tag in api(client, f"compare/tags?a={GUIDE}/1&b={GUIDE}/1"))


def test_tags_compared_differ_most_first(client: Browser) -> None:
    tags = api(client, f"compare/tags?a={GUIDE}/1&b={DIRECTORY}/1")
    differences = [abs(tag["a"] - tag["b"]) for tag in tags]
    assert differences == sorted(differences, reverse=True)
    rows = tree(client, f"/compare/tags?a={GUIDE}/1&b={DIRECTORY}/1").xpath("//tbody/tr/th")
    assert [row.text_content() for row in rows] == [tag["tag"] for tag in tags]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/sites/nowhere.example", "There is no site nowhere.example"),
        (f"/clusters/{GUIDE}/99", f"There is no template {GUIDE}/99: {GUIDE} has"),
        ("/clusters/nowhere.example/1", "no site of that name was clustered"),
        (f"/clusters/{GUIDE}/99/tags", f"There is no template {GUIDE}/99"),
        (f"/clusters/{GUIDE}/99/sample", f"There is no template {GUIDE}/99"),
        (f"/compare?a={GUIDE}/1&b=x/9", "There is no template x/9"),
        ("/nothing/here", "There is nothing at /nothing/here"),
    ],
)
def test_what_is_not_there(client: Browser, path: str, sentence: str) -> None:
    page = client.get(path)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert sentence in html.fromstring(page.text).text_content()
    answer = client.get(f"/api{path}")
    assert answer.status_code == 404
    assert sentence in answer.json()["detail"].replace("/api", "")


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/?sort=colour", "sort must be name, pages, records or health, not colour."),
        ("/records?page=-1", "page must be at least 1, not -1."),
        ("/records?page=x", "page must be a whole number, not x."),
        ("/compare/tags?a=x", "b is missing."),
        (f"/sites/{GUIDE}?state=odd", "not odd."),
    ],
)
def test_a_request_that_cannot_be_understood(client: Browser, path: str, sentence: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 422
    assert "This cannot be understood: " in answer.text
    assert sentence in answer.text
    assert "Input should" not in answer.text
    assert "Traceback" not in answer.text


def test_an_unexpected_error_is_told_without_its_insides(
    client: Browser, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_: Store) -> None:
        raise ZeroDivisionError("the secret inside")

    monkeypatch.setattr(Store, "sites", fails)
    for path in ("/", "/api/sites"):
        answer = client.get(path)
        assert answer.status_code == 500
        assert "Something went wrong inside the server." in answer.text
        assert "secret" not in answer.text
    assert "the secret inside" in caplog.text


def test_nothing_of_a_page_could_run(client: Browser) -> None:
    for path in every_page(client):
        page = tree(client, path)
        inline = "//style | //@style | //script[not(@src)] | //@*[starts-with(name(), 'on')]"
        assert not page.xpath(inline), path
        for address in page.xpath("//@src | //@href | //@action | //@data-include"):
            assert re.match(r"[/?#](?!/)", str(address)), (path, address)
        assert not page.xpath("//img")


def test_hostile_names_and_texts_are_shown_as_they_are(client: Browser) -> None:
    cluster = templates(client, HOSTILE)[0]["cluster"]
    assert HOSTILE in text_of(tree(client, "/"))
    page = tree(client, f"/clusters/{quote(cluster)}")
    assert EVIL_TEXT in [element.text_content() for element in page.find_class("template-text")]
    assert page.xpath("string(//h1)").split("\n")[0].strip().startswith(cluster)


def test_health_follows_the_checks(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = str(tmp_path_factory.mktemp("health") / ".siteloom")
    with closing(open_store(StoreSettings(workspace=folder), create=True)) as store:
        put(store, *(one.page for one in of_kind(directory(), "restaurant")[:6]))
        cluster_store(store, "vertex")
        store.save_wrapper(f"{DIRECTORY}/1", DIRECTORY, "{}", "learn")
        client = Browser(create_app(store, Settings()))

        def health() -> tuple[str, str, list[float]]:
            site = api(client, f"sites/{DIRECTORY}")
            points = [point["healthy"] for point in site["checks"]]
            return site["health"], site["template_list"][0]["state"], points

        assert health() == ("unchecked", "live", [])
        _check(store, 1, is_healthy=True)
        assert health() == ("healthy", "live", [1])
        _check(store, 1, is_healthy=False)
        assert health() == ("broken", "broken", [1, 0])
        assert api(client, "sites")[0]["next_step"]["kind"] == "repair"
        assert len(tree(client, "/").find_class("sparkline")) == 1
        # A version that was not checked yet is not blamed for the one before it.
        store.save_wrapper(f"{DIRECTORY}/1", DIRECTORY, '{"other": 1}', "repaired")
        assert health() == ("unchecked", "live", [1, 0])
        with store.recording("relearn", {}) as run:
            store.save_repair(run.id, f"{DIRECTORY}/1", 2, None, "repaired", "review", 0.5, "{}", {})
        assert health()[:2] == ("broken", "broken")


def _check(store: Store, version: int, *, is_healthy: bool) -> None:
    with store.recording("monitor", {}) as run:
        store.save_check(run.id, f"{DIRECTORY}/1", version, "bellwethers", is_healthy, {})


def test_every_route_of_the_api_is_described(client: Browser) -> None:
    document = json.loads(client.get("/openapi.json").text)
    operations = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    assert {"/api/sites", "/api/compare"} <= {path for path, _, _ in operations}
    for path, method, operation in operations:
        assert operation.get("description"), (method, path)
        assert operation["responses"], (method, path)
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(re.findall(r'"\$ref": ?"([^"]+)"', json.dumps(document))) <= known


def test_files_are_asked_about_again_but_not_sent_again(client: Browser) -> None:
    first = client.get("/static/siteloom.css")
    assert first.headers["cache-control"] == "no-cache"
    again = client.get("/static/siteloom.css", if_none_match=first.headers["etag"])
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, "0 %"), (0.004, "< 1 %"), (0.5, "50 %"), (0.996, "> 99 %"), (1, "100 %")],
)
def test_shares_in_words(value: float, told: str) -> None:
    assert share(value).replace("\u202f", " ") == told


def test_numbers_and_times_in_words() -> None:
    assert number(1_234_567).replace("\u202f", " ") == "1 234 567"
    assert number(12.345, 1) == "12.3"
    now = day(400)
    past = {"seconds": 5, "minutes": 1, "hours": 3, "days": 2}
    told = [ago(now - timedelta(**{unit: count}), now) for unit, count in past.items()]
    assert told == ["just now", "1 minute ago", "3 hours ago", "2 days ago"]
    assert ago(day(0), now) == "1 Mar 2025"


def test_urls_in_words() -> None:
    assert short_url("https://shop.example/p/1") == "shop.example/p/1"
    long = short_url("https://shop.example/" + "x" * 200 + "/the-end.html", 40)
    assert (len(long), long.endswith("/the-end.html")) == (40, True)
    assert readable_pattern(r"^https?://a\.example/[^/?#]+/p\-1\?q=[^&#]*$") == "a.example/*/p-1?q=*"
