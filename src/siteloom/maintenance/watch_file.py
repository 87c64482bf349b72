"""Watches as JSON: one line of text, with the pages themselves compressed inside."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from datetime import datetime
from typing import Any

from siteloom.core.errors import WatchError, WrapperError
from siteloom.core.model import Page
from siteloom.maintenance.watched_pages import Bellwether, Past, Watch
from siteloom.wrappers.wrapper import Wrapper
from siteloom.wrappers.wrapper_json import contract_content, contract_from

FORMAT = "siteloom watch"
VERSION = 1

# The largest page that is imported (PagesSettings), so that a damaged file cannot fill the memory.
_LARGEST_PAGE = 50_000_000


def watch_to_json(watch: Watch) -> str:
    """A watch as one line of JSON."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "name": watch.name,
        "wrapper": watch.wrapper.to_json(),
        "contracts": {name: contract_content(contract) for name, contract in watch.contracts.items()},
        "past": {name: past._asdict() for name, past in watch.past.items()},
        "bellwethers": [_bellwether_content(bellwether) for bellwether in watch.bellwethers],
    }
    return json.dumps(content)


def watch_from_json(text: str) -> Watch:
    """Read a watch; raises WatchError if the text is none, or is damaged."""
    try:
        content = json.loads(text)
        version = content["version"]
        if content["format"] == FORMAT and isinstance(version, int) and version > VERSION:
            raise WatchError(
                f"This watch was written by a newer Siteloom (version {version} of the format, {VERSION} is "
                "known here): update Siteloom."
            )
        if content["format"] != FORMAT or version != VERSION:
            raise WatchError(
                f"This is no watch that is known here: it is not version {VERSION} of its format."
            )
        return Watch(
            Wrapper.from_json(content["wrapper"]),
            tuple(map(_bellwether, _list(content["bellwethers"]))),
            {name: contract_from(known, name) for name, known in content["contracts"].items()},
            {name: _past(known) for name, known in content["past"].items()},
            _text(content["name"]),
        )
    except (
        *(WrapperError, ValueError, KeyError, TypeError, AttributeError, RecursionError),
        zlib.error,
    ) as error:
        raise WatchError("This is no watch, or it is damaged: make it with siteloom watch.") from error


def _bellwether_content(bellwether: Bellwether) -> dict[str, Any]:
    page = bellwether.page
    return {
        "url": page.url,
        "fetched_at": page.fetched_at.isoformat() if page.fetched_at else None,
        "charset": page.charset,
        "signature": bellwether.signature,
        "records": bellwether.records,
        "rules": bellwether.rules,
        "html": b64encode(zlib.compress(page.html)).decode(),
    }


def _bellwether(content: dict[str, Any]) -> Bellwether:
    fetched_at = content["fetched_at"]
    page = Page(
        _text(content["url"]),
        _unpacked(content["html"]),
        None if fetched_at is None else datetime.fromisoformat(fetched_at),
        None if content["charset"] is None else _text(content["charset"]),
    )
    records = tuple(
        {name: tuple(map(_text, _list(texts))) for name, texts in record.items()}
        for record in _list(content["records"])
    )
    rules = tuple({name: _text(rule) for name, rule in found.items()} for found in _list(content["rules"]))
    if len(rules) != len(records):
        raise ValueError("a record without rules")
    return Bellwether(page, _text(content["signature"]), records, rules)


def _unpacked(text: str) -> bytes:
    unpacking = zlib.decompressobj()
    html = unpacking.decompress(b64decode(text, validate=True), _LARGEST_PAGE)
    if not unpacking.eof:
        raise ValueError("a page that is cut short, or too large")
    return html


def _past(content: dict[str, Any]) -> Past:
    past = Past(**content)
    if not all(type(count) is int and count >= 0 for count in past):
        raise ValueError("a count that is none")
    if past.lost > past.filled or past.mistaken > past.compared:
        raise ValueError("a part that is larger than its whole")
    return past


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("something else than a list")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("something else than a text")
    return value
