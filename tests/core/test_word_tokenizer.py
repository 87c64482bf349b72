"""Texts as the words that search knows."""

from __future__ import annotations

import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core import word_tokenizer as module
from siteloom.core.word_tokenizer import terms, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Blue FERN, 2nd floor", ["blue", "fern", "2nd", "floor"]),
        ("Crème Brûlée", ["creme", "brulee"]),
        ("cre\N{COMBINING GRAVE ACCENT}me", ["creme"]),
        ("Straße Łódź Smørrebrød", ["strasse", "lodz", "smorrebrod"]),
        ("O'Brien snake_case", ["o", "brien", "snake", "case"]),
        ("\N{LATIN SMALL LIGATURE FI}sh \N{VULGAR FRACTION ONE HALF}", ["fish", "1", "2"]),
        ("Жук ЖУК", ["жук", "жук"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("서울 A1", ["서", "울", "a1"]),
        ("हिंदी में", ["हिंदी", "में"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("a\0b \ud800 -- \N{PILE OF POO}", ["a", "b"]),
        ("", []),
    ],
)
def test_words_without_case_and_accents(text: str, expected: list[str]) -> None:
    assert terms(text) == expected
    assert [term for word in words(text) for term in word.terms] == expected


def test_a_word_says_where_it_stands() -> None:
    text = "Un café, \N{VULGAR FRACTION ONE HALF}"
    assert [(text[word.start : word.end], word.terms) for word in words(text)] == [
        ("Un", ("un",)),
        ("café", ("cafe",)),
        ("\N{VULGAR FRACTION ONE HALF}", ("1", "2")),
    ]


def test_what_is_too_long_for_a_word_is_cut() -> None:
    assert terms("x" * 1000) == ["x" * 64]
    assert terms("é" * 1000) == ["e" * 64]
    assert terms("e\N{COMBINING ACUTE ACCENT}" * 1000) == ["e" * 64]


def test_no_long_word_is_remembered() -> None:
    module._folded.cache_clear()
    tracemalloc.start()
    try:
        for number in range(20):
            text = f"é{number}" + "x" * 1_000_000
            assert len(terms(text)) == len(list(words(text))) == 1
        assert tracemalloc.get_traced_memory()[0] < 4_000_000
    finally:
        tracemalloc.stop()


@given(st.text())
def test_terms_hold_nothing_that_a_database_takes_for_more_than_letters(text: str) -> None:
    found = terms(text)
    assert found == [term for word in words(text) for term in word.terms]
    for term in found:
        assert re.search(r"[\x00-\x2f\x3a-\x60\x7b-\x7f\s\ud800-\udfff]", term) is None
        assert 0 < len(term) <= 64
        assert term.casefold() == term


@given(st.text())
def test_a_text_in_capitals_has_the_words_of_the_text(text: str) -> None:
    assert terms(text.lower().upper()) == terms(text.lower().upper().lower())
