"""Write and strictly read wrapper files.

A parameter `where` describes the position of a value in the file, for error messages.

A wrapper file is untrusted data. Nothing in it is executed, but its patterns are matched against texts of
pages and URLs, so only patterns that match in little time are accepted. Unknown keys are rejected, because
ignoring them would lose their meaning.
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
    Feature,
    Kind,
    RecordRule,
    Rule,
    RuleSupport,
    Scorer,
    Shape,
    ValuePart,
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
    """Build an object for `json.loads`, and reject a key that occurs twice."""
    members: dict[str, object] = {}
    for key, value in pairs:
        if key in members:
            raise unreadable(f"the key {quoted(key)}", "stands twice in the same object")
        members[key] = value
    return members


def an_object(value: object, where: str, required: str = "", optional: str = "") -> dict[str, Any]:
    """Return an object after checking its required and optional keys; if none are named, all are allowed."""
    if not isinstance(value, dict):
        raise unreadable(where, "must be an object")
    required_keys = required.split()
    allowed_keys = [*required_keys, *optional.split()]
    for key in required_keys:
        if key not in value:
            raise unreadable(where, f"lacks {key!r}")
    for key in value:
        if allowed_keys and key not in allowed_keys:
            raise unreadable(where, f"has the unknown key {quoted(key)}")
    return value


def a_list(value: object, where: str, read: Callable[[object, str], Read]) -> tuple[Read, ...]:
    """Read the items of a list; the position of each is its number from 1 on."""
    if not isinstance(value, list):
        raise unreadable(f"{where}s", "must be a list")
    return tuple(read(item, f"{where} {number}") for number, item in enumerate(value, 1))


def a_text(value: object, where: str) -> str:
    """Return a value that must be a text."""
    if not isinstance(value, str):
        raise unreadable(where, "must be a text")
    return value


def a_choice(content: dict[str, Any], key: str, choices: Sequence[str], where: str) -> str:
    """Return the text of a key, which must be one of the choices."""
    value: object = content[key]
    if not isinstance(value, str) or value not in choices:
        raise unreadable(where, f"has the unknown {key} {quoted(value)}, for there are {', '.join(choices)}")
    return value


def a_flag(content: dict[str, Any], key: str, where: str) -> bool | None:
    """Return the truth value of a key, or None if the key is missing."""
    value: object = content.get(key)
    if key in content and not isinstance(value, bool):
        raise unreadable(where, f"must have true or false as {key!r}")
    return cast("bool | None", value)


def a_count(content: dict[str, Any], key: str, where: str, minimum: int = 0) -> int:
    """Return the whole number of a key, which must be at least the minimum."""
    value: Any = content[key]
    if not is_integer(value) or value < minimum:
        raise unreadable(where, f"must have a whole number from {minimum} on as {key!r}")
    return int(value)


def a_share(content: dict[str, Any], key: str, where: str) -> float:
    """Return the number of a key, which must be from 0 to 1."""
    value: Any = content[key]
    if not (is_integer(value) or isinstance(value, float)) or not 0 <= value <= 1:
        raise unreadable(where, f"must have a number from 0 to 1 as {key!r}")
    return float(value)


def a_number(content: dict[str, Any], key: str, where: str) -> float:
    """Return the finite number of a key."""
    value: Any = content[key]
    try:
        number = float(value) if is_integer(value) or isinstance(value, float) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise unreadable(where, f"must have a number as {key!r}")
    return number


def is_integer(value: object) -> bool:
    """Return whether a value is a whole number; true and false are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def unreadable(where: str, fault: str) -> WrapperError:
    """Return the error for a wrapper that cannot be read, with the position and its fault."""
    return WrapperError(f"The wrapper cannot be read: {where} {fault}.")


FORMAT = "siteloom wrapper"
VERSION = 1

