"""What is asked of annotators, and when it is enough."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from siteloom.learning.annotation.annotation_history import StatedValue, Statement
from siteloom.learning.annotation.annotation_questions import (
    Cell,
    ExternalValues,
    SheetPage,
    Value,
    cell,
    coverage,
    questions,
    remark,
)

SAID = Statement((StatedValue("a", "/p[1]"),), "ana", datetime(2026, 1, 1, tzinfo=UTC), 7)


def value(text: str, confidence: float | None = None) -> Value:
    return Value(text, None, confidence)


def page(number: int, cells: dict[str, Cell], *, is_settled: bool = False) -> SheetPage:
    return SheetPage(
        id=100 + number,
        number=number,
        url=f"http://a.example/{number}",
        version="v",
        revision=0,
        title="",
        covered=0.5,
        is_settled=is_settled,
        authors=[],
        cells=cells,
    )


def suggested(text: str, confidence: float = 0.99) -> Cell:
    return cell(None, [], [value(text, confidence)], None)


EMPTY = cell(None, [], [], None)
DIFFERS = cell(SAID, [value("a")], [value("b")], None)


def test_a_cell_is_what_was_said_or_found_or_known() -> None:
    assert cell(SAID, [value("a")], None, None).state == "said"
    assert cell(SAID, [], [], None).state == "absent"
    assert (DIFFERS.differs, DIFFERS.source, DIFFERS.revision) == (True, "ana", 7)
    assert not cell(SAID, [value("a \u2013 b")], [value("a - b")], None).differs  # they look the same
    assert suggested("a").state == "suggested"
    assert EMPTY.state == "empty"
    known = cell(None, [], [], ExternalValues([value("a")], "seeds"))
    assert (known.state, known.source) == ("known", "seeds")
    assert cell(None, [], [value("b")], ExternalValues([value("a")], "seeds")).state == "suggested"
    assert cell(None, [], None, None).state == "unknown"


def test_contradictions_are_asked_before_gaps_doubts_known_values_and_all_else() -> None:
    pages = [
        page(1, {"name": suggested("a")}),
        page(2, {"name": Cell("known", [value("k")], source="seeds")}),
        page(3, {"name": suggested("a", 0.5)}),
        page(4, {"name": EMPTY}),
        page(5, {"name": DIFFERS}),
        page(6, {"name": cell(SAID, [value("a")], [value("a")], None)}),
        page(7, {"name": Cell("unknown")}),
    ]
    asked = questions(pages, ["name"])
    assert [(one.kind, one.page) for one in asked] == [
        ("differs", 105),
        ("empty", 104),
        ("doubtful", 103),
        ("known", 102),
        ("suggested", 101),
    ]
    assert asked[0].text == "Page 5, name: “a” was said, the wrapper finds “b”."
    assert asked[1].text == "Page 4, name: no value is found. Is there none?"
    assert remark(pages, "name") == "page 5 differs"
    assert remark(pages[:4], "name") == "page 4 empty"
    assert remark(pages[:1], "name") is None


def test_an_attribute_that_most_pages_lack_is_not_asked_for_early() -> None:
    pages = [page(number, {"fax": EMPTY}) for number in range(1, 4)]
    pages.append(page(4, {"fax": suggested("a", 0.5)}))
    assert [one.kind for one in questions(pages, ["fax"])] == ["doubtful", "empty", "empty", "empty"]


@pytest.mark.parametrize(
    ("settled", "gain", "doubts", "is_enough", "end"),
    [
        (2, 0.0, 0, False, "; the next would add 0\N{NO-BREAK SPACE}%."),
        (3, 0.01, 0, True, ": more would hardly teach anything."),
        (3, 0.05, 0, False, "; the next would add 5\N{NO-BREAK SPACE}%."),
        (3, 0.01, 2, False, ": another page would hardly teach anything, but 2 doubts are left."),
        (5, 0.0, 0, True, ": there is nothing more to annotate here."),
    ],
)
def test_it_is_enough_when_nothing_is_open_and_more_would_hardly_add(
    settled: int, gain: float, doubts: int, is_enough: bool, end: str
) -> None:
    pages = [page(number, {}, is_settled=number <= settled) for number in range(1, 6)]
    told = coverage(pages, 0.9, gain, doubts)
    assert (told.is_enough, told.settled, told.pages) == (is_enough, settled, 5)
    shown = "are settled and show 90\N{NO-BREAK SPACE}% of what varies"
    assert told.sentence == f"{settled} of 5 sample pages {shown}{end}"
