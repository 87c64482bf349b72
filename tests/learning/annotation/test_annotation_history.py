"""What holds of a page after all that was said of it, and who said it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import UsageError
from siteloom.core.model import Example, Page
from siteloom.learning.annotation.annotation_history import (
    StatedValue,
    Version,
    amend,
    as_list,
    rename_attributes,
    statements,
)
from siteloom.learning.annotation.clicked_nodes import Picked

PAGE = Page("http://a.example/1", b"<p>x</p>")
DAY = datetime(2026, 1, 1, tzinfo=UTC)

NAMES = st.sampled_from(["name", "phone", "price"])
PICKED = st.lists(st.builds(Picked, st.sampled_from("ab"), st.sampled_from(["/p[1]", "/p[2]"])), max_size=2)
CHANGES = st.dictionaries(NAMES, PICKED | st.none(), min_size=1, max_size=2)


def history(*examples: Example) -> list[Version]:
    return [
        Version(number, f"person {number}", DAY + timedelta(days=number), example)
        for number, example in enumerate(examples, 1)
    ]


def said(example: Example, record: int | None = None) -> dict[str, list[Picked]]:
    values = example.values if record is None else example.records[record]
    nodes = example.nodes if record is None else example.record_nodes[record]
    return {
        name: [Picked(text, node) for text, node in zip(texts, nodes[name], strict=True)]
        for name, texts in values.items()
    }


def test_a_statement_is_the_one_who_made_it_not_the_ones_who_left_it() -> None:
    first = amend(Example(PAGE), {"name": [Picked("a", "/p[1]")]}, None)
    second = amend(first, {"phone": []}, None)
    third = amend(second, {"name": [Picked("a", "/p[2]")]}, None)
    found = statements(history(first, second, third)).values
    assert found["name"].values == (StatedValue("a", "/p[2]"),)
    assert (found["name"].author, found["name"].revision) == ("person 3", 3)
    assert (found["phone"].author, found["phone"].values, found["phone"].at) == (
        "person 2",
        (),
        DAY + timedelta(days=2),
    )


def test_what_was_taken_back_and_said_again_was_said_again() -> None:
    first = amend(Example(PAGE), {"name": []}, None)
    back = amend(first, {"name": None}, None)
    again = amend(back, {"name": []}, None)
    assert statements(history(first, back)).values == {}
    assert statements(history(first, back, again)).values["name"].revision == 3


@given(st.lists(CHANGES, max_size=8))
def test_amendments_add_up_like_assignments(changes: list[Mapping[str, Sequence[Picked] | None]]) -> None:
    example = Example(PAGE)
    expected: dict[str, Sequence[Picked]] = {}
    versions = []
    for change in changes:
        example = amend(example, change, None)
        versions.append(example)
        for name, picked in change.items():
            expected.pop(name, None)
            if picked is not None:
                expected[name] = picked
        assert said(example) == expected
    found = statements(history(*versions)).values
    assert {name: [(v.text, v.node) for v in one.values] for name, one in found.items()} == {
        name: [tuple(one) for one in picked] for name, picked in expected.items()
    }
    for name, one in found.items():
        first = versions[one.revision - 1]
        assert expected[name] in said(first).values()  # perhaps under another name


@given(st.lists(st.tuples(st.integers(0, 3), CHANGES), max_size=8))
def test_records_stay_aligned_with_their_nodes_and_none_is_empty(
    changes: list[tuple[int, Mapping[str, Sequence[Picked] | None]]],
) -> None:
    example = Example(PAGE)
    for record, change in changes:
        example = amend(example, change, min(record, len(example.records)))
        assert len(example.record_nodes) == len(example.records)
        assert all(example.records)
        for number in range(len(example.records)):
            said(example, number)


def test_what_was_said_of_a_page_is_its_first_record_once_it_is_a_list() -> None:
    single = amend(Example(PAGE), {"name": [Picked("a", "/p[1]")]}, None)
    listed = amend(single, {"name": [Picked("b", "/p[2]")]}, 1)
    assert (listed.values, listed.nodes) == ({}, {})
    assert list(listed.records) == [{"name": ["a"]}, {"name": ["b"]}]
    assert list(listed.record_nodes) == [{"name": ["/p[1]"]}, {"name": ["/p[2]"]}]
    assert [one["name"].revision for one in statements(history(single, listed)).records] == [1, 2]


def test_a_page_of_records_asks_which_one_and_has_no_gaps() -> None:
    listed = amend(Example(PAGE), {"name": [Picked("a", "/p[1]")]}, 0)
    with pytest.raises(UsageError, match="lists records"):
        amend(listed, {"name": []}, None)
    with pytest.raises(UsageError, match="no record 3 on this page: it has 1"):
        amend(listed, {"name": []}, 2)


def test_attributes_are_renamed_and_removed_everywhere() -> None:
    single = amend(Example(PAGE), {"a": [Picked("x", "/p[1]")], "b": []}, None)
    assert said(rename_attributes(single, {"a": "c"})) == {"c": [Picked("x", "/p[1]")], "b": []}
    assert said(rename_attributes(single, {"a": None})) == {"b": []}
    listed = amend(amend(Example(PAGE), {"a": []}, 0), {"b": [Picked("x", "/p[1]")]}, 1)
    without = rename_attributes(listed, {"a": None})
    assert (list(without.records), list(without.record_nodes)) == ([{"b": ["x"]}], [{"b": ["/p[1]"]}])


def test_who_renames_or_counts_otherwise_did_not_say_it() -> None:
    values = {"a": [Picked("x", "/p[1]")], "b": [Picked("y", "/p[2]")]}
    first = amend(Example(PAGE), values, None)
    later = rename_attributes(first, {"a": "c"})
    found = statements(history(first, later)).values
    assert {name: one.author for name, one in found.items()} == {"c": "person 1", "b": "person 1"}

    one = amend(Example(PAGE), {"a": [Picked("x", "/p[1]")]}, 0)
    two = amend(one, {"a": [Picked("y", "/p[2]")]}, 1)
    without = amend(two, {"a": None}, 0)
    (left,) = statements(history(one, two, without)).records
    assert left["a"].author == "person 2"


def test_a_page_as_a_list_has_what_was_said_of_it_as_its_first_record() -> None:
    single = amend(Example(PAGE), {"a": [Picked("x", "/p[1]")], "b": []}, None)
    listed = as_list(single)
    assert (list(listed.records), list(listed.record_nodes)) == (
        [{"a": ["x"], "b": []}],
        [{"a": ["/p[1]"], "b": []}],
    )
    assert as_list(amend(Example(PAGE), {"b": []}, None)).records == ()
    assert as_list(listed) == listed
    assert statements(history(single)).as_list.records == (statements(history(single)).values,)
