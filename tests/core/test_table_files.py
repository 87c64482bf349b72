"""Data out: what was written is what is read, and a file is whole or not there."""

from __future__ import annotations

import csv
import io
import json
import math
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import MissingExtra, OutputError, UsageError
from siteloom.core.table_files import (
    LIST_SEPARATOR,
    Column,
    Fields,
    ListOf,
    check_destination,
    new_file,
    open_output,
)

COLUMNS = (
    Column("name"),
    Column("count", "integer"),
    Column("share", "number"),
    Column("good", "flag"),
    Column("when", "time"),
    Column("tags", "texts"),
)
ROW = {
    "name": "Blue “Fern”, Ltd.\n2nd line",
    "count": 3,
    "share": 0.5,
    "good": True,
    "when": datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC),
    "tags": ["a", "b, c"],
}
SUFFIXES = (".jsonl", ".csv", ".parquet")
every_suffix = pytest.mark.parametrize("suffix", SUFFIXES)

texts = st.text(alphabet=st.characters(codec="utf-8"))
rows = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.none() | texts,
            "count": st.none() | st.integers(-(2**63), 2**63 - 1),
            "share": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "good": st.none() | st.booleans(),
            "when": st.none() | st.datetimes(timezones=st.just(UTC)),
            "tags": st.none() | st.lists(texts) | st.lists(texts).map(tuple),
        },
    ),
    max_size=5,
)
Rows = Sequence[Mapping[str, object]]


def written(suffix: str, given_rows: Rows, columns: Sequence[Column] = COLUMNS) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"out{suffix}")
        with open_output(str(path), columns) as writer:
            for row in given_rows:
                writer.write(row)
        assert list(Path(folder).iterdir()) == [path]
        return path.read_bytes()


def from_parquet(content: bytes) -> list[dict[str, Any]]:
    return list(pq.read_table(io.BytesIO(content)).to_pylist())


def csv_cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat()
    return LIST_SEPARATOR.join(value) if isinstance(value, list | tuple) else str(value)


@given(rows)
def test_json_lines_are_read_back(given_rows: Rows) -> None:
    lines = written(".jsonl", given_rows).decode().split("\n")
    assert lines.pop() == ""
    expected = []
    for row in given_rows:
        full = {column.name: row.get(column.name) for column in COLUMNS}
        time, tags = full["when"], full["tags"]
        full["when"] = time.isoformat() if isinstance(time, datetime) else None
        full["tags"] = list(tags) if isinstance(tags, list | tuple) else None
        expected.append(full)
    read_back = [json.loads(line) for line in lines]
    assert read_back == expected
    assert all(list(row) == [column.name for column in COLUMNS] for row in read_back)


@given(rows)
def test_csv_is_read_back(given_rows: Rows) -> None:
    content = written(".csv", given_rows).decode()
    header, *lines = csv.reader(io.StringIO(content, newline=""))
    assert header == [column.name for column in COLUMNS]
    assert lines == [[csv_cell(row.get(column.name)) for column in COLUMNS] for row in given_rows]


@given(rows)
def test_parquet_is_read_back(given_rows: Rows) -> None:
    expected = [{column.name: row.get(column.name) for column in COLUMNS} for row in given_rows]
    for row in expected:
        tags = row["tags"]
        row["tags"] = list(tags) if isinstance(tags, tuple) else tags
    assert from_parquet(written(".parquet", given_rows)) == expected


def test_parquet_columns_have_types_even_without_rows() -> None:
    schema = pq.read_schema(io.BytesIO(written(".parquet", [])))
    assert schema.names == [column.name for column in COLUMNS]
    assert list(map(str, schema.types)) == [
        "string", "int64", "double", "bool", "timestamp[us, tz=UTC]", "list<element: string>",
    ]  # fmt: skip


def test_parquet_is_written_in_groups_of_rows() -> None:
    content = written(".parquet", [{"n": number} for number in range(10_001)], [Column("n", "integer")])
    assert pq.ParquetFile(io.BytesIO(content)).num_row_groups == 2
    assert [row["n"] for row in from_parquet(content)] == list(range(10_001))


