"""The documents about what comes of wrappers and pages: records, text, hits."""

from __future__ import annotations

import csv
import json
import shutil
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pyarrow.parquet
from torture.postgres import PostgresServer

from tests.apps.demo.sites import guide, of_kind
from tests.docs import shop
from tests.docs.entries.bring_in import OPEN
from tests.docs.following import Place, followed
from tests.sources.crawling.web_site import served_site


def database(place: Place, said: str, name: str) -> None:
    """Have an empty database of PostgreSQL stand for one that the document names."""
    server: PostgresServer = place.request.getfixturevalue("postgres_server")
    made = server.create()
    place.request.addfinalizer(partial(server.drop, made))
    place.database = server.address(made)
    place.instead[f"{said}/{name}"] = place.database


@followed("docs/how-to/extract-records.md")
def extract_records(place: Place) -> None:
    place.take("workspace", "crawl.jsonl", "crawl.warc.gz", "wrapper.json")
    place.write("page.html", shop.page(shop.Thing(17)).html.replace(b"canonical", b"other"))
    for name in ("crawl.warc.gz", "wrapper.json"):
        place.write(f"elsewhere/bucket/{name}", (place.folder / name).read_bytes())
    place.instead["s3://"] = f"local://{place.folder}/elsewhere/"
    database(place, "postgresql://me@db.example", "shop")
    place.follow()
    for name in ("records.parquet", "elsewhere/bucket/records.parquet"):
        assert pyarrow.parquet.read_table(place.folder / name).num_rows == shop.COUNT
    for step in ("siteloom explain https://shop.example/p/17", "siteloom explain page.html"):
        assert "$49.90" in place[step].stderr
    assert place['sqlite3 records.db "SELECT url'].stderr == ""
    with psycopg.connect(place.database) as connection:
        paid = connection.execute("SELECT price, price_currency FROM products WHERE url LIKE '%/p/17'")
        assert [(str(price), currency) for price, currency in paid] == [("49.90", "$")]
    assert len(place.rows("products.jsonl")) == shop.COUNT


@followed("docs/how-to/use-postgresql.md")
def use_postgresql(place: Place) -> None:
    place.take("crawl.warc.gz", "wrapper.json")
    server: PostgresServer = place.request.getfixturevalue("postgres_server")
    place.environment |= server.environment
    place.request.addfinalizer(partial(server.drop, "pages"))
    database(place, "postgresql://me@db.example", "shop")
    place.instead["postgresql://me@db.example/pages"] = server.address("pages")
    place.follow(before="CREATE TABLE")
    with psycopg.connect(place.database) as connection:
        (count,) = connection.execute("SELECT count(*) FROM products").fetchone() or (0,)
        assert count == shop.COUNT
        connection.execute("DROP TABLE products")
    place.follow()
    asked = f"extract crawl.warc.gz --wrapper wrapper.json -o {place.database}/products".split()
    place.siteloom(*asked)
    with psycopg.connect(place.database) as connection:
        rows = connection.execute("SELECT name, price, our_number FROM products WHERE url LIKE '%/p/17'")
        assert [(name, str(price), own) for name, price, own in rows] == [("Oak lamp", "49.90", None)]


@followed(
    "docs/how-to/run-on-spark.md", not_run={"OUT/_SUCCESS": "names of files, which the entry looks for"}
)
def run_on_spark(place: Place) -> None:
    place.take("crawl.warc.gz", "restaurants.csv")
    place.write("crawl.txt", "crawl.warc.gz\n")
    place.write("elsewhere/bucket/about", "")
    # The same work is done by Spark and by processes of this machine, and tests/bulk compare the two. Spark
    # alone takes half a minute of both processors to start.
    place.instead["--engine spark --master spark://host:7077"] = "--engine local"
    place.instead["s3://"] = f"local://{place.folder}/elsewhere/"
    place.follow()
    records = place.folder / "elsewhere" / "bucket" / "records"
    assert pyarrow.parquet.read_table(records / "site=shop.example").num_rows == shop.COUNT
    assert (records / "_SUCCESS").is_file()


@followed("docs/how-to/clean-text.md")
def clean_text(place: Place) -> None:
    pages = [one.page for one in of_kind(guide(), "restaurant")[:12]]
    place.write("crawl.jsonl", shop.lines(pages))
    place.siteloom("ingest", "crawl.jsonl")
    place.follow()
    assert place["import siteloom"].stdout.endswith("12 texts\n")
    with (place.folder / "text.csv").open(encoding="utf-8", newline="") as file:
        assert [list(row) for row in csv.DictReader(file)] == [["url", "text"]] * len(pages)
    for name in ("pages.jsonl", "main.jsonl", "clean.jsonl"):
        assert len(place.rows(name)) == len(pages)


@followed(
    "docs/how-to/search.md",
    not_run={"  1. Lemongrass & Pestle  (record of larkmoor-guide.example/1)": "what is shown"},
)
def search(place: Place) -> None:
    watched: Path = place.request.getfixturevalue("watched_place")
    shutil.copytree(watched, place.folder, dirs_exist_ok=True)
    (place.folder / "original.jsonl").rename(place.folder / "crawl.jsonl")
    place.siteloom("cluster")
    place.follow()
    assert "http" in place["from siteloom.core.settings"].stdout


@followed(
    "docs/how-to/export-a-wrapper.md",
    not_run={
        "# the text inside the element with class `priceLarge`": "a part of a spider; the entry has a look",
        "async def parse_product(self, response, page: ShopPage):": "a part of a class that the reader has",
    },
)
def export_a_wrapper(place: Place) -> None:
    with served_site(OPEN) as site:
        site.also = shop.site(site.address)
        place.write("crawl.jsonl", shop.lines(shop.pages(site.address)))
        place.write_lines("examples.jsonl", shop.examples(1, 2, 17, 23, origin=site.address))
        place.write("urls.txt", "".join(f"{site.address}/p/{number}\n" for number in (3, 4, 5)))
        for command in ("ingest crawl.jsonl", "cluster", "learn --examples examples.jsonl -o wrapper.json"):
            place.siteloom(*command.split())
        place.instead["shop.example"] = urlsplit(site.address).hostname or ""
        quick = "runspider -s DOWNLOAD_DELAY=0 -s AUTOTHROTTLE_ENABLED=0"
        place.instead["runspider"] = f"{quick} -s CLOSESPIDER_ITEMCOUNT=3"
        place.follow()
    items = json.loads((place.folder / "items.json").read_text(encoding="utf-8"))
    assert {item["url"] for item in items} == {f"{site.address}/p/{number}" for number in (3, 4, 5)}
    assert "[normalize-space(@class) = 'price']/text()[{VISIBLE}]" in (place.folder / "shop.py").read_text()
    assert " passed" in place["python -m pytest"].stdout
