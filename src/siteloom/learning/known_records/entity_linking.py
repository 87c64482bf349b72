"""Link the records of one entity across sites; compare their values; rows of entities.

Two records are taken for one entity if what they have in common is worth more bits than it takes to pick one
record out of all. A value that they share is worth the more the fewer others have it; an attribute in which
they differ counts against them, by how seldom records of one entity differ in it. No more pairs are looked at
than share a rare value, or nearly so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from math import inf, log2
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.core.table_files import Column
from siteloom.learning.known_records.string_similarity import WeakIndex, value_similarity
from siteloom.learning.known_records.text_normalisation import canonical_key, folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from siteloom.core.model import Seed


# Values agree from here on. A slip of the pen, another order of words or a missing "Ltd" leaves more than
# four fifths of what is telling in a value; another house number or branch leaves less.
_AGREEING = 0.8
# Near values from here on lead to records that may agree: their other values decide.
_NEAR = 0.7
# Longer texts are prose, much of which others have as well: only equal ones lead to records.
_LONGEST_NEAR = 80
# So many bits more than a record takes to be told from all others: of eight records that agree by so much,
# one does so by chance at most.
_MARGIN = 3.0
# With so many times these bits, records are surely of one entity: one telling value and others will not do.
_SURELY = 1.5
# What few records have in common is no rarer than this many records can show.
_LEAST_RECORDS = 32
# Values that more records share, beyond one of each source, lead nowhere.
_MOST_SHARING = 20
# Of longer lists of records with the same value each is compared with so many of those behind it.
_WINDOW = 10
# Near values are looked for so many at a time: there may be many pairs of them.
_TEXTS_AT_ONCE = 10_000
# Of two groups of records so many of each are compared before they become one.
_MOST_COMPARED = 3

# The kinds of values that tell things apart. Books that agree in all but this are other editions; places that
# agree in little but their name are others if their phones are.
_NEVER_TWO = "isbn"
_SELDOM_TWO = "phone"
# The kind of which one value may say less than another and agree with it: 2008, May 2008.
_WRITTEN_IN_PART = "date"


class StatedValue(NamedTuple):
    """A value, the sources that state it, and how likely it is by what is known of them."""

    text: str
    sources: tuple[str, ...]
    confidence: float


class MergedValues(NamedTuple):
    """What the records of an entity say of an attribute: its value or values, and those that differ from it.

    The value is the one that most sources state. Attributes that may have several values have no conflicts.
    """

    values: tuple[StatedValue, ...]
    conflicts: tuple[StatedValue, ...] = ()


class Entity(NamedTuple):
    """Records that tell of one thing: their indices, ascending, and what they say together."""

    members: tuple[int, ...]
    values: Mapping[str, MergedValues]


def link(seeds: Sequence[Seed], core: Sequence[str] = ()) -> list[Entity]:
    """The entities that records tell of, in the order of their first records.

    `core` are the attributes by which things are known, if that is clear: records of one entity agree in one
    of them at least. Records of the same source are one entity only if they differ in nothing.
    """
    columns = {
        name: _Column(name, [seed.values.get(name, ()) for seed in seeds]) for name in _attributes(seeds)
    }
    rows = _distinct_rows(seeds, columns)
    for column in columns.values():
        column.count(rows)
    linker = _Linker(rows, columns, frozenset(core))
    entities = [
        _build_entity(members, seeds, columns)
        for group in linker.groups()
        for members in linker.members_of(group)
    ]
    return sorted(entities, key=lambda entity: entity.members[0])


class _DistinctRecord(NamedTuple):
    """Records that say the same: for each attribute the numbers of its values."""

    values: Mapping[str, tuple[int, ...]]
    members: list[int]
    sources: set[str]


class _Column:
    """The values of an attribute, of which those that differ in spelling only are one.

    `numbers` are those of the values of each record; a text that has neither letters nor digits is no value.
    """

    def __init__(self, name: str, texts: Sequence[Sequence[str]]) -> None:
        self.name = name
        self.is_multiple = any(len(set(record_texts)) > 1 for record_texts in texts)
        self.kinds: list[str] = []
        self.shown: list[str] = []
        number_of_key: dict[str, int] = {}
        of_text: dict[str, int | None] = {}
        for text in {text: None for record_texts in texts for text in record_texts}:
            key = canonical_key(text)
            comparison_key = key or folded(text)
            if comparison_key and comparison_key not in number_of_key:
                number_of_key[comparison_key] = len(number_of_key)
                self.kinds.append(key.partition(":")[0] if key else "")
                self.shown.append(text)
            of_text[text] = number_of_key.get(comparison_key)
        self.of_text = of_text
        self.kind, count = Counter(self.kinds).most_common(1)[0] if self.kinds else ("", 0)
        if 2 * count <= len(self.kinds):
            self.kind = ""
        self.numbers = [
            tuple(sorted({number for text in record_texts if (number := of_text[text]) is not None}))
            for record_texts in texts
        ]
        self.rows: list[list[int]] = []
        self.sharing: list[int] = []
        self._index = WeakIndex(self.shown)
        self._similarities: dict[tuple[int, int], float] = {}
        self._joined: set[int] = set()  # whose similarities to all others are known, if they are near

    def count(self, records: Sequence[_DistinctRecord]) -> None:
        """Find the rows of each value, and how many share it beyond one of each source."""
        self.rows = [[] for _ in self.shown]
        sources: list[set[str]] = [set() for _ in self.shown]
        for number, row in enumerate(records):
            for value in row.values.get(self.name, ()):
                self.rows[value].append(number)
                sources[value] |= row.sources
        self.sharing = [
            max(1, len(rows_with_value) - len(value_sources) + 1)
            for rows_with_value, value_sources in zip(self.rows, sources, strict=True)
        ]

    def similarity(self, value: int, other_value: int) -> float:
        """How similar two values are; what is less than near is not similar at all."""
        if value == other_value:
            return 1.0
        pair = (value, other_value) if value < other_value else (other_value, value)
        if pair not in self._similarities:
            is_joined = value in self._joined or other_value in self._joined
            self._similarities[pair] = 0.0 if is_joined else self._compute_similarity(*pair)
        return self._similarities[pair]

    def _compute_similarity(self, value: int, other_value: int) -> float:
        if self.kinds[value] == self.kinds[other_value] not in ("", _WRITTEN_IN_PART):
            return 0.0  # or they would be the same value
        return value_similarity(self.shown[value], self.shown[other_value], self._index)

    def near_pairs(self) -> Iterator[tuple[int, int]]:
        """The values that few records have and that are like another such."""
        rare = [
            number
            for number, kind in enumerate(self.kinds)
            if not kind and self.sharing[number] <= _MOST_SHARING and len(self.shown[number]) <= _LONGEST_NEAR
        ]
        self._joined.update(rare)
        for start in range(0, len(rare), _TEXTS_AT_ONCE):
            batch = rare[start : start + _TEXTS_AT_ONCE]
            joined = self._index.join([self.shown[number] for number in batch], _NEAR)
            for index, other_value, similarity in zip(
                joined.text.tolist(), joined.value.tolist(), joined.similarity.tolist(), strict=True
            ):
                value = batch[index]
                self._similarities[min(value, other_value), max(value, other_value)] = similarity
                if value < other_value and other_value in self._joined:
                    yield value, other_value


def _attributes(seeds: Iterable[Seed]) -> list[str]:
    return list({name: None for seed in seeds for name in seed.values})


def _distinct_rows(seeds: Sequence[Seed], columns: Mapping[str, _Column]) -> list[_DistinctRecord]:
    """The records, those that say the same as one: a thousand copies tell no more than one does."""
    rows: dict[tuple[tuple[str, tuple[int, ...]], ...], _DistinctRecord] = {}
    for number, seed in enumerate(seeds):
        values = {name: numbers for name, column in columns.items() if (numbers := column.numbers[number])}
        row = rows.setdefault(tuple(values.items()), _DistinctRecord(values, [], set()))
        row.members.append(number)
        row.sources.add(seed.source)
    return list(rows.values())


class _Comparison(NamedTuple):
    """Two rows side by side: the bits of each attribute in which they agree, and those in which they differ.

    They are equal if they differ in none, and write in no other way what they agree in.
    """

    bits: Mapping[str, float]
    differing: tuple[str, ...]
    is_equal: bool

    @property
    def common(self) -> float:
        return sum(self.bits.values())


class _Linker:
    """Puts rows together that tell of one entity."""

    def __init__(
        self, rows: Sequence[_DistinctRecord], columns: Mapping[str, _Column], core: frozenset[str]
    ) -> None:
        self._rows = rows
        self._columns = columns
        self._core = core
        self._record_bits = log2(max(len(rows), _LEAST_RECORDS))
        self._required_bits = self._record_bits + _MARGIN
        self._costs: dict[str, float] = {}
        self._parent = list(range(len(rows)))
        self._grouped = [[row] for row in range(len(rows))]

    def groups(self) -> list[list[int]]:
        """The numbers of the rows of each entity."""
        pairs = {pair: self._compare_rows(*pair) for pair in self._candidates()}
        pairs = {
            pair: comparison for pair, comparison in pairs.items() if comparison.common >= self._required_bits
        }
        self._costs = self._learn_costs(pairs)
        scored = sorted(((self._score(comparison), pair) for pair, comparison in pairs.items()), reverse=True)
        for score, (first_row, other_row) in scored:
            if score >= self._required_bits:
                self._merge_groups(first_row, other_row)
        return [rows for row, rows in enumerate(self._grouped) if self._parent[row] == row]

    def members_of(self, group: Sequence[int]) -> list[list[int]]:
        """The records of a group of rows: those of a lone row that tells too little are an entity each."""
        members = sorted(member for row in group for member in self._rows[row].members)
        if len(group) == 1 and not self._is_same_entity(self._compare_rows(group[0], group[0])):
            return [[member] for member in members]
        return [members]

    def _candidates(self) -> set[tuple[int, int]]:
        """Pairs of rows that share a rare value, or nearly so."""
        pairs: set[tuple[int, int]] = set()
        for column in self._columns.values():
            for rows, sharing in zip(column.rows, column.sharing, strict=True):
                if sharing <= _MOST_SHARING:
                    pairs.update(_pairs_within(rows))
            for value, other_value in column.near_pairs():
                pairs.update(
                    (min(row, other_row), max(row, other_row))
                    for row in column.rows[value][:_WINDOW]
                    for other_row in column.rows[other_value][:_WINDOW]
                    if row != other_row
                )
        return pairs

    def _compare_rows(self, row: int, other_row: int) -> _Comparison:
        bits: dict[str, float] = {}
        differing: list[str] = []
        is_equal = True
        other_values = self._rows[other_row].values
        for name, values in self._rows[row].values.items():
            if name not in other_values:
                continue
            similarity, bits[name] = self._best_agreement(self._columns[name], values, other_values[name])
            is_equal = is_equal and similarity == 1
            if similarity < _AGREEING:
                differing.append(name)
                del bits[name]
        return _Comparison(bits, tuple(differing), is_equal)

    def _best_agreement(
        self, column: _Column, values: Sequence[int], other_values: Sequence[int]
    ) -> tuple[float, float]:
        """The similarity of the values in which two rows agree most, and what that is worth."""
        return max(
            (
                similarity,
                self._value_bits(max(column.sharing[value], column.sharing[other_value])) * similarity**2,
            )
            for value in values
            for other_value in other_values
            for similarity in (column.similarity(value, other_value),)
        )

    def _value_bits(self, sharing: int) -> float:
        return max(0.0, self._record_bits - log2(sharing))

    def _learn_costs(self, pairs: Mapping[tuple[int, int], _Comparison]) -> dict[str, float]:
        """What it costs to differ in each attribute: the bits by which that is odd for records of one entity.

        It is learned from rows that are each other's best match, and surely so even without the attribute: a
        name that some have in common, and what goes with such a name, does not suffice.
        """
        sure = max(self._required_bits, _SURELY * self._record_bits)
        best: dict[int, tuple[float, int]] = {}
        for (row, other_row), comparison in pairs.items():
            best[row] = max(best.get(row, (0.0, -1)), (comparison.common, other_row))
            best[other_row] = max(best.get(other_row, (0.0, -1)), (comparison.common, row))
        agreement_counts: Counter[str] = Counter()
        difference_counts: Counter[str] = Counter()
        for (row, other_row), comparison in pairs.items():
            if best[row][1] == other_row and best[other_row][1] == row:
                agreement_counts.update(
                    name for name, bits in comparison.bits.items() if comparison.common - bits >= sure
                )
                difference_counts.update(comparison.differing if comparison.common >= sure else ())
        costs = {
            name: log2((agreement_counts[name] + difference_counts[name] + 2) / (difference_counts[name] + 1))
            for name in self._columns
        }
        for name, column in self._columns.items():
            if name in self._core or column.kind == _SELDOM_TWO:
                costs[name] = max(costs[name], self._record_bits / 2)
            if column.kind == _NEVER_TWO:
                costs[name] = inf
        return costs

    def _score(self, comparison: _Comparison) -> float:
        if self._core and not self._core & comparison.bits.keys():
            return 0.0
        return comparison.common - sum(self._costs[name] for name in comparison.differing)

    def _is_same_entity(self, comparison: _Comparison) -> bool:
        """Whether rows of one source are about one entity: a source rarely tells of a thing twice."""
        return comparison.is_equal and self._score(comparison) >= self._required_bits

    def _merge_groups(self, row: int, other_row: int) -> None:
        """Make one group of two rows and all that are with them, unless that would glue entities together."""
        group, other_group = self._group_of(row), self._group_of(other_row)
        if group == other_group or not self._are_compatible(self._grouped[group], self._grouped[other_group]):
            return
        if len(self._grouped[group]) < len(self._grouped[other_group]):
            group, other_group = other_group, group
        self._parent[other_group] = group
        self._grouped[group] += self._grouped[other_group]
        self._grouped[other_group] = []

    def _group_of(self, row: int) -> int:
        while self._parent[row] != row:
            self._parent[row] = self._parent[self._parent[row]]
            row = self._parent[row]
        return row

    def _are_compatible(self, group: Sequence[int], other_group: Sequence[int]) -> bool:
        """Whether groups may be one entity: none has another record of a source that the other has, too,
        and their records are alike, not only those by which they were found.
        """
        by_source = defaultdict[str, list[int]](list)
        for row in group:
            for source in self._rows[row].sources:
                by_source[source].append(row)
        for row in other_group:
            for source in self._rows[row].sources:
                if any(
                    not self._is_same_entity(self._compare_rows(row, earlier_row))
                    for earlier_row in by_source[source][:_MOST_COMPARED]
                ):
                    return False
        scores = [
            self._score(self._compare_rows(member, other_member))
            for member in group[:_MOST_COMPARED]
            for other_member in other_group[:_MOST_COMPARED]
        ]
        return sum(scores) / len(scores) >= self._required_bits / 2


def _pairs_within(rows: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Pairs of rows that share a value: all, or if they are many each with some behind it."""
    if len(rows) <= _MOST_SHARING:
        return combinations(rows, 2)
    return (
        (row, other_row)
        for index, row in enumerate(rows)
        for other_row in rows[index + 1 : index + 1 + _WINDOW]
    )


