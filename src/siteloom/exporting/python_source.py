"""What the Scrapy spider and the web-poet page object share: names, rules as Python, what evaluates them."""

from __future__ import annotations

import ast
import inspect
import keyword
import re
import unicodedata
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from siteloom.exporting import plain

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

WIDTH = 110
"""Lines are no longer unless a single word is; those of `plain`, which are part of the files, are as long."""

_INDENT = "    "
_WORDS = "words"  # what a rule means in words, which is a comment in Python
_SPLIT = re.compile(r"[^\s(]+[\s(]*|[\s(]+")


def evaluator() -> tuple[str, str]:
    """The source of what evaluates rules: its imports of the standard library, and all behind imports."""
    source = inspect.getsource(plain)
    lines = source.splitlines()
    imports = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    # The first is that of annotations, which stands before all others of a file, and the last that of lxml.
    first, last = imports[0].lineno, imports[-1].lineno
    return "\n".join(lines[first : last - 1]).strip(), "\n".join(lines[last:]).strip()


def literal(value: object, indent: int = 0, taken: int = 0) -> str:
    """A value as Python writes it, in lines behind an indent; so many characters of the first are taken."""
    line = repr_of(value)
    room = WIDTH - len(_INDENT) * indent - taken
    if line is not None and (len(line) < room or not isinstance(value, str | dict | list)):
        return line
    inner = _INDENT * (indent + 1)
    outer = _INDENT * indent
    if isinstance(value, str):
        lines = (f"{inner}{quoted(piece)}\n" for piece in _pieces(value, WIDTH - len(inner)))
        return f"(\n{''.join(lines)}{outer})"
    if isinstance(value, dict):
        keys = {key: f"{quoted(key)}: " for key in value if key != _WORDS or not _words_of(value)}
        lines = (
            f"{_comment(value[key], inner)}{inner}{name}{literal(value[key], indent + 1, len(name) + 1)},\n"
            for key, name in keys.items()
        )
        return f"{{\n{''.join(lines)}{outer}}}"
    assert isinstance(value, list), value
    if all(isinstance(item, str) for item in value):
        return f"[\n{''.join(_filled(value, inner))}{outer}]"
    lines = (f"{_comment(item, inner)}{inner}{literal(item, indent + 1, 1)},\n" for item in value)
    return f"[\n{''.join(lines)}{outer}]"


def _filled(texts: list[str], indent: str) -> Iterator[str]:
    """Texts, as many to a line as there is room for."""
    line = indent
    for text in map(quoted, texts):
        if line != indent and len(line) + len(text) >= WIDTH:
            yield f"{line.rstrip()}\n"
            line = indent
        line += f"{text}, "
    yield f"{line.rstrip()}\n"


def repr_of(value: object) -> str | None:
    """A value in one line; None if it has something to be said in a comment."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        if _words_of(value):
            return None
        found = [(quoted(key), repr_of(item)) for key, item in value.items()]
        return None if any(item is None for _, item in found) else _braced(found)
    if isinstance(value, list):
        items = [repr_of(item) for item in value]
        return None if None in items else f"[{', '.join(map(str, items))}]"
    return repr(value)


def _braced(items: list[tuple[str, str | None]]) -> str:
    return "{" + ", ".join(f"{key}: {item}" for key, item in items) + "}"


def quoted(text: str) -> str:
    """A text as Python writes it, in double quotes unless it has some."""
    written = repr(text)
    if written.startswith("'") and '"' not in text:
        return f'"{written[1:-1]}"'
    return written


def _words_of(value: object) -> str:
    """What a rule means in words, if it is one; an attribute may have the name of the key."""
    words = value.get(_WORDS) if isinstance(value, dict) else None
    return words if isinstance(words, str) else ""


def _comment(value: object, indent: str) -> str:
    words = _words_of(value)
    return comment(words, indent) if words else ""


def comment(text: str, indent: str = "") -> str:
    """A text as lines of comment."""
    lines = wrap(one_line(text), WIDTH - len(indent) - 2, break_long_words=False, break_on_hyphens=False)
    return "".join(f"{indent}# {line}\n" for line in lines)


def one_line(text: str) -> str:
    """A text of pages as a comment or a docstring may hold it: in one line, and with nothing unseen."""
    return "".join(one if one.isprintable() else " " for one in " ".join(text.split()))


def in_docstring(text: str) -> str:
    """A text that neither ends a docstring nor begins an escape in it."""
    return one_line(text).replace("\\", "\\\\").replace('"', "'")


def docstring(text: str, indent: str) -> str:
    """A text as a docstring, in as many lines as it takes."""
    said = in_docstring(text)
    if len(indent) + len(said) + 6 <= WIDTH:
        return f'{indent}"""{said}"""'
    lines = wrap(said, WIDTH - len(indent) - 3, break_long_words=False, break_on_hyphens=False)
    return "\n".join([f'{indent}"""{lines[0]}', *(f"{indent}{line}" for line in lines[1:]), f'{indent}"""'])


def _pieces(text: str, room: int) -> Iterator[str]:
    """A text in pieces that fit into lines, each up to the end of a word."""
    piece = ""
    for word in _SPLIT.findall(text):
        if piece and len(quoted(piece + word)) > room:
            yield piece
            piece = ""
        piece += word
    yield piece


def module_name(name: str) -> str:
    """A name for a Python module: small letters, digits and underscores."""
    return _identifier(name, "wrapper").lower()


def class_name(name: str) -> str:
    """A name for a Python class."""
    words = _identifier(name, "wrapper").split("_")
    return "".join(word[:1].upper() + word[1:] for word in words if word)


def field_names(names: Collection[str], reserved: Collection[str]) -> dict[str, str]:
    """A Python name for each attribute, none twice and none that is reserved."""
    found: dict[str, str] = {}
    for name in names:
        field = _identifier(name, "attribute")
        if field in reserved:
            field += "_"
        number = 2
        wanted = field
        while field in found.values():
            field = f"{wanted}_{number}"
            number += 1
        found[name] = field
    return found


def _identifier(name: str, otherwise: str) -> str:
    """A name for Python; what it cannot hold is left out, and where nothing is left, there is another."""
    words = re.sub(r"[\W_]+", "_", unicodedata.normalize("NFKC", name)).strip("_")
    possible = (words, f"{otherwise}_{words}", otherwise)
    found = next(one for one in possible if one.isidentifier())
    return f"{found}_" if keyword.iskeyword(found) else found.rstrip("_")


def rules_of(document: dict[str, Any]) -> dict[str, Any]:
    """What of a wrapper's document it takes to evaluate its rules; the rest is said elsewhere in the file."""
    said = ("format", "version", "parser", "sites", "url_patterns", "variables")
    return {key: value for key, value in document.items() if key not in said}
