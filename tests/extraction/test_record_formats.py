"""Rows of records in files: what was written is what is read."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.errors import OutputError, UsageError
from siteloom.core.table_files import LIST_SEPARATOR
from siteloom.extraction.record_formats import check_destination, open_records
from siteloom.extraction.record_joining import join_rows, parse_key
from siteloom.extraction.record_rows import Row
from tests.extraction.records import PARTS, row, rows

ATTRIBUTES = ("name", "price", "url")
KEYS = ["url", "wrapper", "version", *PARTS, "duplicate_of"]
every_suffix = pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
any_rows = rows(ATTRIBUTES)


def written(
    suffix: str,
    given_rows: Sequence[Row],
    attributes: Sequence[str] = ATTRIBUTES,
    *,
    with_pages: bool = False,
) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"out{suffix}")
        with open_records(str(path), attributes, with_pages=with_pages) as writer:
            for each in given_rows:
                writer.write(each)
        assert list(Path(folder).iterdir()) == [path]
        return path.read_bytes()


def from_json_lines(content: bytes) -> list[Row]:
    return [json.loads(line) for line in content.decode().split("\n")[:-1]]


def from_csv(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def from_parquet(content: bytes) -> list[Row]:
    read = pq.read_table(io.BytesIO(content)).to_pylist()
    return [
        {key: _without_absent(value) if key in PARTS else value for key, value in r.items()} for r in read
    ]


def _without_absent(part: dict[str, Any]) -> dict[str, Any]:
    return {attribute: listed for attribute, listed in part.items() if listed is not None}


def with_typed_texts(each: Row) -> Row:
    def text(value: object) -> object:
        return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value

    return {**each, "typed": {name: list(map(text, typed)) for name, typed in each["typed"].items()}}


@given(any_rows)
def test_json_lines_give_back_what_went_in(given_rows: list[Row]) -> None:
    read = from_json_lines(written(".jsonl", given_rows))
    assert read == given_rows
    assert all(list(each) == KEYS for each in read)


@given(any_rows)
def test_parquet_gives_back_what_went_in(given_rows: list[Row]) -> None:
    assert from_parquet(written(".parquet", given_rows)) == list(map(with_typed_texts, given_rows))


@given(any_rows)
def test_csv_has_the_texts_in_cells(given_rows: list[Row]) -> None:
    header, *lines = from_csv(written(".csv", given_rows))
    assert header == [
        "url",
        "wrapper",
        "version",
        "name",
        "price",
        "values.url",
        "confidence",
        "duplicate_of",
    ]
    for line, each in zip(lines, given_rows, strict=True):
        assert line == [
            each["url"],
            each["wrapper"],
            str(each["version"] or ""),
            *(LIST_SEPARATOR.join(each["values"].get(attribute, [])) for attribute in ATTRIBUTES),
            str(min(chain(*each["confidence"].values()), default="")),
            each["duplicate_of"] or "",
        ]


@given(rows(ATTRIBUTES, urls=st.sampled_from(["http://a.example/1", "http://a.example/2"])))
def test_joined_rows_have_their_pages_in_every_format(given_rows: list[Row]) -> None:
    joined = list(join_rows(given_rows, parse_key("name")))
    read = from_json_lines(written(".jsonl", joined, with_pages=True))
    assert read == joined
    assert all(list(each) == [*KEYS, "pages"] for each in read)
    assert from_parquet(written(".parquet", joined, with_pages=True)) == list(map(with_typed_texts, joined))
    header, *lines = from_csv(written(".csv", joined, with_pages=True))
    assert header[-1] == "pages"
    assert [line[-1] for line in lines] == [
        LIST_SEPARATOR.join(page["url"] for page in each["pages"]) for each in joined
    ]


def test_standard_output_gets_json_lines(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with open_records("-", []) as writer:
        writer.write(row("http://a.example/1", name=["é"]))
    (read,) = from_json_lines(capfdbinary.readouterr().out)
    assert read == row("http://a.example/1", name=["é"])


def test_a_value_with_the_separator_is_left_as_it_is_in_csv() -> None:
    _, line = from_csv(written(".csv", [row("u", name=["a | b", "c"])]))
    assert line[3] == "a | b | c"


@pytest.mark.parametrize(
    ("attributes", "columns"),
    [
        (["wrapper", "Version", "pages"], ["values.wrapper", "values.Version", "pages"]),
        (["url", "values.url"], ["values.url", "values.values.url"]),
        (["values.url", "url"], ["values.url", "values.values.url"]),
        (["name", "Name", ""], ["name", "values.Name", "values."]),
    ],
)
def test_every_attribute_has_a_column_of_its_own(attributes: list[str], columns: list[str]) -> None:
    values = {attribute: [attribute.upper()] for attribute in attributes}
    header, line = from_csv(written(".csv", [row("u", **values)], attributes))
    assert header[3:-2] == columns
    assert line[3:-2] == [attribute.upper() for attribute in attributes]


def test_an_attribute_may_be_called_pages() -> None:
    (joined,) = join_rows([row("http://a.example/", pages=["320"])], parse_key("sku"))
    header, line = from_csv(written(".csv", [joined], ["pages"], with_pages=True))
    assert dict(zip(header, line, strict=True))["values.pages"] == "320"


@every_suffix
def test_there_may_be_no_attributes(suffix: str) -> None:
    content = written(suffix, [row("http://a.example/")], [])
    assert b"http://a.example/" in content
    if suffix == ".parquet":
        (read,) = pq.read_table(io.BytesIO(content)).to_pylist()
        assert list(read) == ["url", "wrapper", "version", "duplicate_of"]


@every_suffix
def test_attributes_that_were_not_named_are_only_in_json(suffix: str) -> None:
    content = written(suffix, [row("u", colour=["red"])])
    if suffix == ".jsonl":
        assert b"red" in content
    else:
        assert b"red" not in content


def test_the_columns_of_parquet_have_types() -> None:
    schema = pq.read_schema(io.BytesIO(written(".parquet", [], ["a"], with_pages=True)))
    types = {field.name: str(field.type).replace("element: ", "") for field in schema}
    assert types == {
        "url": "string",
        "wrapper": "string",
        "version": "int64",
        "values": "struct<a: list<string>>",
        "typed": "struct<a: list<string>>",
        "confidence": "struct<a: list<double>>",
        "provenance": "struct<a: list<struct<rule: string, node: string, url: string>>>",
        "withheld": "struct<a: list<struct<text: string, reason: string, node: string, url: string>>>",
        "duplicate_of": "string",
        "pages": "list<struct<url: string, wrapper: string, version: int64>>",
    }


def test_half_a_character_becomes_a_question_mark_in_parquet() -> None:
    (read,) = from_parquet(written(".parquet", [row("u\ud800", name=["x\udfffy"])]))
    assert (read["url"], read["values"]) == ("u?", {"name": ["x?y"]})


@every_suffix
def test_after_an_error_the_old_file_is_as_it_was(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), open_records(str(path), ATTRIBUTES):
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("destination", "error"),
    [("out.txt", UsageError), ("missing/out.csv", OutputError), ("mysql://me:s3cret@host/name", UsageError)],
)
def test_a_bad_destination_is_told_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, destination: str, error: type[Exception]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error) as refusal:
        check_destination(destination)
    assert "s3cret" not in str(refusal.value)
    with pytest.raises(error), open_records(destination, ATTRIBUTES):
        pytest.fail("nothing should be written")


@pytest.mark.parametrize("destination", ["-", "a.csv", "a.jsonl", "a.parquet"])
def test_a_good_destination_is_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, destination: str
) -> None:
    monkeypatch.chdir(tmp_path)
    check_destination(destination)


def test_files_need_no_database() -> None:
    program = "import sys, siteloom.extraction; print({'sqlalchemy', 'pyarrow', 'lxml'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
