"""Write and strictly read wrapper files.

`where` is the place of a value in the file, as a person would name it.

A wrapper file is data from others. Nothing in it is run, except that patterns
are searched for in texts of pages and held against URLs; so only patterns that
need little time are read. Keys that are unknown are refused, for what they mean would be lost.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast, get_args

from siteloom.core.errors import WrapperError
from siteloom.core.model import Attribute, Footprint, ValueType
from siteloom.core.wording import quoted
from siteloom.html.parser import PARSER
from siteloom.wrappers.rule_features import (
    ELEMENT_KINDS,
    NUMBERED,
    RECORD_KINDS,
    SHAPES,
    TEXT_KINDS,
    AttributeRules,
    Evidence,
    Feature,
    Kind,
    Part,
    RecordRule,
    Rule,
    Scorer,
    Shape,
)
from siteloom.wrappers.safe_patterns import pattern_fault, url_pattern_fault
from siteloom.wrappers.value_contract import CHARACTERS, Contract
from siteloom.wrappers.value_from_node import WEAK_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from siteloom.wrappers.wrapper import Wrapper


if TYPE_CHECKING:
    Read = TypeVar("Read")


def without_repeats(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """The keys and values of an object, to be given to `json.loads`: a key that stands twice is refused."""
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise unreadable(f"the key {quoted(key)}", "stands twice in the same object")
        found[key] = value
    return found


def an_object(value: object, where: str, required: str = "", optional: str = "") -> dict[str, Any]:
    """An object with the keys that it must and may have; without any named, it may have all."""
    if not isinstance(value, dict):
        raise unreadable(where, "must be an object")
    must = required.split()
    may = [*must, *optional.split()]
    for key in must:
        if key not in value:
            raise unreadable(where, f"lacks {key!r}")
    for key in value:
        if may and key not in may:
            raise unreadable(where, f"has the unknown key {quoted(key)}")
    return value


def a_list(value: object, where: str, read: Callable[[object, str], Read]) -> tuple[Read, ...]:
    """The items of a list, each read with its number from 1 on as its place."""
    if not isinstance(value, list):
        raise unreadable(f"{where}s", "must be a list")
    return tuple(read(item, f"{where} {number}") for number, item in enumerate(value, 1))


def a_text(value: object, where: str) -> str:
    """A value that must be a text."""
    if not isinstance(value, str):
        raise unreadable(where, "must be a text")
    return value


def a_choice(known: dict[str, Any], key: str, choices: Sequence[str], where: str) -> str:
    """The text of a key, which must be one of some."""
    value: object = known[key]
    if not isinstance(value, str) or value not in choices:
        raise unreadable(where, f"has the unknown {key} {quoted(value)}, for there are {', '.join(choices)}")
    return value


def a_flag(known: dict[str, Any], key: str, where: str) -> bool | None:
    """True or false, or None where the key is left out."""
    value: object = known.get(key)
    if key in known and not isinstance(value, bool):
        raise unreadable(where, f"must have true or false as {key!r}")
    return cast("bool | None", value)


def a_count(known: dict[str, Any], key: str, where: str, least: int = 0) -> int:
    """The whole number of a key, from the least on."""
    value: Any = known[key]
    if not is_integer(value) or value < least:
        raise unreadable(where, f"must have a whole number from {least} on as {key!r}")
    return int(value)


def a_share(known: dict[str, Any], key: str, where: str) -> float:
    """The number of a key, from 0 to 1."""
    value: Any = known[key]
    if not (is_integer(value) or isinstance(value, float)) or not 0 <= value <= 1:
        raise unreadable(where, f"must have a number from 0 to 1 as {key!r}")
    return float(value)


def a_number(known: dict[str, Any], key: str, where: str) -> float:
    """The finite number of a key."""
    value: Any = known[key]
    try:
        number = float(value) if is_integer(value) or isinstance(value, float) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise unreadable(where, f"must have a number as {key!r}")
    return number


def is_integer(value: object) -> bool:
    """Whether a value is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def unreadable(where: str, what: str) -> WrapperError:
    """The error that a wrapper cannot be read, because of what is wrong at a place."""
    return WrapperError(f"The wrapper cannot be read: {where} {what}.")


FORMAT = "siteloom wrapper"
VERSION = 1

