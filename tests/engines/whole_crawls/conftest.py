"""What all tests of whole crawls share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.whole_crawls import crawls


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails is tried again at once: in a test nothing is well again later."""
    monkeypatch.setattr("siteloom.engines.local_engine.RETRY_DELAYS", (0.0, 0.0))


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a crawl as WARC and Parquet files, and wrappers for it."""
    folder = tmp_path_factory.mktemp("crawl")
    crawls.write_warcs(folder)
    crawls.write_parquet(folder)
    crawls.write_wrappers(folder)
    return folder
