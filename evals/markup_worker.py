"""Runs inside the environment of lxml, parsel or selectolax: pages come in as JSON, texts and times go out.

In: {"library": name, "sites": [{"pages": [html], "paths": [XPath, or CSS for selectolax]}]}.
Out: {"parse": CPU seconds, "extract": CPU seconds, parsing included, "values": for each page of each site the
text at each path}.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Library(NamedTuple):
    """How a library parses a page, and how it reads all paths of a site on one."""

    parse: Callable[[bytes], object]
    reader: Callable[[list[str]], Callable[[bytes], list[str]]]


def main() -> None:
    work = json.load(sys.stdin)
    library = _LIBRARIES[work["library"]]()
    sites: list[tuple[list[bytes], list[str]]] = [
        ([page.encode() for page in site["pages"]], site["paths"]) for site in work["sites"]
    ]
    start = time.process_time()
    for pages, _ in sites:
        for page in pages:
            library.parse(page)
    parsed = time.process_time()
    values = []
    for pages, paths in sites:
        read = library.reader(paths)
        values.append([read(page) for page in pages])
    extracted = time.process_time()
    json.dump({"parse": parsed - start, "extract": extracted - parsed, "values": values}, sys.stdout)


def _lxml() -> Library:
    from lxml import etree  # noqa: PLC0415 - each is in an environment of its own

    def parse(page: bytes) -> Any:
        return etree.HTML(page, etree.HTMLParser(encoding="utf-8"))

    def reader(paths: list[str]) -> Callable[[bytes], list[str]]:
        compiled = [etree.XPath(f"string({path})") for path in paths]

        def read(page: bytes) -> list[str]:
            root = parse(page)
            return [" ".join(str(path(root)).split()) for path in compiled]

        return read

    return Library(parse, reader)


def _parsel() -> Library:
    from parsel import Selector  # noqa: PLC0415 - as above

    def parse(page: bytes) -> Any:
        return Selector(text=page.decode())

    def reader(paths: list[str]) -> Callable[[bytes], list[str]]:
        def read(page: bytes) -> list[str]:
            selector = parse(page)
            return [" ".join(selector.xpath(f"string({path})").get("").split()) for path in paths]

        return read

    return Library(parse, reader)


def _selectolax() -> Library:
    from selectolax.lexbor import LexborHTMLParser  # type: ignore[import-not-found] # noqa: PLC0415 - as above

    def parse(page: bytes) -> Any:
        return LexborHTMLParser(page)

    def reader(paths: list[str]) -> Callable[[bytes], list[str]]:
        def read(page: bytes) -> list[str]:
            tree = parse(page)
            found = (tree.css_first(path) for path in paths)
            return ["" if node is None else " ".join(node.text().split()) for node in found]

        return read

    return Library(parse, reader)


_LIBRARIES: dict[str, Callable[[], Library]] = {"lxml": _lxml, "parsel": _parsel, "selectolax": _selectolax}


if __name__ == "__main__":
    main()
