"""Files that are far larger than they look: each stops at a limit, and takes little memory."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest
import zstandard

from siteloom.core.model import Failure, Page
from siteloom.core.settings import PagesSettings
from siteloom.sources.crawling.links import MOST_BYTES, read_sitemap
from siteloom.sources.open_sources import open_source
from tests.sources.reading import failures, read, reasons
from tests.sources.warc_records import gzip_members, page_record, plain

MEGABYTE = 1_000_000

# Reads a source in a process of its own, and tells by how many megabytes that made it grow at most. Not by
# getrusage: what that tells of a process is no less than the size of the one that has started it.
MEASURE = """
import json, resource, sys
from siteloom.core.settings import PagesSettings
from siteloom.sources.open_sources import open_source
import pyarrow.compute, pyarrow.parquet
def largest(): return int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) // 1024
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))  # rather an error than a machine that stands still
before = largest()
found = {}
for item in open_source(sys.argv[1], PagesSettings(max_bytes=int(sys.argv[2]))).read():
    reason = getattr(item, "reason", "page")
    found[reason] = found.get(reason, 0) + 1
print(json.dumps([largest() - before, found]))
"""


def measured(file: Path, max_bytes: int) -> tuple[int, dict[str, int]]:
    """By how many megabytes a process grows that reads a file, and what it finds."""
    command = [sys.executable, "-c", MEASURE, str(file), str(max_bytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown, found = json.loads(done.stdout)
    return grown, found


# Holds all of a file in a process of its own, as whoever expects no harm would. How much memory that takes
# depends on the allocators of the machine, as it does where a limit is kept.
HOLD = """
import resource, sys
def largest(): return int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) // 1024
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
{imports}
before = largest()
held = {held}
print(largest() - before)
"""
TABLE = HOLD.format(imports="import pyarrow.parquet", held="pyarrow.parquet.read_table(sys.argv[1])")
LINES = HOLD.format(imports="import gzip", held="gzip.open(sys.argv[1]).read()")
OBJECTS = HOLD.format(imports="import gzip, json", held="[*map(json.loads, gzip.open(sys.argv[1]))]")
DICTIONARY = HOLD.format(
    imports="import zstandard",
    held="zstandard.ZstdDecompressor().stream_reader(open(sys.argv[1], 'rb').read()[8:]).read()",
)


HELD: dict[tuple[str, bytes], int] = {}


def held(program: str, file: Path) -> int:
    """By how many megabytes a process grows that holds all of a file; of the same content it is known."""
    key = (program, file.read_bytes())
    if key not in HELD:
        done = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, check=True)
        HELD[key] = int(done.stdout)
    return HELD[key]


def packed(pieces: Iterable[bytes], window: int = zlib.MAX_WBITS | 16) -> bytes:
    compressor = zlib.compressobj(9, zlib.DEFLATED, window)
    return b"".join(map(compressor.compress, pieces)) + compressor.flush()


def test_a_value_that_is_kept_once_for_many_rows_is_read_once(tmp_path: Path) -> None:
    """Some kilobytes that would be 1 GB as a table."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    large, rows = "x" * 5 * MEGABYTE, 200
    html = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([large]))
    table = pa.table({"url": [f"http://a.example/{row}" for row in range(rows)], "html": html})
    file = tmp_path / "pages.parquet"
    pyarrow.parquet.write_table(
        table, file, compression="zstd", store_schema=False, dictionary_pagesize_limit=1 << 30
    )
    assert file.stat().st_size < 100_000
    grown, found = measured(file, 2 * MEGABYTE)
    assert found == {"page too large": rows}
    assert grown < held(TABLE, file) / 3


def test_a_line_of_nothing_but_lists_is_not_read(tmp_path: Path) -> None:
    """Some kilobytes that would be 700 MB of objects."""
    line = [b'{"url": "http://a.example/", "html": "", "x": [', *[b"[]," * MEGABYTE] * 10, b"[]]}\n"]
    file = tmp_path / "pages.jsonl.gz"
    file.write_bytes(packed([*line, b'{"url": "http://a.example/2", "html": "<p>"}\n']))
    grown, found = measured(file, 50 * MEGABYTE)
    assert found == {"not a page": 1, "page": 1}
    assert grown < held(OBJECTS, file) / 3


