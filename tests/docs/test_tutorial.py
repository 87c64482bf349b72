"""The demo shows what it should, and the tutorial, which starts with it, can be followed."""

from __future__ import annotations

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


def check_what_the_demo_shows_of_known_records(shown: str) -> None:
    """The directory is wrapped from the guide's records alone, and what it does not show is refused."""
    rows = re.findall(r"│ (\w+) +│ (accepted|suggested|refused) +│ (\d+)% +│ (\d+)% +│ (\S.*?) +│", shown)
    verdicts = {name: verdict for name, verdict, *_ in rows}
    places = [page for page in directory_site() if page.kind == "restaurant"]
    never_shown = {name for page in guide_site() for name in page.truth} - {
        name for page in places for name in page.truth
    }
    assert {verdicts[name] for name in verdicts.keys() & never_shown} == {"refused"}
    right = {name: right for name, _, _, _, right in rows}
    assert right["name"] == right["address"] == f"{len(places)} of {len(places)}"
    assert all(
        int(by_chance) < int(agreement) for _, one, agreement, by_chance, _ in rows if one == "accepted"
    )
    known = sum(page.kind == "restaurant" for page in guide_site())
    (matched,) = re.findall(rf"(\d+) of {known} known restaurants were found", shown)
    shared = {page.entity for page in places} & {page.entity for page in guide_site()}
    assert 0.95 * len(shared) <= int(matched) <= 1.05 * len(shared)
    (on_both,) = re.findall(r"restaurants, of which (\d+) are on both", shown)
    assert 0.95 * len(shared) <= int(on_both) <= len(shared)
    assert "There the sites differ in" in shown


def test_the_demo_runs_anywhere_and_shows_what_it_found(demo: Demo) -> None:
    siteloom, result = demo
    assert result.returncode == 0, result.stderr
    pages = len(guide_site()) + len(directory_site())
    assert f"{pages:,} new" in result.stderr
    assert f"{pages:,} unchanged" in result.stderr
    mild, before = guide_site("mild-change"), {page.page.url: page.page.html for page in guide_site()}
    moved = sum(page.page.html != before[page.page.url] for page in mild)
    assert f"0 new, {moved:,} changed" in result.stderr
    assert f"0 new, {len(guide_site()):,} changed" in result.stderr
    sites = {row["site"]: row["pages"] for row in status(siteloom, "--workspace", "try-it/workspace")}
    assert sites == {"larkmoor-guide.example": len(guide_site()), "tableatlas.example": len(directory_site())}
    shares = [float(share) for share in re.findall(r"(\d+\.\d) %", result.stderr)]
    learned, mended, redesigned = shares[:4], shares[4:7], shares[7:]
    assert (len(learned), len(redesigned)) == (4, 3)
    assert min(learned + mended) >= 99
    assert min(redesigned) >= 90  # when a page was updated last is on none of them any more
    assert "phone: the text" in result.stderr
    assert "phone: not found any more on up to 100 % of the pages that had values." in result.stderr
    assert "100 % of the pages are not made like those that the wrapper is for." in result.stderr
    assert "right after 'Call us'" in result.stderr
    history = siteloom("history", "--workspace", "try-it/workspace", "-o", "-").stdout.splitlines()
    assert [json.loads(line)["origin"] for line in history].count("learn") == 4
    assert {"repaired"} <= {json.loads(line)["outcome"] for line in history}
    lists_without_wrapper = [page for page in directory_site() if page.kind == "list"]
    (unmatched,) = re.findall(r"failed: no wrapper for the URL │ +(\d+) ", result.stderr)
    assert int(unmatched) == len(lists_without_wrapper)
    assert result.stderr.count("failed: ") == 1
    assert len(list((siteloom.folder / "try-it").glob("*.jsonl"))) == 3
    assert "tableatlas.example/1, version 1: Chosen" in result.stderr
    assert re.search(r"confidence 0\.99; phone#1: the text .*\n +at /html", result.stderr)
    check_what_the_demo_shows_of_known_records(result.stderr)
    again = siteloom("extract", "--workspace", "try-it/workspace", "-o", "-")
    records = again.stdout.strip("\n").split("\n")
    with_wrapper = {page.page.url for page in [*guide_site(), *directory_site()]}
    with_wrapper.difference_update(page.page.url for page in lists_without_wrapper)
    assert {json.loads(record)["url"] for record in records} == with_wrapper


def test_the_tutorial_can_be_followed_to_the_letter(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    follow_document(start.TUTORIAL, tmp_path, request)
