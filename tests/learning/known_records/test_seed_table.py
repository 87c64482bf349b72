"""Known records as arrays, and which values a text may be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.model import Seed
from siteloom.learning.known_records.record_arrays import (
    KEY_SIMILARITY,
    NO_KIND,
    PART_SIMILARITY,
    SeedAttribute,
    kind_number,
    scramble,
    seed_table,
    text_forms,
)
from siteloom.learning.known_records.string_similarity import WEAKLY_SIMILAR
from siteloom.learning.known_records.text_normalisation import folded
from tests.learning.known_records.sites import EVERY, seed


def attribute(*records: str | tuple[str, ...]) -> SeedAttribute:
    """The attribute of records that have only this one."""
    values = [(record,) if isinstance(record, str) else record for record in records]
    (found,) = seed_table([Seed({"it": texts}) for texts in values]).attributes
    return found


def matches(known: SeedAttribute, *texts: str) -> dict[tuple[str, str], float]:
    """How similar texts are to the values they may be."""
    found = known.matches([text_forms(text) for text in texts])
    return {
        (texts[text], known.values[value].text): round(similarity, 3)
        for text, value, similarity in zip(
            found.text.tolist(), found.value.tolist(), found.similarity.tolist(), strict=True
        )
    }


def test_values_that_are_folded_alike_are_one() -> None:
    known = attribute("Café Roma", "CAFE  ROMA", "Blue Lagoon", "cafe-roma")

    assert [value.text for value in known.values] == ["Café Roma", "Blue Lagoon"]
    assert known.records_of.of(0).tolist() == [0, 1, 3]
    assert known.values_of.of(1).tolist() == [0]


def test_records_lack_what_they_do_not_have() -> None:
    table = seed_table(
        [Seed({"name": ("A",)}, "x"), Seed({"city": ("B", "---")}, "y"), Seed({"name": ("C",)}, "x")]
    )
    name, city = table.attributes

    assert (table.records, name.name, city.name) == (3, "name", "city")
    assert name.values_of.counts().tolist() == [1, 0, 1]
    assert [value.text for value in city.values] == ["B"]  # signs alone are no value


def test_several_values_count_alone_and_joined() -> None:
    known = attribute(("12 Oak Street", "Oakdale"), "7 Elm Road")

    assert {value.text for value in known.values} == {
        "12 Oak Street",
        "Oakdale",
        "12 Oak Street Oakdale",
        "7 Elm Road",
    }
    assert matches(known, "12 Oak Street, Oakdale")["12 Oak Street, Oakdale", "12 Oak Street Oakdale"] == 1


def test_attributes_of_several_values_are_told_from_slips() -> None:
    assert attribute(("Ann Lee", "Bo Ek"), "Cy Fox").is_multi
    assert not attribute(("Ann Lee", "Bo Ek"), *(one.name for one in EVERY)).is_multi
    assert not attribute("Ann Lee").is_multi


def test_kinds_are_those_of_most_values() -> None:
    phones = [one.phone for one in EVERY[:9]]
    known = attribute(*phones, "ask the waiter")

    assert known.kind(0.8) == kind_number("phone:4155551212")
    assert known.kind(0.95) is None
    assert attribute("Golden Goose", "Blue Lagoon").kind(0.5) is None
    assert kind_number(None) == NO_KIND
    assert len({kind_number(f"{kind}:1") for kind in ("date", "isbn", "phone", "price", "number")}) == 5


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("CAFE ROMA", "Café Roma"),
        ("the  golden-goose", "The Golden Goose!"),
        ("+1 (415) 555-1212", "+1 415 555 1212"),
        ("ISBN 0306406152", "isbn: 0-306-40615-2"),
    ],
)
def test_what_is_written_nearly_alike_is_equal_or_means_the_same(text: str, value: str) -> None:
    assert matches(attribute(value, "Blue Lagoon"), text)[text, value] >= KEY_SIMILARITY


def test_equal_values_are_more_similar_than_ones_that_mean_the_same() -> None:
    assert matches(attribute("0306406152", "9780306406157"), "ISBN: 9780306406157", "9780306406157") == {
        ("ISBN: 9780306406157", "0306406152"): pytest.approx(KEY_SIMILARITY),
        ("ISBN: 9780306406157", "9780306406157"): pytest.approx(KEY_SIMILARITY),
        ("9780306406157", "0306406152"): pytest.approx(KEY_SIMILARITY),
        ("9780306406157", "9780306406157"): 1,
    }


def test_phones_match_by_their_digits_alone() -> None:
    known = attribute("(415) 555-1212", "(415) 555-1213")

    assert matches(known, "+1 415 555 1212", "Phone: 415-555-1213", "(415) 555-1214") == {
        ("+1 415 555 1212", "(415) 555-1212"): pytest.approx(KEY_SIMILARITY),
        ("Phone: 415-555-1213", "(415) 555-1213"): pytest.approx(KEY_SIMILARITY),
    }


def test_a_phone_matches_without_the_code_of_its_country() -> None:
    found = matches(attribute("+44 20 7946 0958", "+44 20 7946 0123"), "020 7946 0958")

    assert found == {("020 7946 0958", "+44 20 7946 0958"): pytest.approx(KEY_SIMILARITY)}


def test_days_match_their_month_in_part() -> None:
    known = attribute("2008-05-01", "2008-06-01")

    assert matches(known, "May 1, 2008", "May 2008", "May 2, 2008", "July 2008") == {
        ("May 1, 2008", "2008-05-01"): pytest.approx(KEY_SIMILARITY),
        ("May 2008", "2008-05-01"): pytest.approx(PART_SIMILARITY),
        ("May 2, 2008", "2008-05-01"): pytest.approx(PART_SIMILARITY),
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4310 Juniper Crescent", "4310 Juniper Crescent, Wolverhampton"),
        ("4310 Juniper Crescent, Wolverhampton", "4310 Juniper Crescent"),
        ("Contemporary (Jazz and Blues)", "Contemporary"),
        ("by Ann Lee", "Ann Lee"),
        ("Ann Lee, PhD", "Ann Lee"),
        ("written and drawn by Ann Lee", "Ann Lee"),
        ("Weissbier \u2013 Brauhaus", "Brauhaus"),
    ],
)
def test_parts_and_ends_of_texts_are_similar(text: str, value: str) -> None:
    found = matches(attribute(value, "Something else"), text)

    assert set(found) == {(text, value)}
    assert PART_SIMILARITY <= found[text, value] < KEY_SIMILARITY


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("he said that in the end it was all for Ann Lee", "Ann Lee"),  # a sentence that ends so
        ("a, somewhere in the old town of Wolverhampton", "a"),  # too little of it
        ("Ann", "Ann Lee, someone of quite another name"),
    ],
)
def test_what_is_a_small_part_is_not_similar(text: str, value: str) -> None:
    assert matches(attribute(value, "Something else"), text) == {}


def test_what_very_many_values_share_tells_nothing() -> None:
    def street(number: int) -> str:
        return f"{number} Blackfriars Gate, Springfield"

    many, few = (attribute(*map(street, range(1_000, 1_000 + count))) for count in (2_000, 20))

    assert matches(many, "Springfield") == {}
    assert len(matches(few, "Springfield")) == 20
    assert matches(many, "1077 Blackfriars Gate")["1077 Blackfriars Gate", street(1077)] >= PART_SIMILARITY


def test_slips_of_spelling_are_weakly_similar() -> None:
    known = attribute("Golden Goose Restaurant", "Blue Lagoon")
    found = matches(known, "Restaurant Golden Gose", "Red Lantern")

    assert set(found) == {("Restaurant Golden Gose", "Golden Goose Restaurant")}
    assert WEAKLY_SIMILAR <= min(found.values()) < 1


def test_what_has_a_key_is_not_compared_by_its_letters() -> None:
    known = attribute("$12.99", "$12.98")

    assert matches(known, "12.97 USD") == {}
    assert set(matches(known, "USD 12.99")) == {("USD 12.99", "$12.99")}


def test_prose_is_not_compared() -> None:
    known = attribute("Golden Goose", "Blue Lagoon")

    assert matches(known, "The Golden Gose")
    assert matches(known, "The Golden Gose" + " of the Gose" * 3) == {}


def test_no_values_match_nothing() -> None:
    known = attribute("---", "")

    assert (known.values, known.kind(0.5), known.is_multi) == ([], None, False)
    assert matches(known, "", "---", "Golden Goose", "12") == {}


WRITTEN = st.sampled_from(
    [text for one in EVERY[:12] for text in (one.name, one.phone, f"{one.street}, {one.city}")]
)


@given(
    st.lists(WRITTEN | st.text(max_size=12), min_size=1, max_size=15),
    st.lists(WRITTEN | st.text(max_size=12)),
)
def test_each_pair_is_told_once_and_equals_are_always_found(values: list[str], texts: list[str]) -> None:
    known = attribute(*values)
    found = known.matches([text_forms(text) for text in (*texts, *values)])
    pairs = list(zip(found.text.tolist(), found.value.tolist(), strict=True))

    assert pairs == sorted(set(pairs))
    similarity = dict(zip(pairs, found.similarity.tolist(), strict=True))
    for text, written in enumerate((*texts, *values)):
        for value, other in enumerate(known.values):
            is_equal = folded(written) == other.folded
            # Other words in another order, or none that tell, may be as similar.
            assert not is_equal or similarity[text, value] == pytest.approx(1)
    assert all(WEAKLY_SIMILAR - 1e-3 <= one <= 1 + 1e-3 for one in similarity.values())


def test_scrambled_records_have_the_values_of_others() -> None:
    table = seed_table([seed(one) for one in EVERY])
    mixed = scramble(table, np.random.default_rng(1))

    assert mixed.records == table.records
    together: list[list[tuple[int, ...]]] = []
    for before, after in zip(table.attributes, mixed.attributes, strict=True):
        assert (after.name, after.values) == (before.name, before.values)
        assert after.records_of.counts().tolist() == before.records_of.counts().tolist()
        of_before = [tuple(before.values_of.of(record).tolist()) for record in range(table.records)]
        of_after = [tuple(after.values_of.of(record).tolist()) for record in range(table.records)]
        assert sorted(of_after) == sorted(of_before)
        together.append(of_after)
        for value, record in ((value, record) for record, values in enumerate(of_after) for value in values):
            assert record in after.records_of.of(value).tolist()
    names, addresses = together[:2]
    # In this table the names and addresses of a record have the same number.
    assert sum(name == address for name, address in zip(names, addresses, strict=True)) < table.records / 20


def test_scrambling_moves_several_values_together() -> None:
    table = seed_table([Seed({"a": (f"x{number}", f"y{number}")}) for number in range(30)])
    (mixed,) = scramble(table, np.random.default_rng(1)).attributes

    for record in range(30):
        numbers = {mixed.values[value].text[1:].split()[0] for value in mixed.values_of.of(record).tolist()}
        assert len(numbers) == 1


def test_images_match_by_the_names_of_their_files() -> None:
    found = matches(
        attribute("https://one.example/p/blue-fern.jpg", "https://one.example/p/old-mill.jpg"),
        "/i/BlueFern.png?w=20",
    )

    assert found == {
        ("/i/BlueFern.png?w=20", "https://one.example/p/blue-fern.jpg"): pytest.approx(KEY_SIMILARITY)
    }


def test_images_match_no_texts() -> None:
    assert matches(attribute("9780312370848", "Blue Fern"), "/i/9780312370848.jpg", "/i/blue-fern.png") == {}
