"""`siteloom forget` as a user calls it."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from siteloom.apps.cli.main import app
from siteloom.core.file_lock import packs_lock
from tests.apps.cli.command import Command, one_sentence, work_inside

PAGES = ("http://a.example/1", "http://a.example/2", "http://b.example/1")


@pytest.fixture
def ingested(siteloom: Command) -> Command:
    _write(siteloom, PAGES)
    assert siteloom("ingest", "pages.jsonl").returncode == 0
    return siteloom


def _write(siteloom: Command, urls: tuple[str, ...], days_ago: int = 0) -> None:
    at = (datetime.now(UTC) - timedelta(days=days_ago)).isoformat()
    lines = [json.dumps({"url": url, "html": f"<p>{url}</p>", "fetched_at": at}) for url in urls]
    (siteloom.folder / "pages.jsonl").write_text("\n".join(lines))


def sites(siteloom: Command) -> dict[str, int]:
    lines = siteloom("status", "-o", "-").stdout.splitlines()
    return {row["site"]: row["pages"] for row in map(json.loads, lines)}


def told(result: subprocess.CompletedProcess[str]) -> str:
    """What was said, in one line: titles are as wide as their tables."""
    return " ".join(result.stderr.split())


def test_sites_and_pages_are_forgotten(ingested: Command) -> None:
    would = ingested("forget", "a.example/1", "b.example", "--dry-run")
    assert would.returncode == 0
    assert "What would be removed" in told(would)
    assert sites(ingested) == {"a.example": 2, "b.example": 1}
    done = ingested("forget", "a.example/1", "b.example", "--yes")
    assert done.returncode == 0
    rows = [line.split() for line in done.stderr.splitlines() if line.startswith("│")]
    assert ["│", "pages", "│", "2", "│"] in rows
    assert sites(ingested) == {"a.example": 1}


def test_mistakes_are_told_in_a_sentence(ingested: Command) -> None:
    unknown = ingested("forget", "c.example", "--yes")
    assert unknown.returncode == 1
    assert one_sentence(unknown) == (
        "c.example is no site of this workspace, and no URL of a page in it: "
        "its sites are a.example, b.example."
    )
    not_sure = ingested("forget", "a.example")
    assert not_sure.returncode == 2
    assert one_sentence(not_sure) == "This cannot be undone: give --yes, or look first with --dry-run."
    for arguments in ((), ("a.example", "--expired")):
        assert one_sentence(ingested("forget", *arguments)).startswith("Name the sites or URLs")
    assert "[retention] in siteloom.toml" in one_sentence(ingested("forget", "--expired"))
    assert sites(ingested) == {"a.example": 2, "b.example": 1}


def test_a_person_at_a_terminal_is_asked(
    ingested: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leader, follower = os.openpty()
    os.write(leader, b"n\n")
    work_inside(ingested.folder, monkeypatch)
    with os.fdopen(follower) as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        with pytest.raises(SystemExit) as end:
            app(["forget", "b.example"])
    os.close(leader)
    assert "Forget all this?" in capsys.readouterr().err
    assert end.value.code == 1
    assert "b.example" in sites(ingested)


def test_what_is_kept_for_long_enough_goes_when_pages_come(siteloom: Command) -> None:
    _write(siteloom, PAGES[:2], days_ago=40)
    siteloom("ingest", "pages.jsonl")
    _write(siteloom, PAGES[2:])
    keep = {"SITELOOM_RETENTION_DAYS": "30"}
    with packs_lock(siteloom.folder / ".siteloom"):  # as someone has it who makes a backup
        hindered = siteloom("ingest", "pages.jsonl", environment=keep)
    assert hindered.returncode == 0
    assert "siteloom: What was kept for long enough is not all removed yet" in hindered.stderr
    assert sites(siteloom) == {"a.example": 2, "b.example": 1}
    came = siteloom("ingest", "pages.jsonl", environment=keep)
    assert came.returncode == 0
    assert "Removed, as the settings of retention say" in told(came)
    assert sites(siteloom) == {"b.example": 1}
    again = siteloom("forget", "--expired", "--yes", environment=keep)
    assert (again.returncode, again.stderr) == (0, "Removed: nothing.\n")
