"""Makes docs/evaluation.md: tables and charts of kept figures, those of `make eval` and of `make bench`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import siteloom
from evals.comparison_sections import DOCUMENT, PART, SECTIONS
from evals.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evals.comparison_sections import Name
    from evals.peers import Peer

OWN = "Siteloom"
DOCS = Path(__file__).parents[1] / "docs"

Better = Literal["more", "less", "neither"]


@dataclass(frozen=True, slots=True)
class Contestant:
    """A column: Siteloom, or another program, and its version; a method without a program has none."""

    name: str
    version: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether it is Siteloom, by default or otherwise."""
        return self.name.startswith(OWN)


@dataclass(frozen=True, slots=True)
class Measure:
    """A row: a value for each contestant, or None where it has none, and whether more is better."""

    what: str
    values: tuple[float | None, ...]
    better: Better = "more"
    form: str = ".3f"

    def shown(self) -> list[str]:
        """The values as they are written, the best ones bold; values that are written alike are as good."""
        texts = ["" if value is None else format(value, self.form) for value in self.values]
        best = self.best()
        if best is None:
            return texts
        return [f"**{text}**" if text == format(best, self.form) else text for text in texts]

    def best(self) -> float | None:
        """The best value, if there is any."""
        known = [value for value in self.values if value is not None]
        if self.better == "neither" or not known:
            return None
        return max(known) if self.better == "more" else min(known)


@dataclass(frozen=True, slots=True)
class Part:
    """A comparison: what is on the page as figures, and what is written around them.

    The first contestant is Siteloom as it is by default. `facts` fill the gaps in the text of the section,
    `notes` say what failed.
    """

    contestants: tuple[Contestant, ...]
    measures: tuple[Measure, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    measured: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())


def contestants_of(peers: Mapping[str, Peer | None]) -> tuple[Contestant, ...]:
    """Columns by their names, with the versions of the programs."""
    own = f"{OWN} {siteloom.__version__}"
    return tuple(
        Contestant(name, peer.version if peer else own if name.startswith(OWN) else "")
        for name, peer in peers.items()
    )


def left_out(reasons: Mapping[str, str | None]) -> tuple[str, ...]:
    """Notes about programs that have no column."""
    return tuple(f"{name} is left out: {reason}." for name, reason in reasons.items() if reason)


def keep(name: Name, part: Part, docs: Path = DOCS) -> str:
    """Keep the figures of a part, and make its chart and the whole page anew. Returns its section."""
    from evals.plots import plot_compared  # noqa: PLC0415 - loads matplotlib

    file = docs / "evaluation" / "comparison.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    kept[name] = asdict(part)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    plot_compared(part, _charted(name, part), file.with_name(f"compared-{name}.svg"))
    document = page({one: part_of(kept[one]) for one in SECTIONS if one in kept})
    (docs / "evaluation.md").write_text(document, encoding="utf-8")
    return _section(name, part)


def page(parts: Mapping[Name, Part]) -> str:
    """The page."""
    return DOCUMENT.format(
        losses=_losses(parts),
        sections="\n".join(_section(name, part) for name, part in parts.items()),
    )


def part_of(kept: Mapping[str, Any]) -> Part:
    """A part as it was kept."""
    return Part(
        tuple(Contestant(**one) for one in kept["contestants"]),
        tuple(Measure(**{**one, "values": tuple(one["values"])}) for one in kept["measures"]),
        kept["facts"],
        tuple(kept["notes"]),
        kept["measured"],
    )


def _charted(name: Name, part: Part) -> list[str]:
    return [what.format(**part.facts) for what in SECTIONS[name].charted]


def _section(name: Name, part: Part) -> str:
    section = SECTIONS[name]
    versions = dict.fromkeys(one.version for one in part.contestants if one.version)
    notes = [*part.notes, f"Versions: {'; '.join(versions)}."]
    return PART.format(
        title=section.title,
        text=section.text.format(**part.facts),
        chart=f"![{section.title}: {', '.join(_charted(name, part))}](evaluation/compared-{name}.svg)",
        table=table(
            ("", *(one.name for one in part.contestants)),
            [(measure.what, *measure.shown()) for measure in part.measures],
        ),
        notes="\n".join(f"- {note}" for note in notes),
        measured=part.measured,
        command=section.command,
    )


def _losses(parts: Mapping[Name, Part]) -> str:
    rows = [row for name, part in parts.items() for row in _lost(SECTIONS[name].title, part)]
    judged = sum(measure.better != "neither" for part in parts.values() for measure in part.measures)
    if not rows:
        return f"In none of {judged} rows."
    return f"In {len(rows)} of {judged} rows.\n\n" + table(
        ("", "row", "Siteloom, by default", "best of Siteloom's other methods", "best of the others"), rows
    )


def _lost(title: str, part: Part) -> Iterator[tuple[str, ...]]:
    """The rows in which another program is better than Siteloom is by default, as they are written."""
    for measure in part.measures:
        best = measure.best()
        own = measure.values[0]
        if best is None or own is None or format(own, measure.form) == format(best, measure.form):
            continue
        others = {
            contestant.name: value
            for contestant, value in zip(part.contestants[1:], measure.values[1:], strict=True)
            if value is not None
        }
        ours = {name: value for name, value in others.items() if Contestant(name).is_ours}
        theirs = {name: value for name, value in others.items() if name not in ours}
        if theirs and _is_better(_best_of(theirs, measure)[1], own, measure):
            yield (
                title,
                measure.what,
                format(own, measure.form),
                _written(ours, measure),
                _written(theirs, measure),
            )


def _is_better(one: float, other: float, measure: Measure) -> bool:
    return one > other if measure.better == "more" else one < other


def _best_of(values: Mapping[str, float], measure: Measure) -> tuple[str, float]:
    choose = max if measure.better == "more" else min
    return choose(values.items(), key=lambda item: item[1])


def _written(values: Mapping[str, float], measure: Measure) -> str:
    if not values:
        return ""
    name, value = _best_of(values, measure)
    return f"{format(value, measure.form)} ({name})"
