"""The pages of the reference that are written from the code, so that they say what `--help` and `help()` say.

`scripts/write-reference` writes them; what stands outside of the two marks of a page is left as it is.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path

import typer
from typer.core import TyperArgument, TyperOption

import siteloom
from siteloom.apps.cli.main import app, command_of, usage_of
from siteloom.apps.cli.terminal import CommonOptions
from siteloom.apps.cli.verbs import VERBS
from siteloom.core.settings import load_settings
from tests.docs.blocks import ROOT, read

COMMAND = "scripts/write-reference"
BEGIN, END = f"<!-- From here on written by {COMMAND}, from the code. -->", "<!-- Up to here. -->"

# Where more is said, below docs/.
_MORE = {
    "ingest": ["how-to/read-a-crawl.md", "reference/files.md#failures"],
    "crawl": ["how-to/crawl-a-site.md"],
    "cluster": ["how-to/find-templates.md", "how-to/run-on-spark.md"],
    "template": ["how-to/find-templates.md"],
    "discover": ["how-to/discover-a-table.md", "reference/files.md#discovered-tables"],
    "clean": ["how-to/clean-text.md", "how-to/run-on-spark.md"],
    "sample": ["how-to/wrap-a-site.md"],
    "examples": ["how-to/come-from-other-tools.md", "reference/files.md#examples"],
    "learn": [
        "how-to/wrap-a-site.md",
        "how-to/wrap-list-pages.md",
        "how-to/learn-from-embedded-data.md",
        "explanation/learning.md#the-method-vertex",
        "reference/files.md#examples",
        "reference/files.md#schemas",
        "reference/wrapper-format.md",
    ],
    "extract": ["how-to/extract-records.md", "how-to/run-on-spark.md", "reference/files.md#records"],
    "export": ["how-to/export-a-wrapper.md", "reference/wrapper-exports.md"],
    "explain": ["how-to/extract-records.md#ask-about-one-page"],
    "watch": ["how-to/live-with-change.md", "reference/files.md#watches"],
    "monitor": ["how-to/live-with-change.md", "reference/files.md#changes", "reference/settings.md"],
    "relearn": ["how-to/live-with-change.md#repair", "reference/files.md#repairs"],
    "history": ["how-to/live-with-change.md#history-and-rollback", "reference/files.md#repairs"],
    "rollback": ["how-to/live-with-change.md#history-and-rollback"],
    "seeds": ["how-to/start-from-a-table.md", "reference/files.md#seeds"],
    "bootstrap": [
        "how-to/start-from-a-table.md",
        "how-to/run-on-spark.md",
        "reference/files.md#evidence",
        "reference/files.md#sites-wrapped-from-seeds",
    ],
    "entities": [
        "how-to/start-from-a-table.md#the-same-thing-on-several-sites",
        "reference/files.md#entities",
    ],
    "search": ["how-to/search.md", "reference/files.md#hits"],
    "serve": ["how-to/serve-a-team.md", "how-to/work-in-the-browser.md", "reference/web-api.md"],
    "user": ["how-to/serve-a-team.md#accounts"],
    "backup": ["how-to/back-up.md"],
    "forget": ["how-to/forget.md"],
    "config": ["reference/settings.md"],
}
_FLAGS = {
    "crawl.delay": "--delay",
    "crawl.most_pages": "--pages",
    "crawl.private": "--private",
    "crawl.sandbox": "--no-sandbox",
    "store.workspace": "--workspace",
    "store.url": "--store",
    "run.jobs": "--jobs",
    "change.threshold": "--threshold",
}
_SETTINGS_EXPLAINED = {"retention.days": "../how-to/forget.md#keep-pages-only-for-a-time"}

# What help has in plain text and a page as code: what is so already, JSON, patterns, calls, addresses,
# options, endings of files.
_CODE = re.compile(
    r"""`[^`]+`|\{"[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|'[^'\s]*[*/(][^'\s]*'|"""
    rf"""siteloom\ (?:VERB|{"|".join(VERBS)})\b(?:\ --[a-z-]+|\ [A-Z_]{{2,}}|\ add\b)*|"""
    r"""\b[a-z0-9]+://[^\s,;)]*[^\s,;).]|\b[a-z0-9]+://\.\.\.|"""
    r"""(?<![\w-])--?[a-z][a-z-]*(?:\ [A-Z]+\b|\ spark)?|@FILE|"""
    r"""(?<!\w)\.(?:jsonl?|csv|parquet|warc(?:\.gz|\.zst)?|siteloom)\b|\bsiteloom\.toml\b|\b(?:alarm|change|crawl)\.[a-z_]+\b""",
    re.VERBOSE,
)
# What is made by whoever calls; of other classes only the fields matter.
_MADE = ("Attribute", "Example", "Page", "Seed", "SegmentTable")
# Of classes that Siteloom's own modules ask for more, what is promised to others.
_PROMISED = {
    "SegmentTable": ("pages", "add", "blocks", "counts", "from_counts"),
    "Wrapper": ("extract", "extract_all", "layouts", "explain", "to_json", "from_json", "to_xslt"),
}
_LONGEST_DEFAULT = 20  # characters; what is longer says nothing to a reader


def marked(text: str) -> str:
    """What help says, as Markdown."""
    parts, end = [], 0
    for match in _CODE.finditer(text):
        code = match[0]
        parts += [text[end : match.start()].replace("*", r"\*"), code if code[0] == "`" else f"`{code}`"]
        end = match.end()
    return "".join([*parts, text[end:].replace("*", r"\*")])


