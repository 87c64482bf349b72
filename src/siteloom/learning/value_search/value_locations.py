"""Find where an example value stands on its page; the nearest text if it does not.

places = PlaceIndex(root)
    places.find("$12.99")
    places.at("/html[1]/body[1]/p[2]/text()[1]", "$12.99")
    places.nearest("$12.89")

A value may be a text, part of one, a run over several, or all or part of an
HTML attribute; which of its places is meant, a learner finds out by what is
the same over many examples.
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
"""So much of a text is compared; with the next, it bounds the time that is taken on any page."""

_POOL_CHARACTERS = 2_000_000
_LEAST_LIKENESS = 0.3


class NearTexts:
    """The texts of a page, each once, with the trigrams they are compared by."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: list[str] = []
        self._compared: list[str] = []
        self._trigram_counts: list[int] = []
        self._with_trigram: dict[str, list[int]] = {}
        known: set[str] = set()
        left = _POOL_CHARACTERS
        for text in texts:
            if text in known:
                continue
            if left < 0:
                break
            left -= len(text)
            known.add(text)
            folded = fold(text).casefold()
            trigrams = _trigrams(folded)
            for trigram in trigrams:
                self._with_trigram.setdefault(trigram, []).append(len(self._texts))
            self._texts.append(text)
            self._compared.append(folded)
            self._trigram_counts.append(len(trigrams))

    def nearest(self, value: str) -> str | None:
        """The one that is most like a value, which is not blank; None if nothing is alike."""
        wanted = fold(value).casefold()
        holding = [index for index, text in enumerate(self._compared) if wanted in text]
        if holding:
            return self._texts[min(holding, key=lambda index: (len(self._texts[index]), index))]
        trigrams = _trigrams(wanted)
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
    return {padded[at : at + 3] for at in range(len(padded) - 2)}


_NOTHING = re.compile(f"[ {UNSEEN}]*+")

# White space, so that no text in normal form has it.
_SEPARATOR = "\n"

# The attributes that hold values; the last three are how many sites draw a rating.
_ATTRIBUTES = frozenset(
    "alt aria-label content datetime href placeholder src title value class style width".split()
)

NODE = re.compile(
    r"(?P<path> (?: / (?: [A-Za-z_][\w.-]* | \* ) (?: \[\d{1,9}\] )? )+ )"
    r"(?: (?P<text> /text\(\) (?: \[(?P<number>\d{1,9})\] )? ) | /@(?P<attribute>[^/]+) )?",
    re.ASCII | re.VERBOSE,
)
"""The path of a node, as `Place.node` writes it: an element, and a text or an attribute of it."""

# A list page has "In stock" once for each of its records, and each asks for it.
_KEPT_PLACES = 100_000

_SENTENCE_END = re.compile(r"(?<=[.,:;!?|])\s")


@dataclass(frozen=True, slots=True)
class Place:
    """A spot on a page where a value stands: `whole[start:end]`.

    `target` says what `whole` is: the `number`-th text of the element ("text"),
    all the text that is seen inside the element ("element", with number 0), or
    one of its attributes ("@href", likewise). It is in normal form.
    """

    element: Element
    target: str
    number: int
    whole: str
    start: int
    end: int

    @property
    def is_whole(self) -> bool:
        """Whether the value is all that stands there."""
        return self.start == 0 and self.end == len(self.whole)

    @property
    def node(self) -> str:
        """The path of the very node: `/html[1]/body[1]/p[2]/text()[1]`, `.../a[1]/@href`, `.../p[2]`."""
        path = node_path(self.element)
        if self.target == "text":
            return f"{path}/text()[{self.number}]"
        return path if self.target == "element" else f"{path}/{self.target}"


