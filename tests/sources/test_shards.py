"""Sources in parts: together they give what the whole gives, however small and whatever is damaged."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.model import Failure
from siteloom.core.settings import PagesSettings
from siteloom.sources import html_folder, json_lines, parquet, warc
from siteloom.sources.open_sources import open_source
from siteloom.sources.page_source import PageSource, SourceItem
from tests.sources.reading import failures, pages, read_content
from tests.sources.warc_records import KINDS, http, page_record, record, warcinfo

MAX_BYTES = 60_000


def shards_as_good_as_the_whole(source: PageSource) -> Sequence[PageSource]:
    """The shards of a source, after sending them to another process and reading them all."""
    shards = source.shards()
    sent: list[PageSource] = pickle.loads(pickle.dumps(list(shards)))
    assert [item for shard in sent for item in shard.read()] == list(source.read())
    assert sent == list(shards)
    assert all(list(shard.shards()) == [shard] for shard in sent)
    return shards


@contextmanager
def source_of(name: str, content: bytes) -> Iterator[PageSource]:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, name)
        path.write_bytes(content)
        yield open_source(path, PagesSettings(MAX_BYTES))


def number_of_shards(name: str, content: bytes) -> int:
    with source_of(name, content) as source:
        return len(shards_as_good_as_the_whole(source))


@pytest.fixture(autouse=True, scope="module")
def small_shards() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html_folder, "_FILES_PER_SHARD", 3)
        patch.setattr(json_lines, "_SHARD_BYTES", 50)
        patch.setattr(parquet, "_ROWS_PER_SHARD", 5)
        patch.setattr(warc, "_SHARD_BYTES", 50_000)
        yield


def damaged(content: bytes, damage: str, chance: random.Random) -> bytes:
    start = chance.randrange(len(content))
    match damage:
        case "flipped":
            return content[:start] + chance.randbytes(1) + content[start + 1 :]
        case "cut off":
            return content[: start + 1]
        case "lost":
            return content[:start] + content[start + chance.randrange(1, 20_000) :] or b"x"
        case "added":
            return content[:start] + chance.randbytes(chance.randrange(1, 20_000)) + content[start:]
    return content


damages = st.sampled_from(["none", "flipped", "cut off", "lost", "added"])
chances = st.integers(0, 2**32).map(random.Random)


# Folders


def test_a_folder_is_split_into_files_and_each_failure_comes_once(tmp_path: Path) -> None:
    for name in ("a.html", "b.html", "c/d.html", "c/e.html", "f.html", "g.html", "z/h.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "dangling.html").symlink_to("nowhere")
    (tmp_path / "index.csv").write_text(
        "file,url,fetched_at\n"
        "g.html,http://a.example/g,2024-01-02\n"
        "f.html,,\n"
        "missing.html,http://a.example/missing,\n"
        "b.html,http://a.example/b1,\n"
        "b.html,http://a.example/b2,\n"
    )
    # A folder that cannot be listed: its path is longer than the system allows.
    below = os.open(tmp_path, os.O_RDONLY)
    for _ in range(17):
        os.mkdir("d" * 250, dir_fd=below)
        above, below = below, os.open("d" * 250, os.O_RDONLY, dir_fd=below)
        os.close(above)
    os.close(below)
    source = open_source(tmp_path)
    shards = shards_as_good_as_the_whole(source)
    assert [len(list(shard.read())) for shard in shards] == [3, 3, 3, 2]
    assert [failure.reason for failure in failures(list(source.read()))] == [
        "no URL",
        "unreadable file",
        "unreadable file",
        "unreadable folder",
    ]


@pytest.mark.parametrize("files", [1, 2, 3, 4, 6, 7])
def test_shards_of_a_folder_are_of_equal_size(tmp_path: Path, files: int) -> None:
    for number in range(files):
        (tmp_path / f"{number}.html").write_text("x")
    assert len(shards_as_good_as_the_whole(open_source(tmp_path))) == -(-files // 3)


def test_a_folder_that_goes_away_is_one_failure(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "a.html").write_text("x")
    source = open_source(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    assert len(shards_as_good_as_the_whole(source)) == 1


def test_a_single_html_file_is_one_shard() -> None:
    assert number_of_shards("a.html", b"<p>") == 1


# JSON Lines

GOOD_LINE = json.dumps({"url": "http://a.example/", "html": "<p>é"}).encode()


@given(
    st.lists(
        st.just(GOOD_LINE) | st.sampled_from([b"", b" ", b"\r", b"nonsense", b"{}"]) | st.binary(max_size=90),
        max_size=12,
    ),
    st.booleans(),
)
def test_any_lines_are_split(lines: list[bytes], ends: bool) -> None:
    number_of_shards("a.jsonl", b"\n".join(lines) + b"\n" * ends)


def test_lines_are_split_and_keep_their_numbers() -> None:
    content = (GOOD_LINE + b"\n") * 10 + b"nonsense\n"
    assert number_of_shards("a.jsonl", content) == 11
    with source_of("a.jsonl", content) as source:
        (failure,) = source.shards()[-1].read()
        assert failure.url.endswith("a.jsonl:11")


def test_a_line_over_the_limit_belongs_to_the_shard_it_begins_in(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD_LINE + b"\n" + b"x" * 5_000 + b"\n" + (GOOD_LINE + b"\n") * 2 + b"y" * 3_000)
    shards = shards_as_good_as_the_whole(open_source(path, PagesSettings(100)))
    assert [failure.url for shard in shards for failure in failures(list(shard.read()))] == [
        f"{path}:2",
        f"{path}:5",
    ]


@pytest.mark.parametrize("content", [gzip.compress((GOOD_LINE + b"\n") * 99), b"", b"no gzip" * 99])
def test_compressed_lines_are_one_shard(content: bytes) -> None:
    assert number_of_shards("a.jsonl.gz", content) == 1


@pytest.mark.parametrize("name", ["a.jsonl", "a.warc", "a.parquet"])
def test_a_file_that_goes_away_is_one_shard_with_one_failure(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"x" * 60_000)
    source = open_source(path)
    path.unlink()
    (shard,) = shards_as_good_as_the_whole(source)
    assert len(failures(list(shard.read()))) == 1


def test_a_pipe_is_not_read_to_split_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    source = open_source(tmp_path / "a.jsonl")
    assert list(source.shards()) == [source]


@pytest.mark.parametrize("name", ["a.jsonl", "a.warc", "a.parquet"])
def test_a_file_that_shrinks_after_it_was_split_never_raises(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "a.parquet":
        pq.write_table(table(20), path, row_group_size=2)
    else:
        path.write_bytes(
            {"a.jsonl": GOOD_LINE + b"\n", "a.warc": page_record("http://a/", b"<p>")}[name] * 999
        )
    *_, last = open_source(path).shards()
    if name == "a.parquet":
        pq.write_table(table(2), path)
    else:
        path.write_bytes(path.read_bytes()[:500])
    assert not pages(list(last.read()))


# Parquet


def table(rows: int) -> pa.Table:
    return pa.table(
        {
            "url": [f"http://a.example/{n}" if n % 7 else None for n in range(rows)],
            "html": [f"<p>{n} " + "x" * 50 for n in range(rows)],
        }
    )


def parquet_file(rows: int, group_rows: int) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table(rows), sink, row_group_size=group_rows, compression="zstd")
    return bytes(sink.getvalue())


@pytest.mark.parametrize(
    ("rows", "group_rows", "shards"), [(0, 5, 1), (4, 5, 1), (20, 20, 1), (20, 5, 4), (20, 2, 4), (21, 2, 4)]
)
def test_row_groups_are_split_and_small_ones_put_together(rows: int, group_rows: int, shards: int) -> None:
    assert number_of_shards("a.parquet", parquet_file(rows, group_rows)) == shards


@given(st.integers(1, 40), st.integers(1, 10), chances)
def test_damaged_row_groups_are_split(rows: int, group_rows: int, chance: random.Random) -> None:
    content = parquet_file(rows, group_rows)
    body = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    number_of_shards("a.parquet", damaged(content[:body], "flipped", chance) + content[body:])


def test_a_damaged_row_group_does_not_cost_the_others() -> None:
    content = bytearray(parquet_file(30, 10))
    html = pq.read_metadata(pa.BufferReader(bytes(content))).row_group(1).column(1)
    content[html.dictionary_page_offset : html.dictionary_page_offset + 8] = b"\xff" * 8
    items = read_content("a.parquet", bytes(content))
    numbers = [int(page.url.rpartition("/")[2]) for page in pages(items)]
    assert numbers == [n for n in (*range(10), *range(20, 30)) if n % 7]
    (damage,) = (failure for failure in failures(items) if failure.reason == "truncated or damaged file")
    assert damage.url.endswith("a.parquet, row 11")
    number_of_shards("a.parquet", bytes(content))


def test_a_parquet_file_that_is_cut_off_is_one_shard() -> None:
    assert number_of_shards("a.parquet", parquet_file(20, 5)[:-1]) == 1


# Archives


def some_record(number: int, chance: random.Random) -> bytes:
    """A record as crawlers write it, or as they should not."""
    url = f"http://a.example/{number}"
    size = chance.randrange(20_000)
    body = chance.randbytes(size) if chance.random() < 0.8 else b"x" * size
    page = page_record(url, body)
    inner = [page_record(f"http://inner.example/{n}", chance.randbytes(4_000)) for n in range(8)]
    unusual = [
        lambda: record("", http(body)),
        lambda: record(url, http(body, status="HTTP/1.1 404 No")),
        lambda: record(url, http(body), kind="request"),
        lambda: record(url, http(b"zz", "Content-Encoding: zstd, gzip")),
        lambda: record(url, http(b"".join(map(gzip.compress, inner)), media_type="application/gzip")),
        lambda: page_record(url, b"".join(inner)),
        lambda: page_record(url, b"x" * (MAX_BYTES + 1)),
        lambda: page.replace(b"Content-Length: ", b"content-length: ", 1),
        lambda: page[:-4] + chance.choice([b"", b"\n", b"\r", b"\r\n" * 5, b"\0"]),
    ]
    return chance.choice(unusual)() if chance.random() < 0.3 else page


def gzip_of_all_sorts(records: Sequence[bytes], chance: random.Random) -> bytes:
    """One record a member, or several, and now and then what should not be between them."""
    content = b""
    rest = list(records)
    while rest:
        size = 1 if chance.random() < 0.9 else 3
        content += gzip.compress(b"".join(rest[:size]), 1, mtime=0)
        rest = rest[size:]
        if chance.random() < 0.05:
            content += chance.choice([gzip.compress(b""), gzip.compress(b"\r\n"), b"\0" * 9, b"garbage"])
    return content


@given(st.sampled_from([*KINDS, "gzip of all sorts"]), st.integers(1, 60), damages, chances)
def test_any_archive_is_split(kind: str, records: int, damage: str, chance: random.Random) -> None:
    written = [warcinfo(), *(some_record(number, chance) for number in range(records))]
    if kind in KINDS:
        name, pack = KINDS[kind]
        content = pack(written).content
    else:
        name, content = "a.warc.gz", gzip_of_all_sorts(written, chance)
    number_of_shards(name, damaged(content, damage, chance))


@given(st.sampled_from(["plain", "gzip members"]), st.integers(1, 60), chances)
def test_an_archive_with_records_longer_than_they_are_is_split(
    kind: str, records: int, chance: random.Random
) -> None:
    written = [some_record(number, chance) for number in range(records)]
    lies = [
        part.replace(b"Content-Length: ", b"Content-Length: 9", 1) if chance.random() < 0.1 else part
        for part in written
    ]
    name, pack = KINDS[kind]
    number_of_shards(name, pack(lies).content)


def incompressible(records: int) -> list[bytes]:
    chance = random.Random(0)
    return [page_record(f"http://a.example/{n}", chance.randbytes(9_700)) for n in range(records)]


@pytest.mark.parametrize(
    ("kind", "shards"),
    [("plain", 10), ("gzip members", 5), ("one gzip member", 1), ("zstd frames", 1), ("one zstd frame", 1)],
)
def test_an_archive_is_split_where_a_reader_can_begin(kind: str, shards: int) -> None:
    name, pack = KINDS[kind]
    assert number_of_shards(name, pack(incompressible(60)).content) == shards


@pytest.mark.parametrize("kind", ["plain", "gzip members"])
def test_the_end_of_an_archive_is_told_of_by_the_last_shard_alone(kind: str) -> None:
    name, pack = KINDS[kind]
    with source_of(name, pack(incompressible(60)).content[:-5_000]) as source:
        *others, last = shards_as_good_as_the_whole(source)
        assert others
        assert not failures([item for shard in others for item in shard.read()])
        assert len(failures(list(last.read()))) == 1


def test_what_is_behind_damage_in_a_plain_archive_is_one_shard() -> None:
    records = incompressible(60)
    records[30] = records[30][:-500] + b"\r\n\r\n"
    content = b"".join(records)
    with source_of("a.warc", content) as source:
        shards = shards_as_good_as_the_whole(source)
        items = [list(shard.read()) for shard in shards]
        assert len(shards) == 5
        assert len(pages(items[-1])) >= 60 - 31
        assert len(pages([item for part in items for item in part])) == 59


def test_an_archive_within_an_archive_is_not_split() -> None:
    inner = b"".join(gzip.compress(part) for part in incompressible(60))
    outer = record("http://a.example/inner", http(inner, media_type="application/gzip"))
    assert number_of_shards("a.warc.gz", gzip.compress(outer)) == 1


def whole_records(items: Sequence[SourceItem]) -> list[str]:
    return [page.url for page in pages(list(items))]


@pytest.mark.parametrize("where", [0, 1, 3])
def test_an_empty_gzip_member_is_not_the_end(where: int) -> None:
    members = [gzip.compress(page_record(f"http://a.example/{n}", b"<p>")) for n in range(3)]
    members.insert(where, gzip.compress(b"") * 2)
    items = read_content("a.warc.gz", b"".join(members))
    assert whole_records(items) == [f"http://a.example/{n}" for n in range(3)]
    assert not failures(items)


def test_a_record_that_says_it_is_longer_than_the_archive_costs_no_other() -> None:
    records = [page_record(f"http://a.example/{n}", b"<p>") for n in range(3)]
    records[1] = records[1].replace(b"Content-Length: ", b"Content-Length: 9999")
    items = read_content("a.warc.gz", b"".join(map(gzip.compress, records)))
    assert whole_records(items) == ["http://a.example/0", "http://a.example/2"]
    assert [type(item) for item in items].count(Failure) == 1


# The sizes as they are


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("a.jsonl", lambda body: json.dumps({"url": "http://a/", "html": body.hex()}).encode() + b"\n"),
        ("a.warc", lambda body: page_record("http://a/", body)),
        ("a.warc.gz", lambda body: gzip.compress(page_record("http://a/", body), 1)),
    ],
)
def test_large_files_are_split_at_the_sizes_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, row: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(json_lines, "_SHARD_BYTES", 16_000_000)
    monkeypatch.setattr(warc, "_SHARD_BYTES", 32_000_000)
    path = tmp_path / name
    path.write_bytes(row(random.Random(0).randbytes(100_000)) * 400)
    assert len(shards_as_good_as_the_whole(open_source(path))) in (2, 5)
