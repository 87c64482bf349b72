"""seeds: import known records from files, from what was extracted of a site, or from data in pages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import NotFound, SourceError, UsageError
from siteloom.core.model import Failure, Page, Seed
from siteloom.core.settings import without_passwords
from siteloom.core.wording import some_names
from siteloom.operations.request_fields import Site, Text, Texts, TextsByName
from siteloom.operations.stored_wrappers import lineage
from siteloom.sources.rows_to_seeds import read_seeds, reshaped, seed_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from siteloom.core.model import Skipped
    from siteloom.operations.context import Context
    from siteloom.store.store import Store

_VERB = "seeds"

# An attribute is telling if so large a share of the records has a value of it, times the share of these
# values that are distinct: some names are those of several things, some things have no phone.
_TELLING = 0.75
# Longer texts are prose, which every site writes in its own way.
_LONGEST_TELLING = 80
# Shorter numbers are those that a table gives its rows.
_SHORTEST_TELLING_NUMBER = 8
# Two attributes tell a thing from all others; a site that lacks a third would be refused for nothing.
_MOST_PROPOSED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSeedsRequest:
    """Where known records are: in files or tables, extracted from a site, or embedded in pages.

    `embedded` is a site of the workspace, or a folder or file of pages. `several` has separators by
    attribute, for values that stand in one text; `renamed` has other names of attributes. `core` are the
    attributes by which things are to be recognised; nothing is imported if no record has one of them.
    """

    locations: tuple[str, ...] = ()
    site: Site | None = None
    embedded: str | None = None
    source: Text = ""
    several: TextsByName = field(default_factory=dict)
    renamed: TextsByName = field(default_factory=dict)
    core: Texts = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSeedsResult:
    """How many records an import added, found unchanged and removed; and rows left out, by reason.

    Rows in `failures` could not be read; those in `skipped` have no values.
    """

    run: int | None = None
    source: str
    added: int
    unchanged: int
    removed: int
    failures: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    core: tuple[str, ...] = ()


class NothingImported(SourceError):
    """There was no record to import; `result` counts what was read."""

    def __init__(self, result: ImportSeedsResult) -> None:
        reason = "none of them has values" if result.skipped else "there is none"
        if result.failures:
            reason = f"all of them failed ({some_names(sorted(result.failures))})"
        super().__init__(f"No record could be read: {reason}.")
        self.result = result


def import_seeds(context: Context, request: ImportSeedsRequest) -> ImportSeedsResult:
    """Import known records in place of what their sources had before; stopped, it can be started again."""
    store, progress = context.store, context.progress
    _check_names(context, request)
    progress.start("Reading", unit="record")
    skipped: Counter[str] = Counter()
    with store.recording(_VERB, _recorded(request)) as run:

        def note(problem: Failure | Skipped) -> None:
            if isinstance(problem, Failure):
                run.fail(problem)
            else:
                skipped[problem.reason] += 1

        def read() -> Iterator[Seed]:
            for seed in _incoming(context, request, note):
                progress.advance()
                yield reshaped(seed, request.several, request.renamed)

        counts = store.replace_seeds(run.id, read())
        run.counts.update(counts._asdict())
        run.counts["skipped"] = skipped.total()
    result = ImportSeedsResult(
        run=run.id,
        source=_named_source(request),
        **counts._asdict(),
        failures=dict(run.failures_by_reason),
        skipped=skipped,
        core=request.core,
    )
    if not result.added + result.unchanged:
        raise NothingImported(result)
    return result


def _recorded(request: ImportSeedsRequest) -> dict[str, object]:
    """The request as it is kept with its run."""
    return {
        "locations": [without_passwords(location) for location in request.locations],
        "site": request.site,
        "embedded": request.embedded,
        "source": request.source,
        "several": dict(request.several),
        "renamed": dict(request.renamed),
    }


def _named_source(request: ImportSeedsRequest) -> str:
    names = [request.site, request.embedded, *(Path(location).stem for location in request.locations)]
    return request.source.strip() or ", ".join(name for name in names if name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveSeedsRequest:
    """Whose known records to remove."""

    source: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveSeedsResult:
    """How many known records of a source were removed."""

    run: int | None = None
    source: str
    removed: int


def remove_seeds(context: Context, request: RemoveSeedsRequest) -> RemoveSeedsResult:
    """Remove the known records of a source. Sites that were wrapped with their help stay as they are."""
    store, source = context.store, request.source
    with store.recording(_VERB, {"withdraw": source}) as run:
        removed = run.counts["removed"] = store.withdraw_seeds(source)
    if not removed:
        raise unknown_source(source, store)
    return RemoveSeedsResult(run=run.id, source=source, removed=removed)


def unknown_source(source: str, store: Store) -> NotFound:
    """The error that there are no known records of a source."""
    names = some_names([one.source for one in store.seed_sources()]) or "none yet"
    return NotFound(f"There are no known records of {source}: there are those of {names}.")


def _check_names(context: Context, request: ImportSeedsRequest) -> None:
    """Read ahead until all attributes that the request names were met: nothing is imported yet."""
    changed = {*request.several, *request.renamed}
    required = set(request.core)
    if not changed and not required:
        return
    names: set[str] = set()
    new_names: set[str] = set()
    for seed in _incoming(context, request, lambda _: None):
        names.update(seed.values)
        new_names.update(request.renamed.get(name, name) for name in seed.values)
        if changed <= names and required <= new_names:
            return
    check_names(changed, names)
    if names:
        check_core(request.core, new_names)


def _incoming(
    context: Context, request: ImportSeedsRequest, note: Callable[[Failure | Skipped], None]
) -> Iterator[Seed]:
    """All records that the request names."""
    source = request.source.strip()
    for location in request.locations:
        yield from read_seeds(location, source, on_problem=note)
    if request.site:
        yield from _extracted(context.store, request.site, source or request.site)
    if request.embedded:
        yield from _embedded(context, request.embedded, source, note)


def _extracted(store: Store, site: str, source: str) -> Iterator[Seed]:
    """The newest records of each wrapper of a site, without those of versions that were rolled back."""
    stored = store.wrappers()
    wrappers = [wrapper.name for wrapper in stored if wrapper.site == site]
    if not wrappers:
        sites = some_names(sorted({wrapper.site for wrapper in stored})) or "none yet"
        raise UsageError(f"There is no wrapper of {site}: there are wrappers of {sites}.")
    has_records = False
    for wrapper in wrappers:
        for line in store.records_as_of(wrapper, store.clock(), lineage(store, wrapper)):
            has_records = True
            if (seed := seed_of(json.loads(line), source)).values:
                yield seed
    if not has_records:
        raise UsageError(f"No records of {site} were extracted yet: run siteloom extract.")


def _embedded(
    context: Context, place: str, source: str, note: Callable[[Failure | Skipped], None]
) -> Iterator[Seed]:
    """The data that pages carry for machines, but for what is about the page or the site itself."""
    from siteloom.html.embedded_data import is_beside, read_embedded  # noqa: PLC0415 - slow to load
    from siteloom.sources.open_sources import open_sources, read_sources  # noqa: PLC0415

    store, settings = context.store, context.settings
    is_site = place in store.page_urls.sites()
    source = source or (place if is_site else Path(place).stem)
    items = store.pages(place) if is_site else read_sources(open_sources([place], settings.pages))
    for item in items:
        if isinstance(item, Page):
            records = read_embedded(item, settings.parse)
            if isinstance(records, Failure):
                note(records)
                continue
            for record in records:
                values = {name: texts for name, texts in record.items() if not name.startswith("_")}
                if values and not is_beside(record):
                    yield Seed(values, source, item.url)
        elif isinstance(item, Failure):
            note(item)


def check_names(changed: Iterable[str], names: set[str]) -> None:
    """Raise if attributes that are to be split or renamed are such as no record has, if there are records."""
    if names and (unknown := sorted(set(changed) - names)):
        raise UsageError(
            f"No record has {some_names(unknown)}: the attributes are {some_names(sorted(names))}."
        )


def seed_names(seeds: Iterable[Seed]) -> set[str]:
    """The attributes that any of the records has."""
    return set[str]().union(*(seed.values for seed in seeds))


def check_core(core: Iterable[str], names: set[str], *, place: str = "", option: str = "") -> None:
    """Raise if a core attribute is one that no record has, of a place or as an option names it."""
    if missing := [name for name in core if name not in names]:
        where, whose = place and f" of {place}", option and f" of {option}"
        raise UsageError(
            f"No record{where} has the attribute {missing[0]}{whose}: there are {some_names(sorted(names))}."
        )


class SeedColumn(NamedTuple):
    """An attribute of known records in numbers: how many have it, and how many distinct values there are.

    `values` are some of them, and `is_telling` says whether things could be known by it.
    """

    name: str
    filled: int
    distinct: int
    values: tuple[str, ...]
    is_telling: bool


_VALUES_SHOWN = 3


def seed_columns(seeds: Sequence[Seed]) -> list[SeedColumn]:
    """The attributes of known records, in the order in which they come."""
    texts: dict[str, list[str]] = {}
    filled: Counter[str] = Counter()
    for seed in seeds:
        for name, values in seed.values.items():
            if values:
                texts.setdefault(name, []).extend(values)
                filled[name] += 1
    columns = []
    for name, found in texts.items():
        distinct = dict.fromkeys(found)
        is_telling = filled[name] / len(seeds) * len(distinct) / len(found) >= _TELLING
        shown = tuple(distinct)[:_VALUES_SHOWN]
        columns.append(SeedColumn(name, filled[name], len(distinct), shown, is_telling and _names(found)))
    return columns


def _names(values: Sequence[str]) -> bool:
    """Whether values are such as several sites write alike: neither prose nor the numbers of rows."""
    numbers = sum(text.isdecimal() and len(text) < _SHORTEST_TELLING_NUMBER for text in values)
    return sum(map(len, values)) <= _LONGEST_TELLING * len(values) and 2 * numbers <= len(values)


def proposed_core(columns: Sequence[SeedColumn]) -> tuple[str, ...]:
    """The attributes by which things are likely known: the first that nearly all have, each its own.

    Who makes a table begins with what a thing is called.
    """
    telling = [column.name for column in columns if column.is_telling]
    if not telling and columns:
        return (max(columns, key=lambda column: column.distinct).name,)
    return tuple(telling[:_MOST_PROPOSED])
