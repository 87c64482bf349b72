"""Learning where a value begins and ends in the text of its node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.learning.induction.attribute_rules import ValueSpan, learn_part
from siteloom.wrappers.rule_features import ValuePart
from siteloom.wrappers.safe_patterns import pattern_fault
from siteloom.wrappers.value_from_node import part_values


def cuts(whole: str, *values: str) -> list[ValueSpan]:
    """The values of a text, each where it first stands behind the one before."""
    found, end = [], 0
    for value in values:
        start = whole.index(value, end)
        end = start + len(value)
        found.append(ValueSpan(whole, start, end))
    return found


def learned(*examples: tuple[str, ...], others: tuple[str, ...] = ()) -> ValuePart | None:
    return learn_part([cut for whole, *values in examples for cut in cuts(whole, *values)], others)


def test_what_stands_before_the_value_is_its_anchor() -> None:
    part = learned(("Our price: $12.99", "$12.99"), ("Our price: $7", "$7"))
    assert part == ValuePart(left="Our price: ")


def test_what_stands_behind_the_value_is_its_anchor() -> None:
    part = learned(("Fern (restaurant)", "Fern"), ("Old Mill (restaurant)", "Old Mill"))
    assert part == ValuePart(right=" (restaurant)")


def test_one_of_several_values_with_labels() -> None:
    examples = [("Phone: 555 | Fax: 556", "555"), ("Phone: 7 | Fax: 8", "7")]
    part = learned(*examples)
    assert part is not None
    assert part_values(part, "Phone: 1 23 | Fax: 4") == ["1 23"]
    part = learned(("Phone: 555 | Fax: 556", "556"), ("Phone: 7 | Fax: 8", "8"))
    assert part is not None
    assert part_values(part, "Phone: 1 | Fax: 2 3") == ["2 3"]


def test_several_values_of_one_text() -> None:
    part = learned(("Kitchen: Thai, Vegan", "Thai", "Vegan"), ("Kitchen: Thai", "Thai"))
    assert part == ValuePart(left="Kitchen: ", separator=", ")
    assert part_values(part, "Kitchen: Greek, French, Fish") == ["Greek", "French", "Fish"]


def test_separators_that_differ_in_their_blanks() -> None:
    part = learned(("a ,b,c", "a", "b", "c"))
    assert part is not None
    assert part.separator == ","


def test_after_one_example_other_texts_tell_what_belongs_to_the_template() -> None:
    whole = "Fern, Elm Road 5: $12.99 incl. tax"
    others = ("Mill, Oak Lane 7: $8.50 incl. tax", "Bay, Sea Street 11: $3 incl. tax")
    alone, helped = learned((whole, "$12.99")), learned((whole, "$12.99"), others=others)
    assert alone is not None
    assert "Elm" in alone.left
    assert helped == ValuePart(left=": ", right=" incl. tax")
    assert [part_values(helped, other) for other in others] == [["$8.50"], ["$3"]]


def test_an_anchor_is_no_part_of_a_word() -> None:
    # Both contexts end in "er: ", which belongs to two different words.
    part = learned(("Number: 5", "5"), ("Order: 7", "7"))
    assert part == ValuePart(left=": ")


@pytest.mark.parametrize(
    ("examples", "pattern"),
    [
        ([("from $5", "$5"), ("$7 only", "$7")], r"\$\d+"),
        ([("from $5", "$5"), ("$7.50 only", "$7.50")], r"[$€£¥] ?\d[\d.,]*"),
        ([("about 5 km", "5"), ("1,500 km or more", "1,500")], r"\d[\d.,]*"),
        ([("on 3/14/2011 at noon", "3/14/2011"), ("since 10/1/1999", "10/1/1999")], r"\d+/\d+/\d+"),
    ],
)
def test_where_contexts_share_nothing_a_pattern_may_do(examples: list[tuple[str, str]], pattern: str) -> None:
    assert learned(*examples) == ValuePart(pattern=pattern)


def test_contexts_that_share_nothing_and_values_that_share_nothing() -> None:
    assert learned(("the Fern in town", "Fern"), ("Old Mill, best of all", "Old Mill")) is None


def test_the_whole_text() -> None:
    assert learned(("Fern", "Fern"), ("Old Mill", "Old Mill")) == ValuePart()


def test_a_pattern_that_wrapper_files_refuse_is_not_learned() -> None:
    value = "-".join(["ab"] * 200)
    assert pattern_fault("-".join([r"[^\W\d_]+"] * 200))
    # No anchor: on one page the value is at the beginning, on the other one at the end.
    assert learned((f"{value} x", value), (f"y {value}", value)) is None


word = st.text("ab1 :,$|.-_é²", min_size=1, max_size=8)


@given(st.lists(st.tuples(word, st.lists(word, min_size=1, max_size=3), word), min_size=1, max_size=4))
def test_what_is_learned_gives_exactly_the_values_of_each_example(
    examples: list[tuple[str, list[str], str]],
) -> None:
    found: dict[str, list[ValueSpan]] = {}
    for before, values, after in examples:
        whole, places = before, []
        for number, value in enumerate(values):
            whole += ", " if number else ""
            places.append((len(whole), len(whole) + len(value)))
            whole += value
        whole += after
        found[whole] = [ValueSpan(whole, start, end) for start, end in places]
    part = learn_part([cut for here in found.values() for cut in here], ())
    if part is not None:
        assert not pattern_fault(part.pattern)
        for whole, here in found.items():
            assert part_values(part, whole) == [cut.value for cut in here]


@given(
    st.sampled_from(["Price: ", "Our price - ", "§"]),
    st.lists(st.from_regex(r"[A-Z][a-z]{1,8}", fullmatch=True)),
)
def test_an_anchor_that_all_texts_have_is_found(label: str, values: list[str]) -> None:
    texts = [f"{label}{value}" for value in values]
    if texts:
        part = learn_part([ValueSpan(text, len(label), len(text)) for text in texts], ())
        assert part is not None
        assert part_values(part, f"{label}Anything") == ["Anything"]