def test_a_line_without_end_is_not_held(tmp_path: Path) -> None:
    file = tmp_path / "pages.jsonl.gz"
    file.write_bytes(
        packed([b'{"html": "', *[b"x" * MEGABYTE] * 50, b'"}\n{"url": "http://a.example/", "html": ""}'])
    )
    failure, page = open_source(file, PagesSettings(max_bytes=MEGABYTE)).read()
    assert isinstance(failure, Failure)
    assert failure.reason == "page too large"
    assert isinstance(page, Page)


def test_a_long_line_of_a_page_is_a_page(tmp_path: Path) -> None:
    html = '<p class="a">\u00e9,[]{}\\</p>' * 200_000
    file = tmp_path / "pages.jsonl"
    file.write_text(
        json.dumps({"url": "http://a.example/", "html": html, "more": [1] * 1_000}), encoding="utf-8"
    )
    (page,) = read(file)
    assert isinstance(page, Page)
    assert page.html == html.encode()


def test_large_rows_are_a_failure_before_they_are_read(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    file = tmp_path / "pages.parquet"
    table = pa.table({"url": ["http://a.example/"] * 3, "html": ["x" * 3 * MEGABYTE] * 3})
    pyarrow.parquet.write_table(table, file, compression="zstd", use_dictionary=False)
    (failure,) = open_source(file, PagesSettings(max_bytes=MEGABYTE)).read()
    assert isinstance(failure, Failure)
    assert (failure.reason, failure.url.endswith("row 1")) == ("page too large", True)


# ---- values of Parquet that take far less room in the file: 1,000 times the same one


def bomb(file: Path, form: str) -> Path:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    size, rows = 3 * MEGABYTE, 300
    text, raw = pa.array(["x" * size] * rows), pa.array([b"x" * size] * rows, pa.binary(size))
    one_each, all_in_one = (pa.array(ends, pa.int32()) for ends in (range(rows + 1), [0] * rows + [rows]))
    in_lists = pa.ListArray.from_arrays
    column = {
        "text": text,
        "list": in_lists(one_each, text),
        "long list": in_lists(all_in_one, text),
        "fixed": raw,
        "fixed list": in_lists(one_each, raw),
        "delta": text,
        "delta list": in_lists(one_each, text),
    }[form]
    urls = pa.array([f"http://a.example/{row}" for row in range(len(column))])
    path = "html.list.element" if "list" in form else "html"
    how = {"use_dictionary": False, "column_encoding": {path: "DELTA_BYTE_ARRAY"}} if "delta" in form else {}
    pyarrow.parquet.write_table(
        pa.table({"url": urls, "html": column}),
        file,
        **{"compression": "zstd", "store_schema": False, "write_statistics": False, **how},
        data_page_size=1 << 30,
        dictionary_pagesize_limit=1 << 30,
    )
    assert file.stat().st_size < 20_000
    return file


FORMS = ["text", "list", "long list", "fixed", "fixed list", "delta", "delta list"]


@pytest.mark.parametrize("form", FORMS)
def test_no_page_of_parquet_is_there_more_than_once(tmp_path: Path, form: str) -> None:
    file = bomb(tmp_path / "a.parquet", form)
    grown, _ = measured(file, 50 * MEGABYTE)
    assert grown < held(TABLE, file) * 2 / 3


# Reads known records in a process of its own, and tells by how many megabytes that made it grow at most.
MEASURE_ROWS = """
import json, resource, sys
from siteloom.core.table_files import load_pyarrow
from siteloom.core.errors import SourceError
from siteloom.sources.seed_tables import open_table
load_pyarrow()
def largest(): return int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) // 1024
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
before = largest()
rows, bad, error = 0, [], ""
try:
    for _, row in open_table(sys.argv[1]).rows:
        rows += 1
        bad += [row.detail] if hasattr(row, "detail") else []
except SourceError as problem:
    error = str(problem)
print(json.dumps([largest() - before, rows, bad, error]))
"""


@pytest.mark.parametrize("form", FORMS)
def test_no_known_record_of_parquet_is_there_more_than_once(tmp_path: Path, form: str) -> None:
    file = bomb(tmp_path / "a.parquet", form)
    done = subprocess.run([sys.executable, "-c", MEASURE_ROWS, str(file)], capture_output=True, check=True)
    grown, rows, bad, error = json.loads(done.stdout)
    assert grown < held(TABLE, file) * 2 / 3
    if form in ("delta list", "fixed list"):
        assert error.endswith("the lists in its column html.list.element could take any amount of memory.")
    else:
        assert (rows, error) == (300, "")
        assert bad == (["the row has over 64,000,000 bytes"] if form == "long list" else [])


ZEROS = [b"\0" * MEGABYTE] * 60
BODIES = {
    "gzip": packed(ZEROS),
    "gzip, gzip": gzip.compress(packed(ZEROS)),
    "deflate": packed(ZEROS, zlib.MAX_WBITS),
    "zstd": zstandard.ZstdCompressor().compress(b"".join(ZEROS)),
}


@pytest.mark.parametrize("encoding", BODIES)
@pytest.mark.parametrize("pack", [plain, gzip_members])
def test_a_body_stops_at_the_limit(tmp_path: Path, encoding: str, pack: object) -> None:
    records = [page_record("http://a.example/", BODIES[encoding], f"Content-Encoding: {encoding}")]
    file = tmp_path / "a.warc.gz"
    file.write_bytes(pack(records).content)  # type: ignore[operator]  # both make archives
    (failure,) = open_source(file, PagesSettings(max_bytes=MEGABYTE)).read()
    assert isinstance(failure, Failure)
    assert failure.detail == "over 1,000,000 bytes when decompressed"


def test_headers_without_end_are_a_damaged_record(tmp_path: Path) -> None:
    file = tmp_path / "a.warc.gz"
    for start in (b"WARC/1.0\r\n", page_record("http://a.example/", b"").rstrip(b"\r\n") + b"\r\n"):
        file.write_bytes(packed([start, *[b"a: b\r\n" * 100_000] * 50]))
        assert failures(read(file))


def test_a_compressed_file_gets_no_more_memory_than_others(tmp_path: Path) -> None:
    """The window of xz may be as large as the file says, and is filled as the content is."""
    line = json.dumps({"url": "http://a.example/", "html": "<p>1"}).encode() + b"\n"
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 29}]
    (tmp_path / "a.jsonl.xz").write_bytes(lzma.compress(line, filters=filters))
    (tmp_path / "b.jsonl.xz").write_bytes(lzma.compress(line, preset=9) + bytes(8) + lzma.compress(line))
    (failure,) = failures(read(tmp_path / "a.jsonl.xz"))
    assert "Memory usage limit exceeded" in failure.detail
    assert len(read(tmp_path / "b.jsonl.xz")) == 2
    assert not reasons(read(tmp_path / "b.jsonl.xz"))


