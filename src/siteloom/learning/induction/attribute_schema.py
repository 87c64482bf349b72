"""Declared or inferred properties of attributes; valid attribute names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, get_args

from siteloom.core.errors import UsageError
from siteloom.core.model import Attribute, ValueType
from siteloom.core.values.type_inference import infer_type

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


# Attributes of these types change while the record stays what it is.
_CHANGING_TYPES = frozenset({"price", "rating"})
_MANDATORY_SHARE = 0.98  # of the other pages; every crawl has a few odd ones


def parse_schema(schema: Mapping[str, Attribute | Mapping[str, object]] | None) -> dict[str, Attribute]:
    """Return the schema as attributes; each may be written as a mapping: {"price": {"type": "price"}}."""
    attributes = {}
    property_names = {field.name for field in fields(Attribute)}
    for name, declaration in (schema or {}).items():
        properties = asdict(declaration) if isinstance(declaration, Attribute) else declaration
        if not isinstance(properties, Mapping):
            raise UsageError(
                f"The schema says {properties!r} of {name}: "
                f"write it as an object with {', '.join(sorted(property_names))}."
            )
        if unknown := set(properties) - property_names:
            raise UsageError(
                f"The schema says {min(unknown)!r} of {name}: it can say {', '.join(sorted(property_names))}."
            )
        for property_name, value in properties.items():
            _check_value(name, property_name, value)
        attributes[name] = Attribute(**properties)
    return attributes


def _check_value(name: str, property_name: str, value: object) -> None:
    if value is None:
        return
    if property_name == "type" and value not in get_args(ValueType):
        raise UsageError(
            f"The schema says that {name} is of type {value!r}: it can be {', '.join(get_args(ValueType))}."
        )
    if property_name != "type" and not isinstance(value, bool):
        raise UsageError(f"The schema says {value!r} for {property_name} of {name}: it can be true or false.")


def infer_properties(
    declared: Attribute,
    *,
    is_multi: bool,
    is_absent_somewhere: bool,
    filled: float,
    texts: Sequence[str],
    sources: Collection[str],
) -> Attribute:
    """Return the attribute with its undeclared properties inferred."""
    kind = declared.type or infer_type(texts, sources)
    is_mandatory = not is_absent_somewhere and filled >= _MANDATORY_SHARE
    return replace(
        declared,
        multi=is_multi if declared.multi is None else declared.multi,
        mandatory=is_mandatory if declared.mandatory is None else declared.mandatory,
        constant=kind not in _CHANGING_TYPES if declared.constant is None else declared.constant,
        type=kind,
    )


_LONGEST_NAME = 100


def checked_name(name: str) -> str:
    """Return the name with its white space normalised; raise UsageError if it is not a valid name."""
    name = " ".join(name.split())
    if not name:
        raise UsageError("An attribute needs a name, such as price.")
    if len(name) > _LONGEST_NAME:
        raise UsageError(f"The name of an attribute has at most {_LONGEST_NAME} characters.")
    if name.startswith("_"):
        raise UsageError(f"The name {name} begins with _, which is reserved for metadata of records.")
    if "/" in name or name in (".", ".."):
        raise UsageError(f"The name {name} would be lost in URLs: use words without slashes.")
    return name