def paragraphs(text: str) -> str:
    """A docstring as paragraphs, of a line each."""
    return "\n\n".join(" ".join(one.split()) for one in text.split("\n\n"))


_TERMINAL = (
    "Control characters in pages, addresses and file names, such as escape sequences, never reach a "
    "terminal: messages show � in their place, tables leave them out. Data in files and pipes stays as it "
    "is. In text logs, the lines of a message after its first are indented, so a line that is not begins a "
    "new message."
)


def command_line() -> str:
    """All verbs, as the command line itself explains them."""
    group = typer.main.get_command(app)
    lines = [marked(paragraphs(group.help or "")), "", "| verb | does |", "|---|---|"]
    lines += [f"| [`{verb}`](#{verb}) | {does} |" for verb, does in VERBS.items()]
    lines += ["", "Every verb takes these, before or behind its name:", ""]
    common = [one for one in command_of("init").params if one.name in _COMMON]
    lines += _table(common)
    lines += ["", _TERMINAL]
    lines += ["", "`siteloom --install-completion` teaches your shell to complete verbs and options."]
    for verb in VERBS:
        command = command_of(verb)
        own = [one for one in command.params if one.name not in _COMMON]
        arguments = [usage_of(one) for one in own if isinstance(one, TyperArgument)]
        lines += ["", f"## {verb}", "", f"`{' '.join(['siteloom', verb, '[OPTIONS]', *arguments])}`"]
        lines += ["", marked(paragraphs(command.help or "")), *(["", *_table(own)] if own else [])]
        if verb in _MORE:
            lines += ["", f"More: {', '.join(map(_link, _MORE[verb]))}."]
    return "\n".join(lines)


_COMMON = {field.name for field in fields(CommonOptions)}


def _table(parameters: Sequence[object]) -> list[str]:
    """What arguments and options mean."""
    lines = ["| | means | default |", "|---|---|---|"]
    for one in parameters:
        assert isinstance(one, TyperArgument | TyperOption)
        told, default = _help_and_default(one)
        names = [one.metavar or ""] if isinstance(one, TyperArgument) else _option_names(one)
        shown = ", ".join(f"`{name}`" for name in names)
        lines.append(f"| {shown} | {marked(told)} | {default} |".replace("|  |", "| |"))
    return [re.sub(r"(`[^`]*`)", lambda match: match[0].replace("|", r"\|"), line) for line in lines]


def _option_names(option: TyperOption) -> list[str]:
    takes = f" {option.metavar}" if option.metavar and not option.is_flag else ""
    return [f"{name}{takes}" for name in sorted([*option.opts, *option.secondary_opts], key=len)]


def _help_and_default(one: TyperArgument | TyperOption) -> tuple[str, str]:
    """What help says in brackets at its end is what holds if nothing is said."""
    told = one.help or ""
    if match := re.search(r" \[([^\[\]]+)\]\.?$", told):
        return told[: match.start()] + ".", marked(match[1])
    if isinstance(one, TyperOption) and one.secondary_opts:
        return told, f"`{one.opts[0]}`"
    return told, "" if one.default in (None, False, "", 0) else f"`{one.default}`"


def _link(target: str) -> str:
    document, _, part = target.partition("#")
    headings = headings_of(f"docs/{document}")
    title = next(iter(headings.values())) + (f": {headings[part]}" if part else "")
    path = document.removeprefix("reference/") if document.startswith("reference/") else f"../{document}"
    return f"[{title}]({path}{'#' * bool(part)}{part})"


