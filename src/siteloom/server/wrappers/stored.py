"""The wrappers of a workspace that can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.errors import WrapperError
from siteloom.upkeep.stored import loaded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from siteloom.matching import NamedWrapper
    from siteloom.store import StoredWrapper


def readable(stored: Iterable[StoredWrapper]) -> list[NamedWrapper]:
    """Wrappers ready for use; one of a later version, or one that is damaged, must not be in others' way."""
    found = []
    for one in stored:
        try:
            found.append(loaded(one))
        except WrapperError:
            continue
    return found
