"""What others have written, kept from acting on a terminal, and from looking like lines of a log.

Pages, addresses and names of files may hold escape sequences, by which a terminal moves its cursor, renames
its window or answers as if a person had typed. What goes to files and pipes stays as it is, but for logs,
which are looked at on a terminal later.
"""

from __future__ import annotations

import codecs
import io
import logging
import re
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# C0 but for tab and line feed, DEL, and C1: each command to a terminal begins with one of them. And what
# Unicode has to end lines and to turn the direction of text around.
_ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_MARK = "\ufffd"
_INDENT = "    "


def harmless(text: str, mark: str = _MARK) -> str:
    """A text with a mark in place of each character that a terminal would obey."""
    return _ACTING.sub(mark, text)


def as_record(text: str) -> str:
    """A text as one record of a log: whatever ends a line somewhere is followed by an indent."""
    return f"\n{_INDENT}".join(harmless(line) for line in text.splitlines())


class TextRecords(logging.Formatter):
    """Formats the records of logs that people read; all lines of a record but its first are indented."""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """The lines of a record."""
        return as_record(super().format(record))


def guard_process() -> None:
    """Guard all that this process writes to a terminal, and its log; each process calls this as it begins."""
    sys.stdout, sys.stderr = guarded(sys.stdout), guarded(sys.stderr)
    if logging.lastResort is not None:  # what libraries say for which no one has set up a log
        logging.lastResort.setFormatter(TextRecords())


def guarded(stream: TextIO | None) -> Any:
    """A stream that passes only harmless text on to its terminal; the stream itself if it has none."""
    if stream is None or not stream.isatty():  # there is none if it was closed before Python began
        return stream
    guard = _Guard(stream)
    # Written through: what draws on the terminal itself must not overtake what was written here.
    return io.TextIOWrapper(
        guard, guard.encoding, stream.errors or "backslashreplace", line_buffering=True, write_through=True
    )


def unguarded(stream: TextIO | None) -> TextIO | None:
    """The terminal behind a guarded stream, for what draws with sequences of its own."""
    guard = getattr(stream, "buffer", None)
    return guard.terminal if isinstance(guard, _Guard) else stream


class _Guard(io.BufferedIOBase):
    """What stands below a guarded stream, so that bytes cannot go around it either."""

    def __init__(self, terminal: TextIO) -> None:
        self.terminal = terminal
        self.encoding = terminal.encoding or "utf-8"
        self._decoder = codecs.getincrementaldecoder(self.encoding)("replace")

    @property
    def name(self) -> str:
        return self.terminal.name

    def write(self, data: ReadableBuffer, /) -> int:
        content = bytes(data)
        self.terminal.write(harmless(self._decoder.decode(content)))
        return len(content)

    def flush(self) -> None:
        self.terminal.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.terminal.fileno()
