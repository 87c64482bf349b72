"""What all tests of whole crawls share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails is tried again at once: in a test nothing is well again later."""
    monkeypatch.setattr("siteloom.engine.local.SECONDS_BEFORE_OTHER_TRIES", (0.0, 0.0))
