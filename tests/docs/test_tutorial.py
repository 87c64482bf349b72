"""The demo shows what it should, and the tutorial, which starts with it, can be followed."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from siteloom.apps.demo.sites import directory_site, guide_site
from tests.apps.cli.command import Command
from tests.apps.cli.test_verbs import status
from tests.docs.entries import start
from tests.docs.following import follow_document


class Demo(NamedTuple):
    siteloom: Command
    result: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo, once for all tests: it takes most of a minute."""
    siteloom = Command(tmp_path_factory.mktemp("demo"))
    return Demo(siteloom, siteloom.fresh(*shlex.split(start.DEMO)[1:]))


def flat(shown: str) -> str:
    """The text of the demo without line breaks and indentation."""
    return " ".join(shown.split())


def the_number(pattern: str, shown: str) -> int:
    (number,) = re.findall(pattern, shown)
    return int(number.replace(",", ""))


def scores(shown: str) -> list[tuple[int, int]]:
    """All "N of M" in a part of the demo."""
    pairs = re.findall(r"([\d,]+) of ([\d,]+)", shown)
    return [(int(right.replace(",", "")), int(total.replace(",", ""))) for right, total in pairs]


def step(number: int, shown: str) -> str:
    """One step of the demo, with its table, flat."""
    (text,) = re.findall(
        rf"^{number}\. (.*?)(?=^{number + 1}\. |^The [\d,]+ records are)", shown, re.MULTILINE | re.DOTALL
    )
    return flat(text)


def test_the_demo_fits_on_two_screens(demo: Demo) -> None:
    lines = demo.result.stderr.splitlines()
    assert demo.result.returncode == 0, demo.result.stderr
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 50
    steps = [int(number) for number in re.findall(r"^(\d+)\. ", demo.result.stderr, re.MULTILINE)]
    assert steps == list(range(1, 12))
    assert not demo.result.stdout


def test_the_demo_imports_and_clusters_its_sites(demo: Demo) -> None:
    pages = len(guide_site()) + len(directory_site())
    imported = step(1, demo.result.stderr)
    assert f"{pages} pages of " in imported
    assert f"{pages} unchanged" in imported
    clustered = step(2, demo.result.stderr)
    assert 0.97 * pages <= the_number(r"(\d+) of them with their own kind", clustered) <= pages
    sites = {row["site"]: row["pages"] for row in status(demo.siteloom, "--workspace", "try-it/workspace")}
    assert sites == {"larkmoor-guide.example": len(guide_site()), "tableatlas.example": len(directory_site())}


def test_the_demo_learns_and_extracts(demo: Demo) -> None:
    learned = [float(share) for share in re.findall(r"(\d+\.\d) %", step(3, demo.result.stderr))]
    assert len(learned) == 4
    assert min(learned) >= 99
    lists_without_wrapper = [page for page in directory_site() if page.kind == "list"]
    extracted = step(4, demo.result.stderr)
    assert the_number(r"The other (\d+) are lists of the directory", extracted) == len(lists_without_wrapper)
    assert "right after 'about'; confidence: more than 99 %" in step(5, demo.result.stderr)
    again = demo.siteloom("extract", "--workspace", "try-it/workspace", "-o", "-")
    urls = {json.loads(record)["url"] for record in again.stdout.strip("\n").split("\n")}
    pages = {page.page.url for page in [*guide_site(), *directory_site()]}
    assert urls == pages - {page.page.url for page in lists_without_wrapper}


def test_the_demo_repairs_what_the_changes_break(demo: Demo) -> None:
    assert "phone is missing on 100 % of them" in step(6, demo.result.stderr)
    repaired = step(7, demo.result.stderr)
    ((right, total),) = scores(repaired)
    assert right >= 0.99 * total > 0
    assert "now the text inside the element that comes right after 'Call us'" in repaired
    redesigned = scores(step(8, demo.result.stderr))
    assert len(redesigned) == 3
    assert all(right >= 0.9 * total > 0 for right, total in redesigned)
    history = demo.siteloom("history", "--workspace", "try-it/workspace", "-o", "-").stdout.splitlines()
    assert [json.loads(line)["origin"] for line in history].count("learn") == 4
    assert {"repaired"} <= {json.loads(line)["outcome"] for line in history}


def test_the_demo_needs_no_examples_where_records_are_known(demo: Demo) -> None:
    places = [page for page in directory_site() if page.kind == "restaurant"]
    shared = {page.entity for page in places} & {page.entity for page in guide_site()}
    bootstrapped = step(9, demo.result.stderr)
    matched = the_number(r"(\d+) of the guide's 240 restaurants", bootstrapped)
    assert 0.95 * len(shared) <= matched <= 1.05 * len(shared)
    (right, total), *_ = scores(bootstrapped)
    assert right >= 0.99 * total > 4 * len(places)
    ((right, total),) = scores(step(10, demo.result.stderr))
    assert right == total == len({name for page in places for name in page.truth})
    assert "is the page 'LA TAVOLA PACKHORSE" in step(11, demo.result.stderr)


def test_the_demo_leaves_its_pages_workspace_and_records(demo: Demo) -> None:
    folder = demo.siteloom.folder / "try-it"
    assert len(list(folder.glob("*.jsonl"))) == 3
    with (folder / "siteloom-demo.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert f"The {len(rows):,} records are in try-it/siteloom-demo.csv." in demo.result.stderr
    names = {row["name"] for row in rows if row["wrapper"].startswith("tableatlas")}
    assert names == {page.truth["name"][0] for page in directory_site() if page.kind == "restaurant"}


def test_a_verbose_demo_shows_the_evidence(tmp_path: Path) -> None:
    siteloom = Command(tmp_path)
    result = siteloom.fresh("demo", "--verbose")
    assert result.returncode == 0, result.stderr
    shown = result.stderr
    rows = re.findall(
        r"^   (\w+) +(accepted|suggested|refused) +(\d+) % +(\d+) % +(\S.*?)$", shown, re.MULTILINE
    )
    verdicts = {name: verdict for name, verdict, *_ in rows}
    places = [page for page in directory_site() if page.kind == "restaurant"]
    never_shown = {name for page in guide_site() for name in page.truth} - {
        name for page in places for name in page.truth
    }
    assert {verdicts[name] for name in verdicts.keys() & never_shown} == {"refused"}
    right = {name: right for name, _, _, _, right in rows}
    assert right["name"] == right["address"] == f"{len(places)} of {len(places)}"
    assert all(
        int(by_chance) < int(agreement)
        for _, verdict, agreement, by_chance, _ in rows
        if verdict == "accepted"
    )
    assert re.search(r"restaurants for which the values differ\n +price +\d+", shown)
    assert re.search(r"larkmoor-guide\.example/1 +structure changed +100 %", shown)
    assert [file.name for file in tmp_path.iterdir()] == ["siteloom-demo.csv"]


def test_the_tutorial_can_be_followed_to_the_letter(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    follow_document(start.TUTORIAL, tmp_path, request)
