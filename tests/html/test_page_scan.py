"""The least hashes of a page's tag shingles are those that plain Python finds."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from siteloom.html.page_scan import WINDOW, scan_page
from tests.html.html_bytes import html_like
from tests.html.test_tag_scanner import fnv_1a
from tests.html.tokenizer import Tag, tokenize

MASK = 2**64 - 1
SEEDS = np.array([1, 2**40 + 7, MASK], np.uint64)

IGNORED = {b"script", b"style", b"meta", b"link"}
ATTRIBUTE = re.compile(
    rb"""[\s/]*+ (?P<name>[^\s/>][^\s/>=]*+) (?: \s*+ = \s*+ (?: "(?P<a>[^"]*+)" | '(?P<b>[^']*+)'"""
    rb""" | (?P<c>[^\s>]*+) ) )?+""",
    re.VERBOSE,
)

# Inputs of which it is not obvious whether they are hidden.
input_parts = st.lists(
    st.sampled_from(
        [b"<input", b"</input", b"<INPUT ", b"<inputs", b" ", b"\t", b"/", b">", b"type", b"TYPE",
         b"type=hidden", b"type='hidden'", b'Type = "Hidden"', b"type=text", b"xtype=hidden", b"=",
         b"hidden", b"value='type=hidden'", b"value=hidden", b'"', b"'", b"type=hidden/", b"type='hidden '"]
    ),
    max_size=25,
).map(lambda parts: b"<p>" + b"".join(parts) + b"><b>")  # fmt: skip

many_tags = st.lists(
    st.sampled_from([b"<p>", b"</p>", b"<b>", b"<td class=x>", b"text", b"<link>", b"<hr/>"]), max_size=60
).map(b"".join)


def least_shingle_bytes(html: bytes, seeds: np.ndarray) -> bytes | None:
    return scan_page(html, seeds).least_bytes


def mix(x: int) -> int:
    """The finalizer of MurmurHash3."""
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD & MASK
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 & MASK
    return x ^ x >> 33


def is_hidden_input(html: bytes, tag: Tag) -> bool:
    if tag.name != b"input" or tag.is_end:
        return False
    for found in ATTRIBUTE.finditer(html, tag.start + len(b"<input"), tag.end - 1):
        if found["name"].lower() == b"type":
            return b"hidden" in [(found[group] or b"").lower() for group in "abc"]
    return False


def layout_tags(html: bytes) -> list[Tag]:
    return [tag for tag in tokenize(html) if tag.name not in IGNORED and not is_hidden_input(html, tag)]


def shingle_hash(tags: list[Tag]) -> int:
    value = 0
    for tag in tags:
        value = (value * 0x9E3779B97F4A7C15 + mix(fnv_1a(tag.name) + tag.is_end & MASK)) & MASK
    return mix(value)


def twin_bytes(html: bytes) -> bytes | None:
    tags = layout_tags(html)
    if not tags:
        return None
    shingles = {shingle_hash(tags[start : start + WINDOW]) for start in range(max(1, len(tags) - WINDOW + 1))}
    return bytes(mix(min(mix(shingle ^ int(seed)) for shingle in shingles)) & 0xFF for seed in SEEDS)


@given(html_like | many_tags)
@example(b"")
@example(b"<p>" * (WINDOW - 1))
@example(b"<p>" * WINDOW)
@example(b"<p>" * (WINDOW + 1))
@example(b"<script><b></script>")
def test_the_kernel_agrees_with_plain_python(html: bytes) -> None:
    assert least_shingle_bytes(html, SEEDS) == twin_bytes(html)


@given(st.binary(max_size=100))
def test_the_kernel_agrees_with_plain_python_on_any_bytes(html: bytes) -> None:
    assert least_shingle_bytes(html, SEEDS) == twin_bytes(html)


@given(input_parts)
def test_the_kernel_agrees_with_plain_python_on_inputs(html: bytes) -> None:
    assert least_shingle_bytes(html, SEEDS) == twin_bytes(html)


@pytest.mark.parametrize(
    ("attributes", "is_hidden"),
    [
        (b"", False),
        (b" type=hidden", True),
        (b" TYPE = 'Hidden' name=a", True),
        (b' name="a>b"type="hidden"', True),
        (b"/type=hidden /", True),
        (b" hidden", False),
        (b" class=hidden", False),
        (b" type=text value='hidden gems'", False),
        (b" value='x type=hidden'", False),
        (b" data-type=hidden", False),
        (b" type=text type=hidden", False),
        (b" type=hiddenish", False),
        (b" type", False),
        (b" type=", False),
        (b" =type=hidden", False),
    ],
)
def test_an_input_is_hidden_if_its_type_says_so(attributes: bytes, is_hidden: bool) -> None:
    html = b"<p><input" + attributes + b">"
    assert least_shingle_bytes(html, SEEDS) == least_shingle_bytes(
        b"<p>" if is_hidden else b"<p><input>", SEEDS
    )
    assert (len(layout_tags(html)) == 1) == is_hidden  # the twin is right as well


def test_a_start_tag_and_an_end_tag_are_two_tags() -> None:
    assert least_shingle_bytes(b"<p><p>", SEEDS) != least_shingle_bytes(b"<p></p>", SEEDS)


def test_a_shingle_is_ten_tags() -> None:
    """Beyond ten tags, a page is the set of its shingles: repetition adds nothing."""
    assert least_shingle_bytes(b"<p>" * 10, SEEDS) == least_shingle_bytes(b"<p>" * 1_000, SEEDS)
    assert least_shingle_bytes(b"<p>" * 9, SEEDS) != least_shingle_bytes(b"<p>" * 10, SEEDS)


def test_every_seed_gives_one_byte() -> None:
    html = b"<html><body><p>"
    together = least_shingle_bytes(html, SEEDS)
    assert together is not None
    assert len(together) == len(SEEDS)
    assert [least_shingle_bytes(html, SEEDS[i : i + 1]) for i in range(3)] == [
        together[i : i + 1] for i in range(3)
    ]


@pytest.mark.parametrize(
    "html",
    [b"<p>" * 330_000, b"<input " * 140_000, b"<input a='" * 100_000, b"<input" + b" a" * 500_000 + b">"],
    ids=lambda html: html[:10].decode(),
)
def test_a_hostile_megabyte_is_hashed_at_once(html: bytes) -> None:
    least_shingle_bytes(b"<p>", SEEDS)  # compiled before the clock runs
    start = time.process_time()
    least_shingle_bytes(html, SEEDS)
    assert time.process_time() - start < 1  # quadratic code takes minutes
