"""The compiled index and join, against plain twins."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from siteloom.learning.known_records import similarity_join

texts = st.lists(st.text(alphabet="ab \U0001f600漢", max_size=8), min_size=1, max_size=8)
lengths = st.integers(1, similarity_join.LONGEST_GRAM)


def coded(rows: list[str]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.cumsum([0, *map(len, rows)])
    return np.frombuffer("".join(rows).encode("utf-32-le"), np.uint32), starts


def gram_number(gram: str) -> int:
    return sum(ord(sign) << 21 * place for place, sign in enumerate(reversed(gram)))


def grams(text: str, q: int) -> list[int]:
    padded = ["#" * (q - 1) + word + "$" * (q - 1) for word in text.split(" ") if word]
    return sorted(gram_number(word[i : i + q]) for word in padded for i in range(len(word) - q + 1))


@given(texts, lengths)
def test_grams_of_words(rows: list[str], q: int) -> None:
    codes, starts = coded(rows)
    for number, text in enumerate(rows):
        room = np.empty(q * len(text), np.uint64)
        count = similarity_join.grams_of(codes, starts[number], starts[number + 1], q, room)
        assert room[:count].tolist() == grams(text, q)


@given(texts, lengths)
def test_counts_and_postings(rows: list[str], q: int) -> None:
    codes, starts = coded(rows)
    table, in_texts, occurrences = similarity_join.count_grams(codes, starts, q)
    kept = {int(table[slot]): slot for slot in np.flatnonzero(table)}
    assert all(similarity_join.slot_of(table, np.uint64(gram)) == slot for gram, slot in kept.items())
    expected = defaultdict(list)
    order = np.arange(len(rows))[::-1].copy()
    for place, number in enumerate(order):
        for gram in grams(rows[number], q):
            expected[gram].append(place)
    posting_starts = np.concatenate(([0], np.cumsum(occurrences)))
    idf = np.linspace(3, 0.1, table.size).round(1)
    postings, left = similarity_join.fill_postings(codes, starts, q, table, idf, posting_starts, order)
    found = {
        gram: postings[posting_starts[slot] : posting_starts[slot + 1]].tolist()
        for gram, slot in kept.items()
    }
    assert found == expected
    assert {gram: in_texts[slot] for gram, slot in kept.items()} == {
        gram: len(set(places)) for gram, places in expected.items()
    }
    for gram, slot in kept.items():
        for at in range(posting_starts[slot], posting_starts[slot + 1]):
            squares = {
                other: (count * idf[kept[other]]) ** 2
                for other, count in Counter(grams(rows[order[postings[at]]], q)).items()
            }
            rest = sum(square for other, square in squares.items() if idf[kept[other]] <= idf[kept[gram]])
            exact = similarity_join.WHOLE_RESIDUAL * (rest / sum(squares.values())) ** 0.5
            assert exact <= left[at] + 1e-6 < exact + 1.01


@given(texts, texts)
def test_norms(rows: list[str], others: list[str]) -> None:
    codes, starts = coded(rows)
    table, _, _ = similarity_join.count_grams(codes, starts, 3)
    idf = np.full(table.size, 2.0)
    norms, repeated = similarity_join.norms_of(*coded(others), 3, table, idf, 5.0)
    known = {gram for text in rows for gram in grams(text, 3)}
    for number, text in enumerate(others):
        weights = {
            gram: (2.0 if gram in known else 5.0, count) for gram, count in Counter(grams(text, 3)).items()
        }
        assert np.isclose(norms[number] ** 2, sum((idf * count) ** 2 for idf, count in weights.values()))
        assert np.isclose(
            repeated[number] ** 2, sum((idf * (count - 1)) ** 2 for idf, count in weights.values())
        )


def test_the_table_grows() -> None:
    rows = [chr(code) + chr(code + 1) for code in range(0x4E00, 0x4E00 + 9000, 2)]
    table, in_texts, _ = similarity_join.count_grams(*coded(rows), 3)
    assert set(table[table > 0].tolist()) == {gram for text in rows for gram in grams(text, 3)}
    assert in_texts.sum() == sum(len(set(grams(text, 3))) for text in rows)
    assert 2 * np.count_nonzero(table) <= table.size


def plain_join(
    values: list[str], rows: list[str], idf: dict[int, float], unseen: float, threshold: float
) -> dict[tuple[int, int], float]:
    """Every pair compared with every other."""
    found = {}
    for t, text in enumerate(rows):
        x = {gram: count * idf.get(gram, unseen) for gram, count in Counter(grams(text, 3)).items()}
        for v, value in enumerate(values):
            y = {gram: count * idf[gram] for gram, count in Counter(grams(value, 3)).items()}
            norm = (sum(weight**2 for weight in x.values()) * sum(weight**2 for weight in y.values())) ** 0.5
            cosine = sum(weight * y.get(gram, 0.0) for gram, weight in x.items()) / norm if norm else 0.0
            if cosine >= threshold:
                found[t, v] = cosine
    return found


@given(texts, texts, st.floats(0.05, 0.98), st.integers(0, 1000))
def test_the_join_is_that_of_all_pairs(
    values: list[str], rows: list[str], threshold: float, seed: int
) -> None:
    codes, starts = coded(values)
    table, _, occurrences = similarity_join.count_grams(codes, starts, 3)
    idf = np.random.default_rng(seed).uniform(0.1, 3, table.size)
    norms, repeated = similarity_join.norms_of(codes, starts, 3, table, idf, 1.0)
    order = np.argsort(norms)
    posting_starts = np.concatenate(([0], np.cumsum(occurrences)))
    postings, left = similarity_join.fill_postings(codes, starts, 3, table, idf, posting_starts, order)
    text, value, cosine = similarity_join.join(
        *coded(rows), 3, table, idf, 1.0,
        posting_starts, postings, left, norms[order], repeated[order], threshold,
    )  # fmt: skip
    found = {(int(t), int(order[v])): float(c) for t, v, c in zip(text, value, cosine, strict=True)}
    weights = {int(table[slot]): idf[slot] for slot in np.flatnonzero(table)}
    surely = plain_join(values, rows, weights, 1.0, threshold + 1e-6)
    at_most = plain_join(values, rows, weights, 1.0, threshold - 1e-6)
    assert surely.keys() <= found.keys() <= at_most.keys()
    assert all(abs(found[pair] - cosine) < 1e-5 for pair, cosine in surely.items())
