"""Find the locations of an example value on its page, or the most similar text if it has none.

    index = ValueIndex(root)
    index.find("$12.99")
    index.at("/html[1]/body[1]/p[2]/text()[1]", "$12.99")
    index.nearest("$12.89")

A value may be a text, part of one, a run over several, or all or part of an HTML attribute. The learner finds
the right location of a value by comparing many examples.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from lxml import etree

from siteloom.html.node_paths import find, node_path
from siteloom.html.visible_text import NOT_CONTENT, nodes_and_visible_text, normalize, visible_text
from siteloom.learning.value_search.text_equality import (
    UNSEEN,
    fold,
    folded_with_origins,
    is_edge,
    occurrences,
    readings,
    span_in,
    span_of,
)

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable, Iterator

    from siteloom.html.parser import Element


COMPARED_CHARACTERS = 200
"""Characters of a text that are compared; this and the next limit bound the time for any page."""

_POOL_CHARACTERS = 2_000_000
_LEAST_LIKENESS = 0.3


class SimilarTexts:
    """The distinct texts of a page, indexed by trigrams to find the most similar one."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: list[str] = []
        self._compared: list[str] = []
        self._trigram_counts: list[int] = []
        self._with_trigram: dict[str, list[int]] = {}
        distinct_texts: set[str] = set()
        remaining_characters = _POOL_CHARACTERS
        for text in texts:
            if text in distinct_texts:
                continue
            if remaining_characters < 0:
                break
            remaining_characters -= len(text)
            distinct_texts.add(text)
            folded = fold(text).casefold()
            trigrams = _trigrams(folded)
            for trigram in trigrams:
                self._with_trigram.setdefault(trigram, []).append(len(self._texts))
            self._texts.append(text)
            self._compared.append(folded)
            self._trigram_counts.append(len(trigrams))

    def nearest(self, value: str) -> str | None:
        """Return the text most similar to a non-blank value; None if no text is similar."""
        folded_value = fold(value).casefold()
        containing = [index for index, text in enumerate(self._compared) if folded_value in text]
        if containing:
            return self._texts[min(containing, key=lambda index: (len(self._texts[index]), index))]
        trigrams = _trigrams(folded_value)
        common: Counter[int] = Counter()
        for trigram in trigrams:
            common.update(self._with_trigram.get(trigram, ()))
        likeness = {
            index: 2 * count / (len(trigrams) + self._trigram_counts[index])
            for index, count in common.items()
        }
        best = max(likeness, key=lambda index: (likeness[index], -index), default=None)
        return None if best is None or likeness[best] < _LEAST_LIKENESS else self._texts[best]


def _trigrams(text: str) -> set[str]:
    padded = f" {text[:COMPARED_CHARACTERS]} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)}


_INVISIBLE = re.compile(f"[ {UNSEEN}]*+")

# A newline, which no text in normal form contains.
_SEPARATOR = "\n"

# The attributes that hold values; many sites draw ratings with the last three.
_ATTRIBUTES = frozenset(
    "alt aria-label content datetime href placeholder src title value class style width".split()
)

NODE = re.compile(
    r"(?P<path> (?: / (?: [A-Za-z_][\w.-]* | \* ) (?: \[\d{1,9}\] )? )+ )"
    r"(?: (?P<text> /text\(\) (?: \[(?P<number>\d{1,9})\] )? ) | /@(?P<attribute>[^/]+) )?",
    re.ASCII | re.VERBOSE,
)
"""The path of a node as in `ValueLocation.node`: an element, and a text or an attribute of it."""

# A list page may have "In stock" once for each record, and each record searches for it.
_MAX_CACHED_LOCATIONS = 100_000

_SENTENCE_END = re.compile(r"(?<=[.,:;!?|])\s")


