"""What makes no sense: it is answered with a sentence, and nothing of it is kept."""

from __future__ import annotations

import pytest
from fastapi import FastAPI

from siteloom.core.errors import StoreError
from siteloom.store.store import Store
from tests.apps.server.browsing import Browser
from tests.operations.calls import extract_records

HALF = rb"\ud800"
HALF_REFUSED = "This cannot be understood: a text has half a character in it."


@pytest.fixture
def browser(app: FastAPI) -> Browser:
    browser = Browser(app)
    browser.look("/")
    return browser


def sent(browser: Browser, path: str, body: bytes) -> tuple[int, str]:
    """The status and the sentence that what is sent as JSON is answered with."""
    headers = {"X-CSRF-Token": browser.token, "Content-Type": "application/json"}
    answer = browser.ask("POST", path, headers=headers, content=body)
    return answer.status_code, answer.json().get("detail", "")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/jobs", rb'{"kind": "remove_seeds", "arguments": {"source": "%s"}}'),
        ("/api/jobs", rb'{"kind": "%s"}'),
        ("/api/urls", rb'{"urls": ["https://a.example/%s"]}'),
    ],
)
def test_half_a_character_is_refused_before_it_is_kept(browser: Browser, path: str, body: bytes) -> None:
    assert sent(browser, path, body.replace(b"%s", HALF)) == (422, HALF_REFUSED)
    assert browser.get("/api/jobs").json() == []


def test_two_halves_are_a_whole_character(browser: Browser) -> None:
    assert sent(browser, "/api/urls", rb'{"urls": ["https://a.example/\ud83d\ude00"]}') == (200, "")


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b"{", 422, "This cannot be understood: what was sent is not JSON."),
        (b"\xff", 400, "What was sent cannot be read."),
        (b"[1]", 422, "This cannot be understood: what was sent must be a JSON object, not [1]."),
        (b"[" * 100_000, 400, "What was sent cannot be read."),
        (
            b'{"kind": "index", "arguments": {"site": "a.example"}}',
            400,
            "A job of the kind index takes no arguments, so no site.",
        ),
    ],
)
def test_what_is_no_order_is_told_in_a_sentence(
    browser: Browser, body: bytes, status: int, sentence: str
) -> None:
    assert sent(browser, "/api/jobs", body) == (status, sentence)


def test_what_may_be_left_empty_is_no_choice(browser: Browser) -> None:
    answer = browser.get("/api/search?words=a&kind=b")
    assert answer.json()["detail"] == "This cannot be understood: kind must be page or record, not b."


def test_without_a_wrapper_people_are_told_what_to_do_in_a_browser(empty_store: Store) -> None:
    with pytest.raises(StoreError, match="annotate some pages"):
        extract_records(empty_store)
