"""The documents that everyone begins with."""

from __future__ import annotations

import shutil
from pathlib import Path

from siteloom.apps.demo.sites import guide_site
from tests.docs.following import Place, followed

TUTORIAL = "docs/tutorial.md"
DEMO = "siteloom demo --keep try-it"


@followed("README.md")
def readme(place: Place) -> None:
    place.take("saved-pages", "examples.jsonl", "restaurants.csv")
    for number, page in enumerate(guide_site()[:3]):
        place.write(f"saved-pages/guide-{number}.html", page.page.html)
    place.write("crawl.warc.gz", b"")
    place.follow()
    example = place["import siteloom"]
    assert guide_site()[0].page.url in example.stdout
    assert "1 pages could not be read" in example.stdout
    assert "Oak chair 7" not in place["siteloom template"].stderr


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
