"""What counts as text that can be stored is what both databases take."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from siteloom.store.text import is_storable, storable


@given(st.text(st.characters(codec=None)))
def test_storable_text_is_always_storable(text: str) -> None:
    assert is_storable(storable(text))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert is_storable(text)
    assert storable(text) == text


def test_nul_and_half_surrogate_pairs_are_replaced_one_by_one() -> None:
    assert storable("a\0b\ud800c\udfff") == "a�b�c�"
