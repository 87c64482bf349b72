"""Ctrl-C that waits for a good moment."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from siteloom.core.interrupts import held_back_interrupt

PRESS_TWICE = """
import signal
from siteloom.core.interrupts import held_back_interrupt
with held_back_interrupt():
    signal.raise_signal(signal.SIGINT)
    print("still in the block", flush=True)
    signal.raise_signal(signal.SIGINT)
    print("not reached")
"""


@pytest.fixture(autouse=True)
def _handler_stays_as_it_was() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    after = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)
    assert after is before


def press_and_note(steps: list[str]) -> None:
    with held_back_interrupt():
        signal.raise_signal(signal.SIGINT)
        steps.append("still in the block")


def test_ctrl_c_takes_effect_when_the_block_is_done() -> None:
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        press_and_note(steps)
    assert steps == ["still in the block"]


def test_the_second_ctrl_c_ends_the_process_on_the_spot() -> None:
    ended = subprocess.run([sys.executable, "-c", PRESS_TWICE], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (-signal.SIGINT, "still in the block\n")


def test_an_error_in_the_block_passes_through() -> None:
    with pytest.raises(ZeroDivisionError), held_back_interrupt():
        raise ZeroDivisionError


def test_ctrl_c_does_not_take_the_place_of_an_error_in_the_block() -> None:
    with pytest.raises((ZeroDivisionError, KeyboardInterrupt)) as raised:  # else Ctrl-C would end pytest
        press_and_fail()
    assert raised.type is ZeroDivisionError


def press_and_fail() -> None:
    with held_back_interrupt():
        signal.raise_signal(signal.SIGINT)
        raise ZeroDivisionError


def test_nothing_is_held_back_where_ctrl_c_is_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        press_and_note([])
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_thread_may_use_it_although_signals_are_not_its_own() -> None:
    with ThreadPoolExecutor(1) as thread:
        thread.submit(press_nothing).result()


def press_nothing() -> None:
    with held_back_interrupt():
        pass
