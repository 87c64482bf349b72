"""Tests of archives that are written: what is read of them is what was written, and others can read them."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType
from hypothesis import given
from hypothesis import strategies as st

import siteloom
from siteloom.core.errors import OutputError, UsageError
from siteloom.core.model import Page, Resource, Skipped, Validators
from siteloom.sources.warc_writer import open_warc
from tests.sources.reading import pages, read, reasons

NAMES = ("a.warc", "a.warc.gz", "a.warc.zst")
NOON = datetime(2024, 1, 2, 12, tzinfo=UTC)
HTML = b"<!DOCTYPE html><p>Blue Rondo \xc3\xa0 la Turk" * 20

# Whatever a URL holds but the few characters that no line of a header can end with, or hold.
url_texts = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="<>"))
zones = st.sampled_from([UTC, timezone(timedelta(hours=-7)), timezone(timedelta(hours=5, minutes=30))])
times = st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30), timezones=zones)  # noqa: DTZ001 - limits
contents = st.binary() | st.sampled_from(
    [gzip.compress(HTML), b"5\r\nhello\r\n0\r\n\r\n", b"\r\n\r\n", b"WARC/1.1\r\n\r\n", HTML]
)
written_pages = st.builds(
    Page,
    url_texts.map("http://a.example/".__add__),
    contents,
    times,
    st.sampled_from([None, "utf-8", "windows-1252", "shift_jis"]),
)
written_resources = st.builds(
    Resource,
    url_texts.map("http://a.example/".__add__),
    contents,
    st.sampled_from(["text/css", "image/png"]),
    times,
)


def records(path: Path) -> list[WarcRecord]:
    """All records, each as it is when it is read whole."""
    with path.open("rb") as file:
        found = []
        for record in ArchiveIterator(file, parse_http=False):
            record.freeze()
            found.append(record)
        return found


@given(st.sampled_from(NAMES), st.lists(written_pages | written_resources, max_size=5))
def test_what_is_read_is_what_was_written(name: str, items: Sequence[Page | Resource]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        with open_warc(path) as archive:
            for item in items:
                if isinstance(item, Page):
                    archive.write_page(item)
                else:
                    archive.write_resource(item)
        assert read(path, with_resources=True) == list(items)


@given(st.sampled_from(NAMES), st.lists(written_pages, max_size=3))
def test_digests_and_lengths_hold(name: str, items: Sequence[Page]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        with open_warc(path) as archive:
            for page in items:
                archive.write_page(page)
        info, *responses = records(path)
    assert info.record_type == WarcRecordType.warcinfo
    assert f"software: Siteloom/{siteloom.__version__}\r\n".encode() in info.reader.read()
    assert len(responses) == len(items)
    ids = {record.record_id for record in (info, *responses)}
    assert len(ids) == len(items) + 1
    for record, page in zip(responses, items, strict=True):
        assert record.headers.status_line == "WARC/1.1"
        assert record.record_date == page.fetched_at
        assert record.verify_block_digest()
        record.parse_http()
        assert record.verify_payload_digest()
        assert record.http_headers["Content-Length"] == str(len(page.html))
        assert record.reader.read() == page.html


def response(headers: list[tuple[str, str]], body: bytes) -> WarcRecord:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.warc")
        with open_warc(path) as archive:
            archive.write_response("http://a.example/", 200, headers, body, NOON)
        record = records(path)[1]
    record.parse_http()
    return record


def test_a_body_is_kept_as_it_came() -> None:
    body = gzip.compress(HTML)
    headers = [
        ("Content-Type", "text/html"),
        ("Content-Encoding", "gzip"),
        ("Set-Cookie", "a"),
        ("Set-Cookie", "b"),
    ]
    record = response([*headers, ("Content-Length", str(len(body)))], body)
    assert list(record.http_headers.to_tuples()) == [*headers, ("Content-Length", str(len(body)))]
    assert record.reader.read() == body


def test_headers_that_are_not_true_any_more_have_another_name() -> None:
    headers = [
        ("Transfer-Encoding", "chunked"),
        ("content-length", "7"),
        ("ETag", "x"),
    ]
    record = response(headers, HTML)
    assert list(record.http_headers.to_tuples()) == [
        ("X-Archive-Orig-Transfer-Encoding", "chunked"),
        ("X-Archive-Orig-content-length", "7"),
        ("ETag", "x"),
        ("Content-Length", str(len(HTML))),
    ]
    assert record.reader.read() == HTML


def test_a_page_has_the_headers_that_it_knows_of(tmp_path: Path) -> None:
    write_pages(tmp_path / "a.warc", Page("http://a.example/", HTML, NOON, "utf-8", Validators('"x"', "Mon")))
    [_, record] = records(tmp_path / "a.warc")
    record.parse_http()
    assert list(record.http_headers.to_tuples()) == [
        ("Content-Type", "text/html; charset=utf-8"),
        ("ETag", '"x"'),
        ("Last-Modified", "Mon"),
        ("Content-Length", str(len(HTML))),
    ]


def test_no_header_can_make_another() -> None:
    record = response(
        [("X-Name", "one\r\nX-Injected: two\r\n\r\nbody"), ("X-\u00fc\u4e00", "\u00fc\u4e00")], HTML
    )
    assert "X-Injected" not in record.http_headers
    assert record.reader.read() == HTML


@pytest.mark.parametrize("name", NAMES)
def test_other_responses_are_skipped_by_what_reads_pages(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with open_warc(path) as archive:
        archive.write_response("http://a.example/old", 301, [("Location", "/")], b"", NOON)
        archive.write_response("http://a.example/odd", 299, [("Content-Type", "text/html")], HTML, NOON)
        archive.write_response(
            "http://a.example/a.pdf", 200, [("Content-Type", "application/pdf")], b"%", NOON
        )
    assert read(path) == [
        Skipped("http://a.example/old", "status 301"),
        Skipped("http://a.example/odd", "status 299"),
        Skipped("http://a.example/a.pdf", "not HTML but application/pdf"),
    ]


def test_a_page_without_a_time_is_of_now(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    with open_warc(tmp_path / "a.warc") as archive:
        archive.write_page(Page("http://a.example/", HTML))
    [page] = pages(read(tmp_path / "a.warc"))
    assert page.fetched_at is not None
    assert before <= page.fetched_at <= datetime.now(UTC)


@pytest.mark.parametrize("name", NAMES)
def test_all_whole_records_can_be_read_before_the_archive_is_closed(tmp_path: Path, name: str) -> None:
    with open_warc(tmp_path / name) as archive:
        for number in range(3):
            archive.write_page(Page(f"http://a.example/{number}", HTML, NOON))
            assert len(pages(read(tmp_path / name))) == number + 1


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_crawl_leaves_all_but_the_last_record_and_can_go_on(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    first, second, third = (Page(f"http://a.example/{number}", HTML, NOON) for number in range(3))
    write_pages(path, first, second)
    path.write_bytes(path.read_bytes()[:-60])  # which is less than a record, however it is compressed
    items = read(path)
    assert pages(items) == [first]
    assert len(reasons(items)) == 1

    write_pages(path, third)
    items = read(path)
    assert pages(items) == [first, third]
    assert len(reasons(items)) == 1


def write_pages(path: Path, *written: Page) -> None:
    with open_warc(path) as archive:
        for page in written:
            archive.write_page(page)


def test_a_name_must_say_what_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ends in \.warc, \.warc\.gz or \.warc\.zst"):
        write_pages(tmp_path / "a.warc.bz2")


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"a\.warc cannot be written: No such file or directory"):
        write_pages(tmp_path / "nowhere" / "a.warc")
    full = tmp_path / "full.warc"
    full.symlink_to("/dev/full")
    with pytest.raises(OutputError, match=r"full\.warc cannot be written: No space left"):
        write_pages(full)
