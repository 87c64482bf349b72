"""The wrappers of a workspace: those that can be read, and their versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteloom.errors import NotFound, WrapperError
from siteloom.upkeep.stored import loaded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.matching import NamedWrapper
    from siteloom.store import Store, StoredWrapper


def readable(stored: Iterable[StoredWrapper]) -> list[NamedWrapper]:
    """Wrappers ready for use; one of a later version, or one that is damaged, must not be in others' way."""
    found = []
    for one in stored:
        try:
            found.append(loaded(one))
        except WrapperError:
            continue
    return found


def stored_version(store: Store, name: str, version: int | None) -> StoredWrapper:
    """A version of a wrapper, the newest unless one is named."""
    return version_of(store.wrapper_versions(name), version)


def version_of(versions: Sequence[StoredWrapper], number: int | None) -> StoredWrapper:
    """One of the versions of a wrapper, the newest unless one is named."""
    if number is None:
        return versions[-1]
    for one in versions:
        if one.version == number:
            return one
    known = ", ".join(str(one.version) for one in versions)
    raise NotFound(f"There is no version {number} of the wrapper {versions[-1].name}: there are {known}.")
