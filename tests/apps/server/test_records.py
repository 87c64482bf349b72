"""The table of records: shown, told to programs, and downloaded as `siteloom extract` writes it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import httpx
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI
from lxml import html

from siteloom.apps.server import create_app
from siteloom.apps.server import result_cache as found_records
from siteloom.apps.server.result_cache import Choice, FoundRecords
from siteloom.apps.server.views.records import misread, read_filter
from siteloom.core.settings import Settings
from siteloom.store.queries.record_filters import Condition, RecordQuery
from siteloom.store.store import Store
from tests.apps.cli.command import Command
from tests.apps.server.browsing import Browser
from tests.apps.server.conftest import People
from tests.lived_in import DIRECTORY, GUIDE


@pytest.fixture
def guide(lived_in: Store) -> Browser:
    """A browser that looks at a workspace with records."""
    return Browser(create_app(lived_in, Settings()))


def rows(answer: httpx.Response) -> list[list[str]]:
    """The texts of the table's rows."""
    assert answer.status_code == 200, answer.text
    tree = html.fromstring(answer.text)
    return [
        [" ".join(cell.text_content().split()) for cell in row.xpath("./td")]
        for row in tree.xpath("//tbody/tr")
    ]


def links(answer: httpx.Response, xpath: str) -> list[str]:
    return [str(link) for link in html.fromstring(answer.text).xpath(f"{xpath}/@href")]


def records(browser: Browser, query: str = "") -> dict[str, object]:
    answer = browser.get(f"/api/records?{query}")
    assert answer.status_code == 200, answer.text
    told: dict[str, object] = answer.json()
    return told


def names(told: dict[str, object]) -> list[str]:
    found = told["records"]
    assert isinstance(found, list)
    return [one["values"]["name"][0] for one in found if "name" in one["values"]]


def test_the_table_shows_what_holds_and_where_each_value_stands(guide: Browser, lived_in: Store) -> None:
    answer = guide.get("/records")
    held = [row for site, row in lived_in.records_in_force() if site == GUIDE]
    shown = rows(answer)
    assert 0 < len(shown) <= 50
    assert f"of {len(held)}" in " ".join(html.fromstring(answer.text).text_content().split())
    first = urlsplit(links(answer, "//tbody/tr[1]/td[1]//a")[0])
    assert first.path == "/pages/at"
    where = parse_qs(first.query)
    assert where["attribute"] == ["name"]
    record = next(row for row in held if row["url"] == where["url"][0])
    assert where["wrapper"] == [record["wrapper"]]
    assert where["site"] == [GUIDE]
    page = guide.get(links(answer, "//tbody/tr[1]/td[1]//a")[0])
    assert page.status_code in (302, 303, 307), page.text
    assert guide.get(page.headers["location"]).status_code == 200


def test_filters_stand_in_the_address_and_each_can_be_taken_away(guide: Browser) -> None:
    everything = records(guide)["total"]
    asked = f"/records?wrapper={quote('*')}&v.name=e&words=a&below=0.999&sort=v.name&order=down"
    answer = guide.get(asked)
    shown = rows(answer)
    told = records(guide, urlsplit(asked).query)
    assert len(shown) == min(50, int(str(told["total"])))
    assert told["total"] != everything
    found = names(told)
    assert found == sorted(found, key=str.casefold, reverse=True)
    assert all("e" in name.casefold() for name in found)
    chips = links(answer, "//ul[@class='plain chips']//a")
    assert len(chips) == 4
    without = parse_qs(urlsplit(chips[0]).query)
    assert "words" not in without
    assert without["v.name"] == ["e"]
    assert records(guide, urlsplit(chips[-1]).query)["total"] == everything


def test_pages_of_the_table_have_each_record_once(guide: Browser) -> None:
    total = records(guide)["total"]
    seen: list[int] = []
    where: object = "/api/records?limit=7&sort=v.name"
    while where is not None:
        told = guide.get(str(where)).json()
        seen += [one["id"] for one in told["records"]]
        where = told["next"]
    assert len(seen) == len(set(seen)) == total
    last = guide.get("/records?page=2")
    assert f"51\u2013{total} of {total}" in last.text
    assert rows(guide.get("/records?page=999999")) == rows(last)


