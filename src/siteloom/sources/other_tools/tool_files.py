"""Which tool a file is of, told by what is in it."""

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
    """What another tool was taught: a sitemap of Web Scraper, a model of AutoScraper, a sample of Portia.

    Raises SourceError if the file cannot be read, is of none of them, or has nothing that can be taken over.
    """
    path = Path(file)
    try:
        found = json.loads(read_file(str(file)))
    except OSError as error:
        raise SourceError(f"{file} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{file} is no JSON: {error}.") from error
    try:
        model = _model(found, path)
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # other JSON where some was expected
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


def _model(found: Any, path: Path) -> PeerModel | None:
    if is_model(found):
        return read_auto_scraper(found)
    if isinstance(found, dict) and is_sitemap(found):
        return read_sitemap(found)
    if isinstance(found, dict) and is_portia(found):
        return read_portia(found, path)
    return None
