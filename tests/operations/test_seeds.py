"""By which attributes things are known, as the values of a table tell."""

from __future__ import annotations

import pytest

from siteloom.core.model import Seed
from siteloom.operations.seeds import SeedColumn, proposed_core, seed_columns

COUNT = 50


def seeds(**columns: str) -> list[Seed]:
    """Records with values by attribute, in which * stands for the number of the record."""
    return [
        Seed({name: (text.replace("*", str(number)),) for name, text in columns.items() if text})
        for number in range(COUNT)
    ]


def test_columns_are_counted_in_their_order() -> None:
    known = [
        Seed({"name": ("Oak",), "cuisine": ("Thai", "Greek")}),
        Seed({"phone": ("1",), "cuisine": ("Thai",)}),
    ]
    assert [(one.name, one.filled, one.distinct, one.values) for one in seed_columns(known)] == [
        ("name", 1, 1, ("Oak",)),
        ("cuisine", 2, 2, ("Thai", "Greek")),
        ("phone", 1, 1, ("1",)),
    ]


def test_an_attribute_without_a_value_counts_for_nothing() -> None:
    known = [Seed({"name": ("Oak",), "fax": ()}), Seed({"name": (), "fax": ()})]
    assert [(one.name, one.filled) for one in seed_columns(known)] == [("name", 1)]


@pytest.mark.parametrize(
    ("columns", "core"),
    [
        ({"name": "Inn *", "address": "* High Street", "phone": "0117 496 *"}, ("name", "address")),
        ({"id": "*", "city": "Bath", "name": "Inn *"}, ("name",)),
        ({"about": "A long story of the inn. " * 5 + "*", "isbn": "97800000000*"}, ("isbn",)),
        ({"id": "*", "city": "Bath"}, ("id",)),
    ],
)
def test_what_tells_things_apart_is_proposed(columns: dict[str, str], core: tuple[str, ...]) -> None:
    assert proposed_core(seed_columns(seeds(**columns))) == core


def test_what_few_have_is_not_proposed() -> None:
    known = [*seeds(name="Inn *"), *(Seed({"fax": (f"0117 {n}",), "name": (f"Pub {n}",)}) for n in range(9))]
    assert proposed_core(seed_columns(known)) == ("name",)


def test_nothing_is_proposed_of_nothing() -> None:
    empty: list[SeedColumn] = []
    assert proposed_core(empty) == ()
    assert seed_columns([]) == []
