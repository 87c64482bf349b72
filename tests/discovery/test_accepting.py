"""Accepted columns teach a wrapper, which finds on the pages what the columns have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from siteloom.discovery import accept_columns, discover
from siteloom.errors import ExampleError, UsageError
from siteloom.learning import learn

from ..builtin.sites import directory, guide, of_kind
from .pages import dl, page, pages
from .test_columns import prose

if TYPE_CHECKING:
    from siteloom.builtin import BuiltinPage

COUNT = 16


def made_up(number: int) -> str:
    fields = [("Size", f"Long {number}"), ("Weight", f"Heavy {number}"), ("Maker", f"Maker {number % 5}")]
    return f"<h1>Thing {number}</h1>{dl([one for n, one in enumerate(fields) if (number + n) % 4])}"


def test_a_wrapper_of_accepted_columns_finds_what_they_have() -> None:
    made = pages(made_up(number) for number in range(COUNT))
    table = discover(made)
    names = {"name": "title", "length": "Size", "weight": "Weight"}
    accepted = accept_columns(table, made, names)
    assert accepted.agreement == dict.fromkeys(names, 1.0)
    wrapper = learn(accepted.examples, made)
    assert wrapper.attributes.keys() == names.keys()
    for row, one in zip(table.rows, made, strict=True):
        found = wrapper.extract(one).values
        assert {name: found.get(name, ()) for name in names} == {
            name: row[label] for name, label in names.items()
        }


def test_examples_have_the_values_and_nodes_of_their_rows() -> None:
    made = pages(made_up(number) for number in range(COUNT))
    table = discover(made)
    rows = {row.url: row for row in table.rows}
    accepted = accept_columns(table, made, {"length": "Size"})
    assert sum(bool(example.values["length"]) for example in accepted.examples) >= 5
    for example in accepted.examples:
        row = rows[example.page.url]
        assert tuple(example.values["length"]) == row["Size"]
        assert tuple(example.nodes["length"]) == row.nodes.get("Size", ())


def test_there_are_enough_examples_of_a_rare_column() -> None:
    made = pages(
        made_up(number) + (f"<p><b>Died:</b> in {number}</p>" if number % 8 == 0 else "")
        for number in range(64)
    )
    accepted = accept_columns(discover(made), made, {"name": "title", "died": "Died"})
    assert sum(bool(example.values["died"]) for example in accepted.examples) >= 5
    assert accepted.agreement == {"name": 1.0, "died": 1.0}


def truth(one: BuiltinPage, names: dict[str, str]) -> dict[str, tuple[str, ...]]:
    return {name: one.truth[name] for name in names}


def test_columns_of_the_guide() -> None:
    made = of_kind(guide(), "restaurant")[:60]
    table = discover(one.page for one in made)
    names = {"name": "title", "phone": "Phone", "cuisine": "Cuisine", "website": "Website"}
    accepted = accept_columns(table, [one.page for one in made], names)
    assert all(share >= 0.9 for share in accepted.agreement.values()), accepted.agreement
    wrapper = learn(accepted.examples, [one.page for one in made])
    right = sum(dict(wrapper.extract(one.page).values) == _given(truth(one, names)) for one in made)
    assert right >= 0.9 * len(made)


def _given(values: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {name: texts for name, texts in values.items() if texts}


@pytest.mark.parametrize(
    ("site", "names"),
    [
        ("guide", {"name": "title", "price": "Average main", "district": "where"}),
        ("directory", {"address": "street address", "cuisine": "ta tags", "rating": "ta score"}),
    ],
)
def test_columns_of_lists(site: str, names: dict[str, str]) -> None:
    made = of_kind(guide() if site == "guide" else directory(), "list")[:12]
    table = discover(one.page for one in made)
    accepted = accept_columns(table, [one.page for one in made], names)
    assert all(share >= 0.95 for share in accepted.agreement.values()), accepted.agreement
    assert all(example.records for example in accepted.examples)
    wrapper = learn(accepted.examples, [one.page for one in made])
    for one in made:
        found = [dict(record.values) for record in wrapper.extract_all(one.page)]
        assert found == [_given({name: record[name] for name in names}) for record in one.records]


def test_running_text_becomes_all_that_its_element_shows() -> None:
    made = pages(prose(number) for number in range(COUNT))
    table = discover(made)
    accepted = accept_columns(table, made, {"story": "Story"})
    assert accepted.agreement["story"] >= 0.9
    wrapper = learn(accepted.examples, made)
    (told,) = wrapper.extract(made[0]).values["story"]
    assert told.startswith("The quick brown fox of number 0.0 ")
    assert "The quick brown fox of number 0.3 " in told


def test_a_column_that_is_not_there_is_told_with_those_that_are() -> None:
    made = pages(made_up(number) for number in range(COUNT))
    table = discover(made)
    with pytest.raises(UsageError, match=r"no column 'Colour': there are Maker, Size, Weight, title\."):
        accept_columns(table, made, {"size": "Size", "colour": "Colour"})


def test_pages_of_one_address_teach_nothing() -> None:
    made = pages(made_up(number) for number in range(COUNT))
    twice = [*made, page(made_up(99), 3)]
    accepted = accept_columns(discover(twice), twice, {"name": "title"})
    assert accepted.agreement == {"name": 1.0}
    assert made[3].url not in {example.page.url for example in accepted.examples}
    same = [page(made_up(number)) for number in range(COUNT)]
    with pytest.raises(ExampleError, match="None of these columns can be learned"):
        accept_columns(discover(same), same, {"name": "title"})
