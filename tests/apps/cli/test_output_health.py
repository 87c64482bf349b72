"""What `siteloom extract` says of its own output: breaks show there without a page being watched."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.apps.cli.changing import (
    SITE,
    WRAPPER,
    Going,
    alarm_script,
    done,
    right_phones,
    rows,
    rows_in,
    stored,
)
from tests.apps.cli.command import Command
from tests.apps.cli.verbs.test_learn import write_lines
from tests.apps.demo.sites import guide, of_kind
from tests.extraction.test_extraction import restaurants


def output_checks() -> list[bool]:
    with closing(stored()) as store:
        return [one.is_healthy for one in store.checks(WRAPPER) if one.kind == "output"]


def test_a_run_like_the_one_before_is_healthy(watched_place: Path, go: Going) -> None:
    go(watched_place)
    assert "has changed" not in done("extract")
    assert output_checks() == [True, True]


def test_values_that_are_lost_are_told_and_alarmed_about(watched_place: Path, go: Going) -> None:
    folder = go(watched_place)
    done("ingest", "mild.jsonl")
    result = Command(folder)("extract", environment=alarm_script(folder))
    assert result.returncode == 0, result.stderr
    assert f"{WRAPPER} has changed:" in result.stderr
    assert "Value missing: phone, in far fewer records than before." in result.stderr
    assert "phone, share of records with a value: " in result.stderr
    (alarm,) = rows_in("alarms")
    assert (alarm["wrapper"], alarm["test"], alarm["attributes"]) == (WRAPPER, "null", ["phone"])
    assert output_checks() == [False, True]
    # The next run is not held against the broken one.
    assert "Value missing: phone, in far fewer records than before." in done("extract")
    assert output_checks() == [False, False, True]
    # What was noticed so is repaired, from the records of the last good run.
    assert [line["outcome"] for line in rows("relearn")] == ["repaired"]
    assert "has changed" not in done("extract")
    assert output_checks()[0]
    assert right_phones("mild-change") >= 0.95


def test_pages_that_give_no_record_any_more_are_a_change_of_their_site(
    watched_place: Path, go: Going
) -> None:
    go(watched_place)
    with closing(stored()) as store:
        assert store.watch(WRAPPER) is not None
    done("ingest", "redesign.jsonl")
    told = done("extract")
    assert "larkmoor-guide.example has changed:" in told
    assert "Structure changed: many more pages than before give no record." in told
    assert output_checks() == [False, True]
    assert [line["outcome"] for line in rows("relearn", "--dry-run")] == ["repaired"]


def test_a_run_of_another_site_says_nothing_of_a_wrapper(watched_place: Path, go: Going) -> None:
    folder = go(watched_place)
    write_lines(
        folder / "other.jsonl", [{"url": f"https://a.example/{n}", "html": "<p>x"} for n in range(30)]
    )
    done("ingest", "other.jsonl", "mild.jsonl")
    assert "has changed" in done("extract")
    assert "has changed" not in done("extract", "--site", "a.example")
    assert output_checks() == [False, True]
    assert "has changed" in done("extract")
    assert output_checks() == [False, False, True]


def test_a_run_of_another_site_raises_no_alarm_however_many_pages_it_has(
    watched_place: Path, go: Going
) -> None:
    folder = go(watched_place)
    lines = [{"url": f"https://a.example/{n}", "html": f"<title>Page {n}</title><p>x"} for n in range(60)]
    write_lines(folder / "other.jsonl", lines)
    done("ingest", "other.jsonl")
    with closing(stored()) as store:
        store.save_wrapper("other", "a.example", restaurants().to_json(), "learn")
    told = done("extract", "--site", "a.example")
    assert "has changed" not in told
    assert output_checks() == [True]
    (name,) = of_kind(guide("original"), "restaurant")[0].truth["name"]
    assert {hit["kind"] for hit in rows("search", name)} == {"page", "record"}
    # A wrapper of the site that was asked for is looked at.
    done("ingest", "redesign.jsonl")
    assert "has changed" in done("extract", "--site", SITE)


def test_a_source_is_held_against_what_the_wrapper_was_learned_from(watched_place: Path, go: Going) -> None:
    go(watched_place)
    files = ("--wrapper", "food.json", "--workspace", "none")
    assert "has changed" not in done("extract", "original.jsonl", *files)
    told = done("extract", "mild.jsonl", *files, "-o", "later.jsonl")
    assert "food has changed:" in told
    assert "siteloom relearn" not in told
    assert not Path("none").exists()


def test_the_threshold_is_a_setting(watched_place: Path, go: Going, monkeypatch: pytest.MonkeyPatch) -> None:
    go(watched_place)
    monkeypatch.setenv("SITELOOM_CHANGE_THRESHOLD", "100")
    assert "has changed" not in done("extract", "mild.jsonl", "--wrapper", "food.json")
