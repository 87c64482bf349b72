"""Records as the rows of a flat table, with a column for each attribute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.model import Attribute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from siteloom.record_rows.rows import Row


def column_names(
    attributes: Sequence[str], taken: Iterable[str], fitted: Callable[[str], str] = str
) -> list[str]:
    """The names of the attributes' columns: their own, or `values.NAME` where another column has that one.

    Names that differ only in case are the same, as they are to most databases.
    `fitted` is what becomes of a name that is not possible as it is.
    """
    known = {"", *(name.lower() for name in taken)}
    names = []
    for attribute in attributes:
        name = attribute
        while fitted(name).lower() in known:
            name = f"values.{name}"
        known.add(fitted(name).lower())
        names.append(fitted(name))
    return names


def lowest_confidence(row: Row) -> float | None:
    """The confidence of the least sure value; None if there is no value."""
    return min((value for values in row["confidence"].values() for value in values), default=None)


def common_schema(schemas: Iterable[Mapping[str, Attribute]]) -> dict[str, Attribute]:
    """What holds of attributes of one name in several schemas: where their types differ, they are text."""
    common: dict[str, Attribute] = {}
    for schema in schemas:
        for name, one in schema.items():
            other = common.get(name, one)
            is_one_type = (one.type or "text") == (other.type or "text")
            common[name] = Attribute(
                multi=bool(one.multi or other.multi), type=one.type if is_one_type else "text"
            )
    return common
