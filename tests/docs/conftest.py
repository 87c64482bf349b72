"""What several documents take for granted, made once and copied for each."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.apps.cli.changing import watched_place
from tests.apps.cli.command import Command
from tests.apps.demo.sites import directory, guide, of_kind
from tests.docs import shop
from tests.sources.crawling.test_crawl_hosts import certificate
from tests.sources.warc_records import gzip_members, page_record

pytest.register_assert_rewrite("tests.docs.entries", "tests.docs.following")  # so that failures tell why

__all__ = ["certificate", "shop_folder", "try_it", "watched_place"]


@pytest.fixture(scope="session")
def shop_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages of the shop in files, and a workspace with them, a wrapper and its records."""
    folder = tmp_path_factory.mktemp("shop")
    pages = shop.pages()
    (folder / "crawl.jsonl").write_text(shop.lines(pages), encoding="utf-8")
    records = [page_record(one.url, one.html) for one in pages]
    (folder / "crawl.warc.gz").write_bytes(gzip_members(records).content)
    (folder / "saved-pages").mkdir()
    for number, one in enumerate(pages):
        (folder / "saved-pages" / f"{number:02}.html").write_bytes(one.html)
    (folder / "restaurants.csv").write_text(shop.table(), encoding="utf-8")
    rows = shop.examples(1, 2, 17, 23)
    (folder / "examples.jsonl").write_text("".join(map(shop.line_of, rows)), encoding="utf-8")
    siteloom = Command(folder)
    for command in (
        "ingest crawl.jsonl",
        "cluster",
        "learn --examples examples.jsonl -o wrapper.json",
        "extract",
    ):
        done = siteloom(*command.split())
        assert done.returncode == 0, done.stderr
    shutil.copytree(folder / ".siteloom", folder / "workspace")
    shutil.rmtree(folder / ".siteloom")
    return folder


@pytest.fixture(scope="session")
def try_it(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the demo leaves: three crawls, and a workspace. That of the demo has the guide, too."""
    folder = tmp_path_factory.mktemp("try-it")
    crawls = {
        "crawl-1": [*guide(), *directory()],
        "crawl-2": guide("redesign"),
        "mild-change": guide("mild-change"),
    }
    for name, pages in crawls.items():
        (folder / f"{name}.jsonl").write_text(shop.lines([one.page for one in pages]), encoding="utf-8")
    restaurants = of_kind(directory(), "restaurant")
    rows = [{"url": one.page.url, "values": one.truth} for one in restaurants[::40]]
    (folder / "examples.jsonl").write_text("".join(map(shop.line_of, rows)), encoding="utf-8")
    (folder / "directory.jsonl").write_text(shop.lines([one.page for one in restaurants]), encoding="utf-8")
    siteloom = Command(folder)
    for command in ("ingest directory.jsonl", "cluster", "learn --examples examples.jsonl"):
        done = siteloom(*command.split(), "--workspace", "workspace")
        assert done.returncode == 0, done.stderr
    return folder
