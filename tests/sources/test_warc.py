"""Archives: what is taken from them, and that damage costs only what is damaged."""

from __future__ import annotations

import gzip
import time
import tracemalloc
import zlib
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.model import Failure, Page, Resource, Skipped
from siteloom.html.visible_text import visible_text
from tests.html.trees import tree
from tests.sources.reading import failures, pages, read, read_content, reasons
from tests.sources.warc_records import KINDS, Archive, http, page_record, record, warcinfo

HTML = b"<html><body><p>" + b"hello world " * 100 + b"</p></body></html>"
URLS = [f"http://a.example/{number}" for number in range(3)]
BODIES = [b"<p>page %d</p>" % number for number in range(3)]
RECORDS = [warcinfo(), *map(page_record, URLS, BODIES)]
every_kind = pytest.mark.parametrize("kind", KINDS)
record_by_record = pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("one")])

# "<p>hello</p>" and ten million "a"; made once, as the brotli package need not be here.
BROTLI_HELLO = bytes.fromhex("8b05803c703e68656c6c6f3c2f703e03")
BROTLI_BOMB = bytes.fromhex("cbffff3ff825c2e2b14020f7fe2fff2c31f04b00c46111808e2306")


def name_without_bytes(value: object) -> str | None:
    """Bytes make poor names for tests."""
    return type(value).__name__ if isinstance(value, bytes) else None


def packed(kind: str, records: list[bytes]) -> tuple[str, Archive]:
    name, pack = KINDS[kind]
    return name, pack(records)


def one(block: bytes, max_bytes: int = 50_000_000) -> Page | Failure | Resource | Skipped:
    """What a single response gives."""
    (item,) = read_content("a.warc", record("http://a.example/", block), max_bytes)
    return item


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


def chunked(data: bytes, extension: bytes = b"") -> bytes:
    parts = [data[start : start + 100] for start in range(0, len(data), 100)]
    return b"".join(b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts) + b"0\r\n\r\n"


@every_kind
def test_pages_come_in_the_order_of_the_archive(kind: str) -> None:
    name, archive = packed(kind, RECORDS)
    items = read_content(name, archive.content)
    expected = [
        Page(url, body, datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC))
        for url, body in zip(URLS, BODIES, strict=True)
    ]
    assert items == expected


def test_a_zstd_archive_may_bring_its_dictionary() -> None:
    dictionary = zstandard.train_dictionary(
        4_096, [page_record(f"http://a.example/{n}", HTML) for n in range(300)]
    )
    compressor = zstandard.ZstdCompressor(dict_data=dictionary)
    data = dictionary.as_bytes()
    first_frame = b"\x5d\x2a\x4d\x18" + len(data).to_bytes(4, "little") + data
    content = first_frame + b"".join(compressor.compress(part) for part in RECORDS)
    assert [page.url for page in pages(read_content("a.warc.zst", content))] == URLS


def test_the_kind_of_an_archive_is_told_by_its_content() -> None:
    content = gzip.compress(RECORDS[1])
    assert len(pages(read_content("misnamed.warc", content))) == 1


def test_the_http_charset_is_honoured() -> None:
    body = "<meta charset=utf-8><p>Привет".encode("koi8-r")
    page = one(http(body, media_type="text/html; charset=KOI8-R"))
    assert isinstance(page, Page)
    assert page.charset == "koi8-r"
    assert visible_text(tree(page.html, page.charset)) == "Привет"


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (http(b"x", status="HTTP/1.1 404 Not Found"), "status 404"),
        (http(b"", "Location: /x", status="HTTP/1.1 301 Moved"), "status 301"),
        (http(b"%PDF", media_type="application/pdf"), "not HTML but application/pdf"),
        (http(b"a {}", media_type="text/css"), "not HTML but text/css"),
        (b"HTTP/1.1 200 OK\r\nServer: a\r\n\r\n<p>", "not HTML but of unknown type"),
    ],
    ids=name_without_bytes,
)
def test_what_is_no_page_is_skipped_with_a_reason(block: bytes, reason: str) -> None:
    assert one(block) == Skipped("http://a.example/", reason)


