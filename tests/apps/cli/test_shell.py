"""What all verbs share, seen from a terminal."""

from __future__ import annotations

import re
import sys
import time

import pytest

from siteloom.apps.cli.terminal import Shell
from siteloom.core.settings import Settings


def test_the_line_of_progress_counts_one_page_as_one_and_shows_slow_rates(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with Shell(Settings(), (), quiet=False).counting("Reading") as count:
        time.sleep(0.12)
        count(1)
    assert re.search(r"Reading  1 page  [0-8]\.[0-9] pages/s", capsys.readouterr().err)
