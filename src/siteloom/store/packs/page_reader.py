"""Read stored pages, many at a time, and compare packs with the tables."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from sqlalchemy import Row, and_, or_, select

from siteloom.core.confined_folder import ConfinedFolder
from siteloom.core.errors import DamagedBlock, PackError, StoreError
from siteloom.core.model import DamagedPage, Page
from siteloom.core.sequences import batches
from siteloom.core.urls import site_of
from siteloom.store import schema
from siteloom.store.keys import content_hash, url_key
from siteloom.store.packs.pack_file import Document, Pack
from siteloom.store.packs.page_writer import HTML
from siteloom.store.queries.clusters import KEYS_AT_A_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from sqlalchemy import ColumnElement, Engine, Select

    from siteloom.store.queries.clusters import PageAddress


# The pages of two blocks: reading a site in order opens each block once.
_DOCUMENTS_AT_A_TIME = 256
_BYTES_AT_A_TIME = 64_000_000
# Enough to be worth sending to another process, few enough to occupy all processes.
_PAGES_OF_A_SHARD = 512


class VersionPlace(NamedTuple):
    """The location of a version: a slot in the block at an offset of a pack; and its size in bytes."""

    file: str
    offset: int
    slot: int
    size: int


class BlockPart(NamedTuple):
    """Some documents of a block, all of one site."""

    file: str
    offset: int
    slots: tuple[int, ...]
    site: str


UrlAt: TypeAlias = "Callable[[str, int, int], str | None]"
"""Gives the URL of the document in a slot of the block at an offset of a pack, if it is known."""

T = TypeVar("T")


class OpenPacks:
    """The pack files of a reader, each opened when first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._packs: dict[str, Pack] = {}

    def document(self, file: str, offset: int, slot: int) -> Document:
        """Return the document in a slot of the block at an offset of a pack."""
        if file not in self._packs:
            self.close()  # documents are read pack by pack
            self._packs[file] = Pack(self._folder, file)
        return self._packs[file].document(offset, slot)

    def page(self, file: str, offset: int, slot: int, url_at: UrlAt | None = None) -> Page:
        """The page in a slot of the block at an offset; a `DamagedPage` if the block cannot be read.

        `url_at` gives the URL of a damaged page. Where no database is at hand, its place stands for it.
        """
        try:
            return as_page(self.document(file, offset, slot))
        except DamagedBlock as error:
            place = f"{file}, byte {offset}, document {slot}"
            url = place if url_at is None else url_at(file, offset, slot) or place
            return DamagedPage(url, b"", damage=str(error))

    def close(self) -> None:
        """Close the files."""
        for pack in self._packs.values():
            pack.close()
        self._packs.clear()


@dataclass(frozen=True, slots=True)
class PackedPages:
    """Some pages in the packs: a source that needs no database, so that any process can read it."""

    packs_folder: Path
    blocks: tuple[BlockPart, ...]

    def read(self) -> Iterator[Page]:
        """Yield the pages in the order of the packs."""
        return (page for _, page in self.read_with_sites())

    def read_with_sites(self) -> Iterator[tuple[str, Page]]:
        """Yield the pages with the site they are stored under: that of the URL, unless another was named."""
        return self._read(None)

    def pages(self, url_at: UrlAt) -> Iterator[Page]:
        """Yield the pages in the order of the packs; `url_at` gives the URLs of unreadable ones."""
        return (page for _, page in self._read(url_at))

    def _read(self, url_at: UrlAt | None) -> Iterator[tuple[str, Page]]:
        with closing(OpenPacks(self.packs_folder)) as packs:
            for block in self.blocks:
                for slot in block.slots:
                    yield block.site, packs.page(block.file, block.offset, slot, url_at)

    def shards(self) -> Sequence[PackedPages]:
        """Return the part itself."""
        return (self,)


def packed_shards(packs_folder: Path, blocks: Iterable[BlockPart]) -> Iterator[PackedPages]:
    """Split blocks into shards of some hundred pages; no block is in two of them."""
    shard: list[BlockPart] = []
    pages = 0
    for block in blocks:
        shard.append(block)
        pages += len(block.slots)
        if pages >= _PAGES_OF_A_SHARD:
            yield PackedPages(packs_folder, tuple(shard))
            shard, pages = [], 0
    if shard:
        yield PackedPages(packs_folder, tuple(shard))


def documents_at(packs_folder: Path, places: Iterable[VersionPlace]) -> Iterator[Document]:
    """Yield the documents at locations, in their order; a block is opened once per batch."""
    with closing(OpenPacks(packs_folder)) as packs:
        yield from _in_batches(places, lambda place: packs.document(place.file, place.offset, place.slot))


