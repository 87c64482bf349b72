"""`siteloom relearn` from end to end: what a change broke is repaired, or waits for a person."""

from __future__ import annotations

import csv
import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from siteloom import Wrapper
from siteloom.maintenance.repair_result import Relearned
from siteloom.maintenance.wrapper_repair import relearn
from siteloom.sources.example_files import read_examples
from tests.apps.cli.changing import SITE, WRAPPER, Going, done, right_phones, rows, rows_in, stored, versions
from tests.apps.cli.command import one_sentence
from tests.apps.cli.verbs.test_learn import within

PHONE = re.compile(r"(?:0|\+44)[^<>\"0-9]{0,8}1(?:13|17|61)[^<>\"]{0,8}496[^<>\"]{0,8}[0-9]{4}")
FILES = ("relearn", "mild.jsonl", "--wrapper", "food.json", "--records", "records.jsonl")


def repairs() -> list[tuple[str, str]]:
    with closing(stored()) as store:
        return [(one.outcome, one.state) for one in store.repairs(WRAPPER)]


# ---- the workspace


def test_what_broke_is_repaired_and_extracted_again(mended_place: Path, go: Going) -> None:
    go(mended_place)
    assert versions() == [(1, "learn"), (2, "repaired")]
    assert repairs() == [("repaired", "applied")]
    assert rows("monitor") == []
    done("extract")
    assert right_phones("mild-change") >= 0.95
    assert "No change was noticed" in done("relearn")
    assert versions() == [(1, "learn"), (2, "repaired")]


def test_the_difference_is_told_by_rules_and_by_values(changed_place: Path, go: Going) -> None:
    go(changed_place)
    told = done("relearn", "--dry-run")
    assert "would be in" in told
    assert "    now:    the text inside the element that comes right after 'Call us'" in told
    assert "      found by old rules: nothing\n      found by new rules: 0" in told
    assert all(len(line) <= 80 for line in told.splitlines() if "://" not in line)
    # A dry run keeps nothing, and says so.
    assert told.endswith("This was a dry run: nothing was kept.\n")
    assert versions() == [(1, "learn")]
    assert repairs() == []
    with closing(stored()) as store:
        assert "relearn" not in {run.verb for run in store.runs(20)}


