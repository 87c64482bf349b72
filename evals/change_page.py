"""docs/evaluation/change.md: each evaluation of change writes its own section and leaves the others."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs" / "evaluation"
PAGE = DOCS / "change.md"

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


class Section(StrEnum):
    """The sections, in their order."""

    SITES = "Sites over time"
    THRESHOLDS = "Thresholds"
    MUTATIONS = "Seeded changes of the built-in guide"
    CHANGED_SITES = "Real sites with other markup"
    LIFETIME = "How long wrappers live"


_OPENING = """\
# How wrappers live with change

Made, with its plot, by

    make eval    # or: python -m evals DATA --only NAME, with change, mutations, changed-sites or lifetime

A value is right if exactly the true values of its page were extracted; blanks apart, the texts must be the
same. An attribute *breaks* if it is wrong on more than 5 % of the pages on which it was right before. Nobody
annotates anything but five pages of the first visit, unless it says so.
"""

_LIMITS = """\
## Limits

- Four real sites over time are few, and only two of them changed in a way that breaks rules. The other
  sections make up for the number, but their changes are made by programs: people redesign sites with more
  imagination.
- A repair can say only what the records say. Where the records were wrong before the change, or the site has
  changed its mind about a value at the same time, the new rules repeat the old values.
- Values that change between visits, such as prices, are noticed to be lost or to look different. One
  changing value that silently takes the place of another of the same kind, such as a date, is not noticed.
- What is measured by breaking is what rules lose. Values that a page has only since the change, or that no
  wrapper was asked for, are no part of it.
"""


def write_section(section: Section, body: str) -> None:
    """Put a section in its place; those that have not been made yet are missing."""
    bodies = _bodies() | {section: body}
    parts = [
        _OPENING,
        *(f"## {name}\n\n{bodies[name].strip()}\n" for name in Section if name in bodies),
        _LIMITS,
    ]
    DOCS.mkdir(parents=True, exist_ok=True)
    PAGE.write_text("\n".join(parts), encoding="utf-8")


def _bodies() -> dict[str, str]:
    if not PAGE.exists():
        return {}
    _, *found = _HEADING.split(PAGE.read_text(encoding="utf-8"))
    return dict(zip(found[::2], found[1::2], strict=True))
