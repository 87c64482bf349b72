"""Stylesheets that load nothing but what they are allowed to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from siteloom.html.archived_view.allowed_markup import TOLD_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Callable

_BLANK = r"(?: \r\n | [ \t\n\r\f] )"
_ESCAPE = rf"\\ (?: [0-9a-fA-F]{{1,6}}+ {_BLANK}?+ | [^\n\r\f0-9a-fA-F] )"
_COMMENT = r"/\* .*? (?: \*/ | \Z )"
_STRING = r"""
    (?: " (?: [^"\\\n\r\f] | \\ (?: \r\n | . ) )*+ "?+ | ' (?: [^'\\\n\r\f] | \\ (?: \r\n | . ) )*+ '?+ )
"""

# What a browser takes for one name may be several here, never the other way round: letters that are
# not ASCII end a name. So nothing that a browser would load is missed.
_NAME = rf"@?+ (?: [A-Za-z0-9_-] | {_ESCAPE} )++"
_TOKEN = re.compile(rf"{_COMMENT} | {_STRING} | (?P<name>{_NAME}) (?P<open>\()?+", re.DOTALL | re.VERBOSE)
_ARGUMENT = re.compile(
    rf"{_BLANK}*+ (?: (?P<string>{_STRING}) [^)]*+ | (?P<plain> (?: [^)\\] | \\ . | \\\Z )*+ ) ) \)?+",
    re.DOTALL | re.VERBOSE,
)
_IMPORTED = re.compile(
    rf"(?: {_BLANK} | {_COMMENT} )*+ (?: (?P<string>{_STRING}) | (?P<name>{_NAME}) \( )",
    re.DOTALL | re.VERBOSE,
)
_REST_OF_RULE = re.compile(r"[^;{}]*+;?+")

_ESCAPED = re.compile(
    rf"\\ (?: (?P<code>[0-9a-fA-F]{{1,6}}+) {_BLANK}?+ | (?: \r\n | [\n\r\f] ) | (?P<self>.) | \Z )",
    re.DOTALL | re.VERBOSE,
)

_TO_ESCAPE = re.compile(r'["\\\x00-\x1f]')

# Functions that take addresses as mere strings, and what ran scripts in browsers of old.
_ODD_FUNCTIONS = frozenset({"expression", "image", "image-set", "-webkit-image-set", "src"})
_ODD_PROPERTIES = frozenset({"behavior", "-moz-binding"})
_WORTH_A_LOOK = re.compile(r"[(\\@\[]|:(?:any-)?link", re.IGNORECASE)
_LINKED = frozenset({"any-link", "link"})
_UNKNOWN = "-siteloom-removed"  # whatever has a name that means nothing is passed over

# An image and a font that are none: with nothing in their place, the text around could mean other things.
_NOTHING = 'url("data:,")'
_NO_FONT = 'local("-siteloom-removed")'
# Without it, what stands around a rule that is left out would grow together: u@import;rl(...) is a trap.
_GAP = "/**/"


def harmless_css(css: str, address: Callable[[str], str | None]) -> str:
    """A stylesheet, or the text of a style attribute, that loads only what `address` gives.

    `address` is asked for every address in it, as it is written there. What it gives None for is
    left out; references inside the page (`#shade`) stay. Selectors by where a link leads select by what is
    told of it.
    """
    if not _WORTH_A_LOOK.search(css):
        return css
    parts: list[str] = []
    kept_to = at = 0
    font_from = -1  # where a @font-face that may still be open was last seen
    while token := _TOKEN.search(css, at):
        at = token.end()
        name = token["name"]
        if name is None:
            continue
        name = _unescaped(name).lower()
        is_function = token["open"] is not None
        if name == "url" and is_function:
            if font_from >= 0:
                font_from = -1 if css.find("}", font_from, at) >= 0 else at
            new, at = _url(css, at, address, _NOTHING if font_from < 0 else _NO_FONT)
        elif name == "@font-face":
            font_from = at
            continue
        elif name == "@import":
            new, at = _import(css, token.end("name"), address)
        elif is_function and name in _ODD_FUNCTIONS:
            new = _UNKNOWN + "("
        elif name in _ODD_PROPERTIES:
            new = _UNKNOWN + css[token.end("name") : at]
        elif name in _LINKED and css[token.start() - 1 : token.start()] == ":":
            parts.append(css[kept_to : token.start() - 1])
            kept_to = token.start()
            new = "[data-siteloom-href]"
        elif name in TOLD_ATTRIBUTES and css[token.start() - 1 : token.start()] == "[":
            new = f"data-siteloom-{name}"
        else:
            continue
        parts += css[kept_to : token.start()], new
        kept_to = at
    return "".join(parts) + css[kept_to:]


def _url(css: str, at: int, address: Callable[[str], str | None], nothing: str) -> tuple[str, int]:
    """What to write for the rest of `url(`, and where that ends."""
    given, end = _argument(css, at)
    found = given if given.startswith("#") else address(given)
    return _written(found) if found else nothing, end


def _import(css: str, at: int, address: Callable[[str], str | None]) -> tuple[str, int]:
    """What to write for `@import` and its address, and where that ends; a gap for the whole rule."""
    imported = _IMPORTED.match(css, at)
    sheet = None
    if imported is not None and imported["string"] is not None:
        at = imported.end()
        sheet = address(_unquoted(imported["string"]))
    elif imported is not None and _unescaped(imported["name"]).lower() == "url":
        given, at = _argument(css, imported.end())
        sheet = address(given)
    if sheet and not sheet.startswith("data:"):
        return f"@import {_written(sheet)}", at
    rest = _REST_OF_RULE.match(css, at)
    return _GAP, at if rest is None else rest.end()


def _argument(css: str, at: int) -> tuple[str, int]:
    """The address in `url(...)`, and where that ends."""
    argument = _ARGUMENT.match(css, at)
    assert argument is not None  # it matches even nothing
    string = argument["string"]
    given = _unescaped(argument["plain"]) if string is None else _unquoted(string)
    return given.strip(), argument.end()


def _written(address: str) -> str:
    return 'url("{}")'.format(_TO_ESCAPE.sub(lambda found: f"\\{ord(found[0]):x} ", address))


def _unquoted(string: str) -> str:
    quote = string[0]
    is_closed = len(string) > 1 and string.endswith(quote)
    return _unescaped(string[1:-1] if is_closed else string[1:])


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(_character, text) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    if escape["code"] is None:
        return escape["self"] or ""
    code = int(escape["code"], 16)
    is_character = 0 < code < 0x110000 and not 0xD800 <= code < 0xE000
    return chr(code) if is_character else "\ufffd"
