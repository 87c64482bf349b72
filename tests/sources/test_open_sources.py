"""Which reader a source gets, and several sources as one stream of pages."""

from __future__ import annotations

import gzip
import json
import logging
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from siteloom.core.errors import SourceError
from siteloom.core.model import Failure, Page
from siteloom.core.settings import PagesSettings
from siteloom.sources.open_sources import open_source, read_pages, read_sources
from siteloom.sources.page_source import PageSource
from tests.sources.reading import failures, pages
from tests.sources.warc_records import http, page_record, record


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    """A folder, an archive and a JSON Lines file, with one page and one failure each."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.html").write_bytes(b"<link rel=canonical href=http://a.example/1>")
    (folder / "z.html").symlink_to("nowhere")
    archive = tmp_path / "b.warc.gz"
    not_found = record("http://a.example/404", http(b"x", status="HTTP/1.1 404 No"))
    archive.write_bytes(
        gzip.compress(page_record("http://a.example/2", b"<p>"))
        + gzip.compress(not_found)
        + gzip.compress(page_record("", b"<p>"))
    )
    lines = tmp_path / "c.jsonl"
    lines.write_text(json.dumps({"url": "http://a.example/3", "html": "<p>"}) + "\nnonsense\n")
    return [folder, archive, lines]


def test_pages_of_several_sources_come_one_source_after_the_other(sources: list[Path]) -> None:
    found: list[Failure] = []
    urls = [page.url for page in read_pages(*sources, on_failure=found.append)]
    assert urls == [f"http://a.example/{number}" for number in (1, 2, 3)]
    assert [failure.reason for failure in found] == ["unreadable file", "no URL", "not valid JSON"]


def test_a_source_may_be_given_as_text(sources: list[Path]) -> None:
    assert len(list(read_pages(*map(str, sources), on_failure=lambda _: None))) == 3


def test_failures_are_logged_where_nobody_takes_them(
    sources: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="siteloom"):
        list(read_pages(sources[2]))
    (message,) = caplog.messages
    assert message.startswith(f"{sources[2]}:2: not valid JSON (")


def test_a_missing_source_is_an_error_before_any_page_is_read(sources: list[Path]) -> None:
    with pytest.raises(SourceError, match="There is no file or folder missing: check the path"):
        read_pages(sources[0], "missing")


def test_no_sources_are_no_pages() -> None:
    assert list(read_pages()) == []


class TwoPages:
    """A source that is no file."""

    def read(self) -> Iterator[Page | Failure]:
        yield Page("http://a.example/", b"<p>")
        yield Failure("http://b.example/", "lost")

    def shards(self) -> Sequence[TwoPages]:
        return (self,)


def test_anything_that_reads_is_a_source(sources: list[Path]) -> None:
    mixed: list[PageSource] = [TwoPages(), open_source(sources[2])]
    items = list(read_sources(mixed))
    assert len(pages(items)) == len(failures(items)) == 2


@pytest.mark.parametrize(
    ("name", "reader"),
    [
        ("a.warc", "Warc"),
        ("a.warc.gz", "Warc"),
        ("A.WARC.ZST", "Warc"),
        ("a.jsonl", "JsonLines"),
        ("a.jsonl.gz", "JsonLines"),
        ("a.ndjson.zst", "JsonLines"),
        ("a.html", "HtmlFile"),
        ("a.xhtml", "HtmlFile"),
        ("a.b.htm", "HtmlFile"),
    ],
)
def test_a_file_is_known_by_its_name(tmp_path: Path, name: str, reader: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert type(open_source(tmp_path / name)).__name__ == reader


@pytest.mark.parametrize("name", ["a.txt", "a", "a.gz", "a.html.gz", "a.csv", ".warcx", "jsonl"])
def test_a_file_of_unknown_kind_is_an_error_that_lists_the_kinds(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(SourceError) as caught:
        open_source(tmp_path / name)
    message = str(caught.value)
    assert message.startswith(f"Cannot tell what {tmp_path / name} is")
    assert all(kind in message for kind in ("folder", ".html", ".warc.gz", ".parquet", ".jsonl"))


@pytest.mark.parametrize("name", ["missing", "missing.warc", "a\0b", "x" * 5_000])
def test_a_path_that_leads_nowhere_is_one_clear_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError) as caught:
        open_source(f"{tmp_path}/{name}")
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize("name", ["a.warc", "a.jsonl", "a.html"])
def test_the_settings_reach_every_reader(tmp_path: Path, name: str) -> None:
    contents = {
        "a.warc": page_record("http://a.example/", b"x" * 100),
        "a.jsonl": json.dumps({"url": "http://a.example/", "html": "x" * 100}).encode(),
        "a.html": b"x" * 100,
    }
    path = tmp_path / name
    path.write_bytes(contents[name])
    (failure,) = open_source(path, PagesSettings(max_bytes=99)).read()
    assert isinstance(failure, Failure)
    assert failure.reason == "page too large"
    assert len(pages(list(open_source(path, PagesSettings(max_bytes=100)).read()))) == 1


def test_reading_does_not_need_pyarrow(sources: list[Path]) -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import siteloom\n"
        "print(len(list(siteloom.read_pages(*sys.argv[1:], on_failure=lambda failure: None))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *sources], capture_output=True, text=True, check=True
    )
    assert done.stdout == "3\n"
