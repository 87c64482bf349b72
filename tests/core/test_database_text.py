"""What counts as text that can be stored is what both databases take."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.storable_text import is_storable, storable, storable_json


@given(st.text(st.characters(codec=None)))
def test_storable_text_is_always_storable(text: str) -> None:
    assert is_storable(storable(text))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert is_storable(text)
    assert storable(text) == text


def test_nul_and_half_surrogate_pairs_are_replaced_one_by_one() -> None:
    assert storable("a\0b\ud800c\udfff") == "a�b�c�"


@given(st.recursive(st.text(st.characters(codec=None)), lambda inner: st.dictionaries(st.text(), inner)))
def test_json_that_is_made_storable_says_the_same(value: object) -> None:
    text = storable_json(json.dumps(value, ensure_ascii=False))
    assert is_storable(text)
    # Two halves that follow one another were written apart, and are read as the one character they make.
    assert json.loads(text) == json.loads(json.dumps(value))


def test_json_that_is_storable_stays_as_it_is() -> None:
    text = '{"name": "\\ud800 \\u0000 🐍"}'
    assert storable_json(text) == text
