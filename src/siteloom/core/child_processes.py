"""What the processes that this one starts find in their environment.

A process of `multiprocessing` begins as `python -c`, which looks for each module in the current folder first,
also for those of Python itself. That folder may be someone else's, as one is that was unpacked. Python does
not look there if a variable says so; the folders where this process finds its modules, it is told besides.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SAFE_PATH = "PYTHONSAFEPATH"

_OURS = "siteloom"  # any text will do, and by this one it is known who has set it

_lock = threading.Lock()
_users = 0
_before: str | None = None


@contextmanager
def safe_path() -> Iterator[None]:
    """Let Python processes that are started meanwhile not look for modules in the current folder."""
    global _users, _before  # noqa: PLW0603 - threads share the environment, too
    with _lock:
        if _users == 0:
            _before = os.environ.get(SAFE_PATH)
        _users += 1
        os.environ[SAFE_PATH] = _before or _OURS
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0 and _before is None:
                del os.environ[SAFE_PATH]
            elif _users == 0 and _before is not None:
                os.environ[SAFE_PATH] = _before


def environment_of_programs() -> dict[str, str]:
    """The environment for programs of others: that of this process, without what is set here."""
    return {name: value for name, value in os.environ.items() if (name, value) != (SAFE_PATH, _OURS)}
