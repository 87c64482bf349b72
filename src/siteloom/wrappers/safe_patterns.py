r"""Which regular expressions a wrapper file may contain.

Patterns run on pages of others, so matching must not take long. A group that
repeats, an alternation, or quantifiers whose characters overlap can be matched
in so many ways that trying them all never ends: `(\d+)+x`, and `\d*\d*\d*...x`
too. Hence there are no groups, alternations, back-references and look-arounds,
and a quantifier is either possessive, which never gives back what it took
(`\d++`), or what follows can be none of its characters (`\d+,`). Then from any
place of a text there is only one way to match.

Patterns are anchored at both ends. A wildcard excludes a separator, and up to
that there may only be literals behind it, not too many; so it ends where it
must, and what failed once is not tried again with another end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from siteloom.core.wording import quoted

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


# As much as clustering keeps of addresses: so many hosts, 16 segments and 16 values, cut to these lengths.
_LONGEST = 20_000
_MOST_HOSTS = 8
_LONGEST_HOST = 300
_LONGEST_FIELD = 128
_LONGEST_REST = 16 * (_LONGEST_FIELD + 1)


def _literal(excluded: str, longest: int) -> str:
    """Up to so many characters that stand for themselves; these are excluded, and `#` always is."""
    escapes = r"\\[\\.^$*+{}\[\]|()]" if "?" in excluded else r"\\[\\.^$*+?{}\[\]|()]"
    return rf"(?: {escapes} | [^\\.^$*+?{{}}\[\]|()\#{excluded}] ){{0,{longest}}}+"


def _class(excluded: str) -> str:
    """A wildcard for all but these, as it stands in a pattern."""
    return re.escape(f"[^{excluded}]")


def _field(literal: str, wildcard: str, rest: str, open_wildcard: str) -> str:
    """A literal with at most one wildcard in it; what follows an open one is not separated any more."""
    return rf"{literal} (?: {wildcard}[*+] {literal} (?!\[) | {open_wildcard}[*+] {rest} (?!\[) )?+"


def _one_of(choice: str) -> str:
    return rf"(?: {choice} | \(\?: {choice} (?: \| {choice} ){{1,{_MOST_HOSTS - 1}}}+ \) )"


_OPENING = r"(?: https\?:// | (?: [A-Za-z] (?: [A-Za-z0-9-] | \\[+.] )*+ : )?+ // )?+"
_ANY_HOST = _class("/?#") + r"\*"
_HOST = _literal("/?", _LONGEST_HOST)
_ORIGIN = rf"""(?:
    {_ANY_HOST} \(\?:// {_ANY_HOST} \)\?
  | {_OPENING} (?: {_ANY_HOST} | \(\?: {_ANY_HOST} \\\. \)\? {_HOST} | {_one_of(_HOST)} )
  | {_one_of(_OPENING + _HOST)}
)"""
_SEGMENT = _field(_literal("/?", _LONGEST_FIELD), _class("/?#"), _literal("?", _LONGEST_REST), _class("?#"))
_VALUE = _field(_literal("&", _LONGEST_FIELD), _class("&#"), _literal("", _LONGEST_REST), _class("#"))
_PATH = rf"(?: / {_SEGMENT} )++"
_QUERY = rf"\\\? {_VALUE} (?: & {_VALUE} )*+"
_PATTERN = re.compile(
    rf"""\^ {_ORIGIN}
    (?: (?P<path> {_PATH} ) | \(\?: {_PATH} \)\? )?
    (?: (?P<query> {_QUERY} ) | \(\?: {_QUERY} \)\? )? \$""",
    re.VERBOSE,
)
_NO_LITERALS = re.compile(r"(?: \[\^[/?&\#]++\][*+] | [/&] | \\\? )*+", re.VERBOSE)


def url_pattern_fault(pattern: str) -> str:
    """Why a URL pattern cannot be part of a wrapper file, or nothing if it can."""
    if len(pattern) > _LONGEST:
        return f"has more than {_LONGEST:,} characters"
    if not _PATTERN.fullmatch(pattern):
        return r"is not of the form ^https?://www\.shop\.example/product/[^/?#]+\?id=[^&#]*$"
    return ""


def tells_pages_apart(pattern: str) -> bool:
    """Whether a URL pattern asks for any literal besides the host: else it may match all pages of it."""
    found = _PATTERN.fullmatch(pattern)
    if found is None:
        return False
    return not _NO_LITERALS.fullmatch((found["path"] or "") + (found["query"] or ""))
