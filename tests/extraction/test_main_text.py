"""The main text of made-up news pages: an extractor is told what stands on other pages, too."""

from __future__ import annotations

import subprocess
import sys

import pytest
import trafilatura

from siteloom.core.errors import UnreadablePage
from siteloom.core.model import Page
from siteloom.extraction.main_text import main_text
from siteloom.templates.template_text import SegmentTable

NOTICE = (
    "Readers who have found a mistake in one of our articles are asked to write to the editors, who will "
    "look into it within a day and correct the text where that is needed."
)
TEASER = (
    "In other news, the ferry between the two islands will be out of service for the rest of the month, as "
    "its engine is to be replaced by one that makes less noise."
)
TOWNS = ("Arden", "Belmont", "Corby", "Dorset", "Elgin", "Farnham", "Galway", "Harlow")


def headline(number: int) -> str:
    return f"Mayor of {TOWNS[number]} opens bridge number {number}"


def paragraphs(number: int) -> list[str]:
    town = TOWNS[number]
    return [
        f"After {number + 2} years of work, the mayor of {town} opened the bridge in front of a wet crowd.",
        f"It is {number + 3}00 metres long and has cost {town} {number + 4} million, as steel is dear now.",
        f"From next week on it takes people in {town} {number + 5} minutes less to get to work, they hope.",
    ]


def article(number: int, *, teaser: bool = False) -> Page:
    text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs(number))
    aside = f"<p>{TEASER}</p>" if teaser else ""
    return Page.from_text(
        f"https://news.example/{number}",
        f"<html><head><title>News of the isles | {headline(number)}</title></head><body>"
        "<div><a href='/'>Home</a> <a href='/sport'>Sport</a> <a href='/weather'>Weather</a></div>"
        f"<div class='top'><b>{headline(number)}</b></div>"
        f"<div class='story'>{text}{aside}<p>{NOTICE}</p></div></body></html>",
    )


def table_of(*pages: Page) -> SegmentTable:
    table = SegmentTable()
    for page in pages:
        table.add(page)
    return table


def alone(page: Page) -> str:
    return trafilatura.extract(page.html.decode(), include_comments=False) or ""


def test_a_text_of_all_pages_is_left_out_that_the_extractor_alone_keeps() -> None:
    pages = [article(number) for number in range(6)]
    table = table_of(*pages)
    for number, page in enumerate(pages):
        assert NOTICE in alone(page)
        assert main_text(page, table).splitlines() == [headline(number), *paragraphs(number)]
    assert table.pages == 6


def test_a_text_of_three_pages_is_part_of_none() -> None:
    pages = [article(number, teaser=number in (1, 4, 6)) for number in range(8)]
    text = main_text(pages[4], table_of(*pages))
    assert text.splitlines() == [headline(4), *paragraphs(4)]
    fewer = [article(number, teaser=number in (1, 4)) for number in range(8)]
    assert TEASER in main_text(fewer[4], table_of(*fewer))


def test_a_page_that_was_seen_several_times_keeps_its_text() -> None:
    pages = [article(number) for number in range(6)]
    text = main_text(pages[2], table_of(*pages, *pages, *pages, *pages))
    assert text.splitlines() == [headline(2), *paragraphs(2)]


def test_a_young_table_gives_at_least_what_the_extractor_gives() -> None:
    page = article(3)
    assert main_text(page, SegmentTable()).splitlines() == [headline(3), *alone(page).splitlines()]


def test_a_headline_that_the_extractor_keeps_is_not_doubled() -> None:
    html = article(3).html.replace(b"<p>", f"<p>{headline(3)}</p><p>".encode(), 1)
    assert main_text(Page("https://news.example/3", html), SegmentTable()).count(headline(3)) == 1


def test_without_main_text_there_still_is_the_text_without_template() -> None:
    def listing(number: int) -> Page:
        links = "".join(f"<li><a href='/{number}/{n}'>{TOWNS[n]} {number}</a></li>" for n in range(8))
        return Page.from_text(
            f"https://news.example/list/{number}",
            f"<html><body><div>All the towns</div><div class='footer'><ul>{links}</ul></div></body></html>",
        )

    pages = [listing(number) for number in range(6)]
    assert alone(pages[1]) == "All the towns"
    text = main_text(pages[1], table_of(*pages))
    assert text.splitlines() == [f"{town} 1" for town in TOWNS]


def test_a_page_without_any_text_has_no_main_text() -> None:
    assert main_text(Page("https://news.example/", b"<html><body></body></html>"), SegmentTable()) == ""


def test_a_page_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(UnreadablePage):
        main_text(Page("https://news.example/", b""), SegmentTable())


def test_the_extra_is_named_where_it_is_missing() -> None:
    program = (
        "import sys; sys.modules['trafilatura'] = None\n"
        "from siteloom.extraction.main_text import main_text\n"
        "from siteloom.core.errors import MissingExtra\n"
        "from siteloom.core.model import Page\n"
        "from siteloom.templates.template_text import SegmentTable\n"
        "try: main_text(Page('', b'<p>A'), SegmentTable())\n"
        "except MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'siteloom[text]'" in done.stdout


def test_a_page_with_more_tags_than_the_extractor_can_read_keeps_its_text() -> None:
    page = Page.from_text("https://a.example/", "<body>" + "<a href=/x>word</a> " * 110_000)
    assert main_text(page, SegmentTable()).split() == ["word"] * 110_000