class PlaceIndex:
    """The places of a page's values, for the root element of the page's tree.

    Made once for a page; the tree must not change as long as it is in use.
    """

    def __init__(self, root: Element) -> None:
        self._root = root
        self._elements: list[Element] = []
        self._numbers: dict[Element, int] = {}  # an element's place in `_elements`: document order
        self._parents: list[int] = []
        self._titles: dict[int, str] = {}  # the text of each title in the head, which text_nodes hides
        self._read_elements()
        self._title_texts = _Texts(self._titles.values())
        self._title_elements = list(self._titles)

        # Runs are looked for in the text of the whole page. It has all texts
        # one after another, with blanks between some of them.
        nodes, self._seen = nodes_and_visible_text(root)
        self._text_elements = [self._numbers[node.parent] for node in nodes]
        self._text_numbers = [node.number for node in nodes]
        self._texts = _Texts(normalize(node.text) for node in nodes)
        # Which texts an element has inside: from _firsts to _lasts.
        self._firsts = [len(nodes)] * len(self._elements)
        self._lasts = [-1] * len(self._elements)
        self._read_extents()

        self._folded, self._origins = folded_with_origins(self._seen)
        self._starts: list[int] = []
        end = 0
        for text in self._texts.wholes:
            start = end + self._seen.startswith(" ", end)
            self._starts.append(start)
            end = start + len(text)

        self._insides = dict(self._titles)
        self._found: dict[str, list[Place]] = {}
        self._kept = 0  # places in _found

        self._owners: list[tuple[int, str]] = []
        self._attributes = _Texts(self._read_attributes())

    def find(self, value: str) -> list[Place]:
        """Every place of a value, each once.

        A part of a text or an attribute begins and ends at the edges of words.
        Runs over several texts belong to the smallest element that has all of
        them; there are none in an element that also has the value in one text.

        Whole texts come first, then whole elements, parts of texts, whole
        attributes, parts of elements, parts of attributes; each kind in
        document order.
        """
        if value not in self._found:
            if self._kept > _KEPT_PLACES:
                self._found.clear()
                self._kept = 0
            found = (self._find(folded) for folded in readings(value))
            self._found[value] = next(filter(None, found), [])
            self._kept += len(self._found[value])
        return self._found[value].copy()

    def at(self, node: str, value: str) -> Place | None:
        """The place of a value in the node that a path names; None if it is not there.

        The path is one as `Place.node` gives. Of several places in one node it
        is the first; and as the node is certain, a part of a word will do where
        the value stands nowhere else in it.
        """
        parsed = NODE.fullmatch(node)
        element = None if parsed is None else find(self._root, parsed["path"])
        if parsed is None or element is None or element not in self._numbers:
            return None
        number = 0
        if parsed["attribute"]:
            target = "@" + parsed["attribute"]
            whole = normalize(element.get(parsed["attribute"]) or "")
        elif parsed["text"] and self._numbers[element] not in self._titles:
            target = "text"
            number = int(parsed["number"] or 1)
            index = self._text_indices.get((self._numbers[element], number))
            whole = "" if index is None else self._texts.wholes[index]
        else:
            target = "element"
            whole = self._text_inside(self._numbers[element])
        span = span_in(whole, value)
        return None if span is None else _place(element, target, number, whole, span)

    def nearest(self, value: str) -> str | None:
        """The text on the page that is most like a value; None if nothing is alike.

        It is meant for messages: case does not count, and a text that merely
        has the value inside is the nearest of all.
        """
        return self._near_texts.nearest(value) if fold(value) else None

    def _read_elements(self) -> None:
        """Number the elements; what is inside a script and the like stays out."""
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
            self._firsts[element] = min(self._firsts[element], text)
            self._lasts[element] = text
        for element in range(len(self._elements) - 1, 0, -1):  # children before parents
            parent = self._parents[element]
            self._firsts[parent] = min(self._firsts[parent], self._firsts[element])
            self._lasts[parent] = max(self._lasts[parent], self._lasts[element])

    def _read_attributes(self) -> Iterator[str]:
        for number, element in enumerate(self._elements):
            for name, value in element.items():
                if name in _ATTRIBUTES or name.startswith("data-"):
                    normal = normalize(value)
                    if normal:
                        self._owners.append((number, "@" + name))
                        yield normal

    def _find(self, folded: str) -> list[Place]:
        texts: list[Place] = []
        texts_with_it: list[int] = []
        for text, whole, span in self._texts.find(folded):
            element = self._elements[self._text_elements[text]]
            texts.append(_place(element, "text", self._text_numbers[text], whole, span))
            texts_with_it.append(text)

        runs = list(self._runs(folded, texts_with_it))
        for title, whole, span in self._title_texts.find(folded):
            number = self._title_elements[title]
            runs.append((number, _place(self._elements[number], "element", 0, whole, span)))
        runs.sort(key=lambda run: (run[0], run[1].start))
        elements = [place for _, place in runs]

        attributes: list[Place] = []
        for attribute, whole, span in self._attributes.find(folded):
            number, target = self._owners[attribute]
            attributes.append(_place(self._elements[number], target, 0, whole, span))

        return [
            *(place for place in texts if place.is_whole),
            *(place for place in elements if place.is_whole),
            *(place for place in texts if not place.is_whole),
            *(place for place in attributes if place.is_whole),
            *(place for place in elements if not place.is_whole),
            *(place for place in attributes if not place.is_whole),
        ]

    def _runs(self, folded: str, texts_with_it: list[int]) -> Iterator[tuple[int, Place]]:
        """The value over several texts: each place with the number of its element."""
        at = -1
        while (at := self._folded.find(folded, at + 1)) >= 0:
            start, end = span_of(self._seen, self._origins, at, at + len(folded))
            first = bisect_right(self._starts, start) - 1
            last = bisect_right(self._starts, end - 1, first) - 1
            if first == last:
                continue
            element = self._common_element(self._text_elements[first], self._text_elements[last])
            next_with_it = bisect_left(texts_with_it, self._firsts[element])
            if next_with_it < len(texts_with_it) and texts_with_it[next_with_it] <= self._lasts[element]:
                continue
            offset = self._starts[self._firsts[element]]
            span = (start - offset, end - offset)
            place = _place(self._elements[element], "element", 0, self._text_inside(element), span)
            # What begins with its element begins a word, even right after another element's text.
            if (place.start == 0 or is_edge(self._folded[at - 1], folded[0])) and (
                place.end == len(place.whole) or is_edge(folded[-1], self._folded[at + len(folded)])
            ):
                yield element, place

    def _common_element(self, left: int, right: int) -> int:
        """The smallest element with both inside; a parent's number is below its children's."""
        while left != right:
            if left < right:
                right = self._parents[right]
            else:
                left = self._parents[left]
        return left

    def _text_inside(self, element: int) -> str:
        """What `visible_text` gives for an element, or the text of a title."""
        known = self._insides.get(element)
        if known is not None:
            return known
        first, last = self._firsts[element], self._lasts[element]
        if first > last:
            return ""
        inside = self._seen[self._starts[first] : self._starts[last] + len(self._texts.wholes[last])]
        self._insides[element] = inside  # long ones are shared by all places in them
        return inside

    @cached_property
    def _text_indices(self) -> dict[tuple[int, int], int]:
        keys = zip(self._text_elements, self._text_numbers, strict=True)
        return {key: index for index, key in enumerate(keys)}

    @cached_property
    def _near_texts(self) -> NearTexts:
        return NearTexts(self._texts_to_compare())

    def _texts_to_compare(self) -> Iterator[str]:
        """Texts, sentences of longer ones, short runs over several texts, titles."""
        for text in self._texts.wholes:
            yield text
            yield from _SENTENCE_END.split(text)
        for element, (first, last) in enumerate(zip(self._firsts, self._lasts, strict=True)):
            if first < last:
                length = self._starts[last] + len(self._texts.wholes[last]) - self._starts[first]
                if length <= COMPARED_CHARACTERS:
                    yield self._text_inside(element)
        yield from self._titles.values()


