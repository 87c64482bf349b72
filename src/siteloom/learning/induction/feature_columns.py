"""The pages of a template as one table: a row for each node, a column for each kind of feature.

Rules are tried on whole columns at once; no XPath is run while learning. What
the columns say must be what `siteloom.wrappers.rule_evaluation` finds on a page.

A *unit* is what gives one record: a page, or one record of a list page.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from siteloom.learning.induction.tree_walk import (
    ATTRIBUTE_COLUMN,
    COLUMN,
    ELEMENT_COLUMNS,
    NONE,
    TableBuilder,
    Walked,
)
from siteloom.wrappers.rule_evaluation import NodePosition
from siteloom.wrappers.rule_features import TEXT_KINDS, Feature, shape

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from siteloom.learning.induction.tree_walk import Inside, Ints
    from siteloom.wrappers.rule_features import Kind, Shape

    Flags = NDArray[np.bool_]

DEPTH = 5
"""Features are looked for at the element of a node and at its four nearest ancestors.

Farther ones had no measurable effect on real sites.
"""

_NEAR = 2  # levels up that count as the same part of a page
_LONGEST_PREFIX = 40  # what stands before a colon later in a text is a clause, not a label

# What is known of features is kept for all attributes: so many bytes of it.
_KEPT_FLAGS = 50_000_000

_TEXT_COLUMN: dict[str, int] = {name: number for number, name in enumerate(TEXT_KINDS)}

# Texts that only part the items of a list.
_SEPARATORS = (",", ";", "/", "|", "&", "·", "•", "-", "\N{EN DASH}", "and", "or", ", and", ",and")


class ColumnFeature(NamedTuple):
    """A feature as the table has it: `column` is a kind, or `attribute:` and a name."""

    column: str
    distance: int
    value: int


class Table:
    """Units as arrays: all that a builder took in, or parts of these."""

    def __init__(self, found: TableBuilder | Walked) -> None:
        walked = found if isinstance(found, Walked) else found.walked
        words = walked.words
        self.words = words
        self.units = len(walked.first_elements)
        self.first_elements = walked.first_elements
        self.first_texts = walked.first_texts
        self.text_unit, self.text_parent, self.text_value = (column.copy() for column in walked.texts[:3])
        count = walked.texts.shape[1]
        starts = self.first_texts
        prefixes = np.array(
            [
                words.number(prefix) if ":" in text and (prefix := _prefix(text)) else NONE
                for text in list(words.texts)
            ],
            np.int32,
        )
        before = np.concatenate([[NONE], self.text_value[:-1]]).astype(np.int32)[:count]
        before[starts[starts < count]] = NONE
        self.text_columns = np.stack([before, prefixes[self.text_value], walked.texts[3]])
        span_starts, span_ends = walked.spans
        padded = np.append(self.text_value, NONE)
        self.elements = np.vstack(
            [
                walked.elements,
                np.where(span_ends > span_starts, padded[span_starts], NONE),
                _last_positions(walked),
            ]
        ).astype(np.int32)
        # Of what is not there, the first text comes after all others.
        self.text_starts = np.append(span_starts, count)
        self.parents = np.append(walked.parents, np.int32(NONE))  # the parent of NONE is NONE
        self.class_words = {NONE: [], **walked.class_words}
        self.classes_with: defaultdict[int, list[int]] = defaultdict(list)
        for class_, its_words in walked.class_words.items():
            for word in its_words:
                self.classes_with[word].append(class_)
        self.insides: dict[str, _Said] = {}
        self.rows: dict[tuple[str, frozenset[str]], Rows] = {}  # of each target that was asked for
        self._shapes = np.empty(0, np.int32)
        if not isinstance(found, Walked):
            self.add_insides(found.insides)

    def add_insides(self, found: Mapping[str, Sequence[Inside]]) -> None:
        """Take in what HTML attributes say, or elements of a tag, in all units; rows come in their order."""
        for key, said in found.items():
            short = [(row, self.words.number(text)) for row, text in said if text is not None]
            elements, values = np.array(short, np.int32).reshape(-1, 2).T
            too_long = np.array([row for row, text in said if text is None], np.int32)
            self.insides[key] = _Said(elements.copy(), values.copy(), too_long)

    def units_of(self, elements: Ints) -> Ints:
        """The units of some elements."""
        return (np.searchsorted(self.first_elements, elements, side="right") - 1).astype(np.int32)

    @property
    def shapes(self) -> Ints:
        """The shape of each word, as the number of a word."""
        texts = self.words.texts
        if len(self._shapes) < len(texts):
            new = [self.words.number(shape(text)) for text in texts[len(self._shapes) :]]
            self._shapes = np.append(self._shapes, np.array(new, np.int32))
        return self._shapes

    def known_shape(self, text: str) -> int:
        """The number of a shape, or NONE if no word has it; shapes are numbered when they are asked for."""
        return self.words.known(text) if len(self.shapes) else NONE

    @cached_property
    def units_with_text(self) -> Ints:
        """On how many units each word stands as a text."""
        pairs = np.unique(self.text_unit.astype(np.int64) << 32 | self.text_value)
        return np.bincount(pairs & 0xFFFFFFFF).astype(np.int32)

    def continuations(self) -> Ints:
        """For each text the text that goes on with the list that it is an item of, or NONE.

        Items stand alone in elements of the same tag and class that are siblings, with
        nothing or only a separator between them.
        """
        return self._continuations

    @cached_property
    def _continuations(self) -> Ints:
        count = len(self.text_unit)
        if not count:
            return np.empty(0, np.int32)
        is_separator = np.zeros(len(self.words.texts), np.bool_)
        known = [number for word in _SEPARATORS if (number := self.words.known(word)) != NONE]
        is_separator[known] = True
        parts = is_separator[self.text_value]
        index = np.arange(count)
        following = np.minimum(index + 1, count - 1)
        following = np.where(parts[following], np.minimum(index + 2, count - 1), following)
        item, next_item = self.text_parent, self.text_parent[following]
        tag, class_ = self.elements[COLUMN["tag"]], self.elements[COLUMN["class"]]
        goes_on = (
            (self.text_unit[following] == self.text_unit)
            & (item != next_item)
            & (item != NONE)
            & (next_item != NONE)
            & (self.parents[item] == self.parents[next_item])
            & (tag[item] == tag[next_item])
            & (class_[item] == class_[next_item])
            & ~parts
            & ~parts[following]
        )
        return np.where(goes_on, following, NONE).astype(np.int32)


class _Said(NamedTuple):
    """What HTML attributes of a name or elements of a tag say: elements and words, and those too long."""

    elements: Ints
    values: Ints
    too_long: Ints


class Rows:
    """The nodes that one kind of rule chooses from, with their features."""

    def __init__(
        self,
        table: Table,
        unit: Ints,
        element: Ints,
        value: Ints,
        text_columns: Ints | None,
        *,
        is_element: bool = False,
    ) -> None:
        """`element` is the one that a text stands in or that is the node itself, `value` its whole text."""
        self.table = table
        self.unit = unit
        self.element = element
        self.value = value
        self._text_columns = text_columns
        self._ancestors = [element]
        for _ in range(DEPTH - 1):
            self._ancestors.append(table.parents[self._ancestors[-1]])
        self._having: dict[ColumnFeature, Flags] = {}
        self._units_with: dict[tuple[Feature, ...], dict[int, Ints]] = {}
        # What a node says in one text. An element may say it in several, of which none is the whole.
        first_texts = np.append(table.elements[COLUMN["first-text"]], NONE)[element]
        is_in_several = is_element & (first_texts != NONE) & (first_texts != value)
        self._said = np.where(is_in_several, NONE, value)

    def __len__(self) -> int:
        return len(self.unit)

    def features(self, row: int) -> list[ColumnFeature]:
        """All features of a node."""
        said = int(self._said[row])
        found = [ColumnFeature("shape", 0, int(self.table.shapes[self.value[row]]))]
        if self._text_columns is not None:
            text_columns = zip(TEXT_KINDS, self._text_columns[:, row].tolist(), strict=True)
            found += [ColumnFeature(name, 0, value) for name, value in text_columns if value != NONE]
        for distance, elements in enumerate(self._ancestors):
            element = int(elements[row])
            if element == NONE:
                break
            columns = zip(ELEMENT_COLUMNS, self.table.elements[:, element].tolist(), strict=True)
            found += [
                ColumnFeature(name, distance, value)
                for name, value in columns
                if value != NONE and (name != "first-text" or value != said)
            ]
            class_ = int(self.table.elements[COLUMN["class"], element])
            found += [ColumnFeature("class-word", distance, word) for word in self.table.class_words[class_]]
        return found

    def standing(self, row: int) -> NodePosition:
        """Where a node stands in its unit."""
        element = int(self._ancestors[0][row])
        position = text_number = 0
        if element != NONE:
            tag_and_number = self.table.words.texts[self.table.elements[COLUMN["position"], element]]
            position = int(tag_and_number.partition(" ")[2])
        if self._text_columns is not None:
            text_number = int(self._text_columns[_TEXT_COLUMN["text-number"], row])
        depth = 0
        while element != NONE:
            depth += 1
            element = int(self.table.parents[element])
        return NodePosition(position, text_number, depth)

    def tags(self, rows: Ints) -> list[str]:
        """The tags of the elements of some nodes, each once, the most frequent first."""
        found, counts = np.unique(
            self.table.elements[COLUMN["tag"], self._ancestors[0][rows]], return_counts=True
        )
        order = np.lexsort((found, -counts))
        return [self.table.words.texts[number] for number in found[order].tolist()]

    def having(self, feature: ColumnFeature) -> Flags:
        """Which nodes have a feature."""
        if (known := self._having.get(feature)) is None:
            if len(self._having) * len(self) > _KEPT_FLAGS:
                self._having.clear()
            known = self._having[feature] = self._find(feature)
        return known

    def having_all(self, features: tuple[ColumnFeature, ...]) -> Flags:
        """Which nodes have all of some features."""
        found: Flags = np.logical_and.reduce([self.having(feature) for feature in features])
        return found

    def having_shape(self, shapes: Collection[Shape]) -> Flags:
        """Which nodes have a text of one of these shapes."""
        return np.isin(self.table.shapes[self.value], [self.table.known_shape(shape) for shape in shapes])

    def is_near(self, feature: ColumnFeature) -> bool:
        """Whether the text before a node mostly stands in the same small part of the page as the node."""
        if self._text_columns is None:
            return True
        rows = np.flatnonzero(self.having(feature))
        starts = np.min(
            [self.table.text_starts[elements[rows]] for elements in self._ancestors[:_NEAR]], axis=0
        )
        return bool(np.mean(starts < rows) >= 0.5)

    def _find(self, feature: ColumnFeature) -> Flags:
        found: Flags
        name, distance, value = feature
        if name == "shape":
            found = self.table.shapes[self.value] == value
            return found
        if name in _TEXT_COLUMN:
            assert self._text_columns is not None
            found = self._text_columns[_TEXT_COLUMN[name]] == value
            return found
        elements = self._ancestors[distance]
        if name == "class-word":
            classes = np.append(self.table.elements[COLUMN["class"]], NONE)
            return np.isin(classes, self.table.classes_with[value])[elements]
        found = np.append(self.table.elements[COLUMN[name]], NONE)[elements] == value
        return found & (self._said != value) if name == "first-text" else found

    def units_with(self, features: tuple[Feature, ...]) -> dict[int, Ints]:
        """The nodes that have all features of a rule, by the units that have any."""
        if features not in self._units_with:
            rows = self._with(features)
            units, starts = np.unique(self.unit[rows], return_index=True)
            found = np.split(rows, starts[1:]) if len(rows) else []
            self._units_with[features] = dict(zip(units.tolist(), found, strict=True))
        return self._units_with[features]

    def _with(self, features: tuple[Feature, ...]) -> Ints:
        columns = self._columns(features)
        if columns is None:
            return np.empty(0, np.int32)
        found = np.flatnonzero(self.having_all(columns)) if columns else np.arange(len(self))
        return found.astype(np.int32)

    def _columns(self, features: tuple[Feature, ...]) -> tuple[ColumnFeature, ...] | None:
        """What `rule_features` gives, as the table has it; None if it has none of one."""
        tags = {feature.distance: feature.value for feature in features if feature.kind == "tag"}
        found = []
        for feature in features:
            column, text = str(feature.kind), feature.value
            if column in ("position", "last-position"):
                text = f"{tags[feature.distance]} {text}"
            elif column == "attribute":
                name, _, text = text.partition("=")
                column = ATTRIBUTE_COLUMN + name
            if column == "shape":
                number = self.table.known_shape(text)
            else:
                number = int(text) if column == "text-number" else self.table.words.known(text)
            if number == NONE:
                return None
            found.append(ColumnFeature(column, feature.distance, number))
        return tuple(found)

    def rule_features(self, found: ColumnFeature) -> list[Feature]:
        """A feature in the words of the rule language, where positions need their tag beside them."""
        column, distance, value = found
        if column == "text-number":
            return [Feature("text-number", distance, str(value))]
        text = self.table.words.texts[value]
        if column in ("position", "last-position"):
            tag, _, number = text.partition(" ")
            return [Feature("tag", distance, tag), Feature(cast("Kind", column), distance, number)]
        if column.startswith(ATTRIBUTE_COLUMN):
            return [Feature("attribute", distance, f"{column.removeprefix(ATTRIBUTE_COLUMN)}={text}")]
        return [Feature(cast("Kind", column), distance, text)]


def target_rows(table: Table, target: str, tags: Collection[str] | None = None) -> Rows:
    """All nodes that a rule with this target chooses from; elements are of these tags, or of all it knows."""
    key = target, frozenset(_keys(table, target, tags))
    if key not in table.rows:
        if target == "text":
            rows = Rows(table, table.text_unit, table.text_parent, table.text_value, table.text_columns)
        else:
            said = [table.insides[one] for one in sorted(key[1])]
            elements = np.concatenate([one.elements for one in said])
            order = np.argsort(elements)
            elements, values = elements[order], np.concatenate([one.values for one in said])[order]
            rows = Rows(
                table, table.units_of(elements), elements, values, None, is_element=target == "element"
            )
        table.rows[key] = rows
    return table.rows[key]


def too_long(table: Table, target: str, tags: Collection[str]) -> Rows:
    """The nodes of a target that are no rows, for their text is too long; what they say is not known."""
    key = f"{target} too long", frozenset(tags)
    if key not in table.rows:
        elements = np.sort(
            np.concatenate([table.insides[one].too_long for one in _keys(table, target, tags)])
        )
        nothing = np.full(len(elements), NONE, np.int32)
        table.rows[key] = Rows(table, table.units_of(elements), elements, nothing, None)
    return table.rows[key]


def _keys(table: Table, target: str, tags: Collection[str] | None) -> Collection[str]:
    """By what the insides that a target chooses from are known."""
    if target == "text":
        return ()
    if target != "element":
        return (target,)
    return [key for key in table.insides if not key.startswith("@")] if tags is None else tags


def _last_positions(walked: Walked) -> Ints:
    """For each element "tag 1" if it is the last child of its parent that has its tag, else NONE.

    Nothing is said of the others: what is not the last changes its place whenever the list grows.
    """
    words, tags = walked.words, walked.elements[COLUMN["tag"]]
    parents = walked.parents.astype(np.int64)
    count = len(parents)
    if not count:
        return np.empty(0, np.int32)
    # The topmost elements of a unit are children of one that is none of its own.
    units = np.searchsorted(walked.first_elements, np.arange(count), side="right")
    parents = np.where(parents == NONE, -units, parents)
    families = parents * len(words.texts) + tags
    # Of several equal ones `unique` names the first: so it is asked from the end.
    last = count - 1 - np.unique(families[::-1], return_index=True)[1]
    found = np.full(count, NONE, np.int32)
    known, places = np.unique(tags[last], return_inverse=True)
    texts = [words.number(f"{words.texts[tag]} 1") for tag in known.tolist()]
    found[last] = np.array(texts, np.int32)[places]
    return found


def _prefix(text: str) -> str:
    """The words up to the first colon of a text, if that comes early."""
    colon = text.find(":", 0, _LONGEST_PREFIX)
    return text[: colon + 1] if colon > 0 else ""
