"""JSON Lines, compressed or not."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.model import Failure, Page
from siteloom.sources.open_sources import open_source
from tests.sources.reading import failures, pages, read, read_content, reasons

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
every_compression = pytest.mark.parametrize("suffix", COMPRESSIONS)

texts = st.text(alphabet=st.characters(codec="utf-8"))
urls = texts.filter(str.strip).map(str.strip)
times = st.datetimes(
    timezones=st.just(UTC) | st.builds(timezone, st.timedeltas(timedelta(hours=-12), timedelta(hours=12)))
)


def lines(*rows: object) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


GOOD = {"url": "http://a.example/", "html": "<p>x"}


def one(row: object) -> Page | Failure:
    (item,) = read_content("a.jsonl", lines(row))
    assert isinstance(item, Page | Failure)
    return item


@given(
    st.lists(st.tuples(urls, texts, st.none() | times), max_size=5),
    st.booleans(),
    st.sampled_from(["", *COMPRESSIONS]),
)
def test_pages_written_as_json_lines_are_read_back(
    rows: list[tuple[str, str, datetime | None]], ascii_only: bool, suffix: str
) -> None:
    try:
        expected = [Page.from_text(url, html, time and time.astimezone(UTC)) for url, html, time in rows]
    except OverflowError:  # the first and last hours of all have no equal in UTC
        return
    content = "".join(
        json.dumps(
            {"url": url, "html": html, "fetched_at": time and time.isoformat()}, ensure_ascii=ascii_only
        )
        + "\n"
        for url, html, time in rows
    ).encode()
    compress = COMPRESSIONS.get(suffix, bytes)
    assert read_content(f"a.jsonl{suffix}", compress(content)) == expected


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.jl", "A.JSONL"])
def test_json_lines_are_known_by_their_suffix(name: str) -> None:
    assert len(pages(read_content(name, lines(GOOD)))) == 1


def test_the_last_line_needs_no_end_and_blank_lines_are_passed_over() -> None:
    content = b"\n" + lines(GOOD) + b"  \r\n\n" + lines(GOOD).rstrip(b"\n")
    assert [type(item) for item in read_content("a.jsonl", content)] == [Page, Page]


def test_windows_line_ends_and_a_byte_order_mark_do_no_harm() -> None:
    content = b"\xef\xbb\xbf" + lines(GOOD).replace(b"\n", b"\r\n") * 2
    assert [type(item) for item in read_content("a.jsonl", content)] == [Page, Page]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("", None),
        ("2024-01-02T03:04:05Z", datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2024-01-02 03:04:05", datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2024-01-02T03:04:05+02:00", datetime(2024, 1, 2, 1, 4, 5, tzinfo=UTC)),
        ("2024-01-02", datetime(2024, 1, 2, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (1704164645.5, datetime(2024, 1, 2, 3, 4, 5, 500_000, tzinfo=UTC)),
    ],
)
def test_a_time_may_be_written_in_several_ways(value: object, expected: datetime | None) -> None:
    page = one({**GOOD, "fetched_at": value})
    assert isinstance(page, Page)
    assert page.fetched_at == expected


@pytest.mark.parametrize(
    "value",
    ["yesterday", True, [], {}, 1e300, float("nan"), float("inf"), 10**30, 1e12, "0001-01-01T00:00:00+23:59",
     "9999-12-31T23:59:59-23:59"],
)  # fmt: skip
def test_a_time_that_is_none_is_a_failure(value: object) -> None:
    failure = one({**GOOD, "fetched_at": value})
    assert isinstance(failure, Failure)
    assert (failure.url, failure.reason) == ("http://a.example/", "bad fetched_at")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not valid JSON"),
        (b"nonsense", "not valid JSON"),
        (b"\xff\xff\xff", "not valid JSON"),
        (b"\x00", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"a":' * 100_000, "not valid JSON"),
        (b'{"fetched_at": ' + b"9" * 5_000 + b"}", "not valid JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'"url"', "not a JSON object"),
        (b"{}", "no URL"),
        (b'{"html": "x"}', "no URL"),
        (b'{"url": null, "html": "x"}', "no URL"),
        (b'{"url": "  ", "html": "x"}', "no URL"),
        (b'{"url": 5, "html": "x"}', "no URL"),
        (b'{"url": "\\ud800", "html": "x"}', "bad URL"),
        (b'{"url": "u"}', "no HTML"),
        (b'{"url": "u", "html": null}', "no HTML"),
        (b'{"url": "u", "html": 5}', "no HTML"),
        (b'{"url": "u", "html": ["x"]}', "no HTML"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_broken_line_is_a_failure_and_the_rest_goes_on(tmp_path: Path, line: bytes, reason: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(GOOD) + line + b"\n" + lines(GOOD))
    first, broken, last = read(path)
    assert isinstance(broken, Failure)
    assert broken.reason == reason
    assert isinstance(first, Page)
    assert isinstance(last, Page)
    if reason != "no HTML":
        assert broken.url == f"{path}:2"


@given(st.lists(st.binary(max_size=30), max_size=5))
def test_any_bytes_are_lines_of_pages_or_failures(parts: list[bytes]) -> None:
    content = b"\n".join(parts)
    filled = [line for line in content.split(b"\n") if line.strip()]
    assert len(read_content("a.jsonl", content)) == len(filled)


def test_half_a_character_in_the_html_is_a_question_mark() -> None:
    page = one({**GOOD, "html": "a\ud800b"})
    assert isinstance(page, Page)
    assert page.html == b"a?b"


def test_text_is_utf_8_whatever_its_meta_says() -> None:
    page = one({**GOOD, "html": "<meta charset=latin1><p>é"})
    assert isinstance(page, Page)
    assert page.charset == "utf-8"
    assert page.html.decode() == "<meta charset=latin1><p>é"


# Limits


def test_a_page_over_the_limit_is_a_failure() -> None:
    content = lines({**GOOD, "html": "x" * 101}, {**GOOD, "html": "é" * 51}, {**GOOD, "html": "é" * 50})
    items = read_content("a.jsonl", content, max_bytes=100)
    assert reasons(items) == ["page too large", "page too large"]
    assert len(pages(items)) == 1


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_over_the_limit_is_a_failure_and_the_rest_goes_on(end: bytes) -> None:
    content = lines(GOOD) + lines({**GOOD, "html": "x" * 5_000}) + lines(GOOD) + b"y" * 3_000 + end
    items = read_content("a.jsonl", content, max_bytes=100)
    assert [type(item) for item in items] == [Page, Failure, Page, Failure]
    assert reasons(items) == ["page too large"] * 2
    assert failures(items)[1].url.endswith("a.jsonl:4")


@every_compression
def test_a_line_without_end_takes_no_memory(suffix: str) -> None:
    content = COMPRESSIONS[suffix](b"x" * 30_000_000 + b"\n" + lines(GOOD))
    tracemalloc.start()
    try:
        items = read_content(f"a.jsonl{suffix}", content, max_bytes=10_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [type(item) for item in items] == [Failure, Page]
    assert peak < 20_000_000


# Damage


@every_compression
def test_a_compressed_file_cut_off_anywhere_tells_of_the_cut(suffix: str) -> None:
    rows = [{"url": f"http://a.example/{number}", "html": f"<p>{number}"} for number in range(3)]
    content = COMPRESSIONS[suffix](lines(*rows))
    for cut in range(len(content)):
        items = read_content(f"a.jsonl{suffix}", content[:cut])
        found = [(page.url, page.html.decode()) for page in pages(items)]
        assert found == [(row["url"], row["html"]) for row in rows[: len(found)]], cut
        assert failures(items), cut


@every_compression
def test_files_joined_to_one_are_read_as_one(suffix: str) -> None:
    content = COMPRESSIONS[suffix](lines(GOOD)) * 3
    assert [type(item) for item in read_content(f"a.jsonl{suffix}", content)] == [Page] * 3


@given(st.sampled_from(list(COMPRESSIONS)), st.data())
def test_flipped_bytes_never_raise(suffix: str, data: st.DataObject) -> None:
    content = bytearray(COMPRESSIONS[suffix](lines(GOOD, GOOD)))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    read_content(f"a.jsonl{suffix}", bytes(content))


@every_compression
def test_a_file_that_is_not_compressed_as_its_name_says_is_a_failure(suffix: str) -> None:
    assert reasons(read_content(f"a.jsonl{suffix}", lines(GOOD))) == ["truncated or damaged file"]


def test_a_file_that_goes_away_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(GOOD))
    source = open_source(path)
    path.unlink()
    assert reasons(list(source.read())) == ["truncated or damaged file"]


def test_pages_are_read_as_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(*[{**GOOD, "html": "x" * 10_000}] * 100))
    stream = open_source(path).read()
    assert isinstance(next(stream), Page)
    path.write_bytes(b"")  # what was not read yet is gone
    assert len(list(stream)) < 50
