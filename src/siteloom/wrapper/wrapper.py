"""A wrapper: all rules of one template, and how they turn a page into records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from siteloom.dom import PARSER, node_path, parse
from siteloom.errors import MissingExtra, UnreadablePage
from siteloom.model import Failure, Footprint, Provenance, Record
from siteloom.typed import typed_value
from siteloom.wrapper.confidence import confidence, signs
from siteloom.wrapper.explain import explain
from siteloom.wrapper.format import from_json, to_json
from siteloom.wrapper.language import shape
from siteloom.wrapper.parts import part_values
from siteloom.wrapper.scoring import chosen
from siteloom.wrapper.selection import occurrences, records, select, select_in, triggers
from siteloom.wrapper.xpath import rule_xpath
from siteloom.wrapper.xslt import to_xslt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from siteloom.dom import Element
    from siteloom.model import Page
    from siteloom.wrapper.language import AttributeRules, RecordRule, Rule
    from siteloom.wrapper.selection import Node, Scope, Triggers


class _Region(NamedTuple):
    """What is searched: how the nodes that a rule means are selected, on a page or in a record of it."""

    select: Callable[[Rule], list[Node]]
    record: Scope | None


class _Value(NamedTuple):
    """A value that was found, by which rule, and where."""

    text: str
    rule: Rule
    node: Node


@dataclass(frozen=True)
class Wrapper:
    """All rules of one template.

    `labels` are texts of the template that name values and never are values.
    With `record_rule` the pages are lists, and each record is searched by itself. The
    `footprint` tells which pages it is for.
    """

    attributes: Mapping[str, AttributeRules]
    labels: frozenset[str] = frozenset()
    record_rule: RecordRule | None = None
    parser: str = PARSER
    footprint: Footprint = Footprint()

    def extract(self, page: Page) -> Record:
        """The record of a page; of a list page the first one."""
        found = self.extract_all(page)
        return found[0] if found else Record(page.url, {}, {}, {})

    def extract_all(self, page: Page) -> tuple[Record, ...]:
        """All records of a page: one, or as many as a list page has."""
        root = parse(page)
        if isinstance(root, Failure):
            raise UnreadablePage(root.url, root.reason)
        return tuple(self.records(root, page.url))

    def records(self, root: Element, url: str) -> Iterator[Record]:
        """The records of a page that is parsed already."""
        if self.record_rule is None:
            yield self.record_of(root, url, None)
            return
        for scope in records(self.record_rule, root):
            found = self.record_of(root, url, scope)
            if len(found.values) >= self.record_rule.least:
                yield found

    def record_of(self, root: Element, url: str, scope: Scope | None) -> Record:
        """The record of a whole page, or of one part of a list page."""
        if scope is not None:
            return self._record(url, _Region(lambda rule: select_in(rule, scope), scope))
        occurring = occurrences(root, self._triggers)
        found = self._triggers.features
        return self._record(url, _Region(lambda rule: select(rule, found[rule], occurring), None))

    def explain(self) -> str:
        """In plain words, how each attribute is found and why so."""
        return explain(self)

    def to_json(self) -> str:
        """The wrapper as text that can be kept and reviewed."""
        return to_json(self)

    @staticmethod
    def from_json(text: str) -> Wrapper:
        """A wrapper from its text."""
        return Wrapper(**from_json(text))

    def to_xslt(self) -> str:
        """An XSLT 1.0 stylesheet that gives the same values."""
        return to_xslt(self)

    @cached_property
    def _triggers(self) -> Triggers:
        return triggers(rule for found in self.attributes.values() for rule in (*found.rules, *found.voters))

    @cached_property
    def _xpaths(self) -> dict[Rule, str]:
        return {
            rule: rule_xpath(rule, within_record=self.record_rule is not None)
            for found in self.attributes.values()
            for rule in (*found.rules, *found.voters)
        }

    def _record(self, url: str, region: _Region) -> Record:
        values: dict[str, tuple[str, ...]] = {}
        typed: dict[str, tuple[object, ...]] = {}
        provenance: dict[str, tuple[Provenance, ...]] = {}
        for name, rules in self.attributes.items():
            votes = [self._found(rules, voter, region) for voter in rules.voters]
            found = self._values(rules, votes, region)
            if not found:
                continue
            values[name] = tuple(value.text for value in found)
            provenance[name] = tuple(
                self._provenance(name, rules, value, votes, is_one_of_several=len(found) > 1)
                for value in found
            )
            if (types := _typed(found, rules, url)) is not None:
                typed[name] = types
        return Record(url, values, typed, provenance)

    def _values(self, attribute: AttributeRules, votes: list[list[_Value]], region: _Region) -> list[_Value]:
        """The values of an attribute: of all rules, each once; or one, of the first rule that finds any."""
        if attribute.attribute.multi:
            united = (value for rule in attribute.rules for value in self._found(attribute, rule, region))
            by_text: dict[str, _Value] = {}
            for value in united:
                by_text.setdefault(value.text, value)
            return list(by_text.values())
        for rule in attribute.rules:
            if found := self._found(attribute, rule, region):
                return found[:1]
        if attribute.do_voters_step_in and all(votes) and len({vote[0].text for vote in votes}) == 1:
            return votes[0][:1]
        return []

    def _found(self, attribute: AttributeRules, rule: Rule, region: _Region) -> list[_Value]:
        """What one rule finds; a scorer chooses only among nodes that hold values."""
        nodes = region.select(rule)
        if rule.scorer is not None:
            candidates = (node for node in nodes if self._texts(attribute, rule, node))
            nodes = chosen(rule.scorer, candidates, region.record)
        return [_Value(text, rule, node) for node in nodes for text in self._texts(attribute, rule, node)]

    def _texts(self, attribute: AttributeRules, rule: Rule, node: Node) -> list[str]:
        """The values that a node holds."""
        if node.text in self.labels:
            return []
        return [text for text in part_values(rule.part, node.text) if shape(text) in attribute.shapes]

    def _provenance(
        self,
        name: str,
        attribute: AttributeRules,
        value: _Value,
        votes: list[list[_Value]],
        *,
        is_one_of_several: bool,
    ) -> Provenance:
        number = (*attribute.rules, *attribute.voters).index(value.rule)
        agreeing = sum(value.text in {other.text for other in vote} for vote in votes)
        agreeing -= number >= len(attribute.rules)  # a voter is no witness for itself
        # Voters look for what the first rule finds: that others find further values is no wonder.
        is_expected = number == 0 or not attribute.attribute.multi
        return Provenance(
            rule=f"{name}#{number + 1}",
            xpath=self._xpaths[value.rule],
            node=_path(value.node, value.rule.target),
            confidence=confidence(
                signs(
                    value.rule,
                    is_one_of_several=is_one_of_several,
                    agreeing=agreeing,
                    disagreeing=len(votes) - agreeing if is_expected else 0,
                    voters=len(votes),
                )
            ),
        )


def _path(node: Node, target: str) -> str:
    path = node_path(node.element)
    if node.spot is not None:
        return f"{path}/text()[{node.spot.number}]"
    return path if target == "element" else f"{path}/{target}"


def _typed(found: list[_Value], rules: AttributeRules, url: str) -> tuple[object, ...] | None:
    """The values as their type, or None if none of them can be read as it."""
    kind = rules.attribute.type
    if kind is None or kind == "text":
        return None
    try:
        types = tuple(
            typed_value(
                value.text,
                kind,
                base_url=url,
                html_attributes={str(name): str(text) for name, text in value.node.element.attrib.items()},
                day_first=rules.day_first,
            )
            for value in found
        )
    except MissingExtra:
        return None  # the texts are there all the same; `siteloom doctor` names the extra
    return None if all(value is None for value in types) else types
