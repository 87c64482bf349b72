"""`siteloom doctor`: is everything in order?"""

from __future__ import annotations

import shlex
import stat
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from siteloom.apps.cli.terminal import OutputOption, Shell
from siteloom.core.errors import SiteloomError
from siteloom.core.table_files import Column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from siteloom.store.store import Store

NAME = "doctor"

_COLUMNS = (Column("check"), Column("ok", "flag"), Column("finding"))
_PACK = "pack "
_EXTRAS = {
    "crawl": ("scrapy",),
    "embedded": ("extruct",),
    "parquet": ("pyarrow",),
    "postgres": ("psycopg",),
    "render": ("playwright",),
    "server": ("fastapi",),
    "spark": ("pyspark",),
    "text": ("trafilatura",),
    "values": ("dateparser", "price_parser"),  # others bring the first one along
    "web-poet": ("web_poet",),
}


_OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_CHANGED_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ENTERED_BY_OTHERS = stat.S_IXGRP | stat.S_IXOTH


class _Finding(NamedTuple):
    check: str
    ok: bool
    finding: str


def run(shell: Shell, output: OutputOption = None) -> None:
    """Check the installation and every page of the workspace.

    Each page is read back and compared with what was stored. What is missing of the extras is told, too.
    """
    from siteloom.store.workspace_folder import workspace_exists

    findings = [*_installation(), *_settings(shell)]
    if any(setting.needs_trust and setting.name == "store.workspace" for setting in shell.resolved):
        findings.append(_Finding("workspace", False, "not looked at: nobody trusts what names it"))
    elif workspace_exists(shell.settings.store):
        findings += _workspace(shell)
    else:
        findings.append(_Finding("workspace", True, f"none at {shell.settings.store.workspace}"))
    shell.write(output, _COLUMNS, (finding._asdict() for finding in findings))
    if output is None:
        shell.show("Siteloom's health", [column.name for column in _COLUMNS], findings)
    bad = dict.fromkeys(finding.check for finding in findings if not finding.ok)
    if bad:
        is_damaged = any(check.startswith(_PACK) for check in bad)
        damaged = " What is damaged must come back from a backup." if is_damaged else ""
        raise SiteloomError(f"Not in order: {', '.join(bad)}.{damaged}")


def _installation() -> Iterator[_Finding]:
    from siteloom import __version__
    from siteloom.core.model import Failure, Page
    from siteloom.html.parser import PARSER, parse
    from siteloom.html.visible_text import visible_text

    yield _Finding("version", True, f"Siteloom {__version__} on Python {sys.version.split()[0]}")
    root = parse(Page("about:blank", b"<html></html><head><title>t</title><body><p>after the end"))
    reads_on = not isinstance(root, Failure) and "after the end" in visible_text(root)
    yield _Finding("parser", reads_on, PARSER if reads_on else f"{PARSER} drops what follows </html>")
    for extra, modules in _EXTRAS.items():
        yield _Finding(f"extra {extra}", True, _state_of_extra(extra, modules))


def _settings(shell: Shell) -> Iterator[_Finding]:
    untrusted = [setting for setting in shell.resolved if setting.needs_trust]
    if links := [setting.value for setting in untrusted if setting.origin == "default"]:
        said = f"{links[0]} leads out of this folder by a link: name it with --workspace, or remove it"
        yield _Finding("settings", False, said)
    if names := [setting.name for setting in untrusted if setting.origin != "default"]:
        told = " and ".join(names)
        said = f"{told} in siteloom.toml will not count until you trust it: siteloom config --trust"
        yield _Finding("settings", False, said)


def _state_of_extra(extra: str, modules: Sequence[str]) -> str:
    if any(find_spec(module) is None for module in modules):
        return f"not installed; pip install 'siteloom[{extra}]' if you need it"
    try:
        for module in modules:
            import_module(module)
    except ImportError as error:
        return f"installed, but it cannot be used: {' '.join(str(error).split())}"
    return "installed"


def _workspace(shell: Shell) -> Iterator[_Finding]:
    try:
        with shell.store() as store:
            sites = store.sites()
            problems = list(store.check())
            links = list(store.links())
    except SiteloomError as error:
        yield _Finding("workspace", False, str(error))
        return
    pages = sum(site.pages for site in sites)
    yield _Finding("workspace", True, f"{pages:,} pages, {len(sites):,} sites at {store.folder}")
    for problem in problems:
        yield _Finding(f"{_PACK}{problem.place}", False, problem.text)
    if not problems:
        yield _Finding("packs", True, "every page reads back as it was stored")
    for link in links:
        yield _Finding("links", False, f"{link} is a symbolic link, which Siteloom never follows: remove it")
    for folder in _folders_open_to_others(store):
        command = f"chmod -R go-rwx {shlex.quote(str(folder))}"
        yield _Finding("permissions", False, f"other users of this machine may read or change it: {command}")


def _folders_open_to_others(store: Store) -> Iterator[Path]:
    """The workspace, and its packs where they are elsewhere, if others than the owner have a way in."""
    folders = [store.folder]
    if store.packs_folder.is_symlink():
        folders.append(store.packs_folder.resolve())
    for folder in folders:
        mode = folder.stat().st_mode
        is_read = mode & _ENTERED_BY_OTHERS and any(map(_is_for_others, folder.rglob("*")))
        if is_read or mode & _CHANGED_BY_OTHERS:
            yield folder


def _is_for_others(path: Path) -> bool:
    try:
        status = path.lstat()
    except FileNotFoundError:  # another process has just removed it
        return False
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & _OF_OTHERS)