def test_a_group_of_large_rows_is_small() -> None:
    large = [{"n": f"{number}" * 10_000} for number in range(1_500)]
    content = written(".parquet", large, [Column("n")])
    assert pq.ParquetFile(io.BytesIO(content)).num_row_groups > 1
    assert from_parquet(content) == large


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_columns_may_have_columns(suffix: str) -> None:
    point = Fields((Column("x", "number"), Column("marks", "texts")))
    columns = [Column("points", ListOf(point)), Column("counts", ListOf("integer"))]
    nested: Rows = [
        {"points": [{"x": 0.5, "marks": ["é"]}, {"x": None, "marks": []}], "counts": [1, 2]},
        {"points": [], "counts": None},
    ]
    content = written(suffix, nested, columns)
    if suffix == ".parquet":
        assert from_parquet(content) == nested
    else:
        assert [json.loads(line) for line in content.splitlines()] == nested


def test_no_rows_are_an_empty_file_with_its_header() -> None:
    assert written(".jsonl", []) == b""
    assert written(".csv", []) == b"name,count,share,good,when,tags\r\n"


@every_suffix
def test_columns_keep_their_order_and_others_are_left_out(suffix: str) -> None:
    content = written(suffix, [{"b": "2", "x": "9", "a": "1"}, {"a": "3"}], [Column("b"), Column("a")])
    expected = {
        ".jsonl": b'{"b": "2", "a": "1"}\n{"b": null, "a": "3"}\n',
        ".csv": b"b,a\r\n2,1\r\n,3\r\n",
    }
    if suffix == ".parquet":
        assert [list(row.items()) for row in from_parquet(content)] == [
            [("b", "2"), ("a", "1")],
            [("b", None), ("a", "3")],
        ]
    else:
        assert content == expected[suffix]


@every_suffix
def test_the_same_rows_give_the_same_bytes(suffix: str) -> None:
    assert written(suffix, [ROW] * 3) == written(suffix, [ROW] * 3)


@every_suffix
def test_half_a_character_becomes_a_question_mark(suffix: str) -> None:
    columns = [Column("a"), Column("b", "texts")]
    content = written(suffix, [{"a": "x\ud800y", "b": ["\udfff"]}], columns)
    if suffix == ".parquet":
        assert from_parquet(content) == [{"a": "x?y", "b": ["?"]}]
    else:
        assert b"x?y" in content


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_null_in_json(number: float) -> None:
    assert written(".jsonl", [{"n": number}], [Column("n", "number")]) == b'{"n": null}\n'
    assert written(".csv", [{"n": number, "m": 1}], [Column("n", "number"), Column("m")]) == b"n,m\r\n,1\r\n"


def test_json_lines_are_utf_8_and_one_line_each() -> None:
    content = written(".jsonl", [{"name": "日本\u2028\n"}], [Column("name")])
    assert content == '{"name": "日本\u2028\\n"}\n'.encode()


def test_the_suffix_may_be_in_capitals(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "OUT.CSV"), [Column("a")]) as writer:
        writer.write({"a": "1"})
    assert (tmp_path / "OUT.CSV").read_bytes() == b"a\r\n1\r\n"


# Whole or not at all


class Interrupted(Exception):
    """Something goes wrong while rows are written."""


def write_and_raise(path: Path | str, error: type[BaseException]) -> None:
    with open_output(str(path), COLUMNS) as writer:
        writer.write(ROW)
        raise error


