"""Errors tell in a sentence what is wrong, whatever they quote."""

from __future__ import annotations

import pickle

import pytest

from siteloom.core.errors import ExampleNotFound, SiteloomError, SourceError, UnreadablePage, UsageError
from siteloom.core.wording import bounded

LONG_URL = "http://a.example/" + "a/" * 400_000


@pytest.mark.parametrize(
    "error",
    [
        SourceError(f"Nothing can be read from {LONG_URL}: look at it."),
        UsageError(f"There is no {LONG_URL!r}."),
        UnreadablePage(LONG_URL, "it has no end"),
        ExampleNotFound(LONG_URL, "name", "many words " * 100_000, None),
        ExampleNotFound("http://a.example/", "name", "\n" * 100_000, "x y " * 100_000),
    ],
)
def test_what_is_quoted_may_be_of_any_length(error: SiteloomError) -> None:
    said = str(error)
    assert len(said) < 10_000
    assert said.startswith(error.args[0][:10])
    assert said.endswith(error.args[0][-10:])
    assert "…" in said
    assert str(pickle.loads(pickle.dumps(error))) == said


def test_a_url_is_told_in_so_far_as_it_can_be_recognised() -> None:
    assert bounded(f"See {LONG_URL}.") == f"See {LONG_URL[:400]}…{LONG_URL[-19:]}."


@pytest.mark.parametrize("sentence", ["", "One, two.", f"{'x' * 420} {'y' * 420}", "word " * 1_600])
def test_what_people_read_is_as_it_was(sentence: str) -> None:
    assert bounded(sentence) == sentence
    assert str(SiteloomError(sentence)) == sentence