def pages_at(packs_folder: Path, places: Iterable[VersionPlace], url_at: UrlAt) -> Iterator[Page]:
    """Yield the pages at locations, in their order; `url_at` gives the URLs of unreadable ones."""
    with closing(OpenPacks(packs_folder)) as packs:
        yield from _in_batches(places, lambda place: packs.page(place.file, place.offset, place.slot, url_at))


def _in_batches(places: Iterable[VersionPlace], read: Callable[[VersionPlace], T]) -> Iterator[T]:
    for batch in _batches(places):
        contents = {place: read(place) for place in sorted(set(batch))}
        yield from (contents[place] for place in batch)


def _batches(places: Iterable[VersionPlace]) -> Iterator[list[VersionPlace]]:
    """Yield batches of locations whose documents fit into memory together."""
    batch: list[VersionPlace] = []
    size = 0
    for place in places:
        batch.append(place)
        size += place.size
        if len(batch) >= _DOCUMENTS_AT_A_TIME or size >= _BYTES_AT_A_TIME:
            yield batch
            batch, size = [], 0
    yield batch


def newest_places(
    engine: Engine, addresses: Sequence[PageAddress], *, skips_missing: bool = False
) -> Iterator[VersionPlace]:
    """Yield the locations of the newest versions of pages, in the order of the addresses."""
    for start in range(0, len(addresses), _DOCUMENTS_AT_A_TIME):
        batch = addresses[start : start + _DOCUMENTS_AT_A_TIME]
        keys = [url_key(address.site, address.url) for address in batch]
        query = select_newest_pages().add_columns(schema.urls.c.key).where(schema.urls.c.key.in_(keys))
        with engine.connect() as connection:
            places_by_key = {key: VersionPlace(*place) for *place, key in connection.execute(query)}
        for address, key in zip(batch, keys, strict=True):
            if key in places_by_key:
                yield places_by_key[key]
            elif not skips_missing:
                raise StoreError(f"There is no page {address.url} in the site {address.site}.")


def places_of_versions(engine: Engine, addresses: Sequence[PageAddress]) -> Iterator[VersionPlace]:
    """Yield the locations of all versions of pages in the order of the addresses, the newest last."""
    versions = schema.versions.c
    query = select_places().add_columns(schema.urls.c.key).where(versions.media_type == HTML)
    query = query.order_by(versions.last_seen_at, versions.id)
    for start in range(0, len(addresses), _DOCUMENTS_AT_A_TIME):
        keys = [
            url_key(address.site, address.url) for address in addresses[start : start + _DOCUMENTS_AT_A_TIME]
        ]
        places_by_key: dict[bytes, list[VersionPlace]] = {key: [] for key in keys}
        with engine.connect() as connection:
            for *place, key in connection.execute(query.where(schema.urls.c.key.in_(keys))):
                places_by_key[key].append(VersionPlace(*place))
        yield from (place for key in keys for place in places_by_key[key])


def page_ids(engine: Engine, addresses: Sequence[PageAddress]) -> list[int]:
    """Return the ids of pages in the store, in the order of the addresses."""
    keys = [url_key(address.site, address.url) for address in addresses]
    query = select(schema.urls.c.key, schema.urls.c.id)
    ids_by_key: dict[bytes, int] = {}
    with engine.connect() as connection:
        for start in range(0, len(keys), _DOCUMENTS_AT_A_TIME):
            batch = query.where(schema.urls.c.key.in_(keys[start : start + _DOCUMENTS_AT_A_TIME]))
            ids_by_key.update((key, page_id) for key, page_id in connection.execute(batch))
    return [ids_by_key[key] for key in keys]


def page_address(engine: Engine, page_id: int) -> tuple[str, str] | None:
    """Return the site and the URL of the page with an id."""
    query = select(schema.sites.c.name, schema.urls.c.url).join(schema.urls)
    with engine.connect() as connection:
        row = connection.execute(query.where(schema.urls.c.id == page_id)).one_or_none()
    return None if row is None else (row[0], row[1])


def stored_resources(engine: Engine, urls: Sequence[str], site: str) -> set[str]:
    """Return the URLs of stored stylesheets or images, in the given site or in the site of the URL."""
    keys = {url_key(home, url): url for url in urls for home in (site, site_of(url))}
    is_resource = schema.versions.c.media_type != HTML
    query = select(schema.urls.c.key).where(
        select(schema.versions.c.id).where(schema.versions.c.url_id == schema.urls.c.id, is_resource).exists()
    )
    return stored_urls(engine, query, keys)


def document_url(engine: Engine, file: str, offset: int, slot: int) -> str | None:
    """Return the URL of the document in a slot of the block at an offset of a pack, as the tables have it."""
    versions = schema.versions.c
    query = (
        select(schema.urls.c.url)
        .join(schema.versions, versions.url_id == schema.urls.c.id)
        .join(schema.packs, versions.pack_id == schema.packs.c.id)
        .where(schema.packs.c.file == file, versions.block_offset == offset, versions.slot == slot)
    )
    with engine.connect() as connection:
        return connection.execute(query).scalar()


