"""Examples of stored pages, kept as annotations, and which of them are of one template."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from siteloom.annotating.statements import as_list
from siteloom.config import ParseSettings
from siteloom.errors import ExampleError, UsageError
from siteloom.learning import check_example
from siteloom.store import PageAddress
from siteloom.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from siteloom.examples_file import ExampleLine
    from siteloom.model import Cluster, Example, Page
    from siteloom.store import Store


def annotate(
    store: Store,
    lines: Iterable[ExampleLine],
    author: str = "",
    *,
    limits: ParseSettings = ParseSettings(),
) -> int:
    """Keep examples as annotations of stored pages, all or none; returns how many."""
    found = [placed_example(store, line) for line in lines]
    for _, example in found:
        check_example(example, limits)
    store.save_examples(found, author)
    return len(found)


def placed_example(store: Store, line: ExampleLine) -> tuple[PageAddress, Example]:
    """An example on its page as that is now, and where the page is."""
    found = find_page(store, line.url)
    if found is None:
        raise ExampleError(
            f"There is an example of {line.url}, but no such page: check its URL, or ingest the page first."
        )
    address, page = found
    return address, line.on(page)


def find_page(store: Store, url: str) -> tuple[PageAddress, Page] | None:
    """A page as it is now, and where it is: in the site of its URL, or else in any."""
    for site in (site_of(url), *store.page_urls.sites()):
        if versions := store.versions(url, site):
            return PageAddress(site, url), versions[-1]
    return None


class AnnotatedTemplate(NamedTuple):
    """The examples of one kind of pages of a site, and the clusters that these pages are in.

    The members of the clusters are indices into `addresses`, which is of all clusters.
    """

    site: str
    clusters: list[Cluster]
    examples: list[Example]
    addresses: Sequence[PageAddress]

    @property
    def name(self) -> str:
        """What its wrapper is called: as its largest cluster, or as its site if no page is in one."""
        return max(self.clusters, key=lambda found: (found.size, found.id)).id if self.clusters else self.site

    @property
    def attributes(self) -> set[str]:
        """The names of all attributes of the examples."""
        return {name for example in self.examples for _, name in _attribute_names(example)}


def annotated_templates(store: Store, cluster: str | None = None) -> list[AnnotatedTemplate]:
    """What is annotated in the workspace, by template, or that of one cluster.

    Clusters of one site whose examples have the same attributes are variants of one template; examples of
    one cluster are of one template, whatever their attributes.
    """
    clusters, addresses = store.clusters()
    if cluster is not None:
        store.require_cluster(cluster)
    cluster_of = {addresses[member]: found for found in clusters for member in found.members}
    templates: list[AnnotatedTemplate] = []
    for site in store.page_urls.sites():
        examples: dict[str, list[Example]] = {}
        homes: dict[str, Cluster | None] = {}
        for example in store.examples(site):
            home = cluster_of.get(PageAddress(site, example.page.url))
            key = example.page.url if home is None else home.id
            homes[key] = home
            examples.setdefault(key, []).append(example)
        for key, found in examples.items():
            _add_examples(templates, site, homes[key], _of_one_kind(found), addresses)
    chosen = [one for one in templates if cluster in (None, *(found.id for found in one.clusters))]
    if not chosen:
        what = "No page" if cluster is None else f"No page of {cluster}"
        raise ExampleError(f"{what} is annotated: give --examples FILE with a few pages and their values.")
    if not clusters:
        raise UsageError("The pages of the workspace are not clustered yet: run siteloom cluster first.")
    return chosen


def _of_one_kind(examples: list[Example]) -> list[Example]:
    """Examples of one cluster; if one of them is a list, all are: what they tell is of their first record."""
    if not any(example.records for example in examples):
        return examples
    listed = map(as_list, examples)
    return [example for example in listed if example.records]


def _add_examples(
    templates: list[AnnotatedTemplate],
    site: str,
    home: Cluster | None,
    examples: list[Example],
    addresses: Sequence[PageAddress],
) -> None:
    """Add the examples of a cluster, or one of a page in none, to the template that they are of."""
    names = attribute_names_of(examples)
    for template in templates:
        if template.site == site and _is_of_template(names, home, template):
            template.examples.extend(examples)
            if home is not None:
                template.clusters.append(home)
            return
    templates.append(AnnotatedTemplate(site, [] if home is None else [home], examples, addresses))


def _is_of_template(names: set[tuple[bool, str]], home: Cluster | None, template: AnnotatedTemplate) -> bool:
    others = attribute_names_of(template.examples)
    # Different kinds of pages have a few attributes in common, such as a price.
    shared = len(names & others)
    is_enough = home is None or shared > 1 or names == others
    return is_enough and 2 * shared >= min(len(names), len(others))


def attribute_names_of(examples: Iterable[Example]) -> set[tuple[bool, str]]:
    """The attributes of examples; those of lists are others than those of single records."""
    return set[tuple[bool, str]]().union(*map(_attribute_names, examples))


def _attribute_names(example: Example) -> set[tuple[bool, str]]:
    return {(False, name) for name in example.values} | {
        (True, name) for record in example.records for name in record
    }
