"""The cases of importing, fetching and forgetting pages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from siteloom.operations.crawl import CrawlRequest
from siteloom.operations.forget import ForgetRequest
from siteloom.operations.ingest import IngestRequest
from siteloom.sources.open_sources import open_source
from siteloom.sources.page_source import SourceItem
from siteloom.store.store import Store
from tests.lived_in import DIRECTORY
from tests.maintenance.guide import restaurants
from tests.operations.parity import ParityCase
from tests.sources.crawling.web_site import QuietHandler, QuietServer

FILE = "pages.jsonl"
UPLOAD = "0" * 32
SHOP = {
    "/shop": "".join(f'<p><a href="/shop/item/{item}.html">{item}</a>' for item in range(4)),
    **{f"/shop/item/{item}.html": f"<h1>Item {item}</h1><p>It costs {item}." for item in range(4)},
}


@cache
def lines() -> bytes:
    """Watched pages that have changed, and the first page of another site."""
    pages = [(place.page.url, place.page.html.decode()) for place in restaurants()[:24]]
    changed = [(url, html.replace("</body>", "<p>Closed today</p></body>")) for url, html in pages]
    rows = [*changed, ("https://new.example/1", "<h1>New</h1>")]
    return b"".join(
        json.dumps({"url": url, "html": html, "fetched_at": "2027-01-01T00:00:00Z"}).encode() + b"\n"
        for url, html in rows
    )


@dataclass(frozen=True)
class Lines:
    """The pages as those who read the file get them."""

    def read(self) -> Iterator[SourceItem]:
        with TemporaryDirectory() as folder:
            file = Path(folder, FILE)
            file.write_bytes(lines())
            yield from open_source(file).read()

    def shards(self) -> Sequence[Lines]:
        return (self,)


def lay_out(store: Store) -> None:
    """Put the file where the command line finds it, and the upload where a job does."""
    (store.folder.parent / FILE).write_bytes(lines())
    files = store.folder / "uploads" / UPLOAD / "files"
    files.mkdir(parents=True)
    (files / FILE).write_bytes(lines())


class _Answers(QuietHandler):
    def do_GET(self) -> None:  # noqa: N802 - http.server calls it so
        html = SHOP.get(self.path)
        self.send_response(200 if html else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write((html or "").encode())


_SERVER = QuietServer(("127.0.0.1", 0), _Answers)
START = f"http://127.0.0.1:{_SERVER.server_port}/shop"


@cache
def serve() -> None:
    """Serve the shop until the process ends."""
    Thread(target=_SERVER.serve_forever, daemon=True).start()


PRIVATE = {"SITELOOM_CRAWL_PRIVATE": "true", "SITELOOM_CRAWL_DELAY": "0.01"}
IMPORT = IngestRequest(sources=(Lines(),), names=(FILE,))

CASES = [
    ParityCase("ingest", IMPORT, ("ingest", FILE), {"upload": UPLOAD, "name": FILE}, lay_out),
    ParityCase(
        "ingest",
        IngestRequest(sources=(Lines(),), names=(FILE,), site="mine", cluster=True),
        None,
        {"upload": UPLOAD, "name": FILE, "site": "mine", "cluster": True},
        lay_out,
    ),
    ParityCase(
        "fetch",
        CrawlRequest(urls=(START,), follow=True, most_pages=9),
        ("crawl", START, "--pages", "9", "--no-sitemap"),
        {"urls": [START], "follow": True, "most_pages": 9},
        lambda _: serve(),
        environment=PRIVATE,
    ),
    ParityCase(
        "forget", ForgetRequest(names=(DIRECTORY,)), ("forget", DIRECTORY, "--yes"), {"names": [DIRECTORY]}
    ),
    ParityCase(
        "forget",
        ForgetRequest(names=(restaurants()[0].page.url,)),
        ("forget", restaurants()[0].page.url, "--yes"),
        {"names": [restaurants()[0].page.url]},
    ),
]
