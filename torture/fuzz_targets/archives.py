"""Any bytes as a file of pages: WARC, WACZ, CDX, Parquet, JSON Lines, a folder with its index, a pack."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import shutil
import struct
import zipfile
import zlib
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from siteloom.core.errors import PackError, SiteloomError, SourceError
from siteloom.core.model import Failure, Page, Resource, Skipped
from siteloom.core.settings import PagesSettings
from siteloom.core.table_files import LARGEST_ROWS
from siteloom.sources import json_lines, warc
from siteloom.sources.cdx_index import Cdx
from siteloom.sources.html_folder import Folder, canonical_url
from siteloom.sources.json_lines import JsonLines
from siteloom.sources.open_sources import open_sources
from siteloom.sources.parquet import Parquet
from siteloom.sources.rows_to_seeds import read_seeds
from siteloom.sources.wacz import Wacz
from siteloom.sources.warc import Warc
from siteloom.store.packs.pack_file import PACK_MAGIC, Document, Pack, encode_block
from torture.fuzz_targets.cutting import Cutter, as_json, edited
from torture.fuzz_targets.target import Target, is_writable, scratch_folder, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    from siteloom.sources.page_source import PageSource, SourceItem

SETTINGS = PagesSettings(max_bytes=100_000)

# What fuzzers write is small, so parts of a file must be, too.
_SHARD_BYTES = 300


def _all_items(source: PageSource) -> list[SourceItem]:
    items = list(source.read())
    for item in items:
        assert isinstance(item, Page | Resource | Failure | Skipped)
        assert is_writable(item.url), item
        match item:
            case Page():
                assert item.url
                assert len(item.html) <= SETTINGS.max_bytes
                assert item.charset is None or is_writable(item.charset)
            case Failure():
                assert item.reason
                assert is_writable(item.detail), item
            case Resource():
                assert is_writable(item.media_type)
            case Skipped():
                assert is_writable(item.reason), item
    return items


@contextmanager
def _small_shards(module: ModuleType) -> Iterator[None]:
    usual = module._SHARD_BYTES  # noqa: SLF001
    module._SHARD_BYTES = _SHARD_BYTES  # type: ignore[attr-defined]  # noqa: SLF001
    try:
        yield
    finally:
        module._SHARD_BYTES = usual  # type: ignore[attr-defined]  # noqa: SLF001


def _record(url: str, block: bytes, kind: str = "response") -> bytes:
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Date: 2024-01-02T03:04:05Z\r\nWARC-Target-URI: {url}\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def _response(body: bytes, *headers: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", "Content-Type: text/html; charset=utf-8", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


RECORDS = (
    _record("", b"software: none\r\n", kind="warcinfo"),
    _record("http://a.example/1", _response(b"<p>one</p>")),
    _record("http://a.example/2", _response(gzip.compress(b"<p>two", mtime=0), "Content-Encoding: gzip")),
    _record(
        "http://a.example/3", _response(b"5\r\n<p>th\r\n2\r\nre\r\n0\r\n\r\n", "Transfer-Encoding: chunked")
    ),
    _record("http://a.example/4", _response(zlib.compress(b"<p>four"), "Content-Encoding: deflate")),
    _record("http://a.example/5", _response(zstandard.compress(b"<p>five"), "Content-Encoding: zstd")),
    _record("http://a.example/6.css", b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n\r\na{}"),
    _record("http://a.example/7", _response(b"<p>moved").replace(b"200 OK", b"301 Moved")),
    _record("http://a.example/8", b"", kind="revisit"),
)
_SUFFIXES = (".warc", ".warc.gz", ".warc.zst")


def _packed(content: bytes, how: int) -> tuple[str, bytes]:
    """The name and the bytes of an archive: as it is, or made a sound file of what is inside."""
    match how:
        case 0 | 1 | 2:
            return f"a{_SUFFIXES[how]}", content
        case 3:
            return "a.warc.gz", gzip.compress(content, mtime=0)
        case 4:
            parts = re.split(rb"(?=WARC/1\.[01]\r\n)", content)
            return "a.warc.gz", b"".join(gzip.compress(part, 1, mtime=0) for part in parts if part)
        case _:
            return "a.warc.zst", zstandard.compress(content)


def warc_file(data: bytes) -> None:
    """Pages and failures of any archive; the same whether it is read as a whole or in parts."""
    cut = Cutter(data)
    how = cut.number(6)
    name, content = _packed(cut.rest(), how)
    source = Warc(written(name, content), SETTINGS, with_resources=True)
    items = _all_items(source)
    with _small_shards(warc):
        shards = source.shards()
    assert [item for shard in shards for item in shard.read()] == items


def _warc_seeds() -> list[bytes]:
    whole = b"".join(RECORDS)
    sound = [bytes([how]) + content for how in (0, 3, 4, 5) for content in (whole, *RECORDS[1:])]
    members = b"".join(gzip.compress(record, mtime=0) for record in RECORDS[:4])
    return [*sound, b"\1" + members, b"\2" + zstandard.compress(whole)]


def wacz_file(data: bytes) -> None:
    """Pages and failures of any zip file."""
    cut = Cutter(data)
    how = cut.number(3)
    content = cut.rest()
    if how:
        inner = _zipped({"archive/data.warc": content, "datapackage.json": b"{}"})
        content = (
            inner if how == 1 else _zipped({"archive/a.wacz": inner, "../b.warc.gz": gzip.compress(content)})
        )
    source = Wacz(written("a.wacz", content), SETTINGS, with_resources=True)
    _all_items(source)
    for shard in source.shards():
        _all_items(shard)


def _zipped(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return packed.getvalue()


def _wacz_seeds() -> list[bytes]:
    whole = b"".join(RECORDS[:3])
    raw = _zipped({"archive/data.warc": whole, "archive/b.warc.gz": gzip.compress(whole, mtime=0)})
    return [b"\0" + raw, b"\1" + whole, b"\2" + whole]


CDX = (
    b" CDX N b a m s k r M S V g\n"
    b"example,a)/1 20240102030405 http://a.example/1 text/html 200 AAAA - - %d %d a.warc\n"
    b'example,a)/1 20240102030405 {"url": "http://a.example/1", "mime": "text/html", "status": "200", '
    b'"length": "%d", "offset": "%d", "filename": "a.warc"}\n'
    b'!meta 0 {}\nexample,a)/2 2024 {"url": "http://a.example/2", "offset": 0, "filename": "../../a.warc"}\n'
)


def cdx_file(data: bytes) -> None:
    """Pages and failures of any index, of which no line makes it read what it should not."""
    cut = Cutter(data)
    name = cut.choice(("a.cdx", "a.cdxj", "cdx-00000.gz"))
    content = cut.rest()
    written("a.warc", b"".join(RECORDS))
    path = written(name, gzip.compress(content) if name.endswith("gz") else content)
    source = Cdx(str(path), SETTINGS, with_resources=True)
    items = _all_items(source)
    assert [item for shard in source.shards() for item in shard.read()] == items


def _cdx_seeds() -> list[bytes]:
    start, length = len(RECORDS[0]), len(RECORDS[1])
    lines = CDX % (length, start, length, start)
    return [bytes([number]) + lines for number in range(3)]


_LINK_NAMES = ("a.warc", "archive", "b.html", "index.csv", "sub", "c.jsonl", "i.cdxj")
_LINK_TARGETS = ("../private/secret.warc", "../private", "/dev/zero", ".", "..", "a.html", "sub/a.warc")


def linked_folder(data: bytes) -> None:
    """No link of a folder leads out of it, be it its pages that are read, its index or what matches."""
    cut = Cutter(data)
    private, folder = scratch_folder() / "private", scratch_folder() / "unpacked"
    private.mkdir(exist_ok=True)
    for name in ("secret.warc", "a.warc"):
        (private / name).write_bytes(_record("http://secret.example/", _response(b"secret")))
    (private / "b.html").write_bytes(b"secret")
    (private / "c.jsonl").write_bytes(b'{"url": "http://secret.example/", "html": "secret"}')
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "a.html").write_bytes(b"<p>one")
    for _ in range(cut.number(5)):
        link = folder / cut.choice(_LINK_NAMES)
        if not link.is_symlink():
            link.symlink_to(cut.choice(_LINK_TARGETS))
    named = cut.choice(("a.warc", "sub/a.warc", "sub/secret.warc", "secret.warc", "archive/a.warc"))
    index = folder / "index.cdxj"
    index.write_text(f'a) 2024 {{"url": "http://a.example/1", "offset": 0, "filename": "{named}"}}\n')
    for location in (str(folder), str(index), f"{folder}/**/*", f"{folder}/*.cdxj", f"file://{folder}/"):
        try:
            items = [item for source in open_sources([location], SETTINGS) for item in source.read()]
        except SourceError:
            continue
        assert not any(isinstance(item, Page) and item.html == b"secret" for item in items), location


_LINKED = [bytes([count, *choices]) for count in (1, 2, 4) for choices in (range(8), b"\0\0\4\1\1\3")]

_LIST = b"# sources\na.jsonl\n\nmemory://x/a.warc\nsub/*.jsonl\n/dev/zero\nfile:///etc/passwd\n"


_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "txt": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
}


def source_list(data: bytes) -> None:
    """The sources of a list, which may be compressed, or one sentence that says what is wrong with it."""
    cut = Cutter(data)
    name = cut.choice(("list.txt", "list.gz", "list.bz2", "list.xz", "list.zst"))
    is_sound = cut.number(2) == 1
    content = cut.rest()
    if is_sound:
        content = _PACKERS[name.partition(".")[2]](content)
    written("a.jsonl", b"")
    told = ""
    try:
        open_sources([f"@{written(name, content)}"], SETTINGS)
    except SiteloomError as error:
        told = str(error)
    assert is_writable(told)


def table_of_records(data: bytes) -> None:
    """Known records of any table, nested or not, of which no row is larger than what is read."""
    cut = Cutter(data)
    content = cut.rest() if cut.number(2) == 0 else _table(cut)
    with suppress(SourceError):
        for seed in read_seeds(str(written("s.parquet", content)), on_problem=lambda _: None):
            assert sum(len(text) for texts in seed.values.values() for text in texts) <= LARGEST_ROWS


def json_lines_file(data: bytes) -> None:
    """A page or a failure for each line, the same whether read as a whole or in parts."""
    cut = Cutter(data)
    match cut.number(4):
        case 0:
            name, content = "a.jsonl", cut.rest()
        case 1:
            name, content = "a.jsonl.gz", cut.rest()
        case 2:
            name, content = "a.jsonl.zst", zstandard.compress(cut.rest())
        case _:
            rows = edited(_ROWS, cut, 12)
            listed = rows if isinstance(rows, list) else [rows]
            name, content = "a.jsonl", b"\n".join(as_json(row).encode() for row in listed)
    source = JsonLines(written(name, content), SETTINGS)
    items = _all_items(source)
    with _small_shards(json_lines):
        shards = source.shards()
    assert [item for shard in shards for item in shard.read()] == items


_ROWS = [
    {"url": "http://a.example/1", "html": "<p>one", "fetched_at": "2024-01-02T03:04:05+01:00"},
    {"url": " http://a.example/2 ", "html": "<p>two \ud800", "fetched_at": 1_700_000_000.5},
    {"url": "http://a.example/3", "html": "", "fetched_at": None},
]


def _json_lines_seeds() -> list[bytes]:
    lines = b"\n".join(json.dumps(row).encode() for row in _ROWS)
    return [b"\0" + lines, b"\1" + gzip.compress(lines, mtime=0), b"\2" + lines, b"\3", b"\3\1\1\1\0\7"]


_TYPES: tuple[Any, ...] = (
    *(pa.string(), pa.binary(), pa.large_string(), pa.int64(), pa.float64()),
    *(
        pa.timestamp("ns"),
        pa.timestamp("s", tz="Europe/Paris"),
        pa.timestamp("us", tz="No/Where"),
    ),
    *(
        pa.date32(),
        pa.bool_(),
        pa.list_(pa.string()),
        pa.null(),
        pa.duration("s"),
    ),
    *(pa.dictionary(pa.int32(), pa.string()), pa.time64("ns"), pa.decimal128(38, 3)),
)


def parquet_file(data: bytes) -> None:
    """A page or a failure for each row of any table, and of any damage to the file."""
    cut = Cutter(data)
    content = cut.rest() if cut.number(2) == 0 else _table(cut)
    path = written("a.parquet", content)
    try:
        source = Parquet.open(path, SETTINGS)
    except SourceError:
        return
    items = _all_items(source)
    assert [item for shard in source.shards() for item in shard.read()] == items


def _table(cut: Cutter) -> bytes:
    """A sound file with columns of any type and any value, of which some bytes are then changed."""
    rows = 1 + cut.number(5)
    columns = {
        cut.choice((name, name, name, "other")): _column(cut.choice(_TYPES), rows, cut)
        for name in ("url", "html", "fetched_at")
    }
    packed = io.BytesIO()
    try:
        pq.write_table(
            pa.table(columns),
            packed,
            row_group_size=1 + cut.number(3),
            compression=cut.choice(("none", "zstd")),
        )
    except pa.ArrowException:  # a value that the format cannot hold
        return b""
    content = bytearray(packed.getvalue())
    for _ in range(cut.number(4)):
        place = int.from_bytes(cut.piece()[:4]) % len(content)
        content[place] = cut.number(256)
    return bytes(content)


def _column(kind: Any, rows: int, cut: Cutter) -> Any:
    raw = [cut.piece() for _ in range(rows)]
    texts = [piece.decode("utf-8", "replace") for piece in raw]
    numbers = [int.from_bytes(piece[:8], signed=True) for piece in raw]
    for values in (texts, raw, numbers, [bool(number) for number in numbers], [[text] for text in texts]):
        try:
            return pa.array(values, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue
    try:
        return pa.array(numbers, pa.int64()).cast(kind)
    except pa.ArrowException:
        return pa.nulls(rows, kind)


def _parquet_seeds() -> list[bytes]:
    table = pa.table(
        {
            "url": ["http://a.example/1", "http://a.example/2"],
            "html": [b"<p>one", b"<p>two"],
            "fetched_at": pa.array([0, 10**15], pa.timestamp("us", tz="UTC")),
        }
    )
    raw = io.BytesIO()
    pq.write_table(table, raw)
    kinds = [
        bytes([1, 2, 0, 0, 0, kind, 0, 1, 0, kind]) + b"\x03abc\x08\x7fabcdefg" * 4 for kind in range(16)
    ]
    return [b"\0" + raw.getvalue(), *kinds]


def folder_of_pages(data: bytes) -> None:
    """Pages and failures of a folder with any index, and any page that names its own address."""
    cut = Cutter(data)
    index = cut.number(2) == 1
    content = cut.rest()
    folder = scratch_folder() / "folder"
    folder.mkdir(exist_ok=True)
    (folder / "1.html").write_bytes(b"<p>one" if index else content)
    (folder / "index.csv").write_bytes(content if index else b"file,url\n")
    canonical_url(Page("file:///x.html", content))
    try:
        source = Folder.open(folder, SETTINGS)
    except SourceError:
        return
    items = _all_items(source)
    assert [item for shard in source.shards() for item in shard.read()] == items


_FOLDER_SEEDS = (
    b'\0<head><base href=http://a.example/><link rel="x canonical" href=" /1 ">',
    b'\1file,url,fetched_at\n1.html,http://a.example/1,2024-01-02\n../x,http://b/,\n"a\nb",c,d\n,,\n',
)


@cache
def _block() -> bytes:
    documents = [
        Document(f"http://a.example/{number}", b"<p>%d" % number, "text/html", "utf-8", None)
        for number in range(3)
    ]
    return encode_block(documents)


def pack_file(data: bytes) -> None:
    """The documents of a pack, or what is wrong with it; also if its checksums are right."""
    cut = Cutter(data)
    if cut.number(2):
        entries = edited(json.loads(_index()), cut)
        parts = [zstandard.compress(as_json(entries).encode()), zstandard.compress(cut.rest())]
        if cut.number(2):
            parts[cut.number(2)] = cut.rest()
        header = struct.pack("<4sIII", b"SLBK", len(parts[0]), len(parts[1]), zlib.crc32(b"".join(parts)))
        content = PACK_MAGIC + header + b"".join(parts)
    else:
        content = cut.rest()
    path = written("1.pack", content)
    pack = Pack(path.parents[1], f"{path.parent.name}/{path.name}")
    try:
        for offset, documents in pack.blocks():
            assert pack.document(offset, 0) == documents[0] if documents else True
    except PackError:
        pass
    finally:
        pack.close()


def _index() -> bytes:
    length = struct.unpack_from("<4sIII", _block())[1]
    return zstandard.decompress(_block()[16 : 16 + length])


def _pack_seeds() -> Sequence[bytes]:
    return [b"\0" + PACK_MAGIC + _block() + _block(), b"\1", b"\1\1\1\1\0\3abc", b"\1\0\0\0<p>0<p>1<p>2"]


TARGETS = (
    Target(
        warc_file,
        _warc_seeds,
        [b"WARC/1.0\r\n", b"\r\n\r\n", b"Content-Length: ", b"HTTP/1.1 200", b"\x1f\x8b\x08"],
    ),
    Target(wacz_file, _wacz_seeds, [b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"WARC/1.0\r\n"]),
    Target(
        cdx_file,
        _cdx_seeds,
        [b'"offset"', b'"length"', b'"filename"', b"a.warc", b" CDX ", b"file:///", b"../"],
    ),
    Target(linked_folder, lambda: _LINKED),
    Target(source_list, lambda: [bytes([name, 1]) + _LIST for name in range(5)], [b"memory://", b"*", b"#"]),
    Target(table_of_records, _parquet_seeds, [b"PAR1"]),
    Target(json_lines_file, _json_lines_seeds, [b'"url"', b'"html"', b'"fetched_at"', b"\\ud800", b"1e999"]),
    Target(parquet_file, _parquet_seeds, [b"PAR1"]),
    Target(
        folder_of_pages,
        lambda: _FOLDER_SEEDS,
        [b"<link rel=canonical href=", b"<base href=", b"file,url", b'"'],
    ),
    Target(pack_file, _pack_seeds, [PACK_MAGIC, b"SLBK"]),
)
