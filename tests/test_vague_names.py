"""`make check` measures how many names say nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "vague-names"

# Nine names of which three are vague: `found`, `is_kept` and `f`. The targets of comprehensions do not count.
MODULE = """
class Result:
    def __init__(self, page):
        self.title = page.title

    def is_kept(self):
        return self.title

def total(pages):
    with open("x") as f:
        found = [x for one in pages for x in one]
    for _ in found:
        pass
    number = len(found)
    return number
"""


def measure(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *options, str(folder)], capture_output=True, text=True, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "module.py").write_text(MODULE, encoding="utf-8")
    return tmp_path


def test_vague_names_are_counted_where_they_are_bound(folder: Path) -> None:
    result = measure(folder)
    assert result.returncode == 0, result.stderr
    *names, total = result.stdout.splitlines()
    assert {line.split(",")[0].split()[1] for line in names} == {"found", "is_kept", "f"}
    assert all(line.endswith("1 of them in " + str(folder / "module.py")) for line in names)
    assert total == f"33.33 % of 9 names in {folder} are vague."


def test_more_vague_names_than_the_limit_fail(folder: Path) -> None:
    assert measure(folder, "--limit", "33.4").returncode == 0
    result = measure(folder, "--limit", "33.3")
    assert result.returncode == 1
    assert "At most 33.3 % may be" in result.stdout


@pytest.mark.parametrize(
    ("line", "share"),
    [
        ("found_pages = 1", 0),
        ("most_of = 1", 0),
        ("MOST_PAGES = 1", 0),
        ("all_others = 1", 100),
        ("class OneOther: ...", 100),
        ("class _Rest: ...", 100),
        ("c = 1", 100),
        ("i = 1", 0),
        ("__found = 1", None),
        ("from siteloom.core.compiled import compiled; c = 1", None),
    ],
)
def test_a_name_is_vague_if_all_its_words_are(tmp_path: Path, line: str, share: int | None) -> None:
    (tmp_path / "module.py").write_text(line, encoding="utf-8")
    shown = measure(tmp_path).stdout.splitlines()[-1]
    expected = "0.00 % of 0 names" if share is None else f"{share:.2f} % of 1 names"
    assert shown.startswith(expected)
