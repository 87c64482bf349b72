"""`siteloom bootstrap`: a table of known records wraps a site, or the sites of a workspace."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from siteloom import Wrapper
from siteloom.examples_file import read_examples

from ..builtin.sites import directory, guide, of_kind
from .changing import Going, done, rows, rows_in, stored
from .command import one_sentence
from .test_learn import within, write_lines

SITE = "tableatlas.example"
CORE = ("--core", "name,address")
FILES = ("bootstrap", "directory.jsonl", "--seeds", "table.jsonl", *CORE)
WORKSPACE = ("bootstrap", "--seeds", "table.jsonl", *CORE)


@pytest.fixture(scope="session")
def table_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pages of a site, a table of some of what is on it, and one of other things."""
    folder = tmp_path_factory.mktemp("table")
    pages = [{"url": page.page.url, "html": page.page.html.decode()} for page in directory()]
    write_lines(folder / "directory.jsonl", pages)
    write_lines(folder / "table.jsonl", [page.truth for page in of_kind(guide(), "restaurant")])
    parts = [{"name": f"Bolt M{n}", "address": f"Shelf {n}"} for n in range(200)]
    write_lines(folder / "parts.jsonl", parts)
    return folder


def test_a_site_is_wrapped_from_a_table(table_place: Path, go: Going) -> None:
    go(table_place)
    told = done(*FILES, "-o", "w.json", "--evidence", "evidence.jsonl", "--suggestions", "todo.jsonl")
    assert "The wrapper is in w.json." in told
    assert "accepted" in told
    wrapper = Wrapper.from_json(Path("w.json").read_text(encoding="utf-8"))
    assert {"name", "address"} <= wrapper.attributes.keys()
    done("extract", "directory.jsonl", "--wrapper", "w.json", "-o", "records.jsonl")
    truth = {page.page.url: list(page.truth["name"]) for page in of_kind(directory(), "restaurant")}
    found = {row["url"]: row["values"].get("name") for row in rows_in("records.jsonl")}
    assert sum(found.get(url) == name for url, name in truth.items()) >= 0.95 * len(truth)
    (line, *_) = rows_in("evidence.jsonl")
    assert list(line) == [
        "url",
        "attribute",
        "text",
        "position",
        "seed",
        "source",
        "value",
        "similarity",
    ]
    assert line["source"] == "table"
    assert line["value"] in rows_in("table.jsonl")[line["seed"]][line["attribute"]]
    read_examples("todo.jsonl")  # or it is no file of examples
    assert not Path(".siteloom").exists()


def test_too_little_overlap_is_told_with_numbers(table_place: Path, go: Going) -> None:
    go(table_place)
    result = within("bootstrap", "directory.jsonl", "--seeds", "parts.jsonl", *CORE, "-o", "w.json")
    assert result.returncode == 1
    assert one_sentence(result)
    assert "of 200 known records were found" in result.stderr
    assert not Path("w.json").exists()


def test_the_sites_of_a_workspace_are_wrapped_and_withdrawn(table_place: Path, go: Going) -> None:
    go(table_place)
    done("ingest", "directory.jsonl")
    told = done(*WORKSPACE, "-o", "sites.jsonl")
    assert f"Round 1, site 1 of 1: {SITE}" in told
    assert "siteloom bootstrap --withdraw SITE" in told
    (line,) = rows_in("sites.jsonl")
    assert (line["site"], line["round"], line["outcome"]) == (SITE, 1, "wrapped")
    assert {"name", "address"} <= set(line["attributes"])
    with closing(stored()) as store:
        assert {one.source: one.records for one in store.seed_sources()} == {
            SITE: line["records"],
            "table": len(rows_in("table.jsonl")),
        }
    assert "There is no site left to try" in done(*WORKSPACE)
    # What is known by now of the same things on both is told together.
    both = [entity for entity in rows("entities", *CORE) if len(entity["sources"]) == 2]
    shared = {page.entity for page in of_kind(guide(), "restaurant")}
    count = len({page.entity for page in of_kind(directory(), "restaurant")} & shared)
    assert len(both) >= 0.9 * count
    told = done("bootstrap", "--withdraw", SITE)
    assert f"{SITE} is withdrawn, and with it {line['records']:,} seeds." in told
    assert f"siteloom rollback {line['wrapper']}" in told
    with closing(stored()) as store:
        assert store.wrappers() == []
        assert {one.source for one in store.seed_sources()} == {"table"}


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("directory.jsonl", *CORE), 2, "With a SOURCE, bootstrap needs --seeds FILE"),
        (("directory.jsonl", "--seeds", "table.jsonl"), 2, "Name the attributes by which things are known"),
        (("directory.jsonl", "--seeds", "none.csv", *CORE), 1, "There is no file none.csv"),
        (("directory.jsonl", "--seeds", "empty.jsonl", *CORE), 2, "There is no record in empty.jsonl."),
        ((*FILES[1:-1], "name,isbn"), 2, "No record of table.jsonl has the attribute isbn"),
        ((*FILES[1:], "--method", "x"), 2, "No method 'x' to wrap by: use one of bits, findattrpos"),
        ((*FILES[1:], "--rounds", "2"), 2, "A SOURCE is one site that is tried once"),
        ((*FILES[1:], "--site", SITE), 2, "A SOURCE is one site that is tried once"),
        ((*FILES[1:], "-o", "w.csv"), 2, "A wrapper is written as .json"),
        ((*FILES[1:], "--suggestions", "s.csv"), 2, "Suggestions are written as .jsonl"),
        ((*FILES[1:], "--evidence", "e.txt"), 2, "Cannot tell the format of e.txt"),
        ((*FILES[1:], "-o", "-", "--evidence", "-"), 2, "each need a file of their own"),
        ((*WORKSPACE[1:], "--evidence", "e.csv"), 2, "--evidence FILE is for the pages of a SOURCE"),
        ((*WORKSPACE[1:], "--suggestions", "e.jsonl"), 2, "--suggestions FILE is for the pages of a SOURCE"),
        (("--withdraw", SITE, "--rounds", "2"), 2, "--withdraw takes a site back"),
        (WORKSPACE[1:], 2, "siteloom init"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    table_place: Path, go: Going, arguments: tuple[str, ...], status: int, message: str
) -> None:
    go(table_place)
    Path("empty.jsonl").touch()
    result = within("bootstrap", *arguments)
    assert message in one_sentence(result)
    assert result.returncode == status


def test_mistakes_in_a_workspace_are_told_in_a_sentence(table_place: Path, go: Going) -> None:
    go(table_place)
    done("init")
    assert "There are no pages in the workspace" in one_sentence(within("bootstrap", *CORE))
    done("ingest", "directory.jsonl")
    assert "There are no seeds to begin with" in one_sentence(within("bootstrap", *CORE))
    assert "There is no site x" in one_sentence(within(*WORKSPACE, "--site", "x"))
    assert "No site x was wrapped from seeds" in one_sentence(within("bootstrap", "--withdraw", "x"))