_INDENT = "  "
_NUMBERS = re.compile(r"[1-9][0-9]{0,8}")
_HTML_ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
_DEEPEST = 2_048  # no tree of the parser is deeper
_LARGEST_WEIGHT = 1_000_000
_LEAST_ATTRIBUTES = 1  # of a record, unless the file says otherwise
_SIGNATURE = re.compile(r"[0-9a-f]{16}")
_MASK = re.compile(r"(?=(?:[^*]*\*\*){0,2}[^*]*\Z)(?:[0-9a-f]{2}|\*\*){8}")
_SIGNATURES_IN_A_LINE = 16
# The size of a million signatures; parsed, a file of nothing but lists needs 0.6 GB of memory.
_LONGEST_TEXT = 20_000_000
# Per attribute. The learner makes at most six; the size of a stylesheet grows with the square of their
# number.
_MOST_RULES = 100


def to_json(wrapper: Wrapper) -> str:
    """Serialize a wrapper; the same wrapper always gives the same text.

    Characters that cannot be printed, such as control characters and lone surrogates, are escaped; a
    surrogate pair becomes the character it encodes.
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
    _arguments(text)  # fail now rather than write a file that cannot be read
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
    """Return the keyword arguments of the wrapper that a text describes, and of its earlier layouts.

    Warns if the wrapper was learned with another parser. Only the version of libxml2 counts: it builds the
    trees, and lxml passes them on unchanged.
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
    properties = {**asdict(rules.attribute), "day_first": rules.day_first}
    content = {key: value for key, value in properties.items() if value is not None}
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
    """Return a contract as values that JSON can hold."""
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
    if part_content := {key: value for key, value in asdict(rule.part).items() if value}:
        content["part"] = part_content
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
    """A list of many short texts, several of which are written on one line."""


def _rendered(value: object, indent: str = "") -> str:
    """Render JSON with one list item per line, and objects of plain values on a single line."""
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
    document = an_object(
        content, "the file", "format version parser attributes", "record_rule labels footprint earlier"
    )
    footprint = _footprint(document["footprint"]) if "footprint" in document else Footprint()
    earlier = a_list(document.get("earlier", []), "earlier layout", _earlier_layout)
    return [{**_layout(document), "footprint": footprint}, *earlier]


def _layout(content: dict[str, Any]) -> dict[str, Any]:
    return {
        "attributes": {
            name: _attribute(rules, f"attribute {quoted(name)}")
            for name, rules in an_object(content["attributes"], "the key 'attributes'").items()
        },
        "labels": frozenset(a_list(content.get("labels", []), "label", a_text)),
        "record_rule": _record_rule(content["record_rule"]) if "record_rule" in content else None,
        "parser": a_text(content["parser"], "the name of the parser"),
    }


def _earlier_layout(value: object, where: str) -> dict[str, Any]:
    content = an_object(value, where, "parser attributes footprint", "record_rule labels")
    return {**_layout(content), "footprint": _footprint(content["footprint"], f"{where}, footprint")}


def _attribute(value: object, where: str) -> AttributeRules:
    content = an_object(
        value, where, "filled rules", "multi mandatory constant type day_first shapes voters contract"
    )
    return AttributeRules(
        Attribute(
            a_flag(content, "multi", where),
            a_flag(content, "mandatory", where),
            a_flag(content, "constant", where),
            _type(content, where) if "type" in content else None,
        ),
        _rules(content["rules"], f"{where}, rule"),
        _rules(content.get("voters", []), f"{where}, voter"),
        a_share(content, "filled", where),
        _shapes(content["shapes"], where) if "shapes" in content else SHAPES,
        a_flag(content, "day_first", where),
        contract_from(content["contract"], f"{where}, contract") if "contract" in content else None,
    )


