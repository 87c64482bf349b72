"""The pages of a template as one table: a row for each node, a column for each kind of feature.

Rules are tried on whole columns at once; no XPath runs while learning. The columns must agree with what
`siteloom.wrappers.rule_evaluation` finds on a page.

A *unit* gives one record: it is a page, or one record of a list page.
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

    from siteloom.learning.induction.tree_walk import InnerText, Ints
    from siteloom.wrappers.rule_features import Kind, Shape

    Flags = NDArray[np.bool_]

DEPTH = 5
"""Features come from the element of a node and its four nearest ancestors.

Ancestors farther away had no measurable effect on real sites.
"""

_NEAR = 2  # levels up that count as the same part of a page
_LONGEST_PREFIX = 40  # a longer text before a colon is a clause, not a label

_MAX_CACHED_FLAGS = 50_000_000  # bytes; the flags of features serve all attributes

_TEXT_COLUMN: dict[str, int] = {name: number for number, name in enumerate(TEXT_KINDS)}

# Texts that only separate the items of a list.
_SEPARATORS = (",", ";", "/", "|", "&", "·", "•", "-", "\N{EN DASH}", "and", "or", ", and", ",and")


class ColumnFeature(NamedTuple):
    """A feature as the table has it: `column` is a kind, or `attribute:` and a name."""

    column: str
    distance: int
    value: int


class Table:
    """Units as arrays: all units of a builder, or some of them."""

    def __init__(self, source: TableBuilder | Walked) -> None:
        walked = source if isinstance(source, Walked) else source.walked
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
        preceding_texts = np.concatenate([[NONE], self.text_value[:-1]]).astype(np.int32)[:count]
        preceding_texts[starts[starts < count]] = NONE
        self.text_columns = np.stack([preceding_texts, prefixes[self.text_value], walked.texts[3]])
        span_starts, span_ends = walked.spans
        padded = np.append(self.text_value, NONE)
        self.elements = np.vstack(
            [
                walked.elements,
                np.where(span_ends > span_starts, padded[span_starts], NONE),
                _last_positions(walked),
            ]
        ).astype(np.int32)
        # The extra row, for a missing element, begins after all texts.
        self.text_starts = np.append(span_starts, count)
        self.parents = np.append(walked.parents, np.int32(NONE))  # the parent of NONE is NONE
        self.class_words = {NONE: [], **walked.class_words}
        self.classes_with: defaultdict[int, list[int]] = defaultdict(list)
        for class_, its_words in walked.class_words.items():
            for word in its_words:
                self.classes_with[word].append(class_)
        self.inner_texts: dict[str, _InnerTextColumn] = {}
        self.rows: dict[tuple[str, frozenset[str]], Rows] = {}  # cache by target and keys of inner texts
        self._shapes = np.empty(0, np.int32)
        if not isinstance(source, Walked):
            self.add_inner_texts(source.inner_texts)

    def add_inner_texts(self, new_texts: Mapping[str, Sequence[InnerText]]) -> None:
        """Add the values of HTML attributes, or the whole texts of elements of a tag, ordered by row."""
        for key, texts_by_row in new_texts.items():
            numbered = [(row, self.words.number(text)) for row, text in texts_by_row if text is not None]
            elements, values = np.array(numbered, np.int32).reshape(-1, 2).T
            too_long = np.array([row for row, text in texts_by_row if text is None], np.int32)
            self.inner_texts[key] = _InnerTextColumn(elements.copy(), values.copy(), too_long)

    def units_of(self, elements: Ints) -> Ints:
        """Return the unit of each element."""
        return (np.searchsorted(self.first_elements, elements, side="right") - 1).astype(np.int32)

    @property
    def shapes(self) -> Ints:
        """The shape of each word, as the number of a word."""
        texts = self.words.texts
        if len(self._shapes) < len(texts):
            new = [self.words.number(shape(text)) for text in texts[len(self._shapes) :]]
            self._shapes = np.append(self._shapes, np.array(new, np.int32))
        return self._shapes

    def shape_number(self, text: str) -> int:
        """Return the number of a shape, or NONE if no word has it; shapes are numbered on first use."""
        return self.words.find(text) if len(self.shapes) else NONE

    @cached_property
    def units_with_text(self) -> Ints:
        """The number of units that have each word as a text."""
        pairs = np.unique(self.text_unit.astype(np.int64) << 32 | self.text_value)
        return np.bincount(pairs & 0xFFFFFFFF).astype(np.int32)

    def continuations(self) -> Ints:
        """Return for each text the text of the next item in its list, or NONE.

        Each item is alone in its element. The elements are siblings with the same tag and class, and nothing
        or only a separator is between them.
        """
        return self._continuations

    @cached_property
    def _continuations(self) -> Ints:
        count = len(self.text_unit)
        if not count:
            return np.empty(0, np.int32)
        is_separator = np.zeros(len(self.words.texts), np.bool_)
        separators = [number for word in _SEPARATORS if (number := self.words.find(word)) != NONE]
        is_separator[separators] = True
        is_separator_text = is_separator[self.text_value]
        index = np.arange(count)
        following = np.minimum(index + 1, count - 1)
        following = np.where(is_separator_text[following], np.minimum(index + 2, count - 1), following)
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
            & ~is_separator_text
            & ~is_separator_text[following]
        )
        return np.where(goes_on, following, NONE).astype(np.int32)


class _InnerTextColumn(NamedTuple):
    """The values of one HTML attribute, or the whole texts of elements of one tag, with their elements.

    `too_long` are the elements whose value or text is too long to be compared.
    """

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
        """`element` is the parent of each text or the node itself, `value` the node's whole text."""
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
        # The text of a node if it is a single text; an element with several texts has none.
        first_texts = np.append(table.elements[COLUMN["first-text"]], NONE)[element]
        is_in_several = is_element & (first_texts != NONE) & (first_texts != value)
        self._own_text = np.where(is_in_several, NONE, value)

    def __len__(self) -> int:
        return len(self.unit)

    def features(self, row: int) -> list[ColumnFeature]:
        """Return all features of a node."""
        own_text = int(self._own_text[row])
        features = [ColumnFeature("shape", 0, int(self.table.shapes[self.value[row]]))]
        if self._text_columns is not None:
            text_columns = zip(TEXT_KINDS, self._text_columns[:, row].tolist(), strict=True)
            features += [ColumnFeature(name, 0, value) for name, value in text_columns if value != NONE]
        for distance, elements in enumerate(self._ancestors):
            element = int(elements[row])
            if element == NONE:
                break
            columns = zip(ELEMENT_COLUMNS, self.table.elements[:, element].tolist(), strict=True)
            features += [
                ColumnFeature(name, distance, value)
                for name, value in columns
                if value != NONE and (name != "first-text" or value != own_text)
            ]
            class_ = int(self.table.elements[COLUMN["class"], element])
            features += [
                ColumnFeature("class-word", distance, word) for word in self.table.class_words[class_]
            ]
        return features

    def node_position(self, row: int) -> NodePosition:
        """Return the position of a node in its unit."""
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
        """Return the distinct tags of the elements of some nodes, the most frequent first."""
        tags, counts = np.unique(
            self.table.elements[COLUMN["tag"], self._ancestors[0][rows]], return_counts=True
        )
        order = np.lexsort((tags, -counts))
        return [self.table.words.texts[number] for number in tags[order].tolist()]

    def having(self, feature: ColumnFeature) -> Flags:
        """Return a flag for each node: whether it has a feature."""
        if (flags := self._having.get(feature)) is None:
            if len(self._having) * len(self) > _MAX_CACHED_FLAGS:
                self._having.clear()
            flags = self._having[feature] = self._compute_flags(feature)
        return flags

    def having_all(self, features: tuple[ColumnFeature, ...]) -> Flags:
        """Return a flag for each node: whether it has all of these features."""
        flags: Flags = np.logical_and.reduce([self.having(feature) for feature in features])
        return flags

    def having_shape(self, shapes: Collection[Shape]) -> Flags:
        """Return a flag for each node: whether its text has one of these shapes."""
        return np.isin(self.table.shapes[self.value], [self.table.shape_number(shape) for shape in shapes])

    def is_near(self, feature: ColumnFeature) -> bool:
        """Return whether the text before a node is mostly in the same small part of the page as the node."""
        if self._text_columns is None:
            return True
        rows = np.flatnonzero(self.having(feature))
        starts = np.min(
            [self.table.text_starts[elements[rows]] for elements in self._ancestors[:_NEAR]], axis=0
        )
        return bool(np.mean(starts < rows) >= 0.5)

    def _compute_flags(self, feature: ColumnFeature) -> Flags:
        flags: Flags
        name, distance, value = feature
        if name == "shape":
            flags = self.table.shapes[self.value] == value
            return flags
        if name in _TEXT_COLUMN:
            assert self._text_columns is not None
            flags = self._text_columns[_TEXT_COLUMN[name]] == value
            return flags
        elements = self._ancestors[distance]
        if name == "class-word":
            classes = np.append(self.table.elements[COLUMN["class"]], NONE)
            return np.isin(classes, self.table.classes_with[value])[elements]
        flags = np.append(self.table.elements[COLUMN[name]], NONE)[elements] == value
        return flags & (self._own_text != value) if name == "first-text" else flags

    def units_with(self, features: tuple[Feature, ...]) -> dict[int, Ints]:
        """Return the nodes that have all features of a rule, by unit; units without any are left out."""
        if features not in self._units_with:
            rows = self._rows_with(features)
            units, starts = np.unique(self.unit[rows], return_index=True)
            rows_by_unit = np.split(rows, starts[1:]) if len(rows) else []
            self._units_with[features] = dict(zip(units.tolist(), rows_by_unit, strict=True))
        return self._units_with[features]

    def _rows_with(self, features: tuple[Feature, ...]) -> Ints:
        columns = self._columns(features)
        if columns is None:
            return np.empty(0, np.int32)
        rows = np.flatnonzero(self.having_all(columns)) if columns else np.arange(len(self))
        return rows.astype(np.int32)

    def _columns(self, features: tuple[Feature, ...]) -> tuple[ColumnFeature, ...] | None:
        """Return the features of a rule as column features, or None if the table lacks one of them."""
        tags = {feature.distance: feature.value for feature in features if feature.kind == "tag"}
        columns = []
        for feature in features:
            column, text = str(feature.kind), feature.value
            if column in ("position", "last-position"):
                text = f"{tags[feature.distance]} {text}"
            elif column == "attribute":
                name, _, text = text.partition("=")
                column = ATTRIBUTE_COLUMN + name
            if column == "shape":
                number = self.table.shape_number(text)
            else:
                number = int(text) if column == "text-number" else self.table.words.find(text)
            if number == NONE:
                return None
            columns.append(ColumnFeature(column, feature.distance, number))
        return tuple(columns)

    def rule_features(self, column_feature: ColumnFeature) -> list[Feature]:
        """Return a column feature as features of the rule language, where a position also needs its tag."""
        column, distance, value = column_feature
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
    """Return all nodes that a rule with this target chooses from.

    Elements are limited to these tags; None stands for all tags of the table.
    """
    key = target, frozenset(_inner_text_keys(table, target, tags))
    if key not in table.rows:
        if target == "text":
            rows = Rows(
                table=table,
                unit=table.text_unit,
                element=table.text_parent,
                value=table.text_value,
                text_columns=table.text_columns,
            )
        else:
            inner_texts = [table.inner_texts[texts] for texts in sorted(key[1])]
            elements = np.concatenate([texts.elements for texts in inner_texts])
            order = np.argsort(elements)
            elements, values = elements[order], np.concatenate([texts.values for texts in inner_texts])[order]
            rows = Rows(
                table=table,
                unit=table.units_of(elements),
                element=elements,
                value=values,
                text_columns=None,
                is_element=target == "element",
            )
        table.rows[key] = rows
    return table.rows[key]


