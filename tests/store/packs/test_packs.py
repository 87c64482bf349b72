"""Packs by themselves: no database is needed to read one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.apps.demo.sites import guide_site
from siteloom.core.errors import PackError, StoreError
from siteloom.store.packs.pack_file import PACK_MAGIC, Document, Pack, PackAppender, encode_block
from tests.store.helpers import opened_pack

ONE = Document("http://a.example/1", b"<p>one</p>", "text/html", "utf-8", datetime(2025, 1, 2, tzinfo=UTC))
TWO = Document("http://a.example/2", b"", "text/html", None, None)
STYLE = Document("http://a.example/s.css", b"p{}", "text/css", None, None)

any_document = st.builds(
    Document,
    url=st.text(st.characters(codec=None)),
    body=st.binary(max_size=300),
    media_type=st.text(max_size=20),
    charset=st.none() | st.text(max_size=20),
    fetched_at=st.none() | st.datetimes(timezones=st.just(UTC) | st.just(timezone(timedelta(hours=-7)))),
)


def append(path: Path, committed: int, documents: Sequence[Document]) -> tuple[int, int]:
    """Append a block; returns where it begins and the new length."""
    appender = PackAppender(path.parents[1])
    name = f"{path.parent.name}/{path.name}"
    place = appender.append(name, committed, encode_block(documents))
    appender.sync()
    return place


def write(path: Path, *blocks: Sequence[Document]) -> tuple[list[int], int]:
    """Make a pack; returns where its blocks begin, and its length."""
    offsets, committed = [], 0
    for documents in blocks:
        offset, committed = append(path, committed, documents)
        offsets.append(offset)
    return offsets, committed


def read(path: Path, until: int) -> list[tuple[int, tuple[Document, ...]]]:
    with closing(opened_pack(path)) as pack:
        return list(pack.blocks(until))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "packs" / "a.example" / "000001.pack"


@pytest.fixture
def pack(path: Path) -> Iterator[Pack]:
    """A pack with two blocks."""
    write(path, [ONE, TWO], [STYLE])
    with closing(opened_pack(path)) as opened:
        yield opened


@given(st.lists(st.lists(any_document, min_size=1, max_size=6), min_size=1, max_size=4))
def test_whatever_is_put_into_a_pack_comes_out_again_in_any_order(blocks: list[list[Document]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "1.pack"
        offsets, end = write(path, *blocks)
        assert path.stat().st_size == end
        with closing(opened_pack(path)) as pack:
            assert list(pack.blocks(end)) == [
                (offset, tuple(documents)) for offset, documents in zip(offsets, blocks, strict=True)
            ]
            places = [
                (o, s) for o, documents in zip(offsets, blocks, strict=True) for s in range(len(documents))
            ]
            found = {place: pack.document(*place) for place in reversed(places)}
        assert [found[place] for place in places] == [d for documents in blocks for d in documents]


def test_a_pack_is_read_without_a_database_from_its_size_alone(path: Path) -> None:
    offsets, _ = write(path, [ONE, TWO], [STYLE])
    assert read(path, path.stat().st_size) == [(offsets[0], (ONE, TWO)), (offsets[1], (STYLE,))]


def test_only_the_blocks_before_the_committed_end_are_read(path: Path) -> None:
    offsets, _ = write(path, [ONE], [TWO])
    assert read(path, offsets[1]) == [(offsets[0], (ONE,))]


def test_pages_of_one_template_shrink_far_more_together_than_alone() -> None:
    documents = [
        Document(made.page.url, made.page.html, "text/html", None, None) for made in guide_site()[:64]
    ]
    together = len(encode_block(documents))
    assert together * 2 < sum(len(encode_block([document])) for document in documents)
    assert together * 8 < sum(len(document.body) for document in documents)


def test_what_stands_behind_the_committed_bytes_is_cut_off_by_the_next_append(path: Path) -> None:
    _, committed = write(path, [ONE])
    with path.open("ab") as file:
        file.write(b"garbage" * 10_000)
    offset, end = append(path, committed, [STYLE])
    assert (offset, end) == (committed, path.stat().st_size)
    assert [documents for _, documents in read(path, end)] == [(ONE,), (STYLE,)]


@pytest.mark.parametrize("kept", [0, 1, 5, 16, 40])
def test_a_half_written_block_is_cut_off_by_the_next_append(path: Path, kept: int) -> None:
    _, committed = write(path, [ONE])
    with path.open("ab") as file:
        file.write(encode_block([TWO, TWO, TWO])[:kept])
    _, end = append(path, committed, [STYLE])
    assert [documents for _, documents in read(path, end)] == [(ONE,), (STYLE,)]


def test_a_pack_that_was_never_committed_is_begun_anew(path: Path) -> None:
    write(path, [ONE], [TWO])
    offset, end = append(path, 0, [STYLE])
    assert offset == len(PACK_MAGIC)
    assert read(path, path.stat().st_size) == [(offset, (STYLE,))]
    assert end == path.stat().st_size


def test_nothing_is_appended_to_a_pack_that_lost_committed_bytes(path: Path) -> None:
    _, committed = write(path, [ONE])
    with path.open("r+b") as file:
        file.truncate(committed - 1)
    with pytest.raises(PackError, match=f"is shorter than the {committed} bytes"):
        append(path, committed, [TWO])
    assert path.stat().st_size == committed - 1


def test_a_pack_that_is_gone_is_not_begun_anew_behind_the_tables_back(path: Path) -> None:
    _, committed = write(path, [ONE])
    path.unlink()
    with pytest.raises(PackError, match="is gone"):
        append(path, committed, [TWO])
    assert not path.exists()


def test_a_place_that_cannot_be_written_is_named_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.example").write_text("a file where the folder should be")
    with pytest.raises(StoreError, match=r"000001\.pack cannot be written: .+\.$"):
        append(tmp_path / "a.example" / "000001.pack", 0, [ONE])


def test_a_flip_of_any_byte_is_noticed(path: Path) -> None:
    _, end = write(path, [ONE, TWO], [STYLE])
    whole = path.read_bytes()
    for position in range(end):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(whole)
            damaged[position] ^= flip
            path.write_bytes(damaged)
            with pytest.raises(PackError, match=r"000001\.pack"):
                read(path, end)


READ_WITH_LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
from siteloom.core.errors import PackError
from siteloom.store.packs.pack_file import Pack
resource.setrlimit(resource.RLIMIT_AS, (1_000_000_000, 1_000_000_000))
try:
    list(Pack(Path(sys.argv[1]), sys.argv[2]).blocks(int(sys.argv[3])))
except PackError as error:
    print(error)
"""


