"""Sources that are elsewhere, patterns of sources, and lists of them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import MissingExtra, SourceError
from siteloom.core.model import Failure, Page, Skipped
from siteloom.core.remote_files import read_file, shown
from siteloom.core.settings import PagesSettings, ParseSettings
from siteloom.operations.extraction_shards import Plan, shards_of, source_files
from siteloom.sources.open_sources import open_source, open_sources, read_pages
from siteloom.sources.page_source import PageSource
from siteloom.sources.remote_source import RemoteFile
from tests.file_server import file_server
from tests.sources.reading import failures, pages
from tests.sources.warc_records import http, page_record, record

fsspec = pytest.importorskip("fsspec")
pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def elsewhere(memory: Any) -> Callable[[str, bytes], str]:
    """Puts files into memory, as the files of another machine; gives their addresses."""

    def put(name: str, content: bytes) -> str:
        memory.pipe_file(f"/{name}", content)
        return f"memory://{name}"

    return put


def lines(*urls: str) -> bytes:
    return "".join(json.dumps({"url": url, "html": "<p>"}) + "\n" for url in urls).encode()


def parquet(*rows: dict[str, object]) -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), file)
    return file.getvalue()


def urls_of(sources: list[PageSource]) -> list[str]:
    return [page.url for source in sources for page in pages(list(source.read()))]


def sentence(caught: pytest.ExceptionInfo[SourceError]) -> str:
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


FILES = {
    "a.warc": page_record("http://a.example/", b"<p>")
    + record("", b"", kind="revisit")
    + page_record("", b"<p>"),
    "a.warc.gz": gzip.compress(page_record("http://a.example/", b"<p>"))
    + gzip.compress(page_record("", b"<p>")),
    "A.JSONL": lines("http://a.example/") + b"nonsense\n",
    "a.jsonl.gz": gzip.compress(lines("http://a.example/"))[:-9],
    "a.parquet": parquet({"url": "http://a.example/", "html": "<p>"}, {"url": "", "html": "<p>"}),
    "empty.warc": b"",
    "no.warc": b"nothing",
    "empty.jsonl.gz": b"",
    "no.parquet": b"nothing",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_elsewhere_gives_what_it_gives_here(
    name: str, tmp_path: Path, temporary: Path, elsewhere: Callable[[str, bytes], str]
) -> None:
    here = tmp_path / name
    here.write_bytes(FILES[name])
    expected = [
        replace(item, url=item.url.replace(str(here), f"memory://crawl/{name}"))
        if isinstance(item, Failure | Skipped)
        else item
        for item in open_source(here).read()
    ]
    assert any(isinstance(item, Failure) for item in expected)
    source = open_source(elsewhere(f"crawl/{name}", FILES[name]))
    found = list(source.read())
    assert [str(item).replace("memory://crawl", str(tmp_path)) for item in found] == [
        str(item).replace("memory://crawl", str(tmp_path)) for item in expected
    ]
    assert not any(str(temporary) in str(item) for item in found)
    assert list(source.read()) == found
    assert list(temporary.iterdir()) == []


def test_a_worker_reads_it_itself(elsewhere: Callable[[str, bytes], str]) -> None:
    source = open_source(elsewhere("a.jsonl", lines("http://a.example/")))
    (shard,) = source.shards()
    assert urls_of([pickle.loads(pickle.dumps(shard))]) == ["http://a.example/"]


def test_settings_and_resources_reach_the_reader(elsewhere: Callable[[str, bytes], str]) -> None:
    style = record("http://a.example/s.css", http(b"a{}", media_type="text/css"))
    url = elsewhere("a.warc", page_record("http://a.example/", b"x" * 100) + style)
    (failure, resource) = open_source(url, PagesSettings(max_bytes=99), with_resources=True).read()
    assert isinstance(failure, Failure)
    assert failure.reason == "page too large"
    assert resource.url == "http://a.example/s.css"


def test_the_copy_is_gone_if_reading_stops_early(
    temporary: Path, elsewhere: Callable[[str, bytes], str]
) -> None:
    source = open_source(elsewhere("a.jsonl", lines("http://a.example/1", "http://a.example/2")))
    stream = source.read()
    next(stream)
    assert len(list(temporary.iterdir())) == 1
    stream.close()  # type: ignore[attr-defined]  # a generator, as closing it is what is tried
    assert list(temporary.iterdir()) == []


def test_a_table_without_the_columns_is_a_failure_when_it_is_read(
    temporary: Path, elsewhere: Callable[[str, bytes], str]
) -> None:
    url = elsewhere("a.parquet", parquet({"url": "http://a.example/", "text": "<p>"}))
    (failure,) = open_source(url).read()
    detail = f"{url} has no column html: pages need url and html, and it has url, text."
    assert failure == Failure(url, "unreadable file", detail)


# ---- files that cannot be had


def test_a_missing_file_is_one_sentence_at_once_and_a_failure_later(
    temporary: Path, elsewhere: Callable[[str, bytes], str]
) -> None:
    with pytest.raises(SourceError) as caught:
        open_source("memory://a.warc")
    assert sentence(caught) == "There is no file memory://a.warc: check the address."
    url = elsewhere("a.warc", b"")
    source = open_source(url)
    fsspec.filesystem("memory").rm("/a.warc")
    (failure,) = source.read()
    assert (failure.url, failure.reason) == (url, "missing file")  # type: ignore[union-attr]
    assert list(temporary.iterdir()) == []


def test_a_folder_is_no_file(elsewhere: Callable[[str, bytes], str]) -> None:
    elsewhere("crawl.warc/a.warc", b"")
    with pytest.raises(SourceError, match=r"memory://crawl\.warc is a folder: end it with / to read"):
        open_source("memory://crawl.warc")


def test_the_package_that_a_filesystem_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(SourceError) as caught:
        open_source("s3://key:secret@bucket/a.warc.gz")
    assert sentence(caught) == "s3://key:***@bucket/a.warc.gz needs s3fs: pip install s3fs."
    # A worker may lack what the machine has that sent it there.
    (failure,) = RemoteFile("s3://bucket/a.warc.gz", PagesSettings()).read()
    assert failure == Failure("s3://bucket/a.warc.gz", "missing package", "needs s3fs: pip install s3fs")


def test_without_fsspec_its_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtra, match="needs the extra 'parquet'"):
        open_source("memory://a.warc")
    (tmp_path / "a.jsonl").write_bytes(lines("http://a.example/"))
    assert urls_of([open_source(f"file://{tmp_path}/a.jsonl")]) == ["http://a.example/"]


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("nowhere://a/b.warc", "nowhere://a/b.warc cannot be read: Protocol not known: nowhere."),
        ("memory://a.txt", "Cannot tell what memory://a.txt is: elsewhere, sources are files named .warc, "),
        ("memory://a.html", "Cannot tell what memory://a.html is: elsewhere, "),
        ("https://u:pw@a.example/", "https://u:***@a.example/ is on the web: siteloom crawl fetches "),
        (
            "https://a.example/x.html?a=.warc",
            "https://a.example/x.html is on the web: siteloom crawl fetches",
        ),
        ("https://a.example/*", "https://a.example/* is on the web: siteloom crawl fetches"),
        ("memory://none/", "No WARC, WACZ, Parquet or JSON Lines file is in memory://none/: check it, "),
        (
            "memory://none/*.warc",
            "No WARC, WACZ, Parquet or JSON Lines file matches memory://none/*.warc: check it",
        ),
        (
            "none*.warc",
            "No WARC, WACZ, Parquet or JSON Lines file matches none*.warc: check it, and name a folder ",
        ),
        ("a\0/*.warc", "No WARC, WACZ, Parquet or JSON Lines file matches a\0/*.warc"),
        ("@none.txt", "The list none.txt cannot be read: No such file or directory."),
        ("@memory://none.txt", "There is no file memory://none.txt: check the address."),
        ("@a\0", "The list a\0 cannot be read: embedded null byte."),
    ],
)
def test_what_stands_for_nothing_is_one_clear_sentence(location: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        open_sources([location])
    assert sentence(caught).startswith(message)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("s3://bucket/a.warc", "s3://bucket/a.warc"),
        ("s3://key:se/cret@bucket/a.warc", "s3://key:***@bucket/a.warc"),
        ("https://u:secret@h/a.warc?X-Amz-Signature=secret", "https://u:***@h/a.warc"),
        ("https://h/a.warc#secret is cut", "https://h/a.warc is cut"),
        ("/a/b?c#d.warc", "/a/b?c#d.warc"),
    ],
)
def test_secrets_are_not_shown(location: str, expected: str) -> None:
    assert shown(location) == expected


# ---- the web


class Answers(BaseHTTPRequestHandler):
    """A web server with archives; some of its answers are bad."""

    PAGES = gzip.compress(lines("http://a.example/1"), mtime=0)
    tag = "one"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        if self.path == "/endless.txt":
            self._send_without_end()
        else:
            self.wfile.write(self._answer())

    def _send_without_end(self) -> None:
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):  # once nobody listens any more
            while True:
                self.wfile.write(b"a.warc\n" * 100_000)

    def _answer(self) -> bytes:
        name = self.path.partition("?")[0].rpartition("/")[2]
        status, headers, body = 200, {"ETag": self.tag}, self.PAGES
        match name:
            case "":
                headers, body = (
                    {"Content-Type": "text/html"},
                    b'<a href="b.jsonl.gz">b</a><a href="a.jsonl.gz">a</a>',
                )
            case "a.jsonl.gz" | "b.jsonl.gz":
                headers["Content-Encoding"] = "gzip"
            case "plain.jsonl":
                body = lines("http://a.example/1", "http://a.example/2")
            case "short.jsonl":
                body = lines("http://a.example/1", "http://a.example/2")
                headers["Content-Length"] = str(len(body) + 100)
            case "forbidden.warc":
                status = 403
            case "broken.warc":
                status = 500
            case _:
                status = 404
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        return body

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    pytest.importorskip("aiohttp")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_file_of_the_web_is_read_as_it_is(web: str, temporary: Path) -> None:
    # Whatever the server says of its encoding: the name says that it is compressed.
    assert urls_of([open_source(f"{web}/a.jsonl.gz?key=secret")]) == ["http://a.example/1"]
    assert len(urls_of([open_source(f"{web}/plain.jsonl")])) == 2
    assert list(temporary.iterdir()) == []


def test_files_of_the_web_match_a_pattern(web: str) -> None:
    sources = open_sources([f"{web}/crawl/*.jsonl.gz"])
    assert [source.url for source in sources if isinstance(source, RemoteFile)] == [
        f"{web}/crawl/a.jsonl.gz",
        f"{web}/crawl/b.jsonl.gz",
    ]
    assert urls_of(sources) == ["http://a.example/1"] * 2


def test_a_file_of_the_web_that_changed_is_known_by_its_tag(
    web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_source(f"{web}/plain.jsonl")
    assert open_source(f"{web}/plain.jsonl") == before
    monkeypatch.setattr(Answers, "tag", "two")
    assert open_source(f"{web}/plain.jsonl") != before


@pytest.mark.parametrize(
    ("name", "reason", "message"),
    [
        ("none.warc", "missing file", "There is no file WEB/none.warc: check the address."),
        (
            "forbidden.warc",
            "no permission",
            "WEB/forbidden.warc may not be read: check the credentials for it",
        ),
        ("broken.warc", "unreadable file", "WEB/broken.warc cannot be read: 500 Internal Server Error."),
        ("short.jsonl", "cut off", None),
    ],
)
def test_what_a_web_server_does_not_give_is_a_failure(
    web: str, temporary: Path, name: str, reason: str, message: str | None
) -> None:
    url = f"{web}/{name}?signature=secret"
    if message is not None:
        with pytest.raises(SourceError) as caught:
            open_source(url)
        assert sentence(caught).startswith(message.replace("WEB", web))
    (failure,) = RemoteFile(url, PagesSettings()).read()
    assert isinstance(failure, Failure)
    assert (failure.url, failure.reason) == (f"{web}/{name}", reason)
    assert "secret" not in failure.detail
    assert list(temporary.iterdir()) == []


def test_a_web_server_that_is_not_there_is_told_as_such() -> None:
    pytest.importorskip("aiohttp")
    url = "http://127.0.0.1:9/a.warc"
    with pytest.raises(SourceError, match=f"{url} cannot be reached: Cannot connect to host") as caught:
        open_source(url)
    sentence(caught)
    (failure,) = RemoteFile(url, PagesSettings()).read()
    assert isinstance(failure, Failure)
    assert failure.reason == "connection failed"


def test_with_insistence_only_what_is_not_there_is_a_failure(web: str) -> None:
    for name in ("forbidden.warc", "broken.warc", "short.jsonl"):
        source = RemoteFile(f"{web}/{name}?signature=secret", PagesSettings(), insistent=True)
        with pytest.raises(
            SourceError, match=rf"{name} .*\. The same command goes on where it was\.$"
        ) as told:
            list(source.read())
        assert "secret" not in str(told.value)
    with pytest.raises(SourceError, match="cannot be reached"):
        list(RemoteFile("http://127.0.0.1:9/a.warc", PagesSettings(), insistent=True).read())
    (failure,) = RemoteFile(f"{web}/none.warc", PagesSettings(), insistent=True).read()
    assert isinstance(failure, Failure)
    assert failure.reason == "missing file"
    assert len(list(RemoteFile(f"{web}/plain.jsonl", PagesSettings(), insistent=True).read())) == 2


# ---- folders and patterns


def test_a_remote_folder_stands_for_the_files_below_it(elsewhere: Callable[[str, bytes], str]) -> None:
    for name in ("crawl/b.jsonl", "crawl/a/2.jsonl", "crawl/a/1.jsonl", "other.jsonl"):
        elsewhere(name, lines(f"http://a.example/{name}"))
    elsewhere("crawl/c.parquet", parquet({"url": "http://a.example/c", "html": "<p>"}))
    elsewhere("crawl/page.html", b"<p>")
    elsewhere("crawl/_SUCCESS", b"")
    found = ["crawl/a/1.jsonl", "crawl/a/2.jsonl", "crawl/b.jsonl", "c"]
    sources = open_sources(["memory://crawl/"])
    assert urls_of(sources) == [f"http://a.example/{name}" for name in found]
    assert [source.url for source in sources if isinstance(source, RemoteFile)] == [
        f"memory://crawl/{name}" for name in ("a/1.jsonl", "a/2.jsonl", "b.jsonl", "c.parquet")
    ]
    assert open_sources(["memory://crawl/*/*"]) == sources[:2]
    assert open_sources(["memory://crawl/**/*.jsonl"]) == sources[:3]


def test_local_patterns_and_folders_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / "folder.jsonl").mkdir()
    for name in ("b.jsonl", "a.jsonl", "deep/c.jsonl", "a b.jsonl"):
        (tmp_path / name).write_bytes(lines(f"http://a.example/{name}"))
    (tmp_path / "page.html").write_bytes(b"<link rel=canonical href=http://a.example/page>")
    found = [f"http://a.example/{name}" for name in ("a b.jsonl", "a.jsonl", "b.jsonl", "deep/c.jsonl")]
    assert urls_of(open_sources(["*"])) == found[:3]
    assert urls_of(open_sources(["**/*.jsonl", f"file://{tmp_path}/deep/*"])) == [*found, found[3]]
    assert urls_of(open_sources([f"file://{tmp_path}/"])) == found
    assert urls_of(open_sources([f"file://localhost{tmp_path}/a%20b.jsonl"])) == found[:1]
    assert urls_of(open_sources([f"file://{tmp_path}"])) == ["http://a.example/page"]
    (tmp_path / "*").write_bytes(b"")
    with pytest.raises(SourceError, match=r"Cannot tell what \* is"):
        open_sources(["*"])


def test_a_pattern_leads_out_of_its_folder_by_no_link(tmp_path: Path) -> None:
    """The folder may be unpacked from what someone else has made."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private/secret.jsonl").write_bytes(lines("http://secret.example/"))
    folder = tmp_path / "unpacked"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.jsonl").write_bytes(lines("http://a.example/"))
    (folder / "b.jsonl").symlink_to("a.jsonl")
    (folder / "deep/c.jsonl").symlink_to("../../private/secret.jsonl")
    (folder / "deep/d").symlink_to(tmp_path / "private")
    list_file = folder / "list.txt"
    list_file.write_text("**/*.jsonl\n")
    for location in (f"{folder}/**/*.jsonl", f"file://{folder}/", f"{folder}/*/*", f"@{list_file}"):
        items = [item for source in open_sources([location]) for item in source.read()]
        assert {item.url for item in items if isinstance(item, Page)} <= {"http://a.example/"}, location
        out = [item for item in items if isinstance(item, Failure)]
        assert {item.reason for item in out} == {"outside the folder"}, location