def test_an_earlier_run_can_be_looked_at(guide: Browser, lived_in: Store) -> None:
    runs = sorted(run.id for run in lived_in.run_history.runs(["extract"], None, None, 10))
    first = records(guide, f"run={runs[0]}")
    assert first["total"] == len(list(lived_in.records(runs[0])))
    assert "of run" in guide.get(f"/records?run={runs[0]}").text
    assert guide.get("/api/records?run=99999").status_code == 404


def test_downloads_are_what_extract_writes(lived_in: Store, tmp_path: Path) -> None:
    command = Command(tmp_path)
    for suffix in ("csv", "jsonl", "parquet"):
        assert command("extract", "-o", f"expected.{suffix}").returncode == 0
    browser = Browser(create_app(lived_in, Settings()))
    for suffix in ("csv", "jsonl"):
        answer = browser.get(f"/records/download.{suffix}")
        assert answer.content == (tmp_path / f"expected.{suffix}").read_bytes()
        assert (
            f'filename="records-{lived_in.clock():%Y-%m-%d}.{suffix}"'
            in answer.headers["content-disposition"]
        )
    answer = browser.get("/records/download.parquet")
    expected = pq.read_table(tmp_path / "expected.parquet")
    assert expected.num_rows > 50
    assert pq.read_table(io.BytesIO(answer.content)).equals(expected)


def test_a_download_has_what_the_filters_leave_in_their_order(guide: Browser) -> None:
    query = f"site={GUIDE}&v.name=e&sort=v.name"
    answer = guide.get(f"/records/download.csv?{query}")
    assert f"records-{GUIDE}-" in answer.headers["content-disposition"]
    read = list(csv.DictReader(io.StringIO(answer.text)))
    told = records(guide, f"{query}&limit=1000")
    assert [row["name"].split(" | ")[0] for row in read] == names(told)
    lines = guide.get(f"/records/download.jsonl?{query}").text.splitlines()
    assert [json.loads(line)["url"] for line in lines] == [row["url"] for row in read]
    nothing = guide.get("/records/download.csv?words=nothing-is-called-this")
    assert len(nothing.text.splitlines()) == 1
    assert guide.get("/records/download.xlsx").status_code == 422


def test_without_pyarrow_a_sentence_says_what_to_install(
    guide: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("siteloom.core.table_files.find_spec", lambda _: None)
    answer = guide.get("/records/download.parquet")
    assert answer.status_code == 501
    assert "siteloom[parquet]" in answer.text


@pytest.mark.parametrize(
    "query",
    [
        "words=%00%ED%A0%80%27%22%3Cscript%3E&v.%3Cb%3E=%25",
        "wrapper=*&v.=x&v.name=~&v.price=%3E&sort=v.",
        "sort=v.%ED%A0%80&v.%00=%00",
        f"wrapper=*&site={GUIDE}&url=%5C&v.name=%3E{'9' * 500}",
        "&".join(f"v.a{number}=x" for number in range(100)),
    ],
)
def test_whatever_is_asked_is_answered(guide: Browser, query: str) -> None:
    page = guide.get(f"/records?{query}")
    assert page.status_code == 200, page.text
    assert "<script>" not in page.text
    assert guide.get(f"/api/records?{query}").status_code == 200
    assert guide.get(f"/records/download.jsonl?{query}").status_code == 200


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("run=x", 422),
        ("run=99999999999999999999", 422),
        ("page=0", 422),
        ("below=7", 422),
        ("below=nan", 422),
        ("order=sideways", 422),
        ("sort=x", 400),
        ("wrapper=nowhere.example/1", 404),
        (f"words={'x' * 3_000}", 422),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(guide: Browser, query: str, status: int) -> None:
    assert guide.get(f"/records?{query}").status_code == status


def test_who_has_no_records_is_told_why_and_what_to_do(
    people: People, guide: Browser, lived_in: Store
) -> None:
    ana = people.browser("ana", "admin")
    assert "Add pages" in ana.look("/records")
    assert "Annotate a template" in guide.look(f"/records?site={DIRECTORY}")
    assert "There is no site of this name" in guide.look("/records?site=nowhere.example")
    assert guide.get(f"/api/records?site={DIRECTORY}").json()["total"] == 0


def test_viewers_may_look_and_download_and_no_one_else(people: People, app: FastAPI) -> None:
    vita = people.browser("vita", "viewer")
    for path in ("/records", "/api/records", "/records/download.csv"):
        assert vita.get(path).status_code == 200
    stranger = Browser(app)
    assert stranger.get("/api/records").status_code == 401
    assert stranger.get("/records/download.csv").status_code in (303, 401)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("  ", None),
        ("thai", Condition("a", "contains", "thai")),
        ("=thai", Condition("a", "is", "thai")),
        ("=", Condition("a", "contains", "=")),
        ("!thai", Condition("a", "is not", "thai")),
        ("!=thai", Condition("a", "is not", "thai")),
        (">1,000.5", Condition("a", "greater", "1000.5")),
        ("<= 2026-05-01", Condition("a", "at most", "2026-05-01")),
        (">thai", Condition("a", "contains", ">thai")),
        ("-", Condition("a", "is empty")),
        ("-5", Condition("a", "contains", "-5")),
        ("*", Condition("a", "has a value")),
        ("~0.8", Condition("a", "unsure", "0.800000")),
        ("~80%", Condition("a", "unsure", "0.800000")),
        ("~", Condition("a", "contains", "~")),
    ],
)
def test_what_is_typed_over_a_column(text: str, expected: Condition | None) -> None:
    assert read_filter("a", text) == expected


