"""Pages to put into stores, and what stores hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from sqlalchemy import select

from siteloom.core.model import Page
from siteloom.operations.page_import import ImportReport, import_pages
from siteloom.sources.page_source import Items, SourceItem
from siteloom.store import schema
from siteloom.store.packs.pack_file import Pack
from siteloom.store.packs.page_reader import PackedPages
from siteloom.store.store import Store

"""For those who put pages into stores."""

FIRST_DAY = datetime(2025, 3, 1, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class StoredPages:
    """The store as a source of pages, like any file of them."""

    store: Store
    site: str | None = None

    def read(self) -> Iterator[Page]:
        """The newest version of every page."""
        return self.store.pages(self.site)

    def shards(self) -> Sequence[PackedPages]:
        """The same pages in parts that can be read apart."""
        return self.store.page_shards(self.site)


def day(number: int) -> datetime:
    return FIRST_DAY + timedelta(days=number)


class Clock:
    """A clock that stands still until it is turned."""

    def __init__(self) -> None:
        self.now = day(0)

    def __call__(self) -> datetime:
        return self.now

    def turn(self, **time: float) -> None:
        self.now += timedelta(**time)


def page(url: str, text: str = "text", on_day: int = 0) -> Page:
    return Page(url, f"<p>{text}</p>".encode(), day(on_day))


def random_page(random: Random, url: str, size: int = 3_000) -> Page:
    """A page that hardly shrinks."""
    return Page(url, random.randbytes(size), day(0))


def put(store: Store, *items: SourceItem, site: str | None = None, jobs: int = 1) -> ImportReport:
    return import_pages(store, [Items(items)], site=site, jobs=jobs)


def newest(store: Store, site: str | None = None) -> dict[str, bytes]:
    """The content of each page; it is an error if one comes twice."""
    pages = list(store.pages(site))
    found = {page.url: page.html for page in pages}
    assert len(found) == len(pages)
    return found


def all_versions(store: Store) -> Counter[tuple[str, bytes]]:
    """How often each content stands at each URL."""
    with store.engine.connect() as connection:
        urls = connection.execute(select(schema.urls.c.url, schema.sites.c.name).join(schema.sites)).all()
    return Counter((page.url, page.html) for url, site in urls for page in store.versions(url, site))


def assert_sound(store: Store) -> None:
    """Every pack holds what the tables say, no more and no less."""
    assert list(store.check()) == []
    with store.engine.connect() as connection:
        packs = connection.execute(select(schema.packs.c.file, schema.packs.c.committed_bytes)).all()
        versions = len(connection.execute(select(schema.versions.c.id)).all())
    packed = 0
    for file, committed in packs:
        pack = Pack(store.packs_folder, file)
        packed += sum(len(documents) for _, documents in pack.blocks(committed))
        pack.close()
    assert packed == versions


def opened_pack(path: Path) -> Pack:
    """The pack at a path, which is a file in the folder of a site."""
    return Pack(path.parents[1], f"{path.parent.name}/{path.name}")
