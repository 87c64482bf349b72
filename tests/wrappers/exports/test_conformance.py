"""Each export gives the records that the wrapper itself extracts, run as its users run it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from lxml import etree

from siteloom import Page, Wrapper, learn
from siteloom.apps.demo.sites.built_in_page import BuiltinPage, Kind
from siteloom.core.model import Example
from siteloom.html.encoding import decode
from siteloom.wrappers.exports import standalone_extractor
from siteloom.wrappers.exports.scrapy_spider import to_spider
from siteloom.wrappers.exports.standalone_matcher import signature
from siteloom.wrappers.exports.web_poet_page import write_page_object
from siteloom.wrappers.exports.xpath_json import as_texts, to_xpath_json
from siteloom.wrappers.wrapper_xslt import tree_xml
from tests.apps.demo.sites import directory, guide, of_kind
from tests.html.trees import tree
from tests.sources.crawling.web_site import A_LIST, served_site

Records = list[dict[str, list[str]]]

EXAMPLES = 4
LEARNED_FROM = 20
# Another hand may write what no generator does: an early end, odd blanks, things that are not shown.
DISTURBANCES: tuple[Callable[[str], str], ...] = (
    lambda html: html.replace("<h1", "</body></html><h1", 1),
    lambda html: html.replace(": ", ":\u00a0\u2003", 3).replace(" ", "&#12;", 9),
    lambda html: html.replace("</h1>", "<script>'</body>'</script><!-- x --></h1>", 1),
    lambda html: html[: len(html) // 2],
)


def learned(pages: list[BuiltinPage]) -> Wrapper:
    examples = [Example(one.page, one.truth, one.records[:3]) for one in pages[:EXAMPLES]]
    return learn(examples, [one.page for one in pages[:LEARNED_FROM]])


def known(name: str, kind: Kind) -> list[BuiltinPage]:
    sites = {"original": guide(), "redesign": guide("redesign"), "directory": directory()}
    return of_kind(sites[name], kind)


@cache
def wrapper_of(name: str, kind: Kind) -> Wrapper:
    if name == "relearned":  # as after a redesign, of which not all pages are served yet
        newest, before = wrapper_of("redesign", kind), wrapper_of("original", kind)
        accepted = tuple(sorted({*newest.footprint.accepted, *before.footprint.accepted}))
        return replace(newest, earlier=(before,), footprint=replace(newest.footprint, accepted=accepted))
    return learned(known(name, kind))


def some_pages(name: str, kind: Kind) -> list[Page]:
    layouts = ["redesign", "original"] if name == "relearned" else [name]
    pages = [one.page for layout in layouts for one in known(layout, kind)[2:30:3]]
    disturbed = [
        Page.from_text(page.url, disturb(decode(page.html)))
        for page, disturb in zip(pages, DISTURBANCES, strict=False)
    ]
    return [*pages, *disturbed]


def native(wrapper: Wrapper, page: Page) -> Records:
    """What siteloom extracts; types, which exports know nothing of, are left out."""
    return [
        {name: list(texts) for name, texts in record.values.items()}
        for record in as_texts(wrapper).extract_all(page)
    ]


def by_stylesheet(result: etree._Element) -> Records:
    records: Records = []
    for record in result.iter("record"):
        found: dict[str, list[str]] = {}
        for value in record.iter("value"):
            found.setdefault(str(value.get("attribute")), []).append(value.text or "")
        records.append(found)
    return records


CASES: list[tuple[str, Kind]] = [
    ("original", "restaurant"),
    ("original", "event"),
    ("original", "list"),
    ("redesign", "restaurant"),
    ("directory", "restaurant"),
    ("directory", "list"),
]
LAYERED: list[tuple[str, Kind]] = [("relearned", "restaurant"), ("relearned", "event")]


@pytest.mark.parametrize(("name", "kind"), [*CASES, *LAYERED])
def test_xpath_json_gives_the_same_records(name: str, kind: Kind) -> None:
    wrapper = wrapper_of(name, kind)
    document = json.loads(to_xpath_json(wrapper))
    pages = some_pages(name, kind)
    found = [
        standalone_extractor.records(document, decode(page.html, page.charset), signature(page.html))
        for page in pages
    ]
    assert found == [native(wrapper, page) for page in pages]
    assert sum(len(record) for records in found for record in records) > 4 * len(pages)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_xslt_gives_the_same_records(name: str, kind: Kind) -> None:
    wrapper = wrapper_of(name, kind)
    stylesheet = etree.XSLT(etree.XML(wrapper.to_xslt()), access_control=etree.XSLTAccessControl.DENY_ALL)
    for page in some_pages(name, kind):
        found = stylesheet(tree(page.html, page.charset))
        assert by_stylesheet(found.getroot()) == native(wrapper, page)


@pytest.mark.skipif(shutil.which("xsltproc") is None, reason="xsltproc is not installed")
@pytest.mark.parametrize("kind", ["restaurant", "list"])
def test_xsltproc_gives_the_same_records(kind: Kind, tmp_path: Path) -> None:
    wrapper = wrapper_of("original", kind)
    page = known("original", kind)[5].page
    (tmp_path / "wrapper.xslt").write_text(wrapper.to_xslt(), encoding="utf-8")
    (tmp_path / "page.xml").write_bytes(tree_xml(tree(page.html, page.charset)))
    done = subprocess.run(
        ["xsltproc", "--huge", "wrapper.xslt", "page.xml"], cwd=tmp_path, check=True, capture_output=True
    )
    assert by_stylesheet(etree.fromstring(done.stdout)) == native(wrapper, page)


def test_the_spider_gives_the_same_items(tmp_path: Path) -> None:
    with served_site(robots=b"User-agent: *\nAllow: /\n") as site:
        local = [
            replace(one.page, url=site.address + urlsplit(one.page.url).path)
            for one in known("original", "restaurant")
        ]
        host = re.escape(urlsplit(site.address).netloc)
        learned_wrapper = wrapper_of("original", "restaurant")
        (pattern,) = learned_wrapper.footprint.url_patterns
        local_pattern = pattern.replace(r"www\.larkmoor-guide\.example", host)
        footprint = replace(learned_wrapper.footprint, sites=("127.0.0.1",), url_patterns=(local_pattern,))
        wrapper = replace(learned_wrapper, footprint=footprint)
        (tmp_path / "spider.py").write_text(to_spider(wrapper, "Larkmoor guide"), encoding="utf-8")
        quick = [f"-s{one}" for one in ("DOWNLOAD_DELAY=0", "AUTOTHROTTLE_ENABLED=0", "DEPTH_LIMIT=1")]
        start = f"start_urls={site.address}{A_LIST}"
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "scrapy",
                "runspider",
                "spider.py",
                *quick,
                "-a",
                start,
                "-O",
                "items.json",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        asked = {f"{site.address}{path}" for path in site.paths}
    items = {item.pop("url"): item for item in json.loads((tmp_path / "items.json").read_text())}
    expected = {page.url: page for page in local if page.url in asked}
    assert len(expected) >= 5
    assert items.keys() == expected.keys()
    document = json.loads(to_xpath_json(wrapper))
    for url, page in expected.items():
        (record,) = native(wrapper, page)
        assert items[url] == standalone_extractor.item(document, record)


# web-poet 0.24 calls a function of pytest that has other parameters since 9.1 when it shows what differs.
SHOWS_NOTHING = """
import web_poet.testing.pytest

