"""Known records as arrays; which values a text may be."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from siteloom.html.page_text_arrays import Numbered
from siteloom.learning.known_records.string_similarity import WEAKLY_SIMILAR, WeakIndex, file_words
from siteloom.learning.known_records.text_normalisation import canonical_key, folded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from siteloom.core.model import Seed


if TYPE_CHECKING:
    Ints = NDArray[np.int32]
    Numbers = NDArray[np.signedinteger]
    Floats = NDArray[np.float32]


class Links(NamedTuple):
    """For each left thing the right ones it is linked to: those of i are right[starts[i]:starts[i + 1]]."""

    starts: NDArray[np.int64]
    targets: Ints

    def of(self, origin: int) -> Ints:
        """What one thing is linked to."""
        return self.targets[self.starts[origin] : self.starts[origin + 1]]

    def counts(self) -> NDArray[np.int64]:
        """How many links each left thing has."""
        return np.diff(self.starts)

    def expand(self, origins: Numbers) -> tuple[NDArray[np.int64], Ints]:
        """For each of `left` all its links: where in `left` each stands, and what it is linked to."""
        index, places = expand_ranges(self.starts[origins], self.starts[origins + 1] - self.starts[origins])
        return index, self.targets[places]


def expand_ranges(starts: Numbers, counts: Numbers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All places of ranges that start somewhere and have so many: which range each is of, and the place."""
    origin = np.repeat(np.arange(len(starts)), counts)
    within = np.arange(len(origin)) - np.repeat(np.cumsum(counts) - counts, counts)
    return origin, starts[origin] + within


def make_links(origins: Numbers, targets: Numbers, origin_count: int) -> Links:
    """Links out of pairs, each kept once."""
    pairs = distinct(origins.astype(np.int64) << 32 | targets.astype(np.int64))
    starts = np.concatenate([[0], np.cumsum(np.bincount(pairs >> 32, minlength=origin_count))])
    return Links(starts, (pairs & 0xFFFFFFFF).astype(np.int32))


def is_run_start(ordered: NDArray[np.signedinteger]) -> NDArray[np.bool_]:
    """Which of ordered numbers differ from the one before them."""
    is_start = np.ones(len(ordered), np.bool_)
    is_start[1:] = ordered[1:] != ordered[:-1]
    return is_start


def distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each number once, in order; for millions of numbers this is many times as fast as `np.unique`."""
    ordered = np.sort(numbers)
    return ordered[is_run_start(ordered)]


KEY_SIMILARITY = 0.95
"""Of a text and a value that mean the same but are written differently: of an ISBN in ten and one in
thirteen digits, the one that is written as in the records is meant."""

PART_SIMILARITY = 0.75
"""Of a text and a value if a part of one is the other, or a part of it: more than weakly similar, less
than the same."""

_MOST_VALUES_OF_PART = 500  # what more values share, such as a state's name, tells nothing of which it is
_LEAST_PART_SHARE = 0.3  # of a value's letters: as in the guard of strong similarity
_LEAST_MULTI_SHARE = 0.05  # of records with several values: fewer are slips
_LONG_WORDS = 8  # from so many on, texts are compared more strictly
_MANY_VALUES = 100_000
_SIMILAR_IF_MANY = 0.7  # the join is several times as fast from here on
_NOTHING = -1
_MOST_WORDS = 10  # longer texts are sentences: what they begin with is not what they are about
_IMAGE = re.compile(r"\.(?:avif|gif|jpe?g|png|svg|webp)(?:\?\S*)?$", re.IGNORECASE)
_PART_EDGE = re.compile(r"[,;()|/\n•·]|\s[-\u2013\u2014]|[-\u2013\u2014]\s")


class TextForms(NamedTuple):
    """A text in the forms that are compared; `parts` are what it may share with others."""

    text: str
    folded: str
    key: str | None
    part_forms: tuple[str, ...]


NO_KIND = -1
_KINDS = ("date", "email", "image", "isbn", "length", "number", "phone", "price", "url")


def kind_number(key: str | None) -> int:
    """The number of the kind of value that a text with this key is, or -1."""
    return NO_KIND if key is None else _KINDS.index(key.partition(":")[0])


def text_forms(text: str) -> TextForms:
    """A text in the forms that are compared.

    The addresses of images are compared by the names of their files, and with one another only: many are
    called like what they show, also those of other records.
    """
    if _IMAGE.search(text):
        words = file_words(text)
        return TextForms(text, folded(text), f"image:{words}" if words else None, ())
    form, key = folded(text), canonical_key(text)
    return TextForms(text, form, key, _part_forms(text, form, key))


def _part_forms(text: str, form: str, key: str | None) -> tuple[str, ...]:
    if key is not None:
        # A day is in a month.
        return (key[: len("date:2008-05")],) if key.startswith("date:") else ()
    pieces = _PART_EDGE.split(text)
    if len(pieces) == 1:
        return ()
    pieces_folded = (folded(piece) for piece in pieces)
    return tuple(
        {
            piece_folded
            for piece_folded in pieces_folded
            if len(piece_folded) >= max(2, _LEAST_PART_SHARE * len(form))
        }
    )


class ValueMatches(NamedTuple):
    """Which texts are similar to which values of an attribute, each pair once."""

    text: Ints
    value: Ints
    similarity: Floats


class SeedAttribute:
    """The values of one attribute, those that are folded alike as one."""

    def __init__(self, name: str, values: Sequence[TextForms], records_of: Links, values_of: Links) -> None:
        self.name = name
        self.values = values
        self.records_of = records_of  # value to records
        self.values_of = values_of  # record to values

    @cached_property
    def _by_folded(self) -> dict[str, int]:
        return {value.folded: number for number, value in enumerate(self.values)}

    @cached_property
    def _by_key(self) -> dict[str, list[int]]:
        by_key: dict[str, list[int]] = {}
        for number, value in enumerate(self.values):
            if value.key is not None:
                by_key.setdefault(value.key, []).append(number)
        return by_key

    @cached_property
    def _by_part(self) -> dict[str, list[int]]:
        """The values by all they may share with texts: themselves and their parts."""
        by_part: dict[str, list[int]] = {}
        for number, value in enumerate(self.values):
            for part_form in {value.folded, *value.part_forms}:
                by_part.setdefault(part_form, []).append(number)
        return {
            part_form: values for part_form, values in by_part.items() if len(values) <= _MOST_VALUES_OF_PART
        }

    @cached_property
    def _worded(self) -> list[int]:
        """The values that are compared by their words: what has a key is compared by it."""
        return [number for number, value in enumerate(self.values) if value.key is None]

    @cached_property
    def _longest(self) -> float:
        """Texts that are longer than twice nearly all values are prose, which is slow to compare."""
        lengths = [len(value.text) for value in self.values if value.key is None]
        return 2 * float(np.percentile(lengths, 99)) if lengths else 0

    @cached_property
    def _index(self) -> WeakIndex:
        return WeakIndex([self.values[number].folded for number in self._worded])

    @cached_property
    def is_multi(self) -> bool:
        """Whether some of the records have several values."""
        counts = self.values_of.counts()
        record_count = int((counts > 0).sum())
        return int((counts > 1).sum()) >= _LEAST_MULTI_SHARE * max(1, record_count)

    def kind(self, min_share: float) -> int | None:
        """The number of the kind that at least so many of the values are of, if there is one."""
        kinds = [kind_number(value.key) for value in self.values]
        most_frequent = max(set(kinds), key=kinds.count, default=NO_KIND)
        return (
            most_frequent
            if most_frequent != NO_KIND and kinds.count(most_frequent) >= min_share * len(kinds)
            else None
        )

    def matches(self, texts: Sequence[TextForms]) -> ValueMatches:
        """The values that texts may be: equal ones, ones that mean the same, weakly similar ones."""
        by_folded, by_key, by_part = self._by_folded, self._by_key, self._by_part
        equal_pairs: list[tuple[int, int]] = []
        key_pairs: list[tuple[int, int]] = []
        part_pairs: list[tuple[int, int]] = []
        worded: list[int] = []
        for number, text in enumerate(texts):
            value = by_folded.get(text.folded)
            if value is not None:
                equal_pairs.append((number, value))
            if text.key is None and len(text.text) <= self._longest:
                worded.append(number)
            elif text.key in by_key:
                key_pairs.extend((number, value) for value in by_key[text.key])
            for part_form in (text.folded, *text.part_forms):
                part_pairs.extend((number, value) for value in by_part.get(part_form, ()))
            for end in _ends(text.folded) if text.key is None else ():
                value = by_folded.get(end)
                if value is not None:
                    part_pairs.append((number, value))
        rows = [np.array(pairs, np.int32).reshape(-1, 2).T for pairs in (equal_pairs, key_pairs, part_pairs)]
        similarities = [
            np.full(len(pairs), similarity, np.float32)
            for pairs, similarity in (
                (equal_pairs, 1.0),
                (key_pairs, KEY_SIMILARITY),
                (part_pairs, PART_SIMILARITY),
            )
        ]
        for numbers, threshold in self._joins(texts, worded):
            joined = self._index.join([texts[number].folded for number in numbers], threshold)
            rows.append(
                np.stack(
                    [np.array(numbers, np.int32)[joined.text], np.array(self._worded, np.int32)[joined.value]]
                )
            )
            similarities.append(joined.similarity)
        text_numbers, value_numbers = np.concatenate(rows, axis=1)
        return _best_matches(text_numbers, value_numbers, np.concatenate(similarities))

    def _joins(self, texts: Sequence[TextForms], worded: Sequence[int]) -> Iterator[tuple[list[int], float]]:
        """The texts that are compared by their words, and how similar they must be.

        Long ones take most of the time, and those that are but weakly similar to a value are hardly ever
        it; so do all if there are very many values.
        """
        long: list[int] = []
        short: list[int] = []
        for number in worded:
            (long if texts[number].folded.count(" ") >= _LONG_WORDS - 1 else short).append(number)
        threshold_for_short = _SIMILAR_IF_MANY if len(self._worded) > _MANY_VALUES else WEAKLY_SIMILAR
        for numbers, threshold in ((short, threshold_for_short), (long, _SIMILAR_IF_MANY)):
            if numbers and self._worded:
                yield numbers, threshold


def _ends(form: str) -> Iterator[str]:
    """What a text of some words begins or ends with, two words or more: `by Ann Lee`, `Ann Lee, PhD`."""
    words = form.split(" ")
    if 3 <= len(words) <= _MOST_WORDS:
        for count in range(2, len(words)):
            yield " ".join(words[:count])
            yield " ".join(words[-count:])


def _best_matches(text: Ints, value: Ints, similarity: Floats) -> ValueMatches:
    """Each pair at its highest similarity."""
    order = np.lexsort((-similarity, value, text))
    text, value, similarity = text[order], value[order], similarity[order]
    is_first = is_run_start(text) | is_run_start(value)
    return ValueMatches(text[is_first], value[is_first], similarity[is_first])


@dataclass(frozen=True, slots=True)
class SeedTable:
    """So many known records, by attribute."""

    attributes: tuple[SeedAttribute, ...]
    records: int


def seed_table(seeds: Sequence[Seed]) -> SeedTable:
    """Records as arrays. Several values of an attribute count alone and, joined, as one: a page may
    write an address in one text that the record has in parts, and in parts what it has in one.
    """
    names = dict.fromkeys(name for seed in seeds for name in seed.values)
    return SeedTable(tuple(_attribute(name, seeds) for name in names), len(seeds))


def _attribute(name: str, seeds: Sequence[Seed]) -> SeedAttribute:
    by_form = Numbered()
    by_text: dict[str, int] = {}
    values: list[TextForms] = []
    pairs: list[tuple[int, int]] = []
    for record, seed in enumerate(seeds):
        texts = seed.values.get(name, ())
        for text in (*texts, " ".join(texts)) if len(texts) > 1 else texts:
            number = by_text.get(text)
            if number is None:
                forms = text_forms(text)
                number = by_text[text] = by_form[forms.folded] if forms.folded else _NOTHING
                if number == len(values):
                    values.append(forms)
            if number != _NOTHING:
                pairs.append((number, record))
    value, record_numbers = np.array(pairs, np.int32).reshape(-1, 2).T
    return SeedAttribute(
        name,
        values,
        make_links(value, record_numbers, len(values)),
        make_links(record_numbers, value, len(seeds)),
    )


def scramble(table: SeedTable, generator: np.random.Generator) -> SeedTable:
    """Records with the values of others, each attribute's by itself: what chance would make of them."""
    return replace(
        table, attributes=tuple(_scrambled(attribute, generator) for attribute in table.attributes)
    )


def _scrambled(attribute: SeedAttribute, generator: np.random.Generator) -> SeedAttribute:
    records = len(attribute.values_of.starts) - 1
    moved = generator.permutation(records).astype(np.int32)[attribute.records_of.targets]
    value = np.repeat(np.arange(len(attribute.values)), attribute.records_of.counts())
    return SeedAttribute(
        attribute.name,
        attribute.values,
        make_links(value, moved, len(attribute.values)),
        make_links(moved, value, records),
    )
