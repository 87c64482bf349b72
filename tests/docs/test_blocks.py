"""Blocks of documents are found, and no kind of them is passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import blocks_of
from tests.docs.following import Place

TEXT = """# A document

    siteloom ingest a.jsonl   # some pages
    # a comment
    curl -H "a" \\
         http://b.example/

- a list
  that goes on

```console
$ siteloom serve
```

Text, then settings:

    [run]
    jobs = 2

    [parse]
    max_tags = 5

```python
print("    siteloom is not called here")

print(2)
```

Others:

    15 3 * * *  cd /srv && siteloom monitor

and

    {"a": 1}

and

    SELECT 1

and

    NAME = "x"

and

    what is this
"""


def test_blocks_are_found_with_their_kind_and_their_line() -> None:
    assert [(block.kind, block.line) for block in blocks_of(TEXT)] == [
        ("shell", 3),
        ("shell", 12),
        ("toml", 17),
        ("python", 24),
        ("crontab", 31),
        ("json", 35),
        ("sql", 39),
        ("python", 43),
        ("text", 47),
    ]


def test_the_steps_of_a_shell_are_its_commands() -> None:
    shell, console, settings, *_ = blocks_of(TEXT)
    assert shell.steps == ["siteloom ingest a.jsonl", 'curl -H "a" http://b.example/']
    assert console.steps == ["siteloom serve"]
    assert settings.steps == ["[run]\njobs = 2\n\n[parse]\nmax_tags = 5"]


def test_a_language_that_nobody_knows_is_text() -> None:
    assert [block.kind for block in blocks_of("```nginx\nserver {}\n```\n")] == ["text"]


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Where a document is followed that calls for what is not there."""
    text = "    echo one\n    false\n\nand\n\n    what is this\n"
    monkeypatch.setattr("tests.docs.following.blocks", lambda _: blocks_of(text))
    return Place(tmp_path, "a document", {}, request)


def test_a_command_that_fails_is_noticed(place: Place) -> None:
    with pytest.raises(AssertionError, match="a document: false"):
        place.follow()


def test_what_is_left_over_is_noticed(place: Place) -> None:
    place.follow(before="false")
    assert place["echo one"].stdout == "one\n"
    with pytest.raises(AssertionError, match="a document, not followed: false"):
        place.check_that_all_is_done()
    place.fails["false"] = ""
    with pytest.raises(pytest.fail.Exception, match="line 6: no one knows how to run this"):
        place.follow()


def test_what_the_document_does_not_say_any_more_is_noticed(place: Place) -> None:
    place.not_run = {"false": "it fails", "what is this": "text", "echo two": "gone"}
    place.follow()
    with pytest.raises(AssertionError, match=r"does not say this any more: \{'echo two'\}"):
        place.check_that_all_is_done()


def test_output_that_nothing_gives_is_noticed(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "    echo '│ one │ 2 │'\n\n```text\n│ one │ ...\n```\n\n```text\n│ one │ 3 │\n```\n"
    monkeypatch.setattr("tests.docs.following.blocks", lambda _: blocks_of(text))
    with pytest.raises(AssertionError, match="a document shows what nothing says: │ one │ 3 │"):
        Place(tmp_path, "a document", {}, request).follow()
