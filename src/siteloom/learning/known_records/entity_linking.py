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
from siteloom.learning.known_records.text_normalisation import folded, telling_key

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


class Stated(NamedTuple):
    """A value, the sources that state it, and how likely it is by what is known of them."""

    text: str
    sources: tuple[str, ...]
    confidence: float


class Agreed(NamedTuple):
    """What the records of an entity say of an attribute: its value or values, and those that differ from it.

    The value is the one that most sources state. Attributes that may have several values have no conflicts.
    """

    values: tuple[Stated, ...]
    conflicts: tuple[Stated, ...] = ()


class Entity(NamedTuple):
    """Records that tell of one thing: their indices, ascending, and what they say together."""

    members: tuple[int, ...]
    values: Mapping[str, Agreed]


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
        _entity(members, seeds, columns) for group in linker.groups() for members in linker.members_of(group)
    ]
    return sorted(entities, key=lambda entity: entity.members[0])


class _Row(NamedTuple):
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
        self.is_multiple = any(len(set(some)) > 1 for some in texts)
        self.kinds: list[str] = []
        self.shown: list[str] = []
        known: dict[str, int] = {}
        of_text: dict[str, int | None] = {}
        for text in {text: None for some in texts for text in some}:
            key = telling_key(text)
            whole = key or folded(text)
            if whole and whole not in known:
                known[whole] = len(known)
                self.kinds.append(key.partition(":")[0] if key else "")
                self.shown.append(text)
            of_text[text] = known.get(whole)
        self.of_text = of_text
        self.kind, count = Counter(self.kinds).most_common(1)[0] if self.kinds else ("", 0)
        if 2 * count <= len(self.kinds):
            self.kind = ""
        self.numbers = [
            tuple(sorted({number for text in some if (number := of_text[text]) is not None}))
            for some in texts
        ]
        self.rows: list[list[int]] = []
        self.sharing: list[int] = []
        self._index = WeakIndex(self.shown)
        self._similarities: dict[tuple[int, int], float] = {}
        self._joined: set[int] = set()  # whose similarities to all others are known, if they are near

    def count(self, rows: Sequence[_Row]) -> None:
        """Find the rows of each value, and how many share it beyond one of each source."""
        self.rows = [[] for _ in self.shown]
        sources: list[set[str]] = [set() for _ in self.shown]
        for number, row in enumerate(rows):
            for value in row.values.get(self.name, ()):
                self.rows[value].append(number)
                sources[value] |= row.sources
        self.sharing = [
            max(1, len(found) - len(of) + 1) for found, of in zip(self.rows, sources, strict=True)
        ]

    def similarity(self, one: int, other: int) -> float:
        """How similar two values are; what is less than near is not similar at all."""
        if one == other:
            return 1.0
        pair = (one, other) if one < other else (other, one)
        if pair not in self._similarities:
            is_known = one in self._joined or other in self._joined
            self._similarities[pair] = 0.0 if is_known else self._compared(*pair)
        return self._similarities[pair]

    def _compared(self, one: int, other: int) -> float:
        if self.kinds[one] == self.kinds[other] not in ("", _WRITTEN_IN_PART):
            return 0.0  # or they would be the same value
        return value_similarity(self.shown[one], self.shown[other], self._index)

    def near_pairs(self) -> Iterator[tuple[int, int]]:
        """The values that few records have and that are like another such."""
        rare = [
            number
            for number, kind in enumerate(self.kinds)
            if not kind and self.sharing[number] <= _MOST_SHARING and len(self.shown[number]) <= _LONGEST_NEAR
        ]
        self._joined.update(rare)
        for start in range(0, len(rare), _TEXTS_AT_ONCE):
            some = rare[start : start + _TEXTS_AT_ONCE]
            found = self._index.join([self.shown[number] for number in some], _NEAR)
            for place, other, similarity in zip(
                found.text.tolist(), found.value.tolist(), found.similarity.tolist(), strict=True
            ):
                one = some[place]
                self._similarities[min(one, other), max(one, other)] = similarity
                if one < other and other in self._joined:
                    yield one, other


def _attributes(seeds: Iterable[Seed]) -> list[str]:
    return list({name: None for seed in seeds for name in seed.values})


def _distinct_rows(seeds: Sequence[Seed], columns: Mapping[str, _Column]) -> list[_Row]:
    """The records, those that say the same as one: a thousand copies tell no more than one does."""
    rows: dict[tuple[tuple[str, tuple[int, ...]], ...], _Row] = {}
    for number, seed in enumerate(seeds):
        values = {name: found for name, column in columns.items() if (found := column.numbers[number])}
        row = rows.setdefault(tuple(values.items()), _Row(values, [], set()))
        row.members.append(number)
        row.sources.add(seed.source)
    return list(rows.values())


