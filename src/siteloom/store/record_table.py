"""The records that hold now, or those of a run, as a table that is filtered, sorted and paged.

What a page of the table shows is read by the ids of its records, so that the last of many thousand pages is
as near as the first. Which ids these are is found once for a query: see `record_columns`.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, func, select, tuple_

from siteloom.errors import NotFound
from siteloom.store import schema
from siteloom.store.batches import row_batches
from siteloom.store.record_columns import RecordColumns
from siteloom.store.records import InForce, is_not_withdrawn, run_as_it_was, what_is_in_force
from siteloom.store.runs import forgetting_mark
from siteloom.store.text import storable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Engine

_RECORDS_AT_A_TIME = 1_000  # of more, the garbage collector looks through all that there is again and again
_CONTENTS_AT_A_TIME = 500


@dataclass(frozen=True, slots=True)
class RecordScope:
    """Which records there are to choose from: those that hold now, or those of one run.

    Those that are equal have the same records. `runs` has what each run was asked for, a site or None, and
    `sites` the site of each wrapper; `extent` is how many records a run that is not done has so far, and the
    greatest id. `forgetting` tells when records were removed.
    """

    runs: tuple[tuple[str | None, int], ...]
    sites: tuple[tuple[str, str], ...]
    is_one_run: bool
    extent: tuple[int, int] | None
    forgetting: tuple[int, str] | None

    @property
    def in_force(self) -> InForce:
        """Which record is of which site, if it is among them."""
        return InForce(dict(self.runs), dict(self.sites))


class RecordCount(NamedTuple):
    """How many records of a site a wrapper gave."""

    site: str
    wrapper: str
    records: int


class TableRow(NamedTuple):
    """A record of a table; `place` is its number among those of its page, from 0."""

    id: int
    site: str
    url: str
    wrapper: str
    version: int | None
    values: Mapping[str, Sequence[str]]
    confidence: Mapping[str, Sequence[float]]
    place: int


@dataclass(frozen=True, slots=True)
class RecordTable:
    """The records of a store as a table."""

    engine: Engine

    def scope(self, run_id: int | None = None) -> RecordScope:
        """The records to choose from: those that hold now, or those of a run of extract."""
        with self.engine.connect() as connection:
            forgetting = forgetting_mark(connection)
        in_force = what_is_in_force(self.engine) if run_id is None else run_as_it_was(self.engine, run_id)
        if in_force is None:
            raise NotFound(f"There is no run {run_id} of extract.")
        runs, sites = in_force
        extent = None if run_id is None else self._extent(run_id)  # what holds is of runs that are done
        known_sites = tuple(sorted(sites.items()))
        return RecordScope(tuple(runs.items()), known_sites, run_id is not None, extent, forgetting)

    def _extent(self, run_id: int) -> tuple[int, int] | None:
        runs, records = schema.runs.c, schema.records.c
        with self.engine.connect() as connection:
            if connection.execute(select(runs.status).where(runs.id == run_id)).scalar() == "done":
                return None
            found = select(func.count(), func.coalesce(func.max(records.id), 0))
            count, last = connection.execute(found.where(records.run_id == run_id)).one()
        return count, last

    def counts(self, scope: RecordScope) -> list[RecordCount]:
        """How many records there are of each site by each wrapper, most first."""
        columns = schema.records.c
        in_force = scope.in_force
        found: Counter[tuple[str, str]] = Counter()
        for asked_for, run_id in scope.runs:
            counted = select(columns.wrapper, func.count()).where(_is_meant(scope, run_id))
            with self.engine.connect() as connection:
                wrappers = connection.execute(counted.group_by(columns.wrapper)).all()
            for wrapper, records in wrappers:
                urls = {"": records}
                if asked_for is None and wrapper not in in_force.sites:
                    # It is none of the workspace, or no longer: the URLs tell of which sites its records are.
                    of_wrapper = and_(_is_meant(scope, run_id), columns.wrapper == wrapper)
                    batches = self._in_batches(of_wrapper, columns.url)
                    urls = Counter(row.url for rows in batches for row in rows)
                for url, count in urls.items():
                    site = in_force.site_of(asked_for, wrapper, url)
                    if site is not None:
                        found[site, wrapper] += count
        return [RecordCount(*key, records) for key, records in found.most_common()]

    def ids(self, scope: RecordScope, site: str | None = None, wrapper: str | None = None) -> array[int]:
        """The ids of all records, of a site or by a wrapper, in the order of their pages."""
        found = array("q")
        for rows in self._batches(scope, site, wrapper):
            found.extend(row[0] for row in rows)
        return found

    def chunks(
        self, scope: RecordScope, site: str | None = None, wrapper: str | None = None
    ) -> Iterator[RecordColumns]:
        """The same records by column, some thousand at a time."""
        content = schema.records.c.content
        for rows in self._batches(scope, site, wrapper, content):
            if rows:
                yield RecordColumns((row[0], row[1], row[2]) for row in rows)

    def rows(self, scope: RecordScope, ids: Sequence[int]) -> list[TableRow]:
        """The records of some ids, in the same order; those that are gone by now are left out."""
        columns, beside = schema.records.c, schema.records.alias("beside").c
        before = select(func.count()).where(
            beside.url_key == columns.url_key,
            beside.run_id == columns.run_id,
            tuple_(beside.shard, beside.place) < tuple_(columns.shard, columns.place),
        )
        wanted = select(
            columns.id,
            columns.run_id,
            columns.url,
            columns.wrapper,
            columns.wrapper_version,
            columns.content,
            before.scalar_subquery().label("place"),
        )
        with self.engine.connect() as connection:
            found = {row.id: row for row in connection.execute(wanted.where(columns.id.in_(ids)))}
        in_force = scope.in_force
        asked_for = {run_id: site for site, run_id in scope.runs}
        rows = []
        for row in (found[one] for one in ids if one in found):
            content = json.loads(row.content)
            rows.append(
                TableRow(
                    row.id,
                    in_force.site_of(asked_for[row.run_id], row.wrapper, row.url) or "",
                    row.url,
                    row.wrapper,
                    row.wrapper_version,
                    content["values"],
                    content["confidence"],
                    row.place,
                )
            )
        return rows

    def contents(self, ids: Sequence[int]) -> Iterator[str]:
        """The JSON of the records of some ids, in the same order; those that are gone by now are left out."""
        columns = schema.records.c
        for start in range(0, len(ids), _CONTENTS_AT_A_TIME):
            some = ids[start : start + _CONTENTS_AT_A_TIME]
            query = select(columns.id, columns.content).where(columns.id.in_(some))
            with self.engine.connect() as connection:
                found = {row.id: row.content for row in connection.execute(query)}
            yield from (found[one] for one in some if one in found)

    def _batches(
        self, scope: RecordScope, site: str | None, wrapper: str | None, *more: ColumnElement[Any]
    ) -> Iterator[Sequence[Any]]:
        """Id, URL and more of the records of a scope in the order of their pages, some thousand at a time."""
        columns = schema.records.c
        in_force = scope.in_force
        for asked_for, run_id in scope.runs:
            wanted = _is_meant(scope, run_id)
            if wrapper is not None:
                wanted = and_(wanted, columns.wrapper == storable(wrapper))
            batches = self._in_batches(wanted, columns.id, columns.url, *more, columns.wrapper)
            if asked_for is not None or wrapper in in_force.sites:  # then all are of one site
                if (home := in_force.site_of(asked_for, wrapper or "", "")) and site in (None, home):
                    yield from batches
                continue
            for rows in batches:
                sites = (in_force.site_of(asked_for, row.wrapper, row.url) for row in rows)
                yield [row for row, home in zip(rows, sites, strict=True) if home and site in (None, home)]

    def _in_batches(
        self, wanted: ColumnElement[bool], *columns: ColumnElement[Any]
    ) -> Iterator[Sequence[Any]]:
        order = [schema.records.c.shard, schema.records.c.place]
        return row_batches(self.engine, select(*columns, *order).where(wanted), order, _RECORDS_AT_A_TIME)


def _is_meant(scope: RecordScope, run_id: int) -> ColumnElement[bool]:
    """Whether a record is one of a run; if what holds now is asked for, whether it does besides."""
    is_of_run = schema.records.c.run_id == run_id
    return is_of_run if scope.is_one_run else and_(is_of_run, is_not_withdrawn())
