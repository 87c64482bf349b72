"""What is in a workspace, and whether everything is in order."""

from __future__ import annotations

import json
from pathlib import Path

from siteloom.core.settings import ResolvedSetting, Settings, StoreSettings
from siteloom.operations.backup import BackupRequest, backup
from siteloom.operations.cluster import cluster_store
from siteloom.operations.context import Context, open_context
from siteloom.operations.forget import ForgetRequest, preview
from siteloom.operations.status import DoctorRequest, StatusRequest, doctor, status
from siteloom.store.store import Store
from tests.apps.cli.command import Command
from tests.maintenance import guide
from tests.store.helpers import page, put

SITE = "larkmoor-guide.example"


def test_sites_are_counted_with_what_to_do_next(store: Store) -> None:
    put(store, *guide.pages(), page("https://a.example/1"))
    cluster_store(store, "vertex", site=SITE)
    result = status(Context(store=store, settings=Settings()), StatusRequest(runs=1))
    steps = {site.site: (site.pages, len(site.templates) > 0, site.next_step.kind) for site in result.sites}
    assert steps == {"a.example": (1, False, "cluster"), SITE: (len(guide.pages()), True, "annotate")}
    assert [run.verb for run in result.runs] == ["cluster"]


def test_status_tells_the_same_on_the_command_line_and_in_python(tmp_path: Path) -> None:
    siteloom = Command(tmp_path)
    lines = [json.dumps({"url": f"https://a.example/{n}", "html": "<p>x"}) for n in range(3)]
    (siteloom.folder / "pages.jsonl").write_text("\n".join(lines))
    assert siteloom("ingest", "pages.jsonl").returncode == 0
    rows = [json.loads(line) for line in siteloom("status", "-o", "-").stdout.splitlines()]
    settings = Settings(store=StoreSettings(workspace=str(siteloom.folder / ".siteloom")))
    with open_context(settings) as context:
        result = status(context)
    assert rows == [{name: getattr(site, name) for name in rows[0]} for site in result.sites]
    told = siteloom("doctor", "-o", "-")
    assert told.returncode == 0, told.stderr
    checks = [json.loads(line) for line in told.stdout.splitlines()]
    assert [(row["check"], row["ok"]) for row in checks] == [
        (check.name, check.is_ok) for check in doctor(settings).checks
    ]


def test_doctor_says_what_is_wrong_and_what_to_do(tmp_path: Path) -> None:
    siteloom = Command(tmp_path)
    settings = Settings(store=StoreSettings(workspace=str(siteloom.folder / "none")))
    untrusted = ResolvedSetting("alarm.command", "mail", "file", "", needs_trust=True)
    result = doctor(settings, DoctorRequest(untrusted_settings=(untrusted,)))
    assert result.failed == ("settings",)
    assert not result.is_damaged
    (check,) = [check for check in result.checks if not check.is_ok]
    assert "siteloom config --trust" in check.finding


def test_damaged_packs_are_damage(sqlite_store: Store) -> None:
    put(sqlite_store, page("https://a.example/1"))
    (pack,) = sqlite_store.packs_folder.rglob("*.pack")
    content = bytearray(pack.read_bytes())
    content[len(content) // 2] ^= 0xFF
    pack.write_bytes(content)
    result = doctor(Settings(store=StoreSettings(workspace=str(sqlite_store.folder))))
    assert result.is_damaged
    assert any(name.startswith("pack ") for name in result.failed)


def test_a_backup_counts_what_it_copied(sqlite_store: Store) -> None:
    put(sqlite_store, page("https://a.example/1"))
    folder = sqlite_store.folder.parent / "copy"
    context = Context(store=sqlite_store, settings=Settings())
    result = backup(context, BackupRequest(folder=str(folder)))
    assert (result.folder, result.packs, result.has_dump) == (str(folder), 1, False)
    assert result.bytes > 0
    with open_context(Settings(store=StoreSettings(workspace=str(folder)))) as copy:
        assert [one.url for one in copy.store.pages()] == ["https://a.example/1"]


def test_a_preview_of_forgetting_changes_nothing(store: Store) -> None:
    put(store, page("https://a.example/1"), page("https://b.example/1"))
    would = preview(
        Context(store=store, settings=Settings()), ForgetRequest(names=("a.example", "b.example/1"))
    )
    assert (would.sites, would.urls) == (("a.example",), ("https://b.example/1",))
    assert would.counts["pages"] == 2
    assert len(store.sites()) == 2
