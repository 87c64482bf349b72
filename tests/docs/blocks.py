"""What stands in the documents as code: every block of it, and what kind it is."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    file.relative_to(ROOT).as_posix()
    for file in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
]

Kind = Literal["shell", "crontab", "python", "json", "toml", "yaml", "sql", "output", "text"]

_LANGUAGES: dict[str, Kind] = {
    **dict.fromkeys(("sh", "bash", "shell", "console"), "shell"),
    **dict.fromkeys(("python", "py"), "python"),
    **dict.fromkeys(("json", "jsonl"), "json"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    "toml": "toml",
    "sql": "sql",
    "text": "output",
}
# The programs that the documents call. A block that begins with none of them is no shell, and one that is
# nothing else either is text, which must be listed: so what is forgotten here is noticed.
_PROGRAMS = (
    ". cd cp createdb curl docker echo export git grep make mkdir pg_restore pip playwright pytest python "
    "python3 rm scrapy siteloom sqlite3"
).split()
_FENCE = re.compile(r"^( *)```(\S*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?:    [^\n]*\n(?:\n(?=    ))*)+")
_TIMES = re.compile(r"(?:[\d*/,-]+ +){5}")
_SQL = re.compile(r"(?:SELECT|CREATE|INSERT|UPDATE|DELETE|ALTER)\b")
_COMMENT = re.compile(r"(?:^|\s+)#(?: .*)?$")


@dataclass(frozen=True)
class Block:
    """A block of a document, without its indentation."""

    kind: Kind
    text: str
    line: int
    """The line of the document that it begins in."""

    @property
    def steps(self) -> list[str]:
        """What is to be done one after the other: the commands of a shell, else the block as a whole."""
        if self.kind not in ("shell", "crontab"):
            return [self.text]
        lines = re.sub(r"\\\n\s*", "", self.text).split("\n")
        return [line for line in (_COMMENT.sub("", line).strip() for line in lines) if line]


def read(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def blocks(document: str) -> list[Block]:
    """All blocks of a document, in its order."""
    return blocks_of(read(document))


def blocks_of(text: str) -> list[Block]:
    found = []

    def fenced(match: re.Match[str]) -> str:
        indent, language, inside = match.groups()
        body = re.sub(f"^{indent}", "", inside, flags=re.MULTILINE)
        if language == "console":
            body = re.sub(r"^\$ ", "", body, flags=re.MULTILINE)
        kind = _LANGUAGES.get(language, "text") if language else kind_of(body)
        found.append(Block(kind, body.rstrip("\n"), _line_of(text, match.start(3))))
        return re.sub(r"[^\n]", "", match[0])  # so that the lines after it keep their numbers

    rest = _FENCE.sub(fenced, text)
    for match in _INDENTED.finditer(rest):
        body = re.sub(r"^    ", "", match[0], flags=re.MULTILINE).rstrip("\n")
        if body.strip():
            found.append(Block(kind_of(body), body, _line_of(rest, match.start())))
    return sorted(found, key=lambda block: block.line)


def kind_of(text: str) -> Kind:
    """The kind of a block that does not say which it is."""
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    first = lines[0] if lines else ""
    if first.split(" ")[0] in _PROGRAMS:
        return "shell"
    if _TIMES.match(first):
        return "crontab"
    if first.startswith("["):
        return "toml"
    if _SQL.match(first):
        return "sql"
    if _is_json(text):
        return "json"
    return "python" if _is_program(text) else "text"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _is_program(text: str) -> bool:
    """Whether it is Python, and more than words that Python would take for names."""
    try:
        statements = ast.parse(text).body
    except SyntaxError:
        return False
    return any(not isinstance(statement, ast.Expr) for statement in statements)


def _line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
