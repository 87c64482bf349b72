"""Describe a wrapper in plain words for people who do not read HTML."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

from siteloom.core.wording import percent
from siteloom.wrappers.rule_features import ELEMENT_KINDS, SHAPES
from siteloom.wrappers.value_from_node import LEAST_PROBABILITY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from siteloom.wrappers.rule_features import (
        AttributeRules,
        Feature,
        RecordRule,
        Rule,
        RuleSupport,
        Scorer,
        Shape,
        ValuePart,
    )
    from siteloom.wrappers.value_contract import Contract
    from siteloom.wrappers.wrapper import Wrapper

_WIDTH = 100
_LISTED_LABELS = 10

_TARGETS = {"text": "text", "element": "whole text", "@href": "link address"}
_TAGS = {
    "a": "link",
    "dd": "description",
    "div": "box",
    "dl": "list of terms",
    "dt": "term",
    "img": "image",
    "li": "list item",
    "ol": "list",
    "p": "paragraph",
    "section": "section",
    "table": "table",
    "td": "table cell",
    "th": "table cell",
    "tr": "table row",
    "ul": "list",
    **{f"h{level}": "heading" for level in range(1, 7)},
}
_SHAPES = {
    "price": "made of digits and a currency sign",
    "digits": "made of digits without letters",
    "mixed": "made of digits and letters",
    "words": "made of words without digits",
}
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def explain(wrapper: Wrapper) -> str:
    """Describe how each attribute is found, and why, for a person to read."""
    return "\n".join(_lines(wrapper)) + "\n"


def rule_words(rule: Rule, *, multi: bool = False) -> str:
    """Describe a rule as a phrase: "the text right after 'Phone:' inside the element with id `x`".

    "Inside" means directly inside; "two levels inside" means inside a child, and so on.
    """
    features = [feature for feature in rule.features if feature.kind not in ELEMENT_KINDS]
    prefixes = {feature.value.strip() for feature in features if feature.kind == "prefix"}
    is_label_dropped = rule.part.left.strip() in prefixes and not rule.part.right and not rule.part.pattern
    words = f"{'each' if multi else 'the'} {_target_words(rule.target)}"
    if rule.target == "text":
        phrases = [_text_feature_words(feature, is_label_dropped) for feature in sorted(features)]
        levels = _levels_words(rule.features, -1, multi)
        words += "".join(f" {phrase}" for phrase in phrases[:1]) + "".join(
            f", {phrase}" for phrase in phrases[1:]
        )
        words += f",{levels}" if len(phrases) > 1 and levels else levels
        if not rule.features:
            words += " anywhere"
    else:
        own = [feature for feature in rule.features if feature.kind in ELEMENT_KINDS and not feature.distance]
        words += f" of {_element_words(own, multi)}"
        words += _levels_words([feature for feature in rule.features if feature.distance], 0, multi)
        conditions = [_text_feature_words(feature, is_label_dropped) for feature in sorted(features)]
        words += "".join(f", if it is {condition}" for condition in conditions)
    if not is_label_dropped:
        words = _part_words(rule.part) + words
    if rule.part.separator:
        words += f", split at {_quoted(rule.part.separator)}"
    if rule.scorer is not None:
        words += _scorer_words(rule.scorer)
    return words


def named_rule_words(wrapper: Wrapper, name: str) -> str:
    """Describe the rule with a name from provenance; those of earlier layouts end in the layout's number."""
    attribute, _, rule_and_layout = name.rpartition("#")
    number, _, layout = rule_and_layout.partition("@")
    rules = wrapper.layouts[int(layout or 1) - 1].attributes[attribute]
    return rule_words((*rules.rules, *rules.voters)[int(number) - 1], multi=bool(rules.attribute.multi))


def record_words(rule: RecordRule) -> str:
    """Describe where the records of a list page begin and end, in sentences."""
    extent = "goes on up to the next one" if rule.runs_on else "is all that is inside it"
    fallback = f" If a page has no such element, each begins at {_start_words(rule.fallback)}."
    least = "no value" if rule.least <= 1 else f"values of fewer than {_number(rule.least)} attributes"
    return (
        f"A page has several records. Each begins at {_start_words(rule.features)}, and {extent}; "
        "in each, the attributes are looked for by themselves."
        f"{fallback if rule.fallback else ''} What has {least} is no record."
    )


def evidence_words(evidence: RuleSupport) -> str:
    """Describe how a rule performed on the pages it was learned from, as a sentence."""
    examples = "1 example value" if evidence.examples == 1 else f"{evidence.examples} example values"
    besides = "nothing else on those pages"
    if evidence.wrong:
        besides = f"{evidence.wrong} other {'thing' if evidence.wrong == 1 else 'things'} on those pages"
    # With no other pages at all, the share is 0 as well.
    coverage = f"a value on {_share_words(evidence.filled)}" if evidence.filled else "no value on other pages"
    repeated = f", on {percent(evidence.repeated)} more than one" if evidence.repeated else ""
    return f"Why: it found {examples} and {besides}, and has {coverage}{repeated}."


