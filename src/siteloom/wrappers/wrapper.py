"""A wrapper: all rules of one template, and how they turn a page into records."""

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


class _Prepared(NamedTuple):
    """A rule with all that is needed to apply it."""

    rule: Rule
    name: str
    xpath: str
    search: Search
    is_first: bool
    is_voter: bool


class _Region(NamedTuple):
    """What is searched: how the nodes that a rule means are selected, on a page or in a record of it."""

    select: Callable[[_Prepared], list[Node]]
    record: Scope | None
    paths: NodePaths


class ReadPage(NamedTuple):
    """A page with what a wrapper finds on it."""

    root: Element
    records: tuple[Record, ...]


class _Value(NamedTuple):
    """A text that was found where a value is looked for, by which rule, and in which node."""

    text: str
    origin: _Prepared
    node: Node


@dataclass(frozen=True)
class Wrapper:
    """All rules of one template.

    `labels` are texts of the template that name values and never are values.
    With `record_rule` the pages are lists, and each record is searched by itself. The
    `footprint` tells which pages it is for. `earlier` are wrappers of layouts that the template had
    before, the newest first: as long as a site still serves some pages in one of them, these come out
    right as well. A page that cannot be read raises `UnreadablePage`.
    """

    attributes: Mapping[str, AttributeRules]
    labels: frozenset[str] = frozenset()
    record_rule: RecordRule | None = None
    parser: str = PARSER
    footprint: Footprint = Footprint()
    earlier: tuple[Wrapper, ...] = ()

    def extract(self, page: Page, *, limits: ParseSettings = ParseSettings()) -> Record:
        """The record of a page; of a list page the first one."""
        found = self.extract_all(page, limits=limits)
        return found[0] if found else Record(page.url, {}, {}, {})

    def extract_all(self, page: Page, *, limits: ParseSettings = ParseSettings()) -> tuple[Record, ...]:
        """All records of a page: one, or as many as a list page has."""
        found = self.read(page, limits=limits)
        if isinstance(found, Failure):
            raise UnreadablePage(found.url, found.reason)
        return found.records

    def read(self, page: Page, *, limits: ParseSettings = ParseSettings()) -> ReadPage | Failure:
        """The same with the tree, or why there is none: the page is past a limit, or gives too much."""

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
        """All records of a page that is parsed already; TooMuchFound if they are more than it may give."""
        return tuple(self.records(root, page.url, signature(page.html) if self.earlier else None, limits))

    def records(
        self,
        root: Element,
        url: str,
        page_signature: bytes | None = None,
        limits: ParseSettings = ParseSettings(),
    ) -> Iterator[Record]:
        """The same, if no more than the tree is there; the page's signature helps to tell layouts apart."""
        if self.earlier:
            yield from self._records_by_layout(root, url, page_signature, limits)
            return
        scopes = [None] if self.record_rule is None else records(self.record_rule, root)
        yield from bounded(self.records_in(root, url, scopes), limits)

    def records_in(
        self, root: Element, url: str, scopes: Iterable[Scope | None], known: KnownNodes | None = None
    ) -> Iterator[Record]:
        """The records of a whole page, or of these parts of a list page."""
        least = 0 if self.record_rule is None else self.record_rule.least
        paths = NodePaths()
        for scope in scopes:
            found = self.record_of(root, url, scope, known, paths)
            if len(found.values) >= least:
                yield found

    def record_of(
        self,
        root: Element,
        url: str,
        scope: Scope | None,
        known: KnownNodes | None = None,
        paths: NodePaths | None = None,
    ) -> Record:
        """The record of a whole page, or of one part of a list page, where nodes may be `known` already.

        `paths` are those of the page, for whoever asks for many of its parts.
        """
        occurring = cache(lambda: occurrences(root, self._triggers))

        def search(prepared: _Prepared) -> list[Node]:
            nodes = None if known is None else known(prepared.rule, root, scope)
            if nodes is not None:
                return nodes
            return select(prepared.search, occurring()) if scope is None else select_in(prepared.rule, scope)

        return self._record(url, _Region(search, scope, paths or NodePaths()))

    @cached_property
    def layouts(self) -> tuple[Wrapper, ...]:
        """A wrapper for each of the layouts alone, the newest first."""
        return replace(self, earlier=()), *self.earlier

    def without(self, names: Collection[str]) -> Wrapper:
        """The wrapper without some attributes, of which others must be left; earlier layouts as well."""
        attributes = {name: rules for name, rules in self.attributes.items() if name not in names}
        rule = self.record_rule
        if rule is not None:
            rule = replace(rule, least=min(rule.least, len(attributes)))
        earlier = tuple(one.without(names) for one in self.earlier if one.attributes.keys() - set(names))
        return replace(self, attributes=attributes, record_rule=rule, earlier=earlier)

    def _records_by_layout(
        self, root: Element, url: str, page_signature: bytes | None, limits: ParseSettings
    ) -> Iterator[Record]:
        tried = [tuple(layout.records(root, url, limits=limits)) for layout in self.layouts]
        attributes = [layout.attributes for layout in self.layouts]
        are_lists = any(layout.record_rule is not None for layout in self.layouts)
        likely = likely_layouts(attributes, tried, are_lists=are_lists)
        number = likely[0]
        if page_signature is not None and len(likely) > 1:
            number = likely[most_alike([self._layout_signatures[one] for one in likely], page_signature)]
        for record in tried[number]:
            yield _with_layout(record, number + 1) if number else record

    @cached_property
    def _layout_signatures(self) -> list[Signatures | None]:
        """The signatures of each layout, made ready; None where there are none."""
        return [
            Signatures([*map(bytes.fromhex, accepted)]) if accepted else None
            for accepted in self.layout_signatures
        ]

    @property
    def layout_signatures(self) -> list[set[str]]:
        """The signatures of pages of each layout, the newest first; the whole footprint has all of them."""
        before = [set(layout.footprint.accepted) for layout in self.earlier]
        return [set(self.footprint.accepted).difference(*before), *before]

    @property
    def looks_for_ids(self) -> bool:
        """Whether a page must be parsed with its ids collected for the rules to find what they look for."""
        return bool(self._triggers.ids) or any(layout.looks_for_ids for layout in self.earlier)

    def explain(self) -> str:
        """In plain words, how each attribute is found and why so."""
        return explain(self)

    def to_json(self) -> str:
        """The wrapper as text that can be kept and reviewed."""
        return to_json(self)

    @staticmethod
    def from_json(text: str) -> Wrapper:
        """A wrapper from its text."""
        newest, *earlier = from_json(text)
        return Wrapper(**newest, earlier=tuple(Wrapper(**layout) for layout in earlier))

    def to_xslt(self) -> str:
        """An XSLT 1.0 stylesheet that gives the same values from the tree that
        `siteloom.html.parser.parse` makes.

        Raises `UsageError` if a value needs a classifier, if records of a list run on, or if there are
        several layouts.
        """
        return to_xslt(self)

    @cached_property
    def _triggers(self) -> Triggers:
        return triggers(rule for found in self.attributes.values() for rule in (*found.rules, *found.voters))

    @cached_property
    def _prepared(self) -> dict[str, list[_Prepared]]:
        """The rules of each attribute, and behind them its voters."""
        return {
            name: [
                _Prepared(
                    rule,
                    f"{name}#{number}",
                    rule_xpath(rule, within_record=self.record_rule is not None),
                    self._triggers.searches[rule],
                    is_first=number == 1,
                    is_voter=number > len(found.rules),
                )
                for number, rule in enumerate((*found.rules, *found.voters), 1)
            ]
            for name, found in self.attributes.items()
        }

    def _record(self, url: str, region: _Region) -> Record:
        values: dict[str, tuple[str, ...]] = {}
        typed: dict[str, tuple[object, ...]] = {}
        provenance: dict[str, tuple[Provenance, ...]] = {}
        withheld: dict[str, tuple[Withheld, ...]] = {}
        for name, attribute in self.attributes.items():
            prepared = self._prepared[name]
            refused: list[_Value] = []
            votes = [self._found(attribute, one, region, []) for one in prepared if one.is_voter]
            found = self._values(attribute, prepared, votes, region, refused)
            types = _typed(found, attribute, url)
            if types is not None and None in types:
                refused += [value for value, kind in zip(found, types, strict=True) if kind is None]
                found = [value for value, kind in zip(found, types, strict=True) if kind is not None]
                types = tuple(kind for kind in types if kind is not None)
            if found:
                values[name] = tuple(value.text for value in found)
                provenance[name] = tuple(
                    _provenance(attribute, value, votes, region.paths, is_one_of_several=len(found) > 1)
                    for value in found
                )
                if types is not None:
                    typed[name] = types
            # Where there is one value to be had and it was found, nothing was lost.
            if refused and (not found or attribute.attribute.multi):
                withheld[name] = tuple(_withheld(value, attribute, region.paths) for value in refused)
        return Record(url, values, typed, provenance, withheld)

    def _values(
        self,
        attribute: AttributeRules,
        prepared: Sequence[_Prepared],
        votes: Sequence[list[_Value]],
        region: _Region,
        refused: list[_Value],
    ) -> list[_Value]:
        """The values of an attribute: of all rules, each once; or one, of the first rule that finds any."""
        rules = (self._found(attribute, one, region, refused) for one in prepared if not one.is_voter)
        if attribute.attribute.multi:
            by_text: dict[str, _Value] = {}
            for found in rules:
                for value in found:
                    by_text.setdefault(value.text, value)
            return list(by_text.values())
        for found in rules:
            if found:
                return found[:1]
        if attribute.do_voters_step_in and all(votes) and len({vote[0].text for vote in votes}) == 1:
            return votes[0][:1]
        return []

    def _found(
        self, attribute: AttributeRules, prepared: _Prepared, region: _Region, refused: list[_Value]
    ) -> list[_Value]:
        """What one rule finds; a scorer chooses only among nodes that hold values. The rest is refused."""
        rule = prepared.rule
        nodes = region.select(prepared)
        if rule.scorer is not None:
            candidates = [node for node in nodes if self._texts(attribute, rule, node)]
            # If none holds a value, the one that should is refused.
            nodes = chosen(rule.scorer, candidates or nodes, region.record)
        found: list[_Value] = []
        for node in nodes:
            texts = self._texts(attribute, rule, node)
            found += [_Value(text, prepared, node) for text in texts]
            if not texts and node.text not in self.labels:
                refused += [_Value(text, prepared, node) for text in part_values(rule.part, node.text)]
        return found

    def _texts(self, attribute: AttributeRules, rule: Rule, node: Node) -> list[str]:
        """The values that a node holds."""
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
    agreeing = sum(any(other.text == value.text for other in vote) for vote in votes)
    agreeing -= origin.is_voter  # a voter is no witness for itself
    # Voters look for what the first rule finds: that others find further values is no wonder.
    is_expected = origin.is_first or not attribute.attribute.multi
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


def _typed(found: Sequence[_Value], rules: AttributeRules, url: str) -> tuple[object, ...] | None:
    """The values as their type, None for one that cannot be read so; or None if there is no type."""
    kind = rules.attribute.type
    if not found or kind is None or kind == "text":
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
            for value in found
        )
    except MissingExtra:
        return None  # the texts are there all the same; `siteloom doctor` names the extra