_INDENT = "  "
_NUMBERS = re.compile(r"[1-9][0-9]{0,8}")
_HTML_ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
_DEEPEST = 2_048  # no tree of the parser is deeper
_LARGEST_WEIGHT = 1_000_000
_LEAST_ATTRIBUTES = 1  # a record has, unless it says otherwise
_SIGNATURE = re.compile(r"[0-9a-f]{16}")
_MASK = re.compile(r"(?=(?:[^*]*\*\*){0,2}[^*]*\Z)(?:[0-9a-f]{2}|\*\*){8}")
_SIGNATURES_IN_A_LINE = 16
# As much as a million signatures take; of nothing but lists, it becomes 0.6 GB of memory.
_LONGEST_TEXT = 20_000_000
# Of an attribute. The learner makes at most six; in a stylesheet their number counts squared.
_MOST_RULES = 100


def to_json(wrapper: Wrapper) -> str:
    """A wrapper as text, always the same for the same wrapper.

    What cannot be seen, such as control characters and lone surrogates, is
    escaped; two surrogates that make a pair become the character they mean.
    """
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "parser": wrapper.parser,
        **_layout_content(wrapper),
    }
    if wrapper.footprint != Footprint():
        content["footprint"] = _footprint_content(wrapper.footprint)
    if wrapper.earlier:
        content["earlier"] = [
            {
                "parser": layout.parser,
                **_layout_content(layout),
                "footprint": _footprint_content(layout.footprint),
            }
            for layout in wrapper.earlier
        ]
    text = _rendered(content) + "\n"
    _arguments(text)  # rather no file than one that cannot be read
    return text


def _layout_content(wrapper: Wrapper) -> dict[str, Any]:
    content: dict[str, Any] = {
        "attributes": {name: _attribute_content(rules) for name, rules in wrapper.attributes.items()}
    }
    if wrapper.record_rule is not None:
        content["record_rule"] = _record_rule_content(wrapper.record_rule)
    if wrapper.labels:
        content["labels"] = sorted(wrapper.labels)
    return content


def from_json(text: str) -> list[dict[str, Any]]:
    """The keyword arguments of the wrapper that a text describes, and of those of its earlier layouts.

    Warns if the wrapper was learned with another parser. Only the version of
    libxml2 counts: it makes the trees that rules were found in, while lxml
    hands them on as they are.
    """
    arguments = _arguments(text)
    if _tree_maker(arguments[0]["parser"]) != _tree_maker(PARSER):
        learned_with = quoted(arguments[0]["parser"]).strip("'")
        warnings.warn(
            f"This wrapper was learned with {learned_with}, this is {PARSER}: "
            "check its records, or learn it again.",
            UserWarning,
            stacklevel=3,
        )
    return arguments


def _tree_maker(parser: str) -> str:
    return parser.rpartition("libxml2 ")[2]


# Writing


def _attribute_content(rules: AttributeRules) -> dict[str, Any]:
    known = {**asdict(rules.attribute), "day_first": rules.day_first}
    content = {key: value for key, value in known.items() if value is not None}
    if rules.shapes != SHAPES:
        content["shapes"] = list(rules.shapes)
    content["filled"] = rules.filled
    if rules.contract is not None:
        content["contract"] = contract_content(rules.contract)
    content["rules"] = [_rule_content(rule) for rule in rules.rules]
    if rules.voters:
        content["voters"] = [_rule_content(rule) for rule in rules.voters]
    return content


def contract_content(contract: Contract) -> dict[str, Any]:
    """A contract as JSON can hold it."""
    content: dict[str, Any] = {}
    for key, value in asdict(contract).items():
        if isinstance(value, tuple):
            if value:
                content[key] = list(value)
        elif value is not None:
            content[key] = value
    return content


def _rule_content(rule: Rule) -> dict[str, Any]:
    content: dict[str, Any] = {
        "target": rule.target,
        "features": [asdict(feature) for feature in rule.features],
    }
    if part := {key: value for key, value in asdict(rule.part).items() if value}:
        content["part"] = part
    content["evidence"] = asdict(rule.evidence)
    if rule.scorer is not None:
        content["scorer"] = _scorer_content(rule.scorer)
    return content


