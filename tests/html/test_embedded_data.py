"""What pages carry for machines, read as flat records."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from siteloom.core.model import Failure, Page
from siteloom.core.settings import ParseSettings
from siteloom.html.embedded_data import (
    EmbeddedRecord,
    embedded_records,
    main_record,
    may_have_records,
    read_embedded,
)
from siteloom.html.time_limit import TOOK_TOO_LONG

URL = "https://shop.example/p/17"


def page(head: str = "", body: str = "", url: str = URL) -> Page:
    return Page.from_text(url, f"<html><head>{head}</head><body>{body}</body></html>")


def json_ld(*things: object) -> Page:
    scripts = (f'<script type="application/ld+json">{json.dumps(thing)}</script>' for thing in things)
    return page("".join(scripts))


def only(records: list[EmbeddedRecord]) -> EmbeddedRecord:
    (record,) = records
    return record


def test_things_inside_a_thing_are_flattened() -> None:
    product = {
        "@context": "https://schema.org",
        "@type": "Product",
        "name": "Oak  lamp &amp; shade",
        "image": ["1.jpg", {"@type": "ImageObject", "url": "2.jpg"}],
        "offers": [
            {"@type": "Offer", "price": 12.5, "priceCurrency": "USD"},
            {"@type": "Offer", "price": "11.00", "priceCurrency": "USD"},
        ],
        "aggregateRating": {"@type": "AggregateRating", "ratingValue": 4, "reviewCount": "17"},
        "author": {"@type": "Person", "name": "Ann Lee", "url": "/ann"},
        "isAccessibleForFree": True,
        "sku": None,
        "gtin": "",
    }
    assert only(embedded_records(json_ld(product))) == {
        "_type": ("Product",),
        "name": ("Oak lamp & shade",),
        "image": ("1.jpg", "2.jpg"),
        "image.url": ("2.jpg",),
        "offers.price": ("12.5", "11.00"),
        "offers.priceCurrency": ("USD",),
        "aggregateRating.ratingValue": ("4",),
        "aggregateRating.reviewCount": ("17",),
        "author": ("Ann Lee",),
        "author.url": ("/ann",),
        "isAccessibleForFree": ("true",),
    }


def test_a_postal_address_is_one_line_and_its_parts() -> None:
    address = {
        "@type": "PostalAddress",
        "streetAddress": "12 Main St",
        "addressLocality": "Springfield",
        "addressRegion": "IL",
        "postalCode": "62701",
    }
    record = only(embedded_records(json_ld({"@type": "Restaurant", "name": "Fern", "address": address})))
    assert record["address"] == ("12 Main St, Springfield, IL 62701",)
    assert record["address.streetAddress"] == ("12 Main St",)


def test_a_graph_is_read_with_what_refers_to_each_other() -> None:
    graph = [
        {"@type": "WebSite", "@id": "#site", "name": "Shop", "url": "https://shop.example"},
        {"@type": "Person", "@id": "#ann", "name": "Ann Lee", "knows": {"@id": "#bob"}},
        {"@type": "Person", "@id": "#bob", "name": "Bob", "knows": {"@id": "#ann"}},
        {"@type": "Article", "headline": "News", "author": {"@id": "#ann"}, "about": {"@id": "#nothing"}},
    ]
    record = main_record(json_ld({"@context": "https://schema.org", "@graph": graph}))
    assert record is not None
    assert (record["_type"], record["headline"], record["author"]) == (("Article",), ("News",), ("Ann Lee",))
    assert record["author.knows"] == ("Bob",)
    assert "about" not in record


def test_what_the_page_is_about_comes_first() -> None:
    things: list[dict[str, object]] = [
        {"@type": "BreadcrumbList", "name": "x", "a": 1, "b": 2, "c": 3, "d": 4},
        {"@type": "Organization", "name": "The shop", "telephone": "1", "email": "2"},
        {
            "@type": "Product",
            "name": "Another",
            "sku": "1",
            "color": "red",
            "url": "https://shop.example/p/9",
        },
        {"@type": "Product", "name": "This", "url": "http://www.shop.example/p/17/#top"},
    ]
    records = embedded_records(json_ld(*things))
    assert [record["name"][0] for record in records[:2]] == ["This", "Another"]
    assert {record["_type"][0] for record in records[2:]} == {"BreadcrumbList", "Organization"}
    assert main_record(json_ld(*things)) == records[0]
    assert main_record(json_ld(*things[:2])) is None


def test_what_a_web_page_has_as_its_main_entity_counts_as_what_it_is_about() -> None:
    thing = {"@type": "ItemPage", "name": "Page", "mainEntity": {"@type": "Recipe", "name": "Soup"}}
    assert main_record(json_ld(thing)) == {"_type": ("Recipe",), "name": ("Soup",)}


def test_a_list_of_things_is_about_none_of_them() -> None:
    lamps = [{"@type": "Product", "name": f"Lamp {number}", "sku": str(number)} for number in range(4)]
    assert len(embedded_records(json_ld(*lamps))) == 4
    assert main_record(json_ld(*lamps)) is None


def test_broken_scripts_do_not_spoil_others() -> None:
    broken = '<script type="application/ld+json">{"@type": "Product", </script>'
    text = broken + '<script type="application/ld+json">// {\n{"@type": "Book", "name": "Emma",}</script>'
    assert main_record(page(text)) == {"_type": ("Book",), "name": ("Emma",)}
    assert embedded_records(page(broken)) == []


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inside: (
            st.lists(inside, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["@id", "@type", "@graph", "@value", "@list", "name", "mainEntity", "x:y", ""]
                ),
                inside,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
@example({"@id": [], "name": "a name that is no text"})
def test_any_json_gives_records_of_texts(thing: object) -> None:
    text = json.dumps(thing).replace("<", "\\u003c")
    for record in embedded_records(page(f'<script type="application/ld+json">{text}</script>')):
        assert all(isinstance(one, str) for texts in record.values() for one in texts)


def test_things_that_refer_to_many_others_end() -> None:
    graph = [
        {
            "@type": "Person",
            "@id": f"#{one}",
            "name": str(one),
            "knows": [{"@id": f"#{n}"} for n in range(60)],
        }
        for one in range(60)
    ]
    assert len(embedded_records(json_ld({"@graph": graph}))) == 60


def test_microdata() -> None:
    body = """
    <div itemscope itemtype="http://schema.org/Restaurant"><h1 itemprop="name">Blue <b>Fern</b></h1>
    <div itemprop="address" itemscope itemtype="http://schema.org/PostalAddress">
    <span itemprop="streetAddress">12 Main St</span></div>
    <a itemprop="url" href="/p/17">here</a><span itemprop="servesCuisine">Thai</span>
    <span itemprop="servesCuisine">French</span><meta itemprop="priceRange" content="$$"></div>
    """
    assert main_record(page(body=body)) == {
        "_type": ("Restaurant",),
        "name": ("Blue Fern",),
        "address": ("12 Main St",),
        "address.streetAddress": ("12 Main St",),
        "url": (URL,),
        "servesCuisine": ("Thai", "French"),
        "priceRange": ("$$",),
    }


def test_rdfa() -> None:
    body = """
    <div vocab="http://schema.org/" typeof="Movie"><h1 property="name">Alien</h1>
    <p property="director" typeof="Person"><b property="name">Ridley Scott</b></p></div>
    """
    record = main_record(page(body=body))
    assert record == {"_type": ("Movie",), "name": ("Alien",), "director": ("Ridley Scott",)}


OPEN_GRAPH = """
<meta property="og:title" content="Oak lamp"><meta property="og:type" content="product">
<meta property="og:site_name" content="Shop"><meta property="product:price:amount" content="12.50">
"""


def test_open_graph_is_the_last_resort() -> None:
    record = {"name": ("Oak lamp",), "_type": ("product",), "offers.price": ("12.50",)}
    assert embedded_records(page(OPEN_GRAPH)) == [record]
    assert main_record(page(OPEN_GRAPH)) == record
    script = '<script type="application/ld+json">{"@type": "Product", "name": "Lamp"}</script>'
    assert embedded_records(page(OPEN_GRAPH + script)) == [{"_type": ("Product",), "name": ("Lamp",)}, record]
    website = page('<meta property="og:title" content="Home"><meta property="og:type" content="website">')
    assert main_record(website) is None


@pytest.mark.parametrize(
    "html",
    [
        b"",
        b"<p>blog: typeof x",
        "<p itemscope>".encode("utf-16"),
        b"<div>" * 5_000 + b"<p itemscope itemprop=x>",
    ],
)
def test_pages_with_nothing_to_read(html: bytes) -> None:
    assert embedded_records(Page(URL, html)) == []


def test_very_many_records_and_values_take_time_in_proportion() -> None:
    limits = ParseSettings(max_seconds=10)
    found = read_embedded(json_ld([{"@type": "Product", "name": f"n{n}"} for n in range(20_000)]), limits)
    assert not isinstance(found, Failure)
    assert len(found) == 20_000
    found = read_embedded(json_ld({"@type": "Product", "sku": [str(n) for n in range(60_000)]}), limits)
    assert not isinstance(found, Failure)
    assert len(only(found)["sku"]) == 60_000
    images = "".join(f"<meta property='og:image' content='{n}'>" for n in range(60_000))
    found = read_embedded(page(images), limits)
    assert not isinstance(found, Failure)
    assert len(only(found)["image"]) == 60_000


def test_things_that_all_refer_to_each_other_take_no_more_than_they_may() -> None:
    names = [{"@id": f"#{n}"} for n in range(200)]
    things = [{"@id": f"#{n}", "@type": "Product", "name": f"n{n}", "isRelatedTo": names} for n in range(200)]
    found = read_embedded(json_ld(things), ParseSettings(max_seconds=10))
    assert not isinstance(found, Failure)
    assert len(found) == 200


def test_a_page_that_cannot_be_read_in_time_has_no_record() -> None:
    slow = page(body="<div itemscope itemtype=https://schema.org/Product itemprop=a>" * 1_000)
    found = read_embedded(slow, ParseSettings(max_seconds=0.2))
    assert isinstance(found, Failure)
    assert (found.url, found.reason) == (URL, TOOK_TOO_LONG)
    deep = page(body="<div typeof=x>" * 3_000)
    assert isinstance(read_embedded(deep), Failure)
    assert embedded_records(deep) == []


def test_only_pages_with_signs_are_read() -> None:
    assert not may_have_records(page(body="<script>if (typeof x == 1) blog:</script>"))
    assert may_have_records(page(OPEN_GRAPH))
    assert not may_have_records(page(OPEN_GRAPH), more_than_open_graph=True)
    assert may_have_records(page(body="<P ITEMSCOPE>"), more_than_open_graph=True)


def test_without_the_extra_it_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['extruct'] = None\n"
        "from siteloom.html.embedded_data import embedded_records; from siteloom.core.model import Page\n"
        "embedded_records(Page('http://a.example', b'<p itemscope>'))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'siteloom[embedded]'" in result.stderr
