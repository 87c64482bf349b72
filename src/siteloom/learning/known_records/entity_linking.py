"""Link the records of one entity across sites, and merge their values.

Two records are linked if their common values are worth more bits than it takes to identify one record. A
shared value is worth more if fewer records have it. An attribute in which they differ counts against them, by
how seldom records of one entity differ in it. Only pairs that share a rare or nearly rare value are compared.
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


# Values agree from this similarity. A typo, another word order or a missing "Ltd" keeps more than four fifths
# of the weight of a value; another house number or branch keeps less.
_AGREEING = 0.8
# From this similarity, values suggest a pair of records, for which the other values decide.
_NEAR = 0.7
# Longer texts are prose, which shares much with other prose: they suggest a pair only if equal.
_LONGEST_NEAR = 80
# Bits required beyond those that identify one record: of eight pairs with so many bits, at most one agrees by
# chance.
_MARGIN = 3.0
# With so many times the bits of a record, two records surely belong to one entity, which takes more than one
# rare value.
_SURELY = 1.5
# The minimum number of records that rarity is computed for.
_LEAST_RECORDS = 32
# A value that more records share, beyond one of each source, suggests no pairs.
_MOST_SHARING = 20
# In longer lists of records with the same value, each is compared with so many that follow it.
_WINDOW = 10
# Texts per join of similar values, since there may be many pairs.
_TEXTS_AT_ONCE = 10_000
# Records of each group that are compared before two groups are merged.
_MOST_COMPARED = 3

# The kinds of values that separate entities. Books that differ only in the ISBN are other editions; places
# with the same name are different if their phones differ and little else agrees.
_NEVER_TWO = "isbn"
_SELDOM_TWO = "phone"
# The kind whose values agree if one is less precise than the other: 2008, May 2008.
_WRITTEN_IN_PART = "date"


class SourcedValue(NamedTuple):
    """A value, the sources that state it, and the confidence in the most reliable of these."""

    text: str
    sources: tuple[str, ...]
    confidence: float


class MergedValues(NamedTuple):
    """The merged values of an attribute of an entity, and the conflicting ones.

    The value is the one that most sources state. Multi-valued attributes have no conflicts.
    """

    values: tuple[SourcedValue, ...]
    conflicts: tuple[SourcedValue, ...] = ()


class Entity(NamedTuple):
    """The records of one entity: their indices, ascending, and their merged values."""

    members: tuple[int, ...]
    values: Mapping[str, MergedValues]


def link(seeds: Sequence[Seed], core: Sequence[str] = ()) -> list[Entity]:
    """Group records into entities, in the order of their first records.

    `core` are the identifying attributes, if known: records of one entity agree in at least one of them.
    Records of the same source belong to one entity only if they differ in nothing.
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
    """Records with equal values: for each attribute the numbers of its values."""

    values: Mapping[str, tuple[int, ...]]
    members: list[int]
    sources: set[str]


class _Column:
    """The values of an attribute; values that differ only in spelling count as one.

    `numbers` has the numbers of each record's values; a text without letters and digits is no value.
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
        self._joined: set[int] = set()  # values whose similar values are all in `_similarities`

    def count(self, records: Sequence[_DistinctRecord]) -> None:
        """Find the rows of each value, and how many rows share it beyond one per source."""
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
        """Return the similarity of two values; similarities below `_NEAR` may be 0."""
        if value == other_value:
            return 1.0
        pair = (value, other_value) if value < other_value else (other_value, value)
        if pair not in self._similarities:
            is_joined = value in self._joined or other_value in self._joined
            self._similarities[pair] = 0.0 if is_joined else self._compute_similarity(*pair)
        return self._similarities[pair]

    def _compute_similarity(self, value: int, other_value: int) -> float:
        if self.kinds[value] == self.kinds[other_value] not in ("", _WRITTEN_IN_PART):
            return 0.0  # equal values would have the same number
        return value_similarity(self.shown[value], self.shown[other_value], self._index)

    def near_pairs(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of similar values that few records have."""
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
    """Return the distinct records: a thousand copies carry no more information than one."""
    rows: dict[tuple[tuple[str, tuple[int, ...]], ...], _DistinctRecord] = {}
    for number, seed in enumerate(seeds):
        values = {name: numbers for name, column in columns.items() if (numbers := column.numbers[number])}
        row = rows.setdefault(tuple(values.items()), _DistinctRecord(values, [], set()))
        row.members.append(number)
        row.sources.add(seed.source)
    return list(rows.values())