def contract_from(value: object, where: str) -> Contract:
    """Read the contract that `contract_content` wrote; `where` is its position, for error messages."""
    content = an_object(value, where, "values shortest longest commonest", "always never choices least most")
    return Contract(
        a_count(content, "values", where),
        a_count(content, "shortest", where),
        a_count(content, "longest", where),
        a_list(content.get("always", []), f"{where}, kind of character", _characters),
        a_list(content.get("never", []), f"{where}, kind of character", _characters),
        a_list(content.get("choices", []), f"{where}, choice", a_text),
        a_number(content, "least", where) if "least" in content else None,
        a_number(content, "most", where) if "most" in content else None,
        a_share(content, "commonest", where),
    )


def _characters(value: object, where: str) -> str:
    if not isinstance(value, str) or value not in CHARACTERS:
        raise unreadable(where, f"is {quoted(value)}, but there are only {', '.join(CHARACTERS)}")
    return value


def _type(content: dict[str, Any], where: str) -> ValueType:
    return cast("ValueType", a_choice(content, "type", get_args(ValueType), where))


def _shapes(value: object, where: str) -> tuple[Shape, ...]:
    shapes = a_list(value, f"{where}, shape", _shape)
    if len(set(shapes)) < len(shapes):
        raise unreadable(where, "names a shape twice")
    return shapes


def _shape(value: object, where: str) -> Shape:
    if value not in SHAPES:
        raise unreadable(where, f"is {quoted(value)}, but there are only {', '.join(SHAPES)}")
    return value


def _rules(value: object, where: str) -> tuple[Rule, ...]:
    if isinstance(value, list) and len(value) > _MOST_RULES:
        raise unreadable(f"{where}s", f"are more than {_MOST_RULES}")
    return a_list(value, where, _rule)


def _rule(value: object, where: str) -> Rule:
    content = an_object(value, where, "target features evidence", "part scorer")
    target = a_text(content["target"], f"{where}, target")
    is_attribute = target.startswith("@") and _HTML_ATTRIBUTE.fullmatch(target[1:]) is not None
    if target not in ("text", "element") and not is_attribute:
        raise unreadable(where, f"has the unknown target {quoted(target)}")
    features = a_list(content["features"], f"{where}, feature", _feature)
    for feature in features:
        if feature.kind in TEXT_KINDS and target != "text":
            raise unreadable(where, f"asks for {feature.kind!r}, which only texts have")
    _check_positions(features, where)
    value_part = _part(content["part"], f"{where}, part") if "part" in content else ValuePart()
    evidence = _evidence(content["evidence"], f"{where}, evidence")
    scorer = _scorer(content["scorer"], f"{where}, scorer") if "scorer" in content else None
    return Rule(target, features, value_part, evidence, scorer)


def _record_rule(value: object) -> RecordRule:
    where = "the record rule"
    content = an_object(value, where, "features runs_on", "fallback least")
    features = a_list(content["features"], f"{where}, feature", _record_feature)
    fallback = a_list(content.get("fallback", []), f"{where}, fallback feature", _record_feature)
    _check_positions(features, where)
    _check_positions(fallback, where)
    return RecordRule(
        features,
        a_flag(content, "runs_on", where) is True,
        fallback,
        a_count(content, "least", where, _LEAST_ATTRIBUTES) if "least" in content else _LEAST_ATTRIBUTES,
    )


def _record_feature(value: object, where: str) -> Feature:
    feature = _feature(value, where)
    if feature.kind not in RECORD_KINDS:
        raise unreadable(where, f"asks for {feature.kind!r}, which is not asked where records begin")
    return feature


