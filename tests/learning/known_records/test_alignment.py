"""Which record is on which page."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.model import Page, Seed
from siteloom.html.page_text_arrays import PageTexts
from siteloom.learning.known_records.page_positions import positions_of, template_rows
from siteloom.learning.known_records.record_arrays import (
    SeedTable,
    ValueMatches,
    kind_number,
    scramble,
    seed_table,
    text_forms,
)
from siteloom.learning.known_records.record_page_alignment import (
    Alignment,
    Pairs,
    RowIndex,
    TextMatches,
    align,
    bits_of_name,
    candidate_pairs,
    matched_rows,
    weigh_matches,
)
from tests.learning.known_records import sites


class Site(NamedTuple):
    """Pages and records on the way to being aligned."""

    table: SeedTable
    texts: PageTexts
    matches: list[TextMatches]
    rows: RowIndex

    def candidates(self) -> Pairs:
        return candidate_pairs(self.table, self.matches, self.rows)

    def aligned(self) -> Alignment | None:
        pairs = self.candidates()
        kinds = np.array([kind_number(text_forms(text).key) for text in self.texts.texts], np.int32)
        matched = [
            matched_rows(attribute, found, pairs, self.rows)
            for attribute, found in zip(self.table.attributes, self.matches, strict=True)
        ]
        return align(self.table, pairs, matched, positions_of(self.texts, kinds), self.texts, sites.CORE)


def site(table: SeedTable, pages: list[Page]) -> Site:
    texts = sites.texts_of(pages)
    read = [text_forms(text) for text in texts.texts]
    numbers = np.arange(len(read), dtype=np.int32)
    matches = [weigh_matches(attribute, attribute.matches(read), numbers) for attribute in table.attributes]
    return Site(table, texts, matches, RowIndex(texts, ~template_rows(texts)))


SEEDS = sites.seeds()


def true_pairs(seeds: list[Seed] = SEEDS) -> set[tuple[int, int]]:
    """The page and the record of each restaurant that is known."""
    numbers = {str(sites.seed(restaurant).values): number for number, restaurant in enumerate(sites.ON_SITE)}
    return {
        (numbers[str(seed.values)], record)
        for record, seed in enumerate(seeds)
        if str(seed.values) in numbers
    }


def listed(pairs: Pairs) -> list[tuple[int, int]]:
    return list(zip(pairs.page.tolist(), pairs.record.tolist(), strict=True))


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    st.dictionaries(
        st.tuples(st.integers(0, 3), st.integers(0, 3)), st.sampled_from([0.5, 0.6, 0.75, 0.95, 1.0])
    ),
)
def test_bits_tell_how_few_records_are_as_similar(
    values: list[int], similarities: dict[tuple[int, int], float]
) -> None:
    (attribute,) = seed_table([Seed({"it": (f"v{value}",)}) for value in values]).attributes
    pairs = sorted(pair for pair in similarities if pair[1] < len(attribute.values))
    text, value = np.array(pairs, np.int32).reshape(-1, 2).T
    given_similarities = np.array([similarities[pair] for pair in pairs], np.float32)

    found = weigh_matches(
        attribute, ValueMatches(text, value, given_similarities), np.array([10, 11, 12, 13], np.int32)
    )

    assert len(found.text) == len(pairs)
    sizes = attribute.records_of.counts()
    for number in range(len(found.text)):
        similarity = similarities[int(found.text[number]) - 10, int(found.value[number])]
        as_similar = sum(
            int(sizes[other])
            for one, other in pairs
            if one == found.text[number] - 10 and similarities[one, other] >= similarity
        )
        assert found.records[number] == as_similar
        bits = math.log2(len(values) / as_similar) * similarity**2
        assert found.bits[number] == pytest.approx(bits, abs=1e-5)


def test_naming_one_of_many_records_takes_more_bits() -> None:
    few, many = (
        seed_table([Seed({"it": (str(number),)}) for number in range(count)]) for count in (16, 1024)
    )

    assert (bits_of_name(few), bits_of_name(many)) == (4, 10)


def test_rows_are_found_by_page_and_text() -> None:
    texts = sites.texts_of(
        Page.from_text(str(number), markup)
        for number, markup in enumerate(["<p>a</p><p>b</p><i>a</i>", "<p>b</p>", "<p>a</p>"])
    )
    numbers = {text: number for number, text in enumerate(texts.texts)}
    is_open = texts.page != 2
    rows = RowIndex(texts, is_open)
    asked = [(0, "a"), (1, "a"), (1, "b"), (0, "b"), (2, "a")]

    origin, found = rows.find(
        np.array([page for page, _ in asked], np.int32),
        np.array([numbers[text] for _, text in asked], np.int32),
    )

    expected = [
        (at, row)
        for at, (page, text) in enumerate(asked)
        for row in range(len(texts.page))
        if texts.page[row] == page and texts.text[row] == numbers[text] and is_open[row]
    ]
    assert list(zip(origin.tolist(), found.tolist(), strict=True)) == expected
    assert rows.pages_of.of(numbers["a"]).tolist() == [0]
    assert rows.pages_of.of(numbers["b"]).tolist() == [0, 1]


def test_few_pairs_are_looked_at_and_the_right_ones_among_them() -> None:
    here = site(seed_table(SEEDS), sites.pages())
    pairs = listed(here.candidates())

    assert pairs == sorted(set(pairs))
    assert true_pairs() <= set(pairs)
    assert len(pairs) < 10 * len(sites.ON_SITE)  # of 9,200


def test_what_is_common_suggests_no_pairs() -> None:
    common = [Seed({"cuisine": seed.values["cuisine"], "city": ("Oakdale",)}) for seed in SEEDS]

    assert listed(site(seed_table(common), sites.pages()).candidates()) == []


def test_values_stand_where_they_are_matched() -> None:
    here = site(seed_table(SEEDS), sites.pages())
    pairs = here.candidates()
    name = here.table.attributes[0]
    matched = matched_rows(name, here.matches[0], pairs, here.rows)

    assert len(matched.pair)
    of_pair: dict[int, set[str]] = {}
    for pair, row in zip(matched.pair.tolist(), matched.row.tolist(), strict=True):
        assert here.texts.page[row] == pairs.page[pair]
        of_pair.setdefault(pair, set()).add(here.texts.texts[here.texts.text[row]])
    for pair, (page, record) in enumerate(listed(pairs)):
        if (page, record) in true_pairs():
            assert sites.ON_SITE[page].name in of_pair[pair]


def test_pages_are_aligned_with_their_own_records() -> None:
    found = site(seed_table(SEEDS), sites.pages()).aligned()

    assert found is not None
    assert set(listed(found.pairs)) == true_pairs()
    assert len(found.lists) == 0


def test_a_list_of_others_does_not_win_where_the_page_tells_more() -> None:
    """Without kitchen, the page has name, address and phone; each of the nearby ones has two of these."""
    found = site(seed_table(SEEDS), sites.pages(without=("cuisine",))).aligned()

    assert found is not None
    assert set(listed(found.pairs)) == true_pairs()


def test_the_same_thing_known_from_several_sources_is_aligned_with_each() -> None:
    seeds = [*SEEDS, *(sites.seed(restaurant, "other guide") for restaurant in sites.ON_SITE)]
    found = site(seed_table(seeds), sites.pages()).aligned()

    assert found is not None
    assert set(listed(found.pairs)) == true_pairs(seeds)
    assert len(found.pairs.page) == 30 + 40


def test_pages_that_list_records_are_told() -> None:
    pages = [*sites.pages()[:15], *(sites.list_page(number) for number in range(3))]
    found = site(seed_table(SEEDS), pages).aligned()

    assert found is not None
    assert found.lists.tolist() == [15, 16, 17]


def test_strangers_are_not_aligned() -> None:
    here = site(seed_table([sites.seed(restaurant) for restaurant in sites.EVERY[40:]]), sites.pages())
    found = here.aligned()

    assert found is None or len(found.pairs.page) == 0


def test_mixed_up_records_tell_far_less() -> None:
    table = seed_table(SEEDS)
    true = site(table, sites.pages()).aligned()
    by_chance = site(scramble(table, np.random.default_rng(0)), sites.pages()).aligned()

    assert true is not None
    assert by_chance is None or by_chance.score < true.score / 10


def test_no_pages_and_no_matches_align_nothing() -> None:
    assert site(seed_table(SEEDS), []).aligned() is None
    assert site(seed_table([Seed({"a": ("-",), "b": ("",)})]), sites.pages()).aligned() is None