def shapes_words(shapes: Sequence[Shape]) -> str:
    """Describe which texts do not count as values because of their shape; empty if all count."""
    excluded = [_SHAPES[shape] for shape in SHAPES if shape not in shapes]
    if len(excluded) == len(SHAPES):
        return "No text counts as a value."
    if len(excluded) < 2:
        return f"Texts {excluded[0]} do not count." if excluded else ""
    return f"Only texts {' or '.join(_SHAPES[shape] for shape in SHAPES if shape in shapes)} count."


def contract_words(contract: Contract) -> list[str]:
    """Describe each claim of a contract about valid values as a phrase."""
    lengths = f"{contract.shortest} to {contract.longest}"
    if contract.shortest == contract.longest:
        lengths = str(contract.longest)
    words = [f"{lengths} characters long"]
    if contract.choices:
        words.append(f"one of {', '.join(map(_quoted, contract.choices))}")
    if contract.least is not None and contract.most is not None:
        words.append(f"from {contract.least:g} to {contract.most:g}")
    if contract.always:
        words.append(f"always with {_listed(contract.always)}")
    if contract.never:
        words.append(f"never with {_listed(contract.never)}")
    return words


# The whole wrapper


def _lines(wrapper: Wrapper) -> Iterator[str]:
    count = len(wrapper.attributes)
    yield f"This wrapper looks for {'1 attribute' if count == 1 else f'{count} attributes'} on each page."
    if wrapper.record_rule is not None:
        yield _wrapped(record_words(wrapper.record_rule))
    for name, rules in wrapper.attributes.items():
        yield ""
        yield from _attribute_lines(name, rules)
    if wrapper.labels:
        yield ""
        yield _wrapped(_labels_words(sorted(wrapper.labels)))
    for number, layout in enumerate(wrapper.earlier, 2):
        yield ""
        yield _wrapped(
            f"Layout {number}, which pages had before. It counts where its rules clearly find more:"
        )
        for name, rules in layout.attributes.items():
            if rules != wrapper.attributes.get(name):
                yield ""
                yield from _attribute_lines(name, rules)
    yield ""
    yield _wrapped(f"Learned with {_shown(wrapper.parser)}.")


def _start_words(features: Sequence[Feature]) -> str:
    words = _element_words([feature for feature in features if not feature.distance], is_indefinite=True)
    return words + _levels_words([feature for feature in features if feature.distance], 0, is_indefinite=True)


def _attribute_lines(name: str, rules: AttributeRules) -> Iterator[str]:
    multi = bool(rules.attribute.multi)
    yield _wrapped(f"{_shown(name)} ({', '.join(_attribute_words(rules))})")
    if not rules.rules:
        subject = "No rule" if rules.do_voters_step_in else "Not found: no rule"
        yield _wrapped(f"{subject} could be learned.", 1)
    elif len(rules.rules) == 1:
        (rule,) = rules.rules
        yield _wrapped(_sentence(rule_words(rule, multi=multi)), 1)
        yield _wrapped(evidence_words(rule.evidence), 1)
    else:
        introduction = "The values of all these rules are taken:"
        yield _wrapped(introduction if multi else "The first of these rules that finds a value counts:", 1)
        for number, rule in enumerate(rules.rules, 1):
            yield _wrapped(f"{number}. {_sentence(rule_words(rule, multi=multi))}", 2)
            yield _wrapped(evidence_words(rule.evidence), 3)
        yield _wrapped(f"Together they find a value on {_share_words(rules.filled)}.", 1)
    if (rules.rules or rules.do_voters_step_in) and (words := shapes_words(rules.shapes)):
        yield _wrapped(words, 1)
    if rules.voters:
        count = len(rules.voters)
        voter_count = "1 independent rule is" if count == 1 else f"{count} independent rules are"
        agree = "it agrees" if count == 1 else "they agree"
        instead = "; where no rule finds a value, the one on which they all agree is taken"
        yield _wrapped(f"{voter_count} asked whether {agree}{instead if rules.do_voters_step_in else ''}:", 1)
        for voter in rules.voters:
            yield _wrapped(f"- {_sentence(rule_words(voter, multi=multi))}", 2)
    if rules.day_first is not None:
        first_number = "day" if rules.day_first else "month"
        yield _wrapped(f"Dates such as 03/04/2011 are read with the {first_number} first.", 1)


def _attribute_words(rules: AttributeRules) -> Iterator[str]:
    attribute = rules.attribute
    if attribute.type is not None:
        yield attribute.type
    yield "several values" if attribute.multi else "one value"
    if attribute.mandatory is not None:
        yield "mandatory" if attribute.mandatory else "optional"
    if attribute.constant is not None:
        yield "stays as it is" if attribute.constant else "may change"


