"""Parquet files with url, html and perhaps fetched_at."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import SourceError
from siteloom.core.model import Failure, Page
from siteloom.sources.open_sources import open_source
from tests.sources.reading import pages, read, read_content, reasons

URLS = ["http://a.example/1", "http://a.example/2", "http://a.example/3"]
HTML = ["<p>1", "<p>é", ""]


def content(columns: dict[str, Any], **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, **options)
    return bytes(sink.getvalue())


def read_table(columns: dict[str, Any], max_bytes: int = 50_000_000) -> list[Any]:
    return read_content("a.parquet", content(columns), max_bytes)


texts = st.text(alphabet=st.characters(codec="utf-8"), max_size=20)


@given(
    st.lists(
        st.tuples(
            texts.filter(str.strip).map(str.strip), texts, st.none() | st.datetimes(timezones=st.just(UTC))
        ),
        max_size=100,
    ),
    st.sampled_from(["snappy", "zstd", "none"]),
)
def test_pages_written_as_parquet_are_read_back(
    rows: list[tuple[str, str, datetime | None]], compression: str
) -> None:
    columns = {
        "url": pa.array([url for url, _, _ in rows], pa.string()),
        "html": pa.array([html for _, html, _ in rows], pa.string()),
        "fetched_at": pa.array([time for _, _, time in rows], pa.timestamp("us", "UTC")),
    }
    items = read_content("a.parquet", content(columns, compression=compression, row_group_size=7))
    assert items == [Page.from_text(*row) for row in rows]


def test_binary_html_keeps_its_bytes_and_claims_no_charset() -> None:
    bodies = [b"<p>\xe9", b"\x00", b""]
    assert read_table({"url": URLS, "html": pa.array(bodies, pa.binary())}) == list(map(Page, URLS, bodies))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_text_is_read_in_every_form_that_arrow_has(kind: Any) -> None:
    items = read_table({"url": pa.array(URLS, kind), "html": pa.array(HTML, kind), "other": [1, 2, 3]})
    assert items == list(map(Page.from_text, URLS, HTML))


NOON = datetime(2024, 1, 2, 12, tzinfo=UTC)
SECONDS = int(NOON.timestamp())


@pytest.mark.parametrize(
    "column",
    [
        pa.array([SECONDS] * 3, pa.timestamp("s")),
        pa.array([SECONDS * 1_000] * 3, pa.timestamp("ms", "UTC")),
        pa.array([SECONDS * 1_000_000] * 3, pa.timestamp("us", "Europe/Berlin")),
        pa.array([SECONDS * 1_000_000_000 + 7] * 3, pa.timestamp("ns")),
        pa.array([SECONDS * 1_000_000_000 + 7] * 3, pa.timestamp("ns", "UTC")),
        pa.array([SECONDS] * 3, pa.int64()),
        pa.array(["2024-01-02T13:00:00+01:00"] * 3, pa.string()),
    ],
    ids=lambda column: str(column.type),
)
def test_a_time_is_read_in_every_form_that_arrow_has(column: Any) -> None:
    assert [page.fetched_at for page in read_table({"url": URLS, "html": HTML, "fetched_at": column})] == [
        NOON
    ] * 3


def invalid_text() -> Any:
    """A column of text whose second value is not UTF-8."""
    _, offsets, data = pa.array([b"http://a", b"\xff", b"http://c"], pa.binary()).buffers()
    return pa.Array.from_buffers(pa.string(), 3, [None, offsets, data])


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        ("url", ["http://a", None, "http://c"], "no URL"),
        ("url", ["http://a", " ", "http://c"], "no URL"),
        ("url", invalid_text(), "bad value"),
        ("html", ["a", None, "c"], "no HTML"),
        ("html", ["a", "x" * 101, "c"], "page too large"),
        ("html", invalid_text(), "bad value"),
        ("fetched_at", ["", "yesterday", None], "bad fetched_at"),
        ("fetched_at", pa.array([0, 2**62, None], pa.timestamp("us")), "bad value"),
        ("fetched_at", pa.array([0, 2**50, None], pa.timestamp("ms", "UTC")), "bad value"),
    ],
)
def test_a_bad_row_is_a_failure_and_the_rest_goes_on(column: str, values: Any, reason: str) -> None:
    items = read_table({"url": URLS, "html": HTML, column: values}, max_bytes=100)
    assert [type(item) for item in items] == [Page, Failure, Page]
    assert reasons(items) == [reason]


def test_columns_of_the_wrong_type_are_failures() -> None:
    assert reasons(read_table({"url": [1, 2, 3], "html": HTML})) == ["no URL"] * 3
    assert reasons(read_table({"url": URLS, "html": [["a"]] * 3})) == ["no HTML"] * 3
    assert (
        reasons(read_table({"url": URLS, "html": HTML, "fetched_at": [True] * 3})) == ["bad fetched_at"] * 3
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"html": HTML}, "has no column url: pages need url and html, and it has html"),
        ({"url": URLS, "body": HTML}, "has no column html: pages need url and html, and it has url, body"),
        ({"URL": URLS}, "has no column url and no column html"),
        ({}, "and it has none at all"),
    ],
)
def test_a_missing_column_is_an_error(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read_table(columns)


def test_a_file_cut_off_anywhere_tells_of_the_cut() -> None:
    whole = content({"url": URLS, "html": HTML})
    for cut in range(0, len(whole), 7):
        items = read_content("a.parquet", whole[:cut])
        assert not pages(items), cut
        assert reasons(items) == ["truncated or damaged file"], cut


@given(st.data())
def test_flipped_bytes_never_raise(data: st.DataObject) -> None:
    damaged = bytearray(content({"url": URLS, "html": HTML}, compression="zstd"))
    body = len(damaged) - int.from_bytes(damaged[-8:-4], "little")
    damaged[data.draw(st.integers(0, body - 1))] = data.draw(st.integers(0, 255))
    read_content("a.parquet", bytes(damaged))


def test_a_file_that_goes_away_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(content({"url": URLS, "html": HTML}))
    source = open_source(path)
    path.unlink()
    assert reasons(list(source.read())) == ["truncated or damaged file"]


def test_a_source_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(content({"url": URLS, "html": HTML}))
    source = open_source(path)
    assert list(source.read()) == list(source.read()) == read(path)


def test_without_pyarrow_the_error_says_what_to_install(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(content({"url": URLS, "html": HTML}))
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import siteloom\n"
        "try: siteloom.read_pages(sys.argv[1])\n"
        "except siteloom.SiteloomError as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "MissingExtra Parquet needs the extra 'parquet': install it with pip install 'siteloom[parquet]'.\n"
    )
