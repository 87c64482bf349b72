"""Known records by source, and the outcome of wrapping each site from them.

Seeds are written batch by batch, and each has the mark of the import that met it last. So an import can be
killed at any moment and begun again: what a source no longer has is removed only when all of it was read.
Imported and extracted seeds of a source do not touch each other. Extracted ones count only while their site
is wrapped.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from operator import itemgetter
from secrets import randbits
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sqlalchemy import and_, delete, func, insert, or_, select, update

from siteloom.core.database import upsert_into, writing
from siteloom.core.errors import Overtaken, StoreError
from siteloom.core.file_lock import wait_for_tables
from siteloom.core.interrupts import held_back_interrupt
from siteloom.core.model import LONGEST_SOURCE, Seed
from siteloom.core.sequences import batches, row_batches
from siteloom.core.storable_text import storable, storable_json
from siteloom.store import schema
from siteloom.store.keys import seed_key
from siteloom.store.query_base import Tables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Engine, Row


_WRITTEN_AT_A_TIME = 10_000
_READ_AT_A_TIME = 5_000
_MARK_BITS = 62
_GROWN = "grown "  # in the keys of seeds that were extracted from their site

# Made once: for a million small texts it is the making that takes long.
_encode_sorted = json.JSONEncoder(sort_keys=True).encode
_encode = json.JSONEncoder(ensure_ascii=False).encode


class SeedCounts(NamedTuple):
    """The outcome of adding seeds; `unchanged` counts those stored already, and repeated ones."""

    added: int
    unchanged: int
    removed: int


class SeedSource(NamedTuple):
    """A source of seeds in numbers: how many of its records have each attribute, and when the last came."""

    source: str
    records: int
    attributes: Mapping[str, int]
    confidence: float
    added_at: datetime


class SeedQueries(Tables):
    """Known records by source."""

    __slots__ = ()

    def add_seeds(self, run_id: int, seeds: Iterable[Seed]) -> SeedCounts:
        """Keep seeds that were given beside those that there are.

        One that has source, page and values of another is taken for that one, with the confidence it has now.
        """
        return self._add(run_id, seeds, is_grown=False)

    def replace_seeds(
        self, run_id: int, seeds: Iterable[Seed], sources: Collection[str] = (), *, is_grown: bool = False
    ) -> SeedCounts:
        """Keep seeds in the place of all that their sources, and those that are named, had before.

        Imported seeds take the place of imported ones, extracted seeds that of extracted ones. They are read
        as they are written, batch by batch. What is outdated is removed in the end, so that an error or a
        kill half way loses nothing, and doing it all again leaves nothing double.
        """
        return self._add(run_id, seeds, is_grown=is_grown, replaced=sources)

    def _add(
        self,
        run_id: int,
        seeds: Iterable[Seed],
        *,
        is_grown: bool,
        replaced: Collection[str] | None = None,
    ) -> SeedCounts:
        """Keep seeds; unless `replaced` is None, only they are left of their sources and of those it names.

        That is of the imported seeds, or of the extracted ones, whichever they are.
        """
        with self.engine.connect() as connection:
            last_id = connection.execute(select(func.coalesce(func.max(schema.seeds.c.id), 0))).scalar_one()
        count, removed = 0, 0
        common = {
            "run_id": run_id,
            "met": randbits(_MARK_BITS),
            "added_at": self.clock(),
            "is_grown": is_grown,
        }
        sources = {storable(source) for source in replaced or ()}
        for batch in batches(seeds, _WRITTEN_AT_A_TIME):
            count += len(batch)
            sources.update({storable(seed.source) for seed in batch})
            rows = {row["key"]: row for row in (_row(seed, common) for seed in batch)}
            with held_back_interrupt(), writing(self.engine) as connection:
                _save(connection, list(rows.values()))
        with held_back_interrupt(), writing(self.engine) as connection:
            is_new = schema.seeds.c.id > last_id
            added: int = connection.execute(select(func.count()).where(is_new)).scalar_one()
            if replaced is not None:
                is_outdated = (schema.seeds.c.met != common["met"]) & (schema.seeds.c.is_grown == is_grown)
                removed = sum(_remove(connection, source, is_outdated) for source in sources)
        return SeedCounts(added, count - added, removed)

    def seeds(
        self, sources: Collection[str] | None = None, *, is_grown: bool | None = None
    ) -> Iterator[Seed]:
        """All seeds or those of some sources, in the order they came, read a few at a time.

        They may be those that were imported, or those that were extracted from sites that are wrapped now.
        """
        conditions = [_counts()]
        if sources is not None:
            conditions.append(schema.seeds.c.source.in_([storable(source) for source in sources]))
        if is_grown is not None:
            conditions.append(schema.seeds.c.is_grown == is_grown)
        for row in _rows(self.engine, *conditions):
            values = {name: tuple(texts) for name, texts in json.loads(row.content).items()}
            yield Seed(values, row.source, row.url, row.confidence)

    def seed_sources(self) -> list[SeedSource]:
        """All sources of seeds by name, in numbers; every seed is read for it."""
        columns = schema.seeds.c
        numbers = (func.count(), func.avg(columns.confidence), func.max(columns.added_at))
        with self.engine.connect() as connection:
            query = select(columns.source, *numbers).where(_counts()).group_by(columns.source)
            numbers_by_source = connection.execute(query).all()
        filled: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for row in _rows(self.engine, _counts()):
            filled[row.source].update(json.loads(row.content).keys())
        return [
            SeedSource(source, records, filled[source], confidence, added_at)
            for source, records, confidence, added_at in sorted(
                numbers_by_source, key=itemgetter(0)
            )  # databases differ in how they sort text
        ]

    def withdraw_seeds(self, source: str) -> int:
        """Remove all imported seeds of a source; returns how many there were.

        Extracted seeds are removed with all results of their site, by
        `siteloom.operations.bootstrap.withdraw`: it is an error if there are only such seeds.
        """
        columns = schema.seeds.c
        name = storable(source)
        is_left = select(columns.id).where(columns.source == name, columns.is_grown).limit(1)
        with held_back_interrupt(), writing(self.engine) as connection:
            removed = _remove(connection, name, ~columns.is_grown)
            if not removed and connection.execute(is_left).one_or_none() is not None:
                raise StoreError(
                    f"The seeds of {source} came of wrapping it: take it back with "
                    f"siteloom bootstrap --withdraw {source}."
                )
        return removed


def _row(seed: Seed, common: Mapping[str, object]) -> dict[str, object]:
    source, url = storable(seed.source), storable(seed.url)
    if len(source.encode()) > LONGEST_SOURCE:
        raise StoreError(f"The source {source[:40]!r}... of seeds is longer than {LONGEST_SOURCE} bytes.")
    return {
        "source": source,
        "key": seed_key(source, url, f"{_GROWN if common['is_grown'] else ''}{_encode_sorted(seed.values)}"),
        "content": storable_json(_encode(seed.values)),
        "url": url,
        "confidence": seed.confidence,
        **common,
    }


def _save(connection: Connection, rows: list[dict[str, object]]) -> None:
    row = upsert_into(connection, schema.seeds)
    met_again = {name: row.excluded[name] for name in ("confidence", "run_id", "met")}
    connection.execute(row.on_conflict_do_update(index_elements=["key"], set_=met_again), rows)


def _remove(connection: Connection, source: str, condition: ColumnElement[bool]) -> int:
    return connection.execute(delete(schema.seeds).where(schema.seeds.c.source == source, condition)).rowcount


def _counts() -> ColumnElement[bool]:
    """Whether a seed counts: it was given, or its site is wrapped, and not stopped half way or withdrawn."""
    sites = schema.grown_sites.c
    wrapped = select(sites.site).where(sites.state == "wrapped")
    return or_(~schema.seeds.c.is_grown, schema.seeds.c.source.in_(wrapped))


def _rows(engine: Engine, *conditions: ColumnElement[bool]) -> Iterator[Row[*tuple[Any, ...]]]:
    columns = schema.seeds.c
    query = select(columns.id, columns.source, columns.content, columns.url, columns.confidence)
    for rows in row_batches(engine, query.where(*conditions), [columns.id], _READ_AT_A_TIME):
        yield from rows


# Keys of what is kept of a site.
_ACCEPTED_BY = "accepted_by"
_ACCEPTED_AT = "accepted_at"

SiteState = Literal["wrapped", "poor", "withdrawn", "failed"]


class StoredSiteOutcome(NamedTuple):
    """The outcome of a site in a round: `wrapped`, `poor` in evidence, `failed`, or `withdrawn` by a person.

    `tried_seeds` is how many seeds there were then; the wrapper is that of a site that was wrapped.
    `content` is the report. The fields stand in the order of the columns.
    """

    site: str
    state: SiteState
    round: int
    tried_seeds: int
    wrapper: str | None
    version: int | None
    content: dict[str, Any]
    at: datetime

    @property
    def accepted_by(self) -> str | None:
        """Who has looked at it and found it right, if anyone has."""
        by: str | None = self.content.get(_ACCEPTED_BY)
        return by

    @property
    def waits(self) -> bool:
        """Whether it is wrapped and nobody has looked at it yet."""
        return self.state == "wrapped" and self.accepted_by is None


def is_awaiting_review() -> ColumnElement[bool]:
    """Whether a row is of a wrapped site that nobody has accepted yet."""
    columns = schema.grown_sites.c
    return and_(columns.state == "wrapped", columns.content[_ACCEPTED_BY].as_string().is_(None))


class SiteOutcomeQueries(Tables):
    """The outcome of each site that was to be wrapped from seeds."""

    __slots__ = ()

    def save_site_outcome(
        self,
        site: str,
        state: SiteState,
        round_number: int,
        tried_seeds: int,
        wrapper: str | None = None,
        version: int | None = None,
        content: Mapping[str, object] | None = None,
    ) -> None:
        """Store the outcome of a site in place of that of earlier rounds."""
        name = storable(site)
        row = insert(schema.grown_sites).values(
            site=name,
            state=state,
            round=round_number,
            tried_seeds=tried_seeds,
            wrapper=wrapper and storable(wrapper),
            wrapper_version=version,
            content=dict(content or {}),
            at=self.clock(),
        )
        with writing(self.engine) as connection:
            wait_for_tables(connection)  # else two processes could both find the place free
            connection.execute(delete(schema.grown_sites).where(schema.grown_sites.c.site == name))
            connection.execute(row)

    def site_outcomes(self) -> list[StoredSiteOutcome]:
        """The outcome of each site that was to be wrapped from seeds, by name."""
        with self.engine.connect() as connection:
            outcomes = [StoredSiteOutcome(*row) for row in connection.execute(select(schema.grown_sites))]
        return sorted(outcomes, key=lambda outcome: outcome.site)  # databases differ in how they sort text

    def accept_site_outcome(self, site: str, author: str, version: int | None = None) -> bool:
        """Write down who has looked at a site that was wrapped and found it right; False if there is none.

        Who has looked at a version of its wrapper accepts that one: Overtaken, if there is another by now.
        """
        columns = schema.grown_sites.c
        is_site = (columns.site == storable(site)) & (columns.state == "wrapped")
        with writing(self.engine) as connection:
            query = select(columns.wrapper_version, columns.content).where(is_site)
            row = connection.execute(query.with_for_update()).one_or_none()
            if row is None:
                return False
            if version not in (None, row.wrapper_version):
                newest = row.wrapper_version
                raise Overtaken(
                    f"{site} was wrapped anew since you looked at it (version {newest}): look again."
                )
            acceptance = {_ACCEPTED_BY: storable(author), _ACCEPTED_AT: self.clock().isoformat()}
            accepted = update(schema.grown_sites).where(is_site).values(content={**row.content, **acceptance})
            connection.execute(accepted)
        return True
