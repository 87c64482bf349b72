"""What other tools were taught, read from files as they write them."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from siteloom.core.errors import MissingExtra, SourceError
from siteloom.core.model import Failure, Page
from siteloom.html.parser import Element, parse
from siteloom.sources.other_tools.tool_files import read_peer_file
from siteloom.sources.other_tools.tool_model import PeerModel, Values, best_example

SHOP = """
<html><body class="product">
<h1>Oak <em>lamp</em></h1>
<div class="box"><span class="price">Now: $49.90</span> <a class="maker" href="/m/7">Lampworks</a></div>
<ul class="colours"><li>red</li><li>blue</li><li>red</li></ul>
<img class="photo" src="lamp.jpg" alt="A lamp">
</body></html>
"""
LIST = """
<html><body><h1>Lamps</h1><div class="all">
<div class="item"><a href="/p/1">Oak lamp</a> <b>$49.90</b></div>
<div class="item"><a href="/p/2">Desk lamp</a></div>
<div class="item"></div>
</div></body></html>
"""


def root_of(html: str) -> Element:
    root = parse(Page.from_text("https://shop.example/p", html))
    assert not isinstance(root, Failure)
    return root


def model_of(folder: Path, content: object) -> PeerModel:
    file = folder / "model.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return read_peer_file(file)


def texts(values: Values) -> dict[str, list[str]]:
    return {name: list(found) for name, found in values.items()}


def selector(name: str, kind: str, css: str, parent: str = "_root", **more: object) -> dict[str, object]:
    return {"id": name, "type": kind, "selector": css, "parentSelectors": [parent], "multiple": False, **more}


def sitemap(*selectors: Mapping[str, object]) -> dict[str, object]:
    return {"_id": "shop", "startUrl": ["https://shop.example/"], "selectors": list(selectors)}


def test_the_selectors_of_a_sitemap_are_followed(tmp_path: Path) -> None:
    model = model_of(
        tmp_path,
        sitemap(
            selector("name", "SelectorText", "h1", regex=""),
            selector("price", "SelectorText", "div.box .price", regex=r"\$[\d.]+"),
            selector("maker", "SelectorLink", "a.maker"),
            selector("colour", "SelectorText", ".colours li", multiple=True),
            selector("all", "SelectorGroup", ".colours li"),
            selector("photo", "SelectorImage", "img.photo"),
            selector("alt", "SelectorElementAttribute", "img.photo", extractAttribute="alt"),
        ),
    )
    (layout,) = model.layouts
    root = root_of(SHOP)
    found = layout.on(root).values
    assert texts(found) == {
        "name": ["Oak lamp"],
        "price": ["$49.90"],
        "maker": ["Lampworks"],
        "maker-href": ["/m/7"],
        "colour": ["red", "blue"],
        "all": ["red", "blue"],
        "photo-src": ["lamp.jpg"],
        "alt": ["A lamp"],
    }
    assert model.left_out == ()


def test_what_is_in_an_element_is_a_list_and_what_is_behind_a_link_another_kind_of_page(
    tmp_path: Path,
) -> None:
    model = model_of(
        tmp_path,
        sitemap(
            selector("item", "SelectorElement", "div.item", multiple=True),
            selector("title", "SelectorLink", "a", "item"),
            # As jQuery reads it, with what is around the element.
            selector("price", "SelectorText", "div.all b", "item"),
            selector("name", "SelectorText", "h1", "title"),
            selector("maker", "SelectorText", "a.maker", "title"),
        ),
    )
    listing, detail = model.layouts
    found = listing.on(root_of(LIST))
    assert [texts(record) for record in found.records] == [
        {"title": ["Oak lamp"], "title-href": ["/p/1"], "price": ["$49.90"]},
        {"title": ["Desk lamp"], "title-href": ["/p/2"]},
    ]
    assert texts(detail.on(root_of(SHOP)).values) == {"name": ["Oak lamp"], "maker": ["Lampworks"]}
    kinds = [best_example(model.layouts, root_of(page)) for page in (LIST, SHOP)]
    assert [best[0] for best in kinds if best] == [0, 1]


def test_a_page_with_less_than_half_of_what_is_looked_for_is_no_example(tmp_path: Path) -> None:
    fields = [selector(name, "SelectorText", f".{name}") for name in ("price", "maker", "size", "weight")]
    model = model_of(tmp_path, sitemap(*fields))
    assert best_example(model.layouts, root_of(SHOP)) is not None
    assert best_example(model.layouts, root_of("<p class=price>1</p>")) is None


def test_an_element_that_is_one_is_where_its_selectors_look(tmp_path: Path) -> None:
    model = model_of(
        tmp_path,
        sitemap(
            selector("box", "SelectorElement", "div.box"),
            selector("any", "SelectorText", "a, li", "box"),
            selector("whole", "SelectorText", "_parent_", "box"),
        ),
    )
    (layout,) = model.layouts
    assert texts(layout.on(root_of(SHOP)).values) == {
        "any": ["Lampworks"],
        "whole": ["Now: $49.90 Lampworks"],
    }


def test_of_several_selectors_the_first_is_wanted_most_wherever_it_stands(tmp_path: Path) -> None:
    model = model_of(
        tmp_path,
        sitemap(
            selector("title", "SelectorText", "img.missing, a.maker,h1"),
            selector("all", "SelectorText", "li, h1:not(:contains('a, b'))", multiple=True),
            selector("box", "SelectorElement", "div.box"),
            selector("part", "SelectorText", "i, _parent_", "box"),
        ),
    )
    page, box = (layout.on(root_of(SHOP)).values for layout in model.layouts)
    assert texts(page) == {"title": ["Lampworks"], "all": ["red", "blue", "Oak lamp"]}
    assert texts(box) == {"part": ["Now: $49.90 Lampworks"]}


def test_what_of_a_sitemap_cannot_be_taken_over_is_told(tmp_path: Path) -> None:
    model = model_of(
        tmp_path,
        sitemap(
            selector("name", "SelectorText", "h1"),
            selector("body", "SelectorHTML", "body"),
            selector("first", "SelectorText", "li:eq(0)"),
            selector("drawn", "SelectorText", "svg|text"),
            selector("code", "SelectorText", "p", regex="(unclosed"),
            selector("next", "SelectorLink", "a.next"),
            selector("more", "SelectorText", "h2", "next"),
            selector("card", "SelectorElement", ".card", multiple=True),
            selector("row", "SelectorElement", ".row", "card", multiple=True),
            selector("cell", "SelectorText", "td", "row"),
            {"type": "SelectorText"},
        ),
    )
    assert [sentence.split(" ")[0] for sentence in model.left_out] == [
        *("first", "drawn", "A", "body", "code", "next", "row")
    ]
    assert all(sentence.endswith(".") for sentence in model.left_out)
    assert [layout.attributes for layout in model.layouts] == [["name"], ["more"]]


def rule(alias: str, *steps: object, **more: object) -> dict[str, Any]:
    way = [["[document]", {"class": "", "style": ""}, 0], *steps]
    return {
        "content": way,
        "wanted_attr": None,
        "is_full_url": False,
        "is_non_rec_text": False,
        "url": "",
        "hash": alias,
        "stack_id": f"rule_{alias}",
        "alias": alias,
        **more,
    }


NONE = {"class": "", "style": ""}
BODY = {"class": ["product", "wide"], "style": ""}


def test_the_rules_of_autoscraper_are_followed(tmp_path: Path) -> None:
    html, body = ["html", NONE, 0], ["body", BODY, 0]
    model = model_of(
        tmp_path,
        {
            "stack_list": [
                rule("name", html, body, ["h1", NONE]),
                rule("own", html, body, ["h1", NONE], is_non_rec_text=True),
                # The fifth of them, or else the last.
                rule(
                    "colour",
                    html,
                    ["body", BODY, 0],
                    ["ul", {"class": ["colours"], "style": ""}, 4],
                    ["li", NONE],
                ),
                rule(
                    "link",
                    html,
                    body,
                    ["div", {"class": ["box"], "style": ""}, 0],
                    ["a", {"class": ["maker"], "style": ""}],
                    wanted_attr="href",
                    is_full_url=True,
                    url="https://shop.example/p",
                ),
                rule("", html, body, ["img", {"class": ["photo"], "style": ""}], wanted_attr="alt"),
                rule("styled", html, body, ["h1", {"class": "", "style": "color:red"}]),
                rule("lost"),
            ]
        },
    )
    (layout,) = model.layouts
    found = layout.on(root_of(SHOP)).values
    assert texts(found) == {
        "name": ["Oak lamp"],
        "own": ["Oak"],
        "colour": ["red"],
        "link": ["/m/7"],  # as it stands there: addresses are made whole when they are typed
        "rule_": ["A lamp"],
    }
    assert model.left_out == ("Rule 7, of lost, says no way to its value that can be read.",)


def test_rules_of_one_alias_are_one_attribute_and_early_models_are_bare_lists(tmp_path: Path) -> None:
    html, body = ["html", NONE, 0], ["body", BODY, 0]
    rules = [rule("what", html, body, ["h1", NONE]), rule("what", html, body, ["img", {"class": ["photo"]}])]
    rules[1]["wanted_attr"] = "alt"
    (layout,) = model_of(tmp_path, [*rules, rules[0]]).layouts
    assert layout.attributes == ["what"]
    assert texts(layout.on(root_of(SHOP)).values) == {"what": ["Oak lamp", "A lamp"]}


def mark(**annotations: str) -> str:
    told = {"annotations": annotations, "required": [], "variant": 0, "generated": False}
    return "data-scrapy-annotate='" + json.dumps(told).replace("'", "&#39;") + "'"


def test_a_portia_sample_names_no_page_outside_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.html").write_text(SHOP, encoding="utf-8")
    (tmp_path / "project").mkdir()
    for name in (str(tmp_path / "secret"), "../../secret", "../secret"):
        sample = {"url": "https://shop.example/p/1", "body": name, "annotated_body": SHOP}
        file = tmp_path / "project/sample.json"
        file.write_text(json.dumps({"start_urls": [], "templates": [sample]}), encoding="utf-8")
        with pytest.raises(SourceError, match="has no page"):
            read_peer_file(file)


@pytest.mark.parametrize("link", ["sample/original_body.html", "sample"])
def test_a_portia_sample_has_no_page_that_a_link_leads_to(tmp_path: Path, link: str) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private/original_body.html").write_text(SHOP, encoding="utf-8")
    file = tmp_path / "project/sample.json"
    (file.parent / link).parent.mkdir(parents=True)
    target = tmp_path / "private"
    (file.parent / link).symlink_to(target / "original_body.html" if link.endswith(".html") else target)
    sample = {"url": "https://shop.example/p/1", "annotated_body": SHOP}
    file.write_text(json.dumps({"start_urls": [], "templates": [sample]}), encoding="utf-8")
    with pytest.raises(SourceError, match="has no page"):
        read_peer_file(file)


def test_a_portia_project_has_no_file_without_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "items.json")
    file = tmp_path / "sample.json"
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample/original_body.html").symlink_to("/dev/zero")
    sample = {"url": "https://shop.example/p/1", "annotated_body": SHOP}
    file.write_text(json.dumps({"start_urls": [], "templates": [sample]}), encoding="utf-8")
    with pytest.raises(SourceError, match="has no page"):
        read_peer_file(file)


def test_the_marks_of_a_portia_sample_are_its_values(tmp_path: Path) -> None:
    marked = (
        SHOP.replace("<h1>", f"<h1 {mark(content='name')}>")
        .replace("<img", f"<img {mark(src='photo', alt='caption')}")
        .replace("Now: $49.90", f"Now: <ins {mark(content='price')}>$49.90</ins>")
        .replace('<a class="maker"', f"<a {mark(content='maker')} class=maker")
    )
    sample = {
        "url": "https://shop.example/p/1",
        "annotated_body": marked,
        "original_body": SHOP,
        "extractors": {"maker": ["a1"]},
    }
    model = model_of(tmp_path, {"start_urls": [], "templates": [sample, {**sample, "original_body": ""}, {}]})
    (found,) = model.samples
    assert found.page.url == "https://shop.example/p/1"
    assert found.page.html.decode() == SHOP
    assert texts(found.example.values) == {
        "name": ["Oak lamp"],
        "price": ["$49.90"],
        "photo": ["lamp.jpg"],
        "caption": ["A lamp"],
    }
    assert model.left_out == (
        "maker is part of a text, by a pattern that is not taken over.",
        "The sample of https://shop.example/p/1 has no page: give it with its folder, as Portia keeps it.",
        "Sample 3 has no url.",
    )


def test_marks_mean_what_they_mean_to_portia(tmp_path: Path) -> None:
    together = json.dumps([{"annotations": {"content": "maker"}}, {"annotations": {"href": "link"}}])
    whole = json.dumps(
        {"annotations": {"content": "size", "text-content": "weight"}, "text-content": "text-content"}
    )
    marked = (
        SHOP.replace("<h1>", f"<h1 {mark(content='name')}>")
        .replace("<em>", "<em data-scrapy-ignore='true'>")
        .replace('<a class="maker"', f"<a data-scrapy-annotate='{together}' class=maker")
        .replace("<img", f"<img {mark(alt='#sticky', src='_sticky1', title='')}")
        .replace("</ul>", f"</ul><p content='2 m' data-scrapy-annotate='{whole}'>1 kg</p>")
    )
    sample = {
        "url": "https://shop.example/p/1",
        "annotated_body": marked,
        "original_body": SHOP,
        # Before there were selectors, elements had numbers.
        "plugins": {"annotations-plugin": {"extracts": [{"tagid": 3, "annotations": {"content": "name"}}]}},
    }
    model = model_of(tmp_path, sample)
    (found,) = model.samples
    assert texts(found.example.values) == {
        "maker": ["Lampworks"],
        "link": ["/m/7"],
        "size": ["2 m"],
        "weight": ["1 kg"],
    }
    assert model.left_out == ("name has parts that are to be ignored, and is not taken over.",)


def extract(css: str, field: str, container: str | None = None, **more: object) -> dict[str, object]:
    data = {"1": {"attribute": more.pop("attribute", "content"), "field": field, "extractors": {}}}
    return {"selector": css, "container_id": container, "data": data, **more}


def project(folder: Path, html: str, extracts: list[dict[str, object]]) -> Path:
    """A sample as a later Portia keeps it: fields by their ids, the page beside it."""
    items = {"s": {"fields": {"f1": {"name": "name"}, "f2": {"name": "price"}, "f3": {"name": "colour"}}}}
    (folder / "items.json").write_text(json.dumps(items), encoding="utf-8")
    place = folder / "spiders" / "shop.example"
    (place / "11aa").mkdir(parents=True)
    (place / "11aa" / "rendered_body.html").write_text(html, encoding="utf-8")
    sample = {
        "url": "https://shop.example/p/1",
        "body": "rendered_body",
        "annotated_body": "",
        "plugins": {"annotations-plugin": {"extracts": extracts}},
    }
    (place / "11aa.json").write_text(json.dumps(sample), encoding="utf-8")
    return place / "11aa.json"


def test_the_selectors_of_a_later_portia_sample_find_its_values(tmp_path: Path) -> None:
    box = {"id": "c1", "item_container": True, "selector": "body", "container_id": None}
    extracts = [
        box,
        extract("body > h1", "f1", "c1"),
        extract("body > .box > .price", "f2", "c1"),
        extract(".colours > li", "f3", "c1", repeated=True),
    ]
    (found,) = read_peer_file(project(tmp_path, SHOP, extracts)).samples
    assert texts(found.example.values) == {
        "name": ["Oak lamp"],
        "price": ["Now: $49.90"],
        "colour": ["red", "blue"],
    }


def test_selectors_of_portia_that_were_written_by_hand_mean_all_that_they_find(tmp_path: Path) -> None:
    extracts: list[dict[str, object]] = [
        extract(".colours > li", "f3", selection_mode="css"),
        extract("h1", "f1", selection_mode="xpath", xpath="//h1"),
        extract("img", "#sticky"),
        extract(".price", "f2", pre_text="Now: ", post_text=None),
        # As of a meta element, whose attribute it is.
        {**extract("h1[content]", "posted"), "text-content": "#portia-content"},
        {"selector": "em", "ignore": True},
        {"selector": "h1", "data": {"1": {"attribute": "content", "field": None}}},
    ]
    html = SHOP.replace("<h1>", "<h1 content=today>")
    model = read_peer_file(project(tmp_path, html, extracts))
    (found,) = model.samples
    assert texts(found.example.values) == {"colour": ["red", "blue"], "posted": ["today"]}
    assert model.left_out == (
        "name has a selector that cannot be read, 'h1': it is an XPath.",
        "price is part of a text, by a pattern that is not taken over.",
        "Parts of a page are to be ignored, which is not taken over: check the values.",
    )


def test_what_is_repeated_in_a_portia_sample_is_a_list(tmp_path: Path) -> None:
    extracts: list[dict[str, object]] = [
        {"id": "c1#parent", "item_container": True, "selector": ".all", "container_id": None},
        {
            "id": "c1",
            "item_container": True,
            "repeated": True,
            "selector": ".item",
            "container_id": "c1#parent",
        },
        extract(".item > a", "f1", "c1"),
        extract("b", "f2", "c1"),
        *(extract(".pager", f"not in a record {number}", "c1") for number in range(3)),
        extract("h1", "f3", "c1#parent"),
    ]
    model = read_peer_file(project(tmp_path, LIST, extracts))
    (found,) = model.samples
    assert [texts(record) for record in found.example.records] == [
        {"name": ["Oak lamp"], "price": ["$49.90"]},
        {"name": ["Desk lamp"]},
    ]
    assert model.left_out == ("colour stands beside a list, whose records are taken over.",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no JSON"),
        ("{}", "Cannot tell what .*: it must be a sitemap that Web Scraper exported"),
        ("[1]", "Cannot tell what "),
        (json.dumps({"url": "u", "plugins": {"annotations-plugin": 1}, "original_body": "x"}), "is damaged"),
        (json.dumps(sitemap()), "of Web Scraper, has nothing that can be taken over"),
        (json.dumps({"stack_list": [rule("x")]}), r"taken over\. Rule 1, of x, says no way"),
    ],
)
def test_a_file_of_no_use_is_told(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "model.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SourceError, match=message):
        read_peer_file(file)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"model.json cannot be read: No such file"):
        read_peer_file(tmp_path / "model.json")


def test_selectors_without_what_reads_them_name_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cssselect", None)
    with pytest.raises(MissingExtra, match=r"Reading CSS selectors needs the extra 'crawl'"):
        model_of(tmp_path, sitemap(selector("name", "SelectorText", "h1.never-seen-before")))


@pytest.mark.parametrize(
    "odd",
    [
        {"wanted_attr": ["href"]},
        {"content": [["html", NONE, -5], ["body", BODY, 0]]},
        {"content": [["html", NONE, 1e999], ["body", BODY, 0]]},
        {"content": [["html", NONE, 0], ["body", {"class": 7}, 0]]},
        {"content": [["html", NONE, 0], ["body", [["class", ""]], 0]]},
    ],
)
def test_a_rule_of_autoscraper_that_says_no_way_is_left_out(tmp_path: Path, odd: dict[str, Any]) -> None:
    sound = rule("name", ["html", NONE, 0], ["body", BODY, 0], ["h1", NONE])
    model = model_of(tmp_path, {"stack_list": [rule("odd") | odd, sound]})
    assert [layout.attributes for layout in model.layouts] == [["name"]]
    assert model.left_out == ("Rule 1, of odd, says no way to its value that can be read.",)


@pytest.mark.parametrize("name", ["", "\0", "\ud800", "{", "a b"])
def test_a_rule_of_autoscraper_may_name_any_html_attribute(tmp_path: Path, name: str) -> None:
    asked = rule("x", ["html", NONE, 0], ["body", {name: "y"}, 0])
    told = rule("z", ["html", NONE, 0], ["body", BODY, 0], wanted_attr=name or None)
    (layout,) = model_of(tmp_path, {"stack_list": [asked, told]}).layouts
    assert set(layout.on(root_of(SHOP)).values) <= {"z"}


def test_selectors_of_very_many_parts_are_read_soon(tmp_path: Path) -> None:
    start = time.process_time()
    for css in ("h1" + "," * 100_000, "h1," * 30_000 + "'", "a(,'" * 30_000, "(" * 100_000):
        with suppress(SourceError):
            model_of(tmp_path, sitemap(selector("name", "SelectorText", css)))
    assert time.process_time() - start < 20
