"""Accepted columns teach a wrapper, which finds on the pages what the columns have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from siteloom.core.errors import ExampleError, UsageError
from siteloom.core.model import Example
from siteloom.learning.discovery.columns_to_wrapper import accept_columns
from siteloom.learning.discovery.table_discovery import discover
from siteloom.learning.induction.learner import learn
from tests.apps.demo.sites import directory, guide, of_kind
from tests.learning.discovery.pages import dl, page, pages
from tests.learning.discovery.test_columns import prose

if TYPE_CHECKING:
    from siteloom.apps.demo.sites.built_in_page import BuiltinPage
    from siteloom.learning.discovery.table_discovery import DiscoveredTable

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
    with pytest.raises(ExampleError, match="has the URL of another"):
        accept_columns(discover(same), same, {"name": "title"})


# What cannot be learned


def without_rule(table: DiscoveredTable) -> DiscoveredTable:
    """The table with another column, whose values are on the pages, but each elsewhere."""
    rows = []
    for number, row in enumerate(table.rows):
        labels = sorted(row.values)
        values = row[labels[number * 7 % len(labels)]]
        rows.append(replace(row, values={**row.values, "odd": values}))
    column = replace(table.columns[0], label="odd")
    return replace(table, columns=(*table.columns, column), rows=tuple(rows))


def test_a_column_that_no_rule_describes_is_left_out() -> None:
    made = pages(made_up(number) for number in range(COUNT))
    table = without_rule(discover(made))
    accepted = accept_columns(table, made, {"name": "title", "odd": "odd"})
    assert accepted.agreement == {"name": 1.0}
    assert accepted.left_out["odd"] < 0.8
    assert accepted.tried == COUNT
    assert {name for example in accepted.examples for name in example.values} == {"name"}
    with pytest.raises(
        ExampleError, match=r"no rule was found for their values, tried on 16 pages \(odd \d+%\)"
    ):
        accept_columns(table, made, {"odd": "odd"})


def sale(number: int) -> str:
    """A list of which one item is reduced, on some pages two."""
    reduced = {number % 10, *([0] if number % 3 == 0 else [])}
    items = "".join(
        f"<div class=item><h3><a href=/{number}/{m}>Thing {number}.{m}</a></h3>"
        f"<b class=price>£{number}.{m}</b>"
        + (f"<em class=sale>{number}{m} % off</em>" if m in reduced else "")
        + "</div>"
        for m in range(12)
    )
    return f"<h1>List {number}</h1><div class=items>{items}</div>"


def test_a_sparse_column_of_lists() -> None:
    made = pages(map(sale, range(12)))
    table = discover(made)
    for names in ({"sale": "sale"}, {"sale": "sale", "price": "price"}):
        accepted = accept_columns(table, made, names)
        assert accepted.agreement == dict.fromkeys(names, 1.0)
        assert all(any(record.values()) for example in accepted.examples for record in example.records)


def test_a_column_that_no_page_has_twice_needs_another() -> None:
    made = pages(sale(number) for number in range(12) if number % 3)
    table = discover(made)
    with pytest.raises(ExampleError, match="no page has two records with one of them"):
        accept_columns(table, made, {"sale": "sale"})
    assert accept_columns(table, made, {"sale": "sale", "price": "price"}).agreement["sale"] == 1


# Pages that a person annotated


def test_what_a_person_annotated_stays() -> None:
    made = pages(made_up(number) for number in range(COUNT))
    table = discover(made)
    by_hand = [
        Example(made[1], {"heading": ["Thing 1"], "maker": list(table.rows[1]["Maker"])}),
        Example(made[2], {"heading": ["Thing 2"]}, nodes={"heading": table.rows[2].nodes["title"]}),
    ]
    accepted = accept_columns(table, made, {"maker": "Maker", "weight": "Weight"}, by_hand)
    of_url = {example.page.url: example for example in accepted.examples}
    for number, tied in ((1, {"weight"}), (2, {"heading", "maker", "weight"})):
        example, row = of_url[made[number].url], table.rows[number]
        values = {"heading": "title", "maker": "Maker", "weight": "Weight"}
        assert example.values == {name: list(row[label]) for name, label in values.items()}
        assert example.nodes.keys() == tied
    assert len(accepted.examples) > 2
    others = [example for url, example in of_url.items() if url not in (made[1].url, made[2].url)]
    assert all(example.values.keys() == {"maker", "weight"} for example in others)


def test_annotations_of_another_version_of_a_page_are_left_alone() -> None:
    made = pages(made_up(number) for number in range(COUNT))
    by_hand = Example(page(made_up(50), 1), {"heading": ["Thing 50"]})
    accepted = accept_columns(discover(made), made, {"name": "title"}, [by_hand])
    assert all(example.values.keys() == {"name"} for example in accepted.examples)


def test_annotated_records_get_the_accepted_attributes() -> None:
    made = pages(map(sale, range(4)))
    by_hand = Example(made[0], records=[{"name": [f"Thing 0.{m}"]} for m in (1, 2, 3)])
    accepted = accept_columns(discover(made), made, {"price": "price"}, [by_hand])
    of_url = {example.page.url: example.records for example in accepted.examples}
    assert list(of_url[made[0].url]) == [{"name": [f"Thing 0.{m}"], "price": [f"£0.{m}"]} for m in (1, 2, 3)]
    assert all("name" not in record for record in of_url[made[1].url])
