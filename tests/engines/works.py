"""What the workers of these tests do; in a module of its own, so that new processes load little."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from siteloom.core.errors import SiteloomError
from siteloom.engines.engine import PartitionWork, Work
from siteloom.html.time_limit import Lost, within

Numbers = Sequence[int]
Step = Callable[[int], None]

DEADLY = 13  # kills the process
FATAL = 14  # ends it
POISON = 15  # kills it, even if it is left out


class Refused(SiteloomError):
    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"{number} is refused: {reason}.")
        self.number = number


class NotForTravel(Exception):
    # It can be pickled, but not made again.
    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"{number} {reason}")


def squares() -> Work[Numbers, list[int]]:
    return _squares


def _squares(shard: Numbers, lost: Lost, step: Step) -> list[int]:
    found = []
    for place, number in enumerate(shard):
        step(place)
        if number == POISON:
            os.kill(os.getpid(), signal.SIGKILL)
        if place in lost.steps:
            found.append(-len(lost.steps[place]))
            continue
        if number == DEADLY:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == FATAL:
            os._exit(3)
        found.append(number * number)
    return found


def lost_steps() -> Work[Numbers, dict[int, str]]:
    def work(shard: Numbers, lost: Lost, step: Step) -> dict[int, str]:
        _squares(shard, lost, step)
        return lost.steps

    return work


def stuck(began: Path) -> Callable[[], Work[Numbers, dict[int, str]]]:
    return partial(_Stuck, began)


class _Stuck:
    """Work that never ends at odd numbers, in code that hears no signal."""

    def __init__(self, began: Path) -> None:
        self._began = began

    def __call__(self, shard: Numbers, lost: Lost, step: Step) -> dict[int, str]:
        with self._began.open("a") as file:
            file.write(f"{len(lost.steps)}\n")
        for place, number in enumerate(shard):
            step(place)
            if place not in lost.steps:
                within(0.05, "", lambda: sum(range(10**15)) if number % 2 else 0)  # noqa: B023 - at once
        return lost.steps


def refuses() -> Work[Numbers, None]:
    def work(shard: Numbers, lost: Lost, step: Step) -> None:
        if 3 in shard:
            raise Refused(3, "no luck")
        if 4 in shard:
            raise NotForTravel(4, "is stuck")

    return work


def cannot_start() -> Work[Numbers, None]:
    raise Refused(0, "never")


def gives_what_cannot_be_sent() -> Work[Numbers, object]:
    def work(shard: Numbers, lost: Lost, step: Step) -> object:
        return threading.Lock()

    return work


def dies_once(marker: Path) -> Callable[[], Work[Numbers, list[int]]]:
    """Dies when it is started for the first time, before any step."""
    return partial(_start_that_dies, marker)


def _start_that_dies(marker: Path) -> Work[Numbers, list[int]]:
    if is_first(marker):
        os.kill(os.getpid(), signal.SIGKILL)
    return _squares


def is_first(marker: Path) -> bool:
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def dies_once_at_a_step(marker: Path) -> Callable[[], Work[Numbers, list[int]]]:
    """Dies in the midst of a shard, but only once."""
    return partial(partial, _squares_unless_first, marker)


def _squares_unless_first(marker: Path, shard: Numbers, lost: Lost, step: Step) -> list[int]:
    step(1)
    if is_first(marker):
        os.kill(os.getpid(), signal.SIGKILL)
    return _squares(shard, lost, step)


def dies_while_answering(marker: Path) -> Callable[[], Work[Numbers, bytes]]:
    return partial(partial, _answer_too_long, marker)


def _answer_too_long(marker: Path, shard: Numbers, lost: Lost, step: Step) -> bytes:
    step(0)
    if shard == [1] and is_first(marker):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return bytes([shard[0]]) * 4_000_000 if 0 not in lost.steps else b""


def tells_mask() -> Work[Numbers, bool]:
    def work(shard: Numbers, lost: Lost, step: Step) -> bool:
        return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())

    return work


def waits_for(folder: Path) -> Callable[[], Work[Numbers, int]]:
    """Leaves a file when a shard begins; 0 and numbers below it wait for the file `go`."""
    return partial(partial, _waiting, folder)


def _waiting(folder: Path, shard: Numbers, lost: Lost, step: Step) -> int:
    (number,) = shard
    (folder / f"{number}.begun").write_text(str(os.getpid()))
    while number <= 0 and not (folder / "go").exists():
        time.sleep(0.01)
    return number


def large() -> Work[Numbers, bytes]:
    def work(shard: Numbers, lost: Lost, step: Step) -> bytes:
        return bytes(8_000_000)

    return work


def batches() -> PartitionWork[list[Any]]:
    """Gives all that comes of a part."""
    return lambda _, batches: list(batches)
