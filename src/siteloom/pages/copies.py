"""What is read of a copy, told of what it is a copy of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from siteloom.model import Failure, Skipped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from siteloom.model import Page, Resource


def told_of(
    place: str, items: Iterable[Page | Resource | Failure | Skipped], copy: Path
) -> Iterator[Page | Resource | Failure | Skipped]:
    """The items of a copy, failures and what was skipped with the name of the place in that of the copy."""
    for item in items:
        if isinstance(item, Failure):
            url, detail = (text.replace(str(copy), place) for text in (item.url, item.detail))
            yield replace(item, url=url, detail=detail)
        elif isinstance(item, Skipped):
            yield replace(item, url=item.url.replace(str(copy), place))
        else:
            yield item
