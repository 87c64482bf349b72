"""What docs/evaluation/change.md says of seeded changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evals import scrapling_peer
from evals.change_scores import BROKEN
from evals.mutations_outcome import OURS, PEER_PAGES, PEER_WAYS, mean
from evals.tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evals.mutations_outcome import Outcome

_SECTION = """\
The restaurants of the built-in guide, met half a year later after a change of their markup: {changes} changes
of {kinds} kinds. Prices, reviews and advertisements are others by then, too. Changes that break a constant
attribute, or much of a changing one, must be *noticed*; an alarm is false if nothing breaks. *Mended* are
changes said to be repaired, after which more than {mended:.0%} of the values of the attributes that broke are
right. *Right* is the share of these values that are right with the wrapper in use then, repaired or not; in
the last column on pages that played no part in the repair.

{by_kind}

An attribute that was removed cannot come back, so there needs-annotation is the right answer.

### Against Scrapling

{pages} pages for each change, the same for all, and only values that broke. A value is right if exactly the
true texts were found, for both. The two columns behind the number of values are Siteloom's. Scrapling
({scrapling}) saves the very element that held each value before the change. *As documented*, it has one
such element for the site, and Siteloom's XPath as the selector, and looks for the element only where the
XPath finds nothing. *At its best*, it has one for each page, and looks for it on every page, whatever the
XPath finds; so it cannot be asked about pages that were not there before the change, and does not say when to
look. Siteloom needs the records of some pages, and its new rules are for all.

{comparison}

At its best, Scrapling mends each page by itself, so a few pages with another layout do not trouble it; a new
rule of Siteloom must hold on nearly all pages, or it is refused and a person is asked. But Scrapling looks
for an element like the old one, and loses values that move to another kind of element."""


def section(outcomes: Sequence[Outcome], missing: str | None) -> str:
    """The section; `missing` says why Scrapling is not in it, if it is not."""
    return _SECTION.format(
        changes=len(outcomes),
        kinds=len(_kinds(outcomes)),
        mended=1 - BROKEN,
        by_kind=_by_kind(outcomes),
        pages=PEER_PAGES,
        scrapling=", ".join(scrapling_peer.PEER.requirements),
        comparison=f"Scrapling is left out, as it could not be installed: {missing}"
        if missing
        else _comparison(outcomes),
    )


def _kinds(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(outcome.kind for outcome in outcomes))


def _by_kind(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for kind in (*_kinds(outcomes), None):
        own = [outcome for outcome in outcomes if kind in (None, outcome.kind)]
        found = [outcome for outcome in own if outcome.must_be_found]
        repairable = [outcome for outcome in found if outcome.broken]
        rows.append(
            [
                kind or "**together**",
                _of([bool(outcome.alarms) for outcome in found]),
                _of([bool(outcome.alarms) for outcome in own if outcome.is_harmless]),
                _of([outcome.outcome == "needs-annotation" for outcome in found]),
                _of([outcome.is_mended for outcome in repairable]),
                *(
                    _share(mean([share or 0 for share in shares]) if shares else None)
                    for shares in (
                        [outcome.again for outcome in repairable],
                        [outcome.again_unseen for outcome in repairable],
                    )
                ),
            ]
        )
    return table(
        ["change", "noticed", "false alarms", "needs annotation", "mended", "right", "right, unseen pages"],
        rows,
    )


def _comparison(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for kind in (*_kinds(outcomes), None):
        own = [outcome for outcome in outcomes if kind in (None, outcome.kind)]
        shares = []
        for way in (*OURS, *PEER_WAYS):
            right = [is_right for outcome in own for is_right in outcome.compared.get(way, ())]
            shares.append(f"{mean(right):.3f}" if right else "")
        values = sum(len(outcome.compared[OURS[0]]) for outcome in own)
        if values:
            rows.append([kind or "**together**", str(values), *shares])
    return table(["change", "values that broke", *(f"`{way}`" for way in OURS), *PEER_WAYS], rows)


def _of(answers: Sequence[bool]) -> str:
    return f"{sum(answers)} of {len(answers)}" if answers else ""


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.3f}"


def all_outcomes(outcomes: Sequence[Outcome]) -> str:
    """Every change; to be printed only."""
    return table(
        [
            "mutation",
            "broke",
            "alarms",
            "outcome",
            "right",
            "repaired",
            "unseen",
            "again",
            "again, unseen",
            "worse",
        ],
        [
            [
                outcome.mutation,
                ", ".join(
                    [f"{name} {share:.0%}" for name, share in outcome.broken.items()]
                    + [f"{name} gone" for name in outcome.dropped if name not in outcome.broken]
                ),
                "; ".join(f"{alarm.test} {', '.join(alarm.attributes)}" for alarm in outcome.alarms),
                outcome.outcome
                if outcome.confidence is None
                else f"{outcome.outcome} {outcome.confidence:.2f}",
                f"{outcome.right:.3f}",
                f"{outcome.repaired:.3f}",
                f"{outcome.unseen:.3f}",
                _share(outcome.again),
                _share(outcome.again_unseen),
                ", ".join(outcome.worse),
            ]
            for outcome in outcomes
        ],
    )
