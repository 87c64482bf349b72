"""The documents that everyone begins with."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.docs import shop
from tests.docs.following import Place, followed

TUTORIAL = "docs/tutorial.md"
DEMO = "siteloom demo --keep try-it"


@followed("README.md")
def readme(place: Place) -> None:
    place.take("crawl.warc.gz")
    place.follow()
    header, *rows = (place.folder / "table.csv").read_text(encoding="utf-8").splitlines()
    assert header.startswith("url,title,price")
    assert len(rows) >= shop.COUNT - 1
    printed = []
    for thing in shop.THINGS:
        values = {name: tuple(thing.values[name]) for name in ("name", "price") if thing.values[name]}
        printed.append(f"{shop.page(thing).url} {values}")
    assert place["import siteloom"].stdout.splitlines() == printed


@followed("docs/how-to/install.md")
def install(place: Place) -> None:
    place.follow()


@followed("CONTRIBUTING.md")
def contributing(place: Place) -> None:
    place.follow()


@followed(
    TUTORIAL,
    not_run={
        "python3 -m venv venv": "the tests run in an environment already",
        ". venv/bin/activate": "likewise",
        DEMO: "the demo is run once for all tests, and what it keeps is copied",
    },
)
def tutorial(place: Place) -> None:
    demo: Path = place.request.getfixturevalue("demo").siteloom.folder
    shutil.copytree(demo / "try-it", place.folder / "try-it")
    place.fails["siteloom ingest try-it/crawl-3.jsonl"] = "no file or folder try-it/crawl-3.jsonl"
    place.follow()
    assert "not valid JSON" in (place.folder / "failures.csv").read_text(encoding="utf-8")
    told = place["from pathlib import Path"].stdout
    assert "larkmoor-guide" in told
    assert told.count("'phone':") > 100
