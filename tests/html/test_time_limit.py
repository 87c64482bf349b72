"""A page that takes too much processor time is given up, and nothing else is disturbed."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from siteloom.core.model import Failure
from siteloom.html.time_limit import TOOK_TOO_LONG, within

URL = "https://a.example/"
LITTLE = 0.05


@pytest.fixture(autouse=True)
def no_timer_is_left() -> Iterator[None]:
    yield
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)


def spin() -> None:
    while True:
        pass


def spin_for(seconds: float) -> str:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return "done"


def swallowing() -> None:
    while True:
        with suppress(Exception):  # as libraries do that pass over what is broken
            spin()


def backtracking() -> None:
    re.fullmatch("(a+)+b", "a" * 64)


@pytest.mark.parametrize("work", [spin, swallowing, backtracking])
def test_work_that_never_ends_is_a_failure(work: Any) -> None:
    started = time.process_time()
    assert within(LITTLE, URL, work) == Failure(
        URL, TOOK_TOO_LONG, "at most 0.05 seconds of processor time are spent on a page"
    )
    assert time.process_time() - started < 1


def test_what_is_swallowed_is_raised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("siteloom.html.time_limit._SECONDS_UNTIL_AGAIN", LITTLE)
    swallowed = []

    def work() -> None:
        for _ in range(3):
            try:
                spin()
            except BaseException as error:  # noqa: BLE001 - as while an object is freed
                swallowed.append(error)
        spin()

    assert isinstance(within(LITTLE, URL, work), Failure)
    assert len(swallowed) == 3


def test_work_in_time_gives_what_it_gives_and_errors_are_its_own() -> None:
    for _ in range(3):  # each page has all the time
        assert within(10 * LITTLE, URL, lambda: spin_for(6 * LITTLE)) == "done"
    with pytest.raises(ZeroDivisionError):
        within(LITTLE, URL, lambda: 1 // 0)
    assert spin_for(2 * LITTLE) == "done"


def test_only_processor_time_counts() -> None:
    def work() -> str:
        time.sleep(4 * LITTLE)
        return "done"

    assert within(LITTLE, URL, work) == "done"


def test_nought_is_no_limit() -> None:
    assert within(0, URL, lambda: spin_for(2 * LITTLE)) == "done"


def test_work_within_work_shares_its_time() -> None:
    def work() -> object:
        assert within(LITTLE, "inner", lambda: spin_for(2 * LITTLE)) == "done"
        return within(60, "inner", spin)

    found = within(4 * LITTLE, URL, work)
    assert isinstance(found, Failure)
    assert found.url == URL


def test_other_threads_are_not_limited_and_do_not_fail() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(within(LITTLE, URL, lambda: spin_for(2 * LITTLE))))
    thread.start()
    thread.join()
    assert found == ["done"]


def test_a_profiler_keeps_its_signal() -> None:
    heard = []
    assert within(LITTLE, URL, lambda: "done") == "done"
    before = signal.signal(signal.SIGPROF, lambda *_: heard.append(1))
    signal.setitimer(signal.ITIMER_PROF, LITTLE / 5, LITTLE / 5)
    try:
        assert within(LITTLE, URL, lambda: spin_for(3 * LITTLE)) == "done"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert len(heard) > 5
    assert isinstance(within(LITTLE, URL, spin), Failure)  # and when it has done, pages are limited again
