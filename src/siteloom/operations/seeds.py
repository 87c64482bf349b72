"""Known records into a workspace: from files, from what was extracted of a site, or from data in pages."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import UsageError
from siteloom.core.model import Failure, Page, Seed
from siteloom.core.settings import ParseSettings, without_passwords
from siteloom.core.wording import some_names
from siteloom.operations.stored_wrappers import lineage
from siteloom.sources.rows_to_seeds import read_seeds, reshaped, seed_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from siteloom.core.model import Skipped
    from siteloom.core.settings import PagesSettings
    from siteloom.store.queries.seeds import SeedCounts
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


class SeedOrder(NamedTuple):
    """What to import, and how: files or tables, the records of a site, the data embedded in pages.

    `several` has separators by attribute, for values that stand in one text; `renamed` other names.
    """

    locations: tuple[str, ...] = ()
    site: str | None = None
    embedded: str | None = None
    source: str = ""
    several: Mapping[str, str] = MappingProxyType({})
    renamed: Mapping[str, str] = MappingProxyType({})

    @property
    def is_import(self) -> bool:
        """Whether there is anything to import."""
        return bool(self.locations or self.site or self.embedded)


class Imported(NamedTuple):
    """What came of an import; `failed` and `skipped` count rows by reason."""

    run_id: int
    counts: SeedCounts
    failed: Mapping[str, int]
    skipped: Mapping[str, int]

    @property
    def why_none(self) -> str:
        """Nothing if there is a record now, else a sentence that says why not."""
        if self.counts.added + self.counts.unchanged:
            return ""
        if self.failed:
            reasons = some_names(sorted(self.failed))
            return f"No record could be read: all of them failed ({reasons})."
        return f"No record could be read: {'none of them has values' if self.skipped else 'there is none'}."


def import_seeds(
    store: Store,
    wanted: SeedOrder,
    pages: PagesSettings,
    on_seed: Callable[[], object] = lambda: None,
    *,
    limits: ParseSettings = ParseSettings(),
) -> Imported:
    """Keep known records in the place of what their sources had before; stopped, it can be begun again."""
    _check_names(store, wanted, pages, limits)
    skipped: Counter[str] = Counter()
    arguments = {
        **wanted._asdict(),
        "locations": [without_passwords(location) for location in wanted.locations],
        "several": dict(wanted.several),
        "renamed": dict(wanted.renamed),
    }
    with store.recording(_VERB, arguments) as run:

        def note(problem: Failure | Skipped) -> None:
            if isinstance(problem, Failure):
                run.fail(problem)
            else:
                skipped[problem.reason] += 1

        def shaped() -> Iterator[Seed]:
            for seed in _incoming(store, wanted, pages, limits, note):
                on_seed()
                yield reshaped(seed, wanted.several, wanted.renamed)

        counts = store.replace_seeds(run.id, shaped())
        run.counts.update(counts._asdict())
        run.counts["skipped"] = skipped.total()
    return Imported(run.id, counts, dict(run.failures_by_reason), skipped)


def _check_names(store: Store, wanted: SeedOrder, pages: PagesSettings, limits: ParseSettings) -> None:
    """Read ahead until all attributes that are to be split or renamed were met: nothing is kept yet."""
    changed = {*wanted.several, *wanted.renamed}
    names: set[str] = set()
    if changed:
        for seed in _incoming(store, wanted, pages, limits, lambda _: None):
            names.update(seed.values)
            if changed <= names:
                return
        check_names(changed, names)


def _incoming(
    store: Store,
    wanted: SeedOrder,
    pages: PagesSettings,
    limits: ParseSettings,
    note: Callable[[Failure | Skipped], None],
) -> Iterator[Seed]:
    """All seeds that are wanted."""
    for location in wanted.locations:
        yield from read_seeds(location, wanted.source, on_problem=note)
    if wanted.site:
        yield from _extracted(store, wanted.site, wanted.source or wanted.site)
    if wanted.embedded:
        yield from _embedded(store, wanted.embedded, wanted.source, pages, limits, note)


def _extracted(store: Store, site: str, source: str) -> Iterator[Seed]:
    """The newest records of each wrapper of a site, without those of versions that were rolled back."""
    stored = store.wrappers()
    wrappers = [wrapper.name for wrapper in stored if wrapper.site == site]
    if not wrappers:
        known = some_names(sorted({wrapper.site for wrapper in stored})) or "none yet"
        raise UsageError(f"There is no wrapper of {site}: there are wrappers of {known}.")
    found = False
    for wrapper in wrappers:
        for line in store.records_as_of(wrapper, store.clock(), lineage(store, wrapper)):
            found = True
            if (seed := seed_of(json.loads(line), source)).values:
                yield seed
    if not found:
        raise UsageError(f"No records of {site} were extracted yet: run siteloom extract.")


def _embedded(
    store: Store,
    place: str,
    source: str,
    pages: PagesSettings,
    limits: ParseSettings,
    note: Callable[[Failure | Skipped], None],
) -> Iterator[Seed]:
    """The data that pages carry for machines, but for what is about the page or the site itself."""
    from siteloom.html.embedded_data import is_beside, read_embedded  # noqa: PLC0415 - slow to load
    from siteloom.sources.open_sources import open_sources, read_sources  # noqa: PLC0415

    is_site = place in store.page_urls.sites()
    source = source or (place if is_site else Path(place).stem)
    items = store.pages(place) if is_site else read_sources(open_sources([place], pages))
    for item in items:
        if isinstance(item, Page):
            found = read_embedded(item, limits)
            if isinstance(found, Failure):
                note(found)
                continue
            for record in found:
                values = {name: texts for name, texts in record.items() if not name.startswith("_")}
                if values and not is_beside(record):
                    yield Seed(values, source, item.url)
        elif isinstance(item, Failure):
            note(item)


def check_names(wanted: Iterable[str], names: set[str]) -> None:
    """Raise if attributes that are to be split or renamed are such as no record has, if there are records."""
    if names and (unknown := sorted(set(wanted) - names)):
        raise UsageError(
            f"No record has {some_names(unknown)}: the attributes are {some_names(sorted(names))}."
        )


def check_core(core: Iterable[str], seeds: Iterable[Seed], *, place: str = "", option: str = "") -> None:
    """Raise if a core attribute is one that no record has, of a place or as an option names it."""
    known = set[str]().union(*(seed.values for seed in seeds))
    if missing := [name for name in core if name not in known]:
        where, whose = place and f" of {place}", option and f" of {option}"
        raise UsageError(
            f"No record{where} has the attribute {missing[0]}{whose}: there are {some_names(sorted(known))}."
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