def _build_entity(members: Sequence[int], seeds: Sequence[Seed], columns: Mapping[str, _Column]) -> Entity:
    entity_seeds = [seeds[member] for member in members]
    values = {name: _merge_values(columns[name], entity_seeds) for name in _attributes(entity_seeds)}
    return Entity(tuple(members), {name: agreed for name, agreed in values.items() if agreed.values})


def _merge_values(column: _Column, seeds: Sequence[Seed]) -> MergedValues:
    """What records say of an attribute: values that agree are one, as most sources write it."""
    seeds_by_text: list[dict[str, list[Seed]]] = []  # by how they are written, of whom
    first_numbers: list[int | None] = []
    for seed in seeds:
        for text in seed.values.get(column.name, ()):
            number = column.of_text[text]
            index = next(
                (
                    index
                    for index, first_number in enumerate(first_numbers)
                    if _are_similar(column, first_number, number)
                ),
                None,
            )
            if index is None:
                index = len(first_numbers)
                first_numbers.append(number)
                seeds_by_text.append({})
            seeds_by_text[index].setdefault(text, []).append(seed)
    stated = sorted((_merge_spellings(texts) for texts in seeds_by_text), key=_weight, reverse=True)
    return (
        MergedValues(tuple(stated))
        if column.is_multiple
        else MergedValues(tuple(stated[:1]), tuple(stated[1:]))
    )


