"""What the query strings of requests may say."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from siteloom.server.addresses import LARGEST_ID

LONGEST_TEXT = 2_000
"""Characters of a text: far more than anything that people ask for."""

LARGEST_NUMBER = 2**31 - 1
"""The largest number that columns of databases have, if they are not ids."""


def _none_if_empty(given: object) -> object:
    """Forms send what was left empty, too."""
    return given or None


LeftEmpty = BeforeValidator(_none_if_empty)
"""What may be left empty. Bounds stand inside of the union with None, for they do not hold for None."""

Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Id = Annotated[int, Field(ge=1, le=LARGEST_ID)]
Place = Annotated[int, Field(ge=0, le=LARGEST_ID)]
"""A number that is counted from 0."""

Share = Annotated[float, Field(ge=0, le=1)]
VersionNumber = Annotated[int, Field(ge=1, le=LARGEST_NUMBER)]
