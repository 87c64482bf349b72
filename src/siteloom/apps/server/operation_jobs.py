"""Every operation as a background job: arguments from forms and JSON, results stored as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import partial
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from siteloom.apps.server.job_kinds import Argument, JobInput, JobKind, Report
from siteloom.apps.server.uploaded_pages import UPLOADED_PAGES
from siteloom.core.wording import plural
from siteloom.operations.context import Context
from siteloom.operations.operation_table import OPERATIONS, Operation
from siteloom.operations.request_fields import JobField

if TYPE_CHECKING:
    from siteloom.core.settings import Settings
    from siteloom.store.queries.jobs import Job
    from siteloom.store.store import Store


# How jobs get the fields of requests that no argument can hold.
_INPUTS: Mapping[str, JobInput] = {"ingest": UPLOADED_PAGES}
_NO_INPUT = JobInput({}, lambda *_: nullcontext({}))


def job_kind(operation: Operation) -> JobKind:
    """The kind of job that runs an operation."""
    arguments = job_arguments(operation.request)
    if operation.name in _INPUTS:
        arguments = {**_INPUTS[operation.name].arguments, **arguments}
    return JobKind(partial(_run, operation), operation.title, arguments, operation.role)


def job_arguments(request: type) -> dict[str, Argument]:
    """The arguments of a job: the fields of a request that jobs may set."""
    hints = get_type_hints(request, include_extras=True)
    arguments = {}
    for field in fields(request):
        marks = [mark for mark in _parts(hints[field.name]) if isinstance(mark, JobField)]
        if marks:
            has_default = field.default is not field.default_factory  # both are MISSING where there is none
            arguments[field.name] = Argument(marks[0].kind, is_needed=not has_default)
    return arguments


def job_result(job: Job) -> Any:
    """The typed result of a job that is done, or None if it has none or an earlier version stored it."""
    operation = OPERATIONS.get(job.kind)
    if operation is None or not isinstance(job.result, Mapping):
        return None
    try:
        return _typed(operation.result, job.result)
    except (KeyError, TypeError, ValueError):
        return None


def job_context(store: Store, settings: Settings, report: Report, author: str | None = None) -> Context:
    """The context of an operation that reports its progress as that of a job."""
    return Context(store=store, settings=settings, progress=_JobProgress(report), author=author)


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
        self._unit = "page"

    def start(self, message: str, total: int | None = None, unit: str = "page", done: int = 0) -> None:
        self._done, self._total = done, total
        self._unit = unit
        self._message = message if total is None else f"{unit}s: {message}"
        self._report(done, total, self._message)

    def advance(self, count: int = 1) -> None:
        self._done += count
        # Without a total, pages show the message alone.
        counted = f", {plural(self._done, self._unit)}" if self._total is None else ""
        self._report(self._done, self._total, self._message + counted)

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
    job_input = _INPUTS.get(operation.name, _NO_INPUT)
    # An argument that was not given is None; the request then has its default.
    chosen = {
        name: _frozen(value)
        for name, value in arguments.items()
        if value is not None and name not in job_input.arguments
    }
    context = job_context(store, settings, report, author)
    with job_input.fields(store, settings, arguments) as prepared:
        request = operation.request(**chosen, **prepared)
        result: dict[str, Any] = to_plain(operation.function(context, request))
    return result


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _parts(hint: Any) -> list[Any]:
    """An annotation and everything inside it."""
    metadata = getattr(hint, "__metadata__", ())
    return [hint, *metadata, *(part for inner in get_args(hint) for part in _parts(inner))]


def _typed(hint: Any, value: Any) -> Any:
    """A value of a type from what `to_plain` makes of it. Fields that are not stored have their defaults."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _typed(inner[0], value)
    if origin in (Union, UnionType):
        kinds = [kind for kind in inner if kind is not NoneType]
        return None if value is None and len(kinds) < len(inner) else _typed(kinds[0], value)
    if origin is Literal:
        return inner[inner.index(value)]
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        return _typed_fields(hint, value)
    if origin is tuple:
        items = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_typed(kind, item) for kind, item in zip(items, value, strict=True))
    if origin is not None and issubclass(origin, Mapping):
        return {_typed(inner[0], key): _typed(inner[1], item) for key, item in value.items()}
    if hint is datetime:
        return datetime.fromisoformat(value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    is_fitting = isinstance(value, (int, float) if hint is float else hint) if hint is not Any else True
    if not is_fitting:
        raise TypeError(f"{value!r} is no {hint}")
    return value


def _typed_fields(hint: Any, value: Mapping[str, Any]) -> Any:
    hints = get_type_hints(hint)
    names = list(hints)
    if is_dataclass(hint):
        names = [field.name for field in fields(hint) if field.metadata.get("stored", True)]
    return hint(**{name: _typed(hints[name], value[name]) for name in names if name in value})