def _share_words(share: float) -> str:
    return "all other pages" if share >= 1 else f"{percent(share)} of the other pages"


def _labels_words(labels: Sequence[str]) -> str:
    listed_labels = ", ".join(_quoted(label) for label in labels[:_LISTED_LABELS])
    remaining = f" and {len(labels) - _LISTED_LABELS} more" if len(labels) > _LISTED_LABELS else ""
    return f"Never values, for they only name some: {listed_labels}{remaining}."


# Phrases


def _target_words(target: str) -> str:
    return _TARGETS.get(target) or f"HTML attribute `{_shown(target.removeprefix('@'))}`"


def _text_feature_words(feature: Feature, is_label_dropped: bool) -> str:
    match feature.kind:
        case "text-before":
            return f"right after {_quoted(feature.value)}"
        case "prefix":
            without = " (without these words)" if is_label_dropped else ""
            return f"that begins with {_quoted(feature.value)}{without}"
        case "text-number":
            return f"that is the {_ordinal(feature.value)} text in its element"
    return _SHAPES.get(feature.value, _shown(feature.value))


def _levels_words(features: Iterable[Feature], level: int, is_indefinite: bool) -> str:
    """Describe the elements around a node at a level, from the innermost outwards."""
    levels: dict[int, list[Feature]] = {}
    for feature in sorted(features, key=lambda feature: feature.distance):
        if feature.kind in ELEMENT_KINDS:
            levels.setdefault(feature.distance, []).append(feature)
    words = ""
    for distance, level_features in levels.items():
        steps = distance - level
        inside = "inside" if steps == 1 else f"{_number(steps)} levels inside"
        words += f"{', which is' if words else ''} {inside} {_element_words(level_features, is_indefinite)}"
        level = distance
    return words


def _element_words(features: Iterable[Feature], is_indefinite: bool) -> str:
    """Describe an element by its features: "the cell `td` with class `x` that comes right after 'y'"."""
    kinds: dict[str, list[str]] = {}
    for feature in features:
        kinds.setdefault(feature.kind, []).append(feature.value)
    tags = kinds.get("tag", [])
    noun = _TAGS.get(tags[0], "element") if tags else "element"
    article = "the" if not is_indefinite or "id" in kinds else "an" if noun[0] in "aeiou" else "a"
    having = [
        *(f"id {_code(value)}" for value in kinds.get("id", [])),
        *(f"class {_code(value)}" for value in kinds.get("class", [])),
        *(f"{_code(value)} among its classes" for value in kinds.get("class-word", [])),
        *(f"the mark {_code(value)}" for value in kinds.get("attribute", [])),
    ]
    positions = [
        *(
            f"that is the {_ordinal(value)} of its kind among its neighbours"
            for value in kinds.get("position", [])
        ),
        *(
            f"that is the {_ordinal_from_last(value)} of its kind among its neighbours"
            for value in kinds.get("last-position", [])
        ),
        *(f"that comes right after {_quoted(value)}" for value in kinds.get("before", [])),
        *(f"whose first text is {_quoted(value)}" for value in kinds.get("first-text", [])),
    ]
    words = [article, noun, *map(_code, tags)]
    if having:
        words.append(f"with {_listed(having)}")
    if positions:
        words.append(_listed(positions))
    return " ".join(words)


def _part_words(part: ValuePart) -> str:
    if part.pattern:
        return f"the first part that matches {_code(part.pattern)} in "
    if part.left and part.right:
        return f"the part between {_quoted(part.left)} and {_quoted(part.right)} in "
    if part.left:
        return f"the part after {_quoted(part.left)} in "
    return f"the part before {_quoted(part.right)} in " if part.right else ""


def _scorer_words(scorer: Scorer) -> str:
    counting = "each" if scorer.takes_all else "the most probable one"
    return (
        f"; of all of these, {counting} counts that is probably a value (at least "
        f"{percent(LEAST_PROBABILITY)}), judged by where it stands and what it is made of"
    )


def _listed(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def _number(count: int) -> str:
    return _NUMBERS[count] if 0 <= count < len(_NUMBERS) else str(count)


def _ordinal(number: str) -> str:
    is_teen = number[-2:-1] == "1"
    ending = "th" if is_teen else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1:], "th")
    return f"{_shown(number)}{ending}"


def _ordinal_from_last(number: str) -> str:
    return "last" if number == "1" else f"{_ordinal(number)} last"


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _quoted(text: str) -> str:
    return f"'{_shown(text)}'"


def _code(text: str) -> str:
    return f"`{_shown(text)}`"


def _shown(text: str) -> str:
    """Escape unprintable characters: the text is untrusted and may be shown on a terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def _wrapped(text: str, level: int = 0) -> str:
    indent = "  " * level
    return fill(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
