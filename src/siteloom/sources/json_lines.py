"""Read pages from JSON Lines: one object per line with `url`, `html` and optionally `fetched_at`."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.model import Failure, Page
from siteloom.sources.compressed_file import DECOMPRESSION_ERRORS, is_compressed, open_compressed
from siteloom.sources.page_source import page_from_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from siteloom.core.settings import PagesSettings

# A character of HTML takes at most six bytes in JSON (\u00e9), and the other fields are short.
_BYTES_PER_CHARACTER = 6

# Some hundred pages: seconds of work for a worker, and enough shards to keep many busy.
_SHARD_BYTES = 4_000_000


_SKIPPED_AT_A_TIME = 1 << 20

# The limit of a line's JSON outside texts, normally some names and numbers. Three bytes of JSON, an empty
# list, take over seventy bytes of memory, so the line of the largest page could take gigabytes.
_MOST_OUTSIDE_TEXTS = 1_000_000
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


class _LineRange(NamedTuple):
    """The lines that begin in a range of bytes; without `end`, it extends to the end of the file."""

    start: int
    end: int | None
    lines_before: int


_WHOLE_FILE = _LineRange(0, None, 0)


@dataclass(frozen=True, slots=True)
class JsonLines:
    """A JSON Lines file, compressed or not."""

    path: Path
    settings: PagesSettings
    line_range: _LineRange = _WHOLE_FILE

    def read(self) -> Iterator[Page | Failure]:
        """Yield the pages in the order of the lines."""
        position, end, number = self.line_range
        try:
            with io.BufferedReader(open_compressed(self.path)) as file:  # type: ignore[type-var]  # any binary file will do
                if position:  # a pipe cannot seek, not even to its start
                    file.seek(position)
                while (end is None or position < end) and (line := file.readline(self._max_line)):
                    position += len(line)
                    number += 1
                    place = f"{self.path}:{number}"
                    if len(line) == self._max_line and not line.endswith(b"\n"):
                        while line and not line.endswith(b"\n"):
                            line = file.readline(_SKIPPED_AT_A_TIME)
                            position += len(line)
                        yield Failure(place, "page too large", f"the line has over {self._max_line:,} bytes")
                    elif not line.isspace():
                        yield self._page(line, place)
        except (PermissionError, IsADirectoryError) as error:
            yield Failure(str(self.path), "unreadable file", str(error.strerror))
        except (OSError, *DECOMPRESSION_ERRORS) as error:
            yield Failure(f"{self.path}:{number + 1}", "truncated or damaged file", str(error))

    def shards(self) -> Sequence[JsonLines]:
        """Split the file into ranges of lines; a compressed file can only be read from its start."""
        if self.line_range != _WHOLE_FILE or is_compressed(self.path):
            return (self,)
        try:
            if self.path.stat().st_size <= _SHARD_BYTES:
                return (self,)
            starts = list(_shard_starts(self.path))
        except OSError:  # reported when the file is read
            return (self,)
        ends = [start for start, _ in starts[1:]]
        return [
            replace(self, line_range=_LineRange(start, end, lines_before))
            for (start, lines_before), end in zip(starts, [*ends, None], strict=True)
        ]

    @property
    def _max_line(self) -> int:
        return _BYTES_PER_CHARACTER * self.settings.max_bytes

    def _page(self, line: bytes, place: str) -> Page | Failure:
        if len(line) > _MOST_OUTSIDE_TEXTS and _is_all_structure(line):
            return Failure(place, "not a page", f"over {_MOST_OUTSIDE_TEXTS:,} bytes of it are in no text")
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            return Failure(place, "not valid JSON", str(error))
        if not isinstance(row, dict):
            return Failure(place, "not a JSON object")
        return page_from_fields(
            row.get("url"), row.get("html"), row.get("fetched_at"), place, self.settings.max_bytes
        )


def _is_all_structure(line: bytes) -> bool:
    """Return whether a line has more JSON outside texts than a page needs."""
    outside = end = 0
    for text in _TEXT.finditer(line):
        outside += text.start() - end
        end = text.end()
        if outside > _MOST_OUTSIDE_TEXTS:
            return True
    return outside + len(line) - end > _MOST_OUTSIDE_TEXTS


def _shard_starts(path: Path) -> Iterator[tuple[int, int]]:
    """Yield where shards begin, each at the start of a line, and the number of lines before."""
    lines = 0
    with path.open("rb") as file:
        start = 0
        while piece := file.read(_SHARD_BYTES):
            yield start, lines
            lines += piece.count(b"\n")
            while piece and not piece.endswith(b"\n"):
                piece = file.readline(_SHARD_BYTES)
                lines += piece.endswith(b"\n")
            start = file.tell()
