"""`siteloom monitor` from end to end: changes are noticed, told, kept and alarmed about."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from siteloom.core.file_lock import write_lock
from tests.apps.cli.changing import SITE, WRAPPER, Going, alarm_script, done, rows, rows_in, stored
from tests.apps.cli.command import Command, one_sentence
from tests.apps.cli.verbs.test_learn import within, write_lines
from tests.maintenance.test_alarms import Webhook, webhook

__all__ = ["webhook"]  # a fixture


def checks() -> list[tuple[str, bool]]:
    with closing(stored()) as store:
        return [(one.kind, one.is_healthy) for one in store.checks()]


def test_a_site_that_stays_as_it_is_is_healthy(watched_place: Path, go: Going) -> None:
    go(watched_place)
    before = checks()
    assert rows("monitor") == []
    assert "healthy" in done("monitor")
    assert checks() == [("bellwethers", True)] * 2 + before
    assert "No change was noticed" in done("relearn")


def test_a_change_is_told_with_what_was_seen_before_and_after(watched_place: Path, go: Going) -> None:
    go(watched_place)
    done("ingest", "mild.jsonl")
    (change,) = rows("monitor")
    assert (change["wrapper"], change["test"], change["attributes"]) == (WRAPPER, "null", ["phone"])
    assert change["share"] == 1
    seen = change["evidence"][0]
    assert (seen["attribute"], len(seen["before"]), seen["after"]) == ("phone", 1, [])
    assert f"{seen['before'][0]!r} still stands at /html" in seen["finding"]
    told = done("monitor")
    assert f"{WRAPPER} has changed:" in told
    sentence = "Value missing: phone, on up to 100 % of the pages that had values."
    assert sentence in " ".join(told.split())
    assert (
        f"    {seen['url']}\n      phone, before: {seen['before'][0]}\n      phone, now:    nothing\n" in told
    )
    assert all(len(line) <= 80 for line in told.splitlines() if "://" not in line)
    assert checks()[0] == ("bellwethers", False)


def test_the_pages_of_a_source_are_compared_and_nothing_is_kept(watched_place: Path, go: Going) -> None:
    go(watched_place)
    before = checks()
    of_workspace = rows("monitor", "mild.jsonl")
    of_file = rows("monitor", "mild.jsonl", "--watch", "watch.jsonl", "--workspace", "none")
    assert of_workspace == of_file
    assert [change["attributes"] for change in of_file] == [["phone"]]
    assert rows("monitor", "original.jsonl", "--watch", "watch.jsonl", "--wrapper", WRAPPER) == []
    assert checks() == before


def test_changes_are_written_in_every_format(watched_place: Path, go: Going) -> None:
    go(watched_place)
    for suffix in ("jsonl", "csv", "parquet"):
        done("monitor", "redesign.jsonl", "--watch", "watch.jsonl", "-o", f"changes.{suffix}")
    lines = rows_in("changes.jsonl")
    assert [line["test"] for line in lines] == ["shingle", "null"]
    with Path("changes.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [json.loads(row["evidence"]) for row in table] == [line["evidence"] for line in lines]
    assert [row["attributes"].split(" | ") for row in table] == [line["attributes"] for line in lines]
    columns = pq.read_table("changes.parquet").to_pylist()
    assert [json.loads(row["evidence"]) for row in columns] == [line["evidence"] for line in lines]
    assert [row["share"] for row in columns] == [line["share"] for line in lines]


def test_the_threshold_is_a_setting_and_an_option(watched_place: Path, go: Going) -> None:
    folder = go(watched_place)
    pages = rows_in("original.jsonl")
    later = {page["url"]: page for page in rows_in("mild.jsonl")}
    with closing(stored()) as store:
        watched = json.loads(store.watches()[0].text)["bellwethers"]
    some = {one["url"] for one in [one for one in watched if "phone" in one["records"][0]][:2]}
    mix = [later[page["url"]] if page["url"] in some else page for page in pages]
    write_lines(folder / "mixed.jsonl", mix)
    mixed = ("monitor", "mixed.jsonl", "--watch", "watch.jsonl")
    assert rows(*mixed) == []
    assert [change["attributes"] for change in rows(*mixed, "--threshold", "5")] == [["phone"]]
    Path("siteloom.toml").write_text("[change]\nthreshold = 5\n", encoding="utf-8")
    assert len(rows(*mixed)) == 1
    assert rows(*mixed, "--threshold", "90") == []


def test_pages_that_are_gone_are_no_change_and_others_take_their_place(
    watched_place: Path, go: Going
) -> None:
    folder = go(watched_place)
    with closing(stored()) as store:
        watched = {one["url"] for one in json.loads(store.watches()[0].text)["bellwethers"]}
    gone = sorted(watched)[:5]
    html = "<html><body><h1>Sidan finns inte</h1><p>Den har tagits bort.</p></body></html>"
    write_lines(folder / "gone.jsonl", [{"url": url, "html": html} for url in gone])
    assert rows("monitor", "gone.jsonl", "--watch", "watch.jsonl") == []
    told = done("monitor", "gone.jsonl", "--watch", "watch.jsonl")
    assert "15 of 20 pages were not fetched again." in told
    done("ingest", "gone.jsonl")  # compares the watched pages that were imported again
    assert "healthy" in done("monitor")
    with closing(stored()) as store:
        now = {one["url"] for one in json.loads(store.watches()[0].text)["bellwethers"]}
    assert len(now) == 20
    assert not now & set(gone)


def test_a_night_of_walls_is_told_and_keeps_nothing(watched_place: Path, go: Going) -> None:
    folder = go(watched_place)
    before = checks()
    html = "<html><body><form><p>Bitte melden Sie sich an</p><input></form></body></html>"
    walls = [{"url": page["url"], "html": html} for page in rows_in("original.jsonl")]
    write_lines(folder / "walls.jsonl", walls)
    done("ingest", "walls.jsonl")
    result = within("monitor", "-o", "changes.jsonl")
    told = " ".join(result.stderr.split())
    assert f"{WRAPPER}: 20 of 20 pages were removed, and too few are left to say more." in told
    assert "│ mostly removed │" in told
    assert f"siteloom: 20 of 20 watched pages of {WRAPPER} were removed: the site may have moved" in told
    assert result.returncode == 0
    assert rows_in("changes.jsonl") == []  # it is no change
    assert checks() == before
    told = done("relearn")
    assert "healthy" not in told


def test_a_watch_of_an_older_version_is_renewed_and_told(watched_place: Path, go: Going) -> None:
    go(watched_place)
    before = checks()
    with closing(stored()) as store:
        store.save_wrapper(WRAPPER, SITE, store.wrapper(WRAPPER).text, "learn")
    told = " ".join(done("monitor", "mild.jsonl").split())  # nothing is kept
    assert f"{WRAPPER} is watched with its version 1, but version 2 is in force" in told
    assert f"siteloom watch --wrapper {WRAPPER}" in told
    told = " ".join(done("monitor").split())
    assert f"{WRAPPER} has version 2 by now: the pages to watch were selected again" in told
    assert "not fetched" not in told
    assert checks() == before
    told = " ".join(done("monitor").split())
    assert "by now" not in told
    assert "healthy" in told
    assert checks() == [("bellwethers", True), *before]


# ---- alarms


def test_a_command_gets_the_changes_in_every_form(watched_place: Path, go: Going) -> None:
    folder = go(watched_place)
    siteloom = Command(folder)
    environment = alarm_script(folder)
    for arguments in (
        ("monitor", "original.jsonl"),
        ("monitor", "mild.jsonl", "--watch", "watch.jsonl"),
        ("monitor", "mild.jsonl"),
    ):
        result = siteloom(*arguments, environment=environment)
        assert result.returncode == 0, result.stderr
    alarms = rows_in("alarms")
    assert [alarm["attributes"] for alarm in alarms] == [["phone"], ["phone"]]
    assert alarms[0] == rows("monitor", "mild.jsonl", "--watch", "watch.jsonl")[0]


def test_a_webhook_is_called_once(
    watched_place: Path, go: Going, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(watched_place)
    monkeypatch.setenv("SITELOOM_ALARM_WEBHOOK", webhook.address)
    done("monitor", "original.jsonl")
    assert webhook.requests == []
    done("monitor", "redesign.jsonl")
    ((_, _, _, body),) = webhook.requests
    assert [change["test"] for change in json.loads(body)["changes"]] == ["shingle", "null"]


def test_an_alarm_that_fails_is_said_even_if_quiet(
    watched_place: Path, go: Going, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(watched_place)
    monkeypatch.setenv("SITELOOM_ALARM_COMMAND", "/nonexistent/alarm")
    result = within("-q", "monitor", "mild.jsonl")
    assert result.returncode == 0
    assert result.stderr == (
        "siteloom: The alarm command /nonexistent/alarm could not be run: No such file or directory.\n"
    )


# ---- from cron


def test_without_a_terminal_nothing_is_drawn_that_moves(watched_place: Path, go: Going) -> None:
    folder = go(watched_place)
    result = subprocess.run(
        [sys.executable, "-m", "siteloom", "monitor"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == ""
    assert "\x1b" not in result.stderr
    assert "\r" not in result.stderr


def test_a_workspace_in_which_another_process_writes_is_told(watched_place: Path, go: Going) -> None:
    folder = go(watched_place)
    with write_lock(folder / ".siteloom"):
        result = Command(folder)("monitor")
    assert result.returncode == 1
    assert "is writing to this workspace: try again when it ends." in one_sentence(result)


# ---- mistakes


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--watch", "watch.jsonl"), 2, "--watch FILE is for the pages of a SOURCE"),
        (("mild.jsonl", "--watch", "none"), 1, "The watch none cannot be read: No such file or directory."),
        (("mild.jsonl", "--watch", "mild.jsonl"), 1, "Line 1 of mild.jsonl: This is no watch"),
        (("mild.jsonl", "--watch", "empty"), 1, "There is no watch in empty: make it with siteloom watch."),
        (
            ("mild.jsonl", "--watch", "watch.jsonl", "--wrapper", "x"),
            2,
            "No page of the wrapper x is watched",
        ),
        (("--wrapper", "x"), 1, "No page of the wrapper x is watched: run siteloom watch first."),
        (("--threshold", "0"), 2, "from 1 to 100 percent, not 0."),
        (("--threshold", "101"), 2, "from 1 to 100 percent, not 101."),
        (("none.jsonl",), 1, "There is no file or folder none.jsonl"),
        (("other.jsonl",), 1, "None of the 20 pages that are watched is in the SOURCE"),
        (("other.jsonl", "--watch", "watch.jsonl"), 1, "None of the 20 pages that are watched"),
        (("-o", "a.txt"), 2, "Cannot tell the format of a.txt"),
        (("--workspace", "none"), 2, "siteloom init"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    watched_place: Path, go: Going, arguments: tuple[str, ...], status: int, message: str
) -> None:
    folder = go(watched_place)
    Path("empty").touch()
    write_lines(folder / "other.jsonl", [{"url": "https://a.example/", "html": "<p>x"}])
    result = within("monitor", *arguments)
    assert message in one_sentence(result)
    assert result.returncode == status


def test_a_workspace_without_watched_pages_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done("init")
    assert one_sentence(within("monitor")) == "No pages are watched yet: run siteloom watch first."
