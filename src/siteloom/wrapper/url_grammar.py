"""Which URL patterns a wrapper file may have: those that clustering writes, and none that take long.

Patterns are anchored at both ends. A wildcard excludes a separator, and up to
that there may only be literals behind it, not too many; so it ends where it
must, and what failed once is not tried again with another end.
"""

from __future__ import annotations

import re

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
