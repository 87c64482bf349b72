"""`siteloom seeds`: known records in the workspace, by which new sites are wrapped."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from siteloom.cli.change_words import percent
from siteloom.cli.known_records import RenameOption, SeveralOption, check_names, pairs, some
from siteloom.cli.shell import OutputOption, Shell
from siteloom.config import without_passwords
from siteloom.errors import SourceError, UsageError
from siteloom.model import Failure, Page, Seed
from siteloom.output import Column, check_destination
from siteloom.seed_files import (
    CONFIDENCE_KEY,
    SOURCE_KEY,
    URL_KEY,
    read_seeds,
    reshaped,
    seed_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from siteloom.model import Skipped
    from siteloom.store import RunRecorder, SeedCounts, SeedSource, Store

NAME = "seeds"

_FAILURES_SHOWN = 5
_ATTRIBUTES_SHOWN = 20


def run(
    shell: Shell,
    locations: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE_OR_URL]",
            help="Known records: a .csv, .jsonl or .parquet file, or a table as sqlite:///FILE#TABLE.",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source", metavar="NAME", help="What to call where they are from [the name of the file]."
        ),
    ] = None,
    several: SeveralOption = None,
    rename: RenameOption = None,
    from_site: Annotated[
        str | None,
        typer.Option(
            "--from-site", metavar="SITE", help="The newest records extracted from a site of the workspace."
        ),
    ] = None,
    from_embedded: Annotated[
        str | None,
        typer.Option(
            "--from-embedded",
            metavar="SITE_OR_SOURCE",
            help="Data embedded in pages, of a site of the workspace or of a folder or file of pages.",
        ),
    ] = None,
    withdraw: Annotated[
        str | None, typer.Option("--withdraw", metavar="SOURCE", help="Remove all records of a source.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Keep known records in the workspace, by which new sites are wrapped, or show which there are.

    What is read again takes the place of what the same source had before. It is safe to stop this at any
    time and start again.
    """
    if output is not None:
        check_destination(output)
    wanted = _Wanted(
        tuple(locations or ()),
        from_site,
        from_embedded,
        source or "",
        pairs("--several", several),
        pairs("--rename", rename),
    )
    if withdraw is not None and (wanted.is_import or source):
        raise UsageError("--withdraw takes nothing else: give it alone.")
    if not wanted.is_import and (several or rename):
        raise UsageError("--several and --rename are for records that are read: name a file of them.")
    for location in wanted.locations:
        read_seeds(location)  # what is wrong with it is told before anything is kept
    has_files = bool(wanted.locations) or (from_embedded is not None and Path(from_embedded).exists())
    with shell.store(create=has_files) as store:
        if wanted.is_import:
            _import(shell, store, wanted)
        if withdraw is not None:
            _withdraw(shell, store, withdraw)
        if output is not None or not (wanted.is_import or withdraw):
            _show(shell, store, None if wanted.is_import else source, output)


class _Wanted(NamedTuple):
    """What to import, and how."""

    locations: tuple[str, ...]
    site: str | None
    embedded: str | None
    source: str
    several: Mapping[str, str]
    renamed: Mapping[str, str]

    @property
    def is_import(self) -> bool:
        return bool(self.locations or self.site or self.embedded)


def _import(shell: Shell, store: Store, wanted: _Wanted) -> None:
    _check_names(shell, store, wanted)
    skipped: Counter[str] = Counter()
    arguments = {
        "locations": [without_passwords(location) for location in wanted.locations],
        **{name: value for name, value in wanted._asdict().items() if name != "locations"},
    }
    with store.recording(NAME, arguments) as run, shell.counting("Reading", "records") as count:

        def note(problem: Failure | Skipped) -> None:
            if isinstance(problem, Failure):
                run.fail(problem)
            else:
                skipped[problem.reason] += 1

        def shaped() -> Iterator[Seed]:
            for seed in _incoming(shell, store, wanted, note):
                count(1)
                yield reshaped(seed, wanted.several, wanted.renamed)

        counts = store.replace_seeds(run.id, shaped())
        run.counts.update(counts._asdict())
        run.counts["skipped"] = skipped.total()
    _tell(shell, store, run, counts, skipped)
    if not counts.added + counts.unchanged:
        raise SourceError(f"No record could be read: {_why_none(run, skipped)}.")


def _check_names(shell: Shell, store: Store, wanted: _Wanted) -> None:
    """Read ahead until all attributes that are to be split or renamed were met: nothing is kept yet."""
    changed = {*wanted.several, *wanted.renamed}
    names: set[str] = set()
    if changed:
        for seed in _incoming(shell, store, wanted, lambda _: None):
            names.update(seed.values)
            if changed <= names:
                return
        check_names(changed, names)


