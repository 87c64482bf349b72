"""What is done to Siteloom, and what came of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path  # noqa: TC003 - the fields of a NamedTuple are read at run time
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Ordeal:
    """One thing that was done, how often, and whether Siteloom bore it."""

    what: str  # kill -9 while ingesting, SQLite
    how_often: str  # 300 kills
    found: str  # nothing lost, nothing twice; 214 within a commit
    is_borne: bool
    seconds: float


class Plan(NamedTuple):
    """How much is done, from where chance starts, and a folder for what it takes.

    An effort of 1 is what `make torture` does; tests do with a hundredth, or whatever a part can do at least.
    """

    effort: float
    seed: int
    folder: Path

    def times(self, count: int, at_least: int = 1) -> int:
        """So many of what full effort does `count` times."""
        return max(at_least, round(count * self.effort))


class Part(Protocol):
    """A module of this package that does something to Siteloom."""

    TITLE: str

    def ordeals(self, plan: Plan) -> Iterator[Ordeal]:
        """Do it, and tell of each thing as soon as it is done."""


@dataclass(frozen=True, slots=True)
class PartReport:
    """All that a part did in one run, and what it was run with."""

    title: str
    seed: int
    effort: float
    at: str
    versions: str
    ordeals: Sequence[Ordeal]

    def to_json(self) -> str:
        """The report as `from_json` reads it."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> PartReport:
        """The report that `to_json` wrote."""
        content = json.loads(text)
        ordeals = [Ordeal(**one) for one in content["ordeals"]]
        others = {field.name: content[field.name] for field in fields(cls) if field.name != "ordeals"}
        return cls(**others, ordeals=ordeals)


def as_section(report: PartReport) -> str:
    """A part of the page that people read."""
    rows = "\n".join(
        f"| {one.what} | {one.how_often} | {one.found} | {'yes' if one.is_borne else '**no**'} "
        f"| {one.seconds:,.0f} |"
        for one in report.ordeals
    )
    effort = "" if report.effort == 1 else f" Only {report.effort:g} of the full count."
    return (
        f"## {report.title}\n\nSeed {report.seed}, {report.at}. {report.versions}.{effort}\n\n"
        f"| what | how often | found | borne | seconds |\n|---|---|---|---|---|\n{rows}\n"
    )


def as_page(introduction: str, reports: Iterable[PartReport]) -> str:
    """The whole page."""
    return "\n".join([introduction, *map(as_section, reports)])
