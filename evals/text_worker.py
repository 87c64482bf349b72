"""Runs inside the environment of one extractor of main texts: pages come in as JSON, texts go out.

In: {"extractor": name, "pages": [html]}.
Out: {"texts": {way to use it: for each page its text, or null if it failed}, "seconds": {way: CPU seconds}}.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Extract = Callable[[str], str]


def main() -> None:
    work = json.load(sys.stdin)
    pages: list[str] = work["pages"]
    texts: dict[str, list[str | None]] = {}
    seconds: dict[str, float] = {}
    for way, extract in _WAYS[work["extractor"]]().items():
        extract(pages[0])  # what it loads when first used is no part of the work
        start = time.process_time()
        texts[way] = [_extracted(extract, page) for page in pages]
        seconds[way] = time.process_time() - start
    json.dump({"texts": texts, "seconds": seconds}, sys.stdout)


def _extracted(extract: Extract, page: str) -> str | None:
    try:
        return extract(page)
    except Exception:  # noqa: BLE001 - whatever it fails with, there is no text
        return None


def _trafilatura() -> dict[str, Extract]:
    from trafilatura import extract  # noqa: PLC0415 - each is in an environment of its own

    return {
        "trafilatura": lambda html: extract(html, include_comments=False) or "",
        "trafilatura, `favor_precision`": lambda html: (
            extract(html, include_comments=False, favor_precision=True) or ""
        ),
    }


def _justext() -> dict[str, Extract]:
    from justext import get_stoplist, justext  # noqa: PLC0415 - as above

    stop_words = get_stoplist("English")
    return {
        "justext": lambda html: "\n".join(
            paragraph.text for paragraph in justext(html, stop_words) if not paragraph.is_boilerplate
        )
    }


def _resiliparse() -> dict[str, Extract]:
    from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415 - as above

    return {"resiliparse": lambda html: str(extract_plain_text(html, main_content=True))}


_WAYS: dict[str, Callable[[], dict[str, Extract]]] = {
    "trafilatura": _trafilatura,
    "justext": _justext,
    "resiliparse": _resiliparse,
}


if __name__ == "__main__":
    main()
