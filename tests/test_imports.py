"""No module imports itself through others when it is loaded."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import siteloom

SOURCE = Path(siteloom.__file__).parents[1]


def imported_modules(file: Path, modules: set[str]) -> set[str]:
    """The modules of Siteloom that a module imports while it is loaded."""
    names: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {
                name if (name := f"{node.module}.{alias.name}") in modules else node.module
                for alias in node.names
            }
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names & modules - {"siteloom"}


def test_there_are_no_import_cycles() -> None:
    files = {
        ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): file
        for file in (SOURCE / "siteloom").rglob("*.py")
    }
    graph = {name: imported_modules(file, set(files)) - {name} for name, file in files.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"These modules import each other: {' -> '.join(error.args[1])}")
