"""Changes of sites: in words for a person, as rows, and as alarms."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from siteloom.output import Column, flat_for
from siteloom.telling import percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from siteloom.cli.shell import Shell
    from siteloom.model import Change, Evidence

WIDTH = 80
"""So wide is a terminal at the least."""

CHANGE_COLUMNS = (
    Column("wrapper"),
    Column("test"),
    Column("attributes", "texts"),
    Column("share", "number"),
    Column("evidence"),
)

_PAGES_SHOWN = 3
_ATTRIBUTES_SHOWN = 4


def write_changes(shell: Shell, destination: str | None, changes: Iterable[Change]) -> None:
    """Write a line for each change to `-o`, if it was given."""
    if destination is not None:
        rows = (flat_for(destination, row, ("evidence",)) for row in change_rows(changes))
        shell.write(destination, CHANGE_COLUMNS, rows)


def change_rows(changes: Iterable[Change]) -> list[dict[str, object]]:
    """Changes as rows of output."""
    from siteloom.upkeep import change_row

    return [change_row(change) for change in changes]


def raise_alarm(shell: Shell, changes: Sequence[Change]) -> None:
    """Tell of changes wherever the settings say; what cannot be told is said here."""
    from siteloom import alarms

    for problem in alarms.raise_alarm(change_rows(changes), shell.settings.alarm):
        shell.warn(problem)


def show_changes(shell: Shell, changes: Sequence[Change]) -> None:
    """Say what changed, with what was seen on a few pages."""
    for name in dict.fromkeys(change.wrapper for change in changes):
        shell.say(f"\n{readable(name)} has changed:")
        for change in changes:
            if change.wrapper == name:
                _show_change(shell, change)


def _show_change(shell: Shell, change: Change) -> None:
    from siteloom.monitoring.words import change_sentence

    of_output = not any(one.url for one in change.evidence)
    sentence = change_sentence(
        change.test, named(change.attributes), percent(change.share), is_of_output=of_output
    )
    say_wrapped(shell, sentence, 2)
    if of_output:
        for one in change.evidence:
            say_wrapped(shell, _output_words(one), 4)
        return
    shown = (*change.attributes[:_ATTRIBUTES_SHOWN], "")
    for url, seen in _by_page([one for one in change.evidence if one.attribute in shown]).items():
        shell.say(f"    {readable(url)}")
        for line in (line for one in seen if one.attribute for line in _evidence_lines(one)):
            shell.say(line)
    if change.test != "shingle" and (more := len(change.attributes) - _ATTRIBUTES_SHOWN) > 0:
        shell.say(f"    {plural(more, 'more attribute')}: -o FILE has what was seen of each.")


def _by_page(evidence: Iterable[Evidence]) -> dict[str, list[Evidence]]:
    """What was seen, by the first few pages that it was seen on."""
    pages: dict[str, list[Evidence]] = {}
    for one in evidence:
        if one.url in pages or len(pages) < _PAGES_SHOWN:
            pages.setdefault(one.url, []).append(one)
    return pages


def _evidence_lines(one: Evidence) -> Iterator[str]:
    name = readable(one.attribute)
    room = WIDTH - len(name) - len("      , before: ")
    yield f"      {name}, before: {values_words(one.before, room)}"
    yield f"      {name}, now:    {values_words(one.after, room)}"
    if one.finding:
        yield f"        {readable(one.finding, WIDTH - 8)}"


def _output_words(one: Evidence) -> str:
    """What was counted: shares before and now, if there were any before."""
    now = f"{', '.join(one.after)} now" if one.after else "nothing now"
    shares = f"{', '.join(one.before)} before, {now}" if one.before else now
    about = f"{readable(one.attribute)}, " if one.attribute else ""
    return f"{about}{readable(one.finding)}: {shares}"


def values_words(texts: Sequence[str], room: int = WIDTH) -> str:
    """Some values, shortened to the room that there is."""
    return readable(" | ".join(texts), room) if texts else "nothing"


def readable(text: str, room: int | None = None) -> str:
    """A text with all that is not seen escaped, for it comes from others; cut if there is no room for it."""
    shown = "".join(
        character if character.isprintable() else character.encode("unicode_escape", "replace").decode()
        for character in text
    )
    return shown if room is None or len(shown) <= room else f"{shown[: max(1, room - 3)]}..."


def say_wrapped(shell: Shell, text: str, indent: int = 0, hanging: int = 2) -> None:
    """Say something that may be long, in lines that a terminal has room for."""
    lines = wrap(
        text.replace(" %", "\xa0%"),
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hanging),
        break_long_words=False,
        break_on_hyphens=False,
    )
    shell.say("\n".join(lines).replace("\xa0%", " %"))


def named(names: Iterable[str]) -> str:
    """Names in one line."""
    return ", ".join(map(readable, names))


def by_state(attributes: Mapping[str, Mapping[str, object]], *states: str) -> list[str]:
    """The attributes of which relearning says one of these."""
    return [name for name, one in attributes.items() if one["state"] in states]
