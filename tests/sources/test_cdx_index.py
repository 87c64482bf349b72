"""Indexes of WARC files: only what they name is read, from where it stands."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import pickle
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import SourceError
from siteloom.core.model import Failure, Page, Skipped
from siteloom.core.settings import PagesSettings
from siteloom.sources.cdx_index import Cdx
from siteloom.sources.open_sources import open_source, open_sources
from siteloom.sources.page_source import SourceItem
from tests.file_server import file_server
from tests.sources.reading import failures, pages, read, read_content, reasons
from tests.sources.warc_records import Pack, gzip_members, http, page_record, plain, record, warcinfo

NUMBERS = range(6)
RECORDS = [warcinfo(), *(page_record(f"http://a.example/{number}", b"<p>%d" % number) for number in NUMBERS)]


def places(records: Sequence[bytes], pack: Pack) -> list[tuple[int, int]]:
    """Where each record of an archive begins, and how many bytes it has."""
    sizes = [len(pack([one]).content) for one in records]
    return list(zip([0, *accumulate(sizes)], sizes, strict=False))


def cdxj(url: str, place: tuple[int, int], file: str = "a.warc.gz", **more: str) -> str:
    """A line as pywb writes it."""
    known = {"url": url, "mime": "text/html", "status": "200", "filename": file, **more}
    offset, length = place
    return (
        f"example,a)/ 20240102030405 {json.dumps({**known, 'offset': str(offset), 'length': str(length)})}\n"
    )


def cdx_11(url: str, place: tuple[int, int], file: str = "a.warc.gz") -> str:
    offset, length = place
    return f"example,a)/ 20240102030405 {url} text/html 200 DIGEST - - {length} {offset} {file}\n"


def cdx_9(url: str, place: tuple[int, int], file: str = "a.warc.gz") -> str:
    return f"example,a)/ 20240102030405 {url} text/html 200 DIGEST - {place[0]} {file}\n"


def plain_json(url: str, place: tuple[int, int], file: str = "a.warc.gz") -> str:
    """A line as the index server of Common Crawl answers."""
    return json.dumps({"urlkey": "x", **json.loads(cdxj(url, place, file).split(" ", 2)[2])}) + "\n"


FORMATS = {
    "CDXJ": ("", cdxj),
    "11 fields": (" CDX N b a m s k r M S V g\n", cdx_11),
    "11 fields, no header": ("", cdx_11),
    "9 fields": (" CDX N b a m s k r V g\n", cdx_9),
    "JSON": ("", plain_json),
}


def urls(items: Sequence[SourceItem]) -> list[str]:
    return [page.url for page in pages(list(items))]


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    """A folder with an archive of six pages."""
    (tmp_path / "a.warc.gz").write_bytes(gzip_members(RECORDS).content)
    return tmp_path


def lines_of(numbers: Sequence[int], file: str = "a.warc.gz") -> str:
    at = places(RECORDS, gzip_members)
    return "".join(cdxj(f"http://a.example/{number}", at[number + 1], file) for number in numbers)


@pytest.mark.parametrize("name", ["i.cdx", "i.CDXJ", "i.cdxj.gz", "cdx-00017.gz"])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("pack", [gzip_members, plain])
def test_only_the_records_that_it_names_are_read(name: str, form: str, pack: Pack, tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").write_bytes(pack(RECORDS).content)
    header, line = FORMATS[form]
    at = places(RECORDS, pack)
    text = header + "".join(line(f"http://a.example/{number}", at[number + 1]) for number in (4, 1))
    index = tmp_path / name
    index.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert [(page.url, page.html) for page in pages(read(index))] == [
        ("http://a.example/1", b"<p>1"),
        ("http://a.example/4", b"<p>4"),
    ]


def test_what_is_between_is_not_even_looked_at(tmp_path: Path) -> None:
    at = places(RECORDS, gzip_members)
    content = bytearray(gzip_members(RECORDS).content)
    start, length = at[3]
    content[start : start + length] = b"x" * length
    (tmp_path / "a.warc.gz").write_bytes(content)
    index = tmp_path / "i.cdxj"
    index.write_text(lines_of([4]), encoding="utf-8")
    (page,) = read(index)
    assert page.url == "http://a.example/4"


@given(st.lists(st.sampled_from(NUMBERS), unique=True, min_size=1))
def test_the_order_is_that_of_the_archive(numbers: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.warc.gz").write_bytes(gzip_members(RECORDS).content)
        index = Path(folder, "i.cdxj")
        index.write_text(lines_of(numbers), encoding="utf-8")
        assert urls(read(index)) == [f"http://a.example/{number}" for number in sorted(numbers)]


def test_what_the_index_says_is_no_page_is_skipped_unread(crawl: Path) -> None:
    index = crawl / "i.cdxj"
    nowhere = (10**9, 10)
    index.write_text(
        cdxj("http://a.example/x", nowhere, status="404")
        + cdxj("http://a.example/y", nowhere, mime="image/png")
        + cdxj("http://a.example/z", nowhere, mime="warc/revisit", status="-")
        + lines_of([0]),
        encoding="utf-8",
    )
    skipped = [(item.url[-1], item.reason) for item in read(index) if isinstance(item, Skipped)]
    assert skipped == [("x", "status 404"), ("y", "not HTML but image/png"), ("z", "revisit record")]


def test_where_the_index_does_not_know_the_record_does(tmp_path: Path) -> None:
    kept = [record("http://a.example/s.css", http(b"a{}", media_type="text/css")), *RECORDS[1:2]]
    (tmp_path / "a.warc").write_bytes(plain(kept).content)
    index = tmp_path / "i.cdxj"
    at = places(kept, plain)
    index.write_text(
        cdxj("http://a.example/s.css", at[0], "a.warc", mime="unk", status="-")
        + cdxj("http://a.example/0", at[1], "a.warc", mime="", status=""),
        encoding="utf-8",
    )
    style, page = read(index)
    assert isinstance(style, Skipped)
    assert page.url == "http://a.example/0"
    assert {type(item).__name__ for item in read(index, with_resources=True)} == {"Resource", "Page"}


# ---- where the archives are


@pytest.mark.parametrize(
    ("index", "name"),
    [
        ("indexes/i.cdxj", "a.warc.gz"),
        ("i.cdxj", "a.warc.gz"),
        ("indexes/i.cdxj", "crawl/a.warc.gz"),
        ("cc-index/2024/indexes/i.cdxj", "archive/a.warc.gz"),
        ("i.cdxj", "../../elsewhere/a.warc.gz"),
        ("i.cdxj", "/crawls/of/another/machine/a.warc.gz"),
    ],
)
def test_they_are_found_near_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    archive = tmp_path / "archive/a.warc.gz"
    archive.parent.mkdir()
    archive.write_bytes(gzip_members(RECORDS).content)
    file = tmp_path / index
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(lines_of([2], name), encoding="utf-8")
    assert urls(read(file)) == ["http://a.example/2"]


def test_a_setting_says_where_they_are(tmp_path: Path) -> None:
    archive = tmp_path / "base/crawl-data/a.warc.gz"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(gzip_members(RECORDS).content)
    index = tmp_path / "index/i.cdxj"
    index.parent.mkdir()
    index.write_text(lines_of([2], "crawl-data/a.warc.gz"), encoding="utf-8")
    (failure,) = failures(read(index))
    assert (failure.url, failure.reason) == ("http://a.example/2", "missing file")
    assert failure.detail.startswith(f"crawl-data/a.warc.gz: it is not near {index}, in its folder or ")
    assert failure.detail.endswith("; the setting pages.warcs says where WARC files are")
    source = open_source(index, PagesSettings(warcs=f"{tmp_path}/base/"))
    assert urls(list(source.read())) == ["http://a.example/2"]
    wrong = open_source(index, PagesSettings(warcs=f"{tmp_path}/index"))
    (failure,) = failures(list(wrong.read()))
    assert f"it is neither in {tmp_path}/index, as the setting pages.warcs says, nor near" in failure.detail


def test_a_missing_archive_is_a_failure_for_each_page_and_the_rest_is_read(crawl: Path) -> None:
    index = crawl / "i.cdxj"
    index.write_text(lines_of([0, 1], "b.warc.gz") + lines_of([2]), encoding="utf-8")
    items = read(index)
    assert urls(items) == ["http://a.example/2"]
    assert reasons(items) == ["missing file"] * 2


# ---- elsewhere


@pytest.fixture
def elsewhere(crawl: Path, memory: Any) -> str:
    """The address of a folder with the archive and an index of two of its pages."""
    memory.pipe_file("/base/crawl-data/a.warc.gz", (crawl / "a.warc.gz").read_bytes())
    memory.pipe_file("/base/index/i.cdxj", lines_of([1, 3], "crawl-data/a.warc.gz").encode())
    return "memory://base"


def test_an_index_elsewhere_names_files_there(elsewhere: str) -> None:
    (source,) = open_sources([f"{elsewhere}/index/i.cdxj"])
    assert urls(list(source.read())) == ["http://a.example/1", "http://a.example/3"]
    (found,) = open_sources([f"{elsewhere}/index/*.cdxj"])
    assert found == source
    (shard,) = source.shards()
    assert urls(list(pickle.loads(pickle.dumps(shard)).read())) == [
        "http://a.example/1",
        "http://a.example/3",
    ]


def test_an_index_here_names_files_elsewhere(elsewhere: str, tmp_path: Path) -> None:
    for name, settings in (
        (f"{elsewhere}/crawl-data/a.warc.gz", PagesSettings(warcs=elsewhere)),
        ("crawl-data/a.warc.gz", PagesSettings(warcs=elsewhere)),
    ):
        index = tmp_path / "far/from/here/i.cdxj"
        index.parent.mkdir(exist_ok=True, parents=True)
        index.write_text(lines_of([5], name), encoding="utf-8")
        assert urls(list(open_source(index, settings).read())) == ["http://a.example/5"]


def test_a_server_that_gives_whole_files_gives_no_wrong_page(crawl: Path) -> None:
    pytest.importorskip("aiohttp")
    index = crawl / "far/from/it/i.cdxj"
    index.parent.mkdir(parents=True)
    with file_server(crawl) as web:
        index.write_text(lines_of([3], f"{web}/a.warc.gz"), encoding="utf-8")
        (failure,) = open_source(index, PagesSettings(warcs=web)).read()
    assert isinstance(failure, Failure)
    assert failure.reason == "unreadable file"
    assert failure.detail.endswith("/a.warc.gz: its server gives whole files only")


def test_of_files_elsewhere_the_length_must_be_known(elsewhere: str, tmp_path: Path) -> None:
    index = tmp_path / "far/from/it/i.cdx"
    index.parent.mkdir(parents=True)
    index.write_text(cdx_9("http://a.example/1", (0, 0), "crawl-data/a.warc.gz"), encoding="utf-8")
    (failure,) = open_source(index, PagesSettings(warcs=elsewhere)).read()
    assert isinstance(failure, Failure)
    assert failure.reason == "no length"


def test_a_missing_index_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"There is no file memory://none/i\.cdxj: check the address"):
        open_source("memory://none/i.cdxj")
    with pytest.raises(SourceError, match="There is no file or folder"):
        open_source(tmp_path / "i.cdxj")


def test_what_is_insisted_on_is_an_error_if_it_cannot_be_had(crawl: Path) -> None:
    index = crawl / "i.cdxj"
    index.write_text(lines_of([0]), encoding="utf-8")
    pytest.importorskip("aiohttp")
    (crawl / "a.warc.gz").unlink()
    source = open_source(index, PagesSettings(warcs="http://127.0.0.1:9"))
    assert reasons(list(source.read())) == ["connection failed"]
    (shard,) = source.shards()
    assert not isinstance(shard, Cdx)
    with pytest.raises(SourceError, match=r"cannot be reached: .* The same command goes on where it was"):
        list(replace(shard, insistent=True).read())  # type: ignore[type-var]  # a part, as was made sure


# ---- indexes of others


def test_an_index_leads_nowhere_but_near_itself(tmp_path: Path, elsewhere: str) -> None:
    (tmp_path / "private").mkdir()
    private = tmp_path / "private/secret.warc.gz"
    private.write_bytes(gzip_members(RECORDS).content)
    index = tmp_path / "downloads/of/mine/i.cdxj"
    index.parent.mkdir(parents=True)
    for name in (
        str(private),
        f"file://{private}",
        "../../../private/secret.warc.gz",
        "private/secret.warc.gz",  # in a folder above
        str(private).removeprefix("/"),  # in that of all files
        f"{index.parent}/../../../private/secret.warc.gz",
        f"{elsewhere}/crawl-data/a.warc.gz",
        "http://169.254.169.254/a.warc.gz",
        "zip://a::https://127.0.0.1/a.warc.gz",
    ):
        index.write_text(lines_of([2], name), encoding="utf-8")
        assert reasons(read(index)) == ["missing file"], name
    index.write_text(lines_of([2], str(private)), encoding="utf-8")
    told = open_source(index, PagesSettings(warcs=str(private.parent)))
    assert urls(list(told.read())) == ["http://a.example/2"]


@pytest.mark.parametrize("setting", ["", "warcs"])
@pytest.mark.parametrize("link", ["a.warc.gz", "archive", "warcs/a.warc.gz", "sub"])
def test_a_link_beside_an_index_leads_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str, setting: str
) -> None:
    """The folder of an index may be unpacked from what someone else has made."""
    private = tmp_path / "private/a.warc.gz"
    private.parent.mkdir()
    private.write_bytes(gzip_members(RECORDS).content)
    index = tmp_path / "downloads/i.cdxj"
    (index.parent / "warcs").mkdir(parents=True)
    (index.parent / link).symlink_to(private if link.endswith(".gz") else private.parent)
    monkeypatch.chdir(index.parent)
    name = "sub/a.warc.gz" if link == "sub" else "a.warc.gz"
    index.write_text(lines_of([2], name), encoding="utf-8")
    (failure,) = open_source(index, PagesSettings(warcs=setting)).read()
    assert isinstance(failure, Failure)
    assert failure.reason == "outside the folder"


def test_a_link_beside_an_index_may_lead_to_another_file_there(crawl: Path) -> None:
    (crawl / "b.warc.gz").symlink_to("a.warc.gz")
    (crawl / "i.cdxj").write_text(lines_of([2], "b.warc.gz"), encoding="utf-8")
    assert urls(read(crawl / "i.cdxj")) == ["http://a.example/2"]


def test_an_index_elsewhere_leads_to_no_file_of_this_machine(crawl: Path, memory: Any) -> None:
    names = [f"{crawl}/a.warc.gz", f"file://{crawl}/a.warc.gz", f"x::file://{crawl}/a.warc.gz"]
    for name in names:
        memory.pipe_file("/base/i.cdxj", lines_of([1], name).encode())
        (source,) = open_sources(["memory://base/i.cdxj"])
        assert reasons(list(source.read())) == ["missing file"], name


def test_whole_names_within_the_folder_of_an_index_are_followed(
    crawl: Path, elsewhere: str, memory: Any
) -> None:
    index = crawl / "i.cdxj"
    index.write_text(lines_of([2], str(crawl / "a.warc.gz")), encoding="utf-8")
    assert urls(read(index)) == ["http://a.example/2"]
    memory.pipe_file("/base/index/i.cdxj", lines_of([3], f"{elsewhere}/crawl-data/a.warc.gz").encode())
    (source,) = open_sources([f"{elsewhere}/index/i.cdxj"])
    assert urls(list(source.read())) == ["http://a.example/3"]


def test_a_pipe_is_no_archive(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.warc.gz")  # to open it would be to wait for ever
    (failure,) = read_content_beside(tmp_path, lines_of([1]))
    assert failure.detail.endswith("it is no ordinary file")


def read_content_beside(folder: Path, lines: str) -> list[Failure]:
    (folder / "i.cdxj").write_text(lines, encoding="utf-8")
    return failures(read(folder / "i.cdxj"))


def digested(url: str, html: bytes, digest: str, *headers: str) -> bytes:
    whole = page_record(url, html, *headers)
    return whole.replace(b"WARC-Date", b"WARC-Payload-Digest: %s\r\nWARC-Date" % digest.encode(), 1)


HTML = b"<p>twelve</p>"
CHUNKED = b"d\r\n<p>twelve</p>\r\n0\r\n\r\n"


@pytest.mark.parametrize("pack", [plain, gzip_members])
@pytest.mark.parametrize(
    ("stored", "of", "headers"),
    [
        (HTML, HTML, ()),
        (CHUNKED, CHUNKED, ("Transfer-Encoding: chunked",)),
        (CHUNKED, HTML, ("Transfer-Encoding: chunked",)),
        (gzip.compress(HTML, mtime=0), HTML, ("Content-Encoding: gzip",)),
    ],
    ids=["plain", "with chunks", "without chunks", "decoded"],
)
@pytest.mark.parametrize("algorithm", ["sha1", "sha-256", "md5"])
def test_a_page_is_the_one_that_its_digest_is_of(
    tmp_path: Path, pack: Pack, stored: bytes, of: bytes, headers: tuple[str, ...], algorithm: str
) -> None:
    name = algorithm.replace("-", "")
    found = hashlib.new(name, of)
    for digest in (base64.b32encode(found.digest()).decode(), found.hexdigest(), found.hexdigest().upper()):
        (page,) = read_digested(tmp_path, pack, stored, f"{algorithm}:{digest}", headers)
        assert isinstance(page, Page)
        assert page.html == HTML
    other = hashlib.new(name, of + b" ").hexdigest()
    (failure,) = read_digested(tmp_path, pack, stored, f"{algorithm}:{other}", headers)
    assert isinstance(failure, Failure)
    assert (failure.reason, "WARC-Payload-Digest" in failure.detail) == ("damaged record", True)


def read_digested(
    folder: Path, pack: Pack, stored: bytes, digest: str, headers: tuple[str, ...]
) -> list[SourceItem]:
    kept = digested("http://a.example/", stored, digest, *headers)
    (folder / "a.warc.gz").write_bytes(pack([kept]).content)
    (folder / "i.cdxj").write_text(cdxj("http://a.example/", places([kept], pack)[0]), encoding="utf-8")
    return read(folder / "i.cdxj")


@pytest.mark.parametrize(
    "digest", ["", "sha1", "sha1:", "sha1:!", "sha1:" + "A" * 31, "crc:00", "sha1:\u00e9"]
)
def test_a_digest_that_says_nothing_does_no_harm(tmp_path: Path, digest: str) -> None:
    kept = digested("http://a.example/", HTML, digest)
    (tmp_path / "a.warc").write_bytes(kept)
    (page,) = read(tmp_path / "a.warc")
    assert isinstance(page, Page)


def test_that_a_compressed_record_is_damaged_is_known_at_its_end(tmp_path: Path) -> None:
    """What is read of a page of some size ends before the checksum of its member."""
    member = bytearray(gzip_members([page_record("http://a.example/", os.urandom(200_000))]).content)
    member[-6] ^= 1
    (tmp_path / "a.warc.gz").write_bytes(member)
    (failure,) = read_content_beside(tmp_path, cdxj("http://a.example/", (0, len(member))))
    assert failure.reason == "damaged record"


# ---- bad lines


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ("one two three", "it has 3 fields"),
        ('x 2024 {"url": "http://a.example/", "offset": "1"}', "it names no file and byte"),
        ('x 2024 {"url": "http://a.example/", "offset": "-1", "filename": "a"}', "it names no file and byte"),
        ('x 2024 {"offset": "1", "filename": "a"}', "it names no URL"),
        ("x 2024 {", "what is in braces is no JSON: "),
        ("x" * 1_100_000, "it has over 1,048,576 bytes"),
    ],
)
def test_a_bad_line_is_a_failure_and_the_rest_is_read(crawl: Path, line: str, detail: str) -> None:
    index = crawl / "i.cdxj"
    index.write_text(f"!OpenWayback-CDXJ 1.0\n\n{line}\n{lines_of([0])}", encoding="utf-8")
    items = read(index)
    (failure,) = failures(items)
    assert (failure.url, failure.reason) == (f"{index}:3", "not a CDX line")
    assert failure.detail.startswith(detail)
    assert urls(items) == ["http://a.example/0"]


def test_a_place_where_no_record_is_is_a_failure(crawl: Path) -> None:
    at = places(RECORDS, gzip_members)
    (crawl / "b.warc").write_bytes(plain(RECORDS).content)
    wrong = [(at[2][0] + 3, 100), (10**9, 10), (at[2][0], 5)]
    index = crawl / "i.cdxj"
    index.write_text(
        "".join(cdxj("http://a.example/1", one) + cdxj("http://a.example/1", one, "b.warc") for one in wrong),
        encoding="utf-8",
    )
    items = read(index)
    assert len(items) == 6
    assert set(reasons(items)) <= {"damaged record", "truncated record"}
    assert len(reasons(items)) == 6


def test_a_record_over_the_limit_is_not_read(crawl: Path) -> None:
    index = crawl / "i.cdxj"
    index.write_text(cdxj("http://a.example/1", (0, 10**9)), encoding="utf-8")
    assert reasons(read(index)) == ["page too large"]


def test_an_index_that_is_empty_or_cut_off_is_a_failure(crawl: Path) -> None:
    (crawl / "i.cdx").write_bytes(b" CDX N b a m s k r M S V g\n")
    assert reasons(read(crawl / "i.cdx")) == ["empty file"]
    (crawl / "i.cdxj.gz").write_bytes(gzip.compress(lines_of([0]).encode())[:-9])
    assert reasons(read(crawl / "i.cdxj.gz")) == ["unreadable file"]


@given(st.binary(max_size=200))
def test_any_bytes_give_failures_at_most(content: bytes) -> None:
    assert pages(read_content("i.cdx", content)) == []


# ---- many


def test_shards_have_some_hundred_pages_each(tmp_path: Path) -> None:
    many = [page_record(f"http://a.example/{number}", b"<p>") for number in range(600)]
    (tmp_path / "a.warc").write_bytes(plain(many).content)
    at = places(many, plain)
    index = tmp_path / "i.cdxj"
    wanted = reversed(range(600))
    text = cdxj("http://a.example/x", (0, 1), status="404")
    index.write_text(
        text + "".join(cdxj(f"http://a.example/{number}", at[number], "a.warc") for number in wanted),
        encoding="utf-8",
    )
    shards = open_source(index).shards()
    assert len(shards) == 3
    items = [item for shard in shards for item in shard.read()]
    assert items == read(index)
    assert urls(items) == [f"http://a.example/{number}" for number in range(600)]
    assert sum(isinstance(item, Skipped) for item in items) == 1


def test_a_pattern_stands_for_indexes_only_if_it_is_one_of_them(crawl: Path) -> None:
    (crawl / "i.cdxj").write_text(lines_of([0]), encoding="utf-8")
    (everything,) = open_sources([f"{crawl}/*"])
    assert len(urls(list(everything.read()))) == len(NUMBERS)
    (index,) = open_sources([f"{crawl}/*.cdxj"])
    assert urls(list(index.read())) == ["http://a.example/0"]
