"""What attributes may be called."""

from __future__ import annotations

from siteloom.errors import UsageError

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
