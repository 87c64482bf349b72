"""The values that cross stages: frozen, comparable, and able to cross processes."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siteloom.core.model import Failure, Page, Resource, Skipped

TIME = datetime(2024, 1, 2, tzinfo=UTC)
VALUES = [
    Page("http://a.example/", b"<p>", TIME, "utf-8"),
    Resource("http://a.example/s.css", b"a {}", "text/css", TIME),
    Failure("http://a.example/", "page too large", "9 bytes"),
    Skipped("http://a.example/", "status 404"),
]
every_value = pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)


@every_value
def test_a_value_crosses_processes_unchanged(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value


@every_value
def test_a_value_cannot_be_changed(value: Page | Resource | Failure | Skipped) -> None:
    for field in fields(value):
        with pytest.raises(FrozenInstanceError):
            setattr(value, field.name, "x")


@every_value
def test_equal_values_count_as_one(value: object) -> None:
    assert len({value, pickle.loads(pickle.dumps(value))}) == 1


def test_a_page_needs_only_a_url_and_html() -> None:
    page = Page("http://a.example/", b"")
    assert page.fetched_at is None
    assert page.charset is None


@pytest.mark.parametrize(
    ("html", "kind"), [("<p>", "str"), (None, "NoneType"), (bytearray(b"<p>"), "bytearray")]
)
def test_html_must_be_bytes_and_the_error_says_what_to_do(html: object, kind: str) -> None:
    with pytest.raises(TypeError, match=rf"^Page\.html must be bytes, not {kind}: use Page\.from_text"):
        Page("http://a.example/", html)  # type: ignore[arg-type]


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_a_page_from_text_holds_the_text_and_says_how_it_is_encoded(text: str) -> None:
    page = Page.from_text("http://a.example/", text, TIME)
    assert page.charset == "utf-8"
    assert page.html.decode() == text
    assert page.fetched_at == TIME


def test_half_a_character_becomes_a_question_mark() -> None:
    assert Page.from_text("u", "a\udcffb").html == b"a?b"


def test_a_failure_needs_no_detail() -> None:
    assert Failure("u", "empty page") == Failure("u", "empty page", "")