@pytest.mark.parametrize("media_type", ["text/html", "TEXT/HTML; charset=utf-8", "application/xhtml+xml"])
def test_html_is_known_by_its_media_type(media_type: str) -> None:
    assert isinstance(one(http(b"<p>", media_type=media_type)), Page)


@pytest.mark.parametrize("kind", ["revisit", "resource", "conversion"])
def test_documents_in_other_records_than_responses_are_skipped_and_counted(kind: str) -> None:
    skipped, _ = read_content("a.warc", record("http://a.example/", http(b"<p>"), kind=kind) + RECORDS[1])
    assert skipped == Skipped("http://a.example/", f"{kind} record")


def test_a_record_that_is_shorter_than_it_says_does_not_swallow_the_next() -> None:
    info, first, *others = RECORDS
    items = read_content("a.warc", b"".join([info, first[:-30], first[-10:], *others]))
    assert [page.url for page in pages(items)] == URLS[1:]
    assert [(failure.url, failure.reason) for failure in failures(items)] == [(URLS[0], "damaged record")]


@pytest.mark.parametrize("kind", ["request", "metadata", "warcinfo"])
def test_records_that_hold_no_documents_are_passed_over(kind: str) -> None:
    assert read_content("a.warc", record("http://a.example/", http(b"<p>"), kind=kind) + RECORDS[1]) == pages(
        read_content("a.warc", RECORDS[1])
    )


def test_stylesheets_and_images_are_kept_on_request(tmp_path: Path) -> None:
    path = tmp_path / "a.warc"
    style = record("http://a.example/s.css", http(b"a {}", media_type="text/css; charset=utf-8"))
    image = record("http://a.example/i.png", http(b"\x89PNG", media_type="image/png"))
    script = record("http://a.example/s.js", http(b"1", media_type="text/javascript"))
    path.write_bytes(style + image + script + RECORDS[1])
    items = read(path, with_resources=True)
    assert [item for item in items if isinstance(item, Resource)] == [
        Resource("http://a.example/s.css", b"a {}", "text/css", datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
        Resource(
            "http://a.example/i.png", b"\x89PNG", "image/png", datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
        ),
    ]
    assert [type(item) for item in items] == [Resource, Resource, Skipped, Page]
    assert [type(item) for item in read(path)] == [Skipped, Skipped, Skipped, Page]


def test_angle_brackets_around_a_url_are_left_out() -> None:
    (page,) = pages(read_content("a.warc", page_record("<http://a.example/>", b"<p>")))
    assert page.url == "http://a.example/"


# Encodings of the body


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(HTML)),
        ("x-gzip", gzip.compress(HTML)),
        ("GZIP", gzip.compress(HTML)),
        ("deflate", zlib.compress(HTML)),
        ("deflate", raw_deflate(HTML)),
        ("zstd", zstandard.ZstdCompressor().compress(HTML)),
        ("gzip, gzip", gzip.compress(gzip.compress(HTML))),
        ("deflate, gzip", gzip.compress(zlib.compress(HTML))),
        ("identity", HTML),
        # Crawlers often undo the encoding and keep the header.
        ("gzip", HTML),
        ("deflate", HTML),
        ("br", HTML),
        ("zstd", HTML),
        ("deflate", b"  \n" + HTML),
    ],
    ids=name_without_bytes,
)
def test_a_content_encoding_is_undone(encoding: str, body: bytes) -> None:
    page = one(http(body, f"Content-Encoding: {encoding}"))
    assert isinstance(page, Page)
    assert page.html.lstrip() == HTML


