"""The job that finds which records of several sites are about the same thing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from siteloom.apps.server.job_kinds import Argument, JobKind, Report
from siteloom.core.errors import UsageError
from siteloom.learning.known_records.entity_linking import attribute_spread, entity_row, link, sources_of
from siteloom.operations.seeds import check_core
from siteloom.sources.rows_to_seeds import seed_of
from siteloom.store.queries.entities import LinkedEntity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from siteloom.core.model import Seed
    from siteloom.core.settings import Settings
    from siteloom.learning.known_records.entity_linking import Entity
    from siteloom.store.store import Store

# Reports are for people: each takes far longer than to read a record.
_RECORDS_BETWEEN_REPORTS = 500


def entities(store: Store, _: Settings, arguments: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Link the records of all sites, with seeds if they are wanted, and keep what is found."""
    with_seeds = bool(arguments["seeds"])
    told = list(_told(store, report, with_seeds=with_seeds))
    core: list[str] = arguments["core"] or []
    _check(told, core, with_seeds=with_seeds)
    report(0, None, f"Comparing {len(told):,} records")
    # Those that most sources tell of come first, wherever they are listed.
    found = sorted(link(told, core), key=lambda entity: -len(sources_of(entity, told)))
    spread = sorted(Counter(len(sources_of(one, told)) for one in found).items())
    numbers = {
        "core": core,
        "with_seeds": with_seeds,
        "records": len(told),
        "entities": len(found),
        "spread": spread,
        "sources": Counter(seed.source for seed in told),
        "attributes": [attribute._asdict() for attribute in attribute_spread(found)],
    }
    report(0, None, f"Keeping {len(found):,} entities")
    with store.recording("entities", {"core": core, "seeds": with_seeds}) as run:
        store.entities.replace(run.id, numbers, _linked(found, told))
        run.counts.update(records=len(told), entities=len(found))
    on_several = sum(count for sources, count in spread if sources > 1)
    return {"told": len(told), "entities": len(found), "on_several": on_several}


def _told(store: Store, report: Report, *, with_seeds: bool) -> Iterator[Seed]:
    """All that sites tell; what is known of a site from elsewhere is left out where its records are there."""
    sources: set[str] = set()
    for count, (site, row) in enumerate(store.records_in_force(), 1):
        if count % _RECORDS_BETWEEN_REPORTS == 0:
            report(count, None, f"{count:,} records read")
        sources.add(site)
        if (seed := seed_of(row, site)).values:
            yield seed
    for seed in store.seeds() if with_seeds else ():
        if seed.source not in sources:
            yield seed


def _check(told: Sequence[Seed], core: Sequence[str], *, with_seeds: bool) -> None:
    sources = {seed.source for seed in told}
    if len(sources) < 2:
        here = f"there are only those of {sources.pop()}" if sources else "there are none"
        what = "records or seeds" if with_seeds else "records"
        raise UsageError(f"To find the same thing on several sites, {what} of two are needed: {here}.")
    check_core(core, told)


def _linked(found: Sequence[Entity], told: Sequence[Seed]) -> Iterator[LinkedEntity]:
    for number, entity in enumerate(found, 1):
        row = entity_row(number, entity, told)
        members = [told[member] for member in entity.members]
        texts = {text: None for seed in members for values in seed.values.values() for text in values}
        kept = [{"source": one.source, "url": one.url, "values": one.values} for one in members]
        yield LinkedEntity(
            number, len(row["sources"]), tuple(row["conflicts"]), tuple(texts), {**row, "members": kept}
        )


KINDS = {
    "entities": JobKind(
        entities,
        "Find the same things on several sites",
        {"core": Argument("texts"), "seeds": Argument("flag")},
    ),
}
