"""Keep untrusted text from controlling a terminal, and from looking like lines of a log.

Pages, addresses and file names may contain escape sequences, by which a terminal moves its cursor, renames
its window or answers as if a person had typed. Output to files and pipes is unchanged, except for logs, which
are later read on a terminal.
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

# C0 except tab and line feed, DEL, and C1: each command to a terminal begins with one of them. Also Unicode's
# line ends and direction changes.
_ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_MARK = "\ufffd"
_INDENT = "    "


def harmless(text: str, mark: str = _MARK) -> str:
    """Replace each character that controls a terminal by a mark."""
    return _ACTING.sub(mark, text)


def as_record(text: str) -> str:
    """Format a text as one log record: every line end is followed by an indent."""
    return f"\n{_INDENT}".join(harmless(line) for line in text.splitlines())


class TextRecords(logging.Formatter):
    """Formats log records for people; all lines of a record but its first are indented."""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record."""
        return as_record(super().format(record))


def guard_process() -> None:
    """Guard all terminal output of this process and its log; each process calls this when it starts."""
    sys.stdout, sys.stderr = guarded(sys.stdout), guarded(sys.stderr)
    if logging.lastResort is not None:  # handles messages of libraries without a configured log
        logging.lastResort.setFormatter(TextRecords())


def guarded(stream: TextIO | None) -> Any:
    """Return a stream that passes only harmless text to its terminal; the stream itself if it has none."""
    if stream is None or not stream.isatty():  # None if it was closed before Python started
        return stream
    guard = _Guard(stream)
    # Written through: direct output to the terminal must not overtake earlier output.
    return io.TextIOWrapper(
        guard, guard.encoding, stream.errors or "backslashreplace", line_buffering=True, write_through=True
    )


def unguarded(stream: TextIO | None) -> TextIO | None:
    """Return the terminal behind a guarded stream, for code that writes control sequences itself."""
    guard = getattr(stream, "buffer", None)
    return guard.terminal if isinstance(guard, _Guard) else stream


class _Guard(io.BufferedIOBase):
    """The binary layer below a guarded stream, so that bytes cannot bypass it either."""

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