def _record_rule_content(rule: RecordRule) -> dict[str, Any]:
    content: dict[str, Any] = {
        "features": [asdict(feature) for feature in rule.features],
        "runs_on": rule.runs_on,
    }
    if rule.fallback:
        content["fallback"] = [asdict(feature) for feature in rule.fallback]
    if rule.least != _LEAST_ATTRIBUTES:
        content["least"] = rule.least
    return content


def _scorer_content(scorer: Scorer) -> dict[str, Any]:
    return {
        "intercept": scorer.intercept,
        "takes_all": scorer.takes_all,
        "weights": [{"name": name, "weight": weight} for name, weight in scorer.weights],
    }


def _footprint_content(footprint: Footprint) -> dict[str, Any]:
    return {
        "sites": list(footprint.sites),
        "url_patterns": list(footprint.url_patterns),
        "masks": [{"mask": mask, "pages": pages} for mask, pages in footprint.masks],
        "accepted": _Signatures(footprint.accepted),
    }


class _Signatures(list[str]):
    """A list of many short texts, which are written several to a line."""


def _rendered(value: object, indent: str = "") -> str:
    """JSON with each item of a list on a line, and objects of nothing but plain values on one."""
    inner = indent + _INDENT
    if isinstance(value, dict):
        items = [f"{_rendered(key)}: {_rendered(item, inner)}" for key, item in value.items()]
        if not any(isinstance(item, dict | list) for item in value.values()):
            return "{" + ", ".join(items) + "}"
        return _block("{", items, "}", indent)
    if isinstance(value, _Signatures):
        texts = [_rendered(item) for item in value]
        lines = [texts[n : n + _SIGNATURES_IN_A_LINE] for n in range(0, len(texts), _SIGNATURES_IN_A_LINE)]
        return _block("[", map(", ".join, lines), "]", indent) if value else "[]"
    if isinstance(value, list):
        return _block("[", [_rendered(item, inner) for item in value], "]", indent) if value else "[]"
    if isinstance(value, str):
        return "".join(_escaped(character) for character in json.dumps(value, ensure_ascii=False))
    return json.dumps(value)


def _block(opening: str, items: Iterable[str], closing: str, indent: str) -> str:
    lines = ",".join(f"\n{indent}{_INDENT}{item}" for item in items)
    return f"{opening}{lines}\n{indent}{closing}"


def _escaped(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]


# Reading


def _arguments(text: str) -> list[dict[str, Any]]:
    if len(text) > _LONGEST_TEXT:
        raise WrapperError(f"This is no wrapper, for it has more than {_LONGEST_TEXT:,} characters.")
    try:
        content = json.loads(text, object_pairs_hook=without_repeats)
    except (ValueError, RecursionError) as error:
        place = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise WrapperError(f"This is no wrapper, for it is not valid JSON{place}.") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise WrapperError(f'This is no wrapper: a wrapper file says "format": "{FORMAT}".')
    version: Any = content.get("version")
    if is_integer(version) and version > VERSION:
        raise WrapperError(
            f"This wrapper was written by a newer Siteloom (version {quoted(version)} of the format, "
            f"{VERSION} is known here): update Siteloom."
        )
    if not is_integer(version) or version != VERSION:
        raise unreadable("the file", f"has no version that is known here, which is {VERSION}")
    known = an_object(
        content, "the file", "format version parser attributes", "record_rule labels footprint earlier"
    )
    footprint = _footprint(known["footprint"]) if "footprint" in known else Footprint()
    earlier = a_list(known.get("earlier", []), "earlier layout", _earlier_layout)
    return [{**_layout(known), "footprint": footprint}, *earlier]


def _layout(known: dict[str, Any]) -> dict[str, Any]:
    return {
        "attributes": {
            name: _attribute(rules, f"attribute {quoted(name)}")
            for name, rules in an_object(known["attributes"], "the key 'attributes'").items()
        },
        "labels": frozenset(a_list(known.get("labels", []), "label", a_text)),
        "record_rule": _record_rule(known["record_rule"]) if "record_rule" in known else None,
        "parser": a_text(known["parser"], "the name of the parser"),
    }


def _earlier_layout(value: object, where: str) -> dict[str, Any]:
    known = an_object(value, where, "parser attributes footprint", "record_rule labels")
    return {**_layout(known), "footprint": _footprint(known["footprint"], f"{where}, footprint")}


