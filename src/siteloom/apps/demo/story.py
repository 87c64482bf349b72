"""The demo's steps, one sentence and at most one small table each; more if it is verbose."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, NamedTuple

from siteloom.apps.demo import truth, workspace
from siteloom.apps.demo.sites import directory_site, guide_site
from siteloom.core.wording import percent, plural, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from siteloom.apps.demo.sites.built_in_page import BuiltinPage
    from siteloom.apps.demo.workspace import Row
    from siteloom.core.model import Change, Seed
    from siteloom.core.settings import Settings
    from siteloom.operations.context import Context

_WIDTH = 80
_RULE_WIDTH = 69
_KEY_ATTRIBUTES = ("name", "address")
_HITS = 3

# The change tests as the documentation calls them.
_TESTS = {"shingle": "structure changed", "null": "value missing", "value": "value changed"}

_NEXT = """\
Next, on your own pages (siteloom serve does the same in a browser):
   siteloom ingest FOLDER_OR_WARC     import pages
   siteloom cluster                   find their templates
   siteloom discover -o table.csv     get a table, without any example"""


class Reporter(NamedTuple):
    """Prints the story through `say`, without details unless it is verbose."""

    say: Callable[[str], None]
    is_verbose: bool

    def step(self, text: str) -> None:
        """Print the sentence that begins a step."""
        self.say(textwrap.fill(text, _WIDTH, subsequent_indent="   ", break_on_hyphens=False))

    def table(self, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a small table with aligned columns, and an empty line."""
        cells = [header, *([str(value) for value in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.say(f"   {'  '.join(padded)}".rstrip())
        self.say("")

    def detail(self, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table that only a verbose story has."""
        if self.is_verbose:
            self.table(header, rows)


def tell_story(reporter: Reporter, settings: Settings, folder: Path, csv_file: Path) -> None:
    """Run the demo in a folder, and write the records that it extracts to a CSV file."""
    guide, directory = guide_site(), directory_site()
    reporter.say(
        "Siteloom on two generated web sites: a city guide and a restaurant directory.\n"
        "Their true values are known, so every result can be checked.\n"
    )
    with workspace.open_workspace(settings, folder) as context:
        _import_and_cluster(reporter, context, folder, [*guide, *directory])
        _learn_and_extract(reporter, context, truth.kinds_with_examples(guide, directory))
        _repair_after_small_change(reporter, context, folder)
        rows = _repair_after_redesign(reporter, context, folder)
        workspace.write_csv(rows, csv_file)
        records = workspace.as_known_records(rows, truth.of_kind(guide, "restaurant"))
        restaurants = truth.of_kind(directory, "restaurant")
        _bootstrap(reporter, records, directory, restaurants)
        _discover(reporter, restaurants)
        _search(reporter, context, restaurants[0])
    reporter.say(f"\nThe {len(rows):,} records are in {csv_file}.\n{_NEXT}")


def _import_and_cluster(
    reporter: Reporter, context: Context, folder: Path, pages: Sequence[BuiltinPage]
) -> None:
    file = folder / "crawl-1.jsonl"
    workspace.write_pages(file, pages)
    report, repeated = workspace.import_pages(context, file), workspace.import_pages(context, file)
    sites = context.store.sites()
    packed = sum(site.packed_bytes for site in sites)
    reporter.step(
        f"1. Import: {report.new:,} pages of {report.bytes / 1e6:.1f} MB take {packed / 1e6:.1f} MB in the "
        f"workspace. A second import adds nothing: {repeated.unchanged:,} unchanged."
    )
    reporter.detail(
        ("site", "pages", "times smaller"),
        ((site.name, site.pages, f"{site.bytes / site.packed_bytes:.1f}") for site in sites),
    )
    result = workspace.find_templates(context)
    kinds = truth.kinds_by_cluster(result, pages)
    pure = sum(counts.most_common(1)[0][1] for counts in kinds.values())
    reporter.step(
        f"2. Cluster: pages made from one template belong together. {result.clusters} clusters hold "
        f"{result.pages:,} pages, {pure:,} of them with their own kind."
    )
    reporter.detail(
        ("cluster", "pages", "kinds"),
        (
            (name, counts.total(), ", ".join(plural(count, kind) for kind, count in counts.most_common()))
            for name, counts in kinds.items()
        ),
    )


def _learn_and_extract(reporter: Reporter, context: Context, kinds: Sequence[truth.Kind]) -> None:
    wrappers = workspace.learn_wrappers(context, kinds)
    reporter.step("3. Learn: a few examples are enough. Tested on all other pages:")
    reporter.table(
        ("wrapper", "examples", "attributes", "tested on", "values right"),
        (
            (
                kind.name,
                kind.example_count,
                len(wrapper.attributes),
                plural(len(kind.test_pages), "page"),
                truth.score_wrapper(wrapper, kind).percentage,
            )
            for kind, wrapper in zip(kinds, wrappers, strict=True)
        ),
    )
    rows = workspace.extract_records(context)
    extracted = len({row["url"] for row in rows})
    unmatched = sum(site.pages for site in context.store.sites()) - extracted
    reporter.step(
        f"4. Extract: {len(rows):,} records from {extracted:,} pages. The other {unmatched} are lists of the "
        "directory, for which no wrapper was learned."
    )
    rules = workspace.rules_in_words(wrappers[-1])
    record = wrappers[-1].extract(kinds[-1].test_pages[0].page)
    price, confidence = record.values["price"][0], record.provenance["price"][0].confidence
    reporter.step(f"5. Explain: the price {price} is {rules['price']}; confidence: {percent(confidence)}.")
    reporter.detail(
        ("attribute", "confidence", "value", "rule"),
        (
            (name, percent(record.provenance[name][0].confidence), shortened(texts[0], 20), rules[name])
            for name, texts in record.values.items()
        ),
    )


def _repair_after_small_change(reporter: Reporter, context: Context, folder: Path) -> None:
    watched = workspace.watch_pages(context)
    guide = guide_site("mild-change")
    changes = _import_changed(context, folder / "mild-change.jsonl", guide)
    (change,) = changes
    (attribute,) = change.attributes
    reporter.step(
        f"6. Monitor: {watched} pages are watched. In the next crawl, the guide has moved its phone numbers. "
        f"The watched pages show it: {attribute} is missing on {percent(change.share)} of them."
    )
    _detail_changes(reporter, changes)
    (repair,) = workspace.repair_wrappers(context)
    score = truth.score_rows(workspace.extract_records(context), guide)
    reporter.step(
        "7. Repair: Siteloom finds the known numbers on the changed pages and learns the rule again. "
        f"{score} values of the guide are right."
    )
    (rule,) = repair.rules
    reporter.table(
        ("", f"rule for {rule.attribute}"),
        (("before", shortened(rule.before, _RULE_WIDTH)), ("now", shortened(rule.now, _RULE_WIDTH))),
    )


def _repair_after_redesign(reporter: Reporter, context: Context, folder: Path) -> list[Row]:
    guide = guide_site("redesign")
    changes = _import_changed(context, folder / "crawl-2.jsonl", guide)
    repairs = workspace.repair_wrappers(context)
    rows = workspace.extract_records(context)
    reviewed = sum(repair.was_reviewed for repair in repairs)
    reporter.step(
        f"8. Redesign: half a year later, every page of the guide looks different. All {len(repairs)} "
        f"wrappers are repaired without new examples; a person confirms {reviewed} of them:"
    )
    kinds = {kind: truth.of_kind(guide, kind) for kind in dict.fromkeys(page.kind for page in guide)}
    reporter.table(
        ("pages of the guide", "values right"),
        ((plural(len(pages), kind), truth.score_rows(rows, pages)) for kind, pages in kinds.items()),
    )
    _detail_changes(reporter, changes)
    for repair in repairs:
        rules = (
            (rule.attribute, text) for rule in repair.rules for text in (rule.before, f"now: {rule.now}")
        )
        reporter.detail((f"{repair.wrapper}, confidence {percent(repair.confidence)}", "rule"), rules)
    return rows


def _import_changed(context: Context, file: Path, pages: Sequence[BuiltinPage]) -> list[Change]:
    """Import pages of a later crawl; returns the changes that the watched pages show."""
    workspace.write_pages(file, pages)
    workspace.import_pages(context, file)
    return workspace.find_changes(context)


def _detail_changes(reporter: Reporter, changes: Sequence[Change]) -> None:
    reporter.detail(
        ("wrapper", "change", "watched pages", "attributes"),
        (
            (change.wrapper, _TESTS[change.test], percent(change.share), ", ".join(change.attributes))
            for change in changes
        ),
    )


def _bootstrap(
    reporter: Reporter,
    known_records: Sequence[Seed],
    directory: Sequence[BuiltinPage],
    restaurants: Sequence[BuiltinPage],
) -> None:
    from siteloom.learning.known_records.site_bootstrap import bootstrap

    result = bootstrap(known_records, [page.page for page in directory], _KEY_ATTRIBUTES)
    assert result.wrapper is not None, result.reason
    scores = {
        name: truth.score_attribute(result.wrapper, name, restaurants) for name in result.wrapper.attributes
    }
    total = truth.Score(*map(sum, zip(*scores.values(), strict=True)))
    reporter.step(
        f"9. Known records: {result.seeds_matched} of the guide's {result.seeds} restaurants are in the "
        f"directory, too. From them alone, bootstrap learns {len(scores)} attributes of the directory; "
        f"{total} values are right."
    )
    reporter.detail(
        ("attribute", "verdict", "agreement", "by chance", "values right"),
        (
            (name, one.verdict, percent(one.agreement), percent(one.shuffled), scores.get(name, "-"))
            for name, one in result.attributes.items()
        ),
    )
    matched = workspace.link_records(known_records, result.wrapper, restaurants, _KEY_ATTRIBUTES)
    reporter.detail(
        ("attribute of both sites", "restaurants for which the values differ"), matched.most_common()
    )


def _discover(reporter: Reporter, restaurants: Sequence[BuiltinPage]) -> None:
    from siteloom.learning.discovery.table_discovery import discover
    from siteloom.operations.discover import cell_text

    table = discover(page.page for page in restaurants)
    attributes = truth.attributes_by_column(table, restaurants)
    true_attributes = {name for page in restaurants for name, values in page.truth.items() if values}
    reporter.step(
        f"10. No examples: discover finds {len(table.columns)} columns on the pages of the directory. "
        f"{len(attributes)} of {len(true_attributes)} attributes have one."
    )
    reporter.detail(
        ("column", "type", "filled", "attribute", "first value"),
        (
            (
                column.label,
                column.type,
                percent(column.filled),
                attributes.get(column.label, "-"),
                cell_text(table.rows[0][column.label], 30),
            )
            for column in table.columns
        ),
    )


def _search(reporter: Reporter, context: Context, restaurant: BuiltinPage) -> None:
    shares = workspace.template_shares(context)
    words = f"{restaurant.truth['name'][0]} {restaurant.truth['cuisine'][0]}".lower()
    hits = workspace.search(context, words, _HITS)
    template = " and ".join(percent(share) for share in shares.values())
    reporter.step(
        f"11. Search: template text is left out ({template} of the two sites). The first hit for "
        f"{words!r} is the {hits[0].kind} {hits[0].title.text!r}."
    )
    reporter.detail(("hit", "URL"), ((hit.kind, hit.url) for hit in hits))
