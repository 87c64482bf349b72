"""`siteloom bootstrap`: a table of known records wraps a site, or the sites of a workspace."""

from __future__ import annotations

import csv
import json
from contextlib import closing
from pathlib import Path

import pytest

from siteloom import Wrapper
from siteloom.sources.example_files import read_examples
from tests.apps.cli.changing import Going, copied, done, inside, rows, rows_in, stored
from tests.apps.cli.command import one_sentence
from tests.apps.cli.verbs.test_learn import within, write_lines
from tests.apps.demo.sites import of_kind
from tests.operations.test_bootstrap import COUNT, directory, guide

SITE = "tableatlas.example"
CORE = ("--core", "name,address")
FILES = ("bootstrap", "directory.jsonl", "--seeds", "table.jsonl", *CORE)
TABLE = ("--seeds", "table.csv", "--rename", "Restaurant=name", *CORE)
WORKSPACE = ("bootstrap", "--seeds", "table.jsonl", *CORE)


@pytest.fixture(scope="session")
def table_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pages of a site, tables of some of what is on it, and one of other things."""
    folder = tmp_path_factory.mktemp("table")
    pages = [{"url": page.page.url, "html": page.page.html.decode()} for page in directory()]
    write_lines(folder / "directory.jsonl", pages)
    truths = [page.truth for page in of_kind(guide(), "restaurant")]
    write_lines(folder / "table.jsonl", truths)
    write_lines(folder / "few.jsonl", truths[:4])
    with (folder / "table.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Restaurant", "address", "phone", "cuisine"])
        for truth in truths:
            writer.writerow("; ".join(truth[name]) for name in ("name", "address", "phone", "cuisine"))
    parts = [{"name": f"Bolt M{n}", "address": f"Shelf {n}"} for n in range(200)]
    write_lines(folder / "parts.jsonl", parts)
    return folder


@pytest.fixture(scope="session")
def wrapped_place(table_place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose site was wrapped from the table, and what was told of that."""
    folder = copied(table_place, tmp_path_factory.mktemp("wrapped") / "place")
    with inside(folder):
        done("ingest", "directory.jsonl")
        (folder / "told").write_text(done(*WORKSPACE, "-o", "sites.jsonl"), encoding="utf-8")
    return folder


def test_a_site_is_wrapped_from_a_table(table_place: Path, go: Going) -> None:
    go(table_place)
    told = done(*FILES, "-o", "w.json", "--evidence", "evidence.jsonl", "--suggestions", "todo.jsonl")
    assert "The wrapper is in w.json." in told
    assert f"{COUNT} of {COUNT} known records were found" in told
    wrapper = Wrapper.from_json(Path("w.json").read_text(encoding="utf-8"))
    assert {"name", "address"} <= wrapper.attributes.keys()
    # What is extracted stands in the table, and what is refused in a line below it, all on a narrow screen.
    assert all(len(line) <= 80 for line in told.splitlines())
    shown = {line.split()[1] for line in told.splitlines() if line.startswith("│")}
    assert shown == wrapper.attributes.keys()
    assert "Refused (at no position more often than by chance): " in told
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
    # The suggestions are said to have what was accepted, and to lack what was refused.
    (example, *_) = read_examples("todo.jsonl")
    assert example.values.keys() <= wrapper.attributes.keys()
    words = " ".join(told.split())
    assert "Check todo.jsonl: it has 5 pages with what is likely their name, " in words
    refused = words.partition("more often than by chance): ")[2].partition(".")[0]
    assert f"It has nothing of {refused}: add what you see of that on the pages." in words
    assert "Then: siteloom learn directory.jsonl --examples todo.jsonl -o FILE" in words
    assert not Path(".siteloom").exists()


def test_a_table_is_read_as_it_is_told(table_place: Path, go: Going) -> None:
    go(table_place)
    Path("schema.json").write_text(
        '{"cuisine": {"multi": false}, "phone": {"type": "text"}}', encoding="utf-8"
    )
    arguments = (*TABLE, "--several", "cuisine=;", "--schema", "schema.json")
    done("bootstrap", "directory.jsonl", *arguments, "-o", "w.json", "--evidence", "evidence.jsonl")
    wrapper = Wrapper.from_json(Path("w.json").read_text(encoding="utf-8"))
    assert wrapper.attributes.keys() == {"name", "address", "phone", "cuisine"}
    assert wrapper.attributes["cuisine"].attribute.multi is False
    assert wrapper.attributes["phone"].attribute.type == "text"
    cuisines = [line["value"] for line in rows_in("evidence.jsonl") if line["attribute"] == "cuisine"]
    assert cuisines
    assert not any(";" in cuisine for cuisine in cuisines)


