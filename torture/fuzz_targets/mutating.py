"""Bytes changed by chance, the same for the same seed: for where no fuzzer is."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MOST_CHANGES = 6
_LONGEST_REPEAT = 64


def mutations(seeds: Sequence[bytes], words: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """So many changed copies of some inputs, with words put in."""
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, _MOST_CHANGES)):
            _change(data, seeds, words, chance)
        yield bytes(data)


def _change(data: bytearray, seeds: Sequence[bytes], words: Sequence[bytes], chance: random.Random) -> None:
    at = chance.randint(0, len(data))
    end = min(len(data), at + chance.randint(1, 1 + len(data) // 4))
    match chance.randrange(8):
        case 0:
            data[at:at] = chance.choice(words) if words else chance.randbytes(2)
        case 1:
            del data[at:end]
        case 2 if at < len(data):
            data[at] = chance.randrange(256)
        case 3 if at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        case 4:
            data[at:at] = data[at:end]
        case 5:
            other = chance.choice(seeds)
            start = chance.randint(0, len(other))
            data[at:end] = other[start : start + end - at + 1]
        case 6:
            data[at:at] = data[at : at + 8] * chance.randint(2, _LONGEST_REPEAT)
        case _:
            data[at:at] = chance.randbytes(chance.randint(1, 8))