class _Compared(NamedTuple):
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

    def __init__(self, rows: Sequence[_Row], columns: Mapping[str, _Column], core: frozenset[str]) -> None:
        self._rows = rows
        self._columns = columns
        self._core = core
        self._record_bits = log2(max(len(rows), _LEAST_RECORDS))
        self._enough = self._record_bits + _MARGIN
        self._costs: dict[str, float] = {}
        self._parent = list(range(len(rows)))
        self._grouped = [[row] for row in range(len(rows))]

    def groups(self) -> list[list[int]]:
        """The numbers of the rows of each entity."""
        pairs = {pair: self._compare(*pair) for pair in self._candidates()}
        pairs = {pair: found for pair, found in pairs.items() if found.common >= self._enough}
        self._costs = self._learned_costs(pairs)
        scored = sorted(((self._score(found), pair) for pair, found in pairs.items()), reverse=True)
        for score, (one, other) in scored:
            if score >= self._enough:
                self._unite(one, other)
        return [rows for row, rows in enumerate(self._grouped) if self._parent[row] == row]

    def members_of(self, group: Sequence[int]) -> list[list[int]]:
        """The records of a group of rows: those of a lone row that tells too little are an entity each."""
        members = sorted(member for row in group for member in self._rows[row].members)
        if len(group) == 1 and not self._is_same(self._compare(group[0], group[0])):
            return [[member] for member in members]
        return [members]

    def _candidates(self) -> set[tuple[int, int]]:
        """Pairs of rows that share a rare value, or nearly so."""
        pairs: set[tuple[int, int]] = set()
        for column in self._columns.values():
            for rows, sharing in zip(column.rows, column.sharing, strict=True):
                if sharing <= _MOST_SHARING:
                    pairs.update(_pairs_within(rows))
            for one, other in column.near_pairs():
                pairs.update(
                    (min(a, b), max(a, b))
                    for a in column.rows[one][:_WINDOW]
                    for b in column.rows[other][:_WINDOW]
                    if a != b
                )
        return pairs

    def _compare(self, one: int, other: int) -> _Compared:
        bits: dict[str, float] = {}
        differing: list[str] = []
        is_equal = True
        others = self._rows[other].values
        for name, values in self._rows[one].values.items():
            if name not in others:
                continue
            similarity, bits[name] = self._common(self._columns[name], values, others[name])
            is_equal = is_equal and similarity == 1
            if similarity < _AGREEING:
                differing.append(name)
                del bits[name]
        return _Compared(bits, tuple(differing), is_equal)

    def _common(self, column: _Column, values: Sequence[int], others: Sequence[int]) -> tuple[float, float]:
        """The similarity of the values in which two rows agree most, and what that is worth."""
        return max(
            (similarity, self._value_bits(max(column.sharing[value], column.sharing[other])) * similarity**2)
            for value in values
            for other in others
            for similarity in (column.similarity(value, other),)
        )

    def _value_bits(self, sharing: int) -> float:
        return max(0.0, self._record_bits - log2(sharing))

    def _learned_costs(self, pairs: Mapping[tuple[int, int], _Compared]) -> dict[str, float]:
        """What it costs to differ in each attribute: the bits by which that is odd for records of one entity.

        It is learned from rows that are each other's best match, and surely so even without the attribute: a
        name that some have in common, and what goes with such a name, does not suffice.
        """
        sure = max(self._enough, _SURELY * self._record_bits)
        best: dict[int, tuple[float, int]] = {}
        for (one, other), found in pairs.items():
            best[one] = max(best.get(one, (0.0, -1)), (found.common, other))
            best[other] = max(best.get(other, (0.0, -1)), (found.common, one))
        agreed: Counter[str] = Counter()
        differed: Counter[str] = Counter()
        for (one, other), found in pairs.items():
            if best[one][1] == other and best[other][1] == one:
                agreed.update(name for name, bits in found.bits.items() if found.common - bits >= sure)
                differed.update(found.differing if found.common >= sure else ())
        costs = {
            name: log2((agreed[name] + differed[name] + 2) / (differed[name] + 1)) for name in self._columns
        }
        for name, column in self._columns.items():
            if name in self._core or column.kind == _SELDOM_TWO:
                costs[name] = max(costs[name], self._record_bits / 2)
            if column.kind == _NEVER_TWO:
                costs[name] = inf
        return costs

    def _score(self, found: _Compared) -> float:
        if self._core and not self._core & found.bits.keys():
            return 0.0
        return found.common - sum(self._costs[name] for name in found.differing)

    def _is_same(self, found: _Compared) -> bool:
        """Whether rows of one source are about one entity: a source rarely tells of a thing twice."""
        return found.is_equal and self._score(found) >= self._enough

    def _unite(self, one: int, other: int) -> None:
        """Make one group of two rows and all that are with them, unless that would glue entities together."""
        first, second = self._group_of(one), self._group_of(other)
        if first == second or not self._are_compatible(self._grouped[first], self._grouped[second]):
            return
        if len(self._grouped[first]) < len(self._grouped[second]):
            first, second = second, first
        self._parent[second] = first
        self._grouped[first] += self._grouped[second]
        self._grouped[second] = []

    def _group_of(self, row: int) -> int:
        while self._parent[row] != row:
            self._parent[row] = self._parent[self._parent[row]]
            row = self._parent[row]
        return row

    def _are_compatible(self, some: Sequence[int], others: Sequence[int]) -> bool:
        """Whether groups may be one entity: none has another record of a source that the other has, too,
        and their records are alike, not only those by which they were found.
        """
        by_source = defaultdict[str, list[int]](list)
        for row in some:
            for source in self._rows[row].sources:
                by_source[source].append(row)
        for row in others:
            for source in self._rows[row].sources:
                if any(
                    not self._is_same(self._compare(row, same)) for same in by_source[source][:_MOST_COMPARED]
                ):
                    return False
        scores = [
            self._score(self._compare(one, other))
            for one in some[:_MOST_COMPARED]
            for other in others[:_MOST_COMPARED]
        ]
        return sum(scores) / len(scores) >= self._enough / 2