def test_a_line_for_each_wrapper_is_written(changed_place: Path, go: Going) -> None:
    go(changed_place)
    done("relearn", "--dry-run", "-o", "out.csv")
    (line,) = rows("relearn", "--dry-run")
    assert (line["wrapper"], line["version"], line["outcome"], line["state"]) == (
        WRAPPER,
        1,
        "repaired",
        "applied",
    )
    assert line["confidence"] > 0.9
    assert line["attributes"]["phone"]["state"] == "repaired"
    assert [one["attribute"] for one in line["diff"]["rules"]] == ["phone"]
    assert line["annotate"] == []
    with Path("out.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert json.loads(row["diff"]) == line["diff"]


def test_nothing_happens_if_no_change_was_noticed(watched_place: Path, go: Going) -> None:
    go(watched_place)
    assert rows("relearn") == []
    assert "No change was noticed: " in done("relearn")
    # A wrapper that is named is looked at all the same.
    (line,) = rows("relearn", "--wrapper", WRAPPER)
    assert line["outcome"] == "reused"
    assert one_sentence(within("relearn", "--wrapper", "x")).startswith("There is no wrapper x: there are ")


def test_healthy_output_does_not_hide_what_bellwethers_found(changed_place: Path, go: Going) -> None:
    go(changed_place)
    with closing(stored()) as store:
        run = store.last_extract_run()
        assert run is not None
        store.save_check(run, WRAPPER, 1, "output", True, {"changes": []})
    assert [line["outcome"] for line in rows("relearn", "--dry-run")] == ["repaired"]


# ---- the review queue


def test_a_repair_that_is_not_sure_enough_waits(reviewed_place: Path, go: Going) -> None:
    go(reviewed_place)
    told = Path("told").read_text(encoding="utf-8")
    assert "the repair waits, for its confidence is below 100 %." in told
    assert f"siteloom relearn --accept {WRAPPER}" in told
    assert f"siteloom relearn --reject {WRAPPER}" in told
    assert versions() == [(1, "learn")]
    assert repairs() == [("repaired", "review")]
    assert "waits for review" in done("history", WRAPPER)


def test_a_repair_is_accepted(reviewed_place: Path, go: Going) -> None:
    go(reviewed_place)
    told = done("relearn", "--accept", WRAPPER)
    assert f"{WRAPPER}: the repair is in force as version 2." in told
    assert f"siteloom rollback {WRAPPER}" in told
    assert versions() == [(1, "learn"), (2, "repaired")]
    assert repairs() == [("repaired", "applied")]
    assert rows("monitor") == []
    sentence = one_sentence(within("relearn", "--accept", WRAPPER))
    assert sentence.startswith(f"No repair of the wrapper {WRAPPER} waits for review")


def test_a_repair_is_rejected(reviewed_place: Path, go: Going) -> None:
    go(reviewed_place)
    assert "the repair is rejected; version 1 stays in force." in done("relearn", "--reject", WRAPPER)
    assert versions() == [(1, "learn")]
    assert repairs() == [("repaired", "rejected")]
    told = done("relearn")
    assert f"{WRAPPER}: this very repair was rejected before, and is not proposed again." in " ".join(
        told.split()
    )
    assert "waits" not in told
    assert repairs() == [("repaired", "rejected")]


def test_a_wrapper_that_changes_meanwhile_stays_as_it_is(
    changed_place: Path, go: Going, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(changed_place)

    def slow(*given: Any) -> Relearned:
        with closing(stored()) as store:
            store.save_wrapper(WRAPPER, SITE, store.wrapper(WRAPPER).text, "learn")
        return relearn(*given)

    monkeypatch.setattr("siteloom.operations.relearn.relearn_wrapper", slow)
    told = " ".join(done("relearn").split())
    assert f"{WRAPPER} got another version meanwhile, so that nothing of this is kept" in told
    assert {origin for _, origin in versions()} == {"learn"}
    assert repairs() == []


# ---- what needs a person


def test_pages_to_annotate_are_written_with_what_is_known(watched_place: Path, go: Going) -> None:
    go(watched_place)
    lines = [
        {**page, "html": PHONE.sub("ask at the door", page["html"])} for page in rows_in("original.jsonl")
    ]
    Path("gone.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    done("ingest", "gone.jsonl")
    assert [change["attributes"] for change in rows("monitor")] == [["phone"]]
    told = done("relearn", "--examples", "todo.jsonl")
    assert repairs() == [("needs-annotation", "annotation")]
    assert f"{WRAPPER} needs examples: phone: " in " ".join(told.split())
    assert "Look for phone on 5 pages" in told
    assert "siteloom learn --examples todo.jsonl" in told
    examples = read_examples("todo.jsonl")
    assert len(examples) == 5
    assert all(example.url in told for example in examples)
    assert all({"name", "address"} <= set(example.values) for example in examples)
    assert not any("phone" in example.values for example in examples)
    assert "examples are" in " ".join(done("history").split())


def test_what_could_be_repaired_of_a_wrapper_is_accepted_though_the_rest_waits(
    watched_place: Path, go: Going
) -> None:
    go(watched_place)
    pages = rows_in("redesign.jsonl")
    lines = [{**page, "html": PHONE.sub("ask at the door", page["html"])} for page in pages]
    Path("gone.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    Path("siteloom.toml").write_text("[change]\naccept = 100\n", encoding="utf-8")
    done("ingest", "gone.jsonl")
    assert [change["test"] for change in rows("monitor")] == ["shingle", "null"]
    told = done("relearn")
    assert "the repair waits, for its confidence is below 100 %." in told
    assert f"{WRAPPER} needs examples: phone: " in " ".join(told.split())
    assert versions() == [(1, "learn")]
    told = done("history", WRAPPER)
    assert f"siteloom relearn --accept {WRAPPER}" in told
    assert "Examples are needed: phone: " in told
    done("relearn", "--accept", WRAPPER)
    assert versions() == [(1, "learn"), (2, "needs-annotation")]


# ---- files


def test_a_wrapper_of_a_file_is_repaired(watched_place: Path, go: Going) -> None:
    go(watched_place)
    told = done(*FILES, "--save-wrapper", "new.json", "-o", "out.jsonl", "--workspace", "none")
    assert "The wrapper is in new.json." in told
    (line,) = rows_in("out.jsonl")
    assert list(line) == ["wrapper", "outcome", "confidence", "reason", "attributes", "diff", "annotate"]
    assert (line["wrapper"], line["outcome"]) == ("food", "repaired")
    new = Wrapper.from_json(Path("new.json").read_text(encoding="utf-8"))
    assert len(new.earlier) == 1
    done("extract", "mild.jsonl", "--wrapper", "new.json", "-o", "later.jsonl")
    later = {row["url"]: row["values"] for row in rows_in("later.jsonl")}
    for row in rows_in("records.jsonl"):
        assert later[row["url"]] | row["values"] == later[row["url"]]  # some have even more now


def test_what_is_not_better_is_not_written(watched_place: Path, go: Going) -> None:
    go(watched_place)
    done(*FILES, "--examples", "todo.jsonl")
    assert Path("todo.jsonl").read_text(encoding="utf-8") == ""
    known = rows_in("records.jsonl")
    for row in known:
        row["values"] = {"name": row["values"]["name"], "phone": ["no such number"]}
    Path("wrong.jsonl").write_text("\n".join(map(json.dumps, known)), encoding="utf-8")
    told = done(*FILES[:-1], "wrong.jsonl", "--save-wrapper", "new.json")
    assert "There is no better wrapper, and so nothing was written to new.json." in told
    assert not Path("new.json").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("mild.jsonl",), 2, "With a SOURCE, relearn needs one --wrapper FILE and --records FILE."),
        ((*FILES[1:], "--wrapper", "x.json"), 2, "relearn needs one --wrapper FILE"),
        ((*FILES[1:], "--dry-run"), 2, "With a SOURCE, nothing is kept anyway"),
        ((*FILES[1:-1], "none"), 2, "The records none cannot be read: No such file or directory."),
        ((*FILES[1:-1], "mild.jsonl"), 2, "Line 1 of mild.jsonl is no record: it must be a JSON object"),
        ((*FILES[1:-1], "empty"), 2, "There is no record in empty"),
        (
            (*FILES[1:], "--save-wrapper", "w.csv"),
            2,
            "A wrapper is written as .json: give a name such as w.json.",
        ),
        ((*FILES[1:], "--examples", "w.csv"), 2, "Examples are written as .jsonl"),
        ((*FILES[1:], "--save-wrapper", "none/w.json"), 1, "There is no folder none"),
        (("other.jsonl", *FILES[2:]), 1, "None of the pages of the records is in the SOURCE"),
        (("--records", "records.jsonl"), 2, "--records FILE is for the pages of a SOURCE"),
        (("--save-wrapper", "w.json"), 2, "--save-wrapper FILE is for the pages of a SOURCE"),
        (("--accept", WRAPPER, "--dry-run"), 2, "--accept and --reject decide about what waits for review"),
        (
            ("--reject", WRAPPER, "-o", "a.jsonl"),
            2,
            "--accept and --reject decide about what waits for review",
        ),
        (("--accept", WRAPPER, "--examples", "a.jsonl"), 2, "and go with no other option."),
        (("mild.jsonl", "--accept", WRAPPER), 2, "and go with no other option."),
        (("--accept", WRAPPER, "--reject", WRAPPER), 2, "cannot be both accepted and rejected."),
        (("--reject", "x"), 1, "No repair of the wrapper x waits for review"),
        (("--workspace", "none"), 2, "siteloom init"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    watched_place: Path, go: Going, arguments: tuple[str, ...], status: int, message: str
) -> None:
    go(watched_place)
    Path("empty").touch()
    Path("other.jsonl").write_text('{"url": "https://a.example/", "html": "<p>x"}\n', encoding="utf-8")
    result = within("relearn", *arguments)
    assert message in one_sentence(result)
    assert result.returncode == status
