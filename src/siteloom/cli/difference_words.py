"""What differs between two versions of a wrapper, for a person to read before saying yes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteloom.cli.change_words import WIDTH, readable, say_wrapped, values_words
from siteloom.telling import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from siteloom.cli.shell import Shell

# Of many attributes one page each is enough to read.
_PAGES_SHOWN, _FEW_ATTRIBUTES = 3, 3


def show_difference(
    shell: Shell,
    rules: Sequence[Mapping[str, Any]],
    values: Sequence[Mapping[str, Any]],
    most: int | None = None,
) -> None:
    """Say for each attribute how it was found before and is now, and with which values on a few pages.

    If there may be so many attributes at most, of the others only the number is told.
    """
    changed = {one["attribute"]: one for one in rules}
    names = list(dict.fromkeys((*changed, *(one["attribute"] for one in values))))
    pages = _PAGES_SHOWN if len(names) <= _FEW_ATTRIBUTES else 1
    for name in names[:most]:
        shell.say(f"  {readable(name)}")
        if name in changed:
            _show_rules(shell, "before: ", changed[name]["before"])
            _show_rules(shell, "now:    ", changed[name]["after"])
        for one in [one for one in values if one["attribute"] == name][:pages]:
            _show_value(shell, one)
    if most is not None and len(names) > most:
        shell.say(f"  {plural(len(names) - most, 'more attribute')}")


def _show_rules(shell: Shell, when: str, rules: Sequence[str]) -> None:
    for number, words in enumerate(rules or ["no rule"]):
        lead = when if number == 0 else "or:     "
        say_wrapped(shell, lead + readable(words), 4, hanging=len(lead))


def _show_value(shell: Shell, one: Mapping[str, Any]) -> None:
    """The value on a page: as it was known, as the old rules find it now, as the new ones do."""
    shell.say(f"    {readable(one['url'])}")
    room = WIDTH - len("      found by new rules: ")
    shell.say(f"      known:              {values_words(one['known'], room)}")
    shell.say(f"      found by old rules: {values_words(one['before'], room)}")
    shell.say(f"      found by new rules: {values_words(one['after'], room)}")