@dataclass(frozen=True, slots=True)
class ValueLocation:
    """A location of a value on a page: `text[start:end]`.

    `target` says what `text` is: the `number`-th text of the element ("text"), all visible text inside the
    element ("element", with number 0), or one of its attributes ("@href", also with number 0). The text is in
    normal form.
    """

    element: Element
    target: str
    number: int
    text: str
    start: int
    end: int

    @property
    def is_whole(self) -> bool:
        """Whether the value is the whole text."""
        return self.start == 0 and self.end == len(self.text)

    @property
    def node(self) -> str:
        """The path of the exact node: `/html[1]/body[1]/p[2]/text()[1]`, `.../a[1]/@href`, `.../p[2]`."""
        path = node_path(self.element)
        if self.target == "text":
            return f"{path}/text()[{self.number}]"
        return path if self.target == "element" else f"{path}/{self.target}"


class ValueIndex:
    """An index of the locations of values on a page, built from the root of its tree.

    The tree must not change while the index is in use.
    """

    def __init__(self, root: Element) -> None:
        self._root = root
        self._elements: list[Element] = []
        self._numbers: dict[Element, int] = {}  # the index in `_elements`, in document order
        self._parents: list[int] = []
        self._titles: dict[int, str] = {}  # the text of each title in the head, which text_nodes hides
        self._read_elements()
        self._title_texts = _Texts(self._titles.values())
        self._title_elements = list(self._titles)

        # Runs over several texts are searched in the text of the whole page, which has all texts in sequence
        # with blanks between some of them.
        nodes, self._visible_text = nodes_and_visible_text(root)
        self._text_elements = [self._numbers[node.parent] for node in nodes]
        self._text_numbers = [node.number for node in nodes]
        self._texts = _Texts(normalize(node.text) for node in nodes)
        # The texts inside each element: from _first_texts to _last_texts.
        self._first_texts = [len(nodes)] * len(self._elements)
        self._last_texts = [-1] * len(self._elements)
        self._read_extents()

        self._folded, self._origins = folded_with_origins(self._visible_text)
        self._starts: list[int] = []
        end = 0
        for text in self._texts.texts:
            start = end + self._visible_text.startswith(" ", end)
            self._starts.append(start)
            end = start + len(text)

        self._inner_texts = dict(self._titles)
        self._cache: dict[str, list[ValueLocation]] = {}
        self._cached_count = 0  # places in _found

        self._owners: list[tuple[int, str]] = []
        self._attributes = _Texts(self._read_attributes())

    def find(self, value: str) -> list[ValueLocation]:
        """Return all distinct locations of a value.

        A part of a text or an attribute begins and ends at word boundaries. A run over several texts belongs
        to the smallest element that contains it; elements that have the value in one text have no runs.

        Whole texts come first, then whole elements, parts of texts, whole attributes, parts of elements, and
        parts of attributes; each kind is in document order.
        """
        if value not in self._cache:
            if self._cached_count > _MAX_CACHED_LOCATIONS:
                self._cache.clear()
                self._cached_count = 0
            matches = (self._find(folded) for folded in readings(value))
            self._cache[value] = next(filter(None, matches), [])
            self._cached_count += len(self._cache[value])
        return self._cache[value].copy()

    def at(self, node: str, value: str) -> ValueLocation | None:
        """Return the first location of a value in the node with this path; None if it is not there.

        The path has the form of `ValueLocation.node`. Because the node is certain, the value may be part of a
        word if it is nowhere else in the node.
        """
        parsed = NODE.fullmatch(node)
        element = None if parsed is None else find(self._root, parsed["path"])
        if parsed is None or element is None or element not in self._numbers:
            return None
        number = 0
        if parsed["attribute"]:
            target = "@" + parsed["attribute"]
            inner_text = normalize(element.get(parsed["attribute"]) or "")
        elif parsed["text"] and self._numbers[element] not in self._titles:
            target = "text"
            number = int(parsed["number"] or 1)
            index = self._text_indices.get((self._numbers[element], number))
            inner_text = "" if index is None else self._texts.texts[index]
        else:
            target = "element"
            inner_text = self._text_inside(self._numbers[element])
        span = span_in(inner_text, value)
        return (
            None
            if span is None
            else _value_location(element=element, target=target, number=number, text=inner_text, span=span)
        )

    def nearest(self, value: str) -> str | None:
        """Return the text on the page that is most similar to a value; None if no text is similar.

        It is meant for messages: case does not count, and a text that contains the value is the nearest.
        """
        return self._near_texts.nearest(value) if fold(value) else None

    def _read_elements(self) -> None:
        """Number the elements, except those inside scripts and other elements without content."""
        for element in self._root.iter(etree.Element):
            parent = element.getparent()
            above = -1 if parent is None or element is self._root else self._numbers.get(parent)
            if above is None or (element.tag in NOT_CONTENT and above >= 0):
                continue
            number = len(self._elements)
            self._elements.append(element)
            self._numbers[element] = number
            self._parents.append(above)
            if element.tag == "title" and parent is not None and parent.tag == "head":
                text = visible_text(element)
                if text:
                    self._titles[number] = text

    def _read_extents(self) -> None:
        for text, element in enumerate(self._text_elements):
            self._first_texts[element] = min(self._first_texts[element], text)
            self._last_texts[element] = text
        for element in range(len(self._elements) - 1, 0, -1):  # children before parents
            parent = self._parents[element]
            self._first_texts[parent] = min(self._first_texts[parent], self._first_texts[element])
            self._last_texts[parent] = max(self._last_texts[parent], self._last_texts[element])

    def _read_attributes(self) -> Iterator[str]:
        for number, element in enumerate(self._elements):
            for name, value in element.items():
                if name in _ATTRIBUTES or name.startswith("data-"):
                    normal = normalize(value)
                    if normal:
                        self._owners.append((number, "@" + name))
                        yield normal

    def _find(self, folded: str) -> list[ValueLocation]:
        texts: list[ValueLocation] = []
        texts_with_it: list[int] = []
        for text, whole, span in self._texts.find(folded):
            element = self._elements[self._text_elements[text]]
            texts.append(
                _value_location(
                    element=element, target="text", number=self._text_numbers[text], text=whole, span=span
                )
            )
            texts_with_it.append(text)

        runs = list(self._runs(folded, texts_with_it))
        for title, whole, span in self._title_texts.find(folded):
            number = self._title_elements[title]
            runs.append(
                (
                    number,
                    _value_location(
                        element=self._elements[number], target="element", number=0, text=whole, span=span
                    ),
                )
            )
        runs.sort(key=lambda run: (run[0], run[1].start))
        elements = [location for _, location in runs]

        attributes: list[ValueLocation] = []
        for attribute, whole, span in self._attributes.find(folded):
            number, target = self._owners[attribute]
            attributes.append(
                _value_location(
                    element=self._elements[number], target=target, number=0, text=whole, span=span
                )
            )

        return [
            *(location for location in texts if location.is_whole),
            *(location for location in elements if location.is_whole),
            *(location for location in texts if not location.is_whole),
            *(location for location in attributes if location.is_whole),
            *(location for location in elements if not location.is_whole),
            *(location for location in attributes if not location.is_whole),
        ]

    def _runs(self, folded: str, texts_with_it: list[int]) -> Iterator[tuple[int, ValueLocation]]:
        """Yield the locations of a value that spans several texts, with the number of the element."""
        at = -1
        while (at := self._folded.find(folded, at + 1)) >= 0:
            start, end = span_of(self._visible_text, self._origins, at, at + len(folded))
            first_text = bisect_right(self._starts, start) - 1
            last_text = bisect_right(self._starts, end - 1, first_text) - 1
            if first_text == last_text:
                continue
            element = self._common_element(self._text_elements[first_text], self._text_elements[last_text])
            next_with_it = bisect_left(texts_with_it, self._first_texts[element])
            if next_with_it < len(texts_with_it) and texts_with_it[next_with_it] <= self._last_texts[element]:
                continue
            element_offset = self._starts[self._first_texts[element]]
            span = (start - element_offset, end - element_offset)
            location = _value_location(
                element=self._elements[element],
                target="element",
                number=0,
                text=self._text_inside(element),
                span=span,
            )
            # An element boundary is a word boundary, even right after another element's text.
            if (location.start == 0 or is_edge(self._folded[at - 1], folded[0])) and (
                location.end == len(location.text) or is_edge(folded[-1], self._folded[at + len(folded)])
            ):
                yield element, location

    def _common_element(self, element: int, other_element: int) -> int:
        """Return the smallest element that contains both; a parent has a lower number than its children."""
        while element != other_element:
            if element < other_element:
                other_element = self._parents[other_element]
            else:
                element = self._parents[element]
        return element

    def _text_inside(self, element: int) -> str:
        """Return the visible text of an element, or the text of a title."""
        cached = self._inner_texts.get(element)
        if cached is not None:
            return cached
        first_text, last_text = self._first_texts[element], self._last_texts[element]
        if first_text > last_text:
            return ""
        inner_text = self._visible_text[
            self._starts[first_text] : self._starts[last_text] + len(self._texts.texts[last_text])
        ]
        self._inner_texts[element] = inner_text  # locations in one element share its text
        return inner_text

    @cached_property
    def _text_indices(self) -> dict[tuple[int, int], int]:
        keys = zip(self._text_elements, self._text_numbers, strict=True)
        return {key: index for index, key in enumerate(keys)}

    @cached_property
    def _near_texts(self) -> SimilarTexts:
        return SimilarTexts(self._texts_to_compare())

    def _texts_to_compare(self) -> Iterator[str]:
        """Yield texts, their sentences, short runs over several texts, and titles."""
        for text in self._texts.texts:
            yield text
            yield from _SENTENCE_END.split(text)
        for element, (first_text, last_text) in enumerate(
            zip(self._first_texts, self._last_texts, strict=True)
        ):
            if first_text < last_text:
                length = (
                    self._starts[last_text] + len(self._texts.texts[last_text]) - self._starts[first_text]
                )
                if length <= COMPARED_CHARACTERS:
                    yield self._text_inside(element)
        yield from self._titles.values()


