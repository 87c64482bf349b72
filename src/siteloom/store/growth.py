"""What became of the sites that were to be wrapped from seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sqlalchemy import and_, delete, insert, select, update

from siteloom.errors import Overtaken
from siteloom.store import schema
from siteloom.store.database import writing
from siteloom.store.lock import wait_for_tables
from siteloom.store.tables import Tables
from siteloom.store.text import storable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy import ColumnElement

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


class KeepsGrownSites(Tables):
    """What became of the sites that were to be wrapped from seeds."""

    __slots__ = ()

    def save_grown_site(
        self,
        site: str,
        state: GrownState,
        round_number: int,
        tried_seeds: int,
        wrapper: str | None = None,
        version: int | None = None,
        content: Mapping[str, object] | None = None,
    ) -> None:
        """Keep what became of a site that was to be wrapped from seeds, and nothing of earlier rounds."""
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

    def grown_sites(self) -> list[GrownSite]:
        """What became of each site that was to be wrapped from seeds, by name."""
        with self.engine.connect() as connection:
            found = [GrownSite(*row) for row in connection.execute(select(schema.grown_sites))]
        return sorted(found, key=lambda grown: grown.site)  # databases differ in how they sort text

    def accept_grown_site(self, site: str, author: str, version: int | None = None) -> bool:
        """Write down who has looked at a site that was wrapped and found it right; False if there is none.

        Who has looked at a version of its wrapper accepts that one: Overtaken, if there is another by now.
        """
        columns = schema.grown_sites.c
        is_it = (columns.site == storable(site)) & (columns.state == "wrapped")
        with writing(self.engine) as connection:
            query = select(columns.wrapper_version, columns.content).where(is_it)
            found = connection.execute(query.with_for_update()).one_or_none()
            if found is None:
                return False
            if version not in (None, found.wrapper_version):
                newest = found.wrapper_version
                raise Overtaken(
                    f"{site} was wrapped anew since you looked at it (version {newest}): look again."
                )
            said = {_ACCEPTED_BY: storable(author), _ACCEPTED_AT: self.clock().isoformat()}
            accepted = update(schema.grown_sites).where(is_it).values(content={**found.content, **said})
            connection.execute(accepted)
        return True
