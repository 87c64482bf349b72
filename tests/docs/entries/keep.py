"""The documents about a workspace that lives on: changes, people, backups, what is forgotten."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from urllib.parse import urlsplit

from torture.postgres import PostgresServer

from tests.docs import shop
from tests.docs.blocks import ROOT
from tests.docs.entries.bring_in import OPEN
from tests.docs.following import Place, flat, followed
from tests.formats import kept
from tests.sources.crawling.web_site import served_site
from tests.sources.warc_records import gzip_members, http, record
from tests.test_deployment import parsed

NO_DOCKER = "there is no Docker in tests; tests/test_deployment.py checks its files"


@followed("docs/how-to/live-with-change.md")
def live_with_change(place: Place) -> None:
    with served_site(OPEN) as site:
        site.also = shop.site(site.address)
        old, new = (shop.pages(site.address, redesigned=redesigned) for redesigned in (False, True))
        for folder, pages in (("pages", old), ("pages-of-today", new)):
            for number, page in enumerate(pages):
                place.write(f"{folder}/{number}.html", page.html)
        tomorrow = (
            f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"  # later than all that is fetched
        )
        today = [record(one.url, http(one.html), date=tomorrow) for one in new]
        place.write("todays-crawl.warc.gz", gzip_members(today).content)
        place.write_lines("examples.jsonl", shop.examples(1, 2, 17, 23, origin=site.address))
        place.write("siteloom.toml", "[change]\naccept = 100\n")  # so that a person has to say yes
        for command in ("ingest pages", "cluster", "learn --examples examples.jsonl -o wrapper.json"):
            place.siteloom(*command.split())
        place.siteloom("extract", "-o", "records.jsonl")
        place.environment |= {"SITELOOM_CRAWL_PRIVATE": "true", "SITELOOM_CRAWL_DELAY": "0"}
        host = urlsplit(site.address).hostname or ""
        place.instead |= {
            "shop.example": host,
            "cd /srv/guide && ": "",
            "/srv/crawls/today": "todays-crawl.warc.gz",
        }
        place.follow(before="siteloom ingest todays")
        assert place.rows("changes.jsonl") == []
        site.also = shop.site(site.address, redesigned=True)
        while_well = (place.folder / "records.jsonl").read_bytes()
        place.follow(before="siteloom watch pages/")
        place.write("records.jsonl", while_well)
        place.follow()
    assert "value missing" in flat(place["siteloom monitor todays-crawl"].stderr)
    for step in ("siteloom relearn --dry-run", "siteloom relearn --accept"):
        assert "repair" in place[step].stderr
    assert place.rows("outcome.jsonl")[0]["outcome"] == "repaired"
    assert "repaired" in place["import siteloom"].stdout


@followed("docs/how-to/back-up.md")
def back_up(place: Place) -> None:
    kept.unpack_workspace(kept.kept("workspace")[-1], place.folder / ".siteloom")
    before = place.siteloom("status", "-o", "-").stdout
    assert "larkmoor-guide.example" in before
    place.follow(before="siteloom backup backups/monday --store")
    assert place.siteloom("status", "-o", "-").stdout == before

    for used in (".siteloom", "backups"):
        shutil.rmtree(place.folder / used)
    server: PostgresServer = place.request.getfixturevalue("postgres_server")
    made = server.create()
    for name in (made, "pages2"):
        place.request.addfinalizer(partial(server.drop, name))
    place.environment |= server.environment
    place.instead["postgresql://me@db.example/pages2"] = server.address("pages2")
    place.instead["postgresql://me@db.example/pages"] = server.address(made)
    place.take("crawl.jsonl")
    place.siteloom("ingest", "crawl.jsonl", "--store", server.address(made))
    place.follow(before="siteloom backup backups/$(date")
    restored = place.siteloom("status", "-o", "-", "--store", server.address("pages2"))
    assert json.loads(restored.stdout.split("\n")[0])["pages"] == shop.COUNT

    shutil.rmtree(place.folder / ".siteloom")
    place.siteloom("ingest", "crawl.jsonl")
    for day in range(1, 16):
        (place.folder / "backups" / f"2001-02-{day:02}").mkdir()
    place.follow()
    left = sorted(folder.name for folder in (place.folder / "backups").glob("????-??-??"))
    assert len(left) == 14
    assert left[-1] >= f"{datetime.now(UTC):%Y}"


@followed("docs/how-to/forget.md")
def forget(place: Place) -> None:
    place.take("workspace", "crawl.jsonl")
    people = [f"https://shop.example/people/{name}" for name in ("jane", "joe")]
    for command in ("siteloom forget shop.example", f"siteloom forget {' '.join(people)}"):
        # At a terminal one is asked.
        place.instead[command] = f"{command} --yes"
    place.follow(before=f"siteloom forget {people[0]}")
    assert place.siteloom("status", "-o", "-").stdout == ""
    pages = [replace(shop.page(thing), url=url) for thing, url in zip(shop.THINGS, people, strict=False)]
    place.write("people.jsonl", shop.lines(pages))
    place.siteloom("ingest", "crawl.jsonl", "people.jsonl")
    place.follow(before="siteloom config --trust")
    place.write("siteloom.toml", place.text_of("[retention]"))
    place.follow()
    assert json.loads(place.siteloom("status", "-o", "-").stdout)["pages"] == shop.COUNT


@followed("docs/how-to/work-in-the-browser.md")
def work_in_the_browser(place: Place) -> None:
    place.follow()


@followed(
    "docs/how-to/serve-a-team.md",
    not_run={
        "server {": "a part of the settings of nginx",
        "docker build -t siteloom .": NO_DOCKER,
        "docker run --rm -v siteloom:/workspace siteloom init": NO_DOCKER,
        "docker run --rm -it -v siteloom:/workspace siteloom user add ana": NO_DOCKER,
        "docker run -d --name siteloom -p 127.0.0.1:8787:8787 -v siteloom:/workspace "
        "--restart unless-stopped siteloom": NO_DOCKER,
        "export POSTGRES_PASSWORD=...": NO_DOCKER,
        "docker compose -f examples/docker-compose.yml up -d --wait database": NO_DOCKER,
        "docker compose -f examples/docker-compose.yml run --rm siteloom init": NO_DOCKER,
        "docker compose -f examples/docker-compose.yml run --rm siteloom user add ana": NO_DOCKER,
        "docker compose -f examples/docker-compose.yml up -d": NO_DOCKER,
    },
)
def serve_a_team(place: Place) -> None:
    place.siteloom("init")
    for step in ("siteloom user add ana", "siteloom user add ben --role editor"):
        place.typed[step] = "a long password\n"
    for name in ("cert.pem", "key.pem"):
        place.write(name, place.request.getfixturevalue("certificate").read_bytes())
    place.follow()
    assert "editor" in place["siteloom user list"].stderr
    for line in place.not_run:
        if named := re.search(r"-f (\S+)", line):
            assert (ROOT / named[1]).is_file()
        if call := re.search(r" siteloom ((?:init|user).*)$", line):
            assert parsed(call[1].split())
