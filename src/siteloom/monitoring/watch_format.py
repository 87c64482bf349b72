"""Watches as JSON: one line of text, with the pages themselves compressed inside."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from dataclasses import asdict
from datetime import datetime
from typing import Any

from siteloom.errors import WatchError
from siteloom.model import Page
from siteloom.monitoring.bellwethers import Bellwether, Past, Watch
from siteloom.wrapper import Wrapper
from siteloom.wrapper.contract import Contract

FORMAT = "siteloom watch"
VERSION = 1

# The largest page that is taken in (config.PagesSettings), so that a damaged file cannot fill the memory.
_LARGEST_PAGE = 50_000_000


def watch_to_json(watch: Watch) -> str:
    """A watch as one line of text."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "name": watch.name,
        "wrapper": watch.wrapper.to_json(),
        "contracts": {name: asdict(contract) for name, contract in watch.contracts.items()},
        "past": {name: past._asdict() for name, past in watch.past.items()},
        "bellwethers": [_bellwether_content(one) for one in watch.bellwethers],
    }
    return json.dumps(content)


def watch_from_json(text: str) -> Watch:
    """The watch that a text describes."""
    try:
        content = json.loads(text)
        if content["format"] != FORMAT or content["version"] != VERSION:
            raise WatchError(
                f"This is no watch that is known here: it is not version {VERSION} of its format."
            )
        return Watch(
            Wrapper.from_json(content["wrapper"]),
            tuple(map(_bellwether, content["bellwethers"])),
            {name: _contract(known) for name, known in content["contracts"].items()},
            {name: Past(**known) for name, known in content["past"].items()},
            content["name"],
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, zlib.error) as error:
        raise WatchError("This is no watch, or it is damaged: make it with siteloom watch.") from error


def _bellwether_content(one: Bellwether) -> dict[str, Any]:
    page = one.page
    return {
        "url": page.url,
        "fetched_at": page.fetched_at.isoformat() if page.fetched_at else None,
        "charset": page.charset,
        "signature": one.signature,
        "records": one.records,
        "rules": one.rules,
        "html": b64encode(zlib.compress(page.html)).decode(),
    }


def _bellwether(content: dict[str, Any]) -> Bellwether:
    html = zlib.decompressobj().decompress(b64decode(content["html"]), _LARGEST_PAGE)
    fetched_at = content["fetched_at"]
    page = Page(
        content["url"],
        html,
        None if fetched_at is None else datetime.fromisoformat(fetched_at),
        content["charset"],
    )
    records = tuple({name: tuple(texts) for name, texts in record.items()} for record in content["records"])
    return Bellwether(page, content["signature"], records, tuple(content["rules"]))


def _contract(content: dict[str, Any]) -> Contract:
    lists = {name: tuple(value) for name, value in content.items() if isinstance(value, list)}
    return Contract(**{**content, **lists})
