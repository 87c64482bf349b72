"""The documents about templates and wrappers."""

from __future__ import annotations

import csv
import json

from siteloom.apps.demo.sites import directory_site, guide_site
from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from tests.apps.cli.command import Command, one_sentence
from tests.apps.demo.sites import directory, of_kind
from tests.docs import shop
from tests.docs.following import Place, flat, followed
from tests.learning.annotation.self_annotating import RESTAURANTS, restaurant, site, truth
from tests.sources.test_other_tools import selector, sitemap


def lines(pages: list[BuiltinPage]) -> str:
    return shop.lines([one.page for one in pages])


@followed("docs/how-to/find-templates.md")
def find_templates(place: Place) -> None:
    place.take("saved-pages", "crawl.jsonl")
    place.siteloom("ingest", "crawl.jsonl")
    place.follow()
    assert "shop.example/1" in place["import siteloom"].stdout
    assert " pages in no cluster" in place["import siteloom"].stdout


@followed("docs/how-to/discover-a-table.md")
def discover_a_table(place: Place) -> None:
    place.write("directory.jsonl", lines(list(directory())))
    place.follow()
    told = {step: flat(result.stderr) for step, result in place.results.items()}
    assert "tableatlas.example/1: 183 pages" in told["siteloom discover directory.jsonl"]
    assert "name 100%, address 100%, phone 100%, kitchen 100%." in " ".join(told.values())
    entries = {one.page.url: one.truth for one in of_kind(directory(), "restaurant")}
    with (place.folder / "records.csv").open(encoding="utf-8", newline="") as file:
        found = {row["url"]: row for row in csv.DictReader(file)}
    assert len(found) >= 183
    assert all((row["name"],) == entries[url]["name"] for url, row in found.items())
    assert "{'address': 1.0, 'phone': 1.0}" in place["import siteloom"].stdout


@followed("docs/how-to/annotate.md")
def annotate(place: Place) -> None:
    place.take("crawl.warc.gz")
    place.follow()


@followed("docs/how-to/wrap-a-site.md")
def wrap_a_site(place: Place) -> None:
    place.take("crawl.jsonl")
    place.siteloom("ingest", "crawl.jsonl")
    place.siteloom("cluster")
    place.write("examples.jsonl", place.text_of('{"url"'))
    place.write_lines("more.jsonl", shop.examples(5))
    place.write("schema.json", '{"colours": {"multi": true}}')
    assert '`{"colours": {"multi": true}}`' in place.document_text
    place.follow()
    assert place["from pathlib import Path"].stdout.count("{'name': ('") == shop.COUNT
    found = {row["url"]: row["values"] for row in place.rows("records.jsonl")}
    for thing in shop.THINGS:
        known = {name: texts for name, texts in thing.values.items() if texts}
        assert found[f"{shop.ORIGIN}/p/{thing.number}"] == known


@followed("docs/how-to/wrap-list-pages.md")
def wrap_list_pages(place: Place) -> None:
    pages = [shop.lamps(), shop.lamps(number=2)]
    place.write("crawl.jsonl", shop.lines(pages))
    place.siteloom("ingest", "crawl.jsonl")
    place.siteloom("cluster")
    place.write("lists.jsonl", place.text_of('{"url"'))
    place.siteloom("learn", "crawl.jsonl", "--examples", "lists.jsonl", "-o", "wrapper.json")
    place.follow()
    told = place["from pathlib import Path"].stdout
    assert told.count("'name':") == len(pages) * len(shop.LAMPS)
    assert all(f"{one.url} {{" in told for one in pages)


@followed("docs/how-to/learn-from-embedded-data.md")
def learn_from_embedded_data(place: Place) -> None:
    for number, page in enumerate(site(marked=25)):
        place.write(f"pages/{number:02}.html", page.html)
    place.follow()
    place.siteloom("extract", "-o", "of-the-workspace.jsonl")
    for file in ("records.jsonl", "of-the-workspace.jsonl"):
        found = {row["url"]: row["values"] for row in place.rows(file)}
        assert len(found) == len(RESTAURANTS)
        for one in RESTAURANTS[25:]:
            assert found[one.page.url] == {name: list(texts) for name, texts in truth(one).items()}

    # What was learned stays, and where people have annotated pages, their examples count.
    assert "version 1, for " in place.siteloom("learn", "--from-embedded").stderr
    name = restaurant(RESTAURANTS[0])["name"]
    place.write_lines("examples.jsonl", [{"url": RESTAURANTS[0].page.url, "values": {"name": name}}])
    place.siteloom("learn", "--examples", "examples.jsonl")
    refused = Command(place.folder)("learn", "--from-embedded")
    assert "people have annotated its pages" in " ".join(refused.stderr.split())
    assert "Nothing can be learned from embedded data" in one_sentence(refused)


@followed("docs/how-to/come-from-other-tools.md")
def come_from_other_tools(place: Place) -> None:
    place.take("crawl.warc.gz")
    taught = sitemap(
        selector("name", "SelectorText", "h1"),
        selector("price", "SelectorText", "p.price"),
        selector("colours", "SelectorText", "ul.colours li", multiple=True),
    )
    place.write("sitemap.json", json.dumps(taught))
    place.follow()
    told = place["siteloom learn --examples examples.jsonl"].stderr
    assert "colours" in told
    assert "phone" not in told


@followed("docs/how-to/start-from-a-table.md")
def start_from_a_table(place: Place) -> None:
    attributes = ("name", "address", "phone", "cuisine", "opened")
    # A quarter of the restaurants is enough, and takes a quarter of the time.
    sites = (guide_site(), directory_site())
    entities = sorted({str(page.entity) for site in sites for page in site if page.kind == "restaurant"})
    some = {*entities[::4], None}  # lists are about none
    known, entries = ([page for page in site if page.entity in some] for site in sites)
    with (place.folder / "restaurants.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(attributes)
        for page in known:
            if page.kind == "restaurant":
                table.writerow("; ".join(page.truth[name]) for name in attributes)
    place.write("guide.jsonl", lines(known))
    place.write("directory.jsonl", lines(entries))
    place.follow()
    truths = {page.page.url: page.truth for page in entries if page.kind == "restaurant"}
    with (place.folder / "records.csv").open(encoding="utf-8", newline="") as file:
        found = {row["url"]: row for row in csv.DictReader(file)}
    assert found.keys() == truths.keys()
    assert all((found[url]["name"],) == truth["name"] for url, truth in truths.items())
    with (place.folder / "sites.csv").open(encoding="utf-8", newline="") as file:
        assert {row["outcome"] for row in csv.DictReader(file)} == {"wrapped"}
    told = place["import csv"].stdout
    assert "opened refused" in told
    assert told.count("'address':") == 3