def _feature(value: object, where: str) -> Feature:
    content = an_object(value, where, "kind distance value")
    kind = cast("Kind", a_choice(content, "kind", get_args(Kind), where))
    distance = a_count(content, "distance", where)
    if distance > _DEEPEST:
        raise unreadable(where, f"has a distance above {_DEEPEST}, which no page has")
    if distance and kind not in ELEMENT_KINDS:
        raise unreadable(where, f"has a distance, but {kind!r} is always at 0")
    text = a_text(content["value"], f"{where}, value")
    if kind == "shape":
        a_choice(content, "value", get_args(Shape), where)
    if kind in NUMBERED and not _NUMBERS.fullmatch(text):
        raise unreadable(where, f"has the value {quoted(text)}, which is no number from 1 on")
    if kind == "attribute" and not _HTML_ATTRIBUTE.fullmatch(text.partition("=")[0] if "=" in text else ""):
        raise unreadable(where, f"has the value {quoted(text)}, which is not of the form name=value")
    return Feature(kind, distance, text)


def _check_positions(features: Sequence[Feature], where: str) -> None:
    """Check that each position comes with a tag: it counts elements of one tag, which XPath must name."""
    tagged = {feature.distance for feature in features if feature.kind == "tag"}
    for feature in features:
        if feature.kind in ("position", "last-position") and feature.distance not in tagged:
            raise unreadable(where, f"asks for {feature.kind!r} without the 'tag' of the same element")


def _part(value: object, where: str) -> ValuePart:
    content = an_object(value, where, optional="left right pattern separator")
    value_part = ValuePart(**{key: a_text(text, f"{where}, {key}") for key, text in content.items()})
    if value_part.pattern:
        if value_part.left or value_part.right:
            raise unreadable(where, "has both a pattern and anchors, of which only one can count")
        if fault := pattern_fault(value_part.pattern):
            raise unreadable(where, fault)
    return value_part


def _evidence(value: object, where: str) -> RuleSupport:
    content = an_object(value, where, "examples wrong filled repeated")
    return RuleSupport(
        a_count(content, "examples", where),
        a_count(content, "wrong", where),
        a_share(content, "filled", where),
        a_share(content, "repeated", where),
    )


def _scorer(value: object, where: str) -> Scorer:
    content = an_object(value, where, "intercept takes_all weights")
    return Scorer(
        a_list(content["weights"], f"{where}, weight", _weight),
        _weight_of(content, "intercept", where),
        a_flag(content, "takes_all", where) is True,
    )


def _weight(value: object, where: str) -> tuple[str, float]:
    content = an_object(value, where, "name weight")
    name = a_text(content["name"], f"{where}, name")
    if not WEAK_NAME.fullmatch(name):
        raise unreadable(where, f"is for {quoted(name)}, which no node has")
    return name, _weight_of(content, "weight", where)


def _weight_of(content: dict[str, Any], key: str, where: str) -> float:
    value: Any = content[key]
    if not (is_integer(value) or isinstance(value, float)) or not abs(value) <= _LARGEST_WEIGHT:
        raise unreadable(where, f"must have a number of at most {_LARGEST_WEIGHT:,} as {key!r}")
    return float(value)


def _footprint(value: object, where: str = "the footprint") -> Footprint:
    content = an_object(value, where, "sites url_patterns masks accepted")
    return Footprint(
        a_list(content["sites"], f"{where}, site", a_text),
        a_list(content["url_patterns"], f"{where}, URL pattern", _url_pattern),
        a_list(content["masks"], f"{where}, mask", _mask),
        a_list(content["accepted"], f"{where}, accepted signature", _signature),
    )


def _url_pattern(value: object, where: str) -> str:
    text = a_text(value, where)
    if fault := url_pattern_fault(text):
        raise unreadable(where, fault)
    return text


def _mask(value: object, where: str) -> tuple[str, int]:
    content = an_object(value, where, "mask pages")
    text = a_text(content["mask"], f"{where}, mask")
    if not _MASK.fullmatch(text):
        raise unreadable(where, f"is {quoted(text)}, not a signature in which at most two bytes are '**'")
    return text, a_count(content, "pages", where, 1)


def _signature(value: object, where: str) -> str:
    text = a_text(value, where)
    if not _SIGNATURE.fullmatch(text):
        raise unreadable(where, f"is {quoted(text)}, not eight bytes in hexadecimal")
    return text
