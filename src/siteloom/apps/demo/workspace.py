"""The operations that the demo runs on its workspace; the story only shows their results."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from siteloom.core.settings import AlarmSettings, ChangeSettings, StoreSettings
from siteloom.operations.context import open_context

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from siteloom.apps.demo.sites.built_in_page import BuiltinPage
    from siteloom.apps.demo.truth import Kind
    from siteloom.core.model import Change, Seed
    from siteloom.core.settings import Settings
    from siteloom.extraction.search_query import Hit
    from siteloom.operations.cluster import ClusterResult
    from siteloom.operations.context import Context
    from siteloom.operations.page_import import ImportReport
    from siteloom.wrappers.wrapper import Wrapper

    Row = dict[str, Any]


@contextmanager
def open_workspace(settings: Settings, folder: Path) -> Iterator[Context]:
    """A new workspace in a folder, with default thresholds and without alarms: it is only a demonstration."""
    store = StoreSettings(workspace=str(folder / "workspace"))
    settings = replace(settings, store=store, change=ChangeSettings(), alarm=AlarmSettings())
    with open_context(settings, create=True) as context:
        yield context


def write_pages(file: Path, pages: Sequence[BuiltinPage]) -> None:
    """Write pages to a JSON Lines file, as a crawler would."""
    from siteloom.core.table_files import Column, open_output

    columns = (Column("url"), Column("html"), Column("fetched_at", "time"))
    with open_output(str(file), columns) as output:
        for page in (built_in.page for built_in in pages):
            output.write({"url": page.url, "html": page.html.decode(), "fetched_at": page.fetched_at})


def import_pages(context: Context, file: Path) -> ImportReport:
    """Import the pages of a file."""
    from siteloom.operations import page_import
    from siteloom.sources.open_sources import open_source

    return page_import.import_pages(context.store, [open_source(file)], names=[str(file)])


def find_templates(context: Context) -> ClusterResult:
    """Cluster all pages."""
    from siteloom.operations.cluster import ClusterRequest, cluster

    return cluster(context, ClusterRequest())


def learn_wrappers(context: Context, kinds: Sequence[Kind]) -> list[Wrapper]:
    """Learn a wrapper from the examples of each kind of pages, which are kept as annotations."""
    from siteloom.operations.annotate import annotated_templates
    from siteloom.operations.learn import LearnRequest, learn

    examples = tuple(example for kind in kinds for example in kind.examples)
    result = learn(context, LearnRequest(examples=examples))
    wrappers = {learned.name: learned.wrapper for learned in result.wrappers}
    names = {
        example.page.url: template.name
        for template in annotated_templates(context.store)
        for example in template.examples
    }
    return [wrappers[names[kind.examples[0].url]] for kind in kinds]


def rules_in_words(wrapper: Wrapper) -> dict[str, str]:
    """The first rule of each attribute, in words."""
    from siteloom.wrappers.explanation import rule_words

    return {
        name: rule_words(rules.rules[0], multi=bool(rules.attribute.multi))
        for name, rules in wrapper.attributes.items()
    }


def extract_records(context: Context) -> list[Row]:
    """Extract the records of all pages, check the health of the output, and return the records."""
    from siteloom.operations.extract import ExtractRequest, extract

    extract(context, ExtractRequest())
    return [json.loads(line) for line in context.store.records()]


def write_csv(rows: Sequence[Row], file: Path) -> None:
    """Write records to a CSV file."""
    from siteloom.extraction.record_formats import open_records
    from siteloom.extraction.record_rows import flag_duplicates

    attributes = list(dict.fromkeys(name for row in rows for name in row["values"]))
    with open_records(str(file), attributes) as output:
        for row in flag_duplicates(rows):
            output.write(row)


def watch_pages(context: Context) -> int:
    """Choose pages of each wrapper to watch; returns how many there are."""
    from siteloom.operations.watch import watch_wrappers

    watches = [result.watch for result in watch_wrappers(context.store)]
    return sum(len(watch.bellwethers) for watch in watches if watch is not None)


def find_changes(context: Context) -> list[Change]:
    """Compare the watched pages with what they were, and return what has changed."""
    from siteloom.operations.watch import check_watches

    threshold = context.settings.change.threshold / 100
    return [
        change
        for result in check_watches(context.store, threshold=threshold)
        for change in result.checkup.changes
    ]


class RuleChange(NamedTuple):
    """The first rule of an attribute before and after a repair, in words."""

    attribute: str
    before: str
    now: str


class Repair(NamedTuple):
    """A repaired wrapper; `was_reviewed` if its confidence was too low to accept it without a person."""

    wrapper: str
    confidence: float
    was_reviewed: bool
    rules: list[RuleChange]


def repair_wrappers(context: Context) -> list[Repair]:
    """Repair the wrappers of which a change was noticed, and accept the repairs that wait for a person."""
    from siteloom.operations.relearn import mend_wrappers, settle_review
    from siteloom.operations.watch import watch_again

    repairs = []
    for result in mend_wrappers(context.store, accept=context.settings.change.accept / 100):
        needs_review = result.state == "review"
        if needs_review:
            settle_review(context.store, result.wrapper, accept=True)
            watch_again(context.store, result.wrapper)
        rules = [
            RuleChange(row["attribute"], row["before"][0], row["after"][0])
            for row in result.row["diff"]["rules"]
        ]
        repairs.append(Repair(result.wrapper, result.relearned.confidence, needs_review, rules))
    return repairs


def as_known_records(rows: Sequence[Row], pages: Sequence[BuiltinPage]) -> list[Seed]:
    """The extracted records of some pages as known records."""
    from siteloom.core.urls import site_of
    from siteloom.sources.rows_to_seeds import seed_of

    urls = {page.page.url for page in pages}
    return [seed_of(row, site_of(row["url"])) for row in rows if row["url"] in urls]


def link_records(
    records: Sequence[Seed], wrapper: Wrapper, pages: Sequence[BuiltinPage], keys: Sequence[str]
) -> Counter[str]:
    """For how many entities of two sites the values of each attribute differ."""
    from siteloom.core.model import Seed
    from siteloom.core.urls import site_of
    from siteloom.learning.known_records.entity_linking import link

    seeds = [
        *records,
        *(Seed(wrapper.extract(page.page).values, site_of(page.page.url), page.page.url) for page in pages),
    ]
    return Counter(
        name
        for entity in link(seeds, keys)
        if len({seeds[member].source for member in entity.members}) > 1
        for name, agreement in entity.values.items()
        if agreement.conflicts
    )


def template_shares(context: Context) -> dict[str, float]:
    """The share of the text of each site that is template text."""
    from siteloom.core.model import Failure
    from siteloom.extraction.clean_pages import SiteTally
    from siteloom.operations.clean import clean_store

    sites: dict[str, SiteTally] = {}
    for page in clean_store(context.store, form="blocks", limits=context.settings.parse):
        if not isinstance(page, Failure):
            sites.setdefault(page.site, SiteTally()).add(page.blocks)
    return {site: counts.template_characters / counts.characters for site, counts in sites.items()}


def search(context: Context, words: str, limit: int) -> tuple[Hit, ...]:
    """Index pages and records, and search them."""
    from siteloom.operations.search import SearchRequest, update_index
    from siteloom.operations.search import search as search_index

    update_index(context)
    return search_index(context, SearchRequest(text=words, count=limit)).hits