def _attribute(value: object, where: str) -> AttributeRules:
    known = an_object(
        value, where, "filled rules", "multi mandatory constant type day_first shapes voters contract"
    )
    return AttributeRules(
        Attribute(
            a_flag(known, "multi", where),
            a_flag(known, "mandatory", where),
            a_flag(known, "constant", where),
            _type(known, where) if "type" in known else None,
        ),
        _rules(known["rules"], f"{where}, rule"),
        _rules(known.get("voters", []), f"{where}, voter"),
        a_share(known, "filled", where),
        _shapes(known["shapes"], where) if "shapes" in known else SHAPES,
        a_flag(known, "day_first", where),
        contract_from(known["contract"], f"{where}, contract") if "contract" in known else None,
    )


def contract_from(value: object, where: str) -> Contract:
    """The contract that `contract_content` wrote; `where` says in an error where it stands."""
    known = an_object(value, where, "values shortest longest commonest", "always never choices least most")
    return Contract(
        a_count(known, "values", where),
        a_count(known, "shortest", where),
        a_count(known, "longest", where),
        a_list(known.get("always", []), f"{where}, kind of character", _characters),
        a_list(known.get("never", []), f"{where}, kind of character", _characters),
        a_list(known.get("choices", []), f"{where}, choice", a_text),
        a_number(known, "least", where) if "least" in known else None,
        a_number(known, "most", where) if "most" in known else None,
        a_share(known, "commonest", where),
    )


def _characters(value: object, where: str) -> str:
    if not isinstance(value, str) or value not in CHARACTERS:
        raise unreadable(where, f"is {quoted(value)}, but there are only {', '.join(CHARACTERS)}")
    return value


def _type(known: dict[str, Any], where: str) -> ValueType:
    return cast("ValueType", a_choice(known, "type", get_args(ValueType), where))


def _shapes(value: object, where: str) -> tuple[Shape, ...]:
    found = a_list(value, f"{where}, shape", _shape)
    if len(set(found)) < len(found):
        raise unreadable(where, "names a shape twice")
    return found


def _shape(value: object, where: str) -> Shape:
    if value not in SHAPES:
        raise unreadable(where, f"is {quoted(value)}, but there are only {', '.join(SHAPES)}")
    return value


def _rules(value: object, where: str) -> tuple[Rule, ...]:
    if isinstance(value, list) and len(value) > _MOST_RULES:
        raise unreadable(f"{where}s", f"are more than {_MOST_RULES}")
    return a_list(value, where, _rule)


def _rule(value: object, where: str) -> Rule:
    known = an_object(value, where, "target features evidence", "part scorer")
    target = a_text(known["target"], f"{where}, target")
    is_attribute = target.startswith("@") and _HTML_ATTRIBUTE.fullmatch(target[1:]) is not None
    if target not in ("text", "element") and not is_attribute:
        raise unreadable(where, f"has the unknown target {quoted(target)}")
    features = a_list(known["features"], f"{where}, feature", _feature)
    for feature in features:
        if feature.kind in TEXT_KINDS and target != "text":
            raise unreadable(where, f"asks for {feature.kind!r}, which only texts have")
    _check_positions(features, where)
    part = _part(known["part"], f"{where}, part") if "part" in known else Part()
    evidence = _evidence(known["evidence"], f"{where}, evidence")
    scorer = _scorer(known["scorer"], f"{where}, scorer") if "scorer" in known else None
    return Rule(target, features, part, evidence, scorer)


def _record_rule(value: object) -> RecordRule:
    where = "the record rule"
    known = an_object(value, where, "features runs_on", "fallback least")
    features = a_list(known["features"], f"{where}, feature", _record_feature)
    fallback = a_list(known.get("fallback", []), f"{where}, fallback feature", _record_feature)
    _check_positions(features, where)
    _check_positions(fallback, where)
    return RecordRule(
        features,
        a_flag(known, "runs_on", where) is True,
        fallback,
        a_count(known, "least", where, _LEAST_ATTRIBUTES) if "least" in known else _LEAST_ATTRIBUTES,
    )


def _record_feature(value: object, where: str) -> Feature:
    feature = _feature(value, where)
    if feature.kind not in RECORD_KINDS:
        raise unreadable(where, f"asks for {feature.kind!r}, which is not asked where records begin")
    return feature