@every_suffix
def test_a_file_appears_only_when_it_is_complete(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    with open_output(str(path), COLUMNS) as writer:
        writer.write(ROW)
        assert not path.exists()
    assert path.exists()


@every_suffix
@pytest.mark.parametrize("error", [Interrupted, KeyboardInterrupt])
def test_after_an_error_there_is_no_file(tmp_path: Path, suffix: str, error: type[BaseException]) -> None:
    with pytest.raises(error):
        write_and_raise(tmp_path / f"out{suffix}", error)
    assert list(tmp_path.iterdir()) == []


@every_suffix
def test_after_an_error_the_old_file_is_as_it_was(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    path.write_bytes(b"old")
    with pytest.raises(Interrupted):
        write_and_raise(path, Interrupted)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@every_suffix
def test_an_old_file_is_replaced(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    path.write_bytes(b"old" * 10_000)
    with open_output(str(path), COLUMNS) as writer:
        writer.write(ROW)
    assert path.read_bytes() == written(suffix, [ROW])


def test_an_error_of_the_caller_stays_its_own(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="the source"), open_output(str(tmp_path / "a.csv"), COLUMNS):
        raise FileNotFoundError("the source")
    assert list(tmp_path.iterdir()) == []


def test_a_row_that_json_cannot_hold_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(TypeError), open_output(str(tmp_path / "a.jsonl"), COLUMNS) as writer:
        writer.write({"name": object()})
    assert list(tmp_path.iterdir()) == []


def test_the_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    with open_output(str(tmp_path / "a.csv"), COLUMNS):
        pass
    assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "plain").stat().st_mode
    )


FULL_DISK = """
import resource, sys
from siteloom.core.errors import OutputError
from siteloom.core.table_files import Column, open_output
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    with open_output(sys.argv[1], [Column("a")]) as writer:
        for number in range(20_000):
            writer.write({"a": f"{number * 7919}"})
except OutputError as error:
    print(error)
"""


@every_suffix
def test_a_full_disk_is_one_clear_sentence_and_leaves_no_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    done = subprocess.run([sys.executable, "-c", FULL_DISK, path], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{path} cannot be written: ")
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_without_pyarrow_the_error_says_what_to_install_and_leaves_no_file(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from siteloom.core.table_files import Column, check_destination, open_output\n"
        "from siteloom.core.errors import MissingExtra\n"
        "for use in (check_destination, lambda path: open_output(path, [Column('a')]).__enter__()):\n"
        "    try: use(sys.argv[1])\n"
        "    except MissingExtra as error: print(error)"
    )
    path = tmp_path / "a.parquet"
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert done.stdout.count("pip install 'siteloom[parquet]'") == 2
    assert list(tmp_path.iterdir()) == []


# Destinations


def test_standard_output_gets_json_lines(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with open_output("-", [Column("a"), Column("b", "texts")]) as writer:
        writer.write({"a": "é", "b": ("x",)})
    assert capfdbinary.readouterr().out == '{"a": "é", "b": ["x"]}\n'.encode()


@pytest.mark.parametrize("name", ["out.txt", "out", "out.json", "jsonl", ".jsonl", "out.jsonl.gz"])
def test_an_unknown_format_is_wrong_use(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"the name must end in \.jsonl, \.csv, \.parquet, or be -"):
        check_destination(str(tmp_path / name))


def test_a_missing_folder_is_told_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"There is no folder .*/missing to write a\.csv to: make it first"):
        check_destination(str(tmp_path / "missing" / "a.csv"))


@pytest.mark.parametrize("destination", ["-", "a.csv", "./a.jsonl"])
def test_a_good_destination_is_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, destination: str
) -> None:
    monkeypatch.chdir(tmp_path)
    check_destination(destination)


@pytest.mark.parametrize("destination", ["out.txt", "missing/a.csv"])
def test_a_bad_destination_is_told_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, destination: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((UsageError, OutputError)), open_output(destination, COLUMNS):
        pytest.fail("nothing should be written")


def test_a_folder_in_the_place_of_the_file_is_one_clear_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    with (
        pytest.raises(OutputError, match=r"a\.csv cannot be written: Is a directory"),
        open_output(str(tmp_path / "a.csv"), COLUMNS),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_a_name_too_long_is_one_clear_sentence(tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match="cannot be written: File name too long"),
        open_output(str(tmp_path / ("x" * 300 + ".csv")), COLUMNS),
    ):
        pytest.fail("nothing should be written")


# Elsewhere


@every_suffix
def test_a_file_elsewhere_has_what_one_here_has(memory: Any, suffix: str) -> None:
    destination = f"memory://bucket/new/out{suffix}"
    check_destination(destination)
    with open_output(destination, COLUMNS) as writer:
        writer.write(ROW)
        assert memory.find("/") == []
    assert memory.cat_file(f"/bucket/new/out{suffix}") == written(suffix, [ROW])
    with open_output(destination, COLUMNS):
        pass
    assert memory.cat_file(f"/bucket/new/out{suffix}") == written(suffix, [])


@every_suffix
def test_after_an_error_a_file_elsewhere_is_as_it_was(memory: Any, suffix: str) -> None:
    memory.pipe_file(f"/out{suffix}", b"old")
    with pytest.raises(Interrupted):
        write_and_raise(f"memory://out{suffix}", Interrupted)
    assert memory.cat_file(f"/out{suffix}") == b"old"


@pytest.mark.parametrize("scheme", ["file://", "file://localhost", "local://"])
def test_files_of_this_machine_have_addresses_too(tmp_path: Path, scheme: str) -> None:
    with open_output(f"{scheme}{tmp_path}/out.csv", COLUMNS) as writer:
        writer.write(ROW)
    assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]
    assert (tmp_path / "out.csv").read_bytes() == written(".csv", [ROW])


