"""The documents about pages that come in."""

from __future__ import annotations

import gzip
import os
import shutil

import pyarrow as pa
import zstandard
from pyarrow import parquet

from siteloom.core.model import Page
from siteloom.sources.open_sources import open_source
from tests.docs import shop
from tests.docs.following import Place, flat, followed
from tests.file_server import file_server
from tests.sources.crawling.web_site import served_site
from tests.sources.test_cdx_index import cdxj, places, plain_json
from tests.sources.test_wacz import wacz
from tests.sources.warc_records import gzip_members, page_record, plain

OPEN = b"User-agent: *\nAllow: /\n"


@followed("docs/how-to/read-a-crawl.md")
def read_a_crawl(place: Place) -> None:
    place.take("saved-pages", "crawl.warc.gz", "crawl.jsonl", "wrapper.json")
    pages = shop.pages()
    records = [page_record(one.url, one.html) for one in pages]
    archive = gzip_members(records).content
    place.write("more.warc.zst", zstandard.compress(plain(records).content))
    place.write("crawl.wacz", wacz(("archive/a.warc.gz", archive)))
    place.write("crawl.jsonl.gz", gzip.compress((place.folder / "crawl.jsonl").read_bytes()))
    table = pa.table({"url": [one.url for one in pages], "html": [one.html.decode() for one in pages]})
    parquet.write_table(table, place.folder / "pages.parquet")
    shutil.copy(place.folder / "crawl.jsonl", place.folder / "more.jsonl")

    # An index of an archive in which some pages are of products.
    urls = [one.url.replace("/p/", "/product/" if number % 2 else "/p/") for number, one in enumerate(pages)]
    records = [page_record(url, one.html) for url, one in zip(urls, pages, strict=True)]
    place.write("crawl/a.warc.gz", gzip_members(records).content)
    at = places(records, gzip_members)
    place.write("crawl/indexes/index.cdxj", "".join(map(cdxj, urls, at)))

    # Files elsewhere are those of fsspec's own filesystem for this disk, and of a web server.
    for name in ("bucket/crawl.warc.gz", "namenode/crawls/2024/a.warc.gz", "host/crawl.warc.gz"):
        place.write(f"elsewhere/{name}", archive)
    place.write("elsewhere/bucket/pages/a.parquet", (place.folder / "pages.parquet").read_bytes())
    place.write("elsewhere/commoncrawl/crawl-data/a.warc.gz", archive)
    listed = gzip.compress(b"crawl-data/a.warc.gz\n")
    place.write("elsewhere/commoncrawl/crawl-data/CC-MAIN-2024-10/warc.paths.gz", listed)
    at = places([page_record(one.url, one.html) for one in pages], gzip_members)
    answers = [
        plain_json(one.url, where, "crawl-data/a.warc.gz") for one, where in zip(pages, at, strict=False)
    ]
    place.write("elsewhere/host/CC-MAIN-2024-10-index", "".join(answers))
    elsewhere = f"local://{place.folder}/elsewhere"
    with file_server(place.folder / "elsewhere" / "host") as host:
        place.instead |= {
            "s3://": f"{elsewhere}/",
            "hdfs://": f"{elsewhere}/",
            "gs://": f"{elsewhere}/",
            "https://host.example": host,
            "https://index.commoncrawl.org": host,
        }
        place.follow()
    assert len(place.rows("records.jsonl")) == len(pages)
    assert "new 12 " in flat(place["siteloom ingest crawl/indexes/some.cdxj"].stderr)
    for ingest in ("crawl.wacz", "pages.parquet", "s3://", "https://host", "@s3://", "@sources.txt"):
        assert "new 0 " in flat(place[f"siteloom ingest {ingest}"].stderr), ingest


@followed("docs/how-to/crawl-a-site.md")
def crawl_a_site(place: Place) -> None:
    with served_site(OPEN) as site:
        site.also = shop.site(site.address)
        place.instead |= {"https://shop.example": site.address, "'/products/*'": "'/p/*'"}
        place.environment |= {
            "SITELOOM_CRAWL_PRIVATE": "true",
            "SITELOOM_CRAWL_DELAY": "0",
            "SITELOOM_CRAWL_MOST_PAGES": "4",
            # In CI, root runs the tests, and gets no browser without this.
            "SITELOOM_CRAWL_SANDBOX": str(os.geteuid() != 0).lower(),
        }
        place.follow()
        assert "/shop.css" in site.paths
    archive = open_source(place.folder / "shop.warc.gz")
    assert len([item for item in archive.read() if isinstance(item, Page)]) == 4
    listed = place["siteloom crawl https://shop.example/ --dry-run"].stderr
    assert "nothing is kept" in listed


@followed("docs/how-to/use-with-scrapy.md")
def use_with_scrapy(place: Place) -> None:
    place.write("scrapy.cfg", "[settings]\ndefault = shop.settings\n")
    spider = place.text_of("from scrapy.spiders")
    with served_site(OPEN) as site:
        paths = shop.site(site.address) | shop.people(site.address)
        listed = "".join(f"<url><loc>{site.address}{path}</loc></url>" for path in paths if "css" not in path)
        site.also = {**paths, "/sitemap.xml": f'<?xml version="1.0"?><urlset>{listed}</urlset>'.encode()}
        site.robots = OPEN + f"Sitemap: {site.address}/sitemap.xml\n".encode()
        place.write("shop/__init__.py", "")
        place.write("shop/spiders.py", spider.replace("https://www.shop.example", site.address))
        place.write("shop/pipelines.py", place.text_of("from siteloom.integrations"))
        said = ("ADDONS = ", "SITELOOM_WRAPPERS", "SITELOOM_KEEP_UNMATCHED", "SITELOOM_WARC")
        place.write(
            "shop/settings.py",
            "SPIDER_MODULES = ['shop.spiders']\nITEM_PIPELINES = {'shop.pipelines.Prices': 300}\n"
            "TELNETCONSOLE_ENABLED = False\n" + "\n".join(map(place.text_of, said)),
        )
        place.write_lines("examples.jsonl", shop.examples(1, 2, 17, 23, origin=site.address))
        place.write("crawl.jsonl", shop.lines(shop.pages(site.address)))
        place.write_lines("lists.jsonl", [{"url": f"{site.address}/lamps", "records": shop.LAMPS[:3]}])
        place.write("lamps.jsonl", shop.lines([shop.lamps(site.address), shop.lamps(site.address, 2)]))
        (place.folder / "wrappers").mkdir()
        for pages, examples, wrapper in (("crawl", "examples", "products"), ("lamps", "lists", "lists")):
            taught = ("--examples", f"{examples}.jsonl", "-o", f"wrappers/{wrapper}.json")
            place.siteloom("learn", f"{pages}.jsonl", *taught)
        place.follow()
    rows = {row["url"]: row for row in place.rows("products.jsonl")}
    assert rows[f"{site.address}/p/17"]["price"] == "49.90"
    assert len(place.rows("products.jsonl")) == shop.COUNT + len(shop.LAMPS)
    assert (place.folder / "crawl.warc.zst").stat().st_size > 0
    assert "/people/" in place["siteloom sample"].stderr  # of which no wrapper knows
