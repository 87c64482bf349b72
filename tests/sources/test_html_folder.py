"""Folders of HTML files: which files, in which order, under which URL."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from siteloom.core.errors import SourceError
from siteloom.core.model import Failure, Page
from tests.sources.reading import failures, pages, read, reasons


def write(folder: Path, files: dict[str, bytes | str]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def large(file: Path) -> None:
    """Make a file of zeros that takes no room on the disk."""
    with file.open("wb") as content:
        content.truncate(10**12)


def urls(folder: Path) -> list[str]:
    return [page.url for page in pages(read(folder))]


def file_url(folder: Path, name: str) -> str:
    return (folder / name).absolute().as_uri()


def test_html_files_of_any_depth_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "b.html": b"<p>\xff",
            "a.HTM": "a",
            "c/d/e.xhtml": "e",
            "c/a.html": "c",
            "note.txt": "x",
            "x.htmlx": "x",
        },
    )
    assert urls(tmp_path) == [
        file_url(tmp_path, name) for name in ("a.HTM", "b.html", "c/a.html", "c/d/e.xhtml")
    ]
    assert pages(read(tmp_path))[1] == Page(file_url(tmp_path, "b.html"), b"<p>\xff")


def test_the_index_gives_the_url_and_the_time(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.html": "a",
            "b.html": '<link rel=canonical href="http://wrong.example/">',
            "sub/c.dat": "c",
            "index.csv": "url,fetched_at,file,note\n"
            "http://a.example/c,,sub/c.dat,kept\n"
            'http://a.example/b,2024-01-02T03:04:05+01:00,b.html,"x, y"\n',
        },
    )
    assert pages(read(tmp_path)) == [
        Page("http://a.example/c", b"c"),
        Page(
            "http://a.example/b",
            (tmp_path / "b.html").read_bytes(),
            datetime(2024, 1, 2, 2, 4, 5, tzinfo=UTC),
        ),
        Page(file_url(tmp_path, "a.html"), b"a"),
    ]


@pytest.mark.parametrize("name", ["a.html", "./a.html", "sub/../a.html"])
def test_an_indexed_file_is_read_once_however_it_is_written(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"a.html": "a", "index.csv": f"file,url\n{name},http://a.example/\n"})
    assert urls(tmp_path) == ["http://a.example/"]


def test_a_file_may_stand_under_two_urls(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"a.html": "a", "index.csv": "file,url\na.html,http://a.example/1\na.html,http://a.example/2\n"},
    )
    assert urls(tmp_path) == ["http://a.example/1", "http://a.example/2"]


def test_an_index_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    write(tmp_path, {"a.html": "a", "index.csv": b"\xef\xbb\xbffile,url\r\na.html,http://a.example/\r\n"})
    assert urls(tmp_path) == ["http://a.example/"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("missing.html,http://a.example/", "unreadable file"),
        ("sub,http://a.example/", "not a file"),
        (",http://a.example/", "not a file"),
        ("a.html,", "no URL"),
        ("a.html", "no URL"),
        ("../../etc/passwd,http://a.example/", "outside the folder"),
        ("/etc/passwd,http://a.example/", "outside the folder"),
        ("link-out,http://a.example/", "outside the folder"),
        ("loop,http://a.example/", "unreadable file"),
        ("loop/x,http://a.example/", "unreadable file"),
        ("a\0b,http://a.example/", "unreadable file"),
        (f"{'a' * 5_000},http://a.example/", "unreadable file"),
        ("b.html,http://a.example/,yesterday", "bad fetched_at"),
    ],
)
def test_a_bad_row_of_the_index_is_a_failure_and_the_rest_goes_on(
    tmp_path: Path, row: str, reason: str
) -> None:
    write(
        tmp_path,
        {
            "b.html": "b",
            "sub/x.txt": "",
            "index.csv": f"file,url,fetched_at\n{row}\nb.html,http://b.example/,\n",
        },
    )
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "link-out").symlink_to("/etc/passwd")
    items = read(tmp_path)
    assert reasons(items) == [reason]
    assert [page.url for page in pages(items)] == ["http://b.example/"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.symlink_to("../outside.csv"), "it leads out of"),
        (lambda path: path.symlink_to("/dev/zero"), "it leads out of"),
        (os.mkfifo, "it is no ordinary file"),
        (large, "line 1 has more than 1,000,000 characters"),
    ],
)
def test_an_index_that_is_no_file_of_the_folder_is_an_error(
    tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    write(tmp_path, {"outside.csv": "file,url\na.html,http://a.example/\n", "pages/a.html": "<p>a"})
    make(tmp_path / "pages/index.csv")
    with pytest.raises(SourceError, match=message):
        read(tmp_path / "pages")


def test_links_are_followed_within_the_folder_only(tmp_path: Path) -> None:
    outside = tmp_path / "outside.html"
    outside.write_text("<p>private", encoding="utf-8")
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "a.html").write_text("<p>a", encoding="utf-8")
    (folder / "b.html").symlink_to("a.html")
    (folder / "c.html").symlink_to(outside)
    (folder / "d.html").symlink_to("d.html")
    items = read(folder)
    assert [page.html for page in pages(items)] == [b"<p>a", b"<p>a"]
    out, loop = (item for item in items if isinstance(item, Failure))
    assert (out.reason, out.detail) == ("outside the folder", f"{folder / 'c.html'} is a link to {outside}")
    assert loop.reason == "unreadable file"


@pytest.mark.parametrize(
    ("head", "url"),
    [
        ('<link rel="canonical" href="https://a.example/x?y=1">', "https://a.example/x?y=1"),
        ("<LINK href=' http://a.example/ ' REL='nofollow Canonical'>", "http://a.example/"),
        ('<base href="http://a.example/d/"><link rel=canonical href="../x">', "http://a.example/x"),
        ("<link rel=canonical href=''><link rel=canonical href=http://a.example/2>", "http://a.example/2"),
        (
            "<link rel=canonical href='http://[bad'><link rel=canonical href=http://a.example/3>",
            "http://a.example/3",
        ),
        ("<link rel=canonical href='http://a.example/?a=1&amp;b=2'>", "http://a.example/?a=1&b=2"),
    ],
)
def test_without_an_index_the_canonical_link_is_the_url(tmp_path: Path, head: str, url: str) -> None:
    write(tmp_path, {"a.html": f"<html><head>{head}</head><body><p>x"})
    assert urls(tmp_path) == [url]


@pytest.mark.parametrize(
    "html",
    [
        "<p>no link",
        "<link rel=canonical href='/relative'>",
        "<link rel=canonical href='javascript:alert(1)'>",
        "<link rel=canonical>",
        "<link rel=alternate href='http://a.example/canonical'>",
        "<!-- <link rel=canonical href='http://a.example/'> -->",
        "<body><link rel=canonical href='http://a.example/'>",
        "<div>" * 3_000 + "<link rel=canonical href='http://a.example/'>",
        "",
    ],
    ids=range(9),
)
def test_without_a_canonical_link_the_file_is_the_url(tmp_path: Path, html: str) -> None:
    write(tmp_path, {"a b.html": html})
    assert urls(tmp_path) == [file_url(tmp_path, "a b.html")]
    assert urls(tmp_path)[0].endswith("/a%20b.html")


def test_a_single_html_file_is_a_source(tmp_path: Path) -> None:
    write(tmp_path, {"a.html": "<p>a", "b.html": "<p>b"})
    assert read(tmp_path / "a.html") == [Page(file_url(tmp_path, "a.html"), b"<p>a")]


def test_a_broken_file_is_a_failure_and_the_rest_goes_on(tmp_path: Path) -> None:
    write(tmp_path, {"a.html": "a", "z.html": "z", "large.html": "x" * 11})
    (tmp_path / "dangling.html").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder.html").mkdir()
    os.mkfifo(tmp_path / "pipe.html")
    items = read(tmp_path, max_bytes=10)
    assert [page.html for page in pages(items)] == [b"a", b"z"]
    assert [(failure.url, failure.reason) for failure in failures(items)] == [
        (file_url(tmp_path, "dangling.html"), "unreadable file"),
        (file_url(tmp_path, "large.html"), "page too large"),
        (file_url(tmp_path, "pipe.html"), "not a file"),
    ]


def test_a_folder_that_cannot_be_read_is_a_failure_and_the_rest_goes_on(tmp_path: Path) -> None:
    write(tmp_path, {"a.html": "a"})
    # A path longer than the system allows, made step by step from inside.
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(17):
        os.mkdir("d" * 250, dir_fd=folder)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    items = read(tmp_path)
    assert len(pages(items)) == 1
    assert reasons(items) == ["unreadable folder"]


def test_a_link_to_a_folder_is_not_followed_into_a_circle(tmp_path: Path) -> None:
    write(tmp_path, {"sub/a.html": "a"})
    (tmp_path / "sub" / "again").symlink_to(tmp_path)
    assert len(read(tmp_path)) == 1


def test_a_file_that_changes_is_read_anew(tmp_path: Path) -> None:
    from siteloom.sources.open_sources import open_source

    write(tmp_path, {"a.html": "a"})
    source = open_source(tmp_path)
    assert len(list(source.read())) == 1
    write(tmp_path, {"b.html": "b"})
    assert len(list(source.read())) == 2


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"There are no pages in .*: files must end in \.html"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (b"", "has no column file and no column url"),
        (b"file\na.html\n", "has no column url"),
        (b"URL,File\n", "has no column file and no column url"),
        (b"\xff\xfe", "cannot be read"),
        (b"file,url\n" + b"x" * 200_000 + b",http://a.example/\n", "cannot be read"),
    ],
)
def test_an_index_that_makes_no_sense_is_an_error(tmp_path: Path, index: bytes, message: str) -> None:
    write(tmp_path, {"a.html": "a", "index.csv": index})
    with pytest.raises(SourceError, match=message):
        read(tmp_path)


def test_an_index_of_nothing_but_failures_is_still_a_source(tmp_path: Path) -> None:
    write(tmp_path, {"index.csv": "file,url\nmissing.html,http://a.example/\n"})
    (failure,) = read(tmp_path)
    assert isinstance(failure, Failure)
    assert failure.url == "http://a.example/"
