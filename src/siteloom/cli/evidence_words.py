"""What speaks for the attributes of a site that known records were looked for on, in words and as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteloom.cli.change_words import named, readable, say_wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteloom.cli.shell import Shell
    from siteloom.redundancy.outcome import AttributeEvidence, Verdict

_VERDICTS: tuple[Verdict, ...] = ("accepted", "suggested", "refused")


def show_evidence(shell: Shell, attributes: Mapping[str, AttributeEvidence]) -> None:
    """Show what speaks for those attributes that are found, and name the others."""
    found = {name: one for name, one in attributes.items() if one.verdict != "refused"}
    if found:
        rows = [
            (name, one.verdict, one.pairs, f"{one.agreement:.0%}", f"{one.shuffled:.0%}", f"{one.filled:.0%}")
            for name, one in found.items()
        ]
        shell.show("Evidence", ("attribute", "verdict", "pairs", "agree", "chance", "filled"), rows)
    for name, one in found.items():
        if one.verdict == "suggested":
            say_wrapped(shell, f"{readable(name)} is only suggested: {one.reason}.")
    refused: dict[str, list[str]] = {}
    for name in _of_verdict(attributes, "refused"):
        refused.setdefault(attributes[name].reason, []).append(name)
    for reason, names in refused.items():
        say_wrapped(shell, f"Refused ({reason}): {named(names)}.")


def say_verdicts(shell: Shell, attributes: Mapping[str, AttributeEvidence]) -> None:
    """Name the attributes of each verdict, in a line."""
    for verdict in _VERDICTS:
        if names := _of_verdict(attributes, verdict):
            say_wrapped(shell, f"{verdict}: {named(names)}", 2)


def evidence_row(attributes: Mapping[str, AttributeEvidence]) -> dict[str, dict[str, Any]]:
    """What speaks for each attribute, as data."""
    return {name: one._asdict() for name, one in attributes.items()}


def _of_verdict(attributes: Mapping[str, AttributeEvidence], verdict: Verdict) -> list[str]:
    return [name for name, one in attributes.items() if one.verdict == verdict]
