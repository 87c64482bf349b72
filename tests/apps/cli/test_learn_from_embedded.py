"""`siteloom learn --from-embedded` from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.apps.cli.command import Command, one_sentence, work_inside
from tests.apps.cli.verbs.test_learn import within
from tests.learning.annotation.self_annotating import RESTAURANTS, site, truth


@pytest.fixture
def folder(siteloom: Command) -> Path:
    """40 saved pages, 25 of which carry JSON-LD."""
    pages = siteloom.folder / "pages"
    pages.mkdir()
    for number, page in enumerate(site(marked=25)):
        (pages / f"{number:02}.html").write_bytes(page.html)
    return pages


def values(file: Path) -> dict[str, dict[str, list[str]]]:
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {row["url"]: row["values"] for row in rows}


def check(records: Path) -> None:
    found = values(records)
    assert len(found) == len(RESTAURANTS)
    for page in RESTAURANTS[25:]:
        assert found[page.page.url] == {name: list(texts) for name, texts in truth(page).items()}


def test_pages_without_markup_are_extracted_by_what_others_carry(siteloom: Command, folder: Path) -> None:
    result = siteloom("learn", "pages", "--from-embedded", "-o", "w.json")
    assert result.returncode == 0, result.stderr
    assert "25 pages that were looked at carry a record of type Restaurant." in result.stderr
    assert result.stderr.splitlines()[-1] == "The wrapper is in w.json."
    result = siteloom("extract", "pages", "--wrapper", "w.json", "-o", "records.jsonl")
    assert result.returncode == 0, result.stderr
    check(siteloom.folder / "records.jsonl")


def test_mistakes(siteloom: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work_inside(siteloom.folder, monkeypatch)
    for number in range(25):
        (folder / f"{number:02}.html").unlink()
    cases = {
        "learn pages --from-embedded": "learn needs --examples FILE or --from-embedded, and -o FILE",
        "learn pages --from-embedded --examples e.jsonl -o w.json": "--from-embedded, but not both",
        "learn pages --from-embedded --cluster x -o w.json": "a SOURCE or --cluster",
        "learn pages --from-embedded -o w.json": "No page carries a record as JSON-LD",
    }
    for command, message in cases.items():
        assert message in one_sentence(within(*command.split()))
