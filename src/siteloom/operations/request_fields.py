"""Which fields of requests jobs may set, and which fields of results are stored with a job.

A request field of a type that is not listed here can only be set by the command line and by Python. The web
application, for instance, must never let a visitor name a file of the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar

FieldKind: TypeAlias = Literal[
    "site",
    "sites",
    "sites or urls",
    "cluster",
    "wrapper",
    "text",
    "texts",
    "url",
    "urls",
    "number",
    "flag",
    "texts by name",
]
"""What a field holds: the name of something that must exist, or a value."""


class JobField(NamedTuple):
    """Marks a field that jobs may set.

    `argument` is what jobs call it, if not by the name of the field. A field of several names can so have an
    argument that names one.
    """

    kind: FieldKind
    argument: str | None = None


Site: TypeAlias = Annotated[str, JobField("site")]
Sites: TypeAlias = Annotated[tuple[str, ...], JobField("sites")]
SitesOrUrls: TypeAlias = Annotated[tuple[str, ...], JobField("sites or urls")]
ClusterName: TypeAlias = Annotated[str, JobField("cluster")]
WrapperName: TypeAlias = Annotated[str, JobField("wrapper")]
Wrappers: TypeAlias = Annotated[tuple[str, ...], JobField("wrapper", "wrapper")]
Text: TypeAlias = Annotated[str, JobField("text")]
Texts: TypeAlias = Annotated[tuple[str, ...], JobField("texts")]
Url: TypeAlias = Annotated[str, JobField("url")]
Urls: TypeAlias = Annotated[tuple[str, ...], JobField("urls")]
Number: TypeAlias = Annotated[int, JobField("number")]
Flag: TypeAlias = Annotated[bool, JobField("flag")]
TextsByName: TypeAlias = Annotated[Mapping[str, str], JobField("texts by name")]


class _NotValidated:
    """Keeps pydantic from looking inside a type: results of jobs never have a value of it."""

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415 - comes with the extra server

        return core_schema.any_schema()


_Value = TypeVar("_Value")
Unstored: TypeAlias = Annotated[_Value, _NotValidated()]
"""The type of a result field that is NOT_STORED, where JSON could not hold it."""

NOT_STORED: Mapping[str, bool] = MappingProxyType({"stored": False})
"""Metadata of a result field that is not stored with a job: it is large, or JSON cannot hold it."""