web_poet.testing.pytest.comparison_error_message = lambda **_: "differs"
"""

PAGE_OBJECTS: dict[str, tuple[str, Kind]] = {
    "guide restaurant": ("original", "restaurant"),
    "guide list": ("original", "list"),
    "guide event": ("relearned", "event"),
}


def test_pytest_tests_each_field_of_the_page_objects(tmp_path: Path) -> None:
    for name, (layout, kind) in PAGE_OBJECTS.items():
        pages = [one.page for one in known("original", kind)[5:7]]
        write_page_object(wrapper_of(layout, kind), name, pages, tmp_path)
    output = tmp_path / "fixtures" / "guide_restaurant_page.GuideRestaurantPage" / "test-1" / "output.json"
    expected = json.loads(output.read_text())
    wrapper = wrapper_of("original", "restaurant")
    (record,) = native(wrapper, known("original", "restaurant")[5].page)
    assert expected == standalone_extractor.item(json.loads(to_xpath_json(wrapper)), record)
    output.write_text(json.dumps({**expected, "phone": "another"}))
    (tmp_path / "conftest.py").write_text(SHOWS_NOTHING)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-vv", "--no-header"],
        cwd=tmp_path,
        # url-matcher asks the web for a list of domains, and does without if there is none.
        env={**os.environ, "https_proxy": "http://127.0.0.1:9", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    outcomes = dict(re.findall(r"^fixtures/(\S+) (PASSED|FAILED)", done.stdout, re.MULTILINE))
    assert [name for name, outcome in outcomes.items() if outcome == "FAILED"] == [
        "guide_restaurant_page.GuideRestaurantPage/test-1/output.json::phone"
    ], done.stdout
    assert done.returncode == 1
    by_class = Counter(name.partition("/")[0] for name in outcomes)
    # Besides one for each field there is one that nothing is raised, and one that nothing is there besides.
    assert by_class == {
        "guide_restaurant_page.GuideRestaurantPage": 2 * (len(wrapper.attributes) + 2),
        "guide_list_page.GuideListPage": 2 * (1 + 2),
        "guide_event_page.GuideEventPage": 2 * (len(wrapper_of("relearned", "event").attributes) + 2),
    }
