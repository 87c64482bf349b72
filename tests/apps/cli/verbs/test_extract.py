"""`siteloom extract` from end to end, on copies of the built-in guide."""

from __future__ import annotations

import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from siteloom import Wrapper
from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.core.file_lock import write_lock
from siteloom.core.model import Page
from siteloom.core.settings import StoreSettings
from siteloom.operations.page_import import import_pages
from siteloom.sources.page_source import Items
from siteloom.store.workspace_folder import open_store
from tests.apps.cli.command import Command, one_sentence, work_inside
from tests.apps.cli.verbs.test_learn import within
from tests.apps.demo.sites import guide, of_kind
from tests.extraction.test_extraction import lists, restaurants
from tests.patience import SECONDS, wait_until

RESTAURANTS = of_kind(guide(), "restaurant")
FEW = [*RESTAURANTS[:20], *of_kind(guide(), "event")[:5], *of_kind(guide(), "list")[:2]]
COPIES = 6
SHARDS = 6  # 256 files each
PAGES = COPIES * len(RESTAURANTS) + 1


def copy_of(page: BuiltinPage, number: int) -> str:
    """The address of a copy: the same to the eye of the wrapper, and with the same number at its end."""
    folder, _, name = page.page.url.rpartition("/")
    return f"{folder}/copy{number}-{name}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wrappers and pages: `few.jsonl`, and six shards in the folder `many`."""
    folder = tmp_path_factory.mktemp("extract")
    (folder / "food.json").write_text(restaurants().to_json(), encoding="utf-8")
    (folder / "lists.json").write_text(lists().to_json(), encoding="utf-8")
    (folder / "blank.json").write_text(Wrapper({}).to_json(), encoding="utf-8")
    (folder / "bad.json").write_text('{"format": "siteloom wrapper"', encoding="utf-8")
    rows = [json.dumps({"url": page.page.url, "html": page.page.html.decode()}) for page in FEW]
    rows += [
        json.dumps({"url": copy_of(page, 2), "html": page.page.html.decode()}) for page in RESTAURANTS[:5]
    ]
    (folder / "few.jsonl").write_text("\n".join([*rows, "{broken"]), encoding="utf-8")
    many = folder / "many"
    many.mkdir()
    index = ["file,url"]
    for number, page in enumerate(RESTAURANTS):
        first = many / f"{number}.html"
        first.write_bytes(page.page.html)
        for copy in range(COPIES):
            file = many / f"{number}-{copy}.html"
            file.hardlink_to(first)
            index.append(f"{file.name},{copy_of(page, copy)}")
        first.unlink()
    (many / "event.html").write_bytes(of_kind(guide(), "event")[0].page.html)
    index += ["event.html,https://www.larkmoor-guide.example/x", "gone.html,https://a.example/gone"]
    (many / "index.csv").write_text("\n".join(index), encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def inside(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work_inside(place, monkeypatch)


FOOD = ("--wrapper", "food.json")


@pytest.fixture(scope="module")
def whole(place: Path) -> tuple[bytes, bytes]:
    """The records and the failures of `many`, of one process that nobody disturbed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        result = within(
            "extract", "many", *FOOD, "-o", "whole.jsonl", "--failures", "whole-failures.jsonl", "-j", "1"
        )
    assert result.returncode == 0, result.stderr
    assert not (place / "whole.jsonl.parts").exists()
    return (place / "whole.jsonl").read_bytes(), (place / "whole-failures.jsonl").read_bytes()


def rows_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.removesuffix("\n").split("\n") if line]


def extracted(*arguments: str) -> list[dict[str, Any]]:
    """The records that go to standard output."""
    result = within("extract", *arguments, "-o", "-")
    assert result.returncode == 0, result.stderr
    return rows_of(result.stdout)


# ---- from a source


def test_records_are_those_of_the_wrapper_in_the_order_of_the_pages(whole: tuple[bytes, bytes]) -> None:
    rows = rows_of(whole[0].decode())
    expected = {page.page.url: restaurants().extract(page.page).values for page in RESTAURANTS}
    assert [(row["url"], row["values"]) for row in rows] == [
        (copy_of(page, copy), {name: list(texts) for name, texts in expected[page.page.url].items()})
        for page in RESTAURANTS
        for copy in range(COPIES)
    ]
    firsts = [copy_of(page, 0) for page in RESTAURANTS]
    assert sum(row["duplicate_of"] is None for row in rows) <= len(firsts)
    assert {row["duplicate_of"] for row in rows} <= {None, *firsts}
    assert [(row["url"], row["reason"]) for row in rows_of(whole[1].decode())] == [
        ("https://www.larkmoor-guide.example/x", "no wrapper for the URL"),
        ("https://a.example/gone", "unreadable file"),
    ]


def test_processes_give_the_same_bytes(whole: tuple[bytes, bytes], place: Path) -> None:
    result = within("extract", "many", *FOOD, "-o", "-", "--failures", "f.jsonl", "-j", "2")
    assert result.stdout.encode() == whole[0]
    assert (place / "f.jsonl").read_bytes() == whole[1]
    loose = within("extract", "many", *FOOD, "-o", "-", "-j", "2", "--unordered")

    def bare(text: str) -> list[str]:  # which of two is the duplicate depends on the order
        return sorted(json.dumps({**row, "duplicate_of": None}) for row in rows_of(text))

    assert bare(loose.stdout) == bare(whole[0].decode())


def test_every_format_has_every_record(place: Path) -> None:
    arguments = ("extract", "few.jsonl", *FOOD, "--wrapper", "lists.json", "-o")
    for output in ("few-out.jsonl", "few-out.csv", "few-out.parquet", "sqlite:///few-out.db"):
        result = within(*arguments, output)
        assert result.returncode == 0, result.stderr
        assert result.stdout == ""
        assert f"The records are in {output}." in result.stderr
    streamed = within(*arguments, "-")
    rows = rows_of(streamed.stdout)
    assert streamed.stdout == (place / "few-out.jsonl").read_text(encoding="utf-8")
    assert {row["wrapper"] for row in rows} == {"food", "lists"}
    names = [(row["url"], row["values"]["name"]) for row in rows]
    with (place / "few-out.csv").open(encoding="utf-8", newline="") as file:
        assert [(row["url"], [row["name"]]) for row in csv.DictReader(file)] == names
    table = pq.read_table(place / "few-out.parquet").to_pylist()
    assert [(row["url"], row["values"]["name"]) for row in table] == names
    with closing(sqlite3.connect(place / "few-out.db")) as database:
        found = database.execute("SELECT url, name FROM records").fetchall()
    assert [(url, [name]) for url, name in found] == names
    # No file is left but what was asked for.
    assert {file.name for file in place.glob("*few-out*")} == {
        "few-out.jsonl",
        "few-out.csv",
        "few-out.parquet",
        "few-out.db",
    }


def test_the_summary_tells_what_came_of_it() -> None:
    result = within("extract", "few.jsonl", *FOOD, "--failures", "few-failures.csv")
    assert result.returncode == 0
    assert result.stdout == ""
    told = {
        tuple(cell.strip() for cell in line.strip("│┃ ").replace("┃", "│").split("│"))
        for line in result.stderr.splitlines()
    }
    assert {
        ("pages", "32"),
        ("records", "25"),
        ("failed: no wrapper for the URL", "7"),
        ("failed: not valid JSON", "1"),
        ("duplicates of other records", "5"),
        ("food", "25", "name", "100.0%", "0"),
        ("www.larkmoor-guide.example/events/#/#/*.html", "5"),
    } <= told
    assert "To have the records as data, give -o FILE." in result.stderr
    with Path("few-failures.csv").open(encoding="utf-8", newline="") as file:
        assert [row["reason"] for row in csv.DictReader(file)] == ["no wrapper for the URL"] * 7 + [
            "not valid JSON"
        ]
    assert within("-q", "extract", "few.jsonl", *FOOD).stderr == ""


def test_pages_of_an_entity_are_joined() -> None:
    by_url = extracted("few.jsonl", *FOOD, "--join", r"-([0-9]+)\.html$")
    assert [row["url"] for row in by_url] == [page.page.url for page in RESTAURANTS[:20]]
    assert [page["url"] for page in by_url[3]["pages"]] == [
        RESTAURANTS[3].page.url,
        copy_of(RESTAURANTS[3], 2),
    ]
    by_name = extracted("few.jsonl", *FOOD, "--join", "name")
    names = [tuple(row["values"]["name"]) for row in by_name]
    assert (
        len(set(names)) == len(names) == len({restaurants().extract(p.page).values["name"] for p in FEW[:20]})
    )
    summary = within("extract", "few.jsonl", *FOOD, "--join", "name")
    assert "records after joining" in summary.stderr


def test_wrappers_that_no_page_can_find_are_told() -> None:
    sentence = one_sentence(within("extract", "few.jsonl", "--wrapper", "blank.json"))
    assert sentence == "No page can find its way to blank, for there is no footprint: learn again."
    both = within("extract", "few.jsonl", "--wrapper", "blank.json", *FOOD)
    assert both.returncode == 0
    assert sentence in both.stderr


def test_a_wrapper_of_another_parser_is_told_in_a_sentence(place: Path) -> None:
    content = json.loads((place / "food.json").read_text(encoding="utf-8"))
    content["parser"] = "lxml 4.0 with libxml2 2.9.0"
    (place / "old.json").write_text(json.dumps(content), encoding="utf-8")
    result = within("extract", "few.jsonl", "--wrapper", "old.json")
    assert result.returncode == 0
    (line,) = [line for line in result.stderr.splitlines() if "learned with" in line]
    assert line.startswith("old: This wrapper was learned with lxml 4.0 with libxml2 2.9.0, this is ")


# ---- mistakes


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("few.jsonl",), 2, "With a SOURCE, extract needs --wrapper FILE"),
        (("few.jsonl", "--wrapper", "none.json"), 1, "There is no wrapper none.json: check the path."),
        (("few.jsonl", "--wrapper", "bad.json"), 1, "bad: "),
        (("few.jsonl", "--wrapper", "few.jsonl"), 1, "few: "),
        (("none.jsonl", *FOOD), 1, "There is no file or folder none.jsonl: check the path."),
        (("few.jsonl", *FOOD, "--site", "a.example"), 2, "Give a SOURCE or --site, but not both."),
        (("few.jsonl", *FOOD, "-o", "-", "--failures", "-"), 2, "cannot both go to standard output"),
        (("few.jsonl", *FOOD, "-o", "a.csv", "--failures", "./a.csv"), 2, "cannot both go to a.csv"),
        (("few.jsonl", *FOOD, "-o", "few.jsonl"), 2, "few.jsonl would be overwritten"),
        (("few.jsonl", *FOOD, "--failures", "./few.jsonl"), 2, "few.jsonl would be overwritten"),
        (("f*.jsonl", *FOOD, "-o", "few.jsonl"), 2, "few.jsonl would be overwritten"),
        (("@few.csv", *FOOD, "-o", "few.csv"), 2, "@few.csv would be overwritten"),
        (("none*.warc", *FOOD), 1, "No WARC, WACZ, Parquet or JSON Lines file matches none*.warc"),
        (("few.jsonl", *FOOD, "-o", "a.txt"), 2, "Cannot tell the format of a.txt"),
        (("few.jsonl", *FOOD, "-o", "none/a.csv"), 1, "There is no folder none"),
        (("few.jsonl", *FOOD, "-o", "mysql://host/x"), 2, "Siteloom cannot write to mysql://"),
        (("few.jsonl", *FOOD, "--join", "size"), 2, "the attribute size to join by: there are name, "),
        (("few.jsonl", *FOOD, "--join", "(a)(b)"), 2, "has 2 groups"),
        (("few.jsonl", "--wrapper", "lists.json", "--join", "-(a)"), 2, "join them by an attribute"),
        ((), 2, "siteloom init"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    place: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    if "-o" not in arguments:
        arguments = (*arguments, "-o", "mistaken.jsonl")
    result = within("extract", *arguments)
    assert message in one_sentence(result)
    assert result.returncode == status
    assert not list(place.glob("mistaken*"))


def test_a_mistake_leaves_what_is_kept_of_a_run(place: Path, whole: tuple[bytes, bytes]) -> None:
    process = started("extract", "many", *FOOD, "-o", "kept.jsonl", "-j", "2")
    wait_while_running(process, lambda: len(done_in("kept.jsonl")) >= 1)
    process.send_signal(signal.SIGSTOP)
    # Two at once would spoil what the other writes.
    sentence = one_sentence(within("extract", "many", *FOOD, "-o", "kept.jsonl"))
    assert sentence == (
        "Another process is extracting to kept.jsonl: try again when it ends, or give another -o."
    )
    process.kill()
    process.communicate(timeout=SECONDS)
    done = done_in("kept.jsonl")
    assert 1 <= len(done) < SHARDS
    within("extract", "many", "--wrapper", "bad.json", "-o", "kept.jsonl")
    within("extract", "many", *FOOD, "--join", "size", "-o", "kept.jsonl")
    assert done_in("kept.jsonl") == done
    # Killed with -9, the same command goes on: every record is there once.
    again = within("extract", "many", *FOOD, "-o", "kept.jsonl", "--failures", "kept-f.jsonl", "-j", "2")
    assert f"Going on with a run that was stopped: {len(done)} of {SHARDS} shards are done." in again.stderr
    assert (place / "kept.jsonl").read_bytes() == whole[0]
    assert (place / "kept-f.jsonl").read_bytes() == whole[1]
    assert not Path("kept.jsonl.parts").exists()
    assert f" {PAGES:,} " in again.stderr


# ---- stopped


def started(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "siteloom", *arguments]
    environment = Command(Path()).environment
    return subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def done_in(output: str) -> list[str]:
    return sorted(file.name for file in Path(f"{output}.parts").glob("*.jsonl"))


def wait_while_running(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    """Wait until the condition holds; fail if the process ends without that."""
    wait_until(lambda: condition() or process.poll() is not None)
    assert condition()


def interrupted(process: subprocess.Popen[str]) -> str:
    """Ctrl-C, which reaches all processes of a terminal; returns what is told."""
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, told
    assert told.splitlines()[-1] == "siteloom: Interrupted; what was done so far is kept."
    assert "Traceback" not in told
    assert "KeyboardInterrupt" not in told
    return told


def test_after_ctrl_c_the_output_has_what_is_done_and_the_same_command_goes_on(
    place: Path, whole: tuple[bytes, bytes]
) -> None:
    command = ("extract", "many", *FOOD, "-o", "stopped.jsonl", "--failures", "stopped-f.jsonl")
    process = started(*command, "-j", "2")
    wait_while_running(process, Path("stopped.jsonl.parts/run").exists)
    interrupted(process)  # while the processes start
    assert done_in("stopped.jsonl") == []
    process = started(*command, "-j", "2")
    wait_while_running(process, lambda: len(done_in("stopped.jsonl")) >= 2)
    told = interrupted(process)
    assert "stopped.jsonl has the records found so far; the same command goes on." in told
    done = done_in("stopped.jsonl")
    assert 2 <= len(done) < SHARDS
    found = [row["url"] for row in rows_of(Path("stopped.jsonl").read_text(encoding="utf-8"))]
    order = [row["url"] for row in rows_of(whole[0].decode())]
    assert len(found) >= 256 * (len(done) - 1)
    assert found == [url for url in order if url in set(found)]
    assert not [*place.glob(".*stopped*"), *place.glob("stopped.jsonl.parts/*.tmp")]
    again = within(*command)
    assert f": {len(done)} of {SHARDS} shards are done." in again.stderr
    assert Path("stopped.jsonl").read_bytes() == whole[0]
    assert Path("stopped-f.jsonl").read_bytes() == whole[1]
    assert not Path("stopped.jsonl.parts").exists()


def test_ctrl_c_while_the_output_is_written_loses_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press(*_: object) -> None:
        raise KeyboardInterrupt

    expected = [row["url"] for row in extracted("few.jsonl", *FOOD)]
    Path("late.jsonl").write_text("old\n")
    with monkeypatch.context() as patch:
        patch.setattr("siteloom.extraction.record_formats._ShapingWriter.write", press)
        result = within("extract", "few.jsonl", *FOOD, "-o", "late.jsonl")
    assert result.returncode == 130
    assert Path("late.jsonl").read_text() == "old\n"
    assert done_in("late.jsonl") == ["00000000.jsonl"]
    again = within("extract", "few.jsonl", *FOOD, "-o", "late.jsonl")
    assert "1 shards are done" in again.stderr
    assert [row["url"] for row in rows_of(Path("late.jsonl").read_text(encoding="utf-8"))] == expected
    assert not list(place.glob("late.jsonl?*"))


# ---- from a workspace

WS = ("--workspace", "ws")


@pytest.fixture(scope="module")
def workspace(place: Path) -> StoreSettings:
    """The pages of `many` and a wrapper for them."""
    settings = StoreSettings(str(place / "ws"))
    pages = [Page(copy_of(page, copy), page.page.html) for page in RESTAURANTS for copy in range(COPIES)]
    with closing(open_store(settings, create=True)) as store:
        import_pages(store, [Items([*pages, of_kind(guide(), "event")[0].page])])
        store.save_wrapper("guide/1", "larkmoor-guide.example", restaurants().to_json(), "learn")
    return settings


def shards_done(settings: StoreSettings) -> int:
    with closing(sqlite3.connect(Path(settings.workspace) / "siteloom.db", timeout=SECONDS)) as database:
        (count,) = database.execute("SELECT count(*) FROM extracted_shards").fetchone()
    return int(count)


def test_a_run_of_the_workspace_that_is_killed_goes_on(
    workspace: StoreSettings, whole: tuple[bytes, bytes]
) -> None:
    process = started("extract", *WS, "-j", "2")
    wait_while_running(process, lambda: shards_done(workspace) >= 1)
    process.kill()
    process.communicate(timeout=SECONDS)
    assert "killed" in within("status", *WS).stderr
    done = shards_done(workspace)
    result = within("extract", *WS, "-o", "store.jsonl", "--failures", "store-f.jsonl", "-j", "2")
    assert result.returncode == 0, result.stderr
    assert f"Going on with a run that was stopped: {done} of 3 shards are done." in result.stderr
    rows = rows_of(Path("store.jsonl").read_text(encoding="utf-8"))
    expected = rows_of(whole[0].decode())
    assert [(row["url"], row["values"], row["provenance"]) for row in rows] == [
        (row["url"], row["values"], row["provenance"]) for row in expected
    ]
    assert {(row["wrapper"], row["version"]) for row in rows} == {("guide/1", 1)}
    assert len(rows_of(Path("store-f.jsonl").read_text(encoding="utf-8"))) == 1
    assert "done" in (told := " ".join(within("status", *WS).stderr.split()))
    assert f"{PAGES:,} pages" in told
    with closing(open_store(workspace)) as store:
        assert [json.loads(line)["url"] for line in store.records()] == [row["url"] for row in rows]
        (run,) = [run for run in store.runs(10) if run.verb == "extract"]
        assert run.counts == {"pages": PAGES, "records": PAGES - 1, "failed": 1}


def test_mistakes_in_a_workspace(workspace: StoreSettings) -> None:
    sentence = one_sentence(within("extract", *WS, "--site", "larkmoor"))
    assert sentence == "There is no site larkmoor among the pages: there are larkmoor-guide.example."
    with write_lock(Path(workspace.workspace)):
        sentence = one_sentence(within("extract", *WS))
    assert sentence == (
        f"Another process (number {os.getpid()}) is writing to this workspace: try again when it ends."
    )
    assert one_sentence(within("extract", *WS, "--join", "size")).startswith(
        "No wrapper has the attribute size"
    )
    with closing(open_store(workspace)) as store:
        assert "failed" not in {run.status for run in store.runs(10)}
