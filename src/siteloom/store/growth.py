"""What became of the sites that were to be wrapped from seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sqlalchemy import delete, insert, select

from siteloom.store import schema
from siteloom.store.lock import wait_for_tables
from siteloom.store.text import storable

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Engine

GrownState = Literal["wrapped", "poor", "withdrawn", "failed"]


class GrownSite(NamedTuple):
    """What became of a site in a round: `wrapped`, `poor` in evidence, `failed`, or `withdrawn` by a person.

    `tried_seeds` is how many seeds there were then; the wrapper is that of a site that was wrapped.
    `content` is the report. The fields stand in the order of the columns.
    """

    site: str
    state: GrownState
    round: int
    tried_seeds: int
    wrapper: str | None
    version: int | None
    content: dict[str, Any]
    at: datetime


def save_grown_site(engine: Engine, grown: GrownSite) -> None:
    """Keep what became of a site in the place of what was kept before."""
    site, columns = storable(grown.site), [column.name for column in schema.grown_sites.c]
    row = dict(zip(columns, grown, strict=True))
    row |= {"site": site, "wrapper": grown.wrapper and storable(grown.wrapper)}
    with engine.begin() as connection:
        wait_for_tables(connection)  # else two processes could both find the place free
        connection.execute(delete(schema.grown_sites).where(schema.grown_sites.c.site == site))
        connection.execute(insert(schema.grown_sites).values(row))


def grown_sites(engine: Engine) -> list[GrownSite]:
    """What became of each site, by name."""
    with engine.connect() as connection:
        found = [GrownSite(*row) for row in connection.execute(select(schema.grown_sites))]
    return sorted(found, key=lambda grown: grown.site)  # databases differ in how they sort text
