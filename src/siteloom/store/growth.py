"""What became of the sites that were to be wrapped from seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sqlalchemy import and_, delete, insert, select, update

from siteloom.errors import Overtaken
from siteloom.store import schema
from siteloom.store.database import writing
from siteloom.store.lock import wait_for_tables
from siteloom.store.text import storable

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement, Engine

# Keys of what is kept of a site.
_ACCEPTED_BY = "accepted_by"
_ACCEPTED_AT = "accepted_at"

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

    @property
    def accepted_by(self) -> str | None:
        """Who has looked at it and found it right, if anyone has."""
        by: str | None = self.content.get(_ACCEPTED_BY)
        return by

    @property
    def waits(self) -> bool:
        """Whether it is wrapped and nobody has looked at it yet."""
        return self.state == "wrapped" and self.accepted_by is None


def is_to_be_looked_at() -> ColumnElement[bool]:
    """The same of a row."""
    columns = schema.grown_sites.c
    return and_(columns.state == "wrapped", columns.content[_ACCEPTED_BY].as_string().is_(None))


def save_grown_site(engine: Engine, grown: GrownSite) -> None:
    """Keep what became of a site in the place of what was kept before."""
    site, columns = storable(grown.site), [column.name for column in schema.grown_sites.c]
    row = dict(zip(columns, grown, strict=True))
    row |= {"site": site, "wrapper": grown.wrapper and storable(grown.wrapper)}
    with writing(engine) as connection:
        wait_for_tables(connection)  # else two processes could both find the place free
        connection.execute(delete(schema.grown_sites).where(schema.grown_sites.c.site == site))
        connection.execute(insert(schema.grown_sites).values(row))


def grown_sites(engine: Engine) -> list[GrownSite]:
    """What became of each site, by name."""
    with engine.connect() as connection:
        found = [GrownSite(*row) for row in connection.execute(select(schema.grown_sites))]
    return sorted(found, key=lambda grown: grown.site)  # databases differ in how they sort text


def accept_grown_site(engine: Engine, site: str, version: int | None, author: str, at: datetime) -> bool:
    """Write down who has found a wrapped site right, and when; False if there is no such site.

    Who has looked at a version of its wrapper accepts that one: Overtaken, if there is another by now.
    """
    columns = schema.grown_sites.c
    is_it = (columns.site == storable(site)) & (columns.state == "wrapped")
    with writing(engine) as connection:
        query = select(columns.wrapper_version, columns.content).where(is_it)
        found = connection.execute(query.with_for_update()).one_or_none()
        if found is None:
            return False
        if version not in (None, found.wrapper_version):
            now = found.wrapper_version
            raise Overtaken(f"{site} was wrapped anew since you looked at it (version {now}): look again.")
        accepted = {**found.content, _ACCEPTED_BY: storable(author), _ACCEPTED_AT: at.isoformat()}
        connection.execute(update(schema.grown_sites).where(is_it).values(content=accepted))
    return True