def too_long(table: Table, target: str, tags: Collection[str]) -> Rows:
    """Return the nodes of a target whose texts are too long to be rows; their texts are unknown."""
    key = f"{target} too long", frozenset(tags)
    if key not in table.rows:
        elements = np.sort(
            np.concatenate(
                [table.inner_texts[text_key].too_long for text_key in _inner_text_keys(table, target, tags)]
            )
        )
        nothing = np.full(len(elements), NONE, np.int32)
        table.rows[key] = Rows(
            table=table, unit=table.units_of(elements), element=elements, value=nothing, text_columns=None
        )
    return table.rows[key]


def _inner_text_keys(table: Table, target: str, tags: Collection[str] | None) -> Collection[str]:
    """Return the keys of the inner texts that a target chooses from."""
    if target == "text":
        return ()
    if target != "element":
        return (target,)
    return [key for key in table.inner_texts if not key.startswith("@")] if tags is None else tags


def _last_positions(walked: Walked) -> Ints:
    """Return for each element "tag 1" if it is the last child of its parent with its tag, else NONE.

    Only the last child counts from the end: the others change their number whenever the list grows.
    """
    words, tags = walked.words, walked.elements[COLUMN["tag"]]
    parents = walked.parents.astype(np.int64)
    count = len(parents)
    if not count:
        return np.empty(0, np.int32)
    # The topmost elements of a unit share a parent outside the unit.
    units = np.searchsorted(walked.first_elements, np.arange(count), side="right")
    parents = np.where(parents == NONE, -units, parents)
    families = parents * len(words.texts) + tags
    # `unique` returns the first of several equal values, so it searches the reversed array.
    last_rows = count - 1 - np.unique(families[::-1], return_index=True)[1]
    positions = np.full(count, NONE, np.int32)
    last_tags, tag_numbers = np.unique(tags[last_rows], return_inverse=True)
    texts = [words.number(f"{words.texts[tag]} 1") for tag in last_tags.tolist()]
    positions[last_rows] = np.array(texts, np.int32)[tag_numbers]
    return positions


def _prefix(text: str) -> str:
    """Return the text up to its first colon, if the colon comes early."""
    colon = text.find(":", 0, _LONGEST_PREFIX)
    return text[: colon + 1] if colon > 0 else ""