@pytest.mark.parametrize("name", ["a.warc.zst", "i.cdxj"])
def test_a_dictionary_of_zstd_is_decompressed_to_a_limit(tmp_path: Path, name: str) -> None:
    """Some kilobytes that would be 500 MB, before a single record is read."""
    pieces = [b"\x37\xa4\x30\xec", *[b"\0" * MEGABYTE] * 500]
    packer = zstandard.ZstdCompressor().compressobj()
    dictionary = b"".join(map(packer.compress, pieces)) + packer.flush()
    records = zstandard.compress(page_record("http://a.example/", b"<p>"))
    archive = struct.pack("<LL", 0x184D2A5D, len(dictionary)) + dictionary + records
    (tmp_path / "a.warc.zst").write_bytes(archive)
    place = {"url": "http://a.example/", "filename": "a.warc.zst", "offset": 0, "length": len(archive)}
    (tmp_path / "i.cdxj").write_text(f"a) 2024 {json.dumps(place)}\n", encoding="utf-8")
    grown, found = measured(tmp_path / name, MEGABYTE)
    assert found["damaged record"] == 1
    assert grown < held(DICTIONARY, tmp_path / "a.warc.zst") / 2


@pytest.mark.parametrize("status", ["200", "404"])
def test_an_index_of_long_lines_is_not_held(tmp_path: Path, status: str) -> None:
    """Some hundred kilobytes that would be 600 MB of addresses."""
    address = b"http://a.example/" + b"x" * MEGABYTE
    line = b'a) 2024 {"url": "%s", "status": "404", "offset": 0, "filename": "a"}\n' % address
    line = line.replace(b"404", status.encode())
    file = tmp_path / "i.cdxj.gz"
    file.write_bytes(packed([line] * 600))
    grown, found = measured(file, MEGABYTE)
    assert set(found) == {"missing file" if status == "200" else "status 404"}
    assert grown < held(LINES, file) / 2


