"""`siteloom examples`: from what another tool was taught to records, on the built-in site."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from siteloom.apps.demo.sites import guide_site
from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.core.model import Page
from tests.apps.cli.command import Command, one_sentence


def some_pages(kind: str, count: int) -> list[BuiltinPage]:
    return [page for page in guide_site() if page.kind == kind][:count]


# Those of one layout, which the rules below know; others show their facts in a table.
RESTAURANTS = [page for page in some_pages("restaurant", 20) if b'class="facts"' in page.page.html]
LISTS = some_pages("list", 4)


def write_pages(file: Path, pages: Sequence[BuiltinPage]) -> str:
    lines = [json.dumps({"url": page.page.url, "html": page.page.html.decode()}) for page in pages]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file.name


def write_json(file: Path, content: object) -> str:
    file.write_text(json.dumps(content), encoding="utf-8")
    return file.name


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n")[:-1]]


def text(name: str, css: str, parent: str, **more: object) -> dict[str, object]:
    given = {"id": name, "type": "SelectorText", "parentSelectors": [parent], "selector": css}
    return {**given, "multiple": False, "regex": "", **more}


SITEMAP = {
    "_id": "larkmoor",
    "startUrl": ["https://www.larkmoor-guide.example/restaurants/"],
    "selectors": [
        text("card", "div.card", "_root", type="SelectorElement", multiple=True),
        text("title", "h3 a", "card", type="SelectorLink"),
        text("cost", ".price", "card"),
        text("name", "h1", "title"),
        text("cuisine", ".facts dt:contains('Cuisine') + dd a", "title", multiple=True),
        text("phone", ".facts dt:contains('Phone') + dd", "title"),
        text("menu", "#main", "title", type="SelectorHTML"),
        text("photo", ".no-gallery img", "title", type="SelectorImage"),
    ],
}


def follow(siteloom: Command, crawl: str, *attributes: str) -> dict[str, dict[str, list[str]]]:
    """The values of the pages of a crawl, by a wrapper that is learned from the examples."""
    learned = siteloom("learn", crawl, "--examples", "examples.jsonl", "-o", "wrapper.json")
    assert learned.returncode == 0, learned.stderr
    done = siteloom("extract", crawl, "--wrapper", "wrapper.json", "-o", "records.jsonl")
    assert done.returncode == 0, done.stderr
    found = {row["url"]: row["values"] for row in rows(siteloom.folder / "records.jsonl")}
    return {url: {name: values.get(name, []) for name in attributes} for url, values in found.items()}


def truth(pages: Sequence[BuiltinPage], *attributes: str) -> dict[str, dict[str, list[str]]]:
    return {page.page.url: {name: list(page.truth[name]) for name in attributes} for page in pages}


def test_a_sitemap_of_web_scraper_becomes_a_wrapper(siteloom: Command) -> None:
    model = write_json(siteloom.folder / "sitemap.json", SITEMAP)
    crawl = write_pages(siteloom.folder / "crawl.jsonl", [*RESTAURANTS, *LISTS])
    made = siteloom("examples", model, crawl, "-o", "examples.jsonl", "--kind", "2", "-k", "6")
    assert made.returncode == 0, made.stderr
    assert "menu is a SelectorHTML, which has no like among examples." in made.stderr
    assert f"Kind 1: {len(LISTS)} pages" in made.stderr
    assert "No example has photo-src." in made.stderr
    lines = rows(siteloom.folder / "examples.jsonl")
    assert len(lines) == 6
    assert {name for line in lines for name in line["values"]} == {"name", "cuisine", "phone"}

    details = write_pages(siteloom.folder / "details.jsonl", RESTAURANTS)
    names = ("name", "cuisine", "phone")
    assert follow(siteloom, details, *names) == truth(RESTAURANTS, *names)


def test_the_lists_of_a_sitemap_become_records(siteloom: Command) -> None:
    model = write_json(siteloom.folder / "sitemap.json", SITEMAP)
    write_pages(siteloom.folder / "crawl.jsonl", [*RESTAURANTS, *LISTS])
    assert siteloom("ingest", "crawl.jsonl").returncode == 0
    made = siteloom("examples", model, "-o", "examples.jsonl")
    assert "--kind N writes only those" in made.stderr
    both = rows(siteloom.folder / "examples.jsonl")
    lists = {line["url"]: line["records"] for line in both if "records" in line}
    assert len(both) == len(lists) + len(RESTAURANTS)
    assert len(lists) == len(LISTS) - 1
    assert "Left out once: The records given for" in made.stderr  # two of its cards look the same
    for page in LISTS:
        if page.page.url in lists:
            # A card that is sponsored has another class, which the sitemap knows nothing of.
            titles = [record["title"] for record in lists[page.page.url]]
            known = [list(record["name"]) for record in page.records]
            assert titles == [name for name in known if name in titles]
            assert len(titles) >= len(known) - 2


def element_steps(*steps: tuple[str, list[str], int]) -> list[list[object]]:
    """A way down as AutoScraper saves it: with each element, the number of the next among those alike."""
    return [[tag, {"class": classes or "", "style": ""}, number] for tag, classes, number in steps]


def test_a_model_of_autoscraper_becomes_a_wrapper(siteloom: Command) -> None:
    above = element_steps(
        ("[document]", [], 0),
        ("html", [], 0),
        ("body", ["restaurant-page"], 0),
        ("div", [], 2),
        ("div", [], 0),
        ("div", [], 0),
        ("div", ["venue", "vcard"], 0),
    )
    plain = {"class": "", "style": ""}
    rule = {"is_full_url": False, "is_non_rec_text": False, "url": "", "wanted_attr": None}
    rules = [
        {**rule, "alias": "name", "stack_id": "rule_1", "content": [*above, ["h1", plain]]},
        {
            **rule,
            "alias": "rating",
            "stack_id": "rule_2",
            "wanted_attr": "alt",
            "content": [*above, *element_steps(("p", ["strap"], 0)), ["img", plain]],
        },
        # The logo, which is on all pages: the tool cannot know.
        {
            **rule,
            "alias": "guide",
            "stack_id": "rule_3",
            "content": [*above[:3], *[["div", plain, 0]] * 2, ["a", plain]],
        },
    ]
    model = write_json(siteloom.folder / "model.json", {"stack_list": rules})
    crawl = write_pages(siteloom.folder / "crawl.jsonl", RESTAURANTS)
    made = siteloom("examples", model, crawl, "-o", "examples.jsonl", "-k", "4")
    assert made.returncode == 0, made.stderr
    assert "examples of what AutoScraper was taught" in made.stderr
    assert "guide is 'The Larkmoor Guide' in all of its 4 examples: take it out of them if" in made.stderr
    assert made.stderr.count("in all of its") == 1
    found, known = follow(siteloom, crawl, "name", "rating"), truth(RESTAURANTS, "name", "rating")
    assert found == {url: known[url] for url in found}
    assert len(found) >= 0.8 * len(known)  # some have a frame around their facts, and are taken for others


def portia_sample(page: BuiltinPage) -> dict[str, object]:
    """A page as a person has annotated it in Portia: its name and its phone."""
    html = page.page.html.decode()
    marks = {
        field: "data-scrapy-annotate='" + json.dumps({"annotations": {"content": field}, "variant": 0}) + "'"
        for field in ("name", "phone")
    }
    phone = page.truth["phone"][0].replace(" ", "&nbsp;")
    marked = html.replace("<h1>", f"<h1 {marks['name']}>").replace(
        f"<dd>{phone}", f"<dd {marks['phone']}>{phone}"
    )
    return {"url": page.page.url, "original_body": html, "annotated_body": marked, "extractors": {}}


def test_the_samples_of_portia_become_a_wrapper(siteloom: Command) -> None:
    usable = [page for page in RESTAURANTS if page.truth["phone"]]
    samples = [portia_sample(page) for page in usable[:4]]
    model = write_json(siteloom.folder / "spider.json", {"start_urls": [], "templates": samples})
    made = siteloom("examples", model, "-o", "examples.jsonl", "--pages", "pages.jsonl")
    assert made.returncode == 0, made.stderr
    lines = rows(siteloom.folder / "examples.jsonl")
    assert {line["url"]: line["values"]["phone"] for line in lines} == {
        page.page.url: list(page.truth["phone"]) for page in usable[:4]
    }
    assert [row["url"] for row in rows(siteloom.folder / "pages.jsonl")] == [s["url"] for s in samples]
    found = follow(siteloom, "pages.jsonl", "name", "phone")
    assert found == truth(usable[:4], "name", "phone")


def test_a_value_that_is_not_on_its_page_is_no_example(siteloom: Command) -> None:
    page = RESTAURANTS[0]
    sample = portia_sample(page)
    other = page.truth["phone"][0].replace(" ", "&nbsp;")
    sample["annotated_body"] = str(sample["annotated_body"]).replace(other, "0113&nbsp;999&nbsp;9999")
    model = write_json(siteloom.folder / "sample.json", sample)
    made = siteloom("examples", model, "-o", "examples.jsonl")
    assert "Left out once: phone does not stand on its page as it was found." in made.stderr
    (line,) = rows(siteloom.folder / "examples.jsonl")
    assert line == {"url": page.page.url, "values": {"name": list(page.truth["name"])}}


def test_mistakes_are_told_in_a_sentence(siteloom: Command) -> None:
    model = write_json(siteloom.folder / "sitemap.json", SITEMAP)
    sample = write_json(siteloom.folder / "sample.json", portia_sample(RESTAURANTS[0]))
    crawl = write_pages(
        siteloom.folder / "empty.jsonl", [BuiltinPage(Page("https://a.example/", b"<p>?"), "list")]
    )
    for arguments, message in (
        ((model, crawl), "Give -o FILE.jsonl for the examples"),
        ((model, crawl, "-o", "e.csv"), "Examples are written as .jsonl: give a name such as e.jsonl."),
        ((model, crawl, "-o", "e.jsonl", "--pages", "p.jsonl"), "--pages is for samples of Portia"),
        ((model, crawl, "-o", "e.jsonl", "--kind", "3"), "There is no kind 3: "),
        ((sample, crawl, "-o", "e.jsonl"), "sample.json brings its own pages: leave SOURCE out"),
        ((model, crawl, "-o", "e.jsonl"), "Nothing that Web Scraper was taught is on these pages"),
        ((model, "-o", "e.jsonl"), "There is no workspace at"),
    ):
        assert one_sentence(siteloom("examples", *arguments)).startswith(message)
    assert not (siteloom.folder / "e.jsonl").exists()


def test_a_page_that_a_pattern_takes_for_ever_on_is_left_out(siteloom: Command) -> None:
    sitemap = {**SITEMAP, "selectors": [text("name", "h1", "_root", regex="(.+)+\\1!")]}
    model = write_json(siteloom.folder / "sitemap.json", sitemap)
    page = {"url": "http://a.example/1", "html": f"<h1>{'a' * 60}</h1>"}
    crawl = write_json(siteloom.folder / "crawl.jsonl", page)
    limit = {"SITELOOM_PARSE_MAX_SECONDS": "0.5"}
    made = siteloom("examples", model, crawl, "-o", "examples.jsonl", environment=limit)
    assert "1 page could not be read." in made.stderr
