r"""Which patterns the parts of rules in a wrapper file may have: none that take long.

Patterns run on pages of others, so matching must not take long. A group that
repeats, an alternation, or quantifiers whose characters overlap can be matched
in so many ways that trying them all never ends: `(\d+)+x`, and `\d*\d*\d*...x`
too. Hence there are no groups, alternations, back-references and look-arounds,
and a quantifier is either possessive, which never gives back what it took
(`\d++`), or what follows can be none of its characters (`\d+,`). Then from any
place of a text there is only one way to match.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from siteloom.wrapper.strict_json import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST_PATTERN = 500
# A class of characters beyond the first 65,536 is a list, which is gone through for each character of a text.
_LONGEST_CLASS = 40
_ATOM = re.compile(
    r"""
    (?P<atom> \\[dDsSwW] | \\[^0-9A-Za-z]                       # a class of characters, an escaped one
      | \[ \^? (?: (?! --|&&|~~|\|\| ) [^\\\[\]] | \\[dDsSwW] | \\[^0-9A-Za-z] )++ \]
      | [^\\\[\](){}|^$*+?]                                     # a literal, or the dot
    )
    (?: (?P<fixed> \{[0-9]{1,4}\} )
      | (?P<varying> [*+?] | \{[0-9]{0,4},[0-9]{0,4}\} ) (?P<possessive> \+ )?
    )?
    """,
    re.VERBOSE | re.DOTALL,
)
_LITERAL = re.compile(r"\\[^0-9A-Za-z] | [^\\\[.]", re.VERBOSE | re.DOTALL)
_DISJOINT = frozenset({r"\d", r"\s", r"[^\W\d_]"})  # digits, blanks and letters, as the learner writes them


def pattern_fault(pattern: str) -> str:
    """Why a pattern cannot be part of a wrapper file, or nothing if it can."""
    if len(pattern) > _LONGEST_PATTERN:
        return f"has a pattern of more than {_LONGEST_PATTERN} characters"
    fault = f"has the pattern {quoted(pattern)}"
    atoms: list[re.Match[str]] = []
    end = 0
    while end < len(pattern):
        atom = _ATOM.match(pattern, end)
        if atom is None:
            return f"{fault}, but there may only be literals, escapes, classes of characters and quantifiers"
        if len(atom["atom"]) > _LONGEST_CLASS:
            return f"{fault}, which has a class of more than {_LONGEST_CLASS} characters"
        atoms.append(atom)
        end = atom.end()
    try:
        re.compile(pattern)
    except re.error as error:
        return f"{fault}, which is wrong ({error.msg})"
    for number, atom in enumerate(atoms, 1):
        if atom["varying"] and not atom["possessive"] and _may_go_on_alike(atom, atoms[number:]):
            possessive = quoted(f"{atom[0]}+")
            return f"{fault}, where {quoted(atom[0])} may give back what it took: write {possessive} instead"
    return ""


def _may_go_on_alike(atom: re.Match[str], following: Iterable[re.Match[str]]) -> bool:
    """Whether what follows may begin with a character of the atom; so it may where that is hard to tell."""
    for after in following:
        if not _is_disjoint(atom["atom"], after["atom"]):
            return True
        if not _can_be_empty(after):
            return False
    return False


def _is_disjoint(first: str, second: str) -> bool:
    for one, other in ((first, second), (second, first)):
        if _LITERAL.fullmatch(one):
            return re.fullmatch(other, one[-1]) is None
    return first != second and {first, second} <= _DISJOINT


def _can_be_empty(atom: re.Match[str]) -> bool:
    quantifier = atom["fixed"] or atom["varying"] or ""
    return quantifier in ("*", "?") or re.match(r"\{0*[,}]", quantifier) is not None
