"""A function with a fault that only a fuzzer finds which is told by coverage how far it has come."""

from __future__ import annotations

import sys
from importlib import import_module

from torture.fuzzing import run_under_fuzzer


def faulty(data: bytes) -> None:
    """Fails on inputs that begin with four given bytes; to guess them all at once takes 2^32 runs."""
    if data[:1] == b"l" and data[1:2] == b"o" and data[2:3] == b"o" and data[3:4] == b"m":
        raise AssertionError("the planted fault")


if __name__ == "__main__":
    # Imported once more, so that it is rewritten to tell where it was.
    run_under_fuzzer(lambda: import_module("tests.torture.planted_fault").faulty, sys.argv[2:], "tests")