@pytest.mark.parametrize("text", [">", "<x", "~", "~x", "=", "!"])
def test_a_sign_without_what_it_is_about_is_told(guide: Browser, text: str) -> None:
    assert (misread("name", text) or "").startswith(f"“{text}” over name lacks")
    page = guide.get("/records?" + urlencode({"v.name": text})).text
    assert "over name lacks" in page


@pytest.mark.parametrize("text", [">10", "<=2026-05-01", "~0.8", "=thai", "!thai", "-", "*", "thai", "a > b"])
def test_what_makes_sense_is_not_told(text: str) -> None:
    assert misread("name", text) is None


def test_what_was_found_is_kept_and_too_much_is_not(lived_in: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    table, kept = lived_in.record_table, FoundRecords()
    choice = Choice(table.scope(), None, None)
    query = RecordQuery(words="a")
    first = kept.ids(table, choice, query)
    assert kept.ids(table, choice, query) is first
    monkeypatch.setattr(found_records, "_MOST_RECORDS", 1)
    assert list(FoundRecords().ids(table, choice, query)) == list(first)
    monkeypatch.setattr(found_records, "_MOST_IDS", 1)
    small = FoundRecords()
    assert small.ids(table, choice, query) is not small.ids(table, choice, RecordQuery(words="e"))
    assert list(small.ids(table, choice, query)) == list(first)


def test_more_filters_than_are_taken_are_refused_in_a_sentence(guide: Browser) -> None:
    answer = guide.get("/api/records?" + "&".join(f"v.a{number}=x" for number in range(101)))
    assert answer.status_code == 400
    assert "101 filters" in answer.text


def test_no_more_than_some_hundred_things_are_kept_however_small(lived_in: Store) -> None:
    table, kept = lived_in.record_table, FoundRecords()
    choice = Choice(kept.scope(table, None), None, None)
    fruitless = [RecordQuery(words=f"no such words {number}") for number in range(300)]
    first = kept.ids(table, choice, fruitless[0])
    assert kept.ids(table, choice, fruitless[0]) is first
    for query in fruitless:
        kept.ids(table, choice, query)
    assert kept.ids(table, choice, fruitless[0]) is not first


def test_what_is_kept_is_kept_by_one_and_the_same_scope(lived_in: Store) -> None:
    kept = FoundRecords()
    scope = kept.scope(lived_in.record_table, None)
    assert kept.scope(lived_in.record_table, None) is scope


def test_repeated_filters_all_stay_when_another_is_typed(guide: Browser) -> None:
    query = "v.name=a&v.name=e&v.name=i"
    shown = html.fromstring(guide.get(f"/records?{query}").text)
    kept = shown.xpath("//form[@data-filters]//input[@name='v.name']/@value")
    assert sorted(kept) == ["a", "e", "i"]
    all_three = records(guide, query)["total"]
    assert isinstance(all_three, int)
    assert all_three < int(str(records(guide, "v.name=i")["total"]))
    many = "&".join(f"v.a{n}=x" for n in range(101))
    answer = guide.get(f"/api/records?{many}")
    assert (answer.status_code, "at most 100" in answer.text) == (400, True)
