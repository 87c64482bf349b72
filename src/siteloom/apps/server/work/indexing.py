"""The job that brings the search index up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteloom.apps.server.job_kinds import JobKind, Report
from siteloom.operations.search import update_index

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteloom.core.settings import Settings
    from siteloom.store.store import Store


def index(store: Store, settings: Settings, _: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Index what is new in the workspace, and take out what is outdated."""
    looked_at = 0
    expected = 2 * store.search_index.unindexed_count()  # each is counted, then indexed

    def count(pages: int) -> None:
        nonlocal looked_at
        looked_at += pages
        # More than expected if what was indexed before is indexed anew.
        report(looked_at, max(expected, looked_at), "steps")

    report(0, expected or None, "steps")
    update = update_index(store, limits=settings.parse, on_page=count)
    return {**update._asdict(), "failures": dict(update.failures)}


KINDS = {"index": JobKind(index, "Index for search", {})}
