"""What differs between versions of a wrapper, and what a repair would change, as values."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field

from siteloom.store import PageAddress, version_among
from siteloom.upkeep import is_acceptable, lost_attributes
from siteloom.wrapper import Wrapper
from siteloom.wrapper.explain import record_words, rule_words
from siteloom.wrapper.xpath import record_xpath, rule_xpath

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from siteloom.store import Store, StoredRepair
    from siteloom.wrapper.language import AttributeRules, Rule


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
