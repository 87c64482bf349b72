"""What several documents take for granted, made once and copied for each."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ..cli.changing import watched_place
from ..cli.command import Command
from ..pages.test_crawl_hosts import certificate
from ..pages.warc_records import gzip_members, page_record
from . import shop

pytest.register_assert_rewrite("tests.docs.entries", "tests.docs.following")  # so that failures tell why

__all__ = ["certificate", "shop_folder", "watched_place"]


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
