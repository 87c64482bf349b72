"""Python source for the Scrapy spider and the web-poet page object: names, rules, and their evaluator."""

from __future__ import annotations

import ast
import inspect
import keyword
import re
import unicodedata
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from siteloom.wrappers.rule_xpath import SHARED_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from types import ModuleType

WIDTH = 110
"""The longest line, unless a single word is longer; the copied evaluator uses the same width."""

_INDENT = "    "
_WORDS = "words"  # the description of a rule, which becomes a comment in Python
_SPLIT = re.compile(r"/*[^\s/\[]+[\s\[]*|[\s/\[]+")


class Body(str):
    """The content of an f-string, in which only braces are escaped."""

    __slots__ = ()


def by_name(xpath: str, names: Sequence[str] = tuple(SHARED_BY_NAME)) -> Body:
    """Replace the parts of an XPath that rules share by their names."""
    name_of = {SHARED_BY_NAME[name]: name for name in names}
    longest_first = sorted(name_of, key=len, reverse=True)
    pieces = re.split(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})", xpath)
    return Body(
        "".join(
            f"{{{name_of[piece]}}}" if piece in name_of else piece.replace("{", "{{").replace("}", "}}")
            for piece in pieces
        )
    )


def evaluator(*modules: ModuleType) -> tuple[str, str]:
    """Return the source of the rule evaluator: its standard-library imports, and the code after imports."""
    imports: set[str] = set()
    sources = []
    for module in modules:
        source = inspect.getsource(module)
        import_statements = [
            node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        # The first imports annotations and precedes all others of a file; the last imports no standard
        # library.
        imports.update(map(ast.unparse, import_statements[1:-1]))
        sources.append("\n".join(source.splitlines()[import_statements[-1].end_lineno :]).strip())
    in_order = sorted(imports, key=lambda line: (line.startswith("from"), line))  # as isort has them
    return "\n".join(in_order), "\n\n\n".join(sources)


def shared_by_name(rules: str) -> str:
    """Return definitions of the shared constants that the source of the rules uses."""
    constants = ""
    shared_names = tuple(SHARED_BY_NAME)
    for number, name in reversed([*enumerate(shared_names)]):
        if f"{{{name}}}" in rules + constants:
            body = by_name(SHARED_BY_NAME[name], shared_names[:number])
            constants = f"{name} = {literal(body, reserved=len(name) + 3)}\n{constants}"
    return f"{comment('Parts of XPath that rules share.')}{constants}" if constants else ""


def literal(value: object, indent: int = 0, reserved: int = 0) -> str:
    """Format a value as indented Python source; `reserved` characters of the first line are in use."""
    if isinstance(value, dict) and _words_of(value):
        value = {key: item for key, item in value.items() if key != _WORDS}
    line = repr_of(value)
    room = WIDTH - len(_INDENT) * indent - reserved
    if line is not None and (len(line) < room or not isinstance(value, str | dict | list)):
        return line
    inner = _INDENT * (indent + 1)
    outer = _INDENT * indent
    if isinstance(value, str):
        lines = (f"{inner}{piece}\n" for piece in _pieces(value, WIDTH - len(inner)))
        return f"(\n{''.join(lines)}{outer})"
    if isinstance(value, dict):
        keys = {key: f"{quoted(key)}: " for key in value}
        lines = (
            f"{_comment(value[key], inner)}{inner}{name}{literal(value[key], indent + 1, len(name) + 1)},\n"
            for key, name in keys.items()
        )
        return f"{{\n{''.join(lines)}{outer}}}"
    assert isinstance(value, list), value
    if all(isinstance(item, str) for item in value):
        return f"[\n{''.join(_text_lines(value, inner))}{outer}]"
    lines = (f"{_comment(item, inner)}{inner}{literal(item, indent + 1, 1)},\n" for item in value)
    return f"[\n{''.join(lines)}{outer}]"


def _text_lines(texts: list[str], indent: str) -> Iterator[str]:
    """Yield lines with as many texts as fit on each."""
    line = indent
    for text in map(quoted, texts):
        if line != indent and len(line) + len(text) >= WIDTH:
            yield f"{line.rstrip()}\n"
            line = indent
        line += f"{text}, "
    yield f"{line.rstrip()}\n"


def repr_of(value: object) -> str | None:
    """Format a value on one line; None if part of it needs a comment."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        if _words_of(value):
            return None
        pairs = [(quoted(key), repr_of(item)) for key, item in value.items()]
        return None if any(item is None for _, item in pairs) else _braced(pairs)
    if isinstance(value, list):
        items = [repr_of(item) for item in value]
        return None if None in items else f"[{', '.join(map(str, items))}]"
    return repr(value)


def _braced(items: list[tuple[str, str | None]]) -> str:
    return "{" + ", ".join(f"{key}: {item}" for key, item in items) + "}"


def quoted(text: str) -> str:
    """Quote a text as a Python literal, in double quotes unless it contains some."""
    if isinstance(text, Body) and ("{" in text or "}" in text):
        return f"f{quoted(str(text))}"
    if "\\" in text and '"' not in text and text.isprintable() and not text.endswith("\\"):
        return f'r"{text}"'
    written = repr(text)
    if written.startswith("'") and '"' not in text:
        return f'"{written[1:-1]}"'
    return written


def _words_of(value: object) -> str:
    """Return the description of a rule, or an empty text; an attribute may have the same name as the key."""
    words = value.get(_WORDS) if isinstance(value, dict) else None
    return words if isinstance(words, str) else ""


def _comment(value: object, indent: str) -> str:
    words = _words_of(value)
    return comment(words, indent) if words else ""


def comment(text: str, indent: str = "") -> str:
    """Format a text as comment lines."""
    lines = wrap(one_line(text), WIDTH - len(indent) - 2, break_long_words=False, break_on_hyphens=False)
    return "".join(f"{indent}# {line}\n" for line in lines)


def one_line(text: str) -> str:
    """Return a text that is safe in a comment or docstring: one line without unprintable characters."""
    return "".join(character if character.isprintable() else " " for character in " ".join(text.split()))


def in_docstring(text: str) -> str:
    """Escape a text so that it neither ends a docstring nor starts an escape sequence in it."""
    return one_line(text).replace("\\", "\\\\").replace('"', "'")


def docstring(text: str, indent: str) -> str:
    """Format a text as a docstring, on as many lines as it needs."""
    content = in_docstring(text)
    if len(indent) + len(content) + 6 <= WIDTH:
        return f'{indent}"""{content}"""'
    lines = wrap(content, WIDTH - len(indent) - 3, break_long_words=False, break_on_hyphens=False)
    return "\n".join([f'{indent}"""{lines[0]}', *(f"{indent}{line}" for line in lines[1:]), f'{indent}"""'])


def _pieces(text: str, room: int) -> Iterator[str]:
    """Yield a text as Python literals that each fit on a line and end at the end of a word."""
    kind = type(text)
    piece = kind()
    for word in _SPLIT.findall(text):
        if piece and len(quoted(kind(piece + word))) > room:
            yield quoted(piece)
            piece = kind()
        piece = kind(piece + word)
    yield quoted(piece)


def module_name(name: str) -> str:
    """Return a name for a Python module: small letters, digits and underscores."""
    return _identifier(name, "wrapper").lower()


def class_name(name: str) -> str:
    """Return a name for a Python class."""
    words = _identifier(name, "wrapper").split("_")
    return "".join(word[:1].upper() + word[1:] for word in words if word)


def field_names(names: Collection[str], reserved: Collection[str]) -> dict[str, str]:
    """Return a unique Python name for each attribute, avoiding reserved names."""
    fields: dict[str, str] = {}
    for name in names:
        field = _identifier(name, "attribute")
        if field in reserved:
            field += "_"
        number = 2
        base_name = field
        while field in fields.values():
            field = f"{base_name}_{number}"
            number += 1
        fields[name] = field
    return fields


def _identifier(name: str, fallback: str) -> str:
    """Convert a name to a Python identifier; forbidden characters are dropped, an empty name is replaced."""
    words = re.sub(r"[\W_]+", "_", unicodedata.normalize("NFKC", name)).strip("_")
    possible = (words, f"{fallback}_{words}", fallback)
    identifier = next(candidate for candidate in possible if candidate.isidentifier())
    return f"{identifier}_" if keyword.iskeyword(identifier) else identifier.rstrip("_")


def rules_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a wrapper's document needed to evaluate its rules, as Python values."""
    other_keys = ("format", "version", "parser", "sites", "url_patterns", "variables")
    return {key: _in_python(key, value) for key, value in document.items() if key not in other_keys}


def _in_python(key: str, value: Any) -> Any:
    """Convert part of a document without targets, which XPath implies. Attributes may be named like keys."""
    if isinstance(value, dict):
        items = (entry for entry in value.items() if entry[0] != "target" or not isinstance(entry[1], str))
        return {name: _in_python(name, item) for name, item in items}
    if isinstance(value, list):
        return [_in_python("", item) for item in value]
    return by_name(value) if key in ("xpath", "fallback") and isinstance(value, str) else value
