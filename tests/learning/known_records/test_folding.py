"""Texts that are only written differently fold alike, and values of telling kinds have one key."""

# ruff: noqa: RUF001 - signs that look like others are what is read here

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.learning.known_records.text_normalisation import canonical_key, folded


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Joe's  Pizza & Grill!", "joe s pizza grill"),
        ("Crème Brûlée", "creme brulee"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("ＦＵＬＬ width", "full width"),
        ("snake_case", "snake case"),
        ("ﬁne ½", "fine 1 2"),
        ("寿司 レストラン", "寿司 レストラン"),
        (" \u00a0–\t", ""),
        ("\ud800", ""),
    ],
)
def test_folds(text: str, expected: str) -> None:
    assert folded(text) == expected


@given(st.text())
def test_folded_text_is_words_apart_by_blanks(text: str) -> None:
    assert all(word.isalnum() for word in folded(text).split(" ")) or folded(text) == ""
    assert folded(folded(text)) == folded(text)


def test_every_character_stays_as_it_is_once_folded() -> None:
    characters = map(chr, range(sys.maxunicode + 1))
    assert [sign for sign in characters if folded(folded(sign)) != folded(sign)] == []


SAME = {
    "isbn:9780306406157": [
        "9780306406157",
        "978-0-306-40615-7",
        "978 0 306 40615 7",
        "978-0306406157",
        "0306406152",
        "0-306-40615-2",
        "ISBN-13: 978-0-306-40615-7",
        "ISBN-10: 0306406152",
        "ISBN 0 306 40615 2",
        ": 9780306406157",
    ],
    "isbn:9781584795599": ["158479559X", "1-58479-559-x"],
    "phone:4155551212": [
        "(415) 555-1212",
        "415-555-1212",
        "415.555.1212",
        "415/555-1212",
        "415 555 1212",
        "4155551212",
        "1-415-555-1212",
        "+1 415 555 1212",
        "+1 (415) 555-1212",
        "Phone: (415) 555-1212",
        "Tel. 415 555 1212",
        "(415) 555-1212 x12",
        "415-555-1212 ext. 4",
        "415-555-1212 |",
        "415–555–1212",
    ],
    "phone:2079460958": ["+44 20 7946 0958", "+44 (0)20 7946 0958", "0044 20 7946 0958", "020 7946 0958"],
    "email:info@bluefern.example": [
        "info@bluefern.example",
        "Info@BlueFern.example",
        "E-mail: info@bluefern.example",
        "mailto:info@bluefern.example?subject=Table",
    ],
    "date:2008-05-01": [
        "May 1, 2008",
        "May 1st, 2008",
        "1 May 2008",
        "01 May 2008",
        "1st of May 2008",
        "1. Mai 2008",
        "1 de mayo de 2008",
        "Thursday, May 1, 2008",
        "05/01/2008",
        "5/1/08",
        "5-1-2008",
        "01.05.2008",
        "2008-05-01",
        "2008/05/01",
        "2008-05-01T12:30:00Z",
        "May 1, 2008 4:30 pm",
        "2008年5月1日",
        "Published: May 1, 2008",
    ],
    "date:2008-05": ["May 2008", "May, 2008", "Pub. Date: May 2008", "05/2008", ": May 2008", "2008-05"],
    "price:1234.5": [
        "$1,234.50",
        "1.234,50 €",
        "USD 1234.50",
        "US $1,234.50",
        "Price: $ 1,234.5",
        "£1234.50",
    ],
    "number:180": ["180", "180 lbs.", "180 lbs", "180.0", "Weight: 180", "180 lbs. / 81.6 kg."],
    "number:1234": ["1,234", "1234", "1'234", "1 234"],
    "number:12.5": ["12.5", "12,5", "12.50", "12.5%"],
    "length:77": [
        "6-5",
        "6'5\"",
        "6' 5\"",
        "6’5″",
        "6 ft 5 in",
        "6ft. 5in.",
        "196 cm",
        "1.96 m",
        "6-5 / 1.96",
    ],
    "url:example.com": [
        "http://www.example.com/",
        "https://example.com",
        "www.example.com",
        "Example.com",
        "www.example.com.",
        "Website: http://www.example.com",
    ],
    "url:example.com/a/B?c=1": ["http://example.com/a/B?c=1#d", "www.example.com/a/B?c=1"],
}


@pytest.mark.parametrize(("key", "text"), [(key, text) for key, texts in SAME.items() for text in texts])
def test_many_ways_of_writing_have_one_key(key: str, text: str) -> None:
    assert canonical_key(text) == key


@pytest.mark.parametrize(
    "text",
    """

    Chez Panisse
    12 Main Street
    Suite 100
    Chapter 3: The End
    3 stars
    1990-1995
    12345-6789
    02134
    1.234
    $5 - $10
    3,4,5
    1.5 million
    Feb 30, 2010
    13/13/2010
    March 5
    May 2008 edition
    10:30
    Sat 10am
    e.g.
    U.S.
    800/FLOWERS
    http://
    call 5
    """.split("\n"),
)
def test_what_is_no_value_has_no_key(text: str) -> None:
    assert canonical_key(text.strip()) is None


def test_the_order_of_days_and_months_can_be_told() -> None:
    assert canonical_key("03/04/2011") == "date:2011-03-04"
    assert canonical_key("03/04/2011", day_first=True) == "date:2011-04-03"
    assert canonical_key("25/04/2011") == canonical_key("04/25/2011", day_first=True) == "date:2011-04-25"


@given(st.text(alphabet="0123456789-/.,:()+ $€'\"xX|abcdefisbnphoemwt年\n", max_size=40) | st.text())
def test_any_text_has_a_key_of_a_known_kind_or_none(text: str) -> None:
    key = canonical_key(text)
    assert key is None or key.split(":")[0] in {"isbn", "phone", "date", "price", "number", "length", "url"}


@pytest.mark.parametrize("text", ["9780306406158", "ISBN: 0306406153", "030640615X"])
def test_an_isbn_whose_check_digit_is_wrong_is_none(text: str) -> None:
    assert not (canonical_key(text) or "").startswith("isbn:")


def test_long_texts_are_left_at_once() -> None:
    assert canonical_key("1" * 100_000) is None
    assert canonical_key("(1-" * 60) is None
