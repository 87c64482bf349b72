"""Coroutines in tests that are none themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Given = TypeVar("Given")


def awaited(coroutine: Coroutine[Any, Any, Given]) -> Given:
    """What a coroutine gives.

    In a thread: where tests in a real browser have run, this one has a loop of events already.
    """
    with ThreadPoolExecutor(1) as one:
        return one.submit(asyncio.run, coroutine).result()
