"""What hosts say before their pages are fetched: robots.txt, sitemaps, certificates."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from siteloom.core.model import Failure, Page, Skipped
from siteloom.core.settings import CrawlSettings
from siteloom.sources.crawling.crawl_journal import CrawlProgress, DiscoveredUrl, FetchedUrl
from siteloom.sources.crawling.crawl_source import Crawl
from siteloom.sources.crawling.url_filters import UrlPatterns
from tests.patience import SECONDS
from tests.sources.crawling.web_site import WebSite, served_site, shop

HERE = CrawlSettings(delay=0, timeout=SECONDS, private=True)
FORBIDDEN_BY_A_PAGE = b"<h1>not found</h1>\nUser-agent: *\nDisallow: /\n"
SLOWLY = b"User-agent: *\nCrawl-delay: 0.7\n"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("certificate") / "own.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(secret + signed.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture
def hosts(certificate: Path) -> Iterator[dict[str, WebSite]]:
    """Hosts of different sites, for there are many addresses of loopback."""
    with ExitStack() as stack:
        yield {
            "broken": stack.enter_context(served_site(b"", 500, host="127.0.0.1")),
            "without": stack.enter_context(served_site(FORBIDDEN_BY_A_PAGE, 404, host="127.0.0.2")),
            "slowly": stack.enter_context(served_site(SLOWLY, host="127.0.0.3")),
            "unproven": stack.enter_context(served_site(host="localhost", certificate=certificate)),
        }


def test_each_host_is_asked_first_and_believed(hosts: dict[str, WebSite]) -> None:
    slow = [f"{hosts['slowly'].address}/calendar/2026/{month}" for month in (1, 2, 3)]
    urls = (*(site.address + "/latin" for name, site in hosts.items() if name != "slowly"), *slow)
    found = {item.url: item for item in Crawl(urls, len(urls), settings=HERE).read()}

    broken = found[hosts["broken"].address + "/latin"]
    assert broken == Failure(
        broken.url, "robots.txt cannot be read", "status 500; so nothing of its host is fetched"
    )
    assert set(hosts["broken"].paths) == {"/robots.txt"}
    assert isinstance(found[hosts["without"].address + "/latin"], Page)
    unproven = found[hosts["unproven"].address + "/latin"]
    assert isinstance(unproven, Failure)
    assert unproven.reason == "bad certificate"
    assert hosts["unproven"].paths == []
    times = [moment for path, moment, _ in hosts["slowly"].asked if path != "/robots.txt"]
    assert len(times) == 3
    assert min(after - before for before, after in pairwise(times)) > 0.65


def sitemap(*urls: str) -> bytes:
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return f'<?xml version="1.0"?><urlset>{entries}</urlset>'.encode()


@pytest.fixture
def site() -> Iterator[WebSite]:
    with served_site() as site:
        index = f"<sitemapindex><sitemap><loc>{site.address}/b.xml.gz</loc></sitemap></sitemapindex>"
        there = f"{site.address}/restaurants/listed.html"
        site.robots = f"Sitemap: {site.address}/a.xml\nSitemap: http://other.example/x.xml\n".encode()
        site.also = {
            **shop(lists=5, items_of_a_list=3),
            "/a.xml": f'<?xml version="1.0"?>{index}'.encode(),
            "/b.xml.gz": gzip.compress(sitemap(there, "http://other.example/", "http://[", "tel:1")),
            "/restaurants/listed.html": b'<h1>Found in no link</h1><a href="/moved">list</a>',
        }
        yield site


def test_sitemaps_and_lists_of_many_pages_lead_to_all_items(site: WebSite) -> None:
    patterns = UrlPatterns(("/shop/item/*", "/restaurants/*"), ("/shop/item/3.html", "/shop", "/cuisine/*"))
    crawl = Crawl(
        (site.address + "/shop",), 15, follows=True, settings=HERE, patterns=patterns, with_sitemaps=True
    )
    items = list(crawl.read())
    pages = {item.url.removeprefix(site.address) for item in items if isinstance(item, Page)}
    assert pages == {"/restaurants/listed.html", *(f"/shop/item/{n}.html" for n in range(15) if n != 3)}
    assert not [item for item in items if isinstance(item, Failure)]  # though there is no /sitemap.xml
    moved = site.address + "/moved"
    assert Skipped(moved, "redirected to what is excluded") in items
    counted = Counter(site.paths)
    assert counted["/shop"] == 1  # where it starts, excluded or not
    assert counted["/shop/item/3.html"] == 0
    assert counted["/a.xml"] == counted["/b.xml.gz"] == counted["/sitemap.xml"] == counted["/robots.txt"] == 1
    assert max(counted.values()) == 1
    # The lists were walked, and so was a calendar without end, but not for long.
    assert Skipped(site.address + "/shop/list?page=5", "only walked for its links") in items
    assert sum(path.startswith("/calendar") for path in counted) < 30


def test_neither_sitemaps_nor_stylesheets_are_fetched_unless_they_are_wanted(site: WebSite) -> None:
    items = list(Crawl((site.address + "/shop",), 3, follows=True, settings=HERE).read())
    assert len(items) == 3
    assert not {"/a.xml", "/sitemap.xml", "/shop.css"} & set(site.paths)


def test_sitemaps_are_read_again_where_a_crawl_goes_on_and_only_of_its_sites(site: WebSite) -> None:
    start, via = site.address + "/shop", site.address + "/via"
    progress = CrawlProgress((DiscoveredUrl(start, 0),), (FetchedUrl(start, start, is_collected=True),))
    # So many that those of the other site leave room, whichever of them answers first.
    crawl = Crawl((start, via), 12, follows=True, settings=HERE, with_sitemaps=True, progress=progress)
    pages = [item.url for item in crawl.read() if isinstance(item, Page)]
    assert site.address + "/restaurants/listed.html" in pages
    assert "/shop" not in site.paths
    assert f"http://127.0.0.2:{site.port}/" in pages  # by a host of another site
    assert site.paths.count("/robots.txt") == 3
    assert site.paths.count("/sitemap.xml") == 2  # of the first and of the last
