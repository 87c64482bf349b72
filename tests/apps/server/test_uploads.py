"""Files that are sent: whole or not at all, in their own folder, and not for ever."""

from __future__ import annotations

import os
import shutil
import socket
import time
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from siteloom.apps.server import create_app
from siteloom.apps.server.routes import page_import
from siteloom.apps.server.upload_folder import find_upload, new_upload, remove_old_uploads, safe_name
from siteloom.core.errors import NotFound, UsageError
from siteloom.core.settings import ServeSettings, Settings
from siteloom.sources.open_sources import open_source
from siteloom.sources.source_formats import FILE_SUFFIXES
from siteloom.store.store import Store
from tests.apps.server.browsing import Browser
from tests.apps.server.conftest import People
from tests.apps.server.serving import program, serving
from tests.patience import wait_until

DAY = 24 * 60 * 60


@pytest.fixture
def browser(app: FastAPI) -> Browser:
    browser = Browser(app)
    browser.look("/")
    return browser


def sent(
    browser: Browser, name: str, content: bytes = b"<p>x", headers: dict[str, str] | None = None
) -> tuple[int, str]:
    """The status and the sentence that a file is answered with."""
    answer = browser.ask(
        "PUT",
        f"/api/uploads/{name}",
        headers={"X-CSRF-Token": browser.token, **(headers or {})},
        content=content,
    )
    return answer.status_code, answer.json().get("detail", "")


def kept(store: Store) -> list[str]:
    """All files in the folder of uploads, without the ids of the uploads."""
    folder = store.folder / "uploads"
    return sorted(
        "/".join(file.relative_to(folder).parts[1:]) for file in folder.rglob("*") if file.is_file()
    )


def test_files_of_an_upload_stand_together(browser: Browser, empty_store: Store) -> None:
    headers = {"X-CSRF-Token": browser.token}
    first = browser.ask("PUT", "/api/uploads/a/b%20c/x.html", headers=headers, content=b"<p>1").json()
    assert (first["name"], first["bytes"]) == ("a/b c/x.html", 4)
    again = f"/api/uploads/a/index.csv?upload={first['upload']}"
    second = browser.ask("PUT", again, headers=headers, content=b"file,url\n").json()
    assert second["upload"] == first["upload"]
    other = browser.ask("PUT", "/api/uploads/x.html", headers=headers, content=b"<p>2").json()
    assert other["upload"] != first["upload"]
    assert kept(empty_store) == ["files/a/b c/x.html", "files/a/index.csv", "files/x.html"]
    upload = find_upload(empty_store.folder, first["upload"])
    assert (upload.files / "a" / "b c" / "x.html").read_bytes() == b"<p>1"
    replaced = f"/api/uploads/x.html?upload={other['upload']}"
    assert browser.ask("PUT", replaced, headers=headers, content=b"<p>3").status_code == 201
    assert (find_upload(empty_store.folder, other["upload"]).files / "x.html").read_bytes() == b"<p>3"


NO_NAMES = (
    "../x.html",
    "a/../../x.html",
    "a/./x.html",
    "//etc/x.html",
    "a//x.html",
    "a\\..\\x.html",
    "x\0.html",
    "x\n.html",
    "x" * 300 + ".html",
    "é" * 126 + ".html",
    "a/" * 500 + "x.html",
    "x.exe",
    "x.zip",
    "warc",
    "x.html/",
)


def test_names_that_are_no_names_of_pages_are_refused(browser: Browser, empty_store: Store) -> None:
    for name in NO_NAMES:
        status, sentence = sent(browser, quote(name, safe=""))
        assert status in (400, 404), (name, sentence)  # some are another address before they are a name
    assert kept(empty_store) == []


@given(
    st.text() | st.lists(st.sampled_from(["..", ".", "/", "a", "\\", "\0", "~", "C:", ".html"])).map("".join)
)
def test_no_name_leads_out_of_its_folder(name: str) -> None:
    folder = Path("/uploads/files")
    try:
        place = folder / safe_name(f"{name}.html")
    except UsageError:
        return
    assert os.path.normpath(place) == str(place)
    assert folder in place.parents


@given(st.sampled_from(FILE_SUFFIXES), st.booleans())
def test_what_can_be_read_can_be_sent(suffix: str, is_loud: bool) -> None:
    name = f"pages{suffix.upper() if is_loud else suffix}"
    assert safe_name(name).name == name


def test_all_that_can_be_sent_can_be_opened(tmp_path: Path) -> None:
    for suffix in FILE_SUFFIXES:
        file = tmp_path / f"pages{suffix}"
        file.write_bytes(b"x")
        if suffix != ".parquet":  # which is looked into
            open_source(file)


def test_empty_and_endless_files_are_refused(browser: Browser, empty_store: Store) -> None:
    assert sent(browser, "x.html", b"") == (400, "x.html is empty.")
    for length in ("99999999999", "9" * 5_000, "-1", "1e3"):
        status, sentence = sent(browser, "x.html", headers={"Content-Length": length})
        assert (status, sentence) == (413, "At most 4,294,967,296 bytes may be sent at once."), length
    status, sentence = sent(browser, "x.html", headers={"Transfer-Encoding": "chunked"})
    assert status == 411
    assert kept(empty_store) == []


def test_the_largest_file_is_a_setting_and_forms_are_never_large(empty_store: Store) -> None:
    settings = Settings(serve=ServeSettings(max_upload_bytes=2**21))
    browser = Browser(create_app(empty_store, settings))
    browser.look("/")
    assert sent(browser, "x.html", b"x" * 2**21)[0] == 201
    assert sent(browser, "x.html", b"x" * (2**21 + 1))[0] == 413
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert sent(browser, "x.html", b"x" * 2**21, form)[0] == 413
    for method, path in (("POST", "/api/uploads/x.html"), ("PUT", "/api/uploadsx.html"), ("POST", "/jobs")):
        answer = browser.ask(method, path, content=b"x" * 2**21)
        assert answer.status_code == 413


