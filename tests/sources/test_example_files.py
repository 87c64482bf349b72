"""Examples in a file: what can be written, and what is told of what cannot."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom import Page
from siteloom.core.errors import ExampleError
from siteloom.sources.example_files import ExampleLine, read_examples


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "examples.jsonl"


def told(file: Path, content: str | bytes) -> str:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ExampleError) as raised:
        read_examples(str(file))
    assert len(str(raised.value).splitlines()) == 1
    return str(raised.value).replace(str(file), "FILE")


def test_values_records_and_nodes(file: Path) -> None:
    file.write_text(
        '{"url": " https://a.example/1 ", "values": {"name": ["Fern"], "phone": [], "kind": "Thai"},'
        ' "nodes": {"name": ["/html[1]/body[1]/h1[1]/text()[1]"]}}\n'
        "\n   \n"
        '{"url": "https://a.example/2", "records": [{"name": "A"}, {"name": ["B"], "price": []}]}\n'
        '{"url": "https://a.example/3"}'
    )
    first, second, third = read_examples(str(file))
    assert first.url == "https://a.example/1"
    assert first.values == {"name": ["Fern"], "phone": [], "kind": ["Thai"]}
    assert first.nodes == {"name": ["/html[1]/body[1]/h1[1]/text()[1]"]}
    assert second.records == [{"name": ["A"]}, {"name": ["B"], "price": []}]
    assert (third.values, third.records, third.nodes) == ({}, [], {})


def test_an_example_is_put_on_its_page() -> None:
    page = Page("https://a.example/", b"<h1>Fern</h1>")
    example = ExampleLine(page.url, {"name": ["Fern"]}, [], {}).on(page)
    assert (example.page, example.values) == (page, {"name": ["Fern"]})


def test_an_empty_file_has_no_examples(file: Path) -> None:
    file.write_bytes(b"\n \r\n")
    assert read_examples(str(file)) == []


def test_lines_end_as_any_program_ends_them(file: Path) -> None:
    line = '{"url": "https://a.example/", "values": {"name": ["Caf\u00e9\u2028x"]}}'
    file.write_bytes(f"{line}\r\n{line}".encode())
    assert [example.values for example in read_examples(str(file))] == [{"name": ["Caf\u00e9\u2028x"]}] * 2


def test_a_file_that_cannot_be_read(file: Path) -> None:
    with pytest.raises(ExampleError, match=r"cannot be read: No such file or directory\.$"):
        read_examples(str(file))
    with pytest.raises(ExampleError, match=r"cannot be read: Is a directory\.$"):
        read_examples(str(file.parent))


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "null",
        '"https://a.example/"',
        "{}",
        '{"url": ""}',
        '{"url": 5}',
        b"\xff\xfe",
        b"\xc3",
        "[" * 100_000,
    ],
)
def test_a_line_that_is_no_example(file: Path, line: str | bytes) -> None:
    first = b'{"url": "https://a.example/"}\n\n'
    content = first + (line if isinstance(line, bytes) else line.encode())
    assert told(file, content).startswith(("Line 3 of FILE is no example: ", "Line 3 of FILE is no JSON: "))


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ('"value": {}', "has 'value': an example has url, values, records, nodes."),
        ('"values": []', 'write values as {"name": ["Blue Fern"], "phone": []}.'),
        ('"values": null', 'write values as {"name": ["Blue Fern"], "phone": []}.'),
        ('"values": {"name": 5}', "the values of 'name' must be texts in quotes."),
        ('"values": {"name": [5]}', "the values of 'name' must be texts in quotes."),
        ('"values": {"name": null}', "the values of 'name' must be texts in quotes."),
        ('"values": {"name": {"a": "b"}}', "the values of 'name' must be texts in quotes."),
        ('"records": {"name": "A"}', "records must be a list of objects like values."),
        ('"records": ["A"]', 'write values as {"name": ["Blue Fern"], "phone": []}.'),
        ('"nodes": {"name": [1]}', "the values of 'name' must be texts in quotes."),
    ],
)
def test_what_is_wrong_with_an_example(file: Path, rest: str, message: str) -> None:
    sentence = told(file, f'{{"url": "https://a.example/", {rest}}}')
    assert sentence.startswith("Line 1 of FILE")
    assert sentence.endswith(message)


@given(
    st.binary(max_size=60)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["url", "values", "records", "nodes", "x"]), inner, max_size=4)
        ),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode())
)
def test_whatever_a_file_holds_is_read_or_told(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = tmp_path_factory.mktemp("any") / "examples.jsonl"
    file.write_bytes(content)
    with suppress(ExampleError):
        assert all(example.url for example in read_examples(str(file)))
