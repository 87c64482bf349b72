"""What there is to see of a wrapper, as values: its rules in words, its versions, how it does."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field

from siteloom.errors import WrapperError
from siteloom.model import ValueType
from siteloom.server.sites.overview import records_held
from siteloom.server.wrappers.changes import RepairView, RuleChange, repair_view, rule_changes
from siteloom.spacing import evenly_spaced
from siteloom.store import WITHDRAWN, PageAddress, version_among
from siteloom.upkeep import is_acceptable
from siteloom.wrapper import Wrapper
from siteloom.wrapper.explain import contract_words, evidence_words, record_words, rule_words, shapes_words
from siteloom.wrapper.xpath import record_xpath, rule_xpath

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.store import Store, StoredRepair, StoredWrapper
    from siteloom.wrapper.language import AttributeRules, Rule

WrapperState = Literal["in force", "broken", "repair waits", "needs examples", "withdrawn"]
"""All is well; its pages have changed; a repair waits for a yes, or for examples; it is out of force."""

# Of so many pages the records are read to tell how an attribute does: a share is then right to 7 percent.
_PAGES_READ = 200
_SAMPLE_PAGES = 8  # as many links as a person may try


class RuleView(BaseModel):
    """A rule of an attribute."""

    words: str
    xpath: str
    why: str = Field(description="What it did on the pages it was learned from.")


class AttributeView(BaseModel):
    """How an attribute is found, and how that goes."""

    name: str
    type: ValueType | None
    multi: bool | None
    mandatory: bool | None
    constant: bool | None = Field(description="Whether a value stays when the page is fetched again.")
    rules: list[RuleView] = Field(description="The first that finds a value counts; of a multi one, all do.")
    voters: list[RuleView] = Field(description="They are asked whether they agree.")
    counts: str = Field(description="Which texts count as values for what they are made of, if not all do.")
    contract: list[str] = Field(description="What right values are like, as far as it is known.")
    contract_values: int = Field(description="From how many values that was learned.")
    filled: float | None = Field(description="Share of the records of its last run that have a value.")
    confidence: float | None = Field(description="Mean confidence of the values in these records.")


class RecordRuleView(BaseModel):
    """Where the records of a list page begin."""

    words: str
    xpath: str


class FootprintView(BaseModel):
    """Which pages a wrapper is for."""

    sites: list[str]
    url_patterns: list[str]
    masks: list[str]
    signatures: list[str]


class LayoutView(BaseModel):
    """A layout that the pages had before: the rules that are not those of the newest one."""

    number: int
    attributes: list[AttributeView]
    record_rule: RecordRuleView | None


class VersionView(BaseModel):
    """A version of a wrapper, and what differs from the one before."""

    version: int
    created_at: datetime
    origin: str = Field(description="What made it: learn, reused, repaired, rollback, withdrawn...")
    note: str
    confidence: float | None = Field(description="Of the repair that it came of.")
    rules: list[RuleChange]


class SamplePage(BaseModel):
    """A page that a wrapper can be tried on."""

    page: int = Field(description="The number of the page in the workspace.")
    url: str


class WrapperSummary(BaseModel):
    """A wrapper in short."""

    name: str
    site: str
    version: int
    state: WrapperState
    created_at: datetime
    origin: str
    attributes: list[str]
    records: int = Field(description="How many of the records that hold now are its own.")


class WrapperDetail(WrapperSummary):
    """A wrapper with its rules, those of its newest version or of an older one."""

    shown_version: int
    attribute_list: list[AttributeView]
    record_rule: RecordRuleView | None = Field(description="Of a wrapper for list pages.")
    labels: list[str] = Field(description="Texts that name values and never are values.")
    footprint: FootprintView
    earlier: list[LayoutView]
    records_read: int = Field(description="From how many records it is told how attributes do.")
    sample: list[SamplePage] = Field(description="Some of its pages, to try it on.")
    cluster: str | None = Field(description="The template that most of these are in.")
    versions: list[VersionView] = Field(description="The newest first.")
    waiting: RepairView | None


def wrapper_summaries(store: Store) -> list[WrapperSummary]:
    """All wrappers that are in force, by site and name."""
    stored = store.wrappers()
    newest = store.newest_outcomes()
    waiting = {one.wrapper: one for one in store.reviewing.repairs()}
    records = records_of_wrappers(store, stored)
    ill = {(one.wrapper, one.version) for one in newest if not one.is_healthy}
    return [
        _summary(
            one,
            waiting.get(one.name),
            is_ill=not ill.isdisjoint({(one.name, one.version), (one.name, None)}),
            records=records[one.name],
        )
        for one in stored
    ]


def wrapper_detail(store: Store, name: str, version: int | None = None) -> WrapperDetail:
    """A wrapper as it is, or as one of its versions was."""
    versions = store.wrapper_versions(name)
    newest, shown = versions[-1], version_among(versions, version)
    wrapper = Wrapper.from_json(shown.text)
    repairs = store.repairs(name)
    waiting = next(iter(store.reviewing.repairs(name)), None)
    checks = [one for one in store.newest_checks(name) if one.version in (None, newest.version)]
    records = [
        json.loads(line) for line in store.records_as_of(name, store.clock(), [shown.version], _PAGES_READ)
    ]
    summary = _summary(
        newest,
        waiting,
        is_ill=not all(one.is_healthy for one in checks),
        records=records_of_wrappers(store, store.wrappers())[name],
    )
    places = store.reviewing.places(_sample(store, newest.site, name, records))
    return WrapperDetail(
        **summary.model_dump(),
        shown_version=shown.version,
        attribute_list=_attributes(wrapper, records),
        record_rule=_record_rule(wrapper),
        labels=sorted(wrapper.labels),
        footprint=FootprintView(
            sites=list(wrapper.footprint.sites),
            url_patterns=list(wrapper.footprint.url_patterns),
            masks=[mask for mask, _ in wrapper.footprint.masks],
            signatures=list(wrapper.footprint.accepted),
        ),
        earlier=[_layout(wrapper, layout, number) for number, layout in enumerate(wrapper.earlier, 2)],
        records_read=len(records),
        sample=[SamplePage(page=number, url=address.url) for address, (number, _) in sorted(places.items())],
        cluster=_commonest(cluster for _, cluster in places.values()),
        versions=_versions(versions, repairs),
        waiting=None if waiting is None else repair_view(store, waiting, newest.site),
    )


def records_of_wrappers(store: Store, stored: Iterable[StoredWrapper]) -> Counter[str]:
    """How many of the records that hold now each of the wrappers in force gave."""
    found: Counter[str] = Counter()
    for (_, wrapper), count in records_held(store, {one.name: one.site for one in stored}).items():
        found[wrapper] += count
    return found


def _summary(
    newest: StoredWrapper, waiting: StoredRepair | None, *, is_ill: bool, records: int
) -> WrapperSummary:
    state: WrapperState = "broken" if is_ill else "in force"
    if newest.origin == WITHDRAWN:
        state = "withdrawn"
    elif waiting is not None:
        state = "repair waits" if is_acceptable(waiting) else "needs examples"
    return WrapperSummary(
        name=newest.name,
        site=newest.site,
        version=newest.version,
        state=state,
        created_at=newest.created_at,
        origin=newest.origin,
        attributes=_attribute_names(newest.text),
        records=records,
    )


def _attribute_names(text: str) -> list[str]:
    """What a wrapper looks for; nothing if it is of a newer Siteloom: the others are listed all the same."""
    try:
        return list(Wrapper.from_json(text).attributes)
    except WrapperError:
        return []


def _attributes(wrapper: Wrapper, records: Sequence[Mapping[str, Any]]) -> list[AttributeView]:
    filled: Counter[str] = Counter(name for record in records for name in record["values"])
    confidences: dict[str, list[float]] = {}
    for record in records:
        for name, of_values in record["confidence"].items():
            confidences.setdefault(name, []).extend(of_values)
    return [
        _attribute(
            wrapper,
            name,
            rules,
            filled[name] / len(records) if records else None,
            sum(some) / len(some) if (some := confidences.get(name)) else None,
        )
        for name, rules in wrapper.attributes.items()
    ]


def _attribute(
    wrapper: Wrapper, name: str, rules: AttributeRules, filled: float | None, confidence: float | None
) -> AttributeView:
    about, contract = rules.attribute, rules.contract
    return AttributeView(
        name=name,
        type=about.type,
        multi=about.multi,
        mandatory=about.mandatory,
        constant=about.constant,
        rules=_rules(wrapper, rules, rules.rules),
        voters=_rules(wrapper, rules, rules.voters),
        counts=shapes_words(rules.shapes),
        contract=[] if contract is None else contract_words(contract),
        contract_values=0 if contract is None else contract.values,
        filled=filled,
        confidence=confidence,
    )


def _rules(wrapper: Wrapper, of: AttributeRules, rules: Iterable[Rule]) -> list[RuleView]:
    return [
        RuleView(
            words=rule_words(rule, multi=bool(of.attribute.multi)),
            xpath=rule_xpath(rule, within_record=wrapper.record_rule is not None),
            why=evidence_words(rule.evidence).removeprefix("Why: "),
        )
        for rule in rules
    ]


def _record_rule(wrapper: Wrapper) -> RecordRuleView | None:
    rule = wrapper.record_rule
    if rule is None:
        return None
    return RecordRuleView(words=record_words(rule), xpath=record_xpath(rule.features))


def _layout(wrapper: Wrapper, layout: Wrapper, number: int) -> LayoutView:
    others = {
        name: rules for name, rules in layout.attributes.items() if rules != wrapper.attributes.get(name)
    }
    return LayoutView(
        number=number,
        attributes=[_attribute(layout, name, rules, None, None) for name, rules in others.items()],
        record_rule=_record_rule(layout) if layout.record_rule != wrapper.record_rule else None,
    )


def _sample(store: Store, site: str, name: str, records: Sequence[Mapping[str, Any]]) -> list[PageAddress]:
    """Some pages to try a wrapper on: of its records, else the ends of the template that it is called as."""
    urls = evenly_spaced(list(dict.fromkeys(record["url"] for record in records)), _SAMPLE_PAGES)
    if not urls:
        called = (one for one in store.cluster_summaries(site) if one.name == name)
        urls = list(dict.fromkeys(url for one in called for url in one.ends))
    return [PageAddress(site, url) for url in urls]


def _commonest(names: Iterable[str | None]) -> str | None:
    counted = Counter(name for name in names if name is not None)
    return max(counted, key=lambda name: counted[name], default=None)


def _versions(versions: Sequence[StoredWrapper], repairs: Sequence[StoredRepair]) -> list[VersionView]:
    of_version = {one.version_after: one.confidence for one in repairs if one.version_after is not None}
    views: list[VersionView] = []
    before: Wrapper | None = None
    for stored in versions:
        now = Wrapper.from_json(stored.text)
        views.append(
            VersionView(
                version=stored.version,
                created_at=stored.created_at,
                origin=stored.origin,
                note=stored.note,
                confidence=of_version.get(stored.version),
                rules=[] if before is None else rule_changes(before, now),
            )
        )
        before = now
    return views[::-1]
