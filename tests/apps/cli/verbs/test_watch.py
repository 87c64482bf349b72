"""`siteloom watch` from end to end, in a workspace and on files."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from siteloom import Wrapper
from siteloom.maintenance.watch_file import watch_from_json
from tests.apps.cli.changing import WRAPPER, Going, done, stored
from tests.apps.cli.command import one_sentence
from tests.apps.cli.verbs.test_learn import within
from tests.extraction.test_extraction import NAMES


def test_pages_of_each_wrapper_are_chosen_and_kept(watched_place: Path, go: Going) -> None:
    go(watched_place)
    told = done("watch", "--wrapper", WRAPPER, "-k", "12")
    assert "siteloom monitor --fetch" in told
    with closing(stored()) as store:
        (kept,) = store.watches()
    watch = watch_from_json(kept.text)
    assert (kept.wrapper, kept.version, watch.name) == (WRAPPER, 1, WRAPPER)
    assert len({one.page.url for one in watch.bellwethers}) == 12
    assert set(watch.wrapper.attributes) == set(NAMES)


def test_what_is_watched_is_written_too(watched_place: Path) -> None:
    (line,) = (watched_place / "watch.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(watch_from_json(line).bellwethers) == 20


def test_the_pages_of_a_source_are_watched_without_a_workspace(watched_place: Path, go: Going) -> None:
    folder = go(watched_place)
    Path("any.json").write_text(Wrapper.from_json(Path("food.json").read_text()).to_json(), encoding="utf-8")
    content = json.loads(Path("food.json").read_text(encoding="utf-8"))
    content["footprint"] = {"sites": [], "url_patterns": [], "masks": [], "accepted": []}
    Path("everywhere.json").write_text(json.dumps(content), encoding="utf-8")
    told = done(
        *("watch", "original.jsonl", "--wrapper", "food.json", "--wrapper", "everywhere.json"),
        *("-k", "5", "-o", "w.jsonl", "--workspace", "none"),
    )
    assert "What is watched is in w.jsonl." in told
    watches = [watch_from_json(line) for line in Path("w.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(watch.name, len(watch.bellwethers)) for watch in watches] == [("food", 5), ("everywhere", 5)]
    assert not (folder / "none").exists()
    assert not list(folder.glob(".w.jsonl*"))
    # To standard output, nothing else comes between.
    result = within("watch", "original.jsonl", "--wrapper", "food.json", "-o", "-")
    assert watch_from_json(result.stdout).name == "food"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("original.jsonl",), 2, "With a SOURCE, watch needs --wrapper FILE and -o FILE."),
        (("original.jsonl", "--wrapper", "food.json"), 2, "watch needs --wrapper FILE and -o FILE"),
        (("original.jsonl", "--wrapper", "x.json", "-o", "w.jsonl"), 1, "There is no wrapper x.json"),
        (("--wrapper", "none"), 1, f"There is no wrapper none: there are {WRAPPER}."),
        (("-k", "0"), 2, "-k is the number of pages to watch, at least 1, not 0."),
        (("-o", "w.csv"), 2, "What is watched is written as .jsonl: give a name such as w.jsonl."),
        (("-o", "none/w.jsonl"), 1, "There is no folder none to write w.jsonl to"),
        (("--workspace", "none"), 2, "siteloom init"),
        (("redesign.jsonl", "--wrapper", "food.json", "-o", "w.jsonl"), 2, "Nothing is watched"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    watched_place: Path, go: Going, arguments: tuple[str, ...], status: int, message: str
) -> None:
    go(watched_place)
    result = within("watch", *arguments)
    assert message in one_sentence(result)
    assert result.returncode == status
    assert not Path("w.jsonl").exists()


def test_without_wrappers_there_is_nothing_to_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done("init")
    assert one_sentence(within("watch")) == "There are no wrappers yet: run siteloom learn first."