def _are_similar(column: _Column, number: int | None, other_number: int | None) -> bool:
    """Whether two values agree; all that is no value is alike."""
    if number is None or other_number is None:
        return number is other_number
    return column.similarity(number, other_number) >= _AGREEING


def _merge_spellings(texts: Mapping[str, Sequence[Seed]]) -> StatedValue:
    """A value in the writing that most sources prefer, stated by all that write it in any way."""
    variants = [StatedValue(text, _sources(seeds), _confidence(seeds)) for text, seeds in texts.items()]
    all_seeds = [seed for seeds in texts.values() for seed in seeds]
    return StatedValue(max(variants, key=_weight).text, _sources(all_seeds), _confidence(all_seeds))


def _weight(stated: StatedValue) -> tuple[int, float]:
    return len(stated.sources), stated.confidence


def _sources(seeds: Iterable[Seed]) -> tuple[str, ...]:
    return tuple(sorted({seed.source for seed in seeds}))


def _confidence(seeds: Iterable[Seed]) -> float:
    """That of the surest of those who say so."""
    return max(seed.confidence for seed in seeds)


ENTITY_COLUMNS = (
    Column("entity", "integer"),
    Column("sources", "texts"),
    Column("urls", "texts"),
    Column("values"),
    Column("conflicts"),
)
"""What is written of an entity."""