@pytest.mark.parametrize("table", ["parts.jsonl", "few.jsonl"])
def test_too_little_overlap_is_told_with_numbers(table_place: Path, go: Going, table: str) -> None:
    go(table_place)
    files = ("-o", "w.json", "--suggestions", "todo.jsonl")
    result = within("bootstrap", "directory.jsonl", "--seeds", table, *CORE, *files)
    assert result.returncode == 1
    assert f"of {len(rows_in(table))} known records seem to be on" in one_sentence(result)
    assert "known records were found" not in result.stderr
    assert "There is nothing to suggest, so todo.jsonl is empty: too few pages" in result.stderr
    assert not Path("w.json").exists()


def test_pages_that_cannot_be_parsed_are_told(table_place: Path, go: Going) -> None:
    folder = go(table_place)
    deep = [{"url": f"https://{SITE}/deep/{number}", "html": "<div>" * 5_000} for number in range(2)]
    write_lines(folder / "mixed.jsonl", [*rows_in("directory.jsonl"), *deep])
    write_lines(folder / "deep.jsonl", deep)
    told = done("bootstrap", "mixed.jsonl", *FILES[2:])
    assert "2 pages could not be read: nested too deeply." in told
    assert f" of {COUNT} known records were found" in told
    result = within("bootstrap", "deep.jsonl", *FILES[2:])
    assert result.returncode == 1
    assert one_sentence(result) == "None of the 2 pages can be read: nested too deeply."
    done("ingest", "mixed.jsonl")
    assert "2 pages could not be read: nested too deeply." in done("bootstrap", "--seeds", "few.jsonl", *CORE)


def test_the_sites_of_a_workspace_are_wrapped_and_withdrawn(wrapped_place: Path, go: Going) -> None:
    go(wrapped_place)
    told = Path("told").read_text(encoding="utf-8")
    assert f"Round 1, site 1 of 1: {SITE}" in told
    assert "siteloom bootstrap --withdraw SITE" in told
    (line,) = rows_in("sites.jsonl")
    assert (line["site"], line["round"], line["outcome"]) == (SITE, 1, "wrapped")
    assert {"name", "address"} <= set(line["attributes"])
    assert f"accepted: {', '.join(line['attributes'])} " in " ".join(told.split())
    refused = [name for name, one in line["evidence"].items() if one["verdict"] == "refused"]
    assert f"refused: {', '.join(refused)}" in " ".join(told.split())
    assert line["evidence"]["name"]["agreement"] > 0.9
    with closing(stored()) as store:
        assert {one.source: one.records for one in store.seed_sources()} == {
            SITE: line["records"],
            "table": len(rows_in("table.jsonl")),
        }
    assert "There is no site left to try" in done(*WORKSPACE)
    # What is known by now of the same things on both is told together.
    both = [entity for entity in rows("entities", *CORE) if len(entity["sources"]) == 2]
    assert len(both) >= 0.9 * COUNT
    told = done("bootstrap", "--withdraw", SITE)
    assert f"{SITE} is withdrawn, and with it {line['records']:,} seeds." in told
    assert f"siteloom rollback {line['wrapper']} 1 puts it back." in told
    with closing(stored()) as store:
        assert store.wrappers() == []
        assert {one.source for one in store.seed_sources()} == {"table"}
    # Put back and withdrawn once more, it has several versions to go back to.
    done("rollback", line["wrapper"], "1")
    with closing(stored()) as store:
        store.save_site_outcome(SITE, "wrapped", 1, 0, line["wrapper"], 3, {})
    told = done("bootstrap", "--withdraw", SITE)
    assert f"siteloom rollback {line['wrapper']} 3 puts it back, or another of its versions: 1." in told


