"""A wrapper: all rules of one template, which extract records from a page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from siteloom.core.errors import MissingExtra, TooMuchFound, UnreadablePage
from siteloom.core.model import Failure, Footprint, Page, Provenance, Record, Withheld
from siteloom.core.settings import ParseSettings
from siteloom.core.values import typed_value
from siteloom.html.guards import bounded
from siteloom.html.node_paths import NodePaths
from siteloom.html.parser import PARSER, Element, parse
from siteloom.html.time_limit import within
from siteloom.templates.signature import Signatures, signature
from siteloom.wrappers.explanation import explain
from siteloom.wrappers.feature_index import occurrences, triggers
from siteloom.wrappers.page_layouts import likely_layouts, most_alike
from siteloom.wrappers.rule_evaluation import Node, Scope, records, select, select_in
from siteloom.wrappers.rule_features import AttributeRules, RecordRule, Rule, shape
from siteloom.wrappers.rule_xpath import rule_xpath
from siteloom.wrappers.value_contract import confidence, signs
from siteloom.wrappers.value_from_node import chosen, part_values
from siteloom.wrappers.wrapper_json import from_json, to_json
from siteloom.wrappers.wrapper_xslt import to_xslt

if TYPE_CHECKING:
    from siteloom.wrappers.feature_index import Search, Triggers

KnownNodes: TypeAlias = Callable[[Rule, Element, Scope | None], list[Node] | None]


class _PreparedRule(NamedTuple):
    """A rule with everything needed to apply it."""

    rule: Rule
    name: str
    xpath: str
    search: Search
    is_first_rule: bool
    is_voter: bool


class _Region(NamedTuple):
    """A page or a record on it, with the function that selects the nodes of a rule there."""

    select: Callable[[_PreparedRule], list[Node]]
    record: Scope | None
    paths: NodePaths


class ReadPage(NamedTuple):
    """A parsed page and the records that a wrapper extracted from it."""

    root: Element
    records: tuple[Record, ...]


class _Value(NamedTuple):
    """A candidate value, with the rule that selected it and its node."""

    text: str
    origin: _PreparedRule
    node: Node


@dataclass(frozen=True)
class Wrapper:
    """All rules of one template.

    `labels` are texts of the template that name values and never are values.
    With `record_rule`, pages are lists, and each record is searched separately. The `footprint` says which
    pages the wrapper is for. `earlier` are wrappers of previous layouts of the template, newest first, so
    that pages a site still serves in an old layout are extracted correctly as well. A page that cannot be
    read raises `UnreadablePage`.
    """

    attributes: Mapping[str, AttributeRules]
    labels: frozenset[str] = frozenset()
    record_rule: RecordRule | None = None
    parser: str = PARSER
    footprint: Footprint = Footprint()
    earlier: tuple[Wrapper, ...] = ()

    def extract(self, page: Page, *, limits: ParseSettings = ParseSettings()) -> Record:
        """Extract the record of a page; of a list page, the first one."""
        page_records = self.extract_all(page, limits=limits)
        return page_records[0] if page_records else Record(page.url, {}, {}, {})

    def extract_all(self, page: Page, *, limits: ParseSettings = ParseSettings()) -> tuple[Record, ...]:
        """Extract all records of a page: one, or several from a list page."""
        result = self.read(page, limits=limits)
        if isinstance(result, Failure):
            raise UnreadablePage(result.url, result.reason)
        return result.records

    def read(self, page: Page, *, limits: ParseSettings = ParseSettings()) -> ReadPage | Failure:
        """Parse a page and extract its records, or return why that failed."""

        def read() -> ReadPage | Failure:
            root = parse(page, limits, collect_ids=self.looks_for_ids)
            if isinstance(root, Failure):
                return root
            try:
                return ReadPage(root, self.records_of(page, root, limits))
            except TooMuchFound as error:
                return Failure(page.url, error.reason, error.detail)

        return within(limits.max_seconds, page.url, read)

    def records_of(
        self, page: Page, root: Element, limits: ParseSettings = ParseSettings()
    ) -> tuple[Record, ...]:
        """Extract all records of a parsed page; raises TooMuchFound if they exceed the limits."""
        return tuple(self.records(root, page.url, signature(page.html) if self.earlier else None, limits))

    def records(
        self,
        root: Element,
        url: str,
        page_signature: bytes | None = None,
        limits: ParseSettings = ParseSettings(),
    ) -> Iterator[Record]:
        """Extract all records from a tree; the page's signature helps to choose between layouts."""
        if self.earlier:
            yield from self._records_by_layout(root, url, page_signature, limits)
            return
        scopes = [None] if self.record_rule is None else records(self.record_rule, root)
        yield from bounded(self.records_in(root, url, scopes), limits)

    def records_in(
        self, root: Element, url: str, scopes: Iterable[Scope | None], known_nodes: KnownNodes | None = None
    ) -> Iterator[Record]:
        """Extract the records of a whole page, or of the given parts of a list page."""
        minimum = 0 if self.record_rule is None else self.record_rule.least
        paths = NodePaths()
        for scope in scopes:
            record = self.record_of(root, url, scope, known_nodes, paths)
            if len(record.values) >= minimum:
                yield record

    def record_of(
        self,
        root: Element,
        url: str,
        scope: Scope | None,
        known_nodes: KnownNodes | None = None,
        paths: NodePaths | None = None,
    ) -> Record:
        """Extract the record of a whole page, or of one part of a list page.

        `known_nodes` returns the nodes of rules that are selected already. Callers that extract many parts of
        a page pass its `paths`.
        """
        occurring = cache(lambda: occurrences(root, self._triggers))

        def search(prepared: _PreparedRule) -> list[Node]:
            nodes = None if known_nodes is None else known_nodes(prepared.rule, root, scope)
            if nodes is not None:
                return nodes
            return select(prepared.search, occurring()) if scope is None else select_in(prepared.rule, scope)

        return self._record(url, _Region(search, scope, paths or NodePaths()))

    @cached_property
    def layouts(self) -> tuple[Wrapper, ...]:
        """A wrapper for each layout alone, newest first."""
        return replace(self, earlier=()), *self.earlier

    def without(self, names: Collection[str]) -> Wrapper:
        """Return the wrapper and its earlier layouts without some attributes; at least one must remain."""
        attributes = {name: rules for name, rules in self.attributes.items() if name not in names}
        rule = self.record_rule
        if rule is not None:
            rule = replace(rule, least=min(rule.least, len(attributes)))
        earlier = tuple(
            layout.without(names) for layout in self.earlier if layout.attributes.keys() - set(names)
        )
        return replace(self, attributes=attributes, record_rule=rule, earlier=earlier)

    def _records_by_layout(
        self, root: Element, url: str, page_signature: bytes | None, limits: ParseSettings
    ) -> Iterator[Record]:
        records_by_layout = [tuple(layout.records(root, url, limits=limits)) for layout in self.layouts]
        attributes = [layout.attributes for layout in self.layouts]
        are_lists = any(layout.record_rule is not None for layout in self.layouts)
        candidates = likely_layouts(attributes, records_by_layout, are_lists=are_lists)
        layout_number = candidates[0]
        if page_signature is not None and len(candidates) > 1:
            layout_number = candidates[
                most_alike([self._layout_signatures[candidate] for candidate in candidates], page_signature)
            ]
        for record in records_by_layout[layout_number]:
            yield _with_layout(record, layout_number + 1) if layout_number else record

    @cached_property
    def _layout_signatures(self) -> list[Signatures | None]:
        """The prepared signatures of each layout; None for a layout without any."""
        return [
            Signatures([*map(bytes.fromhex, accepted)]) if accepted else None
            for accepted in self.layout_signatures
        ]

    @property
    def layout_signatures(self) -> list[set[str]]:
        """The signatures of the pages of each layout, newest first; the footprint contains all of them."""
        earlier_signatures = [set(layout.footprint.accepted) for layout in self.earlier]
        return [set(self.footprint.accepted).difference(*earlier_signatures), *earlier_signatures]

    @property
    def looks_for_ids(self) -> bool:
        """Whether a page must be parsed with its ids collected, because a rule searches by id."""
        return bool(self._triggers.ids) or any(layout.looks_for_ids for layout in self.earlier)

    def explain(self) -> str:
        """Describe in plain words how each attribute is found, and why."""
        return explain(self)

    def to_json(self) -> str:
        """Return the wrapper as text that can be stored and reviewed."""
        return to_json(self)

    @staticmethod
    def from_json(text: str) -> Wrapper:
        """Read a wrapper from its text."""
        newest, *earlier = from_json(text)
        return Wrapper(**newest, earlier=tuple(Wrapper(**layout) for layout in earlier))

    def to_xslt(self) -> str:
        """Return an XSLT 1.0 stylesheet that extracts the same values from a tree of
        `siteloom.html.parser.parse`.

        Raises `UsageError` if a value needs a classifier, if records of a list run on, or if there are
        several layouts.
        """
        return to_xslt(self)

    @cached_property
    def _triggers(self) -> Triggers:
        return triggers(
            rule
            for attribute_rules in self.attributes.values()
            for rule in (*attribute_rules.rules, *attribute_rules.voters)
        )

    @cached_property
    def _prepared(self) -> dict[str, list[_PreparedRule]]:
        """The prepared rules of each attribute, followed by its voters."""
        return {
            name: [
                _PreparedRule(
                    rule,
                    f"{name}#{number}",
                    rule_xpath(rule, within_record=self.record_rule is not None),
                    self._triggers.searches[rule],
                    is_first_rule=number == 1,
                    is_voter=number > len(attribute_rules.rules),
                )
                for number, rule in enumerate((*attribute_rules.rules, *attribute_rules.voters), 1)
            ]
            for name, attribute_rules in self.attributes.items()
        }

    def _record(self, url: str, region: _Region) -> Record:
        values: dict[str, tuple[str, ...]] = {}
        typed: dict[str, tuple[object, ...]] = {}
        provenance: dict[str, tuple[Provenance, ...]] = {}
        withheld: dict[str, tuple[Withheld, ...]] = {}
        for name, attribute in self.attributes.items():
            prepared = self._prepared[name]
            refused: list[_Value] = []
            votes = [
                self._rule_values(attribute, prepared_rule, region, [])
                for prepared_rule in prepared
                if prepared_rule.is_voter
            ]
            accepted = self._values(attribute, prepared, votes, region, refused)
            types = _typed(accepted, attribute, url)
            if types is not None and None in types:
                refused += [value for value, kind in zip(accepted, types, strict=True) if kind is None]
                accepted = [value for value, kind in zip(accepted, types, strict=True) if kind is not None]
                types = tuple(kind for kind in types if kind is not None)
            if accepted:
                values[name] = tuple(value.text for value in accepted)
                provenance[name] = tuple(
                    _provenance(attribute, value, votes, region.paths, is_one_of_several=len(accepted) > 1)
                    for value in accepted
                )
                if types is not None:
                    typed[name] = types
            # If the attribute has a single value and it was found, no value was lost.
            if refused and (not accepted or attribute.attribute.multi):
                withheld[name] = tuple(_withheld(value, attribute, region.paths) for value in refused)
        return Record(url, values, typed, provenance, withheld)

    def _values(
        self,
        attribute: AttributeRules,
        prepared: Sequence[_PreparedRule],
        votes: Sequence[list[_Value]],
        region: _Region,
        refused: list[_Value],
    ) -> list[_Value]:
        """Return the distinct values of all rules, or for a single-valued attribute the first value found."""
        results = (
            self._rule_values(attribute, prepared_rule, region, refused)
            for prepared_rule in prepared
            if not prepared_rule.is_voter
        )
        if attribute.attribute.multi:
            by_text: dict[str, _Value] = {}
            for rule_values in results:
                for value in rule_values:
                    by_text.setdefault(value.text, value)
            return list(by_text.values())
        for rule_values in results:
            if rule_values:
                return rule_values[:1]
        if attribute.do_voters_step_in and all(votes) and len({vote[0].text for vote in votes}) == 1:
            return votes[0][:1]
        return []

    def _rule_values(
        self, attribute: AttributeRules, prepared: _PreparedRule, region: _Region, refused: list[_Value]
    ) -> list[_Value]:
        """Return the values that one rule finds, and add texts that are not values to `refused`.

        A scorer chooses only among nodes that hold values.
        """
        rule = prepared.rule
        nodes = region.select(prepared)
        if rule.scorer is not None:
            candidates = [node for node in nodes if self._texts(attribute, rule, node)]
            # If no node holds a value, the chosen one is reported as refused.
            nodes = chosen(rule.scorer, candidates or nodes, region.record)
        rule_values: list[_Value] = []
        for node in nodes:
            texts = self._texts(attribute, rule, node)
            rule_values += [_Value(text, prepared, node) for text in texts]
            if not texts and node.text not in self.labels:
                refused += [_Value(text, prepared, node) for text in part_values(rule.part, node.text)]
        return rule_values

    def _texts(self, attribute: AttributeRules, rule: Rule, node: Node) -> list[str]:
        """Return the values that a node holds."""
        if node.text in self.labels:
            return []
        return [text for text in part_values(rule.part, node.text) if shape(text) in attribute.shapes]


