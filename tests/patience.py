"""How long tests wait for something before they take it to hang."""

from __future__ import annotations

import time
from collections.abc import Callable

# Far longer than anything takes on a busy machine. A test that passes does not wait for it.
SECONDS = 300
MILLISECONDS = 1_000 * SECONDS

_SECONDS_BETWEEN_LOOKS = 0.01


def wait_until(condition: Callable[[], object]) -> None:
    """Return when the condition holds; fail the test if it never does."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "what the test waits for has not happened"
        time.sleep(_SECONDS_BETWEEN_LOOKS)