def _feature(value: object, where: str) -> Feature:
    known = an_object(value, where, "kind distance value")
    kind = cast("Kind", a_choice(known, "kind", get_args(Kind), where))
    distance = a_count(known, "distance", where)
    if distance > _DEEPEST:
        raise unreadable(where, f"has a distance above {_DEEPEST}, which no page has")
    if distance and kind not in ELEMENT_KINDS:
        raise unreadable(where, f"has a distance, but {kind!r} is always at 0")
    text = a_text(known["value"], f"{where}, value")
    if kind == "shape":
        a_choice(known, "value", get_args(Shape), where)
    if kind in NUMBERED and not _NUMBERS.fullmatch(text):
        raise unreadable(where, f"has the value {quoted(text)}, which is no number from 1 on")
    if kind == "attribute" and not _HTML_ATTRIBUTE.fullmatch(text.partition("=")[0] if "=" in text else ""):
        raise unreadable(where, f"has the value {quoted(text)}, which is not of the form name=value")
    return Feature(kind, distance, text)


def _check_positions(features: Sequence[Feature], where: str) -> None:
    """Positions are counted among elements of one tag, and XPath must say of which."""
    tagged = {feature.distance for feature in features if feature.kind == "tag"}
    for feature in features:
        if feature.kind in ("position", "last-position") and feature.distance not in tagged:
            raise unreadable(where, f"asks for {feature.kind!r} without the 'tag' of the same element")


def _part(value: object, where: str) -> Part:
    known = an_object(value, where, optional="left right pattern separator")
    part = Part(**{key: a_text(text, f"{where}, {key}") for key, text in known.items()})
    if part.pattern:
        if part.left or part.right:
            raise unreadable(where, "has both a pattern and anchors, of which only one can count")
        if fault := pattern_fault(part.pattern):
            raise unreadable(where, fault)
    return part


def _evidence(value: object, where: str) -> Evidence:
    known = an_object(value, where, "examples wrong filled repeated")
    return Evidence(
        a_count(known, "examples", where),
        a_count(known, "wrong", where),
        a_share(known, "filled", where),
        a_share(known, "repeated", where),
    )


def _scorer(value: object, where: str) -> Scorer:
    known = an_object(value, where, "intercept takes_all weights")
    return Scorer(
        a_list(known["weights"], f"{where}, weight", _weight),
        _weight_of(known, "intercept", where),
        a_flag(known, "takes_all", where) is True,
    )


def _weight(value: object, where: str) -> tuple[str, float]:
    known = an_object(value, where, "name weight")
    name = a_text(known["name"], f"{where}, name")
    if not WEAK_NAME.fullmatch(name):
        raise unreadable(where, f"is for {quoted(name)}, which no node has")
    return name, _weight_of(known, "weight", where)


def _weight_of(known: dict[str, Any], key: str, where: str) -> float:
    value: Any = known[key]
    if not (is_integer(value) or isinstance(value, float)) or not abs(value) <= _LARGEST_WEIGHT:
        raise unreadable(where, f"must have a number of at most {_LARGEST_WEIGHT:,} as {key!r}")
    return float(value)


def _footprint(value: object, where: str = "the footprint") -> Footprint:
    known = an_object(value, where, "sites url_patterns masks accepted")
    return Footprint(
        a_list(known["sites"], f"{where}, site", a_text),
        a_list(known["url_patterns"], f"{where}, URL pattern", _url_pattern),
        a_list(known["masks"], f"{where}, mask", _mask),
        a_list(known["accepted"], f"{where}, accepted signature", _signature),
    )


def _url_pattern(value: object, where: str) -> str:
    text = a_text(value, where)
    if fault := url_pattern_fault(text):
        raise unreadable(where, fault)
    return text


def _mask(value: object, where: str) -> tuple[str, int]:
    known = an_object(value, where, "mask pages")
    text = a_text(known["mask"], f"{where}, mask")
    if not _MASK.fullmatch(text):
        raise unreadable(where, f"is {quoted(text)}, not a signature in which at most two bytes are '**'")
    return text, a_count(known, "pages", where, 1)


def _signature(value: object, where: str) -> str:
    text = a_text(value, where)
    if not _SIGNATURE.fullmatch(text):
        raise unreadable(where, f"is {quoted(text)}, not eight bytes in hexadecimal")
    return text