def _incoming(
    shell: Shell, store: Store, wanted: _Wanted, note: Callable[[Failure | Skipped], None]
) -> Iterator[Seed]:
    """All seeds that are wanted."""
    for location in wanted.locations:
        yield from read_seeds(location, wanted.source, on_problem=note)
    if wanted.site:
        yield from _extracted(store, wanted.site, wanted.source or wanted.site)
    if wanted.embedded:
        yield from _embedded(shell, store, wanted.embedded, wanted.source, note)


def _extracted(store: Store, site: str, source: str) -> Iterator[Seed]:
    """The newest records of each wrapper of a site, without those of versions that were rolled back."""
    from siteloom.upkeep.known import lineage

    stored = store.wrappers()
    wrappers = [wrapper.name for wrapper in stored if wrapper.site == site]
    if not wrappers:
        known = some(sorted({wrapper.site for wrapper in stored})) or "none yet"
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
    shell: Shell, store: Store, place: str, source: str, note: Callable[[Failure | Skipped], None]
) -> Iterator[Seed]:
    """The data that pages carry for machines, but for what is about the page or the site itself."""
    from siteloom.embedded import embedded_records, is_beside
    from siteloom.pages import open_source

    is_site = any(site.name == place for site in store.sites())
    source = source or (place if is_site else Path(place).stem)
    items = store.pages(place) if is_site else open_source(place, shell.settings.pages).read()
    for item in items:
        if isinstance(item, Page):
            for record in embedded_records(item):
                values = {name: texts for name, texts in record.items() if not name.startswith("_")}
                if values and not is_beside(record):
                    yield Seed(values, source, item.url)
        elif isinstance(item, Failure):
            note(item)


def _why_none(run: RunRecorder, skipped: Counter[str]) -> str:
    if run.failures_by_reason:
        return "all of them failed, as shown above"
    return "none of them has values" if skipped else "there is none"


def _tell(
    shell: Shell, store: Store, run: RunRecorder, counts: SeedCounts, skipped: Mapping[str, int]
) -> None:
    shell.show(
        f"Known records in {store.folder}",
        ("", "count"),
        [
            *counts._asdict().items(),
            *((f"failed: {reason}", count) for reason, count in run.failures_by_reason.items()),
            *((f"skipped: {reason}", count) for reason, count in skipped.items()),
        ],
    )
    if run.failures_by_reason:
        shown = islice(store.failures(run.id), _FAILURES_SHOWN)
        shell.show(
            "What failed first", ("where", "reason", "detail"), [(f.url, f.reason, f.detail) for f in shown]
        )


def _withdraw(shell: Shell, store: Store, source: str) -> None:
    with store.recording(NAME, {"withdraw": source}) as run:
        count = run.counts["removed"] = store.withdraw_seeds(source)
    if not count:
        raise _unknown_source(source, store.seed_sources())
    shell.say(f"{count:,} records of {source} were removed.")


def _show(shell: Shell, store: Store, source: str | None, output: str | None) -> None:
    """Show the sources and write the records of all or of one."""
    found = store.seed_sources()
    if source is not None:
        of_source = [one for one in found if one.source == source]
        if not of_source:
            raise _unknown_source(source, found)
        found = of_source
    if output is not None:
        attributes = dict.fromkeys(name for one in found for name in one.attributes)
        columns = (
            Column(SOURCE_KEY),
            Column(URL_KEY),
            Column(CONFIDENCE_KEY, "number"),
            *(Column(name, "texts") for name in attributes),
        )
        seeds = store.seeds(None if source is None else [source])
        shell.write(output, columns, map(_row, seeds))
    if found:
        columns_shown = ("source", "records", "attributes", "confidence", "last added")
        shell.show("Known records", columns_shown, map(_summary, found))
    else:
        shell.say("There are no known records yet: name a file of them.")


def _row(seed: Seed) -> dict[str, object]:
    return {**seed.values, SOURCE_KEY: seed.source, URL_KEY: seed.url, CONFIDENCE_KEY: seed.confidence}


def _summary(one: SeedSource) -> tuple[object, ...]:
    filled = [f"{name} {percent(count / one.records)}" for name, count in one.attributes.items()]
    shown = filled if len(filled) <= _ATTRIBUTES_SHOWN else [*filled[:_ATTRIBUTES_SHOWN], "..."]
    added = f"{one.added_at:%Y-%m-%d %H:%M}"
    return one.source, one.records, "\n".join(shown), percent(one.confidence), added


def _unknown_source(source: str, known: Sequence[SeedSource]) -> UsageError:
    names = some([one.source for one in known]) or "none yet"
    return UsageError(f"There are no known records of {source}: there are those of {names}.")
