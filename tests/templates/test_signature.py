"""A signature tells the layout of a page, and nothing but the layout."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from siteloom.templates.signature import SIGNATURE_BYTES, Mask, path_signature, signature
from tests.html.html_bytes import html_bytes

LAYOUT = (b"html", b"body", b"div", b"p", b"ul", b"li", b"table", b"td", b"h1", b"a", b"input", b"o:p")

# Written down when they were first computed; plain Python gives the same (tests/kernels/test_shingles.py).
FROZEN = {
    b"<p>": "1737f89ea2b5b22d",
    b"<!doctype html><title>A &lt; b</title><body><p class='x>y'>Text</p></body></html>": "1700f3dc0c5684cf",
    b"<table>" + b"<tr><td>1</td><td>2</td></tr>" * 5 + b"</table>": "4410de92da067278",
    b"<input type=hidden name=t><UL><li>\xff<li>\x00<li></uL><br/><script>'<b>'</script>": "98cfd5017d49d5a4",
}


def other_process(code: str, hash_seed: str) -> str:
    """What a new process prints, whose texts have other hashes than here."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def hexadecimal(html: bytes) -> str | None:
    found = signature(html)
    return None if found is None else found.hex()


@pytest.mark.parametrize(("html", "expected"), FROZEN.items(), ids=FROZEN.values())
def test_frozen_signatures(html: bytes, expected: str) -> None:
    assert hexadecimal(html) == expected


def test_another_process_finds_the_same_signatures() -> None:
    code = (
        "from siteloom.templates.signature import path_signature, signature\nimport numpy as np\n"
        f"for html in {list(FROZEN)!r}: print(signature(html).hex())\n"
        "print(path_signature(np.arange(50, dtype=np.uint64)).hex())"
    )
    paths = path_signature(np.arange(50, dtype=np.uint64))
    assert paths is not None
    assert other_process(code, "4711").split() == [*FROZEN.values(), paths.hex()]


def test_a_signature_of_paths_is_frozen() -> None:
    found = path_signature(np.array([1, 2**63, 7], np.uint64))
    assert found is not None
    assert found.hex() == "024ae6c3e7fe2c7d"


# What stands between the tags of a layout and is no part of it.
texts = st.text(st.characters(codec="utf-8", exclude_characters="<"), max_size=20).map(str.encode)
invisible = st.one_of(
    texts,
    texts.map(lambda text: b"<!-- <p>" + text.replace(b"-", b"") + b"</p> -->"),
    texts.map(lambda text: b"<script>if (a<b) '<div>';" + text + b"</script>"),
    texts.map(lambda text: b"<STYLE type=x><p>" + text + b"</STYLE >"),
    st.sampled_from(
        [b"<meta name='a' content='b>c'>", b'<link rel="x">', b"<LINK/>", b"<input type=hidden>",
         b"<input name='x' value='>' TYPE='Hidden'/>", b"<!doctype html>", b"<?xml version='1.0'?>", b"</>",
         b"< p>", b"<1>", b"</ p>", b"<![CDATA[x]]>"]
    ),
)  # fmt: skip
attributes = st.sampled_from(
    [b"", b" ", b" class=a", b" title='a > b <p>'", b' data-x=">"', b" hidden", b" value='hidden'", b"/"]
)
layouts = st.lists(st.tuples(st.sampled_from(LAYOUT), st.booleans()), max_size=30)


@st.composite
def pages_of(draw: st.DrawFn, layout: list[tuple[bytes, bool]]) -> bytes:
    """A page with exactly these tags, in upper or lower case, and anything else between them."""
    parts = []
    for name, is_end in layout:
        parts.append(draw(invisible))
        written = name.upper() if draw(st.booleans()) else name
        parts.append(b"</" + written + b">" if is_end else b"<" + written + draw(attributes) + b">")
    return b"".join([*parts, draw(invisible), draw(st.sampled_from([b"", b"<p", b"<p a='>", b"<!-- <p>"]))])


@given(st.data(), layouts)
def test_pages_with_the_same_tags_have_the_same_signature(
    data: st.DataObject, layout: list[tuple[bytes, bool]]
) -> None:
    plain = b"".join((b"</" if is_end else b"<") + name + b">" for name, is_end in layout)
    assert signature(data.draw(pages_of(layout))) == signature(plain)


