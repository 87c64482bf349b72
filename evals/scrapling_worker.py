"""Runs inside Scrapling's own environment: elements of pages before a change come in as JSON, texts go out.

In: [{"html": after the change, "always": true or false, "saved": {attribute: [SAVED, one for each value]}}],
where SAVED is {"html": before the change, "element": path, "selector": xpath, "value": text,
"html_attribute": name or null}. Out: for each of them {attribute: [text]}.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapling.parser import Selector  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from collections.abc import Iterator

_SITE = "https://one.site.example/"
_DEFAULT_PERCENTAGE = 40


def main() -> None:
    logging.disable(logging.WARNING)
    work = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        storage = {"storage_file": str(Path(folder) / "elements.db"), "url": _SITE}
        json.dump([_found(item, storage) for item in work], sys.stdout)


def _found(item: dict[str, Any], storage: dict[str, str]) -> dict[str, list[str]]:
    after = _selector(item["html"], storage)
    texts: dict[str, list[str]] = {}
    for attribute, values in item["saved"].items():
        texts[attribute] = []
        for number, saved in enumerate(values):
            name = f"{attribute} {number}"
            before = _selector(saved["html"], storage)
            (element,) = before.xpath(saved["element"], identifier=name, auto_save=True)
            reading = _reading(element, saved)
            if item["always"]:
                elements = after.relocate(after.retrieve(name), _DEFAULT_PERCENTAGE, True)
            else:
                elements = after.xpath(saved["selector"], identifier=name, adaptive=True)
            texts[attribute] += [text for one in elements for text in [_read(one, reading, saved)] if text]
    return texts


def _selector(html: str, storage: dict[str, str]) -> Any:
    return Selector(html, url=_SITE, adaptive=True, storage_args=storage)


def _reading(element: Any, saved: dict[str, Any]) -> int:
    """Which of the ways to read an element gives its value on the page before the change."""
    for number, text in enumerate(_texts(element, saved["html_attribute"])):
        if _plain(text) == _plain(saved["value"]):
            return number
    return 0


def _read(element: Any, reading: int, saved: dict[str, Any]) -> str:
    if element.tag == "#text":
        return str(element.get())
    texts = list(_texts(element, saved["html_attribute"]))
    return texts[reading] if reading < len(texts) else ""


def _texts(element: Any, html_attribute: str | None) -> Iterator[str]:
    """What can be read from an element: the HTML attribute that held the value, or its text or a part."""
    if html_attribute:
        yield str(element.attrib.get(html_attribute, ""))
        return
    yield str(element.get_all_text())
    yield from (str(text) for text in element.xpath("./text()").getall())


def _plain(text: str) -> str:
    return " ".join(text.removeprefix("mailto:").split())


if __name__ == "__main__":
    main()
