"""The tag scanner finds what the tokenizer of the HTML standard finds."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from siteloom.html.tag_scanner import Tags, name_hash, scan_tags
from tests.html.html_bytes import html_like
from tests.html.tokenizer import Tag, tokenize

FNV_BASIS, FNV_PRIME, MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1

# Bytes that decide between the states of scripts and comments.
script_bytes = st.lists(
    st.sampled_from(
        [b"<script>", b"</script>", b"<script", b"</script", b"<SCRIPT/", b"<scripts>", b"<!--",
         b"-->", b"-", b"<", b"!",
         b">", b"/", b" ", b"s", b"</", b"<b>", b"--!>", b"<!-->"]
    ),
    max_size=30,
).map(lambda parts: b"<script>" + b"".join(parts))  # fmt: skip


def fnv_1a(name: bytes) -> int:
    value = FNV_BASIS
    for byte in name:
        value = (value ^ byte) * FNV_PRIME & MASK
    return value


def rows(tags: Tags) -> list[tuple[int, ...]]:
    return [tuple(int(value) for value in row) for row in zip(*tags, strict=True)]


def twin_rows(tags: list[Tag]) -> list[tuple[int, ...]]:
    return [(tag.start, tag.end, fnv_1a(tag.name), int(tag.is_end), tag.attributes) for tag in tags]


@given(st.binary(max_size=100))
def test_the_scanner_agrees_with_the_standard_on_any_bytes(html: bytes) -> None:
    assert rows(scan_tags(html)) == twin_rows(tokenize(html))


@given(html_like)
@example(b"<!--<!-->x<b>")
@example(b"<title></titles><b></title ><i>")
@example(b"<p a='>'b=\">\"c=>")
@example(b"<plaintext><p>")
def test_the_scanner_agrees_with_the_standard_on_html(html: bytes) -> None:
    assert rows(scan_tags(html)) == twin_rows(tokenize(html))


@given(script_bytes)
@example(b"<script><!--<script></script></script><b>")
@example(b"<script><!--<script>--></script><b>")
@example(b"<script><!--></script><b>")
def test_the_scanner_agrees_with_the_standard_on_scripts(html: bytes) -> None:
    assert rows(scan_tags(html)) == twin_rows(tokenize(html))


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (b"", []),
        (b"text", []),
        (b"a<P Class=x id>b</p>", [(1, 15, b"p", False, 2), (16, 20, b"p", True, 0)]),
        (b"<br/><br / >", [(0, 5, b"br", False, 0), (5, 12, b"br", False, 0)]),
        (b"<p><b", [(0, 3, b"p", False, 0)]),
        (b"<p title='a>b'>", [(0, 15, b"p", False, 1)]),
        (b"<!-- <p> --><b>", [(12, 15, b"b", False, 0)]),
        (b"<style><b></style>", [(0, 7, b"style", False, 0), (10, 18, b"style", True, 0)]),
    ],
)
def test_tags_are_found_where_they_stand(
    html: bytes, expected: list[tuple[int, int, bytes, bool, int]]
) -> None:
    assert rows(scan_tags(html)) == twin_rows([Tag(*row) for row in expected])
    assert tokenize(html) == expected  # the twin is right as well


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=20))
def test_a_name_is_hashed_by_its_bytes_in_lower_case(name: str) -> None:
    assert int(name_hash(name)) == fnv_1a(name.encode().lower())


def test_the_hash_is_the_published_one() -> None:
    assert int(name_hash("foobar")) == 0x85944171F73967E8  # a test vector of its authors


def test_columns_have_the_types_they_promise() -> None:
    tags = scan_tags(b"<p>")
    assert [column.dtype for column in tags] == [np.int64, np.int64, np.uint64, np.bool_, np.int64]


@pytest.mark.parametrize(
    "html",
    [
        b"<" * 1_000_000,
        b"</" * 500_000,
        b"<!--" * 250_000,
        b"<a " * 330_000,
        b"<a b='" * 160_000,
        b"<script>" + b"</script" * 125_000,
        b"<script><!--" + b"<a" * 500_000,
        b"<script><!--<script>" + b"</s" * 330_000,
        b"<title>" + b"</titl" * 160_000,
        b"<a" + b" a" * 500_000 + b">",
    ],
    ids=lambda html: html[:24].decode(),
)
def test_a_hostile_megabyte_is_scanned_at_once(html: bytes) -> None:
    scan_tags(b"<p>")  # compiled before the clock runs
    start = time.process_time()
    scan_tags(html)
    assert time.process_time() - start < 1  # quadratic code takes minutes
