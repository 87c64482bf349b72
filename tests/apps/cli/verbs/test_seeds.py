"""`siteloom seeds` from end to end."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import sqlalchemy

from siteloom.core.model import Seed
from siteloom.store import schema
from tests.apps.cli.changing import COUNT, SITE, WRAPPER, Going, done, rows, stored
from tests.apps.cli.command import one_sentence, work_inside
from tests.apps.cli.verbs.test_learn import within, write_lines

INNS = "name;phone;cuisine\nOak;1;Thai|Greek\nElm;;Thai\n;;\nFir;1;2;3\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work_inside(tmp_path, monkeypatch)
    (tmp_path / "inns.csv").write_text(INNS, encoding="utf-8")
    return tmp_path


def kept() -> list[Seed]:
    with closing(stored()) as store:
        return list(store.seeds())


def counts(told: str) -> dict[str, int]:
    """The rows of the first table that a command shows."""
    cells = [line.strip("│ ").split("│") for line in told.splitlines() if line.startswith("│")]
    return {row[0].strip(): int(row[1]) for row in cells if len(row) == 2 and row[1].strip().isdigit()}


def test_a_file_is_kept_and_told_about(place: Path) -> None:
    told = done("seeds", "inns.csv", "--several", "cuisine=|", "--rename", "phone=tel")
    assert counts(told) == {
        "added": 2,
        "unchanged": 0,
        "removed": 0,
        "failed: bad value": 1,
        "skipped: no values": 1,
    }
    assert "4 cells, but 3 columns" in told
    assert kept() == [
        Seed({"name": ("Oak",), "tel": ("1",), "cuisine": ("Thai", "Greek")}, "inns"),
        Seed({"name": ("Elm",), "cuisine": ("Thai",)}, "inns"),
    ]
    with closing(stored()) as store:
        (run,) = store.runs(2)
        assert (run.verb, run.status) == ("seeds", "done")
        assert run.counts == {"added": 2, "unchanged": 0, "removed": 0, "failed": 1, "skipped": 1}


def test_the_same_file_again_changes_nothing_and_a_newer_one_replaces_it(place: Path) -> None:
    done("seeds", "inns.csv")
    before = kept()
    assert counts(done("seeds", "inns.csv"))["unchanged"] == 2
    assert kept() == before
    (place / "inns.csv").write_text("name\nElm\nAsh\n", encoding="utf-8")
    found = counts(done("seeds", "inns.csv"))
    assert (found["added"], found["unchanged"], found["removed"]) == (2, 0, 2)
    assert [seed.values["name"] for seed in kept()] == [("Elm",), ("Ash",)]


def test_the_sources_are_shown(place: Path) -> None:
    done("init")
    assert "no known records yet" in done("seeds")
    done("seeds", "inns.csv")
    write_lines(place / "more.jsonl", [{"name": "Ash", "_confidence": 0.5}])
    done("seeds", "more.jsonl", "--source", "guide book")
    told = " ".join(done("seeds").split())
    assert "│ guide book │ 1 │ name 100 % │ 50 % │ 20" in told
    assert "│ inns │ 2 │ name 100 % │ 100 % │ 20" in told
    assert "│ phone 50 % │" in told
    assert "inns" not in done("seeds", "--source", "guide book")


def test_several_files_and_tables_at_once(place: Path) -> None:
    write_lines(place / "more.jsonl", [{"name": "Ash"}])
    with closing(sqlite3.connect("inns.db")) as connection, connection:
        connection.execute("CREATE TABLE pubs (name)")
        connection.execute("INSERT INTO pubs VALUES ('Yew')")
    done("seeds", "inns.csv", "more.jsonl", "sqlite:///inns.db#pubs")
    assert [(seed.source, *seed.values["name"]) for seed in kept()] == [
        ("inns", "Oak"),
        ("inns", "Elm"),
        ("more", "Ash"),
        ("pubs", "Yew"),
    ]


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet", "out.csv"])
def test_what_is_written_can_be_read_again(place: Path, name: str) -> None:
    write_lines(
        place / "more.jsonl", [{"name": ["Ash", "Old Ash"], "_url": "http://a.example/", "_confidence": 0.5}]
    )
    done("seeds", "inns.csv", "more.jsonl")
    done("seeds", "-o", name)
    before = kept()
    for source in ("inns", "more"):
        done("seeds", "--withdraw", source)
    assert kept() == []
    done("seeds", name, *(["--several", "name=|"] if name == "out.csv" else []))
    assert kept() == before


def test_the_records_of_one_source_are_written(place: Path) -> None:
    write_lines(place / "more.jsonl", [{"name": ["Ash", "Old Ash"], "rooms": 3}])
    done("seeds", "inns.csv", "more.jsonl")
    assert rows("seeds", "--source", "more") == [
        {"_source": "more", "_url": "", "_confidence": 1.0, "name": ["Ash", "Old Ash"], "rooms": ["3"]}
    ]
    done("seeds", "-o", "all.csv")
    with Path("all.csv").open(encoding="utf-8", newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["Oak", "Elm", "Ash | Old Ash"]
    done("seeds", "-o", "all.parquet")
    assert pq.read_table("all.parquet")["rooms"].to_pylist() == [None, None, ["3"]]


def test_a_source_is_withdrawn(place: Path) -> None:
    done("seeds", "inns.csv")
    assert "2 records of inns were removed." in done("seeds", "--withdraw", "inns")
    assert kept() == []
    message = one_sentence(within("seeds", "--withdraw", "inns"))
    assert message == "There are no known records of inns: there are those of none yet."


def test_the_records_of_a_site_become_seeds(mended_place: Path, go: Going) -> None:
    go(mended_place)
    done("extract")
    done("seeds", "--from-site", SITE)
    seeds = kept()
    assert len(seeds) == COUNT
    assert {seed.source for seed in seeds} == {SITE}
    with closing(stored()) as store:
        extracted = {row["url"]: row for row in map(json.loads, store.records())}
    for seed in seeds:
        row = extracted[seed.url]
        assert seed.values == {name: tuple(texts) for name, texts in row["values"].items() if texts}
        assert 0 < seed.confidence == min(min(given) for given in row["confidence"].values() if given)
    assert counts(done("seeds", "--from-site", SITE))["unchanged"] == COUNT


def lowest(line: str) -> tuple[str, float]:
    row = json.loads(line)
    return row["url"], min(value for given in row["confidence"].values() for value in given)


def test_records_of_a_version_that_was_rolled_back_are_not_meant(mended_place: Path, go: Going) -> None:
    folder = go(mended_place)
    done("extract")
    done("rollback", WRAPPER)
    done("seeds", "--from-site", SITE, "--source", "inns")
    before = dict(map(lowest, (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()))
    assert {seed.url: seed.confidence for seed in kept()} == before
    with closing(stored()) as store:
        assert dict(map(lowest, store.records())) != before


PRODUCT = """<script type="application/ld+json">
{"@type": "Product", "name": "Desk %d", "offers": {"@type": "Offer", "price": "%d"}}
</script><script type="application/ld+json">{"@type": "WebSite", "name": "A shop"}</script>"""


def test_data_embedded_in_pages_become_seeds(place: Path) -> None:
    pytest.importorskip("extruct")
    pages = [
        {"url": f"http://shop.example/{number}", "html": f"<p>{PRODUCT % (number, number)}"}
        for number in range(3)
    ]
    file = write_lines(
        place / "crawl.jsonl", [*pages, {"url": "http://shop.example/9", "html": "<p>None"}, {}]
    )
    told = done("seeds", "--from-embedded", file)
    assert counts(told)["failed: no URL"] == 1
    assert [(seed.source, seed.url, seed.values["name"], seed.values["offers.price"]) for seed in kept()] == [
        ("crawl", f"http://shop.example/{number}", (f"Desk {number}",), (str(number),)) for number in range(3)
    ]
    done("ingest", file)
    done("seeds", "--from-embedded", "shop.example", "--rename", "offers.price=price")
    with closing(stored()) as store:
        found = list(store.seeds(["shop.example"]))
    assert [seed.values["price"] for seed in found] == [("0",), ("1",), ("2",)]
    assert not any(name.startswith("_") for seed in found for name in seed.values)


def test_a_name_that_no_record_has_is_told_before_anything_is_kept(place: Path) -> None:
    done("seeds", "inns.csv")
    before = kept()
    (place / "inns.csv").write_text(INNS.replace("Oak", "Yew"), encoding="utf-8")
    names = ("--rename", "nmae=name", "--rename", "phone=tel", "--several", "tags=;")
    result = within("seeds", "inns.csv", *names)
    assert result.returncode == 2
    assert one_sentence(result) == "No record has nmae, tags: the attributes are cuisine, name, phone."
    assert kept() == before


def test_a_csv_file_with_a_quote_that_is_not_closed_is_refused(place: Path) -> None:
    (place / "open.csv").write_text('name,phone\n"Oak,1\nElm,2\n', encoding="utf-8")
    message = (
        "The row that begins in line 2 of open.csv has a quote that is not closed: close it, or take it out."
    )
    assert one_sentence(within("seeds", "open.csv")) == message
    assert kept() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv"], "There is no file none.csv: check the path."),
        (["inns.csv", "--rename", "name"], "--rename takes two texts"),
        (["inns.csv", "--several", "=x"], "--several takes two texts"),
        (["inns.csv", "--several", "name="], "--several takes two texts"),
        (["--rename", "a=b"], "name a file of them"),
        (["inns.csv", "--withdraw", "inns"], "--withdraw takes nothing else"),
        (["inns.csv", "-o", "out.xlsx"], "Cannot tell the format"),
        (["sqlite:///inns.db#inns"], "There is no file inns.db"),
    ],
)
def test_mistakes_are_told_before_anything_is_kept(place: Path, arguments: list[str], message: str) -> None:
    assert message in one_sentence(within("seeds", *arguments))
    assert not Path(".siteloom").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from-site", "a.example"], "There is no wrapper of a.example: there are wrappers of none yet."),
        (["--source", "guide"], "There are no known records of guide: there are those of inns."),
        (["--from-embedded", "a.example"], "There is no file or folder a.example"),
        (["empty.csv"], "No record could be read: there is none."),
        (["blank.csv"], "No record could be read: none of them has values."),
        (["bad.jsonl"], "No record could be read: all of them failed (not valid JSON)."),
    ],
)
def test_mistakes_leave_what_is_kept_as_it_is(place: Path, arguments: list[str], message: str) -> None:
    done("seeds", "inns.csv")
    before = kept()
    (place / "empty.csv").write_text("name\n", encoding="utf-8")
    (place / "blank.csv").write_text("name,phone\n,\n", encoding="utf-8")
    (place / "bad.jsonl").write_text("{\n", encoding="utf-8")
    assert message in one_sentence(within("seeds", *arguments))
    assert kept() == before


def test_a_site_without_records_yet(watched_place: Path, go: Going) -> None:
    go(watched_place)
    with closing(stored()) as store:
        store.save_wrapper("other", "b.example", store.wrapper(WRAPPER).text, "learn")
    message = one_sentence(within("seeds", "--from-site", "b.example"))
    assert message == "No records of b.example were extracted yet: run siteloom extract."


def test_no_password_is_kept(place: Path, postgres_url: str) -> None:
    url = sqlalchemy.make_url(postgres_url).set(drivername="postgresql+psycopg", password="secret")
    with sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool).begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE pubs AS SELECT 'Yew' AS name"))
    address = url.render_as_string(hide_password=False)
    assert "secret" in address
    assert "secret" not in done("seeds", f"{address}#pubs")
    with closing(stored()) as store, store.engine.connect() as connection:
        arguments = connection.execute(sqlalchemy.select(schema.runs.c.arguments)).scalar_one()
    assert "#pubs" in str(arguments)
    assert "secret" not in str(arguments)
    assert kept() == [Seed({"name": ("Yew",)}, "pubs")]
