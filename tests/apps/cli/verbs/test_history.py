"""`siteloom history` and `siteloom rollback` from end to end."""

from __future__ import annotations

import csv
import json
from contextlib import closing
from pathlib import Path

import pytest

from tests.apps.cli.changing import WRAPPER, Going, done, rows, stored, versions
from tests.apps.cli.command import one_sentence
from tests.apps.cli.verbs.test_learn import within


def test_all_wrappers_are_listed_with_their_last_check(
    watched_place: Path, mended_place: Path, go: Going
) -> None:
    go(mended_place)
    told = " ".join(done("history").split())
    assert "by repair" in told
    assert "changed" in told
    done("monitor")
    assert "healthy" in done("history")


def test_the_worse_of_the_newest_checks_is_told(changed_place: Path, go: Going) -> None:
    go(changed_place)
    with closing(stored()) as store:
        run = store.last_extract_run()
        assert run is not None
        store.save_check(run, WRAPPER, 1, "output", True, {"changes": []})
    assert "changed" in " ".join(done("history").split())
    assert "changed (value missing)" in done("history", WRAPPER)


def test_a_wrapper_that_was_never_checked(watched_place: Path, go: Going) -> None:
    go(watched_place)
    with closing(stored()) as store:
        store.save_wrapper("other", "a.example", store.wrapper(WRAPPER).text, "learn")
    assert "never" in done("history")


def test_every_version_is_told_with_what_differs(mended_place: Path, go: Going) -> None:
    go(mended_place)
    told = done("history", WRAPPER)
    assert f"{WRAPPER}, version 1, 20" in told
    assert f"{WRAPPER}, version 2, 20" in told
    assert "  repaired: phone\n  outcome: repaired, confidence 9" in told
    assert "'Phone:'" in told
    assert "    now:    the text inside the element that comes right after 'Call us'" in told
    assert "      found by new rules: 0" in told
    assert "Last check: " in told


def test_a_line_for_each_version_is_written(mended_place: Path, go: Going) -> None:
    go(mended_place)
    first, second = rows("history", WRAPPER)
    assert [(row["version"], row["origin"], row["outcome"]) for row in (first, second)] == [
        (1, "learn", None),
        (2, "repaired", "repaired"),
    ]
    assert (first["rules"], first["values"]) == ([], [])
    assert [one["attribute"] for one in second["rules"]] == ["phone"]
    assert {one["attribute"] for one in second["values"]} == {"phone"}
    assert rows("history") == [first, second]
    done("history", "-o", "history.csv")
    done("history", "-o", "history.parquet")
    with Path("history.csv").open(encoding="utf-8", newline="") as file:
        assert [json.loads(row["rules"]) for row in csv.DictReader(file)] == [[], second["rules"]]


def test_an_earlier_version_is_put_in_force_again_and_that_is_undone(mended_place: Path, go: Going) -> None:
    go(mended_place)
    told = done("rollback", WRAPPER)
    assert f"{WRAPPER} is as in version 1 again, and that is now its version 3." in told
    assert f"To undo this: siteloom rollback {WRAPPER} 2" in told
    assert versions() == [(1, "learn"), (2, "repaired"), (3, "rollback")]
    with closing(stored()) as store:
        texts = [one.text for one in store.wrapper_versions(WRAPPER)]
    assert texts[2] == texts[0] != texts[1]
    done("rollback", WRAPPER, "2")
    with closing(stored()) as store:
        assert store.wrapper(WRAPPER).text == texts[1]
    assert rows("monitor") == []
    assert [row["note"] for row in rows("history", WRAPPER)][2:] == ["as version 1", "as version 2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("history", "x"), "There is no wrapper x: there are "),
        (("rollback", "x"), "There is no wrapper x: there are "),
        (("rollback", WRAPPER), "has only one version: there is nothing to go back to."),
        (("rollback", WRAPPER, "1"), f"Version 1 of the wrapper {WRAPPER} is in force already."),
        (("rollback", WRAPPER, "7"), f"There is no version 7 of the wrapper {WRAPPER}: there are 1."),
        (("history", "--workspace", "none"), "siteloom init"),
        (("history", "-o", "a.txt"), "Cannot tell the format of a.txt"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    watched_place: Path, go: Going, arguments: tuple[str, ...], message: str
) -> None:
    go(watched_place)
    assert message in one_sentence(within(*arguments))


def test_a_workspace_without_wrappers_has_no_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done("init")
    assert "There are no wrappers yet" in done("history")