@given(html_bytes, texts)
def test_text_before_a_page_changes_nothing(html: bytes, text: bytes) -> None:
    assert signature(text + html) == signature(html)


@given(html_bytes)
@example(b"")
@example(b"<")
@example(b"<input")
@example(b"<input type=")
@example(b"<input type='hidden")
def test_any_bytes_have_a_signature_or_none(html: bytes) -> None:
    found = signature(html)
    assert found is None or len(found) == SIGNATURE_BYTES


@pytest.mark.parametrize(
    "html", [b"", b"text", b"<p", b"<!-- <p> -->", b"<script><p></script>", b"<meta><link>", b"\xff\x00"]
)
def test_a_page_without_tags_has_no_signature(html: bytes) -> None:
    assert signature(html) is None


@pytest.mark.parametrize(
    "other",
    [
        b"<div><p></p></div><p>",
        b"<div><p>",
        b"<div></p><p></div>",
        b"<div><b></b></div>",
        b"<div><p></p></div><input type=text>",
    ],
)
def test_other_tags_give_another_signature(other: bytes) -> None:
    assert signature(other) != signature(b"<div><p></p></div>")


def far_apart(tags: list[str]) -> bytes:
    """A page with these tags, so far from each other that no shingle has two of them."""
    separator = "<hr>" * 10
    return (separator + separator.join(tags) + separator).encode()


def test_bytes_agree_as_often_as_pages_share_shingles() -> None:
    """A byte of a 64-bit minimum; the minimum of bytes would be 0 on nearly every page of this size."""
    dice = random.Random(1)
    tags = [f"<t{dice.randrange(10**9)}>" for _ in range(6_000)]
    agreeing = 0
    values: set[int] = set()
    for trial in range(100):
        block = tags[60 * trial : 60 * (trial + 1)]
        a, b = signature(far_apart(block[:40])), signature(far_apart(block[20:]))  # 20 of 60 are common
        assert a is not None
        assert b is not None
        agreeing += sum(x == y for x, y in zip(a, b, strict=True))
        values.update(a)
    assert agreeing / 800 == pytest.approx(1 / 3, abs=0.06)
    assert len(values) > 200


def test_paths_have_a_signature_of_the_same_kind() -> None:
    random_numbers = np.random.default_rng(2)
    agreeing = 0
    for _ in range(200):
        paths = random_numbers.integers(0, 2**64, 90, np.uint64)
        a, b = path_signature(paths[:60]), path_signature(paths[30:])
        assert a is not None
        assert b is not None
        agreeing += sum(x == y for x, y in zip(a, b, strict=True))
    assert agreeing / 1_600 == pytest.approx(1 / 3, abs=0.05)


def test_the_order_of_paths_does_not_matter_and_no_paths_have_no_signature() -> None:
    paths = np.array([5, 2**64 - 1, 9], np.uint64)
    assert path_signature(paths) == path_signature(paths[::-1])
    assert path_signature(paths[:0]) is None


def test_a_mask_covers_what_equals_it_but_for_the_wildcards() -> None:
    mask = Mask(b"abcdefgh", frozenset({0, 7}))
    assert mask.covers(b"abcdefgh")
    assert mask.covers(b"xbcdefgx")
    assert not mask.covers(b"xbcdefxh")


def test_wildcards_are_places_and_not_values() -> None:
    mask = Mask(b"aaaaaaaa", frozenset({1}))
    assert not mask.covers(b"baaaaaaa")
    assert str(mask) == "61**616161616161"


@given(st.binary(min_size=8, max_size=8), st.frozensets(st.integers(0, 7)))
def test_a_mask_is_read_from_its_text(value: bytes, wildcards: frozenset[int]) -> None:
    blanked = bytes(0 if place in wildcards else byte for place, byte in enumerate(value))
    mask = Mask(blanked, wildcards)
    assert Mask.from_text(str(mask)) == mask == pickle.loads(pickle.dumps(mask))
    assert mask.covers(value)


def test_a_page_in_utf_16_has_the_signature_of_its_text() -> None:
    text = "<html><body><p>naïve</p><div><b>x</b></div></body></html>"
    assert signature(text.encode("utf-16")) == signature(text.encode("utf-8")) is not None
