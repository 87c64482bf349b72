"""The segment table of each site: on how many of its pages each text stood.

A table is kept whole and packed, since rows of their own would take longer to write than all else. The mark
beside it says up to which version of any page it has counted. Whoever counted further adds to both at once,
and only if no other process did meanwhile: so no version is lost, and none is counted twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import zstandard
from sqlalchemy import select, update

from siteloom.core.database import upsert_into, writing
from siteloom.core.errors import StoreError
from siteloom.core.interrupts import held_back_interrupt
from siteloom.store import schema
from siteloom.store.compression import decompressed
from siteloom.store.packs.page_reader import VersionPlace, select_places
from siteloom.store.packs.page_writer import HTML
from siteloom.store.query_base import Tables
from siteloom.templates.template_text import NO_SEGMENTS, LivingTime, SegmentCounts, merge_counts

if TYPE_CHECKING:
    from sqlalchemy import Connection

_FORMAT = 1
_HEAD = np.dtype([("format", "<i8"), ("pages", "<i8"), ("rows", "<i8")])
_COLUMNS = ("<u8", "<u8", "<i8", "<i8", "<i8", "<i8")
_LEVEL = 1  # most of it are hashes, which cannot be packed


class CountedSegments(NamedTuple):
    """What the segment table of a site knows, and the id of the last version that it has counted."""

    counts: SegmentCounts
    counted_to: int


class UncountedVersion(NamedTuple):
    """A version of a page that the segment table of its site has not counted, and where it stands."""

    id: int
    place: VersionPlace


class SegmentQueries(Tables):
    """The segment tables of sites."""

    __slots__ = ()

    def counted_segments(self, site: str) -> CountedSegments:
        """The segment table of a site, and up to which version of any page it has counted."""
        columns = schema.segment_tables.c
        query = (
            select(columns.content, columns.counted_to).join(schema.sites).where(schema.sites.c.name == site)
        )
        with self.engine.connect() as connection:
            row = connection.execute(query).one_or_none()
        return CountedSegments(NO_SEGMENTS, 0) if row is None else CountedSegments(_unpacked(row[0]), row[1])

    def uncounted_versions(self, site: str, counted_to: int, limit: int) -> list[UncountedVersion]:
        """The first versions of a site's pages that its segment table has not counted, in their order."""
        query = (
            select_places()
            .add_columns(schema.versions.c.id)
            .join(schema.sites, schema.urls.c.site_id == schema.sites.c.id)
            .where(schema.sites.c.name == site, schema.versions.c.media_type == HTML)
            .where(schema.versions.c.id > counted_to)
            .order_by(schema.versions.c.id)
            .limit(limit)
        )
        with self.engine.connect() as connection:
            return [UncountedVersion(row[-1], VersionPlace(*row[:-1])) for row in connection.execute(query)]

    def add_segments(
        self, site: str, later: SegmentCounts, *, counted: CountedSegments, counted_to: int
    ) -> bool:
        """Add to the segment table of a site the counts of the versions that follow on those counted.

        Returns False, and adds nothing, if another process did meanwhile.
        """
        content = _packed(merge_counts(counted.counts, later, LivingTime()))
        columns = schema.segment_tables.c
        # Not in the transaction: SQLite refuses to write in one that has read, if another wrote since.
        with self.engine.connect() as connection:
            site_id = connection.execute(
                select(schema.sites.c.id).where(schema.sites.c.name == site)
            ).scalar_one()
        with held_back_interrupt(), writing(self.engine) as connection:
            if not counted.counted_to:
                _insert_empty(connection, site_id)
            change = (
                update(schema.segment_tables)
                .where(columns.site_id == site_id, columns.counted_to == counted.counted_to)
                .values(content=content, counted_to=counted_to)
            )
            return connection.execute(change).rowcount == 1


def _insert_empty(connection: Connection, site_id: int) -> None:
    row = upsert_into(connection, schema.segment_tables)
    row = row.values(site_id=site_id, counted_to=0, content=_packed(NO_SEGMENTS))
    connection.execute(row.on_conflict_do_nothing())


def _packed(counts: SegmentCounts) -> bytes:
    head = np.array([(_FORMAT, counts.pages, counts.keys.size)], _HEAD)
    columns = (column.astype(dtype) for column, dtype in zip(counts[1:], _COLUMNS, strict=True))
    return zstandard.compress(b"".join([head.tobytes(), *(column.tobytes() for column in columns)]), _LEVEL)


def _unpacked(content: bytes) -> SegmentCounts:
    try:
        data = decompressed(content)
        head = np.frombuffer(data, _HEAD, 1)[0]
        if head["format"] != _FORMAT:
            raise StoreError("A segment table of this store was written by a newer version of Siteloom.")
        columns = []
        offset = _HEAD.itemsize
        for dtype in _COLUMNS:
            column = np.frombuffer(data, dtype, head["rows"], offset)
            columns.append(column.astype(column.dtype.newbyteorder("=")))
            offset += column.nbytes
    except ValueError as error:
        raise StoreError(f"A segment table of this workspace is damaged: {error}.") from error
    return SegmentCounts(int(head["pages"]), *columns)