def test_brotli_is_undone() -> None:
    page = one(http(BROTLI_HELLO, "Content-Encoding: br"))
    assert isinstance(page, Page)
    assert page.html == b"<p>hello</p>"


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([], chunked(HTML)),
        ([], chunked(HTML, b";name=value")),
        ([], chunked(HTML, b"  ")),
        ([], chunked(HTML) + b"Trailer: x\r\n\r\n"),
        (["Content-Encoding: gzip"], chunked(gzip.compress(HTML))),
        ([], HTML),  # undone already
    ],
    ids=name_without_bytes,
)
def test_chunks_are_joined(headers: list[str], body: bytes) -> None:
    page = one(http(body, "Transfer-Encoding: chunked", *headers))
    assert isinstance(page, Page)
    assert page.html == HTML


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("Content-Encoding: gzip", gzip.compress(HTML)),
        ("Content-Encoding: deflate", zlib.compress(HTML)),
        ("Content-Encoding: deflate", raw_deflate(HTML)),
        ("Content-Encoding: zstd", zstandard.ZstdCompressor().compress(HTML)),
        ("Content-Encoding: br", BROTLI_HELLO),
        ("Transfer-Encoding: chunked", chunked(HTML)),
    ],
    ids=name_without_bytes,
)
@pytest.mark.parametrize("kept", [0.5, 0.9])
def test_half_a_body_is_a_failure_and_not_half_a_page(header: str, body: bytes, kept: float) -> None:
    failure = one(http(body[: int(len(body) * kept)], header))
    assert isinstance(failure, Failure)
    assert failure.reason == "undecodable body"
    assert failure.url == "http://a.example/"


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("Content-Encoding: gzip", b"\x1f\x8b\x08" + b"\xff" * 50),
        ("Content-Encoding: deflate", b"\xff" * 50),
        ("Content-Encoding: br", b"\xff" * 50),
        ("Content-Encoding: zstd", b"\x28\xb5\x2f\xfd" + b"\xff" * 50),
        ("Transfer-Encoding: chunked", b"5\r\nhello\r\nzzz\r\n"),
        ("Transfer-Encoding: chunked", b"ffffffff\r\nhello\r\n"),
    ],
    ids=name_without_bytes,
)
def test_a_body_that_is_not_what_its_header_says_is_a_failure(header: str, body: bytes) -> None:
    failure = one(http(body, header))
    assert isinstance(failure, Failure)
    assert failure.reason == "undecodable body"


# Limits


def test_a_page_over_the_limit_is_a_failure_and_the_next_is_read() -> None:
    content = page_record("http://a.example/large", b"x" * 101) + page_record(
        "http://a.example/small", b"x" * 100
    )
    large, small = read_content("a.warc", content, max_bytes=100)
    assert isinstance(large, Failure)
    assert (large.url, large.reason) == ("http://a.example/large", "page too large")
    assert isinstance(small, Page)


BOMB = b"\0" * 30_000_000


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(BOMB, 1)),
        ("deflate", zlib.compress(BOMB, 1)),
        ("deflate", raw_deflate(BOMB)),
        ("zstd", zstandard.ZstdCompressor().compress(BOMB)),
        ("gzip, gzip", gzip.compress(gzip.compress(BOMB, 1))),
        ("br", BROTLI_BOMB),
    ],
    ids=["gzip", "deflate", "raw deflate", "zstd", "gzip twice", "brotli"],
)
def test_a_decompression_bomb_stops_at_the_limit(encoding: str, body: bytes) -> None:
    tracemalloc.start()
    try:
        failure = one(http(body, f"Content-Encoding: {encoding}"), max_bytes=1_000_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(failure, Failure)
    assert failure.reason == "page too large"
    assert peak < 10_000_000


def test_many_small_chunks_are_joined_soon() -> None:
    body = b"1\r\nx\r\n" * 200_000 + b"0\r\n\r\n"
    start = time.process_time()
    page = one(http(body, "Transfer-Encoding: chunked"))
    assert isinstance(page, Page)
    assert page.html == b"x" * 200_000
    assert time.process_time() - start < 3


# Damage


@every_kind
def test_an_archive_cut_off_anywhere_never_gives_a_wrong_page_and_tells_of_the_cut(kind: str) -> None:
    name, archive = packed(kind, RECORDS)
    whole = list(zip(URLS, BODIES, strict=True))
    for cut in range(len(archive.content)):
        items = read_content(name, archive.content[:cut])
        found = [(page.url, page.html) for page in pages(items)]
        assert found == whole[: len(found)], cut
        is_at_an_end = any(cut in end for end in archive.ends)
        if len(found) < len(whole) and not is_at_an_end:
            assert failures(items), cut
        if is_at_an_end:
            assert not failures(items), cut


@record_by_record
def test_pages_before_a_cut_are_all_there(kind: str) -> None:
    name, archive = packed(kind, RECORDS)
    for cut in range(len(archive.content)):
        items = read_content(name, archive.content[:cut])
        whole_records = sum(end.start <= cut for end in archive.ends)
        assert len(pages(items)) >= whole_records - 1, cut


@every_kind
def test_an_archive_that_ends_in_a_record_that_is_no_page_is_checked_too(kind: str) -> None:
    name, archive = packed(kind, [RECORDS[1], record("http://a.example/", http(b"x" * 50), kind="request")])
    ends = {cut for end in archive.ends for cut in end}
    for cut in set(range(1, len(archive.content))) - ends:
        assert failures(read_content(name, archive.content[:cut])), cut


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=4), st.sampled_from(list(KINDS)), st.data())
def test_any_bodies_in_an_archive_cut_off_anywhere(
    bodies: list[bytes], kind: str, data: st.DataObject
) -> None:
    name, archive = packed(
        kind, [page_record(f"http://a.example/{n}", body) for n, body in enumerate(bodies)]
    )
    cut = data.draw(st.integers(0, len(archive.content)))
    items = read_content(name, archive.content[:cut])
    found = [page.html for page in pages(items)]
    assert found == bodies[: len(found)]
    assert len(found) == len(bodies) or failures(items) or any(cut in end for end in archive.ends)


