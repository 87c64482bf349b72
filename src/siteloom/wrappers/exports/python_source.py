"""What the Scrapy spider and the web-poet page object share: names, rules as Python, what evaluates them."""

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
"""Lines are no longer unless a single word is; those of `plain`, which are part of the files, are as long."""

_INDENT = "    "
_WORDS = "words"  # what a rule means in words, which is a comment in Python
_SPLIT = re.compile(r"/*[^\s/\[]+[\s\[]*|[\s/\[]+")


class Body(str):
    """What an f-string holds between its quotes, nothing of it escaped but braces."""

    __slots__ = ()


def by_name(xpath: str, names: Sequence[str] = tuple(SHARED_BY_NAME)) -> Body:
    """An XPath in which the names of what rules share stand for it."""
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
    """The source of what evaluates rules: its imports of the standard library, and all behind imports."""
    imports: set[str] = set()
    sources = []
    for module in modules:
        source = inspect.getsource(module)
        found = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
        # The first is that of annotations, which stands before all others of a file, and the last no library.
        imports.update(map(ast.unparse, found[1:-1]))
        sources.append("\n".join(source.splitlines()[found[-1].end_lineno :]).strip())
    in_order = sorted(imports, key=lambda line: (line.startswith("from"), line))  # as isort has them
    return "\n".join(in_order), "\n\n\n".join(sources)


def shared_by_name(rules: str) -> str:
    """What rules share as constants, as far as it stands by its name in what was written of them."""
    constants = ""
    known = tuple(SHARED_BY_NAME)
    for number, name in reversed([*enumerate(known)]):
        if f"{{{name}}}" in rules + constants:
            body = by_name(SHARED_BY_NAME[name], known[:number])
            constants = f"{name} = {literal(body, taken=len(name) + 3)}\n{constants}"
    return f"{comment('Parts of XPath that rules share.')}{constants}" if constants else ""


def literal(value: object, indent: int = 0, taken: int = 0) -> str:
    """A value as Python writes it, in lines behind an indent; so many characters of the first are taken."""
    if isinstance(value, dict) and _words_of(value):
        value = {key: item for key, item in value.items() if key != _WORDS}
    line = repr_of(value)
    room = WIDTH - len(_INDENT) * indent - taken
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
    if isinstance(text, Body) and ("{" in text or "}" in text):
        return f"f{quoted(str(text))}"
    if "\\" in text and '"' not in text and text.isprintable() and not text.endswith("\\"):
        return f'r"{text}"'
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
    """A text as Python writes it, in pieces that fit into lines, each up to the end of a word."""
    kind = type(text)
    piece = kind()
    for word in _SPLIT.findall(text):
        if piece and len(quoted(kind(piece + word))) > room:
            yield quoted(piece)
            piece = kind()
        piece = kind(piece + word)
    yield quoted(piece)


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
    return {key: _in_python(key, value) for key, value in document.items() if key not in said}


def _in_python(key: str, value: Any) -> Any:
    """A part of a document without targets, which XPath tells; an attribute may have the name of a key."""
    if isinstance(value, dict):
        kept = (one for one in value.items() if one[0] != "target" or not isinstance(one[1], str))
        return {name: _in_python(name, item) for name, item in kept}
    if isinstance(value, list):
        return [_in_python("", item) for item in value]
    return by_name(value) if key in ("xpath", "fallback") and isinstance(value, str) else value
