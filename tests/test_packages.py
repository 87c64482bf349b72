"""What `make wheel-check` would say of packages that lack a file, or hold one too many."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "check-packages"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("check_packages", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_packages_are_read_by_the_names_that_files_have_in_the_project(
    check: ModuleType, tmp_path: Path
) -> None:
    source = tmp_path / "one.py"
    source.write_text("")
    sdist, wheel = tmp_path / "siteloom-1.tar.gz", tmp_path / "siteloom-1-py3-none-any.whl"
    with tarfile.open(sdist, "w:gz") as packed:
        packed.add(source, "siteloom-1/src/siteloom/one.py")
        packed.add(source, "siteloom-1/PKG-INFO")
    with zipfile.ZipFile(wheel, "w") as zipped:
        zipped.write(source, "siteloom/one.py")
        zipped.write(source, "siteloom-1.dist-info/METADATA")
    assert check.in_sdist(sdist) == {"src/siteloom/one.py", "PKG-INFO"}
    assert check.in_wheel(wheel) == {"src/siteloom/one.py"}


def test_what_is_missing_and_what_is_too_much_is_told(check: ModuleType) -> None:
    committed, new = {"src/a.py", "docs/b.md"}, {"src/new.py"}
    assert check.faults("x.tar.gz", committed, committed, new) == []
    assert check.faults("x.tar.gz", committed | new, committed, new) == []
    assert check.faults("x.tar.gz", {"src/a.py", "build/data.csv"}, committed, new) == [
        "x.tar.gz lacks docs/b.md.",
        "x.tar.gz holds build/data.csv, which is not of the project.",
    ]