class _Texts:
    """Many texts, joined to be searched as one."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts: list[str] = []
        self._starts: list[int] = []
        self._origins: dict[int, array[int]] = {}  # only of texts that folding made longer or shorter
        folded_texts: list[str] = []
        length = 0
        for index, text in enumerate(texts):
            folded, origins = folded_with_origins(text)
            if origins is not None:
                self._origins[index] = origins
            self.texts.append(text)
            self._starts.append(length)
            folded_texts.append(folded)
            length += len(folded) + len(_SEPARATOR)
        self._joined = _SEPARATOR.join(folded_texts)

    def find(self, folded: str) -> Iterator[tuple[int, str, tuple[int, int]]]:
        """Yield occurrences of a value between word boundaries: the text's index, the text, and the span."""
        for offset in occurrences(self._joined, folded):
            index = bisect_right(self._starts, offset) - 1
            start = offset - self._starts[index]
            text = self.texts[index]
            yield index, text, span_of(text, self._origins.get(index), start, start + len(folded))


def _value_location(
    element: Element, target: str, number: int, text: str, span: tuple[int, int]
) -> ValueLocation:
    """Build a location; a value with only invisible characters around it spans the whole text."""
    start, end = span
    if start and _INVISIBLE.fullmatch(text, 0, start):
        start = 0
    if end < len(text) and _INVISIBLE.fullmatch(text, end):
        end = len(text)
    return ValueLocation(element=element, target=target, number=number, text=text, start=start, end=end)
