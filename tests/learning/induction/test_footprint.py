"""What a wrapper is for is learned with it: from its examples, and from the pages that it finds values on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from siteloom import Example, Page, Wrapper, learn
from siteloom.core.model import Footprint
from siteloom.core.settings import StoreSettings
from siteloom.operations.annotate import annotated_templates
from siteloom.operations.cluster import cluster_store
from siteloom.operations.learn import learn_together
from siteloom.operations.page_import import import_pages
from siteloom.sources.example_files import ExampleLine
from siteloom.sources.open_sources import open_source
from siteloom.store.store import Store
from siteloom.store.workspace_folder import open_store
from siteloom.templates.footprint import footprint
from siteloom.templates.signature import signature
from siteloom.templates.url_patterns import matches
from tests.operations.calls import annotate_pages, learned_template

NAMES = ("Fern", "Old Mill", "Sea View", "Red Door", "Blue Hare", "Long Bar", "The Ship", "Oak", "Elm", "Ash")


def detail(number: int, *, price: str | None = "$5", extra: str = "") -> Page:
    cost = f"<p class=price>{price}</p>" if price else ""
    html = (
        f"<body><nav><a href=/>Home</a></nav><h1>{NAMES[number]}</h1>{cost}{extra}<footer>x</footer></body>"
    )
    return Page.from_text(f"https://shop.example/item/{number}.html", html)


def other(number: int) -> Page:
    rows = "".join(f"<tr><td>{name}<td>{number}</tr>" for name in NAMES[:number])
    return Page.from_text(f"https://shop.example/list/{number}", f"<body><table>{rows}</table></body>")


def examples(*numbers: int) -> list[Example]:
    return [Example(detail(number), {"name": [NAMES[number]], "price": ["$5"]}) for number in numbers]


def footprint_of(pages: Iterable[Page]) -> Footprint:
    return footprint([(page.url, signature(page.html)) for page in pages])


def test_the_examples_are_known() -> None:
    wrapper = learn(examples(0, 1, 2))
    assert wrapper.footprint == footprint_of([detail(0), detail(1), detail(2)])
    assert wrapper.footprint.sites == ("shop.example",)
    assert wrapper.footprint.url_patterns == (r"^https?://shop\.example/item/[^/?#]+\.html$",)


def test_pages_without_examples_are_known_if_the_mandatory_values_are_found_there() -> None:
    alike = [detail(number, extra="<ul><li>a<li>b</ul>" * number) for number in range(3, 9)]
    odd = detail(9, price=None, extra="<h2>Sold out</h2>" * 20)
    schema = {"name": {"mandatory": True}, "price": {"mandatory": True}}
    wrapper = learn(examples(0, 1), [*alike, odd, other(3)], schema)
    assert wrapper.footprint == footprint_of([detail(0), detail(1), *alike])


def test_without_mandatory_attributes_half_of_them_are_enough() -> None:
    half = [detail(number, price=None, extra="<p>Ask us</p>" * number) for number in range(3, 9)]
    schema = {"name": {"mandatory": False}, "price": {"mandatory": False}}
    wrapper = learn(examples(0, 1), [*half, other(3)], schema)
    assert wrapper.footprint == footprint_of([detail(0), detail(1), *half])


def test_list_pages_are_known_if_a_record_is_found_there() -> None:
    def listing(number: int) -> Page:
        items = "".join(f"<li class=card><b>{name}</b> <i>$5</i></li>" for name in NAMES[: number + 3])
        return Page.from_text(f"https://shop.example/list/{number}", f"<body><ul>{items}</ul></body>")

    records = [{"name": [name], "price": ["$5"]} for name in NAMES[:3]]
    lists = [listing(number) for number in range(4)]
    wrapper = learn([Example(lists[0], records=records)], [*lists, detail(1)])
    assert wrapper.footprint == footprint_of(lists)


def test_the_same_input_gives_the_same_text() -> None:
    others = [detail(number) for number in range(2, 9)]
    texts = {learn(examples(0, 1), others).to_json() for _ in range(2)}
    assert len(texts) == 1
    assert Wrapper.from_json(texts.pop()).footprint.accepted


# ---- in a workspace


@pytest.fixture
def small_store(tmp_path: Path) -> Iterator[Store]:
    """Details in one cluster, an odd detail in none, and lists."""
    store = open_store(StoreSettings(str(tmp_path / "workspace")), create=True)
    odd = replace(detail(9, extra="<div><b>x</b></div>" * 30), url="https://shop.example/odd.html")
    pages = [*(detail(number) for number in range(9)), odd, *(other(number) for number in (7, 8, 9))]
    lines = [json.dumps({"url": page.url, "html": page.html.decode()}) for page in pages]
    file = tmp_path / "pages.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    import_pages(store, [open_source(file)])
    cluster_store(store, "vertex")
    yield store
    store.close()


def line(url: str, number: int) -> ExampleLine:
    return ExampleLine(url, {"name": [NAMES[number]], "price": ["$5"]}, (), {})


LINES = [line(detail(number).url, number) for number in (0, 1)]
ODD = line("https://shop.example/odd.html", 9)


def test_the_pages_of_a_wrapper_are_those_of_its_clusters(small_store: Store) -> None:
    annotate_pages(small_store, LINES)
    (template,) = annotated_templates(small_store)
    learned = learned_template(small_store, template).learned
    assert learned is not None
    known = learned.wrapper.footprint
    (cluster,) = template.clusters
    assert known == Footprint(
        ("shop.example",), cluster.url_patterns, ((cluster.mask, cluster.mask_pages),), cluster.accepted
    )
    assert cluster.size == 9
    assert learned_template(small_store, template).version == 1


def test_examples_outside_of_the_clusters_are_known_as_well(small_store: Store) -> None:
    annotate_pages(small_store, [*LINES, ODD])
    (template,) = annotated_templates(small_store)
    learned = learned_template(small_store, template).learned
    assert learned is not None
    known = learned.wrapper.footprint
    (odd,) = small_store.versions(ODD.url, "shop.example")
    found = signature(odd.html)
    assert found is not None
    assert found.hex() in known.accepted
    assert any(matches(pattern, ODD.url) for pattern in known.url_patterns)
    assert len(known.accepted) == 2


def test_learning_from_sources_knows_the_pages_that_are_alike(small_store: Store) -> None:
    page = small_store.versions(LINES[0].url, "shop.example")[-1]
    wrapper = learn_together(small_store, [LINES[0].on(page)]).wrapper
    assert wrapper.footprint.masks[0][1] == 9
    assert wrapper.footprint.url_patterns == (r"^https?://shop\.example/item/[^/?#]+\.html$",)
