"""Pages without template: as text, and as HTML."""

from __future__ import annotations

from time import process_time

import pytest

from siteloom.apps.demo.sites import guide_site
from siteloom.core.errors import UnreadablePage
from siteloom.core.model import Page
from siteloom.extraction.main_text import clean_text, without_template
from siteloom.html.visible_text import visible_text
from siteloom.templates.template_text import SegmentTable
from tests.html.trees import tree

MENU = "<ul><li><a href=/>Home</a></li><li><a href=/new>New</a></li></ul>"


def page(number: int, text: str = "") -> Page:
    html = f"""
        <html><head><title>{number}</title></head><body>{MENU}
        <div class=frame>Our site <div class=inner><p>Item <b>number {number}</b>{text}</p></div>
        all rights reserved <img src=logo.png></div><!-- end -->
        <p>Price in all our shops: {number}.50</p></body></html>"""
    return Page.from_text(f"http://a.example/{number}", html)


@pytest.fixture(scope="module")
def table() -> SegmentTable:
    table = SegmentTable()
    for number in range(20):
        table.add(page(number))
    return table


def test_a_line_of_text_for_each_block_of_content(table: SegmentTable) -> None:
    assert clean_text(page(7), table) == "Item number 7\nPrice in all our shops: 7.50"


def test_a_sentence_keeps_words_that_are_on_every_page(table: SegmentTable) -> None:
    assert clean_text(page(7, " and <i>Home</i>"), table).startswith("Item number 7 and Home\n")


def test_an_empty_table_takes_nothing_away() -> None:
    text = clean_text(page(7), SegmentTable())
    assert text.splitlines()[:3] == ["Home", "New", "Our site all rights reserved"]


def test_cleaning_does_not_count(table: SegmentTable) -> None:
    seen = table.pages
    clean_text(page(1), table)
    without_template(page(1), table)
    assert table.pages == seen


def test_html_keeps_content_inside_of_template_and_what_is_no_text(table: SegmentTable) -> None:
    root = tree(without_template(page(7), table))
    assert visible_text(root) == "Item number 7 Price in all our shops: 7.50"
    assert root.xpath("//div[@class='frame']/div[@class='inner']/p")
    assert root.xpath("//img")
    assert not root.xpath("//ul")
    assert root.findtext(".//title") == "7"


def test_html_can_be_empty_of_text(table: SegmentTable) -> None:
    only_menu = Page.from_text("http://a.example/menu", f"<html><body>{MENU}</body></html>")
    root = tree(without_template(only_menu, table))
    assert root.find("body") is not None
    assert visible_text(root) == ""


@pytest.mark.parametrize(
    "piece", ["text {}<br>", "<li>item {}</li>\n", "<!-- --><li>item {}</li>", "<b>label {}</b> value {} "]
)
def test_large_pages_are_cleaned_in_a_time_that_grows_with_their_size(piece: str) -> None:
    def seconds(count: int) -> float:
        html = f"<body><ul>{''.join(piece.format(number, number) for number in range(count))}</ul></body>"
        large = Page.from_text("http://a.example/", html)
        table = SegmentTable()
        segments = table.segments(large)
        for _ in range(5):
            table.count(segments)
        start = process_time()
        assert visible_text(tree(without_template(large, table))) == ""
        return process_time() - start

    assert seconds(16_000) < 10 * seconds(4_000) + 0.5  # sixteen times, if each looked at all others


def test_the_texts_between_elements_that_go_are_kept_in_order() -> None:
    def shown(number: int) -> Page:
        labels = "".join(f"<b>a label of the site {i}</b> {number}{i} " for i in range(4))
        return Page.from_text(f"http://a.example/{number}", f"<body><div>{labels}</div></body>")

    table = SegmentTable()
    for number in range(10):
        table.add(shown(number))
    root = tree(without_template(shown(7), table))
    assert visible_text(root) == "70 71 72 73"
    assert root.find(".//b") is None


def test_a_page_without_a_tree_is_refused(table: SegmentTable) -> None:
    for clean in (clean_text, without_template):
        with pytest.raises(UnreadablePage, match="empty page"):
            clean(Page("http://a.example/", b""), table)


def test_clean_pages_of_the_built_in_guide_have_all_their_values() -> None:
    site = guide_site()
    table = SegmentTable()
    for one in site:
        table.add(one.page)
    kept = whole = 0
    for one in site[::10]:
        text = clean_text(one.page, table)
        shown = visible_text(tree(one.page.html))
        assert visible_text(tree(without_template(one.page, table))).split() == text.split()
        kept += len(text)
        whole += len(shown)
        if one.kind == "restaurant":
            values = [value for values in one.truth.values() for value in values if value in shown]
            assert values
            assert [value for value in values if value not in text.replace("\n", " ")] == []
    assert kept < 0.9 * whole