def test_a_poor_site_is_told_with_the_reason_and_a_table_is_read_as_it_is_told(
    table_place: Path, go: Going
) -> None:
    go(table_place)
    done("ingest", "directory.jsonl")
    told = done("bootstrap", "--seeds", "few.jsonl", *CORE, "-o", "sites.csv")
    assert "poor: Not enough overlap" in told
    with Path("sites.csv").open(encoding="utf-8", newline="") as file:
        assert [json.loads(row["evidence"]) for row in csv.DictReader(file)] == [{}]
    Path("schema.json").write_text('{"name": {"multi": true}, "x": {}}', encoding="utf-8")
    schema = ("--schema", "schema.json", "--several", "cuisine=;")
    assert "The schema tells of x, which no record has" in one_sentence(within("bootstrap", *TABLE, *schema))
    with closing(stored()) as store:
        known = list(store.seeds(["table"]))
    assert {name for seed in known for name in seed.values} == {"name", "address", "phone", "cuisine"}
    assert max(len(seed.values["cuisine"]) for seed in known) > 1


def test_a_wrapper_that_a_person_made_is_told_of_before_there_is_another(
    wrapped_place: Path, go: Going
) -> None:
    go(wrapped_place)
    warning = f"siteloom: The wrapper {SITE}/1 is in force on {SITE} already"
    again = (*WORKSPACE, "--site", SITE)
    assert warning not in done(*again)  # for it is left as it is
    done("bootstrap", "--withdraw", SITE)
    with closing(stored()) as store:
        store.save_wrapper(f"{SITE}/1", SITE, store.wrapper(f"{SITE}/1").text, "learn")
    told = done(*again)
    assert told.index(warning) < told.index("Round 1")
    with closing(stored()) as store:
        assert [one.name for one in store.wrappers()] == [f"{SITE}/1", f"{SITE}/2"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("directory.jsonl", *CORE), 2, "With a SOURCE, bootstrap needs --seeds FILE"),
        (("directory.jsonl", "--seeds", "table.jsonl"), 2, "Name the attributes by which things are known"),
        (("directory.jsonl", "--seeds", "none.csv", *CORE), 1, "There is no file none.csv"),
        (("directory.jsonl", "--seeds", "empty.jsonl", *CORE), 2, "There is no record in empty.jsonl."),
        ((*FILES[1:-1], "name,isbn"), 2, "No record of table.jsonl has the attribute isbn of --core"),
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
        (("--withdraw", SITE, "--rename", "a=b"), 2, "--withdraw takes a site back"),
        ((*CORE, "--rename", "a=b"), 2, "--several and --rename are for the records of a file"),
        (
            (*FILES[1:], "--several", "cuisine"),
            2,
            "--several takes two texts with = between them, not cuisine.",
        ),
        ((*FILES[1:], "--schema", "none.json"), 2, "The schema none.json cannot be read"),
        ((*FILES[1:], "--schema", "bad.json"), 2, "The schema says 'mutli' of name"),
        (
            (*FILES[1:], "--schema", "x.json"),
            2,
            "The schema tells of x, which no record has: there are address,",
        ),
        ((*FILES[1:], "--schema", "x.json", "--method", "findattrpos"), 2, "makes no use of a schema"),
        (
            (*FILES[1:], "--suggestions", "s.jsonl", "--method", "findattrpos"),
            2,
            "The method findattrpos suggests nothing",
        ),
        (("directory.jsonl", "--seeds", "header.csv", *CORE), 2, "There is no record in header.csv."),
        (("directory.jsonl", "--seeds", ".", *CORE), 1, "Cannot tell what . is: known records are a file"),
        (("none.jsonl", *FILES[2:]), 1, "There is no file or folder none.jsonl"),
        (("directory.jsonl", "other.jsonl", *FILES[2:]), 2, f"here are pages of {SITE} and of inns.example"),
        ((*FILES[1:], "--rename", "nmae=x"), 2, "No record has nmae: the attributes are address,"),
        (WORKSPACE[1:], 2, "siteloom init"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    table_place: Path, go: Going, arguments: tuple[str, ...], status: int, message: str
) -> None:
    go(table_place)
    Path("empty.jsonl").touch()
    write_lines(Path("other.jsonl"), [{"url": "https://www.inns.example/1", "html": "<p>An inn"}])
    Path("header.csv").write_text("name,address\n", encoding="utf-8")
    Path("bad.json").write_text('{"name": {"mutli": true}}', encoding="utf-8")
    Path("x.json").write_text('{"x": {}}', encoding="utf-8")
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
