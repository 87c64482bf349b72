"""What is installed with Siteloom is looked at by `make check`: licences, and known vulnerabilities."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "audit-dependencies"


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("audit_dependencies", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def run(folder: Path, answer: object) -> subprocess.CompletedProcess[str]:
    """The script, where pip-audit is told this of each package."""
    (folder / "pip_audit.py").write_text(f"print({json.dumps(json.dumps(answer))})", encoding="utf-8")
    return subprocess.run(
        [sys.executable, SCRIPT],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_base_is_what_pyproject_asks_for_and_all_that_it_needs(audit: ModuleType) -> None:
    base = audit.closure("siteloom", ())
    assert {"lxml", "sqlalchemy", "zstandard", "markupsafe"} <= base
    assert not {"scrapy", "psycopg", "fastapi", "pytest"} & base
    assert {"psycopg", "psycopg-binary"} <= audit.closure("siteloom", ("postgres",))


def test_copyleft_in_the_base_is_told(audit: ModuleType) -> None:
    assert audit.copyleft(frozenset({"lxml", "publicsuffixlist"})) == []
    (told,) = audit.copyleft(frozenset({"lxml", "psycopg"}))
    assert told.startswith("psycopg is under LGPL-3.0")


def test_a_list_that_is_out_of_date_is_told(audit: ModuleType) -> None:
    document = audit.shown(frozenset({"lxml"}), {"postgres": frozenset({"psycopg"})})
    assert audit.out_of_date(document, document) == []
    (told,) = audit.out_of_date(document.replace("BSD-3-Clause", "MIT"), document)
    assert "(| lxml | BSD-3-Clause |)" in told


def test_a_known_vulnerability_fails_the_check(tmp_path: Path) -> None:
    found = {"name": "lxml", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}
    done = run(tmp_path, {"dependencies": [found, {"name": "typer", "skip_reason": "not found"}]})
    assert done.returncode == 1
    assert "lxml 1.0 has a known vulnerability, PYSEC-1; versions without it: 1.1." in done.stderr


def test_where_no_service_answers_that_is_told_and_the_check_goes_on(tmp_path: Path) -> None:
    done = run(tmp_path, {"dependencies": [{"name": "packaging", "skip_reason": "not found"}]})
    assert "no service that knows of any could be asked" in done.stdout
    assert "vulnerability" not in done.stderr
