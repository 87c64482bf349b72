"""Records as rows, and which of them repeat another."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.model import Provenance, Record, Withheld
from siteloom.core.values.value_types import Price
from siteloom.extraction.record_rows import Row, flag_duplicates, record_row
from tests.extraction.records import PARTS, records, row, rows

RECORD = Record(
    "http://a.example/1",
    values={"name": ("Desk",), "price": ("$240.00", "ask")},
    typed={"price": (Price(Decimal("240.00"), "USD"), None)},
    provenance={
        "name": (Provenance("name#1", "//h1/text()", "/html[1]/body[1]/h1[1]/text()[1]", 0.99),),
        "price": (
            Provenance("price#1", "//b/text()", "/html[1]/body[1]/b[1]/text()[1]", 0.5),
            Provenance("price#2", "//i/text()", "/html[1]/body[1]/i[1]/text()[1]", 0.25),
        ),
    },
    withheld={"phone": (Withheld("call us", "no phone has letters", "/html[1]/body[1]/p[1]/text()[1]"),)},
)


def test_a_record_becomes_a_row() -> None:
    assert record_row(RECORD, "shop", 3) == {
        "url": "http://a.example/1",
        "wrapper": "shop",
        "version": 3,
        "values": {"name": ["Desk"], "price": ["$240.00", "ask"]},
        "typed": {"price": [{"amount": "240.00", "currency": "USD"}, None]},
        "confidence": {"name": [0.99], "price": [0.5, 0.25]},
        "provenance": {
            "name": [{"rule": "name#1", "node": "/html[1]/body[1]/h1[1]/text()[1]"}],
            "price": [
                {"rule": "price#1", "node": "/html[1]/body[1]/b[1]/text()[1]"},
                {"rule": "price#2", "node": "/html[1]/body[1]/i[1]/text()[1]"},
            ],
        },
        "withheld": {
            "phone": [
                {
                    "text": "call us",
                    "reason": "no phone has letters",
                    "node": "/html[1]/body[1]/p[1]/text()[1]",
                }
            ]
        },
        "duplicate_of": None,
    }


def test_the_keys_of_a_row_have_their_order() -> None:
    assert list(record_row(RECORD, "shop", None)) == ["url", "wrapper", "version", *PARTS, "duplicate_of"]


def test_a_record_without_values_is_a_row_too() -> None:
    made = record_row(Record("http://a.example/", {}, {}, {}), "shop", None)
    assert made["version"] is None
    assert all(made[part] == {} for part in PARTS)


def test_typed_values_are_plain() -> None:
    record = Record("u", {"day": ("3 April 2011",)}, {"day": (date(2011, 4, 3),)}, {})
    assert record_row(record, "w", 1)["typed"] == {"day": ["2011-04-03"]}


@given(records(["name", "price"], st.characters() | st.just("\ud800")), st.none() | st.integers())
def test_json_gives_back_any_row(record: Record, version: int | None) -> None:
    made = record_row(record, "w", version)
    assert json.loads(json.dumps(made)) == made
    assert {attribute: tuple(texts) for attribute, texts in made["values"].items()} == record.values
    assert {name: tuple(each) for name, each in made["confidence"].items()} == record.confidence


# Duplicates


def flags(*given_rows: Row) -> list[str | None]:
    return [flagged["duplicate_of"] for flagged in flag_duplicates(given_rows)]


def test_the_same_values_at_another_url_are_a_duplicate_of_the_first() -> None:
    one, two, three = (row(url, name=["Desk"], price=["$1"]) for url in "abc")
    assert flags(one, two, three) == [None, "a", "a"]


def test_how_sure_and_where_from_does_not_matter() -> None:
    assert flags(
        row("a", 0.9, "shop", 1, name=["Desk"], price=["$1"]),
        row("b", 0.2, "shop", 2, price=["$1"], name=["Desk"]),
    ) == [None, "a"]


def test_one_equal_attribute_is_no_proof() -> None:
    assert flags(row("a", name=["Desk"]), row("b", name=["Desk"])) == [None, None]
    assert flags(row("a"), row("b")) == [None, None]


def test_the_same_url_again_is_no_duplicate() -> None:
    again = row("a", name=["Desk"], price=["$1"])
    assert flags(again, again, {**again, "url": "b"}, again) == [None, None, "a", None]


def test_another_wrapper_or_another_value_is_no_duplicate() -> None:
    first = row("a", name=["Desk"], price=["$1"])
    assert (
        flags(
            first,
            row("b", 0.9, "other", name=["Desk"], price=["$1"]),
            row("c", name=["Desk"], price=["$1", "$1"]),
            row("d", name=["Desk", "$1"], price=[]),
            row("e", name=["$1"], price=["Desk"]),
            row("f", name=["Desk"], price=["$1"], colour=["red"]),
        )
        == [None] * 6
    )


def test_rows_are_flagged_one_by_one_and_left_as_they_were() -> None:
    given_rows = [row(url, name=["Desk"], price=["$1"]) for url in "ab"]
    flagged = flag_duplicates(iter(given_rows))
    assert next(flagged) is given_rows[0]
    assert next(flagged) == {**given_rows[1], "duplicate_of": "a"}
    assert given_rows[1]["duplicate_of"] is None


@given(rows(["name", "price"], st.sampled_from("ab\ud800"), st.sampled_from("uvw")))
def test_flags_are_those_of_a_search_through_all_earlier_rows(given_rows: list[Row]) -> None:
    given_rows = [{**each, "duplicate_of": None} for each in given_rows]
    for number, flagged in enumerate(flag_duplicates(given_rows)):
        same = [
            earlier["url"]
            for earlier in given_rows[: number + 1]
            if earlier["values"] == flagged["values"] and earlier["wrapper"] == flagged["wrapper"]
        ]
        is_duplicate = len(flagged["values"]) == 2 and same[0] != flagged["url"]
        assert flagged == {**given_rows[number], "duplicate_of": same[0] if is_duplicate else None}
