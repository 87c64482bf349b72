"""Folders of results: each file is whole or not there, on any filesystem."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.dataset import field, partitioning

from siteloom.core.errors import OutputError
from siteloom.engines.whole_crawls.crawl_run import row_schema
from siteloom.engines.whole_crawls.output_folder import (
    SUCCESS,
    OutputFolder,
    Rows,
    site_folder,
    without_folder,
)


@pytest.fixture(params=["path", "file", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OutputFolder]:
    match request.param:
        case "path":
            yield OutputFolder(str(tmp_path / "a [1]" / "out"))
        case "file":
            yield OutputFolder(f"file://{tmp_path}/out")
        case _:
            name = f"/{uuid4().hex}"
            yield OutputFolder(f"memory:/{name}")
            fsspec.filesystem("memory").rm(name, recursive=True)


def test_what_is_written_is_read(folder: OutputFolder) -> None:
    assert folder.names() == []
    assert folder.read("deep/below/one") is None
    folder.write("deep/below/one", b"1")
    folder.write("deep/below/one", b"one")
    folder.write("deep/two", b"2")
    assert folder.read("deep/below/one") == b"one"
    assert folder.read_all(["deep/two", "deep/below/one"]) == [b"2", b"one"]
    assert folder.names() == ["deep"]
    assert folder.names("deep") == ["below", "two"]
    folder.remove("deep/below")
    folder.remove("deep/below")
    assert folder.names("deep") == ["two"]
    with pytest.raises(OutputError, match="deep/below/one is gone: remove the folder, and begin anew"):
        folder.read_all(["deep/below/one"])
    folder.write(SUCCESS, b"{}")
    with pytest.raises(OutputError, match="Another process has finished"):
        folder.read_rows("deep/below/one")


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    folder = OutputFolder(str(tmp_path))
    contents = [bytes([number]) * 3_000_000 for number in range(2)]
    folder.write("file", contents[0])

    def write_again() -> None:
        for turn in range(20):
            folder.write("file", contents[turn % 2])

    writer = threading.Thread(target=write_again)
    writer.start()
    seen = {folder.read("file")}
    while writer.is_alive():
        seen.add(folder.read("file"))
    assert seen <= set(contents)
    assert folder.names() == ["file"]
    assert len(list(tmp_path.iterdir())) == 1  # nothing is left beside it


def test_what_cannot_be_written_or_opened_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"file/out/a cannot be written: Not a directory\."):
        OutputFolder(f"{tmp_path}/file/out").write("a", b"")
    with pytest.raises(OutputError, match=r"^nothing://secret/ cannot be opened: Protocol not known"):
        OutputFolder("nothing://secret/").read("a")
    with pytest.raises(OutputError, match=r"a\.parquet is gone: remove the folder, and begin anew\."):
        OutputFolder(str(tmp_path)).read_rows("a.parquet")


def test_rows_of_some_parts_are_found(folder: OutputFolder) -> None:
    schema = row_schema(("text", pa.string()))
    rows = [
        {"part": place // 3_000, "key": "k", "place": place, "text": str(place)} for place in range(9_000)
    ]
    folder.write_rows("rows.parquet", pa.Table.from_pylist(rows, schema))
    read = Rows(folder, ["rows.parquet"], schema).read("rows.parquet", frozenset([0, 2]))
    assert [row for batch in read for row in batch.to_pylist()] == [*rows[:3_000], *rows[6_000:]]
    assert list(Rows(folder, [], schema).read("rows.parquet", frozenset([5]))) == []


class Grumpy(MemoryFileSystem):  # type: ignore[misc]
    """A filesystem with errors of its own."""

    protocol = "grumpy"
    store: ClassVar[dict[str, object]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    def _grumble(self, *_: object, **__: object) -> None:
        raise Grumble("quota of secret://me:word@host")

    cat_file = ls = exists = _open = _grumble


class Grumble(Exception):
    pass


def test_whatever_error_a_filesystem_has_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec.register_implementation("grumpy", Grumpy, clobber=True)
    folder = OutputFolder("grumpy://out")
    refused: list[Callable[[], object]] = [
        lambda: folder.write("a", b""),
        lambda: folder.read("a"),
        folder.names,
        lambda: folder.remove("a"),
        lambda: folder.read_rows("a"),
        lambda: folder.read_all(["a"]),
    ]
    for call in refused:
        with pytest.raises(OutputError, match=r"^grumpy://out(/a)? cannot be \w+: quota of [^d]*$"):
            call()


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_names_of_sites_are_names_of_folders(site: str) -> None:
    folder = site_folder(site)
    assert "/" not in folder
    by_site = partitioning(pa.schema([("site", pa.string())]), flavor="hive")
    assert by_site.parse(f"/{folder}/a.parquet").equals(field("site") == site)


def test_only_what_hive_escapes_is_escaped() -> None:
    assert site_folder("bücher.example") == "site=bücher.example"
    assert site_folder("a/b c=d:1") == "site=a%2Fb c%3Dd%3A1"


def test_sites_whose_folders_would_have_too_long_names_are_told() -> None:
    assert without_folder(f"http://{'a' * 250}/") is None
    refused = without_folder(f"http://{'a' * 251}/")
    assert refused is not None
    assert (refused.reason, refused.detail) == (
        "bad site name",
        "a folder of it would have more than 255 bytes",
    )
    assert without_folder("http://\ud800.example/") is not None
