"""Pages from JSON Lines: one object a line with `url`, `html` and, if known, `fetched_at`."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from siteloom.model import Failure, Page
from siteloom.pages.compressed import DECOMPRESSION_ERRORS, open_compressed
from siteloom.pages.fields import page_from_fields

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from siteloom.config import PagesSettings

# A character of HTML takes at most six bytes as JSON writes it (\u00e9), and
# the other fields are short.
_BYTES_PER_CHARACTER = 6


@dataclass(frozen=True, slots=True)
class JsonLines:
    """A JSON Lines file, compressed or not."""

    path: Path
    settings: PagesSettings

    def read(self) -> Iterator[Page | Failure]:
        """The pages in the order of the lines."""
        number = 0
        try:
            with io.BufferedReader(open_compressed(self.path)) as file:  # type: ignore[type-var]  # any binary file will do
                while line := file.readline(self._max_line):
                    number += 1
                    place = f"{self.path}:{number}"
                    if len(line) == self._max_line and not line.endswith(b"\n"):
                        while line and not line.endswith(b"\n"):
                            line = file.readline(self._max_line)
                        yield Failure(place, "page too large", f"the line has over {self._max_line:,} bytes")
                    elif not line.isspace():
                        yield self._page(line, place)
        except (PermissionError, IsADirectoryError) as error:
            yield Failure(str(self.path), "unreadable file", str(error.strerror))
        except (OSError, *DECOMPRESSION_ERRORS) as error:
            yield Failure(f"{self.path}:{number + 1}", "truncated or damaged file", str(error))

    @property
    def _max_line(self) -> int:
        return _BYTES_PER_CHARACTER * self.settings.max_bytes

    def _page(self, line: bytes, place: str) -> Page | Failure:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            return Failure(place, "not valid JSON", str(error))
        if not isinstance(row, dict):
            return Failure(place, "not a JSON object")
        return page_from_fields(
            row.get("url"), row.get("html"), row.get("fetched_at"), place, self.settings.max_bytes
        )
