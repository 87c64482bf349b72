"""Pages in: files by the file chooser, URLs by shape, one page to try; by mouse and keyboard."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.apps.demo.sites import guide, of_kind
from tests.browser.conftest import Overheard, Visiting
from tests.browser.serving import GUIDE, PHONE
from tests.sources.warc_records import gzip_members, page_record, warcinfo

NEW = "new-guide.example"
URLS = [f"https://{NEW}/places/{number}.html" for number in range(3)] + [f"https://{NEW}/about"]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Pages of a site that the workspace does not have."""
    pages = [one.page for one in [*of_kind(guide(), "restaurant")[:16], *of_kind(guide(), "event")[:8]]]
    records = [
        page_record(page.url.replace(GUIDE, NEW), page.html.replace(GUIDE.encode(), NEW.encode()))
        for page in pages
    ]
    file = tmp_path / "crawl of a guide.warc.gz"
    file.write_bytes(gzip_members([warcinfo(), *records]).content)
    return file


def test_an_archive_becomes_a_site_with_templates(page: Page, archive: Path) -> None:
    page.goto("/add")
    send = page.get_by_role("button", name="Add them and find templates")
    expect(send).to_be_disabled()
    with page.expect_file_chooser() as choosing:
        page.get_by_text("Choose files").click()
    choosing.value.set_files(archive)
    expect(page.get_by_text("crawl of a guide.warc.gz, ")).to_be_visible()
    send.click()
    expect(page.get_by_role("heading", name="Import pages")).to_be_visible()
    expect(page.get_by_text("24 pages read, 24 of them new")).to_be_visible()
    page.get_by_role("link", name="Its URLs").click()
    expect(page.get_by_text("24 URLs of")).to_be_visible()
    page.locator("summary").first.click()
    expect(page.get_by_text("differs").first).to_be_visible()
    page.get_by_label("Words in the URL").fill("events")
    page.keyboard.press("Enter")
    expect(page.get_by_text("8 URLs with “events”")).to_be_visible()


def test_a_folder_can_be_chosen_and_what_is_no_page_is_left_out(page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    (folder / "more").mkdir(parents=True)
    (folder / "index.csv").write_text("file,url\nmore/a.html,https://saved.example/a\n")
    for name in ("more/a.html", "b.htm", "picture.png"):
        (folder / name).write_bytes(b"<h1>x</h1><p>y")
    page.goto("/add")
    with page.expect_file_chooser() as choosing:
        page.get_by_text("Choose a folder").click()
    choosing.value.set_files(folder)
    expect(page.get_by_text("1 other file is left out")).to_be_visible()
    page.get_by_role("button", name="Add them and find templates").click()
    expect(page.get_by_role("heading", name="Into 2 sites")).to_be_visible()
    expect(page.get_by_role("link", name="saved.example")).to_be_visible()


def test_what_cannot_be_read_is_told_before_it_is_sent(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "pages.zip"
    file.write_bytes(b"PK")
    page.goto("/add")
    page.locator('input[name="files"]').set_input_files(file)
    expect(page.get_by_role("alert").filter(has_text="Cannot tell what pages.zip is")).to_be_visible()
    expect(page.get_by_role("button", name="Add them and find templates")).to_be_disabled()


def test_sending_can_be_cancelled_and_begun_again(page: Page, archive: Path, workspace: Path) -> None:
    page.goto("/add")
    page.locator('input[name="files"]').set_input_files(archive)
    network = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 20_000}
    network.send("Network.emulateNetworkConditions", slow)
    send = page.get_by_role("button", name="Add them and find templates")
    send.click()
    expect(page.get_by_text(re.compile(r"of \d+\skB sent"))).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    expect(page.get_by_text("crawl of a guide.warc.gz, ")).to_be_visible()
    network.send("Network.emulateNetworkConditions", slow | {"uploadThroughput": -1})
    send.click()
    expect(page.get_by_text("24 pages read, 24 of them new")).to_be_visible()
    assert [file for file in (workspace / "uploads").rglob("*") if file.is_file()] == []


def test_pasted_urls_are_shown_by_shape_at_once(visiting: Visiting) -> None:
    page = visiting(viewport=PHONE)
    page.goto("/add")
    page.get_by_label("One on each line").click()
    page.keyboard.type(" ".join(URLS))
    fetch = page.get_by_role("button", name=re.compile("^Fetch 4 pages$"))
    expect(fetch).to_be_visible()
    page.get_by_label(f"{NEW}/about").uncheck()
    expect(page.get_by_role("button", name=re.compile("^Fetch 3 pages$"))).to_be_enabled()
    page.get_by_label("All shapes").check()
    expect(fetch).to_be_enabled()
    page.get_by_label("All shapes").uncheck()
    expect(page.get_by_role("button", name=re.compile("^Fetch 0 pages$"))).to_be_disabled()
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_a_text_without_urls_is_told_of_and_kept(page: Page, overheard: Overheard) -> None:
    page.goto("/add")
    page.get_by_label("One on each line").fill("nothing of that kind")
    page.get_by_role("button", name="Sort them by shape").click()
    expect(page.get_by_role("alert").filter(has_text="There is no URL in this")).to_be_visible()
    expect(page.get_by_label("One on each line")).to_have_value("nothing of that kind")
    overheard.forgive(400)


def test_text_that_is_dropped_is_not_taken_for_files(page: Page) -> None:
    page.goto("/add")
    text = page.get_by_label("One on each line")
    # Real drags of text cannot be made; whether the page leaves them to the browser can be asked.
    is_left = """(element) => {
        const data = new DataTransfer();
        data.setData("text/plain", "x");
        const event = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
        return element.dispatchEvent(event);
    }"""
    assert text.evaluate(is_left)
    expect(page.get_by_text("Drop a WARC")).to_be_visible()


def test_shapes_of_another_text_are_not_fetched(page: Page, overheard: Overheard) -> None:
    page.goto("/add")
    page.get_by_label("One on each line").fill(" ".join(URLS))
    page.get_by_label(f"{NEW}/about").uncheck()
    page.get_by_label("One on each line").fill(" ".join([*URLS, f"https://{NEW}/places/9.html"]))
    expect(page.get_by_role("button", name="Fetch 4 pages")).to_be_visible()  # about is still not wanted
    page.get_by_label("One on each line").fill("nothing of that kind")
    expect(page.get_by_role("button", name=re.compile("^Fetch \\d"))).to_be_hidden()
    overheard.forgive(400)