def test_links_in_circles_are_not_walked(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.jsonl").write_bytes(lines("http://a.example/"))
    for number in range(4):
        (tmp_path / f"{number}").symlink_to(".")
    assert urls_of(open_sources([f"{tmp_path}/**/*.jsonl"])) == ["http://a.example/"]
    assert urls_of(open_sources([f"file://{tmp_path}/"])) == ["http://a.example/"]


def test_a_folder_that_is_a_link_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/a.jsonl").write_bytes(lines("http://a.example/"))
    (tmp_path / "link").symlink_to("there")
    assert urls_of(open_sources([f"{tmp_path}/link/*.jsonl"])) == ["http://a.example/"]


def test_a_path_stands_for_itself_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("@a.jsonl", "*.jsonl", "a.jsonl"):
        Path(name).write_bytes(lines(f"http://a.example/{name}"))
    found = ["http://a.example/@a.jsonl", "http://a.example/*.jsonl"]
    assert urls_of(open_sources([Path("@a.jsonl"), Path("*.jsonl")])) == found
    for location in ("memory://a.jsonl", "https://a.example/a.warc", "@memory://a.txt"):
        with pytest.raises(SourceError, match="There is no file or folder"):
            open_sources([Path(location)])


# ---- lists

NAMES = st.lists(st.sampled_from(["a.jsonl", "b.jsonl", "c d.jsonl"]), min_size=1, max_size=5)
BETWEEN = st.lists(st.sampled_from(["", "  ", "\t", "# none.jsonl", "#", " # x"]), max_size=3)


@given(NAMES, st.data(), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.sampled_from(["", ".gz"]))
def test_a_list_stands_for_its_lines_in_order(
    names: list[str], data: st.DataObject, newline: str, has_mark: bool, suffix: str
) -> None:
    written: list[str] = []
    for name in names:
        written += [*data.draw(BETWEEN), data.draw(st.sampled_from(["", " "])) + name]
    content = newline.join([*written, *data.draw(BETWEEN)]).encode("utf-8-sig" if has_mark else "utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for name in set(names):
            Path(folder, name).write_bytes(b"")
        file = Path(folder, f"list.txt{suffix}")
        file.write_bytes(gzip.compress(content) if suffix else content)
        expected = [open_source(Path(folder, name)) for name in names]
        assert open_sources([f"@{file}"]) == open_sources([f"@file://{file}"]) == expected


def test_lines_are_relative_to_the_list_or_else_to_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: Callable[[str, bytes], str]
) -> None:
    here, beside = tmp_path / "here", tmp_path / "beside"
    for folder, names in ((here, "xy"), (beside, "xz")):
        folder.mkdir()
        for name in names:
            (folder / f"{name}.jsonl").write_bytes(lines(f"http://{folder.name}.example/{name}"))
    monkeypatch.chdir(here)
    url = elsewhere("m.jsonl", lines("http://elsewhere.example/m"))
    listed = ["x.jsonl", "y.jsonl", "z*.jsonl", "y*.jsonl", str(here / "x.jsonl"), url]
    (beside / "list.txt").write_text("\n".join(listed))
    expected = ["beside.example/x", "here.example/y", "beside.example/z", "here.example/y", "here.example/x"]
    found = [page.url for page in read_pages("@../beside/list.txt", here / "x.jsonl")]
    assert found == [f"http://{name}" for name in (*expected, "elsewhere.example/m", "here.example/x")]


def test_a_list_elsewhere_is_relative_to_a_folder_above_it(elsewhere: Callable[[str, bytes], str]) -> None:
    # As Common Crawl has them: the paths are those from the root of the bucket.
    for name in ("crawl-data/2024/segments/1.jsonl", "crawl-data/2024/segments/2.jsonl"):
        elsewhere(f"bucket/{name}", lines(f"http://a.example/{name[-7]}"))
    whole = "crawl-data/2024/segments/2.jsonl\nmemory://bucket/crawl-data/2024/segments/1.jsonl\n"
    near = "/segments/1.jsonl\nsegments/*\n"
    elsewhere("bucket/crawl-data/2024/whole.paths.gz", gzip.compress(whole.encode()))
    elsewhere("bucket/crawl-data/2024/near.txt", near.encode())
    found = open_sources(["@memory://bucket/crawl-data/2024/whole.paths.gz"])
    assert urls_of(found) == ["http://a.example/2", "http://a.example/1"]
    found = open_sources(["@memory://bucket/crawl-data/2024/near.txt"])
    assert urls_of(found) == [f"http://a.example/{number}" for number in (1, 1, 2)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"# nothing\n\n", "The list LIST is empty: it must name one source a line."),
        (b"\xff\xfe", "The list LIST is no text in UTF-8: invalid start byte."),
        (b"none.warc", "names none.warc, which is in no folder above it: write such lines with their whole"),
        (b"memory://none.warc", "There is no file memory://none.warc: check the address."),
        (
            b"a.warc\nfile:///etc/secret.warc",
            "names file:///etc/secret.warc, but a list from elsewhere may not",
        ),
        *(
            (line, "may not lead to files of this machine: copy it, and name")
            for line in (
                *(b"local:///etc/secret.warc", b"local://secret.warc", b"file://secret.warc"),
                *(b"git:///home/ann/pages:main@secret.warc", b"asynclocal:///etc/secret.warc"),
            )
        ),
        (b"zip://a.warc::file:///etc/secret.zip", "may not lead to files of this machine: copy it, and name"),
    ],
)
def test_a_bad_list_is_one_clear_sentence(
    content: bytes, message: str, elsewhere: Callable[[str, bytes], str]
) -> None:
    url = elsewhere("lists/a.txt", content)
    with pytest.raises(SourceError) as caught:
        open_sources([f"@{url}"])
    assert message.replace("LIST", url) in sentence(caught)


