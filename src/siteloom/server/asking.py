"""What requests may say, and how programs are told what there is not."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from siteloom.server.addresses import LARGEST_ID

LONGEST_TEXT = 2_000
"""Characters of a text: far more than anything that people ask for."""

LARGEST_NUMBER = 2**31 - 1
"""The largest number that columns of databases have, if they are not ids."""


_MOST_DIGITS = len(str(LARGEST_ID))


def whole_number(text: object) -> int | None:
    """The number that a field of a form has, if it is one that can be looked for."""
    is_number = isinstance(text, str) and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(str(text)) if is_number else None


def _none_if_empty(given: object) -> object:
    """Forms send what was left empty, too."""
    return given or None


Id = Annotated[int, Field(ge=1, le=LARGEST_ID)]
VersionNumber = Annotated[int, Field(ge=1, le=LARGEST_NUMBER)]

# What may be left empty. Bounds stand inside of the union with None, for they do not hold for None.
_LeftEmpty = BeforeValidator(_none_if_empty)
TextIfAny = Annotated[Annotated[str, Field(max_length=LONGEST_TEXT)] | None, _LeftEmpty]
IdIfAny = Annotated[Id | None, _LeftEmpty]
PlaceIfAny = Annotated[Annotated[int, Field(ge=0, le=LARGEST_ID)] | None, _LeftEmpty]
"""A number that is counted from 0."""

ShareIfAny = Annotated[Annotated[float, Field(ge=0, le=1)] | None, _LeftEmpty]
VersionIfAny = Annotated[VersionNumber | None, _LeftEmpty]


def not_found(when: str = "There is none of this name.") -> dict[int | str, dict[str, Any]]:
    """What the description of the API says of answers to requests for what is not there."""
    return {404: {"description": when}}


def too_often(when: str) -> dict[int | str, dict[str, Any]]:
    """What it says of answers to requests that came too often."""
    return {429: {"description": when}}