def test_what_is_copied_in_pieces_is_renamed_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out.csv").write_bytes(b"old")

    def cut_off(_: object, source: str, target: str) -> None:
        Path(target).write_bytes(Path(source).read_bytes()[:3])
        raise ConnectionError("it is gone")

    monkeypatch.setattr(LocalFileSystem, "put_file", cut_off)
    with (
        pytest.raises(OutputError, match=r"out\.csv cannot be reached: it is gone\.$"),
        open_output(f"local://{tmp_path}/out.csv", COLUMNS),
    ):
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]
    assert (tmp_path / "out.csv").read_bytes() == b"old"


def test_no_bucket_is_made_where_there_are_no_folders(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(_: object, path: str, **__: object) -> None:
        pytest.fail(f"a bucket {path} is made by mistake")

    def put(files: MemoryFileSystem, source: str, target: str) -> None:  # as s3fs does, with no folder
        files.pipe_file(target, Path(source).read_bytes())

    monkeypatch.setattr(MemoryFileSystem, "makedirs", make)
    monkeypatch.setattr(MemoryFileSystem, "put_file", put)
    with open_output("memory://bukcet/out.csv", COLUMNS):
        pass
    assert memory.find("/") == ["/bukcet/out.csv"]


@pytest.mark.parametrize("scheme", ["", "local://"])
def test_a_new_file_is_kept_however_its_writing_ends(tmp_path: Path, scheme: str) -> None:
    destination = f"{scheme}{tmp_path}/pages.warc"

    def write_and_stop() -> None:
        with new_file(destination) as file:
            file.write_bytes(b"the first pages")
            raise Interrupted

    with pytest.raises(Interrupted):
        write_and_stop()
    assert [one.name for one in tmp_path.iterdir()] == ["pages.warc"]
    assert (tmp_path / "pages.warc").read_bytes() == b"the first pages"
    with pytest.raises(OutputError, match=r"pages\.warc is there already: remove it"), new_file(destination):
        pytest.fail("it would be overwritten")


class NoCredentialsError(Exception):
    """As botocore has it."""


def test_credentials_that_are_missing_are_told_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_info(*_: object, **__: object) -> None:
        raise NoCredentialsError("Unable to locate credentials")

    monkeypatch.setattr(MemoryFileSystem, "info", no_info)
    with pytest.raises(OutputError) as told:
        check_destination("memory://bucket/out.csv")
    assert str(told.value) == (
        "memory://bucket/out.csv may not be written: check the credentials for it "
        "(Unable to locate credentials)."
    )


@pytest.mark.parametrize(
    ("destination", "message"),
    [
        (
            "https://a.example/out.csv?sig=s3cret",
            "https://a.example/out.csv is on the web, where nothing",
        ),
        ("memory://out.txt", "Cannot tell the format of memory://out.txt: the name must end in .jsonl, .csv"),
        ("nowhere://a/out.csv", "nowhere://a/out.csv cannot be written: Protocol not known: nowhere."),
        ("s3://key:s3cret@bucket/out.csv", "s3://key:***@bucket/out.csv needs s3fs: pip install s3fs."),
        ("memory://folder.csv", "memory://folder.csv is a folder: give the name of a file in it."),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_the_work(
    memory: Any, monkeypatch: pytest.MonkeyPatch, destination: str, message: str
) -> None:
    memory.pipe_file("/folder.csv/out.csv", b"")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises((OutputError, UsageError)) as told:
        check_destination(destination)
    assert str(told.value).startswith(message)
    assert "s3cret" not in str(told.value)
    assert "\n" not in str(told.value)


def test_without_fsspec_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtra, match="needs the extra 'parquet'"):
        check_destination("s3://bucket/out.csv")