def test_a_list_names_no_lists_and_what_is_cut_off_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.txt").write_text("@list.txt")
    with pytest.raises(SourceError, match=r"There is no file or folder @list\.txt: check the path"):
        open_sources(["@list.txt"])
    (tmp_path / "list.gz").write_bytes(gzip.compress(b"a.warc")[:-4])
    with pytest.raises(SourceError, match=r"The list list\.gz cannot be read: Compressed file ended"):
        open_sources(["@list.gz"])


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_a_list_is_decompressed_to_a_limit(tmp_path: Path, suffix: str) -> None:
    compress: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.compress,
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
        ".zst": zstandard.compress,
    }
    line = b"a.warc\n"
    member = compress[suffix](line * 200_000)
    (tmp_path / f"list.txt{suffix}").write_bytes(member * 100)
    assert len(member) < 20_000
    with file_server(tmp_path) as web:
        for place in (str(tmp_path), f"file://{tmp_path}", web):
            with pytest.raises(SourceError, match="cannot be read: it has more than 33,554,432 bytes"):
                open_sources([f"@{place}/list.txt{suffix}"])


def test_a_list_names_so_many_sources_at_most(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes(b"a.warc\n" * 250_001)
    with pytest.raises(SourceError, match="names more than 250,000 sources: split it"):
        open_sources([f"@{tmp_path}/list.txt"])


def test_a_server_that_sends_without_end_gives_no_list(web: str, temporary: Path) -> None:
    with pytest.raises(SourceError, match=r"endless\.txt cannot be read: it has more than 33,554,432 bytes"):
        open_sources([f"@{web}/endless.txt"])
    assert list(temporary.iterdir()) == []


def test_a_file_that_is_read_as_a_whole_has_a_limit(web: str, temporary: Path) -> None:
    with pytest.raises(SourceError, match=r"endless\.txt cannot be read: it has more than 100 bytes"):
        read_file(f"{web}/endless.txt", 100)
    with pytest.raises(OSError, match="it has more than 100 bytes"):
        read_file("/dev/zero", 100)
    assert list(temporary.iterdir()) == []


# ---- a changed file is noticed


def test_a_changed_file_elsewhere_has_another_fingerprint(elsewhere: Callable[[str, bytes], str]) -> None:
    def fingerprint() -> str:
        (source,) = open_sources(["memory://crawl/"])
        assert list(source_files(source)) == []
        return Plan((), ParseSettings(), shards_of(source)).fingerprint(source_files(source))

    elsewhere("crawl/a.jsonl", lines("http://a.example/1"))
    before = fingerprint()
    assert fingerprint() == before
    elsewhere("crawl/a.jsonl", lines("http://a.example/2"))
    assert fingerprint() != before


def test_the_files_of_this_machine_are_told(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(lines("http://a.example/"))
    assert [one for source in open_sources([f"{tmp_path}/*"]) for one in source_files(source)] == [file]
    assert failures(list(open_source(file).read())) == []
