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
_MANDATORY_SHARE = 0.98  # of the other pages; a few odd ones are in every crawl


def given_schema(schema: Mapping[str, Attribute | Mapping[str, object]] | None) -> dict[str, Attribute]:
    """The schema as attributes; each may be written as a mapping: {"price": {"type": "price"}}."""
    found = {}
    known = {field.name for field in fields(Attribute)}
    for name, given in (schema or {}).items():
        told = asdict(given) if isinstance(given, Attribute) else given
        if not isinstance(told, Mapping):
            raise UsageError(
                f"The schema says {told!r} of {name}: write it as an object with {', '.join(sorted(known))}."
            )
        if unknown := set(told) - known:
            raise UsageError(
                f"The schema says {min(unknown)!r} of {name}: it can say {', '.join(sorted(known))}."
            )
        for what, value in told.items():
            _check_value(name, what, value)
        found[name] = Attribute(**told)
    return found


def _check_value(name: str, what: str, value: object) -> None:
    if value is None:
        return
    if what == "type" and value not in get_args(ValueType):
        raise UsageError(
            f"The schema says that {name} is of type {value!r}: it can be {', '.join(get_args(ValueType))}."
        )
    if what != "type" and not isinstance(value, bool):
        raise UsageError(f"The schema says {value!r} for {what} of {name}: it can be true or false.")


def inferred(
    given: Attribute,
    *,
    is_multi: bool,
    is_absent_somewhere: bool,
    filled: float,
    texts: Sequence[str],
    sources: Collection[str],
) -> Attribute:
    """An attribute with all that was left open filled in."""
    kind = given.type or infer_type(texts, sources)
    is_mandatory = not is_absent_somewhere and filled >= _MANDATORY_SHARE
    return replace(
        given,
        multi=is_multi if given.multi is None else given.multi,
        mandatory=is_mandatory if given.mandatory is None else given.mandatory,
        constant=kind not in _CHANGING_TYPES if given.constant is None else given.constant,
        type=kind,
    )


_LONGEST_NAME = 100


def checked_name(name: str) -> str:
    """The name of an attribute as it is kept, or one sentence about why it cannot be called so."""
    name = " ".join(name.split())
    if not name:
        raise UsageError("An attribute needs a name, such as price.")
    if len(name) > _LONGEST_NAME:
        raise UsageError(f"The name of an attribute has at most {_LONGEST_NAME} characters.")
    if name.startswith("_"):
        raise UsageError(f"The name {name} begins with _, which is kept for what records tell of themselves.")
    if "/" in name or name in (".", ".."):
        raise UsageError(f"The name {name} would be lost in addresses of the web: use words, and no slashes.")
    return name
