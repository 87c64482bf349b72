r"""URL patterns as web-poet's `handle_urls` takes them, in the syntax of url-matcher.

`^https?://www\.shop\.example/product/[^/?#]+\.html$` becomes `www.shop.example/product/*.html|`. That is
wider where url-matcher cannot say as much: its `*` matches slashes, too, and it knows neither hosts that end
alike nor parts that may be missing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from siteloom.model import Footprint

_WILDCARD = re.compile(r"\[\^[^\]]*\][*+]")
# A pattern without its wildcards and its scheme: a host or some, and what stands behind them.
_HOST = r"(?: [^/?()*\\|] | \\[^?] )+"
_PARTS = re.compile(
    rf"""(?P<hosts> {_HOST} | \(\?: {_HOST} (?: \| {_HOST} )* \) )
    (?P<path> (?: / (?: [^?(\\] | \\[^?] )* )? )
    (?P<query> (?: \\\? (?: [^(\\] | \\. )* )? )
    (?P<optional> .* )""",
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(.)")


def url_matcher_patterns(footprint: Footprint) -> list[str]:
    """Patterns that match all addresses of a footprint; none if it names no site."""
    found: dict[str, None] = {}
    for pattern in footprint.url_patterns:
        for one in _translated(pattern) or footprint.sites:
            found.setdefault(one)
    return list(found) or list(footprint.sites)


def _translated(pattern: str) -> list[str]:
    """A pattern for each host of one; none if it does not say which hosts there are."""
    text = _WILDCARD.sub("*", pattern)[1:-1].removeprefix("https?://")
    parts = _PARTS.fullmatch(text)
    if parts is None or "//" in text:
        return []
    hosts = parts["hosts"].removeprefix("(?:").removesuffix(")").split("|")
    # What ends without the sign may go on.
    end = "" if parts["optional"] and not parts["query"] else "|"
    behind = _plain(parts["path"]) + end + _query(parts["query"]) if parts["path"] else ""
    return [_plain(host) + behind for host in hosts]


def _query(query: str) -> str:
    """The parameters that have names and come always."""
    fields = [_plain(field) for field in query.removeprefix(r"\?").split("&") if field]
    named = [field for field in fields if "=" in field and "*" not in field.partition("=")[0]]
    return f"?{'&'.join(named)}" if named else ""


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)
