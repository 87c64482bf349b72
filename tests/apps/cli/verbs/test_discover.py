"""`siteloom discover`: what varies between pages as a table, and columns of it as a wrapper."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from siteloom import Wrapper
from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from tests.apps.cli.changing import Going, copied, done, inside, rows, rows_in, stored, versions
from tests.apps.cli.command import Command, one_sentence
from tests.apps.cli.verbs.test_learn import within, write_lines
from tests.apps.demo.sites import directory, guide, of_kind
from tests.learning.discovery.pages import page

COUNT = 24
IN_A_CLUSTER = 16  # of these at least; a few are made another way
RESTAURANTS = of_kind(guide(), "restaurant")[:COUNT]
EVENTS = of_kind(guide(), "event")[:12]
LISTS = of_kind(guide(), "list")[:16]
ENTRIES = of_kind(directory(), "restaurant")[:12]
DETAILS = "larkmoor-guide.example/1"


def lines(pages: list[BuiltinPage]) -> list[dict[str, str]]:
    return [{"url": one.page.url, "html": one.page.html.decode()} for one in pages]


@pytest.fixture(scope="session")
def discover_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pages of all sorts."""
    folder = tmp_path_factory.mktemp("discover")
    write_lines(folder / "restaurants.jsonl", lines(RESTAURANTS))
    write_lines(folder / "lists.jsonl", lines(LISTS))
    write_lines(folder / "all.jsonl", lines([*RESTAURANTS, *EVENTS, *LISTS, *ENTRIES]))
    return folder