DEEP_COLUMNS = ("values", "conflicts")
"""Those of them that are more than a text or texts."""


class AttributeSpread(NamedTuple):
    """Of how many entities an attribute is known, by several sources, and of how many these differ."""

    name: str
    entities: int
    shared: int
    differing: int


def entity_row(number: int, entity: Entity, seeds: Sequence[Seed]) -> dict[str, Any]:
    """An entity as it is written."""
    entity_seeds = [seeds[member] for member in entity.members]
    return {
        "entity": number,
        "sources": _distinct(seed.source for seed in entity_seeds),
        "urls": _distinct(seed.url for seed in entity_seeds if seed.url),
        "values": {name: _value_rows(agreed.values) for name, agreed in entity.values.items()},
        "conflicts": {
            name: _value_rows(agreed.conflicts) for name, agreed in entity.values.items() if agreed.conflicts
        },
    }


def sources_of(entity: Entity, seeds: Sequence[Seed]) -> set[str]:
    """The sources that tell of an entity."""
    return {seeds[member].source for member in entity.members}


def attribute_spread(entities: Iterable[Entity]) -> list[AttributeSpread]:
    """The attributes of entities in numbers, in the order in which they come."""
    entity_counts: Counter[str] = Counter()
    shared: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    for entity in entities:
        for name, agreed in entity.values.items():
            entity_counts[name] += 1
            sources = {source for value in (*agreed.values, *agreed.conflicts) for source in value.sources}
            shared[name] += len(sources) > 1
            differing[name] += bool(agreed.conflicts)
    return [
        AttributeSpread(name, count, shared[name], differing[name]) for name, count in entity_counts.items()
    ]


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _value_rows(values: Iterable[StatedValue]) -> list[dict[str, object]]:
    return [
        {"value": value.text, "sources": list(value.sources), "confidence": value.confidence}
        for value in values
    ]
