"""What came of relearning wrappers: as rows, as a table, and in words with what is left to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.cli.change_words import by_state, named, say_wrapped
from siteloom.cli.difference_words import show_difference
from siteloom.cli.files import as_lines, write_text
from siteloom.output import STANDARD_OUTPUT, Column, flat_for
from siteloom.telling import percent, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from siteloom.cli.shell import Shell
    from siteloom.wrapper import Wrapper

_DEEP = ("attributes", "diff", "annotate")
_COLUMNS = (
    Column("wrapper"),
    Column("version", "integer"),
    Column("version_after", "integer"),
    Column("outcome"),
    Column("state"),
    Column("confidence", "number"),
    Column("reason"),
    *(Column(name) for name in _DEEP),
)
_FILE_COLUMNS = tuple(one for one in _COLUMNS if one.name not in ("version", "version_after", "state"))


class Found(NamedTuple):
    """What came of a wrapper; `state` is in words."""

    name: str
    state: str
    row: Mapping[str, Any]
    wrapper: Wrapper
    is_waiting: bool = False


def report(
    shell: Shell,
    output: str | None,
    examples: str | None,
    found: Sequence[Found],
    most: int | None = None,
) -> None:
    """Write and show what came of it, and say what is left to do."""
    if output is not None:
        columns = _COLUMNS if any("version" in one.row for one in found) else _FILE_COLUMNS
        shell.write(output, columns, (flat_for(output, one.row, _DEEP) for one in found))
    annotate = [line for one in found for line in one.row["annotate"]]
    if examples is not None:
        write_text(examples, as_lines(annotate))
    if found:
        shell.show(
            "Relearned", ("wrapper", "outcome", "state", "confidence", "attributes"), map(_table_row, found)
        )
    for one in found:
        _show(shell, one, most)
    if examples not in (None, STANDARD_OUTPUT) and annotate:
        pages = "page to annotate is" if len(annotate) == 1 else "pages to annotate are"
        say_wrapped(shell, f"The {pages} in {examples}, with what is known filled in.", hanging=0)
        shell.say(f"Complete the lines, then: siteloom learn --examples {examples}")


def _table_row(one: Found) -> tuple[object, ...]:
    attributes = one.row["attributes"]
    states = dict.fromkeys(known["state"] for known in attributes.values() if known["state"] != "kept")
    told = [f"{state}: {named(by_state(attributes, state))}" for state in states]
    return one.name, one.row["outcome"], one.state, percent(one.row["confidence"]), "; ".join(told)


def _show(shell: Shell, one: Found, most: int | None) -> None:
    diff, annotate = one.row["diff"], one.row["annotate"]
    if diff["rules"] or diff["values"]:
        shell.say(f"\n{one.name}:")
        show_difference(shell, diff["rules"], diff["values"], most)
    if one.is_waiting:
        shell.say("")
        least = f"{shell.settings.change.accept} %"
        say_wrapped(shell, f"{one.name}: the repair waits, for its confidence is below {least}.")
        shell.say(f"  To put it in force: siteloom relearn --accept {one.name}")
        shell.say(f"  To drop it:         siteloom relearn --reject {one.name}")
    if one.row.get("state") == "rejected":
        shell.say("")
        say_wrapped(shell, f"{one.name}: this very repair was rejected before, and is not proposed again.")
    if one.row.get("state") == "outdated":
        shell.say("")
        say_wrapped(
            shell,
            f"{one.name} got another version meanwhile, so that nothing of this is kept: run siteloom "
            "relearn again if it is still needed.",
        )
    if one.row["outcome"] == "needs-annotation":
        shell.say("")
        say_wrapped(shell, f"{one.name} needs examples: {_why(one)}.")
        if annotate:
            missing = named(by_state(one.row["attributes"], "unrepaired", "vanished"))
            pages = plural(len(annotate), "page")
            say_wrapped(
                shell, f"Look for {missing} on {pages}; --examples FILE writes what is known of them:", 2
            )
            for line in annotate:
                shell.say(f"    {line['url']}")


def _why(one: Found) -> str:
    """Why a person is needed, each reason once."""
    reasons: dict[str, list[str]] = {}
    for name, known in one.row["attributes"].items():
        if known["reason"]:
            reasons.setdefault(known["reason"].rstrip("."), []).append(name)
    told = [f"{named(names)}: {reason}" for reason, names in reasons.items()]
    return "; ".join(told) or one.row["reason"].rstrip(".")
