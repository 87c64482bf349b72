"""Parts that never match between two sites are left out, as with the hotels of the paper."""

from __future__ import annotations

import pytest

from siteloom.learning.known_records.string_similarity import STRONGLY_SIMILAR, WEAKLY_SIMILAR, WeakIndex
from tests.learning.known_records.plain_strong import WeakPair, strong_similarities

SEEDS = [
    "Road # 3, RP road, Hyderabad, India-500001",
    "Road # 12, Street # 6, Malakpet, Hyderabad, India-500035",
    "Road # 7, MG road, Hyderabad, India-500003",
    "Road # 1, Street # 9, Banjara Hills, Hyderabad, India-500034",
]
TEXTS = [
    "Road#3, RP Road, (between 1st and 4th cross) Hyderabad, India-500001",
    "road #12, St #6, (between 4th and 8th cross) Malakpet, Hyderabad, India-35",
    "Road #7, MG Road, (between 2nd and 5th cross) Hyderabad, India-500003",
    "Road #1, St #9, (between 3rd and 6th cross) Banjara Hills, Hyderabad, India-500034",
]


@pytest.fixture(scope="module")
def index() -> WeakIndex:
    return WeakIndex(SEEDS)


def pairs_of(values: list[str], texts: list[str], source: str = "guide") -> list[WeakPair]:
    return [
        WeakPair(value, text, page, source)
        for page, (value, text) in enumerate(zip(values, texts, strict=True))
    ]


def test_hotels_of_two_sites_are_the_same(index: WeakIndex) -> None:
    pairs = pairs_of(SEEDS, TEXTS)
    weak = [index.similarity(pair.value, pair.text) for pair in pairs]
    assert all(WEAKLY_SIMILAR <= similarity < STRONGLY_SIMILAR for similarity in weak)
    assert all(similarity >= STRONGLY_SIMILAR for similarity in strong_similarities(pairs, index))


def test_other_hotels_stay_other_hotels(index: WeakIndex) -> None:
    pairs = [WeakPair(value, text, page, "guide") for page, text in enumerate(TEXTS) for value in SEEDS]
    strong = strong_similarities(pairs, index)
    for pair, similarity in zip(pairs, strong, strict=True):
        is_same = SEEDS.index(pair.value) == pair.page
        assert (similarity >= STRONGLY_SIMILAR) == is_same
        assert similarity >= index.similarity(pair.value, pair.text)


def test_a_pattern_that_no_other_page_has_boosts_nothing(index: WeakIndex) -> None:
    lone = WeakPair("Road # 3, RP road, Hyderabad", "Lake View Garden bus stop, RP road, Road 3", 99, "guide")
    weak = index.similarity(lone.value, lone.text)
    alike = pairs_of(["MG road 5, Hyderabad"] * 30, ["MG road 5, Hyderabad"] * 30)
    assert strong_similarities([*alike, lone], index)[-1] == pytest.approx(weak)
    assert strong_similarities([lone] * 2, index)[0] > weak


def test_pages_are_counted_not_pairs(index: WeakIndex) -> None:
    odd = WeakPair("Road # 3, RP road, Hyderabad", "Lake View Garden bus stop, RP road, Road 3", 99, "guide")
    alike = pairs_of(["MG road 5, Hyderabad"] * 30, ["MG road 5, Hyderabad"] * 30)
    weak = index.similarity(odd.value, odd.text)
    assert strong_similarities([*alike, *[odd] * 500], index)[-1] == pytest.approx(weak)


def test_each_source_has_its_own_patterns(index: WeakIndex) -> None:
    alike = pairs_of(["MG road 5, Hyderabad"] * 30, ["MG road 5, Hyderabad"] * 30, "another")
    strong = strong_similarities([*alike, *pairs_of(SEEDS, TEXTS)], index)
    assert all(similarity >= STRONGLY_SIMILAR for similarity in strong[30:])


def test_a_small_part_of_the_seed_is_not_enough() -> None:
    seeds = [f"{name} Palace Gardens Hotel, India" for name in ("Taj", "Rama", "Lake", "Moon", "Star")]
    texts = [f"{name}, India" for name in ("Oberoi", "Leela", "Trident", "Vivanta", "Ginger")]
    index = WeakIndex(seeds)
    pairs = pairs_of(seeds, texts)
    weak = [index.similarity(pair.value, pair.text) for pair in pairs]
    assert strong_similarities(pairs, index) == pytest.approx(weak)


def test_lines_are_segments(index: WeakIndex) -> None:
    texts = [text.replace(", (", "\nfree parking ").replace(")", "\n") for text in TEXTS]
    assert all(
        similarity >= STRONGLY_SIMILAR for similarity in strong_similarities(pairs_of(SEEDS, texts), index)
    )


def test_nothing_gives_nothing(index: WeakIndex) -> None:
    assert strong_similarities([], index) == []
    assert strong_similarities(
        [WeakPair("", "", 0, ""), WeakPair("a", "", 0, ""), WeakPair(",", "(", 1, "")], index
    ) == [
        0,
        0,
        0,
    ]