def test_a_damaged_header_that_speaks_of_gigabytes_does_not_ask_for_them(path: Path) -> None:
    _, end = write(path, [ONE])
    content = bytearray(path.read_bytes())
    content[len(PACK_MAGIC) + 7] = 0x7F  # the highest byte of the index's length
    path.write_bytes(content)
    command = [
        sys.executable,
        "-c",
        READ_WITH_LITTLE_MEMORY,
        str(path.parents[1]),
        "a.example/000001.pack",
        str(end),
    ]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "ends before byte" in told


def test_a_cut_at_any_byte_is_noticed(path: Path) -> None:
    _, end = write(path, [ONE, TWO], [STYLE])
    for length in reversed(range(end)):
        with path.open("r+b") as file:
            file.truncate(length)
        with pytest.raises(PackError, match=r"000001\.pack"):
            read(path, end)


def test_a_slot_that_is_not_there_is_named(pack: Pack) -> None:
    with pytest.raises(PackError, match="has no slot 2 in the block at byte 8"):
        pack.document(len(PACK_MAGIC), 2)


def test_an_offset_where_no_block_begins_is_named(pack: Pack) -> None:
    with pytest.raises(PackError, match="has no block at byte 9"):
        pack.document(len(PACK_MAGIC) + 1, 0)


def test_a_file_that_is_no_pack_is_refused(tmp_path: Path) -> None:
    (tmp_path / "1.pack").write_bytes(b"<html>" * 100)
    with pytest.raises(PackError, match="is no pack file"):
        read(tmp_path / "1.pack", 600)


def test_a_pack_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PackError, match=r"1\.pack cannot be opened: No such file"):
        opened_pack(tmp_path / "1.pack")


def test_several_threads_read_one_pack_at_once(path: Path) -> None:
    blocks = [
        [Document(f"{b}/{s}", b"%d %d" % (b, s), "text/html", None, None) for s in range(8)]
        for b in range(12)
    ]
    offsets, _ = write(path, *blocks)
    places = [(b, s) for s in range(8) for b in range(12)] * 10
    with closing(opened_pack(path)) as pack, ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda place: pack.document(offsets[place[0]], place[1]), places))
    assert found == [blocks[b][s] for b, s in places]
