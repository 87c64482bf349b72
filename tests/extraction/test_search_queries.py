"""What a person types, as terms to look for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import UsageError
from siteloom.extraction.search_query import Query, parse_query


@pytest.mark.parametrize(
    ("text", "wanted", "unwanted"),
    [
        ("Blue  FERN", [("blue",), ("fern",)], []),
        ('"Blue Fern" thai', [("blue", "fern"), ("thai",)], []),
        ("\N{LEFT DOUBLE QUOTATION MARK}Blue Fern\N{RIGHT DOUBLE QUOTATION MARK}", [("blue", "fern")], []),
        ('"left open', [("left", "open")], []),
        ("fern -blue", [("fern",)], [("blue",)]),
        ('fern -"blue sky" -', [("fern",)], [("blue", "sky")]),
        ("O'Brien 2,500", [("o",), ("brien",), ("2",), ("500",)], []),
        (
            "lemongrass,thai/title:snake_case",
            [(w,) for w in ("lemongrass", "thai", "title", "snake", "case")],
            [],
        ),
        ("fern-blue --x a", [("fern",), ("blue",), ("a",)], [("x",)]),
        ("post -e-mail", [("post",)], [("e", "mail")]),
        ('"fern-blue" -"O\'Brien"', [("fern", "blue")], [("o", "brien")]),
        ("fern fern", [("fern",)], []),
        ('a AND (b OR c*) NEAR/2 "', [(w,) for w in ("a", "and", "b", "or", "c", "near", "2")], []),
        ("title:fern 'x' \\ & | ! <->", [("title",), ("fern",), ("x",)], []),
        ("東京/大阪A1", [("東", "京"), ("大", "阪", "a1")], []),
        ("\N{VULGAR FRACTION ONE HALF}", [("1", "2")], []),
    ],
)
def test_words_phrases_and_exclusions(
    text: str, wanted: list[tuple[str, ...]], unwanted: list[tuple[str, ...]]
) -> None:
    assert parse_query(text) == (tuple(wanted), tuple(unwanted))


@pytest.mark.parametrize("text", ["", "  ", '""', "-x", '- " ... !'])
def test_there_must_be_something_to_look_for(text: str) -> None:
    with pytest.raises(UsageError, match=r"There is no word to look for.*: give at least one\."):
        parse_query(text)


def test_a_whole_text_is_cut() -> None:
    query = parse_query(" ".join(f"w{number}" for number in range(500)) + ' "' + "x " * 500 + '"')
    assert query == Query(tuple((f"w{number}",) for number in range(32)), ())
    assert parse_query('"' + "x " * 500 + '"').wanted == (("x",) * 64,)
    assert parse_query("京" * 500).wanted == (("京",) * 64,)


@given(st.text())
def test_whatever_is_typed_is_a_query_or_says_that_it_is_none(text: str) -> None:
    try:
        query = parse_query(text)
    except UsageError:
        return
    assert query.wanted
    assert all(phrase and all(phrase) for phrase in query.wanted + query.unwanted)
