"""What other tools would have written about a built-in site, for the guides that lead from them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from siteloom.builtin import directory_site

if TYPE_CHECKING:
    from pathlib import Path

_PLAIN = {"class": "", "style": ""}
_PAGE = [["[document]", _PLAIN, 0], ["html", _PLAIN, 0], ["body", _PLAIN, 0]]
_ANNOTATED = 3


def write_autoscraper_model(folder: Path) -> None:
    """As AutoScraper 1.1.14 saves what it learned from the name and phone of one page of the directory."""

    def step(tag: str, *classes: str) -> list[object]:
        return [tag, {"class": list(classes), "style": ""}]

    place = [*_PAGE, [*step("div", "ta-shell"), 0], [*step("div", "ta-body"), 0]]
    ways = {
        "name": [*place, [*step("div", "ta-biz"), 0], step("div", "fn", "org")],
        "phone": [*place, [*step("div", "ta-biz"), 2], [*step("div", "ta-line"), 0], step("span", "tel")],
    }
    rules = [
        {
            "content": way,
            "wanted_attr": None,
            "is_full_url": None,
            "is_non_rec_text": None,
            "url": "",
            "hash": alias,
            "stack_id": f"rule_{alias}",
            "alias": alias,
        }
        for alias, way in ways.items()
    ]
    (folder / "model.json").write_text(json.dumps({"stack_list": rules}), encoding="utf-8")


def write_portia_spider(folder: Path) -> None:
    """As Portia keeps a spider, with samples of the directory on which names and phones were annotated."""
    samples = []
    for page in directory_site():
        html = page.page.html.decode()
        if page.kind != "restaurant" or '<span class="tel">' not in html:
            continue
        annotated = html
        for mark, name in (('<div class="fn org"', "name"), ('<span class="tel"', "phone")):
            note = json.dumps({"annotations": {"content": name}})
            annotated = annotated.replace(mark, f"{mark} data-scrapy-annotate='{note}'", 1)
        samples.append({"url": page.page.url, "annotated_body": annotated, "original_body": html})
        if len(samples) == _ANNOTATED:
            break
    spider = {"start_urls": ["https://tableatlas.example/"], "templates": samples}
    (folder / "spider.json").write_text(json.dumps(spider), encoding="utf-8")