def stored_urls(engine: Engine, query: Select[bytes], urls: Mapping[bytes, str]) -> set[str]:
    """Return the URLs, given by their keys, whose keys a query returns."""
    stored: set[str] = set()
    with engine.connect() as connection:
        for batch in batches(urls, KEYS_AT_A_TIME):
            rows = connection.execute(query.where(schema.urls.c.key.in_(batch)))
            stored.update(urls[key] for key in rows.scalars())
    return stored


def select_places() -> Select[*tuple[Any, ...]]:
    """Select the locations of versions of documents, each row with the fields of a VersionPlace."""
    versions = schema.versions.c
    return (
        select(schema.packs.c.file, versions.block_offset, versions.slot, versions.size)
        .join(schema.urls, versions.url_id == schema.urls.c.id)
        .join(schema.packs, versions.pack_id == schema.packs.c.id)
    )


def select_newest_pages() -> Select[*tuple[Any, ...]]:
    """Select the location of the newest version of each page."""
    return select_places().where(is_newest_page())


def is_newest_page() -> ColumnElement[bool]:
    """Whether a version is the newest of its page."""
    return and_(schema.versions.c.media_type == HTML, _is_newest())


def is_page() -> ColumnElement[bool]:
    """Whether a URL has a page, and not only a stylesheet or an image."""
    versions = schema.versions.c
    return (
        select(versions.id).where(versions.url_id == schema.urls.c.id, versions.media_type == HTML).exists()
    )


def select_places_of(url: str, site: str | None) -> Select[*tuple[Any, ...]]:
    """Select the locations of the versions of a URL, the newest last."""
    is_url = schema.urls.c.key == url_key(site or site_of(url), url)
    return select_places().where(is_url).order_by(schema.versions.c.last_seen_at, schema.versions.c.id)


def _is_newest() -> ColumnElement[bool]:
    """Whether no other version of the URL was seen later."""
    this = schema.versions.c
    later_version = schema.versions.alias("other").c
    later = or_(
        later_version.last_seen_at > this.last_seen_at,
        and_(later_version.last_seen_at == this.last_seen_at, later_version.id > this.id),
    )
    return (
        ~select(later_version.id)
        .where(later_version.url_id == this.url_id, later_version.media_type == HTML, later)
        .exists()
    )


def as_page(document: Document) -> Page:
    """Convert a document to a page."""
    return Page(document.url, document.body, document.fetched_at, document.charset)


class IntegrityProblem(NamedTuple):
    """An inconsistency between the packs and the tables."""

    place: str
    text: str


def integrity_problems(engine: Engine, packs_folder: Path) -> Iterator[IntegrityProblem]:
    """Read every pack of a store and compare it with the tables."""
    columns = schema.packs.c
    for pack_id, file, committed in _rows(engine, select(columns.id, columns.file, columns.committed_bytes)):
        try:
            yield from _problems_of_pack(engine, packs_folder, pack_id, file, committed)
        except PackError as error:
            yield IntegrityProblem(file, str(error))


def links(folder: Path, packs_folder: Path) -> Iterator[str]:
    """Yield the paths of symbolic links in a workspace; its folder of packs may be a link itself."""
    packs = packs_folder.name
    yield from (link for link in ConfinedFolder(folder).links() if link != packs)
    if packs_folder.is_symlink():
        yield from (f"{packs}/{link}" for link in ConfinedFolder(packs_folder).links())


def _problems_of_pack(
    engine: Engine, packs_folder: Path, pack_id: int, file: str, committed: int
) -> Iterator[IntegrityProblem]:
    columns = schema.versions.c
    query = (
        select(columns.block_offset, columns.slot, schema.urls.c.url, columns.content_hash)
        .join(schema.urls)
        .where(columns.pack_id == pack_id)
        # Others may have been written since the length of the pack was read.
        .where(columns.block_offset < committed)
    )
    expected = {(row[0], row[1]): (row[2], row[3]) for row in _rows(engine, query)}
    with closing(Pack(packs_folder, file)) as pack:
        for offset, documents in pack.blocks(committed):
            for slot, document in enumerate(documents):
                actual = (document.url, content_hash(document.media_type, document.body))
                if expected.pop((offset, slot), None) != actual:
                    yield IntegrityProblem(file, f"{document.url} is not what the tables say.")
    if expected:
        yield IntegrityProblem(file, f"{len(expected)} versions of pages are missing.")


def _rows(engine: Engine, query: Select[*tuple[Any, ...]]) -> list[Row[*tuple[Any, ...]]]:
    with engine.connect() as connection:
        return list(connection.execute(query).all())
