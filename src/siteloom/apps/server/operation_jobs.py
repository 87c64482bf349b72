"""Every operation as a background job: arguments from forms and JSON, results stored as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache, partial
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from siteloom.apps.server.job_kinds import Argument, JobKind, Report
from siteloom.operations.context import Context
from siteloom.operations.operation_table import OPERATIONS, Operation
from siteloom.operations.request_fields import JobField

if TYPE_CHECKING:
    from siteloom.core.settings import Settings
    from siteloom.store.queries.jobs import Job
    from siteloom.store.store import Store


def job_kind(operation: Operation) -> JobKind:
    """The kind of job that runs an operation."""
    return JobKind(
        partial(_run, operation), operation.title, job_arguments(operation.request), operation.role
    )


def job_arguments(request: type) -> dict[str, Argument]:
    """The arguments of a job: the fields of a request that jobs may set."""
    arguments = {}
    for field, mark in _job_fields(request):
        has_default = field.default is not field.default_factory  # both are MISSING where there is none
        arguments[mark.argument or field.name] = Argument(mark.kind, is_needed=not has_default)
    return arguments


def _job_fields(request: type) -> Iterator[tuple[Field[Any], JobField]]:
    hints = get_type_hints(request, include_extras=True)
    for field in fields(request):
        marks = [mark for mark in _parts(hints[field.name]) if isinstance(mark, JobField)]
        if marks:
            yield field, marks[0]


def job_result(job: Job) -> Any:
    """The typed result of a job that is done, or None if it has none or an earlier version stored it."""
    operation = OPERATIONS.get(job.kind)
    if operation is None or not isinstance(job.result, Mapping):
        return None
    try:
        return _adapter(operation.result).validate_python(job.result)
    except ValidationError:
        return None


def to_plain(value: Any) -> Any:
    """A result as JSON can hold it, without the fields that are not stored."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: to_plain(getattr(value, field.name))
            for field in fields(value)
            if field.metadata.get("stored", True)
        }
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return to_plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value.value if isinstance(value, Enum) else value


class _JobProgress:
    """Reports the progress of an operation as that of a job."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._done = 0
        self._total: int | None = None
        self._message = ""

    def start(self, message: str, total: int | None = None, unit: str = "page", done: int = 0) -> None:
        self._done, self._total = done, total
        self._message = message if total is None else f"{unit}s: {message}"
        self._report(done, total, self._message)

    def advance(self, count: int = 1) -> None:
        self._done += count
        self._report(self._done, self._total, self._message)

    def message(self, text: str) -> None:
        self._report(self._done, self._total, text)


def _run(
    operation: Operation,
    store: Store,
    settings: Settings,
    arguments: Mapping[str, Any],
    report: Report,
    author: str | None = None,
) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for field, mark in _job_fields(operation.request):
        value = arguments.get(mark.argument or field.name)
        if value is None:
            continue  # the request has its default
        chosen[field.name] = (value,) if mark.argument is not None else _frozen(value)
    context = Context(store=store, settings=settings, progress=_JobProgress(report), author=author)
    result: dict[str, Any] = to_plain(operation.function(context, operation.request(**chosen)))
    return result


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _parts(hint: Any) -> list[Any]:
    """An annotation and everything inside it."""
    metadata = getattr(hint, "__metadata__", ())
    return [hint, *metadata, *(part for inner in get_args(hint) for part in _parts(inner))]


@cache
def _adapter(result: type) -> TypeAdapter[Any]:
    return TypeAdapter(result)