class _Texts:
    """Many texts that are searched as one."""

    def __init__(self, wholes: Iterable[str]) -> None:
        self.wholes: list[str] = []
        self._starts: list[int] = []
        self._origins: dict[int, array[int]] = {}  # only of texts that folding made longer or shorter
        parts: list[str] = []
        length = 0
        for index, whole in enumerate(wholes):
            folded, origins = folded_with_origins(whole)
            if origins is not None:
                self._origins[index] = origins
            self.wholes.append(whole)
            self._starts.append(length)
            parts.append(folded)
            length += len(folded) + len(_SEPARATOR)
        self._joined = _SEPARATOR.join(parts)

    def find(self, folded: str) -> Iterator[tuple[int, str, tuple[int, int]]]:
        """Where a value stands between edges of words: which text, its whole, and the span there."""
        for at in occurrences(self._joined, folded):
            index = bisect_right(self._starts, at) - 1
            start = at - self._starts[index]
            whole = self.wholes[index]
            yield index, whole, span_of(whole, self._origins.get(index), start, start + len(folded))


def _place(element: Element, target: str, number: int, whole: str, span: tuple[int, int]) -> Place:
    """A place; a value with nothing but the unseen around it is the whole."""
    start, end = span
    if start and _NOTHING.fullmatch(whole, 0, start):
        start = 0
    if end < len(whole) and _NOTHING.fullmatch(whole, end):
        end = len(whole)
    return Place(element, target, number, whole, start, end)
