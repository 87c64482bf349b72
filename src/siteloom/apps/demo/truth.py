"""Examples for the demo, and how many extracted values are right."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from siteloom.apps.demo.sites.built_in_page import BuiltinPage
    from siteloom.learning.discovery.table_discovery import DiscoveredTable
    from siteloom.operations.cluster import ClusterResult
    from siteloom.sources.example_files import ExampleLine
    from siteloom.wrappers.wrapper import Wrapper

    Values = Mapping[str, Sequence[str]]

EXAMPLE_PAGES = 5
EXAMPLE_RECORDS = 3
_COLUMN_AGREEMENT = 0.95  # the share of rows on which a column must have the values of an attribute


class Score(NamedTuple):
    """How many of the compared values are right."""

    right: int
    total: int

    def __str__(self) -> str:
        return f"{self.right:,} of {self.total:,}"

    @property
    def percentage(self) -> str:
        """The share of right values, such as `100.0 %`."""
        return f"{100 * self.right / max(1, self.total):.1f} %"


class Kind(NamedTuple):
    """The pages of one kind on one site, and the examples among them."""

    name: str
    pages: Sequence[BuiltinPage]
    examples: Sequence[ExampleLine]

    @property
    def example_count(self) -> str:
        """How many examples there are, in words."""
        records = sum(len(line.records) for line in self.examples)
        return plural(records, "record") if records else plural(len(self.examples), "page")

    @property
    def test_pages(self) -> list[BuiltinPage]:
        """The pages that are no example, and list pages of which only some records are."""
        annotated = {line.url for line in self.examples if not line.records}
        return [page for page in self.pages if page.page.url not in annotated]


def kinds_with_examples(guide: Iterable[BuiltinPage], directory: Iterable[BuiltinPage]) -> tuple[Kind, ...]:
    """The kinds of pages that the demo learns, each with a few examples."""
    return (
        _detail_pages("guide: restaurants", of_kind(guide, "restaurant")),
        _detail_pages("guide: events", of_kind(guide, "event")),
        _list_pages("guide: lists", of_kind(guide, "list")),
        _detail_pages("directory: restaurants", of_kind(directory, "restaurant")),
    )


def of_kind(site: Iterable[BuiltinPage], kind: str) -> list[BuiltinPage]:
    """The pages of one kind."""
    return [page for page in site if page.kind == kind]


def _detail_pages(name: str, pages: Sequence[BuiltinPage]) -> Kind:
    """Pages of single records; the examples are a few that together show most of what differs."""
    from siteloom.sources.example_files import ExampleLine
    from siteloom.templates.sampling import sample

    examples = [pages[number] for number in sample([page.page for page in pages], EXAMPLE_PAGES)]
    return Kind(name, pages, [ExampleLine(page.page.url, page.truth, (), {}) for page in examples])


def _list_pages(name: str, pages: Sequence[BuiltinPage]) -> Kind:
    """List pages; the examples are a few records of the first one."""
    from siteloom.sources.example_files import ExampleLine

    return Kind(name, pages, [ExampleLine(pages[0].page.url, {}, pages[0].records[:EXAMPLE_RECORDS], {})])


def score_wrapper(wrapper: Wrapper, kind: Kind) -> Score:
    """How many values a wrapper gets right on everything that it has not learned from."""
    results: list[bool] = []
    annotated = {line.url: len(line.records) for line in kind.examples}
    for page in kind.test_pages:
        records = [record.values for record in wrapper.extract_all(page.page)]
        results += _compare_page(records, page, annotated.get(page.page.url, 0))
    return _score(results)


def score_rows(rows: Iterable[Mapping[str, Values]], pages: Sequence[BuiltinPage]) -> Score:
    """How many values of extracted records are right on some pages."""
    by_url: dict[object, list[Values]] = defaultdict(list)
    for row in rows:
        by_url[row["url"]].append(row["values"])
    return _score([right for page in pages for right in _compare_page(by_url[page.page.url], page)])


def score_attribute(wrapper: Wrapper, name: str, pages: Sequence[BuiltinPage]) -> Score:
    """On how many pages with an attribute, or with a value extracted for it, all its values are right."""
    pairs = [
        (set(wrapper.extract(page.page).values.get(name, ())), set(page.truth.get(name, ())))
        for page in pages
    ]
    return _score([values == truth for values, truth in pairs if values or truth])


def _score(results: Sequence[bool]) -> Score:
    return Score(sum(results), len(results))


def _compare_page(records: Sequence[Values], page: BuiltinPage, skip: int = 0) -> list[bool]:
    """For each attribute of each record of a page but the first few, whether it is right."""
    pairs: Iterable[tuple[Values, Values]] = zip_longest(records, page.records or [page.truth], fillvalue={})
    return [right for values, truth in islice(pairs, skip, None) for right in _compare(values, truth)]


def _compare(values: Values, truth: Values) -> list[bool]:
    """For each attribute that is there or was extracted, whether its values are exactly those there."""
    names = {**values, **{name: texts for name, texts in truth.items() if texts}}
    return [set(values.get(name, ())) == set(truth.get(name, ())) for name in names]


def kinds_by_cluster(result: ClusterResult, pages: Iterable[BuiltinPage]) -> dict[str, Counter[str]]:
    """How many pages of each kind are in each cluster."""
    assert result.clustering is not None
    kind_by_url = {page.page.url: page.kind for page in pages}
    return {
        cluster.id: Counter(kind_by_url[result.addresses[member].url] for member in cluster.members)
        for cluster in result.clustering.clusters
    }


def attributes_by_column(table: DiscoveredTable, pages: Sequence[BuiltinPage]) -> dict[str, str]:
    """The attribute that a discovered column holds, by its label; the first one if several columns do."""
    attributes: dict[str, str] = {}
    for name in sorted({name for page in pages for name in page.truth}):
        rows = [
            (row, page.truth[name])
            for row, page in zip(table.rows, pages, strict=True)
            if page.truth.get(name)
        ]
        for column in table.columns:
            right = sum(set(values) <= set(row[column.label]) for row, values in rows)
            if rows and right >= _COLUMN_AGREEMENT * len(rows):
                attributes.setdefault(column.label, name)
                break
    return attributes