def _pairs_within(rows: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Pairs of rows that share a value: all, or if they are many each with some behind it."""
    if len(rows) <= _MOST_SHARING:
        return combinations(rows, 2)
    return ((one, other) for place, one in enumerate(rows) for other in rows[place + 1 : place + 1 + _WINDOW])


def _entity(members: Sequence[int], seeds: Sequence[Seed], columns: Mapping[str, _Column]) -> Entity:
    told = [seeds[member] for member in members]
    values = {name: _agreed(columns[name], told) for name in _attributes(told)}
    return Entity(tuple(members), {name: agreed for name, agreed in values.items() if agreed.values})


def _agreed(column: _Column, told: Sequence[Seed]) -> Agreed:
    """What records say of an attribute: values that agree are one, as most sources write it."""
    alike: list[dict[str, list[Seed]]] = []  # by how they are written, of whom
    first: list[int | None] = []
    for seed in told:
        for text in seed.values.get(column.name, ()):
            number = column.of_text[text]
            place = next((place for place, one in enumerate(first) if _is_alike(column, one, number)), None)
            if place is None:
                place = len(first)
                first.append(number)
                alike.append({})
            alike[place].setdefault(text, []).append(seed)
    stated = sorted((_stated(texts) for texts in alike), key=_weight, reverse=True)
    return Agreed(tuple(stated)) if column.is_multiple else Agreed(tuple(stated[:1]), tuple(stated[1:]))


def _is_alike(column: _Column, one: int | None, other: int | None) -> bool:
    """Whether two values agree; all that is no value is alike."""
    if one is None or other is None:
        return one is other
    return column.similarity(one, other) >= _AGREEING


def _stated(texts: Mapping[str, Sequence[Seed]]) -> Stated:
    """A value in the writing that most sources prefer, stated by all that write it in any way."""
    written = [Stated(text, _sources(seeds), _confidence(seeds)) for text, seeds in texts.items()]
    everyone = [seed for seeds in texts.values() for seed in seeds]
    return Stated(max(written, key=_weight).text, _sources(everyone), _confidence(everyone))


def _weight(stated: Stated) -> tuple[int, float]:
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
    told = [seeds[member] for member in entity.members]
    return {
        "entity": number,
        "sources": _distinct(seed.source for seed in told),
        "urls": _distinct(seed.url for seed in told if seed.url),
        "values": {name: _stated_rows(agreed.values) for name, agreed in entity.values.items()},
        "conflicts": {
            name: _stated_rows(agreed.conflicts) for name, agreed in entity.values.items() if agreed.conflicts
        },
    }


def sources_of(entity: Entity, seeds: Sequence[Seed]) -> set[str]:
    """The sources that tell of an entity."""
    return {seeds[member].source for member in entity.members}


def attribute_spread(entities: Iterable[Entity]) -> list[AttributeSpread]:
    """The attributes of entities in numbers, in the order in which they come."""
    told: Counter[str] = Counter()
    shared: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    for entity in entities:
        for name, agreed in entity.values.items():
            told[name] += 1
            stating = {source for one in (*agreed.values, *agreed.conflicts) for source in one.sources}
            shared[name] += len(stating) > 1
            differing[name] += bool(agreed.conflicts)
    return [AttributeSpread(name, count, shared[name], differing[name]) for name, count in told.items()]


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _stated_rows(values: Iterable[Stated]) -> list[dict[str, object]]:
    return [{"value": one.text, "sources": list(one.sources), "confidence": one.confidence} for one in values]