def test_a_full_disk_takes_no_file(
    browser: Browser, empty_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_import, "_BYTES_LEFT", 2**62)
    status, sentence = sent(browser, "x.html")
    assert (status, sentence) == (507, "The disk has no room for 4 bytes and what is in them.")
    assert not (empty_store.folder / "uploads").exists()


def test_an_upload_is_joined_by_its_id_only(browser: Browser, empty_store: Store) -> None:
    new_upload(empty_store.folder)
    for name in ("f" * 32, "", ".", "..", "../..", "files", "x" * 10_000):
        status, sentence = sent(browser, f"x.html?upload={quote(name, safe='')}")
        assert (status, sentence) == (404, "This upload is not there any more: send its files again.")
    assert kept(empty_store) == []


def test_a_name_can_be_a_file_or_a_folder(browser: Browser, empty_store: Store) -> None:
    headers = {"X-CSRF-Token": browser.token}
    upload = browser.ask("PUT", "/api/uploads/a.html", headers=headers, content=b"<p>").json()["upload"]
    status, sentence = sent(browser, f"a.html/b.html?upload={upload}")
    assert (status, sentence) == (400, "b.html cannot be kept: Not a directory.")
    assert kept(empty_store) == ["files/a.html"]


def test_only_editors_send_files_and_only_from_here(people: People) -> None:
    viewer = people.browser("vera", "viewer")
    assert sent(viewer, "x.html")[0] == 403
    assert viewer.get("/add").status_code == 403
    editor = people.browser("edda", "editor")
    assert sent(editor, "x.html")[0] == 201
    assert sent(editor, "x.html", headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
    editor.token = "wrong"
    assert sent(editor, "x.html")[0] == 403
    assert sent(Browser(people.app), "x.html")[0] in (401, 403)
    assert kept(people.store) == ["files/x.html"]


def test_half_a_file_leaves_nothing(empty_store: Store, app: FastAPI) -> None:
    with serving(app) as address, program(address, empty_store, "editor") as client:
        key = client.headers["Authorization"]
        place = urlsplit(address)
        with socket.create_connection((place.hostname, place.port)) as connection:
            head = (
                f"PUT /api/uploads/x.html HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: {key}\r\n"
                f"Content-Length: {2**22}\r\n\r\n"
            )
            connection.sendall(head.encode() + b"<p>" * 700_000)
            wait_until(lambda: kept(empty_store) != [])
            assert [name.startswith("part-") for name in kept(empty_store)] == [True]
        wait_until(lambda: kept(empty_store) == [])
        wait_until(lambda: list((empty_store.folder / "uploads").iterdir()) == [])
        whole = client.put("/api/uploads/x.html", content=b"<p>" * 700_000)
        assert (whole.status_code, whole.json()["bytes"]) == (201, 2_100_000)


def test_an_upload_that_a_job_waits_for_stays(browser: Browser, empty_store: Store) -> None:
    old, awaited = new_upload(empty_store.folder), new_upload(empty_store.folder)
    job = empty_store.jobs.add("ingest", {"upload": awaited.id}, "ana")
    empty_store.jobs.add("cluster", {"site": None}, "ana")
    for folder in (old.files, old.folder, awaited.files, awaited.folder):
        os.utime(folder, (time.time() - 2 * DAY,) * 2)
    assert sent(browser, "x.html")[0] == 201
    assert (old.folder.exists(), awaited.folder.exists()) == (False, True)
    empty_store.jobs.end(job.id, "cancelled", "It was cancelled.")
    assert sent(browser, "x.html")[0] == 201
    assert not awaited.folder.exists()


def test_old_uploads_go(empty_store: Store, app: FastAPI) -> None:
    old, new = new_upload(empty_store.folder), new_upload(empty_store.folder)
    for folder in (old.files, old.folder):
        os.utime(folder, (time.time() - 2 * DAY,) * 2)
    os.utime(new.folder, (time.time() - 2 * DAY,) * 2)  # files have come since
    remove_old_uploads(empty_store.folder)
    assert not old.folder.exists()
    assert new.files.exists()
    for folder in (new.files, new.folder):
        os.utime(folder, (time.time() - 2 * DAY,) * 2)
    with serving(app):
        assert not new.folder.exists()


def test_uploads_are_not_looked_for_behind_links(empty_store: Store) -> None:
    """Whoever made the workspace may have put links there."""
    victim = empty_store.folder.parent / "Old"
    (victim / "files").mkdir(parents=True)
    (victim / "files" / "x.html").write_bytes(b"precious")
    for folder in (victim / "files", victim):
        os.utime(folder, (time.time() - 2 * DAY,) * 2)
    uploads_folder = empty_store.folder / "uploads"
    uploads_folder.mkdir()
    (uploads_folder / ("a" * 32)).symlink_to(victim)
    planted = new_upload(empty_store.folder)
    (planted.files / "x.html").symlink_to(victim / "files" / "x.html")
    for name in ("a" * 32, planted.id):
        with pytest.raises(NotFound):
            find_upload(empty_store.folder, name)
    remove_old_uploads(empty_store.folder)
    shutil.rmtree(uploads_folder)
    uploads_folder.symlink_to(victim.parent)
    with pytest.raises(OSError, match="symbolic link"):
        remove_old_uploads(empty_store.folder)
    with pytest.raises(OSError, match="symbolic link"):
        new_upload(empty_store.folder)
    assert (victim / "files" / "x.html").read_bytes() == b"precious"
