"""Values shown: the tree of an archived page with highlighted values and words."""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from siteloom.apps.server.views.sites import NextStep
from siteloom.core.errors import UsageError
from siteloom.extraction.search_query import parse_query, places_in
from siteloom.html.node_paths import elements_in_order
from siteloom.html.visible_text import normalize, text_nodes
from siteloom.learning.annotation.clicked_nodes import Pick, pick_of, pick_of_node
from siteloom.learning.value_search.value_locations import ValueIndex
from siteloom.wrappers.explanation import named_rule_words
from siteloom.wrappers.rule_evaluation import records as record_scopes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.core.model import Record
    from siteloom.html.parser import Element
    from siteloom.wrappers.wrapper import Wrapper


class ReadVersion(BaseModel):
    """A version of a page in the archive."""

    version: str = Field(description="By what it is asked for.")
    last_seen_at: datetime = Field(description="When this content was last met.")
    bytes: int


class ReadValue(BaseModel):
    """A value, and where it comes from."""

    attribute: str
    text: str
    confidence: float = Field(description="The estimated probability that the value is right.")
    rule: str = Field(description="The name of the rule in its wrapper.")
    words: str = Field(description="What the rule takes, in plain words.")
    xpath: str = Field(description="The rule as XPath.")
    node: str = Field(description="The path of the very node.")
    pick: Pick | None = Field(description="Where it stands in the tree of the page, if it can be shown.")


class WithheldText(BaseModel):
    """A text that stood where a value was looked for, but is none."""

    attribute: str
    text: str
    reason: str
    node: str
    pick: Pick | None


class ReadRecord(BaseModel):
    """A record of the page, with the numbers of the topmost elements it takes up, if it is one of a list."""

    number: int
    values: list[ReadValue]
    withheld: list[WithheldText]
    elements: list[int]


class ConsideredWrapper(BaseModel):
    """How a wrapper did for the page."""

    wrapper: str
    version: int | None
    rank: int
    verdict: str
    url_pattern: str | None
    mask: str | None
    mask_pages: int
    is_accepted: bool = Field(description="Whether a page of the wrapper had the very same signature.")
    agreement: int = Field(description="How many of 8 bytes agree with the nearest signature it knows.")


class NoRecord(BaseModel):
    """Why the page gives no record, and what to do about it."""

    reason: str
    detail: str
    sentence: str
    next_step: NextStep | None


class LitNode(BaseModel):
    """A node that was asked to be lit; without a pick, it is not on this version of the page."""

    node: str
    pick: Pick | None


class PageReading(BaseModel):
    """An archived page with what is known of it."""

    page: int
    url: str
    site: str
    title: str
    version: str = Field(description="The version that is read.")
    versions: list[ReadVersion] = Field(description="The newest first; of a page with very many, some.")
    template: str | None = Field(description="The cluster that the page is in.")
    wrapper: str | None = Field(description="The wrapper that was used.")
    wrapper_version: int | None
    is_asked_for: bool = Field(description="Whether the wrapper was asked for, not found by the page.")
    why: str = Field(description="Why this wrapper, or why none.")
    considered: list[ConsideredWrapper]
    attributes: list[str] = Field(description="Those of the wrapper, in its order.")
    records: list[ReadRecord]
    record: int | None = Field(description="The number of the record that was asked for, if there is one.")
    failure: NoRecord | None
    is_readable: bool = Field(description="Whether the page can be parsed, and so be shown.")
    nodes: list[LitNode]
    words: list[Pick] = Field(description="Where the words stand that were asked for; up to 500 places.")


class LitText(BaseModel):
    """A text, and where it stands."""

    text: str
    pick: Pick


class ChangedAttribute(BaseModel):
    """The values of an attribute on two versions of a page."""

    attribute: str
    before: list[ReadValue]
    after: list[ReadValue]
    is_changed: bool
    unfound: list[LitText] = Field(
        description="Values of before that are not found any more, although they still stand on the page."
    )


class PageChanges(BaseModel):
    """A page before and after: two versions, or one by two wrappers."""

    before: PageReading
    after: PageReading
    attributes: list[ChangedAttribute] = Field(description="Those that differ first.")


# Of text in which words are looked for: a second's worth, and more than any page that people read has.
_MOST_CHARACTERS = 2_000_000
# Those beyond are not lit: nobody walks through more.
_MOST_PLACES = 500


class ShownTree:
    """The tree of a page, whose elements are known by their numbers."""

    def __init__(self, root: Element) -> None:
        self._root = root
        self._elements = elements_in_order(root)
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
    def _places(self) -> ValueIndex:
        return ValueIndex(self._root)

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
