r"""Which regular expressions a wrapper file may contain.

Patterns run on untrusted pages, so matching must be fast. A repeated group, an alternation, or quantifiers
whose characters overlap can match in exponentially many ways: `(\d+)+x`, and `\d*\d*\d*...x` too. Hence
groups, alternations, back-references and look-arounds are not allowed, and a quantifier must either be
possessive, which never backtracks (`\d++`), or be followed by something that matches none of its characters
(`\d+,`). Then there is only one way to match from any position of a text.

URL patterns are anchored at both ends. A wildcard excludes a separator, and only a limited number of literals
may follow it before that separator, so it can end in one place only and no alternative end is tried.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from siteloom.core.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable


_LONGEST_PATTERN = 500
# A class of characters beyond the first 65,536 is a list, which is scanned for each character of a text.
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
    """Return why a pattern is not allowed in a wrapper file, or an empty text if it is."""
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
    """Return whether the following atoms may begin with a character of this one, or if that is unclear."""
    for next_atom in following:
        if not _is_disjoint(atom["atom"], next_atom["atom"]):
            return True
        if not _can_be_empty(next_atom):
            return False
    return False


def _is_disjoint(atom: str, other_atom: str) -> bool:
    for candidate, character_class in ((atom, other_atom), (other_atom, atom)):
        if _LITERAL.fullmatch(candidate):
            return re.fullmatch(character_class, candidate[-1]) is None
    return atom != other_atom and {atom, other_atom} <= _DISJOINT


def _can_be_empty(atom: re.Match[str]) -> bool:
    quantifier = atom["fixed"] or atom["varying"] or ""
    return quantifier in ("*", "?") or re.match(r"\{0*[,}]", quantifier) is not None


# The limits that clustering uses for addresses: this many hosts, 16 segments and 16 values, cut to these
# lengths.
_LONGEST = 20_000
_MOST_HOSTS = 8
_LONGEST_HOST = 300
_LONGEST_FIELD = 128
_LONGEST_OPEN_FIELD = 16 * (_LONGEST_FIELD + 1)


def _literal(excluded: str, longest: int) -> str:
    """Match up to `longest` literal characters; `excluded` and `#` are not allowed."""
    escapes = r"\\[\\.^$*+{}\[\]|()]" if "?" in excluded else r"\\[\\.^$*+?{}\[\]|()]"
    return rf"(?: {escapes} | [^\\.^$*+?{{}}\[\]|()\#{excluded}] ){{0,{longest}}}+"


def _class(excluded: str) -> str:
    """Match a wildcard for all characters but these, as it is written in a pattern."""
    return re.escape(f"[^{excluded}]")


def _field(literal: str, wildcard: str, open_literal: str, open_wildcard: str) -> str:
    """Match a literal with at most one wildcard in it; no separators follow an open wildcard."""
    return rf"{literal} (?: {wildcard}[*+] {literal} (?!\[) | {open_wildcard}[*+] {open_literal} (?!\[) )?+"


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
_SEGMENT = _field(
    _literal("/?", _LONGEST_FIELD), _class("/?#"), _literal("?", _LONGEST_OPEN_FIELD), _class("?#")
)
_VALUE = _field(_literal("&", _LONGEST_FIELD), _class("&#"), _literal("", _LONGEST_OPEN_FIELD), _class("#"))
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
    """Return why a URL pattern is not allowed in a wrapper file, or an empty text if it is."""
    if len(pattern) > _LONGEST:
        return f"has more than {_LONGEST:,} characters"
    if not _PATTERN.fullmatch(pattern):
        return r"is not of the form ^https?://www\.shop\.example/product/[^/?#]+\?id=[^&#]*$"
    return ""


def tells_pages_apart(pattern: str) -> bool:
    """Return whether a URL pattern has a literal besides the host; without one it may match all its pages."""
    match = _PATTERN.fullmatch(pattern)
    if match is None:
        return False
    return not _NO_LITERALS.fullmatch((match["path"] or "") + (match["query"] or ""))
