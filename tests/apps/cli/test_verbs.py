"""The verbs from end to end, on small crawls made here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.apps.cli.command import Command
from tests.patience import SECONDS


def write_crawl(file: Path, count: int = 5, text: str = "first") -> Path:
    lines = [
        json.dumps({"url": f"https://shop.example/p/{n}", "html": f"<title>{n}</title><p>{text} {n}"})
        for n in range(count)
    ]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def status(siteloom: Command, *options: str) -> list[dict[str, object]]:
    result = siteloom("status", "-o", "-", *options)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_from_nothing_to_a_filled_workspace(siteloom: Command) -> None:
    crawl = write_crawl(siteloom.folder / "crawl.jsonl")
    assert siteloom("init").returncode == 0
    assert siteloom("ingest", str(crawl)).returncode == 0
    (site,) = status(siteloom)
    assert (site["site"], site["pages"], site["versions"]) == ("shop.example", 5, 5)
    assert siteloom("doctor").returncode == 0


def test_init_leaves_a_workspace_that_is_there_alone(siteloom: Command) -> None:
    siteloom("ingest", str(write_crawl(siteloom.folder / "crawl.jsonl")))
    again = siteloom("init")
    assert again.returncode == 0
    assert "already" in again.stderr
    assert status(siteloom)[0]["pages"] == 5


def test_ingest_makes_the_workspace_and_says_what_it_did(siteloom: Command) -> None:
    result = siteloom("ingest", str(write_crawl(siteloom.folder / "crawl.jsonl")))
    assert result.returncode == 0
    assert result.stdout == ""
    assert "new" in result.stderr
    assert (siteloom.folder / ".siteloom").is_dir()


def test_sources_may_be_a_list_or_a_pattern(siteloom: Command) -> None:
    lists = siteloom.folder / "lists"
    lists.mkdir()
    write_crawl(siteloom.folder / "crawl-1.jsonl", count=2)
    write_crawl(lists / "crawl-2.jsonl", count=4)
    (lists / "list.txt").write_text("# both\ncrawl-1.jsonl\n\ncrawl-2.jsonl\n")
    result = siteloom("ingest", "@lists/list.txt")
    assert result.returncode == 0, result.stderr
    assert status(siteloom)[0]["pages"] == 4
    write_crawl(siteloom.folder / "crawl-3.jsonl", count=7)
    result = siteloom("ingest", "crawl-*.jsonl", f"file://{lists}/")
    assert result.returncode == 0, result.stderr
    assert status(siteloom)[0]["pages"] == 7
    clusters = siteloom("cluster", "lists/*", "-o", "-")
    assert clusters.returncode == 0, clusters.stderr
    (cluster,) = map(json.loads, clusters.stdout.splitlines())
    assert len(cluster["pages"]) == 4


def test_the_same_crawl_twice_changes_nothing_and_a_new_one_adds_versions(siteloom: Command) -> None:
    crawl = write_crawl(siteloom.folder / "crawl.jsonl")
    siteloom("ingest", str(crawl))
    siteloom("ingest", str(crawl))
    assert status(siteloom)[0]["versions"] == 5
    siteloom("ingest", str(write_crawl(siteloom.folder / "later.jsonl", text="second")))
    (site,) = status(siteloom)
    assert (site["pages"], site["versions"]) == (5, 10)


def test_a_site_can_be_named(siteloom: Command) -> None:
    siteloom("ingest", "--site", "my shop", str(write_crawl(siteloom.folder / "crawl.jsonl")))
    assert status(siteloom)[0]["site"] == "my shop"


def test_common_options_stand_before_or_behind_the_verb(siteloom: Command) -> None:
    crawl = str(write_crawl(siteloom.folder / "crawl.jsonl"))
    assert siteloom("--workspace", "one", "ingest", crawl).returncode == 0
    assert siteloom("ingest", crawl, "--workspace", "two").returncode == 0
    assert status(siteloom, "--workspace", "one") == status(siteloom, "--workspace", "two")
    assert not (siteloom.folder / ".siteloom").exists()


def test_two_jobs_store_what_one_job_stores(siteloom: Command) -> None:
    crawl = str(write_crawl(siteloom.folder / "crawl.jsonl", count=300))
    siteloom("ingest", crawl, "--workspace", "one")
    siteloom("ingest", crawl, "--workspace", "two", "-j", "2")
    assert status(siteloom, "--workspace", "one") == status(siteloom, "--workspace", "two")


def test_failures_are_counted_shown_and_written_while_the_rest_goes_on(siteloom: Command) -> None:
    crawl = siteloom.folder / "crawl.jsonl"
    crawl.write_text(
        '{"url": "https://a.example/", "html": "<p>x"}\nnot json\n{"html": "<p>y"}\n', encoding="utf-8"
    )
    result = siteloom("ingest", str(crawl), "--failures", "failures.csv")
    assert result.returncode == 0
    assert "not valid JSON" in result.stderr
    header, *rows = (siteloom.folder / "failures.csv").read_text(encoding="utf-8").splitlines()
    assert header == "url,reason,detail"
    assert ["not valid JSON" in rows[0], "no URL" in rows[1]] == [True, True]
    assert status(siteloom)[0]["pages"] == 1


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_status_is_written_as_data(siteloom: Command, suffix: str) -> None:
    siteloom("ingest", str(write_crawl(siteloom.folder / "crawl.jsonl")))
    file = siteloom.folder / f"status.{suffix}"
    assert siteloom("status", "-o", str(file)).returncode == 0
    assert b"shop.example" in file.read_bytes()


def test_config_tells_each_value_and_where_it_comes_from(siteloom: Command) -> None:
    (siteloom.folder / "siteloom.toml").write_text("[parse]\nmax_bytes = 7\nmax_tags = 8\n", encoding="utf-8")
    result = siteloom("config", "-j", "3", "-o", "-", environment={"SITELOOM_PARSE_MAX_TAGS": "9"})
    settings = {row["name"]: row for row in map(json.loads, result.stdout.splitlines())}
    assert (
        settings["parse.max_bytes"]["value"],
        settings["parse.max_bytes"]["origin"].endswith("siteloom.toml"),
    ) == ("7", True)
    assert (settings["parse.max_tags"]["value"], "environment" in settings["parse.max_tags"]["origin"]) == (
        "9",
        True,
    )
    assert (settings["run.jobs"]["value"], settings["run.jobs"]["origin"]) == ("3", "command line")
    assert settings["pages.max_bytes"]["origin"] == "default"


def test_doctor_finds_a_damaged_pack(siteloom: Command) -> None:
    siteloom("ingest", str(write_crawl(siteloom.folder / "crawl.jsonl")))
    (pack,) = (siteloom.folder / ".siteloom" / "packs").rglob("*.pack")
    content = bytearray(pack.read_bytes())
    content[-1] ^= 0xFF
    pack.write_bytes(content)
    result = siteloom("doctor")
    assert result.returncode == 1
    assert "damaged must come back from a backup" in result.stderr


def test_doctor_finds_links_and_open_permissions(siteloom: Command) -> None:
    workspace = siteloom.folder / ".siteloom"
    siteloom("init")
    (workspace / "uploads").mkdir()
    (workspace / "uploads" / "old").symlink_to(siteloom.folder)
    workspace.chmod(0o755)  # as older versions made it
    (workspace / "siteloom.db").chmod(0o644)
    result = siteloom("doctor", "-o", "-")
    bad = {
        row["check"]: row["finding"] for row in map(json.loads, result.stdout.splitlines()) if not row["ok"]
    }
    assert bad.keys() == {"links", "permissions"}
    assert bad["links"].startswith("uploads/old is a symbolic link")
    assert f"chmod -R go-rwx {workspace}" in bad["permissions"]
    assert "backup" not in result.stderr
    (workspace / "uploads" / "old").unlink()
    subprocess.run(["chmod", "-R", "go-rwx", workspace], check=True)
    assert siteloom("doctor").returncode == 0


@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "is_in_order"),
    [
        (0o700, 0o644, True),  # no one else comes in
        (0o755, 0o600, True),  # no one else reads what is there
        (0o750, 0o640, False),
        (0o711, 0o604, False),
        (0o770, 0o600, False),  # others could put other files in the place of these
    ],
)
def test_doctor_tells_whether_others_have_a_way_in(
    siteloom: Command, folder_mode: int, file_mode: int, is_in_order: bool
) -> None:
    workspace = siteloom.folder / ".siteloom"
    siteloom("init")
    (workspace / "siteloom.db").chmod(file_mode)
    workspace.chmod(folder_mode)
    result = siteloom("doctor")
    assert (result.returncode == 0) == is_in_order
    assert ("Not in order: permissions." in result.stderr) != is_in_order


def test_doctor_looks_at_packs_that_are_elsewhere(siteloom: Command) -> None:
    workspace, disk = siteloom.folder / ".siteloom", siteloom.folder / "other disk"
    siteloom("ingest", str(write_crawl(siteloom.folder / "crawl.jsonl")))
    (workspace / "packs").rename(disk)
    (workspace / "packs").symlink_to(disk)
    disk.chmod(0o777)
    result = siteloom("doctor", "-o", "-")
    assert f"chmod -R go-rwx '{disk}'" in result.stdout


def test_quiet_says_nothing_and_data_still_comes_out(siteloom: Command) -> None:
    crawl = str(write_crawl(siteloom.folder / "crawl.jsonl"))
    result = siteloom("-q", "ingest", crawl)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert siteloom("status", "-q", "-o", "-").stdout != ""


def test_the_log_file_is_json_lines(siteloom: Command) -> None:
    siteloom("status", "--log-file", "log.jsonl")
    (line,) = (siteloom.folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    entry = json.loads(line)
    assert entry["level"] == "error"
    assert "no workspace" in entry["message"]


def test_failures_and_the_course_of_a_run_are_logged(siteloom: Command) -> None:
    crawl = siteloom.folder / "crawl.jsonl"
    crawl.write_text('{"url": "https://a.example/", "html": "<p>x"}\nnot json\n', encoding="utf-8")
    told = siteloom("ingest", "crawl.jsonl", "-v", "--log-file", "log.jsonl").stderr
    entries = [
        json.loads(line) for line in (siteloom.folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    messages = [entry["message"] for entry in entries]
    assert messages[0] == "ingest begins: crawl.jsonl"
    assert any(message.startswith("failed crawl.jsonl:2: not valid JSON") for message in messages)
    assert "ingest ends: 1 new, 0 changed, 0 unchanged, 1 failed, 0 skipped" in messages
    assert "WARNING failed crawl.jsonl:2" in told


def test_a_path_that_looks_like_markup_is_shown_as_it_is(siteloom: Command) -> None:
    result = siteloom("init", "--workspace", "a[red]b[/c]d")
    assert result.returncode == 0, result.stderr
    assert "a[red]b[/c]d" in result.stderr


def test_the_password_of_a_database_is_never_shown(siteloom: Command) -> None:
    result = siteloom(
        "config", "-o", "-", environment={"SITELOOM_STORE_URL": "postgresql://me:secret@host/x"}
    )
    assert "postgresql://me:***@host/x" in result.stdout
    assert "secret" not in result.stdout


def test_of_a_webhook_only_the_host_is_shown(siteloom: Command) -> None:
    address = "https://secret@chat.example:8443/hooks/secret?key=secret"
    result = siteloom("config", "-o", "-", environment={"SITELOOM_ALARM_WEBHOOK": address})
    assert '"https://chat.example:8443"' in result.stdout
    assert "secret" not in result.stdout


def test_being_told_to_stop_is_like_ctrl_c(siteloom: Command) -> None:
    assert interrupted(siteloom, signal.SIGTERM) >= 32


def test_the_same_folder_written_otherwise_is_the_same_folder(siteloom: Command) -> None:
    (siteloom.folder / "pages").mkdir()
    (siteloom.folder / "pages" / "a.html").write_text("<p>x", encoding="utf-8")
    for spelling in ("pages", "./pages/", "pages/../pages", str(siteloom.folder / "pages")):
        siteloom("ingest", spelling)
    assert status(siteloom)[0]["pages"] == 1


def test_ctrl_c_keeps_what_was_read(siteloom: Command) -> None:
    assert interrupted(siteloom, signal.SIGINT) >= 32


def interrupted(siteloom: Command, by: signal.Signals) -> int:
    """How many pages a run has kept that was interrupted while its source had more to come."""
    pipe = siteloom.folder / "endless.jsonl"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "siteloom", "ingest", str(pipe)]
    with (
        subprocess.Popen(command, cwd=siteloom.folder, stderr=subprocess.PIPE, text=True) as process,
        pipe.open("w", encoding="utf-8") as source,
    ):
        for n in range(500):
            source.write(json.dumps({"url": f"https://a.example/{n}", "html": "<p>" + "x" * 1000}) + "\n")
        source.flush()
        packs = siteloom.folder / ".siteloom" / "packs"
        while not list(packs.rglob("*.pack")) and process.poll() is None:
            pass
        process.send_signal(by)
        _, messages = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert "Interrupted" in messages
    assert "Traceback" not in messages
    assert siteloom("doctor").returncode == 0
    pages = status(siteloom)[0]["pages"]
    assert isinstance(pages, int)
    return pages


def test_a_reader_that_has_seen_enough_is_no_error(siteloom: Command) -> None:
    siteloom("ingest", str(write_crawl(siteloom.folder / "crawl.jsonl")))
    script = f"{sys.executable} -m siteloom status -o - | true"
    result = subprocess.run(
        ["bash", "-c", script], cwd=siteloom.folder, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in result.stderr
    assert "Exception" not in result.stderr
