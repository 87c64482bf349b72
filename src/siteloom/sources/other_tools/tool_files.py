"""Read files of other tools, recognized by their content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from siteloom.core.errors import SourceError
from siteloom.core.remote_files import read_file
from siteloom.sources.other_tools.auto_scraper import is_model, read_auto_scraper
from siteloom.sources.other_tools.portia import is_portia, read_portia
from siteloom.sources.other_tools.web_scraper import is_sitemap, read_sitemap

if TYPE_CHECKING:
    from siteloom.sources.other_tools.tool_model import PeerModel


def read_peer_file(file: str | Path) -> PeerModel:
    """Read a sitemap of Web Scraper, a model of AutoScraper or a sample of Portia.

    Raises SourceError if the file cannot be read, is none of these, or contains nothing that can be imported.
    """
    path = Path(file)
    try:
        content = json.loads(read_file(str(file)))
    except OSError as error:
        raise SourceError(f"{file} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{file} is no JSON: {error}.") from error
    try:
        model = _model(content, path)
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # unexpected JSON
        raise SourceError(f"{file} is damaged, or of a version that is not known: {error!r}.") from error
    if model is None:
        raise SourceError(
            f"Cannot tell what {file} is: it must be a sitemap that Web Scraper exported, a model that "
            "AutoScraper saved, or a sample of Portia."
        )
    if not model.layouts and not model.samples:
        why = f" {model.left_out[0]}" if model.left_out else ""
        raise SourceError(f"{file}, of {model.tool}, has nothing that can be taken over.{why}")
    return model


def _model(content: Any, path: Path) -> PeerModel | None:
    if is_model(content):
        return read_auto_scraper(content)
    if isinstance(content, dict) and is_sitemap(content):
        return read_sitemap(content)
    if isinstance(content, dict) and is_portia(content):
        return read_portia(content, path)
    return None
