"""Values shown: known records, uploaded tables and wrapped sites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from siteloom.apps.server.upload_folder import find_upload
from siteloom.core.errors import NotFound, SourceError, UsageError
from siteloom.core.wording import some_names
from siteloom.learning.known_records.bootstrap_result import Verdict
from siteloom.operations.bootstrap import ORIGIN, helped_by
from siteloom.operations.seeds import proposed_core, seed_columns
from siteloom.sources.rows_to_seeds import read_seeds
from siteloom.sources.seed_tables import is_table
from siteloom.store.queries.seeds import SiteState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from siteloom.core.model import Seed
    from siteloom.operations.seeds import SeedColumn
    from siteloom.store.queries.seeds import StoredSiteOutcome
    from siteloom.store.store import Store


_VERDICTS: tuple[Verdict, ...] = ("accepted", "suggested", "refused")
# So many records show by which attributes things are known.
_SEEDS_LOOKED_AT = 10_000


class SourceView(BaseModel):
    """A source of known records in numbers."""

    source: str
    records: int
    attributes: dict[str, int] = Field(description="How many records have each attribute.")
    confidence: float = Field(description="How likely their values are right, on average.")
    added_at: datetime = Field(description="When the last came.")
    is_grown: bool = Field(description="Whether they came of wrapping the site that is their source.")


class TriedSite(BaseModel):
    """What became of a site that was to be wrapped from known records."""

    site: str
    state: SiteState
    waits: bool = Field(description="Whether it is wrapped, and nobody has looked at it yet.")
    wrapper: str | None
    version: int | None = Field(description="Of that wrapper.")
    records: int
    attributes: list[str] = Field(description="What is extracted.")
    reason: str = Field(description="Why it is not wrapped.")
    at: datetime


class SiteToWrap(BaseModel):
    """A site that can be wrapped from known records."""

    site: str
    pages: int
    state: SiteState | None = Field(description="What became of it before.")
    has_wrapper: bool = Field(description="Whether it has a wrapper that was made otherwise.")


class SeedsView(BaseModel):
    """Known records by source, and what became of sites."""

    sources: list[SourceView]
    sites: list[TriedSite] = Field(description="Those that wait for a person's look first.")


class MatchExample(BaseModel):
    """A known value that stands on a page of the site."""

    url: str
    value: str = Field(description="As it is known.")
    text: str = Field(description="As the page writes it.")
    node: str = Field(description="The XPath of where it stands.")


class OtherValue(BaseModel):
    """A value on a page of the site that is not what is known."""

    url: str
    value: str = Field(description="As it is known.")
    text: str = Field(description="What the page says.")


class AttributeVerdict(BaseModel):
    """What speaks for an attribute of a site."""

    name: str
    verdict: Verdict
    pairs: int = Field(description="On so many pages that were held back it was tried.")
    agreement: float = Field(description="Share of them that have what is known.")
    shuffled: float = Field(description="Share of them that have what is known of another thing.")
    filled: float = Field(description="Share of the pages that have a value.")
    reason: str
    examples: list[MatchExample]
    disagreements: list[OtherValue]


class Refusal(BaseModel):
    """What is taken back if a site is refused."""

    records: int
    wrapper: str | None
    retried: list[str] = Field(description="Sites that it helped to wrap, which are tried again.")


class SiteEvidence(TriedSite):
    """What became of a site, and why."""

    round: int
    known: int = Field(description="How many records were known when it was tried.")
    seeds_matched: int
    pages: int = Field(description="So many pages of it were looked at.")
    pages_matched: int
    unread: dict[str, int] = Field(description="How many of them could not be read, by reason.")
    sources: dict[str, int] = Field(description="How many of the records found there each source knows.")
    verdicts: list[AttributeVerdict]
    accepted_by: str | None
    accepted_at: datetime | None
    refusal: Refusal


def seeds_view(store: Store) -> SeedsView:
    """Known records by source, and what became of sites."""
    outcomes = store.site_outcomes()
    wrapped = {one.site for one in outcomes if one.state == "wrapped"}
    sources = [
        SourceView(
            source=one.source,
            records=one.records,
            attributes=dict(one.attributes),
            confidence=one.confidence,
            added_at=one.added_at,
            is_grown=one.source in wrapped,
        )
        for one in store.seed_sources()
    ]
    tried = sorted(map(_tried, outcomes), key=lambda one: (not one.waits, one.state != "wrapped", one.site))
    return SeedsView(sources=sources, sites=tried)


def sites_to_look_at(store: Store) -> list[TriedSite]:
    """The sites that are wrapped from known records and wait for a person's look, by name."""
    return [_tried(one) for one in store.site_outcomes() if one.waits]


def sites_to_wrap(store: Store, known_of: Collection[str]) -> list[SiteToWrap]:
    """The sites that can be wrapped from what is known of some sources, those that have no wrapper first."""
    states = {one.site: one.state for one in store.site_outcomes()}
    wrapped_otherwise = {one.site for one in store.wrappers() if one.origin != ORIGIN}
    found = [
        SiteToWrap(
            site=site.name,
            pages=site.pages,
            state=states.get(site.name),
            has_wrapper=site.name in wrapped_otherwise,
        )
        for site in store.sites()
        if site.pages and site.name not in known_of and states.get(site.name) != "wrapped"
    ]
    return sorted(found, key=lambda one: (one.has_wrapper, one.site))


def known_columns(store: Store) -> tuple[list[SeedColumn], tuple[str, ...]]:
    """The attributes of what is known, and those by which things are likely known."""
    columns = seed_columns(list(islice(store.seeds(is_grown=False), _SEEDS_LOOKED_AT)))
    return columns, proposed_core(columns)


