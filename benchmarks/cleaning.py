"""What it costs to tell template from content. P is as in `parsing`, over the same pages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evals.swde import swde_sites

from benchmarks.learning import parse_bare
from benchmarks.measure import ROUNDS, Figure, cpu_seconds
from siteloom.core.model import Page
from siteloom.core.settings import StoreSettings
from siteloom.extraction.main_text import clean_text, main_text, without_template
from siteloom.operations.clean import clean_store
from siteloom.operations.page_import import import_pages
from siteloom.store.workspace_folder import open_store
from siteloom.templates.template_text import SegmentTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from siteloom.store.store import Store

TITLE = "Clean text"

_PAGES_OF_A_SITE = 60
_PAGES_FOR_MAIN_TEXT = 3  # of each site; an extractor in pure Python takes its time
_MILESTONES = (10_000, 50_000, 100_000)
_FIXED_LINES = 60
_NEW_LINES = 40


class _Pages(NamedTuple):
    """The pages of a site, as a source of pages."""

    name: str
    pages: list[Page]

    def read(self) -> Iterator[Page]:
        yield from self.pages

    def shards(self) -> tuple[_Pages]:
        return (self,)


def figures(data: Path) -> list[Figure]:
    sites = [
        _Pages(site.full_name, [site.page(number) for number in site.evenly_spaced(_PAGES_OF_A_SITE)])
        for site in swde_sites(data)
    ]
    pages = [page for site in sites for page in site.pages]
    few = [_Pages(site.name, site.pages[:_PAGES_FOR_MAIN_TEXT]) for site in sites]
    few_pages = [page for site in few for page in site.pages]
    tables = {site.name: _table(site.pages) for site in sites}  # and compiles, or loads what was compiled
    with tempfile.TemporaryDirectory() as folder:
        new = [_store(Path(folder) / str(number), sites) for number in range(ROUNDS)]
        known = _store(Path(folder) / "known", sites)
        _clean(known)
        waiting = iter(new)
        seconds = cpu_seconds(
            {
                "P": lambda: parse_bare(pages),
                "add": lambda: [_table(site.pages) for site in sites],
                "clean": lambda: [_cleaned(site.pages) for site in sites],
                "again": lambda: [
                    clean_text(page, tables[site.name]) for site in sites for page in site.pages
                ],
                "html": lambda: [
                    without_template(page, tables[site.name]) for site in sites for page in site.pages
                ],
                "store": lambda: _clean(next(waiting)),
                "known": lambda: _clean(known),
                "P of few": lambda: parse_bare(few_pages),
                "main": lambda: [main_text(page, tables[site.name]) for site in few for page in site.pages],
            }
        )
        for store in (*new, known):
            store.close()
    bare = seconds["P"]
    return [
        Figure("pages", f"{len(pages):,} of {len(sites)} sites"),
        Figure(
            "segment table, a page added and judged",
            f"{seconds['add'] / bare:.2f} P ({len(pages) / seconds['add']:,.0f} pages/CPU second)",
        ),
        Figure("clean text as pages arrive", f"{seconds['clean'] / bare:.2f} P", "at most 2.5 P"),
        Figure("clean text of pages seen before", f"{seconds['again'] / bare:.2f} P", "at most 2.5 P"),
        Figure("HTML without template", f"{seconds['html'] / bare:.2f} P"),
        Figure("a store's pages counted and cleaned", f"{seconds['store'] / bare:.2f} P", "at most 3 P"),
        Figure("the same, all counted before", f"{seconds['known'] / bare:.2f} P", "at most 3 P"),
        Figure("main text, with trafilatura", f"{seconds['main'] / seconds['P of few']:.0f} P"),
        *_memory(),
    ]


def _table(pages: Sequence[Page]) -> SegmentTable:
    table = SegmentTable()
    for page in pages:
        table.add(page)
    return table


def _cleaned(pages: Sequence[Page]) -> int:
    """The characters of all pages' texts, each cleaned when it is added."""
    table = SegmentTable()
    return sum(len(block.content) for page in pages for block in table.add(page))


def _store(folder: Path, sites: Sequence[_Pages]) -> Store:
    store = open_store(StoreSettings(workspace=str(folder)), create=True)
    for site in sites:
        import_pages(store, [site], site=site.name)
    return store


def _clean(store: Store) -> int:
    return sum(1 for _ in clean_store(store))


def _memory() -> list[Figure]:
    """The peak memory of a table over an endless stream, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.cleaning"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [
        Figure(
            f"peak memory of a table, {pages:,} generated pages",
            f"{peak:.0f} MB, {rows:,} rows",
            "as with fewer pages" if pages == _MILESTONES[-1] else "",
        )
        for pages, peak, rows in json.loads(output)
    ]


def _generated(number: int) -> Page:
    """A page with the lines that all pages have, and lines that no other page has."""
    fixed = "".join(f"<li><a href='/{line}'>Part {line} of the site</a></li>" for line in range(_FIXED_LINES))
    new = "".join(f"<p>Line {line} of the page with the number {number}</p>" for line in range(_NEW_LINES))
    return Page.from_text(
        f"https://site.example/{number}", f"<html><body><ul>{fixed}</ul><div>{new}</div></body></html>"
    )


def _print_memory() -> None:
    table = SegmentTable()
    peaks = []
    for number in range(1, _MILESTONES[-1] + 1):
        table.add(_generated(number))
        if number in _MILESTONES:
            # Not getrusage, whose peak a process inherits from the one that started it.
            status = Path("/proc/self/status").read_text(encoding="ascii")
            (peak,) = re.findall(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
            peaks.append((number, int(peak) / 1e3, len(table)))
    print(json.dumps(peaks))


if __name__ == "__main__":
    _print_memory()
