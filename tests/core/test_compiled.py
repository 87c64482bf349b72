"""Compiled code is kept where only the user can put any: it is kept as pickles."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import siteloom
from siteloom.core import compiled

SOURCE = Path(siteloom.__file__).parent

# Tells what numba takes for its settings: when it is imported, when it looks again, and once it has compiled.
PROGRAM = """
import os, sys
opened = []
sys.addaudithook(lambda event, details: event == "open" and opened.append(str(details[0])))
from siteloom.core.compiled import njit
import numba
def told():
    print(numba.config.CACHE_DIR, numba.config.DEVELOPER_MODE, numba.config.CACHE_LOCATOR_CLASSES)
told()
os.environ["NUMBA_FULL_TRACEBACKS"] = "1"
numba.core.config.reload_config()
told()
njit(lambda one: one + 1)(1)
told()
print([name for name in opened if "numba_config" in name])
"""


def test_a_file_in_the_current_folder_sets_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    (folder / ".numba_config.yaml").write_text(
        f"cache_dir: {folder}\ndeveloper_mode: 1\ncache_locator_classes: EvilLocator\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    first, again, at_last, opened = done.stdout.splitlines()
    assert first.split() == [str(tmp_path / "cache/siteloom/compiled"), "0"]
    assert again.split()[-1] == at_last.split()[-1] == "0"
    assert str(folder) not in done.stdout
    assert opened == "[]"
    assert done.stderr == ""


def test_no_other_module_imports_numba() -> None:
    found = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Import) and any(one.name.startswith("numba") for one in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba"))
    }
    assert found == {"core/compiled.py"}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/siteloom/compiled"


def test_the_folder_is_for_its_owner_alone(cache: Path) -> None:
    umask = os.umask(0)
    try:
        assert compiled._cache_folder() == str(cache)
    finally:
        os.umask(umask)
    assert cache.stat().st_mode & 0o777 == 0o700
    assert compiled._cache_folder() == str(cache)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755, 0o701])
def test_one_that_others_have_rights_to_is_not_used(cache: Path, mode: int) -> None:
    cache.mkdir(parents=True)
    cache.chmod(mode)
    assert is_temporary(compiled._cache_folder())


def test_one_of_another_user_is_not_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: cache.stat().st_uid + 1)
    assert is_temporary(compiled._cache_folder())


def test_a_link_is_not_followed(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    cache.parent.mkdir(parents=True)
    cache.symlink_to(tmp_path / "elsewhere")
    assert is_temporary(compiled._cache_folder())


def test_one_in_the_current_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the standard says: paths that are relative do not count."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", "home")
    assert is_temporary(compiled._cache_folder())
    assert list(tmp_path.iterdir()) == []


def is_temporary(folder: str) -> bool:
    return Path(folder).name.startswith("siteloom-compiled-") and Path(folder).stat().st_mode & 0o777 == 0o700
