"""What wrappers find in units, kept by attributes: of one whose rules stay, nothing is looked for again."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from siteloom.model import Record
from siteloom.wrapper.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from siteloom.dom import Element
    from siteloom.model import Provenance, ValueType, Withheld
    from siteloom.wrapper.language import AttributeRules, Rule, Shape
    from siteloom.wrapper.selection import Node, Scope
    from siteloom.wrapper.wrapper import KnownNodes

RecordOf: TypeAlias = "Callable[[Element, str, Scope | None], Record]"

# A wrapper is tried without types first, and it is a good thing if what was said can be taken back.
_MOST_KEPT = 4


class _Look(NamedTuple):
    """All that it hangs on what is found of an attribute, but the labels."""

    rules: tuple[Rule, ...]
    voters: tuple[Rule, ...]
    shapes: tuple[Shape, ...]
    is_multi: bool
    type: ValueType | None
    day_first: bool | None
    is_of_records: bool


class _Part(NamedTuple):
    """What a record has of one attribute."""

    values: tuple[str, ...] | None
    typed: tuple[object, ...] | None
    provenance: tuple[Provenance, ...] | None
    withheld: tuple[Withheld, ...] | None


@dataclass(slots=True)
class _Finds:
    """What is found of an attribute: the parts of records, and the texts that were looked at."""

    look: _Look
    wrapper: Wrapper  # for this attribute alone
    parts: dict[Element | Scope, _Part] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)

    def part(self, name: str, root: Element, url: str, scope: Scope | None, known: KnownNodes) -> _Part:
        """The part of a record; kept if all nodes that it may come from are known."""
        unit = root if scope is None else scope
        if (part := self.parts.get(unit)) is not None:
            return part
        are_all_known = True

        def noted(rule: Rule, root: Element, scope: Scope | None) -> list[Node] | None:
            nonlocal are_all_known
            nodes = known(rule, root, scope)
            if nodes is None:
                are_all_known = False
            else:
                self.texts.update([node.text for node in nodes])
            return nodes

        found = self.wrapper.record_of(root, url, scope, noted)
        part = _Part(
            found.values.get(name),
            found.typed.get(name),
            found.provenance.get(name),
            found.withheld.get(name),
        )
        if are_all_known:
            self.parts[unit] = part
        return part


class KeptFinds:
    """What wrappers found, one after the other."""

    def __init__(self) -> None:
        self._finds: defaultdict[str, list[_Finds]] = defaultdict(list)

    def record_of(self, wrapper: Wrapper, known: KnownNodes) -> RecordOf:
        """What `Wrapper.record_of` does."""
        finds = [(name, self._finds_of(name, rules, wrapper)) for name, rules in wrapper.attributes.items()]

        def found(root: Element, url: str, scope: Scope | None) -> Record:
            return _united(url, [(name, one.part(name, root, url, scope, known)) for name, one in finds])

        return found

    def _finds_of(self, name: str, rules: AttributeRules, wrapper: Wrapper) -> _Finds:
        look = _look(rules, is_of_records=wrapper.record_rule is not None)
        kept = self._finds[name]
        alone = Wrapper({name: rules}, wrapper.labels, wrapper.record_rule)
        for number, finds in enumerate(kept):
            # A text that became a label, or is none any more, changes what is found where it stands.
            if finds.look == look and not finds.texts & (finds.wrapper.labels ^ wrapper.labels):
                if finds.wrapper.labels != wrapper.labels:
                    finds.wrapper = alone
                kept.insert(0, kept.pop(number))
                return finds
        kept.insert(0, _Finds(look, alone))
        del kept[_MOST_KEPT:]
        return kept[0]


def _look(rules: AttributeRules, *, is_of_records: bool) -> _Look:
    kind = rules.attribute.type
    return _Look(
        rules.rules,
        rules.voters,
        rules.shapes,
        bool(rules.attribute.multi),
        None if kind == "text" else kind,
        rules.day_first,
        is_of_records,
    )


def _united(url: str, parts: Sequence[tuple[str, _Part]]) -> Record:
    """A record of its parts."""
    record = Record(url, values := {}, typed := {}, provenance := {}, withheld := {})
    for name, part in parts:
        if part.values is not None:
            values[name] = part.values
        if part.typed is not None:
            typed[name] = part.typed
        if part.provenance is not None:
            provenance[name] = part.provenance
        if part.withheld is not None:
            withheld[name] = part.withheld
    return record
