"""Values of a kind are the same or not; other texts are as similar as their words."""

from __future__ import annotations

import pytest

from siteloom.learning.known_records.string_similarity import (
    SAME_MONTH,
    SAME_YEAR,
    WEAKLY_SIMILAR,
    WeakIndex,
    file_words,
    value_similarity,
)

NAMES = [
    "Hotel Holiday Inn",
    "Jasmines Restaurant",
    "Swagat Group of Hotels",
    "The Grand Hotel",
    "Joe's Pizza",
]


@pytest.fixture(scope="module")
def index() -> WeakIndex:
    return WeakIndex(NAMES)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Joe's Pizza", "JOE&S PIZZA!"),
        ("(415) 555-1212", "Phone: +1 415.555.1212"),
        ("0306406152", "ISBN-13: 978-0-306-40615-7"),
        ("05/01/2008", "May 1st, 2008"),
        ("12.99", "$12.99"),
        ("6-5", "196 cm"),
        ("http://www.example.com/", "example.com"),
    ],
)
def test_the_same_written_differently(value: str, text: str, index: WeakIndex) -> None:
    assert value_similarity(value, text, index) == value_similarity(text, value, index) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("(415) 555-1212", "(415) 555-1213"),
        ("9780306406157", "9781584795599"),
        ("$12.99", "$12.98"),
        ("12.99", "$12.98"),
        ("May 1, 2008", "May 2, 2008"),
        ("May 2008", "June 3, 2008"),
        ("2007", "May 1, 2008"),
        ("6-5", "6-6"),
        ("", ""),
        ("", "Joe's Pizza"),
        ("-", "-"),
    ],
)
def test_other_values_are_not_similar(value: str, text: str, index: WeakIndex) -> None:
    assert value_similarity(value, text, index) == value_similarity(text, value, index) == 0


def test_a_date_that_says_less_agrees_in_part(index: WeakIndex) -> None:
    assert value_similarity("May 2008", "05/01/2008", index) == SAME_MONTH
    assert value_similarity("2008", "05/01/2008", index) == SAME_YEAR
    assert value_similarity("May 2008", "2008", index) == SAME_YEAR


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Hotel Holiday Inn", "Holiday Inn Hotel"),
        ("Hotel Holiday Inn", "Hotel Holiday In"),
        ("Jasmines Restaurant", "Jasmins Restaurant"),
        ("Jasmines Restaurant", "Jasmines Rest."),
        ("Swagat Group of Hotels", "Swagat Grp. of Hotels"),
    ],
)
def test_word_order_slips_and_abbreviations_are_forgiven(value: str, text: str, index: WeakIndex) -> None:
    similarity = value_similarity(value, text, index)
    assert WEAKLY_SIMILAR <= similarity <= 1
    others = [value_similarity(name, text, index) for name in NAMES if name != value]
    assert max(others) < similarity


def test_kinds_that_cannot_be_compared_are_compared_as_texts(index: WeakIndex) -> None:
    assert value_similarity("555-1212", "1212", index) == index.similarity("555-1212", "1212") > 0


def test_addresses_of_images_say_something_in_words() -> None:
    assert file_words("/img/GrandHotel_front-01.jpg?w=200") == "grand hotel front 01"
    assert file_words("https://cdn.example.com/a/caf%C3%A9.png") == "cafe"
    assert file_words("http://[") == ""
