"""Values shown: rules in words, versions, success of a wrapper."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import datetime
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import BaseModel, Field

from siteloom.core.errors import WrapperError
from siteloom.core.model import ValueType
from siteloom.core.sequences import evenly_spaced
from siteloom.operations.relearn import is_acceptable, lost_attributes
from siteloom.operations.status import current_records
from siteloom.store.queries.clusters import PageAddress
from siteloom.store.queries.wrappers import WITHDRAWN, version_among
from siteloom.wrappers.explanation import (
    contract_words,
    evidence_words,
    record_words,
    rule_words,
    shapes_words,
)
from siteloom.wrappers.rule_xpath import record_xpath, rule_xpath
from siteloom.wrappers.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from siteloom.store.queries.watches_and_repairs import StoredRepair
    from siteloom.store.queries.wrappers import StoredWrapper
    from siteloom.store.store import Store
    from siteloom.wrappers.rule_features import AttributeRules, Rule


class RuleChange(BaseModel):
    """The rules of an attribute in two versions, in words."""

    attribute: str
    before: list[str]
    after: list[str]


class AttributeChange(BaseModel):
    """What differs of an attribute between two versions beside its rules, in words."""

    attribute: str
    told: list[str]


class ValueChange(BaseModel):
    """A value on a page: as it was known, as the old rules find it, and as the new ones do."""

    url: str
    attribute: str
    known: list[str]
    before: list[str]
    after: list[str]
    page: int | None = Field(default=None, description="The number of the page in the workspace.")


class WrapperDiff(BaseModel):
    """Two versions of a wrapper beside each other."""

    name: str
    site: str
    a: int
    b: int
    rules: list[RuleChange]
    others: list[AttributeChange] = Field(description="What else differs of attributes.")
    layouts: list[str] = Field(description="What else differs of the versions as a whole, in words.")
    same: list[str] = Field(description="The attributes of which nothing differs.")
    record_rule: RuleChange | None = Field(description="Where records begin, if that differs.")
    only_a: list[str] = Field(description="URL patterns that only the first has.")
    only_b: list[str]
    signatures: tuple[int, int] = Field(description="How many signatures of pages each of them knows.")
    values: list[ValueChange] = Field(description="If one is the repair of the other: values on some pages.")


class AttributeOutcome(BaseModel):
    """What became of an attribute in a repair."""

    state: Literal["kept", "changing", "repaired", "unrepaired", "vanished"]
    right: int = Field(description="Known values that the new rules find on pages they did not learn from.")
    tested: int
    reason: str


class RepairView(BaseModel):
    """A repair of a wrapper."""

    id: int
    wrapper: str
    version_before: int
    version_after: int | None
    outcome: str
    state: str
    confidence: float
    at: datetime
    reason: str
    can_accept: bool = Field(description="Whether it waits for a yes, if only to a part of it.")
    lost: list[str] = Field(description="The attributes that were not found again.")
    can_leave_out: bool = Field(description="Whether the wrapper could go on without these.")
    attributes: dict[str, AttributeOutcome]
    rules: list[RuleChange]
    values: list[ValueChange]
    annotate: list[str] = Field(description="URLs of the pages to annotate first, if examples are needed.")


def wrapper_diff(store: Store, name: str, a: int, b: int) -> WrapperDiff:
    """Two versions of a wrapper beside each other."""
    versions = store.wrapper_versions(name)
    old, new = (Wrapper.from_json(version_among(versions, number).text) for number in (a, b))
    rules, others = rule_changes(old, new), _other_changes(old, new)
    changed = {one.attribute for one in rules} | {one.attribute for one in others}
    values: list[dict[str, Any]] = next(
        (
            one.content["diff"]["values"]
            for one in store.repairs(name)
            if (one.version_before, one.version_after) == (a, b)
        ),
        [],
    )
    patterns = [one.footprint.url_patterns for one in (old, new)]
    return WrapperDiff(
        name=name,
        site=versions[-1].site,
        a=a,
        b=b,
        rules=rules,
        others=others,
        layouts=_layout_changes(old, new),
        same=[attribute for attribute in new.attributes if attribute not in changed],
        record_rule=_record_change(old, new),
        only_a=[pattern for pattern in patterns[0] if pattern not in patterns[1]],
        only_b=[pattern for pattern in patterns[1] if pattern not in patterns[0]],
        signatures=(len(old.footprint.accepted), len(new.footprint.accepted)),
        values=_value_changes(store, versions[-1].site, values),
    )


def rule_changes(old: Wrapper, new: Wrapper) -> list[RuleChange]:
    """The rules of each attribute whose rules differ; those of the same words are told as XPath as well."""
    found = []
    for name in dict.fromkeys((*old.attributes, *new.attributes)):
        before, after = (_rules_told(one, name) for one in (old, new))
        if before == after:
            continue
        is_told_by_words = [words for words, _ in before] != [words for words, _ in after]
        texts = [
            [words if is_told_by_words else f"{words}: `{xpath}`" for words, xpath in rules]
            for rules in (before, after)
        ]
        found.append(RuleChange(attribute=name, before=texts[0], after=texts[1]))
    return found


def _rules_told(wrapper: Wrapper, name: str) -> list[tuple[str, str]]:
    """The rules of an attribute in words and as XPath; what they did on some pages is no part of them."""
    found = wrapper.attributes.get(name)
    return [] if found is None else [_rule_told(wrapper, found, rule) for rule in found.rules]


def _rule_told(wrapper: Wrapper, of: AttributeRules, rule: Rule) -> tuple[str, str]:
    words = rule_words(rule, multi=bool(of.attribute.multi))
    return words, rule_xpath(rule, within_record=wrapper.record_rule is not None)


_OF_ATTRIBUTES: tuple[tuple[str, Callable[[Wrapper, AttributeRules], object]], ...] = (
    (
        "the rules that are asked whether they agree",
        lambda wrapper, one: [_rule_told(wrapper, one, rule) for rule in one.voters],
    ),
    ("what right values are like", lambda _, one: one.contract),
    ("the type", lambda _, one: one.attribute.type),
    ("whether a page has several values", lambda _, one: one.attribute.multi),
    ("whether it must be there", lambda _, one: one.attribute.mandatory),
    ("whether a value stays the same", lambda _, one: one.attribute.constant),
    ("which texts count as values", lambda _, one: (one.shapes, one.day_first)),
)


def _other_changes(old: Wrapper, new: Wrapper) -> list[AttributeChange]:
    """What differs of the attributes that both have, beside their rules."""
    both = [name for name in new.attributes if name in old.attributes]
    found = [
        AttributeChange(
            attribute=name,
            told=[
                words
                for words, of in _OF_ATTRIBUTES
                if of(old, old.attributes[name]) != of(new, new.attributes[name])
            ],
        )
        for name in both
    ]
    return [one for one in found if one.told]


def _layout_changes(old: Wrapper, new: Wrapper) -> list[str]:
    told = []
    if old.labels != new.labels:
        told.append("They know other texts that name values and never are values.")
    if old.earlier != new.earlier:
        counts = " and ".join(str(len(one.earlier)) for one in (old, new))
        told.append(f"They know other layouts that the pages had before: {counts}.")
    return told


def _record_change(old: Wrapper, new: Wrapper) -> RuleChange | None:
    if old.record_rule == new.record_rule:
        return None
    before, after = (
        [] if one is None else [f"{record_words(one)}: `{record_xpath(one.features)}`"]
        for one in (old.record_rule, new.record_rule)
    )
    return RuleChange(attribute="records", before=before, after=after)


def repair_view(store: Store, repair: StoredRepair, site: str) -> RepairView:
    """A repair for a person to look at.

    If a part of it is in force and the rest waits, it is about what the version in force does not find.
    """
    content = repair.content
    rules, values = content["diff"]["rules"], content["diff"]["values"]
    if repair.state == "annotation" and repair.version_after is not None:
        rules = []
        values = [{**one, "before": one["after"]} for one in values if one["after"] != one["known"]]
    return RepairView(
        id=repair.id,
        wrapper=repair.wrapper,
        version_before=repair.version_before,
        version_after=repair.version_after,
        outcome=repair.outcome,
        state=repair.state,
        confidence=repair.confidence,
        at=repair.at,
        reason=content["reason"],
        can_accept=is_acceptable(repair),
        attributes={name: AttributeOutcome(**one) for name, one in content["attributes"].items()},
        lost=(lost := lost_attributes(repair)),
        can_leave_out=0 < len(lost) < len(content["attributes"]),
        rules=[RuleChange(**row) for row in rules],
        values=_value_changes(store, site, values),
        annotate=[one["url"] for one in content["annotate"]],
    )


def telling_values(values: Sequence[ValueChange]) -> list[ValueChange]:
    """Of each attribute one value: if there is any, one that new rules find otherwise than it is known."""
    by_attribute: dict[str, ValueChange] = {}
    for one in values:
        known = by_attribute.setdefault(one.attribute, one)
        if known.after == known.known and one.after != one.known:
            by_attribute[one.attribute] = one
    return list(by_attribute.values())


def _value_changes(store: Store, site: str, rows: Sequence[Mapping[str, Any]]) -> list[ValueChange]:
    places = store.reviewing.places([PageAddress(site, row["url"]) for row in rows])
    numbers = {address.url: number for address, (number, _) in places.items()}
    return [ValueChange(**row, page=numbers.get(row["url"])) for row in rows]


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
    for (_, wrapper), count in current_records(store, {one.name: one.site for one in stored}).items():
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


# What stands between backticks is shown as code, so it stays in one piece.
_WORD = re.compile(r"\s+|`[^`]*`|[^\s`]+|`")


class Stretch(NamedTuple):
    """A part of a text, and whether the other text has something else in its place."""

    text: str
    is_changed: bool


class MarkedPair(NamedTuple):
    """Two texts in stretches; one that is missing has none."""

    before: list[Stretch]
    after: list[Stretch]


def marked(before: str, after: str) -> MarkedPair:
    """Two texts with the words marked that differ."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    pair = MarkedPair([], [])
    for kind, old_start, old_end, new_start, new_end in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        for stretches, words in ((pair.before, old[old_start:old_end]), (pair.after, new[new_start:new_end])):
            if words:
                stretches.append(Stretch("".join(words), kind != "equal"))
    return pair


def marked_lists(before: Sequence[str], after: Sequence[str]) -> list[MarkedPair]:
    """The texts of two lists side by side."""
    return [marked(old, new) for old, new in zip_longest(before, after, fillvalue="")]