def site_evidence(store: Store, site: str) -> SiteEvidence:
    """What became of a site, and why."""
    outcomes = store.site_outcomes()
    found = next((one for one in outcomes if one.site == site), None)
    if found is None:
        raise NotFound(f"{site} was not tried with known records yet.")
    content = found.content
    return SiteEvidence(
        **_tried(found).model_dump(),
        round=found.round,
        known=found.tried_seeds,
        seeds_matched=content.get("seeds_matched", 0),
        pages=content.get("pages", 0),
        pages_matched=content.get("pages_matched", 0),
        unread=content.get("unread", {}),
        sources=content.get("sources", {}),
        verdicts=_verdicts(content),
        accepted_by=found.accepted_by,
        accepted_at=content.get("accepted_at"),
        refusal=_refusal(found, outcomes),
    )


def _tried(found: StoredSiteOutcome) -> TriedSite:
    attributes = found.content.get("attributes", {})
    return TriedSite(
        site=found.site,
        state=found.state,
        waits=found.waits,
        wrapper=found.wrapper,
        version=found.version,
        records=found.content.get("records", 0),
        attributes=[name for name, one in attributes.items() if one["verdict"] == "accepted"],
        reason=found.content.get("reason", ""),
        at=found.at,
    )


def _verdicts(content: Mapping[str, Any]) -> list[AttributeVerdict]:
    """What speaks for each attribute: those that are extracted first, the others by how near they came."""
    examples = content.get("examples", {})  # sites that were wrapped long ago have none
    others = content.get("disagreements", {})
    found = [
        AttributeVerdict(
            name=name, examples=examples.get(name, []), disagreements=others.get(name, []), **one
        )
        for name, one in content.get("attributes", {}).items()
    ]
    return sorted(found, key=lambda one: _VERDICTS.index(one.verdict))


def _refusal(found: StoredSiteOutcome, outcomes: Sequence[StoredSiteOutcome]) -> Refusal:
    return Refusal(
        records=found.content.get("records", 0),
        wrapper=found.wrapper,
        retried=helped_by(found.site, outcomes) if found.state == "wrapped" else [],
    )


# So many rows show what a table is like; a person is not made to wait for the rest.
_ROWS_READ = 10_000
_VALUES_READ = 500_000  # of rows that have very many columns
_ROWS_SHOWN = 5
_LONGEST_SHOWN = 80
# More columns cannot be looked through, and no page shows so many.
_COLUMNS_SHOWN = 200


class TableColumn(BaseModel):
    """A column of a table in numbers."""

    name: str
    filled: int = Field(description="How many of the rows that were read have a value.")
    distinct: int = Field(description="How many distinct values there are.")
    values: list[str] = Field(description="Some of them.")
    is_proposed: bool = Field(description="Whether things are likely known by it.")


class TablePreview(BaseModel):
    """What is in an uploaded table of known records; nothing of it is kept yet."""

    upload: str
    file: str
    source: str = Field(description="What to call where the records are from, unless told otherwise.")
    records: int = Field(description="How many records were read.")
    is_whole: bool = Field(description="Whether these are all, or only the first.")
    columns: list[TableColumn]
    rows: list[dict[str, list[str]]] = Field(description="The first of them.")
    left_out: dict[str, int] = Field(description="How many rows were not read, by reason.")


def uploaded_table(workspace: Path, upload: str) -> Path:
    """The file of an upload that is one table."""
    files = [path for path in find_upload(workspace, upload).files.rglob("*") if path.is_file()]
    if len(files) != 1 or not is_table(files[0].name):
        raise UsageError("Known records come as one file: a .csv, .tsv, .jsonl or .parquet.")
    return files[0]


def table_preview(workspace: Path, upload: str) -> TablePreview:
    """What is in an uploaded table, as its first rows tell."""
    table = uploaded_table(workspace, upload)
    left_out: Counter[str] = Counter()
    with said_of(table):
        following = read_seeds(str(table), on_problem=lambda problem: left_out.update([problem.reason]))
        seeds = _first(following)
        is_whole = next(following, None) is None
    if not seeds:
        raise SourceError(_why_none(table.name, left_out))
    columns = seed_columns(seeds)[:_COLUMNS_SHOWN]
    core = proposed_core(columns)
    return TablePreview(
        upload=upload,
        file=table.name,
        source=seeds[0].source,
        records=len(seeds),
        is_whole=is_whole,
        columns=[
            TableColumn(
                name=column.name,
                filled=column.filled,
                distinct=column.distinct,
                values=[cut(text) for text in column.values],
                is_proposed=column.name in core,
            )
            for column in columns
        ],
        rows=[_row(seed) for seed in seeds[:_ROWS_SHOWN]],
        left_out=dict(left_out),
    )


def _first(seeds: Iterator[Seed]) -> list[Seed]:
    found: list[Seed] = []
    count = 0
    for seed in islice(seeds, _ROWS_READ):
        found.append(seed)
        count += len(seed.values)
        if count >= _VALUES_READ:
            break
    return found


@contextmanager
def said_of(table: Path) -> Iterator[None]:
    """What is wrong with an uploaded table is told of the file as its owner knows it, not of where it is."""
    try:
        yield
    except (SourceError, UsageError) as error:
        if str(table) not in str(error):
            raise
        raise type(error)(str(error).replace(str(table), table.name)) from error


def cut(text: str) -> str:
    """A value short enough to be shown in a table."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _why_none(name: str, left_out: Mapping[str, int]) -> str:
    if not left_out:
        return f"There is no record in {name}: its first line names the columns, and each other is a record."
    reasons = some_names(sorted(left_out))
    return f"No row of {name} could be read as a record: {reasons}."


def _row(seed: Seed) -> dict[str, list[str]]:
    return {name: [cut(text) for text in texts] for name, texts in seed.values.items()}
