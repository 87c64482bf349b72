"""Someone who has a crawl and has read nothing: from an uploaded WARC to records in a file."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from siteloom.core.settings import StoreSettings
from siteloom.store.workspace_folder import open_store
from tests.browser.annotator import Annotator
from tests.browser.serving import GUIDE, some_pages
from tests.browser.test_annotating import ATTRIBUTES, nodes, wanted
from tests.sources.warc_records import gzip_members, page_record, warcinfo


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Nothing yet."""
    folder = tmp_path / ".siteloom"
    open_store(StoreSettings(workspace=str(folder)), create=True).close()
    return folder


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    pages = [one.page for one in some_pages() if GUIDE in one.page.url]
    file = tmp_path / "crawl.warc.gz"
    file.write_bytes(gzip_members([warcinfo(), *(page_record(one.url, one.html) for one in pages)]).content)
    return file


def annotate_by_mouse(annotator: Annotator) -> int:
    """Say what is true until the application says that it is enough; returns of how many pages."""
    for attribute in ATTRIBUTES:
        annotator.add(attribute)
    pages = 0
    while not annotator.is_enough():
        if pages:
            annotator.go_to_next_page()
        pages += 1
        for attribute in ATTRIBUTES:
            if annotator.values(attribute) == wanted(annotator, attribute) != []:
                annotator.confirm(attribute)
            elif wanted(annotator, attribute):
                annotator.click(attribute, nodes(annotator, attribute))
            else:
                annotator.say_absent(attribute)
            assert annotator.values(attribute) == wanted(annotator, attribute)
        assert annotator.is_settled()
    return pages


def test_from_an_archive_to_a_table(page: Page, archive: Path, tmp_path: Path) -> None:
    page.goto("/")
    page.get_by_role("link", name="Add pages").click()
    with page.expect_file_chooser() as choosing:
        page.get_by_text("Choose files").click()
    choosing.value.set_files(archive)
    page.get_by_role("button", name="Add them and find templates").click()
    page.get_by_role("link", name="Annotate a template").click()
    annotator = Annotator(page)
    annotator.wait()
    assert annotate_by_mouse(annotator) >= 2
    annotator.finish_button.click()
    page.get_by_role("link", name="See the records").click()
    expect(page.get_by_role("heading", name="Records")).to_be_visible()
    with page.expect_download() as downloading:
        page.get_by_role("link", name="CSV").click()
    file = tmp_path / "records.csv"
    downloading.value.save_as(file)
    with file.open(encoding="utf-8", newline="") as lines:
        rows = {row["url"]: row for row in csv.DictReader(lines)}
    places = [one for one in some_pages() if GUIDE in one.page.url and one.kind == "restaurant"]
    usual = [one for one in places if one.page.url in rows]
    assert len(usual) >= 0.7 * len(places)  # the others were made from another template
    for one in usual:
        found = [rows[one.page.url][name] for name in ATTRIBUTES]
        assert found == [" | ".join(one.truth[name]) for name in ATTRIBUTES]
