"""What a part takes of a text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.wrappers.rule_features import ValuePart
from siteloom.wrappers.value_from_node import part_values


@pytest.mark.parametrize(
    ("part", "text", "values"),
    [
        (ValuePart(), " a b ", ["a b"]),
        (ValuePart(), "", []),
        (ValuePart(left="Our price:"), "Our price: $12.99", ["$12.99"]),
        (ValuePart(left="Our price:"), "Your price: $12.99", []),
        (ValuePart(left="Our price:"), "Our price:", []),
        (ValuePart(right="|"), "555 | 556 | 557", ["555"]),
        (ValuePart(right="|"), "555", []),
        (ValuePart(left="Fax:"), "Phone: 555 | Fax: 556", ["556"]),
        (ValuePart(left="Phone:", right="|"), "Phone: 555 | Fax: 556", ["555"]),
        (ValuePart(left="|", right="|"), "a | b | c | d", ["b"]),
        # The end is looked for behind the beginning only.
        (ValuePart(left="b", right="a"), "a b c", []),
        (ValuePart(left="b", right="a"), "a b c a", ["c"]),
        (ValuePart(separator=","), "a, b,, c,", ["a", "b", "c"]),
        (ValuePart(left=":", separator=" / "), "Kitchen: Thai / Vegan", ["Thai", "Vegan"]),
        (ValuePart(pattern=r"\d+"), "from 12 to 15", ["12"]),
        (ValuePart(pattern=r"\d+"), "none", []),
        (ValuePart(pattern=r"[\d,]+", separator=","), "1,2 and 3", ["1", "2"]),
    ],
)
def test_parts(part: ValuePart, text: str, values: list[str]) -> None:
    assert part_values(part, text) == values


few = st.text("ab:, ", max_size=12)


@given(st.builds(ValuePart, left=few, right=few, separator=few), few)
def test_values_are_pieces_of_the_text_in_order_and_not_blank(part: ValuePart, text: str) -> None:
    end = 0
    for value in part_values(part, text):
        assert value == value.strip() != ""
        end = text.index(value, end) + len(value)


def test_a_pattern_is_not_searched_for_without_end() -> None:
    part = ValuePart(pattern=r"\d+x")
    assert part_values(part, "a" * 4_000 + "12x") == ["12x"]
    started = time.process_time()
    assert part_values(part, "1" * 5_000_000 + "x") == []
    assert time.process_time() - started < 5  # to the end of the text, it would be days
