"""`siteloom entities`: records of files or of a workspace, linked and compared."""

from __future__ import annotations

import csv
import json
from contextlib import closing
from pathlib import Path

import pytest

from siteloom.core.model import Seed
from tests.apps.cli.changing import done, rows, rows_in, stored
from tests.apps.cli.command import one_sentence, work_inside
from tests.apps.cli.verbs.test_learn import within, write_lines
from tests.learning.known_records.test_linking import restaurant, site

COUNT = 30


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the records of two sites and a table of known records; the table has one other phone."""
    work_inside(tmp_path, monkeypatch)
    for name in ("a.example", "b.example"):
        lines = [
            {"url": seed.url, "wrapper": name, "version": 1, "values": seed.values}
            for seed in site(name, range(COUNT))
        ]
        write_lines(tmp_path / f"{name[0]}.jsonl", lines)
    with (tmp_path / "table.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "phone"])
        for number in range(COUNT):
            known = restaurant(number)
            writer.writerow([known["name"][0], "(212) 555-9999" if number == 4 else known["phone"][0]])
    return tmp_path


@pytest.mark.usefixtures("place")
def test_records_of_files_are_linked_by_what_they_say() -> None:
    found = rows("entities", "a.jsonl", "b.jsonl", "table.csv")
    assert [entity["entity"] for entity in found] == list(range(1, len(found) + 1))
    three = [entity for entity in found if entity["sources"] == ["a.example", "b.example", "table"]]
    assert len(three) == COUNT - 1  # a name alone does not make the one with the other phone the same
    assert three[0]["urls"] == ["https://a.example/0", "https://b.example/0"]
    assert three[0]["values"]["name"] == [
        {"value": "Blue Fern", "sources": ["a.example", "b.example", "table"], "confidence": 1.0}
    ]


@pytest.mark.usefixtures("place")
def test_conflicts_are_listed_with_their_sources() -> None:
    lines = rows_in("b.jsonl")
    lines[7]["values"]["phone"] = ["(212) 555-1111"]
    write_lines(Path("b.jsonl"), lines)
    told = done("entities", "a.jsonl", "b.jsonl", "--conflicts", "-o", "out.jsonl")
    assert f"{2 * COUNT} records tell of {COUNT} entities" in told
    assert "(212) 555-1111" in told
    (entity,) = [entity for entity in rows_in("out.jsonl") if entity["conflicts"]]
    assert entity["values"]["phone"][0]["sources"] == ["a.example"]
    assert entity["conflicts"] == {
        "phone": [{"value": "(212) 555-1111", "sources": ["b.example"], "confidence": 1.0}]
    }
    assert "(212)" not in done("entities", "a.jsonl", "b.jsonl")
    done("entities", "a.jsonl", "b.jsonl", "-o", "out.csv")
    with Path("out.csv").open(encoding="utf-8", newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if json.loads(row["conflicts"])]
    assert json.loads(row["values"]) == entity["values"]
    assert row["sources"] == "a.example | b.example"


@pytest.mark.usefixtures("place")
def test_the_seeds_of_a_workspace_are_linked() -> None:
    done("init")
    with closing(stored()) as store, store.recording("seeds", {}) as run:
        store.add_seeds(
            run.id, [*site("a", range(COUNT)), *site("b", range(COUNT)), Seed({"x": ("y",)}, "c")]
        )
    assert [entity["sources"] for entity in rows("entities")] == [["a", "b"]] * COUNT + [["c"]]
    assert len(rows("entities", "--core", "name, phone")) == COUNT + 1


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ((), 2, "siteloom init"),
        (("none.jsonl",), 1, "There is no file none.jsonl"),
        (("empty.jsonl",), 1, "There is no record in the sources."),
        (("a.jsonl", "--core", "name,isbn"), 2, "No record has the attribute isbn"),
        (("a.jsonl", "-o", "out.txt"), 2, "Cannot tell the format of out.txt"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    place: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    (place / "empty.jsonl").touch()
    result = within("entities", *arguments)
    assert message in one_sentence(result)
    assert result.returncode == status


@pytest.mark.usefixtures("place")
def test_a_workspace_without_seeds_says_so() -> None:
    done("init")
    assert "The workspace has no seeds" in one_sentence(within("entities"))
