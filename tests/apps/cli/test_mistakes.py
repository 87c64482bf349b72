"""A user's mistake gets one sentence that says what to do, and a status other than 0."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from torture.warm import run_fresh, run_warm

from tests.apps.cli.command import Command, one_sentence, share_for_reading

PAGE = '{"url": "https://a.example/", "html": "<p>x"}\n'


def test_no_workspace(siteloom: Command) -> None:
    result = siteloom("status")
    assert result.returncode == 2
    assert "siteloom init" in one_sentence(result)


def test_a_source_that_is_not_there(siteloom: Command) -> None:
    assert "no file or folder nowhere" in one_sentence(siteloom("ingest", "nowhere"))
    assert not (siteloom.folder / ".siteloom").exists()


def test_an_empty_folder(siteloom: Command) -> None:
    (siteloom.folder / "empty").mkdir()
    assert "no pages in empty" in one_sentence(siteloom("ingest", "empty"))


def test_a_file_of_no_known_kind(siteloom: Command) -> None:
    (siteloom.folder / "notes.txt").write_text("x", encoding="utf-8")
    assert "Cannot tell what notes.txt is" in one_sentence(siteloom("ingest", "notes.txt"))


def test_parquet_without_url(siteloom: Command) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"html": ["<p>"], "address": ["x"]}), siteloom.folder / "pages.parquet")
    assert "no column url" in one_sentence(siteloom("ingest", "pages.parquet"))


def test_a_truncated_archive_with_no_page_left(siteloom: Command) -> None:
    (siteloom.folder / "crawl.warc.gz").write_bytes(b"\x1f\x8b\x08\x00truncated")
    result = siteloom("ingest", "crawl.warc.gz")
    assert "all of them failed, as shown above" in one_sentence(result)
    assert "crawl.warc.gz" in result.stderr


def test_sources_with_nothing_in_them(siteloom: Command) -> None:
    (siteloom.folder / "empty.jsonl").write_text("", encoding="utf-8")
    assert "the sources are empty" in one_sentence(siteloom("ingest", "empty.jsonl"))


def test_a_page_that_is_still_on_the_web(siteloom: Command) -> None:
    assert "siteloom crawl fetches pages" in one_sentence(siteloom("ingest", "https://shop.example/"))


def test_a_second_demo_in_the_same_folder(siteloom: Command) -> None:
    (siteloom.folder / "kept" / "workspace").mkdir(parents=True)
    assert "There is a demo in kept already" in one_sentence(siteloom("demo", "--keep", "kept"))


def test_an_unreadable_file_among_good_ones(siteloom: Command) -> None:
    folder = siteloom.folder / "pages"
    folder.mkdir()
    (folder / "good.html").write_text("<p>x", encoding="utf-8")
    (folder / "bad.html").symlink_to("gone.html")
    result = siteloom("ingest", "pages")
    assert result.returncode == 0
    assert "unreadable file" in result.stderr


def test_an_output_of_no_known_format(siteloom: Command) -> None:
    siteloom("init")
    result = siteloom("status", "-o", "status.xlsx")
    assert result.returncode == 2
    assert ".jsonl, .csv, .parquet" in one_sentence(result)


def test_an_output_into_a_folder_that_is_not_there(siteloom: Command) -> None:
    siteloom("init")
    assert "no folder nowhere" in one_sentence(siteloom("status", "-o", "nowhere/status.csv"))


def test_a_place_for_failures_is_checked_before_the_work(siteloom: Command) -> None:
    (siteloom.folder / "crawl.jsonl").write_text(PAGE, encoding="utf-8")
    one_sentence(siteloom("ingest", "crawl.jsonl", "--failures", "failures.doc"))
    assert not (siteloom.folder / ".siteloom").exists()


def test_a_database_of_a_newer_version(siteloom: Command) -> None:
    import sqlite3
    from contextlib import closing

    siteloom("init")
    with closing(sqlite3.connect(siteloom.folder / ".siteloom" / "siteloom.db")) as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
        database.commit()
    assert "newer version of Siteloom" in one_sentence(siteloom("status"))


def test_a_store_address_that_is_none(siteloom: Command) -> None:
    result = siteloom("init", "--store", "mysql://somewhere/x")
    assert result.returncode == 2
    assert "postgresql://" in one_sentence(result)


def test_a_database_that_does_not_answer_and_no_password_in_the_message(siteloom: Command) -> None:
    result = siteloom("init", "--store", "postgresql://me:secret@127.0.0.1:1/x")
    assert "cannot be opened" in one_sentence(result)
    assert "secret" not in result.stderr


@pytest.mark.parametrize(
    ("toml", "complaint"),
    [
        ("[parse]\nmax_byts = 5\n", "perhaps parse.max_bytes is meant"),
        ("[parse]\nmax_bytes = 'many'\n", "whole number"),
        ("[run]\njobs = 0\n", "at least 1"),
        ("[change]\naccept = 101\n", "change.accept must be at most 100"),
        ("not toml at all", "cannot be read"),
    ],
)
def test_a_wrong_settings_file(siteloom: Command, toml: str, complaint: str) -> None:
    (siteloom.folder / "siteloom.toml").write_text(toml, encoding="utf-8")
    result = siteloom("config")
    assert result.returncode == 2
    assert complaint in one_sentence(result)


def test_a_workspace_that_cannot_be_made(siteloom: Command) -> None:
    (siteloom.folder / "file").write_text("x", encoding="utf-8")
    assert "cannot be opened" in one_sentence(siteloom("init", "--workspace", "file/workspace"))


def test_an_extra_that_is_not_installed(siteloom: Command) -> None:
    siteloom("init")
    script = "import sys; sys.modules['pyarrow'] = None; from siteloom.apps.cli.main import main; main()"
    result = run_fresh(
        ["-c", script, "status", "-o", "status.parquet"], siteloom.folder, siteloom.environment
    )
    assert "pip install 'siteloom[parquet]'" in one_sentence(result)
    assert not (siteloom.folder / "status.parquet").exists()


@pytest.mark.parametrize(
    "arguments", [("nonsense",), ("status", "--nonsense"), ("ingest",), ("config", "-j", "many")]
)
def test_a_call_that_is_wrong_in_itself(siteloom: Command, arguments: tuple[str, ...]) -> None:
    result = siteloom(*arguments)
    assert result.returncode == 2
    assert "Error: " in result.stderr
    assert "--help" in result.stderr


def test_debug_shows_where_an_error_happened(siteloom: Command) -> None:
    result = siteloom("status", "--debug")
    assert "Traceback" in result.stderr
    assert "no workspace" in result.stderr


def test_a_log_file_that_cannot_be_written(siteloom: Command) -> None:
    assert "log file" in one_sentence(siteloom("config", "--log-file", "nowhere/log.jsonl"))


def test_a_workspace_marker_that_is_damaged(siteloom: Command) -> None:
    siteloom("init")
    Path(siteloom.folder, ".siteloom", "workspace.json").write_text(json.dumps(["x"]), encoding="utf-8")
    assert "damaged" in one_sentence(siteloom("status"))


def test_a_workspace_whose_name_is_too_long(siteloom: Command) -> None:
    assert "cannot be opened" in one_sentence(siteloom("status", "--workspace", "x" * 300))


def test_a_full_disk_behind_standard_output(siteloom: Command) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        result = subprocess.run(
            [sys.executable, "-m", "siteloom", "config", "-o", "-"],
            cwd=siteloom.folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert "Standard output cannot be written" in one_sentence(result)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_workspace_that_may_only_be_read_is_read(
    siteloom: Command, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (siteloom.folder / "crawl.jsonl").write_text(PAGE, encoding="utf-8")
    siteloom("ingest", "crawl.jsonl")
    script = (
        "import os, sys, siteloom.apps.cli.main, siteloom.operations, siteloom.store,"
        " siteloom.html, rich.table;"
        "os.setuid(65534); sys.argv = ['siteloom', *sys.argv[1:]]; siteloom.apps.cli.main.main()"
    )
    share_for_reading(siteloom.folder)

    def as_nobody(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_warm(["-c", script, *arguments], siteloom.folder, os.environ)

    read = as_nobody("status", "-o", "-")
    assert json.loads(read.stdout)["pages"] == 1, read.stderr
    assert "cannot be written" in one_sentence(as_nobody("ingest", "crawl.jsonl"))