class _Comparison(NamedTuple):
    """The comparison of two rows: the bits of each attribute that agrees, and the attributes that differ.

    The rows are equal if no attribute differs and all common values are identical.
    """

    bits: Mapping[str, float]
    differing: tuple[str, ...]
    is_equal: bool

    @property
    def common(self) -> float:
        return sum(self.bits.values())


class _Linker:
    """Groups the rows of each entity."""

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
        """Return the numbers of the rows of each entity."""
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
        """Return the records of a group of rows; records of a single row with too few bits stay separate."""
        members = sorted(member for row in group for member in self._rows[row].members)
        if len(group) == 1 and not self._is_same_entity(self._compare_rows(group[0], group[0])):
            return [[member] for member in members]
        return [members]

    def _candidates(self) -> set[tuple[int, int]]:
        """Return pairs of rows that share a rare value or have similar rare values."""
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
        """Return the similarity of the most similar values of two rows, and the bits that they are worth."""
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
        """Learn the cost of a difference in each attribute: its surprise, in bits, for records of one entity.

        It is learned from rows that are each other's best match, and would be without the attribute: a common
        name, and what correlates with it, does not suffice.
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
        """Return whether rows of one source belong to one entity, which a source rarely lists twice."""
        return comparison.is_equal and self._score(comparison) >= self._required_bits

    def _merge_groups(self, row: int, other_row: int) -> None:
        """Merge the groups of two rows, unless that would merge different entities."""
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
        """Return whether two groups may be one entity.

        They must not have different records of one source, and not only the pair that suggested the merge
        must be similar.
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
    """Return pairs of rows that share a value: all pairs, or of many rows each with some that follow."""
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
    """Merge the values of an attribute: similar values become one, in the spelling of most sources."""
    seeds_by_text: list[dict[str, list[Seed]]] = []  # for each value its spellings
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
    """Return whether two values agree; texts that are no values agree with each other."""
    if number is None or other_number is None:
        return number is other_number
    return column.similarity(number, other_number) >= _AGREEING


def _merge_spellings(texts: Mapping[str, Sequence[Seed]]) -> SourcedValue:
    """Return a value in its most frequent spelling, with the sources of all spellings."""
    variants = [SourcedValue(text, _sources(seeds), _confidence(seeds)) for text, seeds in texts.items()]
    all_seeds = [seed for seeds in texts.values() for seed in seeds]
    return SourcedValue(max(variants, key=_weight).text, _sources(all_seeds), _confidence(all_seeds))


def _weight(stated: SourcedValue) -> tuple[int, float]:
    return len(stated.sources), stated.confidence


def _sources(seeds: Iterable[Seed]) -> tuple[str, ...]:
    return tuple(sorted({seed.source for seed in seeds}))


def _confidence(seeds: Iterable[Seed]) -> float:
    """Return the highest confidence of any seed."""
    return max(seed.confidence for seed in seeds)


ENTITY_COLUMNS = (
    Column("entity", "integer"),
    Column("sources", "texts"),
    Column("urls", "texts"),
    Column("values"),
    Column("conflicts"),
)
"""The columns of an entity in output files."""

DEEP_COLUMNS = ("values", "conflicts")
"""The columns that are more than a text or texts."""


class AttributeSpread(NamedTuple):
    """Numbers of entities that have an attribute, have it from several sources, and have conflicts in it."""

    name: str
    entities: int
    shared: int
    differing: int


def entity_row(number: int, entity: Entity, seeds: Sequence[Seed]) -> dict[str, Any]:
    """Return an entity as a row of an output file."""
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
    """Return the sources of an entity's records."""
    return {seeds[member].source for member in entity.members}


def attribute_spread(entities: Iterable[Entity]) -> list[AttributeSpread]:
    """Count the entities by attribute, in the order in which attributes occur."""
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
        AttributeSpread(name=name, entities=count, shared=shared[name], differing=differing[name])
        for name, count in entity_counts.items()
    ]


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _value_rows(values: Iterable[SourcedValue]) -> list[dict[str, object]]:
    return [
        {"value": value.text, "sources": list(value.sources), "confidence": value.confidence}
        for value in values
    ]
