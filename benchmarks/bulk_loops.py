"""The work of whole crawls as a plain loop: `python -m benchmarks.bulk_loops VERB FOLDER FILE...`."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import siteloom
from siteloom.core.model import Failure
from siteloom.core.table_files import Column, open_output
from siteloom.core.urls import site_of
from siteloom.extraction.extractor import Extractor
from siteloom.extraction.main_text import text_of
from siteloom.extraction.record_formats import open_records
from siteloom.extraction.record_rows import record_row
from siteloom.html.parser import parse
from siteloom.learning.known_records.site_bootstrap import SiteBootstrap
from siteloom.templates.template_text import SegmentTable
from siteloom.wrappers.matching import NamedWrapper

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteloom.core.model import Page

_CORE = ("name", "address")


def extract(folder: Path, files: Sequence[str]) -> None:
    texts = [file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.json"))]
    wrappers = [
        NamedWrapper(str(number), None, siteloom.Wrapper.from_json(text)) for number, text in enumerate(texts)
    ]
    attributes = sorted({name for named in wrappers for name in named.wrapper.attributes})
    extractor = Extractor(wrappers)
    with open_records(str(folder / "loop.parquet"), attributes) as out:
        for page in siteloom.read_pages(*files):
            found = extractor.extract(page)
            if found.failure is None:
                for record in found.records:
                    out.write(record_row(record, str(found.wrapper), None))


def cluster(_: Path, files: Sequence[str]) -> None:
    siteloom.cluster(list(siteloom.read_pages(*files)))


def clean(folder: Path, files: Sequence[str]) -> None:
    tables: defaultdict[str, SegmentTable] = defaultdict(SegmentTable)
    read = []
    for page in siteloom.read_pages(*files):
        root = parse(page)
        if not isinstance(root, Failure):
            table = tables[site_of(page.url)]
            segments = table.segments_of(root)
            table.count(segments)
            read.append((page.url, table, segments))
    with open_output(str(folder / "loop.parquet"), [Column("url"), Column("text")]) as out:
        for url, table, segments in read:
            out.write({"url": url, "text": text_of(table.judged(segments))})


def bootstrap(folder: Path, files: Sequence[str]) -> None:
    lines = (folder / "seeds.jsonl").read_text(encoding="utf-8").splitlines()
    seeds = [json.loads(line) for line in lines]
    pages: defaultdict[str, list[Page]] = defaultdict(list)
    for page in siteloom.read_pages(*files):
        pages[site_of(page.url)].append(page)
    bootstrap_site = SiteBootstrap(seeds, _CORE)
    for of_site in pages.values():
        bootstrap_site(of_site)


if __name__ == "__main__":
    verb, folder, *files = sys.argv[1:]
    {"extract": extract, "cluster": cluster, "clean": clean, "bootstrap": bootstrap}[verb](
        Path(folder), files
    )
