"""WACZ files: WARC files in a zip file, whole, damaged and hostile."""

from __future__ import annotations

import io
import pickle
import random
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.model import Failure, Page
from siteloom.sources.open_sources import open_source, open_sources
from siteloom.sources.page_source import SourceItem
from tests.sources.reading import pages, read, read_content, reasons
from tests.sources.warc_records import gzip_members, http, page_record, plain, record, warcinfo

FIRST = gzip_members(
    [warcinfo(), page_record("http://a.example/1", b"<p>1"), page_record("", b"<p>")]
).content
SECOND = plain([page_record("http://a.example/2", b"<p>2")]).content


def wacz(*members: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A zip file with these members, and what others WACZ files have."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("datapackage.json", "{}")
        archive.writestr("pages/pages.jsonl", '{"format": "json-pages-1.0"}\n')
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


WHOLE = (("archive/a.warc.gz", FIRST), ("archive/b.warc", SECOND))


def urls(items: Sequence[SourceItem]) -> list[str]:
    return [page.url for page in pages(list(items))]


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_all_its_warc_files_are_read(compression: int, tmp_path: Path, temporary: Path) -> None:
    path = tmp_path / "a.WACZ"
    path.write_bytes(wacz(*WHOLE, compression=compression))
    items = read(path)
    assert [page.html for page in pages(items)] == [b"<p>1", b"<p>2"]
    (failure,) = (item for item in items if isinstance(item, Failure))
    assert failure.reason == "no URL"
    assert failure.url.startswith(f"{path}/archive/a.warc.gz, byte ")
    assert str(temporary) not in str(items)
    assert list(temporary.iterdir()) == []


def test_shards_are_its_warc_files(tmp_path: Path) -> None:
    path = tmp_path / "a.wacz"
    path.write_bytes(wacz(*WHOLE))
    shards = open_source(path).shards()
    read_apart = [list(pickle.loads(pickle.dumps(shard)).read()) for shard in shards]
    assert [urls(items) for items in read_apart] == [["http://a.example/1"], ["http://a.example/2"]]
    assert [item for items in read_apart for item in items] == read(path)
    assert [one for shard in shards for one in shard.shards()] == list(shards)


def test_stylesheets_are_read_if_they_are_wanted(tmp_path: Path) -> None:
    style = record("http://a.example/s.css", http(b"a{}", media_type="text/css"))
    path = tmp_path / "a.wacz"
    path.write_bytes(wacz(("archive/a.warc", style)))
    (found,) = read(path, with_resources=True)
    assert found.url == "http://a.example/s.css"


def test_a_pattern_finds_it(tmp_path: Path) -> None:
    (tmp_path / "a.wacz").write_bytes(wacz(*WHOLE))
    (source,) = open_sources([f"{tmp_path}/*"])
    assert urls(list(source.read())) == ["http://a.example/1", "http://a.example/2"]


def test_a_collection_has_others_in_it_but_not_without_end() -> None:
    inner = wacz(*WHOLE)
    items = read_content("a.wacz", wacz(("b.wacz", inner), ("archive/c.warc", SECOND)))
    assert urls(items) == ["http://a.example/1", "http://a.example/2", "http://a.example/2"]
    assert any("a.wacz/b.wacz/archive/a.warc.gz" in item.url for item in items if isinstance(item, Failure))
    deepest = read_content("a.wacz", wacz(("b.wacz", wacz(("c.wacz", inner)))))
    assert reasons(deepest) == ["no archive"]


# ---- damaged and hostile files


def test_what_is_no_zip_file_is_a_failure() -> None:
    for content in (b"", b"nothing", wacz(*WHOLE)[:-30]):
        assert reasons(read_content("a.wacz", content))[:1] == ["unreadable file"]


def test_one_without_warc_files_is_a_failure() -> None:
    assert reasons(read_content("a.wacz", wacz(("archive/readme.txt", b"nothing")))) == ["no archive"]


def test_of_a_damaged_member_the_start_is_read() -> None:
    many = plain([page_record(f"http://a.example/{number}", b"<p>" * 100) for number in range(1_000)]).content
    content = bytearray(wacz(("archive/a.warc", many), ("archive/b.warc", SECOND)))
    content[content.rindex(b"<p><p>")] ^= 1  # which no header of a WARC record would tell
    items = read_content("a.wacz", bytes(content))
    assert urls(items)[:800] == [f"http://a.example/{number}" for number in range(800)]
    assert "http://a.example/999" not in urls(items)
    assert reasons(items)[-1] == "damaged archive"
    assert urls(items)[-1] == "http://a.example/2"


def test_a_file_that_lost_its_start_is_a_failure() -> None:
    assert "damaged archive" in reasons(read_content("a.wacz", wacz(*WHOLE)[200:]))


def test_an_encrypted_member_is_a_failure_and_the_next_is_read() -> None:
    content = bytearray(wacz(*WHOLE))
    central = content.rindex(b"PK\x01\x02", 0, content.rindex(b"archive/a.warc.gz"))
    local = content.index(b"archive/a.warc.gz") - 30
    content[central + 8] |= 1
    content[local + 6] |= 1
    items = read_content("a.wacz", bytes(content))
    assert urls(items) == ["http://a.example/2"]
    assert reasons(items) == ["damaged archive"]


def test_a_zip_bomb_is_not_unpacked(temporary: Path) -> None:
    bomb = wacz(("archive/a.warc", b"\0" * 10_000_000), compression=zipfile.ZIP_DEFLATED)
    (failure,) = read_content("a.wacz", bomb)
    assert isinstance(failure, Failure)
    assert failure.reason == "archive too large"
    assert "10,000,000 bytes when decompressed" in failure.detail


def test_a_zip_bomb_within_another_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    def badly(*_: object) -> object:
        """Compresses a byte to a bit, so that what comes of it can be compressed again."""
        return zlib.compressobj(wbits=-zlib.MAX_WBITS, strategy=zlib.Z_HUFFMAN_ONLY)

    noise = random.Random(0).randbytes(20_000)  # so that neither is a hundred times smaller by itself
    with monkeypatch.context() as patched:
        patched.setattr(zipfile, "_get_compressor", badly)
        bomb = (("archive/a.warc", b"\0" * 10_000_000), ("noise", noise))
        inner = wacz(*bomb, compression=zipfile.ZIP_DEFLATED)
    outer = wacz(("b.wacz", inner), compression=zipfile.ZIP_DEFLATED)
    assert len(inner) < 100 * len(outer)
    assert len(outer) < 30_000
    (failure,) = read_content("a.wacz", outer)
    assert isinstance(failure, Failure)
    assert failure.reason == "archive too large"
    assert "a.wacz/b.wacz/archive/a.warc" in failure.url


def test_members_that_overlap_are_not_unpacked() -> None:
    content = wacz(("archive/a.warc", SECOND * 20))
    # The central directory once more, so that the same bytes stand under two names.
    end = content.rindex(b"PK\x05\x06")
    start = content.index(b"PK\x01\x02")
    entry = content[content.rindex(b"PK\x01\x02") : end]
    count = 4
    directory = content[start:end] + entry
    tail = bytearray(content[end:])
    tail[8:12] = count.to_bytes(2, "little") * 2
    tail[12:16] = len(directory).to_bytes(4, "little")
    items = read_content("a.wacz", content[:start] + directory + bytes(tail))
    assert set(reasons(items)) == {"damaged archive"}
    assert urls(items) == []


def test_a_name_that_leads_elsewhere_writes_nothing_there(tmp_path: Path, temporary: Path) -> None:
    path = tmp_path / "a.wacz"
    path.write_bytes(wacz(("../../../evil.warc", SECOND), ("/abs/evil.warc", SECOND)))
    assert urls(read(path)) == ["http://a.example/2"] * 2
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["a.wacz", "temporary"]


@given(st.integers(0, len(wacz(*WHOLE)) - 1), st.integers(1, 255))
def test_any_damage_is_a_failure_or_nothing(position: int, change: int) -> None:
    content = bytearray(wacz(*WHOLE))
    content[position] ^= change
    for item in read_content("a.wacz", bytes(content)):
        assert isinstance(item, Page) or item.url
