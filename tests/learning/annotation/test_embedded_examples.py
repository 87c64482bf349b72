"""Examples that pages give by themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import ExampleError, UsageError
from siteloom.core.model import Failure, Page
from siteloom.html.parser import parse
from siteloom.html.visible_text import visible_text
from siteloom.learning.annotation.embedded_examples import self_annotated, without_markup
from siteloom.learning.annotation.visible_values import ShownTexts
from siteloom.learning.induction.learner import learn
from siteloom.operations.annotate import self_annotated_templates
from siteloom.operations.cluster import cluster_store
from siteloom.operations.page_import import import_pages
from siteloom.sources.example_files import ExampleLine
from siteloom.store.store import Store
from tests.learning.annotation.self_annotating import RESTAURANTS, restaurant, site, truth, with_json_ld
from tests.operations.calls import annotate_pages


def page(body: str, url: str = "https://shop.example/p/1") -> Page:
    return Page.from_text(url, f"<html><head><title>Shop</title></head><body>{body}</body></html>")


# ---- examples


def test_pages_with_markup_teach_those_without() -> None:
    pages = site(marked=25)
    found = self_annotated(pages)
    assert (found.type, found.pages, len(found.examples)) == ("Restaurant", 25, 20)
    assert all(finding.is_used for finding in found.attributes.values())
    wrapper = learn(found.examples, pages)
    for one in RESTAURANTS[25:]:
        assert wrapper.extract(one.page).values == truth(one)


def test_attributes_that_pages_do_not_show_are_left_out_and_told() -> None:
    pages = [
        with_json_ld(
            one.page,
            {
                **restaurant(one),
                "priceRange": "$$$",
                "identifier": f"id-{number}-x",
                "slogan": ["Rare"] if number < 2 else [],
            },
        )
        for number, one in enumerate(RESTAURANTS[:12])
    ]
    pages = [replace(one, html=one.html.replace(b"</body>", b"<p>$$$</p></body>")) for one in pages]
    found = self_annotated(pages)
    told = {name: finding.why_left_out for name, finding in found.attributes.items() if not finding.is_used}
    assert told == {
        "priceRange": "it is the same on all pages",
        "identifier": "only 0 of 12 pages that carry it show it",
        "slogan": "only 2 of 12 pages carry it",
    }
    assert set(found.examples[0].values) == {"name", "telephone", "servesCuisine", "address", "email"}


def test_what_is_shown_by_chance_is_left_out() -> None:
    def chance(number: int) -> Page:
        numbers = " ".join(f"<i>{(number * 7 + place * 3) % 50}</i>" for place in range(50))
        thing = {"@type": "Book", "name": f"Book of {number}", "position": str(number * 11 % 50)}
        shown = page(f"<h1>Book of {number}</h1><p>{numbers}</p>", f"https://shop.example/b/{number}")
        return with_json_ld(shown, thing)

    found = self_annotated(map(chance, range(24)))
    assert found.attributes["name"].is_used
    assert found.attributes["position"].shown == 24
    assert found.attributes["position"].why_left_out == "rules find other values"


def test_no_rule_leans_on_markup() -> None:
    def marked(number: int, *, has_markup: bool = True) -> Page:
        scope = 'itemscope itemtype="http://schema.org/Book"' if has_markup else ""
        name, price = ('itemprop="name"', 'itemprop="price"') if has_markup else ("", "")
        body = f"""<div {scope}><div><b>New</b><span {name}>Book {number}</span></div>
        <div><b>Price</b><span {price} content="{number}.5">${number}.50</span></div></div>"""
        return page(body, f"https://shop.example/b/{number}")

    found = self_annotated(map(marked, range(1, 12)))
    wrapper = learn(found.examples)
    assert "itemprop" not in wrapper.to_json()
    for number in (77, 88):
        values = wrapper.extract(marked(number, has_markup=False)).values
        assert values == {"name": (f"Book {number}",), "price": (f"{number}.50",)}


def test_the_type_of_most_pages_counts_and_others_are_told() -> None:
    events = [
        with_json_ld(page(f"<h1>Event {number}</h1>"), {"@type": "Event", "name": f"Event {number}"})
        for number in range(4)
    ]
    found = self_annotated([*events, *site(marked=9)])
    assert (found.type, found.pages, found.other_types) == ("Restaurant", 9, {"Event": 4})


@pytest.mark.parametrize(("marked", "message"), [(0, "No page carries"), (2, "2 pages carry")])
def test_too_few_pages_are_an_error(marked: int, message: str) -> None:
    with pytest.raises(ExampleError, match=message):
        self_annotated(site(marked))


def test_nothing_to_learn_is_an_error() -> None:
    pages = [with_json_ld(one.page, {"@type": "Book", "isbn": f"x{one.page.url}"}) for one in RESTAURANTS[:5]]
    with pytest.raises(ExampleError, match="isbn: only 0 of 5 pages that carry it show it"):
        self_annotated(pages)


# ---- what is seen


@pytest.mark.parametrize(
    ("value", "shown", "seen"),
    [
        ("Blue Fern", "The Blue  Fern, Springfield", "Blue Fern"),
        ("12.9", "now $12.90 only", "12.90"),
        ("12.99", "$12.99", "12.99"),
        ("1299", "EUR 1,299.00", "1,299.00"),
        ("2024-05-01", "posted on May 1, 2024 by Ann", "May 1, 2024"),
        ("2024-05-01T08:00:00Z", "01/05/2024", "01/05/2024"),
        ("2024-09-03", "Sept. 3rd, 2024", "Sept. 3rd, 2024"),
        ("2024-05-01", "1er mai 2024", "1er mai 2024"),
        ("+1-415-555-1212", "Phone: (415) 555-1212.", "(415) 555-1212"),
        ("+442079460000", "020 7946 0000", "020 7946 0000"),
        ("https://shop.example/i/7.jpg", '<img src="/i/7.jpg">', "/i/7.jpg"),
        ("Red Fern", "Blue Fern", None),
        ("13", "12.90", None),
        ("2024-05-02", "May 1, 2024", None),
        ("2024-02-31", "February 31", None),
        ("+1-415-555-1213", "(415) 555-1212", None),
        ("\u200b", "x", None),
    ],
)
def test_values_are_found_as_the_page_writes_them(value: str, shown: str, seen: str | None) -> None:
    root = parse(page(f"<p>{shown}</p>"))
    assert not isinstance(root, Failure)
    assert ShownTexts(root).as_shown(value) == seen


# ---- pages without their markup


def test_markup_is_stripped_and_all_else_stays() -> None:
    before = page(
        '<meta property=og:title content="A"><meta name="description" content="B"><link itemprop=url href=/x>'
        '<meta name="twitter:title" content="A"><a rel="v:director nofollow" href="/y" class=z>Y</a>'
        '<p itemscope itemtype="http://schema.org/Book" id="p">1 < 2<br/>'
        '<b itemprop="name" content="2" class=c>x</b>'
        "<script>if (a < b) '<p itemprop=x>'</script><!-- <p itemprop=y> -->"
    )
    html = without_markup(before).html.decode()
    assert html == before.html.decode().replace(' property=og:title content="A"', "").replace(
        " itemprop=url href=/x", ""
    ).replace('name="twitter:title" content="A"', 'name="twitter:title"').replace(
        ' rel="v:director nofollow"', ""
    ).replace(' itemscope itemtype="http://schema.org/Book"', "").replace(' itemprop="name" content="2"', "")


def test_a_page_without_markup_stays_as_it_is() -> None:
    assert without_markup(RESTAURANTS[0].page) is RESTAURANTS[0].page


_PIECES = st.sampled_from(
    [
        "<p itemprop=a>",
        "<b",
        ">",
        " itemscope",
        ' property="x>y"',
        "</p>",
        "<meta content='",
        "'",
        "ä",
        "<a/rel=a:b ",
    ]
)


@given(st.lists(_PIECES, max_size=12).map("".join))
def test_what_is_seen_stays_whatever_the_markup(html: str) -> None:
    before = Page.from_text("https://a.example", f"<html><body><i>.</i>{html}</body></html>")
    one, other = parse(before), parse(without_markup(before))
    assert not isinstance(one, Failure)
    assert not isinstance(other, Failure)
    assert visible_text(one) == visible_text(other)
    assert [node.tag for node in one.iter()] == [node.tag for node in other.iter()]


# ---- a workspace


class _Pages:
    def __init__(self, pages: list[Page]) -> None:
        self._pages = pages

    def read(self) -> list[Page]:
        return self._pages


def test_templates_of_a_workspace(store: Store) -> None:
    with pytest.raises(UsageError, match="siteloom cluster first"):
        self_annotated_templates(store)
    import_pages(store, [_Pages(site(marked=25))], jobs=1, names=["guide"])  # type: ignore[list-item]
    cluster_store(store, "vertex")
    (template,) = self_annotated_templates(store)
    assert template.found is not None
    assert template.found.type == "Restaurant"
    assert len(template.clusters) > 1
    largest = template.clusters[0].id
    assert self_annotated_templates(store, largest) == [template]
    with pytest.raises(UsageError, match="no cluster nothing"):
        self_annotated_templates(store, "nothing")

    annotate_pages(
        store, [ExampleLine(RESTAURANTS[0].page.url, {"name": truth(RESTAURANTS[0])["name"]}, [], {})]
    )
    (template,) = self_annotated_templates(store)
    assert template.found is None
    assert "people have annotated" in template.why_not
