"""Weak similarity is a cosine of weighted grams, and the join finds all pairs that it finds similar."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from siteloom.learning.known_records.string_similarity import LONGEST, WeakIndex
from siteloom.learning.known_records.text_normalisation import folded

# Few letters and words, so that grams are shared and repeated.
words = st.text(alphabet="abcé", min_size=1, max_size=4) | st.sampled_from(["the", "main", "street", "st"])
texts = st.lists(words, max_size=6).map(" ".join)
many = st.lists(texts, max_size=12)


def plain_similarity(x: str, y: str, values: list[str], q: int = 3) -> float:
    """The formula, in plain Python."""
    known = [grams(value, q) for value in {folded(value) for value in values}]
    idf = {
        gram: math.log(1 + max(len(known), 1) / max(sum(gram in one for one in known), 1))
        for gram in grams(x, q) + grams(y, q)
    }
    one, other = ({gram: tf * idf[gram] for gram, tf in grams(text, q).items()} for text in (x, y))
    norms = math.hypot(*one.values()) * math.hypot(*other.values())
    return sum(weight * other.get(gram, 0) for gram, weight in one.items()) / norms if norms else 0.0


def grams(text: str, q: int) -> Counter[str]:
    padded = ["#" * (q - 1) + word + "$" * (q - 1) for word in folded(text).split()]
    return Counter(word[i : i + q] for word in padded for i in range(len(word) - q + 1))


@given(texts, texts, many, st.integers(1, 3))
def test_similarity_is_the_formula(x: str, y: str, values: list[str], q: int) -> None:
    index = WeakIndex(values, q)
    assert index.similarity(x, y) == pytest.approx(plain_similarity(x, y, values, q), abs=1e-9)
    assert index.similarity(x, y) == pytest.approx(index.similarity(y, x), abs=1e-12)
    assert 0 <= index.similarity(x, y) <= 1


@given(st.text(), many)
def test_a_text_is_like_itself_and_like_nothing_if_empty(text: str, values: list[str]) -> None:
    index = WeakIndex(values)
    assert index.similarity(text, text) == pytest.approx(1.0 if folded(text) else 0.0)
    assert index.similarity(text, "") == 0


@given(st.permutations(["between", "the", "main", "street", "12"]), many)
def test_the_order_of_words_does_not_matter(shuffled: list[str], values: list[str]) -> None:
    index = WeakIndex(values)
    assert index.similarity("12 main street between the", " ".join(shuffled)) == pytest.approx(1)


@given(many, many, st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0]), st.integers(1, 3))
def test_the_join_finds_all_similar_pairs(
    values: list[str], written: list[str], threshold: float, q: int
) -> None:
    index = WeakIndex(values, q)
    expected = {
        (t, v): similarity
        for t, text in enumerate(written)
        for v, value in enumerate(values)
        if (similarity := plain_similarity(text, value, values, q)) >= threshold - 1e-7
    }
    assume(
        all(abs(similarity - threshold) > 1e-7 or similarity > 1 - 1e-7 for similarity in expected.values())
    )
    joined = index.join(written, threshold)
    assert list(zip(joined.text.tolist(), joined.value.tolist(), strict=True)) == sorted(expected)
    assert joined.similarity.tolist() == pytest.approx(
        [expected[pair] for pair in sorted(expected)], abs=1e-6
    )
    assert [column.dtype.name for column in joined] == ["int32", "int32", "float32"]


def test_a_join_of_many_is_that_of_all_pairs() -> None:
    numbers = np.random.default_rng(7)
    vocabulary = [
        "grill",
        "house",
        "pizza",
        "the",
        "of",
        "thai",
        "cafe",
        "bistro",
        "bar",
        "joes",
        "garden",
        "la",
    ]
    made = [" ".join(numbers.choice(vocabulary, numbers.integers(1, 7))) for _ in range(900)]
    values, written = made[:600], made[600:]
    index = WeakIndex(values)
    everything = np.array([index.similarities([text] * len(values), values) for text in written])
    for threshold in (0.45, 0.72, 0.83):
        joined = index.join(written, threshold)
        text, value = np.nonzero(everything >= threshold)
        assert np.array_equal(joined.text, text)
        assert np.array_equal(joined.value, value)
        assert np.allclose(joined.similarity, everything[text, value])


def test_rare_parts_weigh_more_than_common_ones() -> None:
    index = WeakIndex(
        [f"{name} restaurant" for name in ("thai", "lotus", "ararat", "sakura", "bombay", "rhodes")]
    )
    assert index.similarity("lotus restaurant", "lotus cafe") > index.similarity(
        "lotus restaurant", "thai restaurant"
    )


def test_nothing_is_similar_to_nothing() -> None:
    for index in (WeakIndex([]), WeakIndex(["", "--"])):
        assert index.join(["a", "", "--"]).text.size == 0
        assert index.join([]).text.size == 0
    assert WeakIndex([]).similarity("abc", "abc") == pytest.approx(1)


def test_equal_values_are_each_found() -> None:
    joined = WeakIndex(["Main St", "x", "main st."]).join(["MAIN ST", "main st"])
    assert list(zip(joined.text.tolist(), joined.value.tolist(), strict=True)) == [
        (0, 0),
        (0, 2),
        (1, 0),
        (1, 2),
    ]


def test_a_hundred_thousand_equal_values_are_one() -> None:
    joined = WeakIndex(["American"] * 100_000).join(["american", "Thai"])
    assert joined.text.tolist() == [0] * 100_000
    assert joined.value.tolist() == list(range(100_000))


def test_of_long_texts_the_beginning_counts() -> None:
    long = "word " * 20_000
    index = WeakIndex([long, "something else"])
    assert index.join([long]).value.tolist() == [0]
    assert index.similarity("a" * LONGEST + "b" * 100_000, "a" * LONGEST) == pytest.approx(1)


def test_weights_of_words_add_up() -> None:
    index = WeakIndex(["main street", "main road"])
    main, street, both = index.weights(["main", "street", "street main"])
    assert both == pytest.approx(main + street)
    assert street > main > 0


@pytest.mark.parametrize("threshold", [0, -1, 1.1])
def test_thresholds_outside_are_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        WeakIndex(["a"]).join(["a"], threshold)


@pytest.mark.parametrize("q", [0, 4])
def test_grams_of_other_lengths_are_refused(q: int) -> None:
    with pytest.raises(ValueError, match="1 to 3"):
        WeakIndex(["a"], q)
