"""Known records that were uploaded: the job that imports them reads the one table of an upload."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from siteloom.apps.server.job_kinds import Argument, JobKind, Report
from siteloom.apps.server.operation_jobs import job_context, job_kind, to_plain
from siteloom.apps.server.upload_folder import find_upload
from siteloom.apps.server.views.known_records import said_of, uploaded_table
from siteloom.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from siteloom.core.settings import Settings
    from siteloom.operations.operation_table import Operation
    from siteloom.store.store import Store


def seeds_kind(operation: Operation) -> JobKind:
    """The kind of job that imports the records of an upload or of a site."""
    kind = job_kind(operation)
    return kind._replace(
        run=partial(_import, operation), arguments={"upload": Argument("text"), **kind.arguments}
    )


def _import(
    operation: Operation,
    store: Store,
    settings: Settings,
    arguments: Mapping[str, Any],
    report: Report,
    author: str | None = None,
) -> dict[str, Any]:
    upload, site = arguments["upload"], arguments["site"]
    if (upload is None) == (site is None):
        raise UsageError("Known records are those of an upload or of a site: name one of them.")
    context = job_context(store, settings, report, author)
    request = operation.request(
        site=site,
        source=arguments["source"] or "",
        several=arguments["several"] or {},
        renamed=arguments["renamed"] or {},
        core=tuple(arguments["core"] or ()),
    )
    if upload is None:
        return _plain(operation.function(context, request))
    table = uploaded_table(store.folder, upload)
    with said_of(table):
        result = operation.function(context, replace(request, locations=(str(table),)))
    find_upload(store.folder, upload).remove()
    return _plain(result)


def _plain(result: object) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(result)
    return plain
