"""What the server holds in memory of pages, dropped when some of them were forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from siteloom.server.services import Services


def drop_forgotten(services: Services) -> None:
    """Hold nothing any more that was read before the store has forgotten something, if it has.

    Jobs of other kinds forget as well what the settings of retention say was kept for long enough.
    """
    services.benches.drop_forgotten()
    services.found_records.drop_forgotten(services.store.forgetting_mark())
    services.annotated.tell()  # whoever listens at a workbench lets go of it
    services.store.engine.dispose()  # connections of SQLite keep pages of the database until they are used