@given(st.sampled_from(list(KINDS)), st.data())
def test_flipped_bytes_never_raise(kind: str, data: st.DataObject) -> None:
    name, archive = packed(kind, RECORDS)
    content = bytearray(archive.content)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    for item in read_content(name, bytes(content)):
        assert item.url.encode()  # nothing that cannot be written down


@record_by_record
def test_damage_costs_only_the_record_that_is_damaged(kind: str) -> None:
    name, archive = packed(kind, RECORDS)
    start, end = archive.ends[1].stop - 1, archive.ends[2].start
    content = bytearray(archive.content)
    content[start : start + 5] = b"\xff" * 5
    content[end - 40 : end] = b"\xff" * 40
    items = read_content(name, bytes(content))
    assert [page.url for page in pages(items)] == [URLS[0], URLS[2]]
    assert len(failures(items)) == 1


@given(st.binary(max_size=300), st.sampled_from(["a.warc", "a.warc.gz", "a.warc.zst"]))
def test_a_file_that_is_no_archive_gives_no_page_and_a_failure(content: bytes, name: str) -> None:
    items = read_content(name, content)
    assert not pages(items)
    assert failures(items)


@given(st.binary(max_size=200))
def test_a_response_of_any_bytes_never_raises(block: bytes) -> None:
    items = read_content("a.warc", record("http://a.example/", block) + RECORDS[1])
    assert [page.html for page in pages(items)][-1:] == [BODIES[0]]


@given(
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=30),
    st.text(max_size=20),
)
def test_any_url_and_any_date_never_raise(url: str, date: str) -> None:
    date = date.encode("ascii", "ignore").decode().replace("\r", "").replace("\n", "")
    items = read_content("a.warc", record(url, http(b"<p>"), date=date) + RECORDS[1])
    assert [page.html for page in pages(items)][-1:] == [BODIES[0]]


def test_an_empty_archive_is_a_failure() -> None:
    assert reasons(read_content("a.warc", b"")) == ["empty file"]


def test_a_record_without_a_url_is_a_failure() -> None:
    nameless = record("", http(b"<p>"))
    items = read_content("a.warc", nameless + RECORDS[1])
    assert reasons(items) == ["no URL"]
    assert len(pages(items)) == 1


def test_a_folder_named_like_an_archive_is_read_as_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a.warc"
    folder.mkdir()
    (folder / "a.html").write_bytes(b"<p>")
    assert len(pages(read(folder))) == 1


def test_an_archive_that_goes_away_is_a_failure(tmp_path: Path) -> None:
    from siteloom.sources.open_sources import open_source

    path = tmp_path / "a.warc"
    path.write_bytes(RECORDS[1])
    source = open_source(path)
    path.unlink()
    assert reasons(list(source.read())) == ["unreadable file"]


def test_a_source_can_be_read_again(tmp_path: Path) -> None:
    from siteloom.sources.open_sources import open_source

    path = tmp_path / "a.warc"
    path.write_bytes(b"".join(RECORDS))
    source = open_source(path)
    assert list(source.read()) == list(source.read())
