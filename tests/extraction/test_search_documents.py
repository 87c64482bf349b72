"""What pages and records are searched by."""

from __future__ import annotations

from typing import Any

from siteloom.core.model import Failure, Page, Passage
from siteloom.extraction.search_documents import (
    AttributeCounts,
    common_segments,
    page_document,
    record_document,
)
from siteloom.html.parser import parse
from siteloom.templates.template_text import SegmentTable

GENRES = ("Drama", "Comedy")


def html(number: int) -> str:
    return (
        f"<title>Film {number}</title><body><div>Home | About us</div><h1>Film number {number}</h1>"
        f"<div><b>{GENRES[number % 2]}</b></div><p>This one is told in <i>{number} minutes</i>.</p>"
        "<script>var x</script></body>"
    )


def documents(count: int = 10) -> list[tuple[Passage, ...]]:
    table = SegmentTable()
    roots = []
    for number in range(count):
        root = parse(Page.from_text(f"http://a.example/{number}", html(number)))
        assert not isinstance(root, Failure)
        table.count(table.segments_of(root))
        roots.append(root)
    common = common_segments(table.counts())
    return [page_document("a.example", "u", root, table, common).passages for root in roots]


def test_a_page_is_searched_without_its_template_and_by_fields() -> None:
    assert documents()[7] == (
        Passage("Film 7", "title"),
        Passage("\nFilm number 7", "heading"),
        Passage("\nComedy\nThis one is told in", "common"),
        Passage(" 7 minutes", "text"),
        Passage(".", "common"),
    )


def test_of_a_site_that_is_not_known_yet_all_text_is_searched() -> None:
    (passages,) = documents(1)
    assert passages == (
        Passage("Film 0", "title"),
        Passage("\nHome | About us", "text"),
        Passage("\nFilm number 0", "heading"),
        Passage("\nDrama\nThis one is told in 0 minutes.", "text"),
    )


def test_an_empty_table_has_nothing_in_common() -> None:
    assert common_segments(SegmentTable().counts()) == frozenset()


def row(number: int, **values: list[str]) -> dict[str, Any]:
    return {"url": f"http://a.example/{number}", "wrapper": "w", "values": values}


def test_a_record_is_searched_by_its_name_first_and_least_by_what_many_have() -> None:
    counts = AttributeCounts()
    rows = [row(number, genre=[GENRES[number % 2]], name=[f"Film {number}"]) for number in range(20)]
    rows.append(row(20, genre=["Western", "Drama"], year=["1960"]))
    for one in rows:
        counts.add(one["wrapper"], one["values"])
    assert record_document("a.example", rows[3], counts).passages == (
        Passage("Film 3", "title", "name"),
        Passage("Comedy", "common", "genre"),
    )
    assert record_document("a.example", rows[20], counts).passages == (
        Passage("Western", "title", "genre"),
        Passage("Drama", "title", "genre"),
        Passage("1960", "heading", "year"),
    )
    assert record_document("a.example", row(21), counts).passages == ()