def _with_layout(record: Record, layout: int) -> Record:
    """A record whose provenance has the number of an earlier layout."""
    provenance = {
        name: tuple(replace(origin, rule=f"{origin.rule}@{layout}", layout=layout) for origin in origins)
        for name, origins in record.provenance.items()
    }
    return replace(record, provenance=provenance)


def _provenance(
    attribute: AttributeRules,
    value: _Value,
    votes: Sequence[list[_Value]],
    paths: NodePaths,
    *,
    is_one_of_several: bool,
) -> Provenance:
    origin = value.origin
    agreeing = sum(any(vote_value.text == value.text for vote_value in vote) for vote in votes)
    agreeing -= origin.is_voter  # a voter does not confirm itself
    # Voters look for the values of the first rule, so disagreement on values of later rules is expected.
    is_expected = origin.is_first_rule or not attribute.attribute.multi
    return Provenance(
        rule=origin.name,
        xpath=origin.xpath,
        node=_path(value, paths),
        confidence=confidence(
            signs(
                origin.rule,
                is_one_of_several=is_one_of_several,
                agreeing=agreeing,
                disagreeing=len(votes) - agreeing if is_expected else 0,
                voters=len(votes),
            )
        ),
    )


def _withheld(value: _Value, attribute: AttributeRules, paths: NodePaths) -> Withheld:
    if shape(value.text) in attribute.shapes:
        reason = f"not a {attribute.attribute.type}"
    else:
        reason = f"{shape(value.text)} instead of {' or '.join(attribute.shapes)}"
    return Withheld(value.text, reason, _path(value, paths))


def _path(value: _Value, paths: NodePaths) -> str:
    path = paths(value.node.element)
    if (spot := value.node.spot) is not None:
        return f"{path}/text()[{spot.number}]"
    target = value.origin.rule.target
    return path if target == "element" else f"{path}/{target}"


def _typed(values: Sequence[_Value], rules: AttributeRules, url: str) -> tuple[object, ...] | None:
    """Return the typed values, with None for each that does not parse; None if the attribute has no type."""
    kind = rules.attribute.type
    if not values or kind is None or kind == "text":
        return None
    try:
        return tuple(
            typed_value(
                value.text,
                kind,
                base_url=url,
                html_attributes={str(name): str(text) for name, text in value.node.element.attrib.items()},
                day_first=rules.day_first,
            )
            for value in values
        )
    except MissingExtra:
        return None  # the texts are kept; `siteloom doctor` names the missing extra