# ---- zip files


def zip_with(file: Path, name: str, content: bytes, method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr(name, content)
    return file


ONE = gzip_members([page_record("http://a.example/", b"<p>1")]).content


def test_a_part_that_would_be_too_large_is_not_decompressed(tmp_path: Path) -> None:
    file = zip_with(tmp_path / "a.wacz", "archive/a.warc", b"\0" * 20 * MEGABYTE)
    assert reasons(read(file)) == ["archive too large"]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_part_that_lies_of_its_size_is_not_decompressed(tmp_path: Path, method: int) -> None:
    """What bzip2 and LZMA make of some bytes, Python would decompress at once, whatever is wanted of it."""
    file = zip_with(tmp_path / "a.wacz", "archive/a.warc", b"\0" * 20 * MEGABYTE, method)
    content = file.read_bytes().replace(struct.pack("<L", 20 * MEGABYTE), struct.pack("<L", 1_000))
    file.write_bytes(content)
    (failure,) = failures(read(file))
    assert (failure.reason, "compressed by method" in failure.detail) == ("unreadable file", True)


@pytest.mark.parametrize(
    "name",
    ["../../escaped.warc.gz", "/tmp/siteloom-escaped.warc.gz", "C:\\escaped.warc.gz", "a/../../b.warc.gz"],
)
def test_no_part_is_written_anywhere_but_to_a_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    file = zip_with(tmp_path / "a.wacz", name, ONE)
    (page,) = read(file)
    assert isinstance(page, Page)
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["a.wacz", "temporary", "work"]
    assert not Path("/tmp/siteloom-escaped.warc.gz").exists()


def test_a_link_in_a_zip_file_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secret.warc").write_bytes(page_record("http://secret.example/", b"<p>secret"))
    link = zipfile.ZipInfo("archive/a.warc")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.wacz", "w") as archive:
        archive.writestr(link, str(tmp_path / "secret.warc"))
    assert not [item for item in read(tmp_path / "a.wacz") if isinstance(item, Page)]


def test_the_same_bytes_under_many_names_are_damage(tmp_path: Path) -> None:
    file = tmp_path / "a.wacz"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.warc.gz", ONE)
        (first,) = archive.infolist()
        for number in range(50):
            other = zipfile.ZipInfo(f"{number}.warc.gz")
            for known in ("header_offset", "compress_size", "file_size", "CRC"):
                setattr(other, known, getattr(first, known))
            archive.filelist.append(other)
    assert reasons(read(file)) == ["damaged archive"]


def test_zip_files_in_zip_files_have_an_end(tmp_path: Path) -> None:
    file = zip_with(tmp_path / "0.wacz", "a.warc.gz", ONE)
    for number in range(1, 4):
        file = zip_with(tmp_path / f"{number}.wacz", "inner.wacz", file.read_bytes(), zipfile.ZIP_STORED)
    assert reasons(read(file)) == ["no archive"]


def test_other_archives_are_no_sources(tmp_path: Path) -> None:
    """Siteloom unpacks nothing but WACZ: a folder of someone else is unpacked by whoever reads it."""
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(__file__, "../escaped.html")
    with pytest.raises(Exception, match="Cannot tell what"):
        read(tmp_path / "a.tar.gz")


# ---- sitemaps


def test_a_sitemap_stops_at_the_limit() -> None:
    line = b"http://a.example/" + b"x" * 1_982 + b"\n"
    found = read_sitemap(packed([line * 1_000] * (MOST_BYTES // 2_000_000 + 2)))
    assert len(found.pages) == MOST_BYTES // 2_000 + 1  # of the last one there is only the beginning


def test_a_sitemap_resolves_no_entity(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("http://secret.example/", encoding="utf-8")
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 9))
    secret = os.fsencode(tmp_path / "secret").decode()
    body = f"""<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY l0 "http://a.example/">{laughs}
        <!ENTITY secret SYSTEM "file://{secret}">]>
        <urlset><url><loc>&l8;</loc></url><url><loc>&secret;</loc></url>
        <url><loc>http://a.example/1</loc></url></urlset>"""
    assert "secret" not in str(read_sitemap(body.encode()))
    assert len(str(read_sitemap(body.encode()))) < 1_000
