"""Known records as arrays, and the matching of texts with their values."""

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
    """A sparse relation: the targets of origin i are targets[starts[i]:starts[i + 1]]."""

    starts: NDArray[np.int64]
    targets: Ints

    def of(self, origin: int) -> Ints:
        """Return the targets of one origin."""
        return self.targets[self.starts[origin] : self.starts[origin + 1]]

    def counts(self) -> NDArray[np.int64]:
        """Return the number of targets of each origin."""
        return np.diff(self.starts)

    def expand(self, origins: Numbers) -> tuple[NDArray[np.int64], Ints]:
        """Return all links of some origins: the index in `origins` of each link, and its target."""
        index, places = expand_ranges(self.starts[origins], self.starts[origins + 1] - self.starts[origins])
        return index, self.targets[places]


def expand_ranges(starts: Numbers, counts: Numbers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Enumerate the positions of ranges: the number of the range of each position, and the position."""
    origin = np.repeat(np.arange(len(starts)), counts)
    within = np.arange(len(origin)) - np.repeat(np.cumsum(counts) - counts, counts)
    return origin, starts[origin] + within


def make_links(origins: Numbers, targets: Numbers, origin_count: int) -> Links:
    """Build links from pairs without duplicates."""
    pairs = distinct(origins.astype(np.int64) << 32 | targets.astype(np.int64))
    starts = np.concatenate([[0], np.cumsum(np.bincount(pairs >> 32, minlength=origin_count))])
    return Links(starts, (pairs & 0xFFFFFFFF).astype(np.int32))


def is_run_start(ordered: NDArray[np.signedinteger]) -> NDArray[np.bool_]:
    """Flag the ordered numbers that differ from their predecessors."""
    is_start = np.ones(len(ordered), np.bool_)
    is_start[1:] = ordered[1:] != ordered[:-1]
    return is_start


def distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct numbers in order; for millions of numbers, this is much faster than `np.unique`."""
    ordered = np.sort(numbers)
    return ordered[is_run_start(ordered)]


KEY_SIMILARITY = 0.95
"""The similarity of a text and a value with the same meaning but different spelling. It is below 1: if a page
has an ISBN in ten and in thirteen digits, the one spelled as in the records matches better."""

PART_SIMILARITY = 0.75
"""The similarity of a text and a value that share a part: more than weakly similar, less than equal."""

_MOST_VALUES_OF_PART = 500  # a part that more values share, such as a state's name, identifies no value
_LEAST_PART_SHARE = 0.3  # of a value's letters: as in the guard of strong similarity
_LEAST_MULTI_SHARE = 0.05  # of records with several values; a smaller share is noise
_LONG_WORDS = 8  # texts with so many words are compared more strictly
_MANY_VALUES = 100_000
_SIMILAR_IF_MANY = 0.7  # the join is several times as fast with this threshold
_NOTHING = -1
_MOST_WORDS = 10  # longer texts are sentences, which do not begin with their subject
_IMAGE = re.compile(r"\.(?:avif|gif|jpe?g|png|svg|webp)(?:\?\S*)?$", re.IGNORECASE)
_PART_EDGE = re.compile(r"[,;()|/\n•·]|\s[-\u2013\u2014]|[-\u2013\u2014]\s")


class TextForms(NamedTuple):
    """A text in the forms that are compared; `part_forms` are parts that it may share with others."""

    text: str
    folded: str
    key: str | None
    part_forms: tuple[str, ...]


NO_KIND = -1
_KINDS = ("date", "email", "image", "isbn", "length", "number", "phone", "price", "url")


def kind_number(key: str | None) -> int:
    """Return the number of the kind of value with this key, or -1."""
    return NO_KIND if key is None else _KINDS.index(key.partition(":")[0])


def text_forms(text: str) -> TextForms:
    """Return a text in the forms that are compared.

    URLs of images are compared only with one another, by the names of their files: many are named after what
    they show, also those of other records.
    """
    if _IMAGE.search(text):
        words = file_words(text)
        return TextForms(
            text=text, folded=folded(text), key=f"image:{words}" if words else None, part_forms=()
        )
    form, key = folded(text), canonical_key(text)
    return TextForms(text=text, folded=form, key=key, part_forms=_part_forms(text, form, key))


def _part_forms(text: str, form: str, key: str | None) -> tuple[str, ...]:
    if key is not None:
        # The part of a day is its month.
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
    """Distinct pairs of a text and a similar value of an attribute."""

    text: Ints
    value: Ints
    similarity: Floats


class SeedAttribute:
    """The values of one attribute; values with the same folded form count as one."""

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
        """The values by their folded forms and parts."""
        by_part: dict[str, list[int]] = {}
        for number, value in enumerate(self.values):
            for part_form in {value.folded, *value.part_forms}:
                by_part.setdefault(part_form, []).append(number)
        return {
            part_form: values for part_form, values in by_part.items() if len(values) <= _MOST_VALUES_OF_PART
        }

    @cached_property
    def _worded(self) -> list[int]:
        """The values without a key, which are compared by their words."""
        return [number for number, value in enumerate(self.values) if value.key is None]

    @cached_property
    def _longest(self) -> float:
        """The length limit of compared texts: longer ones are prose, which is slow to compare."""
        lengths = [len(value.text) for value in self.values if value.key is None]
        return 2 * float(np.percentile(lengths, 99)) if lengths else 0

    @cached_property
    def _index(self) -> WeakIndex:
        return WeakIndex([self.values[number].folded for number in self._worded])

    @cached_property
    def is_multi(self) -> bool:
        """Whether enough records have several values."""
        counts = self.values_of.counts()
        record_count = int((counts > 0).sum())
        return int((counts > 1).sum()) >= _LEAST_MULTI_SHARE * max(1, record_count)

    def kind(self, min_share: float) -> int | None:
        """Return the number of the kind of at least this share of the values, if there is one."""
        kinds = [kind_number(value.key) for value in self.values]
        most_frequent = max(set(kinds), key=kinds.count, default=NO_KIND)
        return (
            most_frequent
            if most_frequent != NO_KIND and kinds.count(most_frequent) >= min_share * len(kinds)
            else None
        )

    def matches(self, texts: Sequence[TextForms]) -> ValueMatches:
        """Match texts with values that are equal, mean the same, share a part, or are weakly similar."""
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
        """Yield the texts that are compared by their words, with a threshold of similarity.

        Long texts take most of the time, and weak similarity to a value hardly ever means a match. With very
        many values, this holds for all texts.
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
    """Yield proper prefixes and suffixes of two or more words, for texts as `by Ann Lee`, `Ann Lee, PhD`."""
    words = form.split(" ")
    if 3 <= len(words) <= _MOST_WORDS:
        for count in range(2, len(words)):
            yield " ".join(words[:count])
            yield " ".join(words[-count:])


def _best_matches(text: Ints, value: Ints, similarity: Floats) -> ValueMatches:
    """Return each distinct pair with its highest similarity."""
    order = np.lexsort((-similarity, value, text))
    text, value, similarity = text[order], value[order], similarity[order]
    is_first = is_run_start(text) | is_run_start(value)
    return ValueMatches(text[is_first], value[is_first], similarity[is_first])


@dataclass(frozen=True, slots=True)
class SeedTable:
    """The values of a number of known records, by attribute."""

    attributes: tuple[SeedAttribute, ...]
    records: int


def seed_table(seeds: Sequence[Seed]) -> SeedTable:
    """Return records as arrays.

    Several values of an attribute count one by one and joined: a page may have an address in one text that
    the record has in parts, or the other way round.
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
        name=name,
        values=values,
        records_of=make_links(value, record_numbers, len(values)),
        values_of=make_links(record_numbers, value, len(seeds)),
    )


def scramble(table: SeedTable, generator: np.random.Generator) -> SeedTable:
    """Shuffle the values of each attribute independently among the records, to measure chance agreement."""
    return replace(
        table, attributes=tuple(_scrambled(attribute, generator) for attribute in table.attributes)
    )


def _scrambled(attribute: SeedAttribute, generator: np.random.Generator) -> SeedAttribute:
    records = len(attribute.values_of.starts) - 1
    moved = generator.permutation(records).astype(np.int32)[attribute.records_of.targets]
    value = np.repeat(np.arange(len(attribute.values)), attribute.records_of.counts())
    return SeedAttribute(
        name=attribute.name,
        values=attribute.values,
        records_of=make_links(value, moved, len(attribute.values)),
        values_of=make_links(moved, value, records),
    )
