"""Sources made of bytes, read to the end."""

from __future__ import annotations

import tempfile
from pathlib import Path

from siteloom.core.model import Failure, Page
from siteloom.core.settings import PagesSettings
from siteloom.sources.open_sources import open_source
from siteloom.sources.page_source import SourceItem


def read(path: Path, max_bytes: int = 50_000_000, *, with_resources: bool = False) -> list[SourceItem]:
    """All that is in a source."""
    return list(open_source(path, PagesSettings(max_bytes), with_resources=with_resources).read())


def read_content(name: str, content: bytes, max_bytes: int = 50_000_000) -> list[SourceItem]:
    """All that is in a file of this name and content."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        return read(path, max_bytes)


def pages(items: list[SourceItem]) -> list[Page]:
    return [item for item in items if isinstance(item, Page)]


def failures(items: list[SourceItem]) -> list[Failure]:
    return [item for item in items if isinstance(item, Failure)]


def reasons(items: list[SourceItem]) -> list[str]:
    return [failure.reason for failure in failures(items)]
