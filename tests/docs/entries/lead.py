"""The guides that lead from what people have to what they want, on what the demo leaves."""

from __future__ import annotations

import json

from siteloom.core.model import Page
from tests.apps.demo.sites import directory, of_kind
from tests.docs.following import Place, followed

CLASSES = {"name": "fn org", "phone": "tel"}
"""The classes of the elements in which the directory has them."""


@followed("docs/how-to/crawl-to-table.md")
def crawl_to_table(place: Place) -> None:
    place.take_try_it()
    place.follow()
    assert "200 rows" in place["import pyarrow"].stdout


@followed(
    "docs/how-to/hundreds-of-scrapers.md",
    not_run={
        "15 3 * * *  cd /srv/scrapers && siteloom ingest /srv/crawls/today && siteloom monitor && "
        "siteloom relearn && siteloom extract -o records.jsonl": "the same commands stand above",
    },
)
def hundreds_of_scrapers(place: Place) -> None:
    place.take_try_it()
    thin_out(place)
    place.follow()
    assert {row["outcome"] for row in place.rows("outcome.jsonl")} == {"repaired"}


@followed("docs/how-to/template-free-text.md")
def template_free_text(place: Place) -> None:
    place.take_try_it()
    place.follow(before="siteloom clean try-it/crawl-1.jsonl --format text")
    thin_out(place)
    place.follow()
    assert {*place.rows("text.jsonl")[0]} == {"url", "text"}
    assert "Lemongrass" in place["siteloom search"].stderr


@followed(
    "docs/how-to/for-researchers.md",
    not_run={
        "python -m evals DATA --only redundancy": "the pages that it takes are no part of the project",
        "@software{siteloom,": "a reference for a paper",
    },
)
def for_researchers(place: Place) -> None:
    place.follow()
    clusters, right = (result.stdout for step, result in place.results.items() if step.startswith("import"))
    assert "text-max: 2 clusters, 2 of them of one site" in clusters
    assert "united: 2820 of 2820 right" in right


@followed(
    "docs/how-to/migrate-from-autoscraper.md",
    not_run={"from autoscraper import AutoScraper": "how it was done there"},
)
def migrate_from_autoscraper(place: Place) -> None:
    place.take_try_it()
    place.write("model.json", json.dumps(autoscraper_model()))
    place.follow()
    assert "'cuisine': ('Italian', 'Modern British')" in place["import siteloom"].stdout
    assert "│ phone     │ text │ one    │ no" in place["siteloom learn"].stderr


@followed("docs/how-to/migrate-from-portia.md")
def migrate_from_portia(place: Place) -> None:
    with_phone = [page.page for page in of_kind(directory(), "restaurant") if page.truth["phone"]]
    place.write("spider.json", json.dumps(portia_spider(with_phone[:3])))
    place.follow()
    assert len(place.rows("known.jsonl")) == 3


@followed(
    "docs/how-to/migrate-from-scrapy.md",
    not_run={"class DirectorySpider(CrawlSpider):": "a spider of a project that is not here"},
)
def migrate_from_scrapy(place: Place) -> None:
    place.take_try_it()
    place.follow()
    assert "200 items, 0 of them other than before\n" in [one.stdout for one in place.results.values()]
    spider = (place.folder / "directory_spider.py").read_text(encoding="utf-8")
    compile(spider, "directory_spider.py", "exec")


def thin_out(place: Place) -> None:
    """Leave a third of the pages of each crawl, which takes a third of the time."""
    for crawl in (place.folder / "try-it").glob("*.jsonl"):
        some = crawl.read_text(encoding="utf-8").splitlines(keepends=True)[::3]
        crawl.write_text("".join(some), encoding="utf-8")


def autoscraper_model() -> dict[str, object]:
    """As AutoScraper 1.1.14 saves what it learned from the name and phone of one page of the directory."""

    def step(tag: str, classes: str = "", *number: int) -> list[object]:
        return [tag, {"class": classes.split() or "", "style": ""}, *number]

    around = [step("[document]", "", 0), step("html", "", 0), step("body", "", 0)]
    around += [step("div", "ta-shell", 0), step("div", "ta-body", 0)]
    ways = {
        "name": [*around, step("div", "ta-biz", 0), step("div", CLASSES["name"])],
        "phone": [
            *around,
            step("div", "ta-biz", 2),
            step("div", "ta-line", 0),
            step("span", CLASSES["phone"]),
        ],
    }
    nothing = dict.fromkeys(("wanted_attr", "is_full_url", "is_non_rec_text"))
    rules = [
        {"content": way, **nothing, "url": "", "hash": alias, "stack_id": f"rule_{alias}", "alias": alias}
        for alias, way in ways.items()
    ]
    return {"stack_list": rules}


def portia_spider(pages: list[Page]) -> dict[str, object]:
    """As Portia keeps a spider, with samples on which the name and the phone were annotated."""
    samples = []
    for page in pages:
        html = annotated = page.html.decode()
        for name, classes in CLASSES.items():
            note = json.dumps({"annotations": {"content": name}})
            mark = f'class="{classes}"'
            assert mark in html
            annotated = annotated.replace(mark, f"{mark} data-scrapy-annotate='{note}'", 1)
        samples.append({"url": page.url, "original_body": html, "annotated_body": annotated})
    return {"start_urls": ["https://tableatlas.example/"], "templates": samples}
