"""A small crawl of four made-up sites, as several WARC or Parquet files, and wrappers for its restaurants.

The pages of a site are spread over all files. One URL is there twice, the second time later and with another
price; one page is the same again; one is broken, and those of the fourth site are for no wrapper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from siteloom import Example, Page, Wrapper, learn
from siteloom.apps.demo.sites.built_in_page import BuiltinPage
from siteloom.core.model import Seed
from tests.apps.demo.sites import directory, guide, of_kind
from tests.maintenance.guide import restaurants
from tests.sources.warc_records import gzip_members, http, record

GUIDE = "larkmoor-guide.example"
DIRECTORY = "tableatlas.example"
REDESIGNED = "newmoor-guide.example"
OTHER = "elsewhere.example"
SITES = (GUIDE, DIRECTORY, REDESIGNED, OTHER)

FILES = 4
ATTRIBUTES = ("name", "address", "phone", "cuisine")

_TAGS_TOO_DEEP = 3_000
_ROWS_OF_A_GROUP = 5  # so each Parquet file has several groups


@cache
def crawl() -> tuple[Page, ...]:
    """All pages in the order in which they are read from the files."""
    return tuple(page for file in files() for page in file)


@cache
def files() -> tuple[tuple[Page, ...], ...]:
    """The pages of each file."""
    pages = [one.page for one in _places_and_events()]
    seen_again = _cheaper(pages[0])
    pages[10:10] = [broken()]
    pages += [seen_again, pages[1]]
    return tuple(tuple(pages[number::FILES]) for number in range(FILES))


def broken() -> Page:
    """A page like others that cannot be parsed."""
    page = restaurants()[18].page
    return replace(page, html=page.html + b"<div>" * _TAGS_TOO_DEEP)


def write_warcs(folder: Path) -> list[Path]:
    """The crawl as WARC files of a folder, compressed record by record."""
    return [_write_warc(folder / f"crawl-{number}.warc.gz", file) for number, file in enumerate(files())]


def write_parquet(folder: Path) -> list[Path]:
    """The crawl as Parquet files of a folder, each with several row groups."""
    return [_write_parquet(folder / f"crawl-{number}.parquet", file) for number, file in enumerate(files())]


@cache
def wrappers() -> dict[str, Wrapper]:
    """Wrappers for the restaurants of three sites, by the names that their files get."""
    return {
        "guide": _learned([one for one in _guide() if one.kind == "restaurant"]),
        "directory": _learned(_directory()),
        "redesigned": _learned(_redesigned()),
    }


def write_wrappers(folder: Path) -> list[Path]:
    """These wrappers as files of a folder."""
    written = []
    for name, wrapper in wrappers().items():
        written.append(folder / f"{name}.json")
        written[-1].write_text(wrapper.to_json(), encoding="utf-8")
    return written


def known_records() -> list[Seed]:
    """Records of restaurants that are on pages of the guide and the redesigned one."""
    return [
        Seed({name: one.truth[name] for name in ATTRIBUTES if one.truth[name]}, "guide", one.page.url)
        for one in restaurants()[:18]
    ]


def _places_and_events() -> list[BuiltinPage]:
    return [*_guide(), *_directory(), *_redesigned(), *_elsewhere()]


def _guide() -> list[BuiltinPage]:
    return [*restaurants()[:18], *of_kind(guide(), "event")[:8]]


def _directory() -> list[BuiltinPage]:
    return of_kind(directory(), "restaurant")[:14]


def _redesigned() -> list[BuiltinPage]:
    return [_moved(one, GUIDE, REDESIGNED) for one in restaurants("redesign")[:14]]


def _elsewhere() -> list[BuiltinPage]:
    return [_moved(one, DIRECTORY, OTHER) for one in of_kind(directory(), "list")[:3]]


def _moved(one: BuiltinPage, site: str, to: str) -> BuiltinPage:
    """A page of another site that is made alike."""
    html = one.page.html.replace(site.encode(), to.encode())
    return replace(one, page=replace(one.page, url=one.page.url.replace(site, to), html=html))


def _cheaper(page: Page) -> Page:
    """The page as it is a day later."""
    assert page.fetched_at is not None
    html = page.html.replace("£".encode(), "only £".encode())
    return replace(page, html=html + b"<!-- new -->", fetched_at=page.fetched_at + timedelta(days=1))


def _learned(pages: Sequence[BuiltinPage]) -> Wrapper:
    examples = [Example(one.page, {name: list(one.truth[name]) for name in ATTRIBUTES}) for one in pages[:4]]
    return learn(examples, [one.page for one in pages])


def _write_warc(file: Path, pages: Sequence[Page]) -> Path:
    records = [
        record(
            page.url,
            http(page.html, media_type="text/html; charset=utf-8"),
            date=f"{page.fetched_at:%Y-%m-%dT%H:%M:%SZ}",
        )
        for page in pages
    ]
    file.write_bytes(gzip_members(records).content)
    return file


def _write_parquet(file: Path, pages: Sequence[Page]) -> Path:
    rows = [{"url": page.url, "html": page.html, "fetched_at": page.fetched_at} for page in pages]
    pq.write_table(pa.Table.from_pylist(rows), file, row_group_size=_ROWS_OF_A_GROUP)
    return file
