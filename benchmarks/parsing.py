"""What Siteloom's parser costs beyond a bare parse. P is `lxml.etree.HTML` over the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lxml import etree

from benchmarks.corpus import sample_of_each_site
from benchmarks.measure import Figure, cpu_seconds
from siteloom.core.model import Failure, Page
from siteloom.html.parser import parse
from siteloom.html.tag_scanner import scan_tags
from siteloom.html.visible_text import visible_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TITLE = "Parsing"


def figures(data: Path) -> list[Figure]:
    pages = sample_of_each_site(data, 40)

    def over_all(function: Callable[[bytes], object]) -> Callable[[], object]:
        return lambda: [None for html in pages if function(html) is None]

    scan_tags(pages[0])  # compiles, or loads what was compiled
    seconds = cpu_seconds(
        {
            "P": over_all(etree.HTML),
            "parse": over_all(lambda html: parse(Page("", html))),
            "scan": over_all(scan_tags),
            "text": over_all(_text),
        }
    )
    bare = seconds["P"]
    return [
        Figure("pages", f"{len(pages):,} of {sum(map(len, pages)) / 1e6:.0f} MB"),
        Figure("`dom.parse`", f"{seconds['parse'] / bare:.2f} P"),
        Figure("`kernels.scan_tags`", f"{seconds['scan'] / bare:.3f} P"),
        Figure("`dom.parse` and `dom.visible_text`", f"{seconds['text'] / bare:.2f} P"),
    ]


def _text(html: bytes) -> object:
    root = parse(Page("", html))
    return None if isinstance(root, Failure) else visible_text(root)
