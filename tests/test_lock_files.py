"""The lock files hold exact versions that pyproject.toml allows, with hashes, from any package index."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
LOCK_FILES = sorted((ROOT / "requirements").glob("*.txt"))
# The marker tells apart pins of a package that are for different versions of Python.
PIN = re.compile(
    r"(?P<name>[\w.-]+)(?:\[.+\])?==(?P<version>\S+)(?: ; .+?)?(?: +--hash=sha256:[0-9a-f]{64})+"
)


def lines(file: Path) -> list[str]:
    """The lines of a lock file, those that continue one joined to it, without comments."""
    text = file.read_text(encoding="utf-8").replace("\\\n", "")
    return [line for line in text.splitlines() if not line.startswith("#")]


def pins(file: Path) -> dict[str, set[str]]:
    """The versions of each package in a lock file."""
    versions: dict[str, set[str]] = {}
    for pin in filter(None, map(PIN.fullmatch, lines(file))):
        versions.setdefault(canonicalize_name(pin["name"]), set()).add(pin["version"])
    return versions


@pytest.mark.parametrize("file", LOCK_FILES, ids=lambda file: file.stem)
def test_a_lock_file_holds_nothing_but_versions_with_hashes(file: Path) -> None:
    assert [line for line in lines(file) if not PIN.fullmatch(line)] == []


@pytest.mark.parametrize(
    ("name", "requirements"),
    [
        ("base", PYPROJECT["project"]["dependencies"]),
        ("build", PYPROJECT["dependency-groups"]["build"]),
        ("dev", PYPROJECT["dependency-groups"]["dev"]),
        ("everything", [*EXTRAS["spark"], *EXTRAS["render"], *PYPROJECT["dependency-groups"]["eval"]]),
        ("server", [*EXTRAS["server"], *EXTRAS["postgres"], *EXTRAS["crawl"]]),
    ],
)
def test_pyproject_allows_the_locked_versions(name: str, requirements: list[str]) -> None:
    locked = pins(ROOT / "requirements" / f"{name}.txt")
    for text in requirements:
        requirement = Requirement(text)
        versions = locked[canonicalize_name(requirement.name)]
        assert all(version in requirement.specifier for version in versions), (text, versions)


def test_all_lock_files_agree() -> None:
    everything = pins(ROOT / "requirements" / "everything.txt")
    for file in LOCK_FILES:
        for name, versions in pins(file).items():
            assert versions <= everything[name], (file.name, name)
