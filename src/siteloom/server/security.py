"""Who asks, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Depends

Role = Literal["viewer", "editor", "admin"]


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who sent a request: an account, or whoever sits at this machine as long as there are no accounts."""

    name: str
    role: Role
    csrf: str


def _visitor() -> Visitor:
    return Visitor("local", "admin", "")


Viewer = Annotated[Visitor, Depends(_visitor)]
Editor = Annotated[Visitor, Depends(_visitor)]
Admin = Annotated[Visitor, Depends(_visitor)]