@pytest.fixture(scope="session")
def clustered_place(discover_place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a workspace of all pages, clustered."""
    folder = copied(discover_place, tmp_path_factory.mktemp("clustered") / "place")
    with inside(folder):
        done("ingest", "all.jsonl")
        done("cluster")
    return folder


@pytest.fixture
def files(discover_place: Path, go: Going) -> Path:
    return go(discover_place)


@pytest.fixture
def workspace(clustered_place: Path, go: Going) -> Path:
    return go(clustered_place)


def flat(told: str) -> str:
    """What is told, each table on one line."""
    return " ".join(told.replace("│", " ").split())


def assert_right(written: Sequence[Mapping[str, Any]], label: str, attribute: str) -> None:
    """Most rows have what is true of their restaurant, none has anything else, and few rows are missing."""
    truth = {one.page.url: list(one.truth[attribute]) for one in RESTAURANTS}
    assert len({row["url"] for row in written}) == len(written) >= IN_A_CLUSTER
    found = [(row.get(label) or [], truth[row["url"]]) for row in written]
    assert all(texts in ([], wanted) for texts, wanted in found)
    assert sum(texts == wanted for texts, wanted in found) >= 0.9 * len(found)


# Pages of a file


def test_the_table_of_a_file_is_shown(files: Path) -> None:
    told = done("discover", "restaurants.jsonl")
    shown = flat(told)
    assert f"{DETAILS}: " in shown
    for label in ("title", "Phone", "Opening hours", "Website"):
        assert f" {label} " in shown
    assert any(one.truth["name"][0] in shown for one in RESTAURANTS)
    assert "give -o FILE" in shown
    assert sorted(path.name for path in files.iterdir()) == ["all.jsonl", "lists.jsonl", "restaurants.jsonl"]


def test_the_command_works_as_a_process_of_its_own(files: Path) -> None:
    result = Command(files).fresh("discover", "restaurants.jsonl", "-o", "-")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("\n") >= IN_A_CLUSTER
    assert "Phone" in result.stderr


def test_rows_as_lines_of_json(files: Path) -> None:
    written = rows("discover", "restaurants.jsonl")
    for attribute, label in (("name", "title"), ("phone", "Phone"), ("cuisine", "Cuisine")):
        assert_right(written, label, attribute)


def test_rows_as_tables(files: Path) -> None:
    done("discover", "restaurants.jsonl", "-o", "table.csv")
    with Path("table.csv").open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    assert_right(
        [{**row, "Phone": [row["Phone"]] if row["Phone"] else []} for row in written], "Phone", "phone"
    )
    done("discover", "restaurants.jsonl", "-o", "table.parquet")
    table = pyarrow.parquet.read_table("table.parquet")
    assert_right(table.to_pylist(), "Cuisine", "cuisine")


def records_of(urls: Iterable[object]) -> list[dict[str, tuple[str, ...]]]:
    """The true records of pages, in the order of their addresses."""
    of_page = {one.page.url: one.records for one in LISTS}
    return [dict(record) for url in dict.fromkeys(urls) for record in of_page[str(url)]]


def test_records_of_list_pages_are_rows(files: Path) -> None:
    told = done("discover", "lists.jsonl", "-o", "table.jsonl")
    written = rows_in("table.jsonl")
    records = records_of(row["url"] for row in written)
    assert len(written) == len(records) > 50
    assert f"{len(records)} records in //div" in flat(told)
    assert [tuple(row["title"]) for row in written] == [record["name"] for record in records]
    prices = [tuple(row.get("Average main") or ()) for row in written]
    assert prices == [record["price"] for record in records]


def test_of_several_clusters_all_are_told_and_the_most_record_like_is_shown(files: Path) -> None:
    shown = flat(done("discover", "all.jsonl"))
    assert "Clusters, the most record-like first" in shown
    assert "items of lists" in shown
    assert " Opening hours " in shown
    shown = flat(done("discover", "all.jsonl", "--site", "tableatlas.example"))
    assert " Kitchen " in shown
    assert "larkmoor" not in shown.partition(" column ")[0]


def test_accepted_columns_make_a_wrapper_file(files: Path) -> None:
    told = done(
        *("discover", "restaurants.jsonl", "--accept", "name=title", "--accept", "Opening hours"),
        *("--accept", "Phone", "-o", "w.json"),
    )
    assert "The wrapper is in w.json." in told
    assert "name 100%" in flat(told)
    wrapper = Wrapper.from_json(Path("w.json").read_text(encoding="utf-8"))
    assert list(wrapper.attributes) == ["name", "opening_hours", "phone"]
    done("extract", "restaurants.jsonl", "--wrapper", "w.json", "-o", "records.jsonl")
    assert_right([{"url": row["url"], **row["values"]} for row in rows_in("records.jsonl")], "phone", "phone")


def test_accepted_columns_of_lists_make_a_wrapper_of_lists(files: Path) -> None:
    accept = ("--accept", "name=title", "--accept", "price=Average main")
    done("discover", "lists.jsonl", *accept, "-o", "w.json")
    wrapper = Wrapper.from_json(Path("w.json").read_text(encoding="utf-8"))
    assert wrapper.record_rule is not None
    right = [
        [record.values["name"] for record in wrapper.extract_all(one.page)]
        == [record["name"] for record in one.records]
        for one in LISTS
    ]
    assert sum(right) >= len(LISTS) / 2  # those of the cluster


# The workspace


def test_a_cluster_of_the_workspace(workspace: Path) -> None:
    written = rows("discover", "--cluster", DETAILS)
    assert_right(written, "Phone", "phone")
    shown = flat(done("discover"))
    assert "Clusters, the most record-like first" in shown
    assert f"{DETAILS}: {len(written)} pages" in shown


def test_accepted_columns_make_a_wrapper_of_the_workspace(workspace: Path) -> None:
    told = done("discover", "--cluster", DETAILS, "--accept", "Phone", "-o", "w.json")
    assert f"The wrapper is kept as {DETAILS}, version 1." in told
    assert "The wrapper is in w.json." in told
    assert len(versions()) == 1
    done("extract")
    told = done("discover", "--cluster", DETAILS, "--accept", "Phone", "--accept", "name=title")
    assert "version 2" in told
    assert len(versions()) == 2


def test_accepted_columns_join_what_is_annotated(workspace: Path) -> None:
    in_the_table = {row["url"] for row in rows("discover", "--cluster", DETAILS)}
    annotated = [one for one in RESTAURANTS if one.page.url in in_the_table][:3]
    write_lines(
        workspace / "examples.jsonl",
        [{"url": one.page.url, "values": {"name": list(one.truth["name"]), "fax": []}} for one in annotated],
    )
    done("learn", "--examples", "examples.jsonl")
    told = done("discover", "--cluster", DETAILS, "--accept", "phone")
    assert f"The wrapper is kept as {DETAILS}, version 2." in told
    assert "rollback" not in told
    assert "annotated next" not in told
    done("discover", "--cluster", DETAILS, "--accept", "Cuisine")
    assert attributes() == {"name", "fax", "phone", "cuisine"}
    before = versions()
    done("discover", "--cluster", DETAILS, "--accept", "Cuisine")
    done("learn")
    assert versions() == before
    found = {row["url"]: row for row in rows("extract")}
    right = [
        found[one.page.url]["values"].get("phone", []) == list(one.truth["phone"])
        for one in RESTAURANTS
        if one.page.url in found
    ]
    assert sum(right) >= 0.9 * len(right) > 10


def attributes() -> set[str]:
    with closing(stored()) as store:
        return set(Wrapper.from_json(store.wrapper(DETAILS).text).attributes)


def test_accepted_columns_of_lists_are_added_one_by_one(workspace: Path) -> None:
    shown = done("discover", "--site", "larkmoor-guide.example")
    lists = next(line for line in shown.splitlines() if "items of lists" in line).split()[1]
    for column in ("name=title", "price=Average main"):
        done("discover", "--cluster", lists, "--accept", column, "-o", "w.json")
    wrapper = Wrapper.from_json(Path("w.json").read_text(encoding="utf-8"))
    assert set(wrapper.attributes) == {"name", "price"}


# Pages of other sorts


def test_a_list_page_alone(files: Path) -> None:
    source = write_lines(files / "one.jsonl", lines(LISTS[:1]))
    told = done("discover", source, "-o", "table.jsonl")
    assert f"{len(LISTS[0].records)} rows are in table.jsonl." in told
    assert "of 1 page" in flat(told)
    done("discover", source, "--accept", "name=title", "-o", "w.json")
    wrapper = Wrapper.from_json(Path("w.json").read_text(encoding="utf-8"))
    found = [record.values["name"] for record in wrapper.extract_all(LISTS[0].page)]
    assert found == [record["name"] for record in LISTS[0].records]


def test_a_wrapper_of_a_list_cluster_is_for_all_its_pages(files: Path) -> None:
    lists = of_kind(directory(), "list")
    source = write_lines(files / "directory.jsonl", lines([*ENTRIES, *lists]))
    shown = done("discover", source)
    cluster = next(line for line in shown.splitlines() if "items of lists" in line).split()[1]
    done("discover", source, "--cluster", cluster, "--accept", "address=street address", "-o", "w.json")
    found = rows("extract", source, "--wrapper", "w.json")
    wanted = [record["address"] for one in lists for record in one.records]
    assert sorted(tuple(row["values"]["address"]) for row in found) == sorted(wanted)


def test_a_small_cluster_comes_behind_the_others(files: Path) -> None:
    rich = [f"<h2>{n}</h2><table>" + "".join(f"<tr><th>F{m}<td>{n}.{m}" for m in range(9)) for n in range(3)]
    poor = [f"<h1>Thing {n}</h1><p>Made by {n}</p><p>In {n}</p>" for n in range(40)]
    shown = flat(done("discover", save(files, [*poor, *rich])))
    assert "made-up.example/2 3 " in shown
    assert shown.index("made-up.example/1 40 ") < shown.index("made-up.example/2 3 ")
    assert "made-up.example/1: 40 pages" in shown


def test_pages_in_no_cluster_are_counted_and_examples_differ(files: Path) -> None:
    bodies = [f"<h1>Thing {n % 2}</h1><p class=maker>M {n}</p>" for n in range(8)]
    odd = "<ul><li>a<li>b</ul><form><input><select><option>x</select></form><dl><dt>y<dd>z</dl>" * 3
    told = done("discover", save(files, [*bodies, odd]))
    assert "1 page is in no cluster and left out." in told
    assert "Thing 0" in told
    assert "Thing 1" in told


def save(folder: Path, bodies: list[str], *, site: str = "made-up.example") -> str:
    made = [page(body, number, site=site) for number, body in enumerate(bodies)]
    return write_lines(folder / "made.jsonl", [{"url": one.url, "html": one.html.decode()} for one in made])


def test_pages_on_which_nothing_varies(files: Path) -> None:
    source = save(files, ["<h1>Closed</h1><p>For ever</p>"] * 6)
    assert "Nothing varies between these pages." in done("discover", source)
    assert rows("discover", source) == [{"url": f"https://made-up.example/p/{n}"} for n in range(6)]


def test_a_page_that_cannot_be_read_is_told_and_left_out(files: Path) -> None:
    bodies = [f"<h1>Thing {n}</h1><p>Made by {n}</p>" for n in range(8)]
    source = save(files, bodies)
    with Path(source).open("a", encoding="utf-8") as file:
        file.write("no page\n")
    told = done("discover", source, "-o", "table.jsonl")
    assert "1 page could not be read" in told
    assert len(rows_in("table.jsonl")) == 8


def test_a_label_with_an_equals_sign_can_be_accepted(files: Path) -> None:
    source = save(
        files, [f"<h1>Thing {n}</h1><dl><dt>size=cm<dd>Long {n}<dt>Maker<dd>M {n}</dl>" for n in range(9)]
    )
    done("discover", source, "--accept", "size=cm", "-o", "w.json")
    assert list(Wrapper.from_json(Path("w.json").read_text(encoding="utf-8")).attributes) == ["size_cm"]


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--accept", "Colour", "-o", "w.json"), "There is no column 'Colour': there are "),
        (("--accept", "Phone"), "With a SOURCE, --accept needs -o FILE for the wrapper."),
        (("--accept", "Phone", "-o", "w.csv"), ".json"),
        (
            ("--accept", "a=Phone", "--accept", "a=title", "-o", "w.json"),
            "Two columns would get the same name",
        ),
        (("-o", "table.txt"), ".txt"),
        (("--cluster", "nowhere/1"), f"no cluster nowhere/1 of these pages: there are {DETAILS}"),
        (("--site", "nowhere"), "no page of nowhere: there are pages of larkmoor-guide.example."),
        (("--accept", "=title", "-o", "w.json"), "as in --accept name=title, instead of '=title'"),
    ],
)
def test_mistakes_are_told_in_a_sentence(files: Path, arguments: tuple[str, ...], sentence: str) -> None:
    result = within("discover", "restaurants.jsonl", *arguments)
    assert sentence in one_sentence(result)
    assert not Path("w.json").exists()


def test_mistakes_in_the_workspace(workspace: Path) -> None:
    told = one_sentence(within("discover", "--cluster", "nowhere/1"))
    assert "There is no cluster nowhere/1: siteloom cluster lists them." in told
    told = one_sentence(within("discover", "--site", "nowhere"))
    assert "There is no cluster of nowhere: siteloom cluster lists them." in told


def test_a_source_without_pages(files: Path) -> None:
    Path("empty.jsonl").write_text("", encoding="utf-8")
    result = within("discover", "empty.jsonl")
    assert result.returncode == 1
    assert "There is no page to discover a table in" in one_sentence(result)


def test_a_single_page_has_nothing_to_be_compared_with(files: Path) -> None:
    source = save(files, ["<h1>Thing</h1>"])
    result = within("discover", source)
    assert "nothing to compare them by" in one_sentence(result)


def test_a_workspace_without_clusters(files: Path) -> None:
    done("ingest", "restaurants.jsonl")
    result = within("discover")
    assert "There are no clusters yet" in one_sentence(result)
