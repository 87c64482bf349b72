"""Rewrite stylesheets so that they load only allowed addresses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from siteloom.html.archived_view.allowed_markup import MIRRORED_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Callable

_BLANK = r"(?: \r\n | [ \t\n\r\f] )"
_ESCAPE = rf"\\ (?: [0-9a-fA-F]{{1,6}}+ {_BLANK}?+ | [^\n\r\f0-9a-fA-F] )"
_COMMENT = r"/\* .*? (?: \*/ | \Z )"
_STRING = r"""
    (?: " (?: [^"\\\n\r\f] | \\ (?: \r\n | . ) )*+ "?+ | ' (?: [^'\\\n\r\f] | \\ (?: \r\n | . ) )*+ '?+ )
"""

# A single name in a browser may be several here, never the other way round, because non-ASCII letters end a
# name. So nothing that a browser would load is missed.
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
_RULE_END = re.compile(r"[^;{}]*+;?+")

_ESCAPED = re.compile(
    rf"\\ (?: (?P<code>[0-9a-fA-F]{{1,6}}+) {_BLANK}?+ | (?: \r\n | [\n\r\f] ) | (?P<self>.) | \Z )",
    re.DOTALL | re.VERBOSE,
)

_TO_ESCAPE = re.compile(r'["\\\x00-\x1f]')

# Functions that take addresses as plain strings, and features that ran scripts in old browsers.
_ODD_FUNCTIONS = frozenset({"expression", "image", "image-set", "-webkit-image-set", "src"})
_ODD_PROPERTIES = frozenset({"behavior", "-moz-binding"})
_MAY_LOAD = re.compile(r"[(\\@\[]|:(?:any-)?link", re.IGNORECASE)
_LINKED = frozenset({"any-link", "link"})
_UNKNOWN = "-siteloom-removed"  # browsers ignore anything with an unknown name

# An empty image and font: without a placeholder, the text around could change its meaning.
_EMPTY_IMAGE = 'url("data:,")'
_NO_FONT = 'local("-siteloom-removed")'
# Separates the text around a removed rule, which would otherwise join: u@import;rl(...) is a trap.
_GAP = "/**/"


def harmless_css(css: str, address: Callable[[str], str | None]) -> str:
    """Rewrite a stylesheet, or the text of a style attribute, to load only addresses that `address` returns.

    `address` is called with every address as written. Those for which it returns None are removed; references
    inside the page (`#shade`) stay. Selectors by link address select by its mirrored attribute.
    """
    if not _MAY_LOAD.search(css):
        return css
    pieces: list[str] = []
    copied_to = position = 0
    font_from = -1  # where a @font-face that may still be open was last seen
    while token := _TOKEN.search(css, position):
        position = token.end()
        name = token["name"]
        if name is None:
            continue
        name = _unescaped(name).lower()
        is_function = token["open"] is not None
        if name == "url" and is_function:
            if font_from >= 0:
                font_from = -1 if css.find("}", font_from, position) >= 0 else position
            new, position = _url(css, position, address, _EMPTY_IMAGE if font_from < 0 else _NO_FONT)
        elif name == "@font-face":
            font_from = position
            continue
        elif name == "@import":
            new, position = _import(css, token.end("name"), address)
        elif is_function and name in _ODD_FUNCTIONS:
            new = _UNKNOWN + "("
        elif name in _ODD_PROPERTIES:
            new = _UNKNOWN + css[token.end("name") : position]
        elif name in _LINKED and css[token.start() - 1 : token.start()] == ":":
            pieces.append(css[copied_to : token.start() - 1])
            copied_to = token.start()
            new = "[data-siteloom-href]"
        elif name in MIRRORED_ATTRIBUTES and css[token.start() - 1 : token.start()] == "[":
            new = f"data-siteloom-{name}"
        else:
            continue
        pieces += css[copied_to : token.start()], new
        copied_to = position
    return "".join(pieces) + css[copied_to:]


def _url(css: str, position: int, address: Callable[[str], str | None], placeholder: str) -> tuple[str, int]:
    """Return the replacement for the rest of `url(`, and where that ends."""
    original, end = _argument(css, position)
    replacement = original if original.startswith("#") else address(original)
    return _written(replacement) if replacement else placeholder, end


def _import(css: str, position: int, address: Callable[[str], str | None]) -> tuple[str, int]:
    """Return the replacement for `@import` and its address, a gap for the whole rule, and where that ends."""
    imported = _IMPORTED.match(css, position)
    sheet = None
    if imported is not None and imported["string"] is not None:
        position = imported.end()
        sheet = address(_unquoted(imported["string"]))
    elif imported is not None and _unescaped(imported["name"]).lower() == "url":
        original, position = _argument(css, imported.end())
        sheet = address(original)
    if sheet and not sheet.startswith("data:"):
        return f"@import {_written(sheet)}", position
    rule_end = _RULE_END.match(css, position)
    return _GAP, position if rule_end is None else rule_end.end()


def _argument(css: str, position: int) -> tuple[str, int]:
    """Return the address in `url(...)`, and where that ends."""
    argument = _ARGUMENT.match(css, position)
    assert argument is not None  # it matches even nothing
    string = argument["string"]
    address = _unescaped(argument["plain"]) if string is None else _unquoted(string)
    return address.strip(), argument.end()


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
