"""The tree of a page that is shown: where values, nodes and words stand in it."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from siteloom.annotating.picks import Pick, numbered, pick_of, pick_of_node
from siteloom.dom import normalize, text_nodes
from siteloom.errors import UsageError
from siteloom.learning.places import PlaceIndex
from siteloom.search.highlights import places_in
from siteloom.search.queries import parse_query
from siteloom.server.archive.views import LitNode, LitText, ReadRecord, ReadValue, WithheldText
from siteloom.wrapper.explain import named_rule_words
from siteloom.wrapper.selection import records as record_scopes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.dom import Element
    from siteloom.model import Record
    from siteloom.wrapper import Wrapper

# Of text in which words are looked for: a second's worth, and more than any page that people read has.
_MOST_CHARACTERS = 2_000_000
# Those beyond are not lit: nobody walks through more.
_MOST_PLACES = 500


class ShownTree:
    """The tree of a page, whose elements are known by their numbers."""

    def __init__(self, root: Element) -> None:
        self._root = root
        self._elements = numbered(root)
        self._numbers: Mapping[Element, int] = {
            element: number for number, element in enumerate(self._elements)
        }

    @property
    def title(self) -> str:
        """What the page calls itself."""
        title = self._root.find("head/title")
        return "" if title is None else normalize("".join(title.itertext(with_tail=False)))

    def records(self, wrapper: Wrapper, records: Sequence[Record]) -> list[ReadRecord]:
        """The records of the page, with where their values stand."""
        tops = self._record_tops(wrapper)
        rules = {
            origin.rule for record in records for found in record.provenance.values() for origin in found
        }
        words = {rule: named_rule_words(wrapper, rule) for rule in rules}
        readings = []
        for number, record in enumerate(records):
            values = [
                ReadValue(
                    attribute=name,
                    text=text,
                    confidence=origin.confidence,
                    rule=origin.rule,
                    words=words[origin.rule],
                    xpath=origin.xpath,
                    node=origin.node,
                    pick=self._pick(origin.node, text),
                )
                for name, texts in record.values.items()
                for text, origin in zip(texts, record.provenance[name], strict=True)
            ]
            withheld = [
                WithheldText(
                    attribute=name,
                    text=one.text,
                    reason=one.reason,
                    node=one.node,
                    pick=self._pick(one.node, one.text),
                )
                for name, texts in record.withheld.items()
                for one in texts
            ]
            around = self._around([*values, *withheld], tops)
            readings.append(ReadRecord(number=number, values=values, withheld=withheld, elements=around))
        return readings

    def node(self, node: str) -> LitNode:
        """A node that is asked to be lit."""
        return LitNode(node=node, pick=pick_of_node(self._elements, self._numbers, node))

    def texts(self, texts: Iterable[str]) -> list[LitText]:
        """Where texts most likely stand on the page, those that do."""
        places = ((text, next(iter(self._places.find(text)), None)) for text in texts)
        picks = ((text, self._pick(place.node, text)) for text, place in places if place is not None)
        return [LitText(text=text, pick=pick) for text, pick in picks if pick is not None]

    @cached_property
    def _places(self) -> PlaceIndex:
        return PlaceIndex(self._root)

    def words(self, words: str) -> list[Pick]:
        """Where words stand on the page, as search knows them.

        A word that markup cuts in two is not found.
        """
        try:
            phrases = parse_query(words).wanted if words else ()
        except UsageError:  # nothing in it is a word
            phrases = ()
        if not phrases:
            return []
        nodes = list(text_nodes(self._root))
        starts = list(accumulate((len(node.text) + 1 for node in nodes), initial=0))
        text = " ".join(node.text for node in nodes)[:_MOST_CHARACTERS]
        picks = []
        for start, end in places_in(text, phrases)[:_MOST_PLACES]:
            for number in range(bisect_right(starts, start) - 1, bisect_right(starts, end - 1)):
                parent, place, whole = nodes[number]
                within = whole[: max(0, start - starts[number])], whole[: end - starts[number]]
                from_, to = (len(part.encode("utf-16-le", "surrogatepass")) // 2 for part in within)
                if from_ < to:
                    picks.append(Pick(self._numbers[parent], place, None, from_, to))
        return picks

    def _pick(self, node: str, text: str) -> Pick | None:
        return pick_of(self._elements, self._numbers, node, text)

    def _record_tops(self, wrapper: Wrapper) -> dict[int, list[int]]:
        """The numbers of the topmost elements of each record of a list page, by each of these."""
        tops: dict[int, list[int]] = {}
        for layout in wrapper.layouts:
            scopes = [] if layout.record_rule is None else record_scopes(layout.record_rule, self._root)
            for scope in scopes:
                numbers = [self._numbers[top] for top in scope.tops]
                for number in numbers:
                    tops.setdefault(number, numbers)
        return tops

    def _around(self, found: Iterable[ReadValue | WithheldText], tops: Mapping[int, list[int]]) -> list[int]:
        """The topmost elements of the record that a value stands in."""
        pick = next((one.pick for one in found if one.pick is not None), None) if tops else None
        element = None if pick is None else self._elements[pick.element]
        while element is not None:
            if (number := self._numbers[element]) in tops:
                return tops[number]
            element = element.getparent()
        return []