def headings_of(document: str) -> dict[str, str]:
    """The headings of a document by what links to them name them."""
    found: dict[str, str] = {}
    for heading in re.findall(r"^#+ (.+)$", read(document), re.MULTILINE):
        name = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        same = sum(re.fullmatch(rf"{name}(-\d+)?", other) is not None for other in found)
        found[f"{name}-{same}" if same else name] = heading
    return found


def settings() -> str:
    """All settings, as they are defined."""
    _, known = load_settings(Path("/nowhere"), {}, {})
    lines = ["| setting | environment | flag | default | means |", "|---|---|---|---|---|"]
    for one in known:
        variable = f"SITELOOM_{one.name.replace('.', '_').upper()}"
        flag = f" `{_FLAGS[one.name]}`" if one.name in _FLAGS else ""
        how = f" ([how]({_SETTINGS_EXPLAINED[one.name]}))" if one.name in _SETTINGS_EXPLAINED else ""
        row = f"| `{one.name}` | `{variable}` |{flag} | {one.shown} | {one.help}{how} |"
        lines.append(row.replace("|  |", "| |"))
    return "\n".join(lines)


def python() -> str:
    """All public names, as their docstrings explain them."""
    names = sorted(siteloom.__all__, key=lambda name: (inspect.isclass(getattr(siteloom, name)), name))
    lines = ["| name | is |", "|---|---|"]
    anchors: Counter[str] = Counter()
    for name in names:
        anchor = name.lower() + (f"-{anchors[name.lower()]}" if anchors[name.lower()] else "")
        anchors[name.lower()] += 1
        lines.append(f"| [`{name}`](#{anchor}) | {_first_paragraph(getattr(siteloom, name))} |")
    for name in names:
        value = getattr(siteloom, name)
        is_called = not inspect.isclass(value) or name in _MADE
        lines += ["", f"### {name}", "", f"`siteloom.{name}{_signature(value) if is_called else ''}`"]
        if not is_called and (has := getattr(value, "__match_args__", ())):
            lines[-1] += f" has {', '.join(f'`{field}`' for field in has)}"
        lines += ["", paragraphs(inspect.getdoc(value) or "")]
        members = list(_members(value)) if inspect.isclass(value) else []
        lines += ["", "| | |", "|---|---|", *members] if members else []
    return "\n".join(lines)


def _first_paragraph(value: object) -> str:
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())


def _members(value: type) -> Iterator[str]:
    """The methods and properties of a class; its docstring tells of its fields."""
    for name, member in vars(value).items():
        is_value = isinstance(member, property | cached_property)
        is_called = isinstance(member, classmethod | staticmethod) or inspect.isfunction(member)
        if (
            not name.startswith("_")
            and (is_value or is_called)
            and name in _PROMISED.get(value.__name__, name)
        ):
            shown = name if is_value else name + _signature(getattr(value, name))
            yield f"| `.{shown}` | {_first_paragraph(member)} |"


def _signature(value: object) -> str:
    """Parameters with their defaults, without types."""
    try:
        signature = inspect.signature(value)  # type: ignore[arg-type]
    except ValueError:
        return ""  # an error, which is made with a sentence
    shown: list[str] = []
    is_keyword_only = False
    for one in signature.parameters.values():
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and not is_keyword_only:
            is_keyword_only = True
            shown += [] if any(other.startswith("*") for other in shown) else ["*"]
        name = f"*{one.name}" if one.kind is one.VAR_POSITIONAL else one.name
        shown.append(name if one.default is one.empty else f"{name}={_default(one.default)}")
    returned = signature.return_annotation
    gives = f" -> {returned}" if isinstance(returned, str) and not inspect.isclass(value) else ""
    return f"({', '.join(shown)}){gives}"


def _default(value: object) -> str:
    shown = repr(value).replace("'", '"')
    is_plain = value is None or isinstance(value, bool | int | float | str | tuple)
    if repr(value) in ("mappingproxy({})", "<factory>"):
        return "{}"
    return shown if is_plain and len(shown) <= _LONGEST_DEFAULT else "..."


WRITTEN = {
    "docs/reference/command-line.md": command_line,
    "docs/reference/settings.md": settings,
    "docs/reference/python.md": python,
}


def page(document: str) -> str:
    """A page as it should be."""
    before, _, rest = read(document).partition(BEGIN)
    _, mark, after = rest.partition(END)
    assert mark, f"{document} has no marks: {BEGIN} and {END}"
    return f"{before}{BEGIN}\n\n{WRITTEN[document]()}\n\n{END}{after}"


if __name__ == "__main__":
    for document in WRITTEN:
        (ROOT / document).write_text(page(document), encoding="utf-8")
