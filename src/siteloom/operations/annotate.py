"""annotate: keep examples as annotations; group them by template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from siteloom.core.errors import ExampleError, UsageError
from siteloom.core.settings import ParseSettings
from siteloom.core.urls import site_of
from siteloom.learning.annotation.annotation_history import as_list
from siteloom.learning.annotation.embedded_examples import examples_of, marked_pages, most_frequent
from siteloom.learning.induction.learner import check_example
from siteloom.operations.context import Context
from siteloom.sources.example_files import ExampleLine
from siteloom.store.queries.clusters import PageAddress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from siteloom.core.model import Cluster, Example, Page
    from siteloom.learning.annotation.embedded_examples import MarkedPage, SelfAnnotated
    from siteloom.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateRequest:
    """Examples of stored pages, whose pages are named by their URLs."""

    examples: tuple[ExampleLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateResult:
    """How many pages were annotated, and the clusters that they are in."""

    annotated: int
    clusters: tuple[str, ...]


def annotate(context: Context, request: AnnotateRequest) -> AnnotateResult:
    """Keep examples as annotations of stored pages, all or none.

    Raises `ExampleError` if a page is not stored, or if its values are not found on it.
    """
    store = context.store
    examples = [placed_example(store, line) for line in request.examples]
    for _, example in examples:
        check_example(example, context.settings.parse)
    store.save_examples(examples, context.author or "")
    annotated = {address for address, _ in examples}
    clusters, addresses = store.clusters()
    return AnnotateResult(
        annotated=len(examples),
        clusters=tuple(
            cluster.id
            for cluster in clusters
            if any(addresses[member] in annotated for member in cluster.members)
        ),
    )


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


class SelfAnnotatedTemplate(NamedTuple):
    """The clusters of a site whose pages carry records of the same type.

    There are no examples if none can be made of them, and it is said why not. The members of the clusters are
    indices into `addresses`, which is of all clusters.
    """

    site: str
    clusters: list[Cluster]
    addresses: Sequence[PageAddress]
    found: SelfAnnotated | None
    why_not: str = ""


def self_annotated_templates(
    store: Store,
    cluster: str | None = None,
    on_page: Callable[[Page], object] = lambda _: None,
    limits: ParseSettings = ParseSettings(),
) -> list[SelfAnnotatedTemplate]:
    """What the pages of a workspace tell by themselves, by template, or for that of one cluster.

    Clusters of one site with records of the same type are variants of one template. What people have
    annotated is left to their examples.
    """
    clusters, addresses = store.clusters()
    if not clusters:
        raise UsageError("The pages of the workspace are not clustered yet: run siteloom cluster first.")
    if cluster is not None:
        store.require_cluster(cluster)
    annotated = set(store.annotated_pages())
    by_kind: dict[tuple[str, str], list[tuple[Cluster, list[MarkedPage]]]] = {}
    for one in clusters:
        pages = store.pages_at([addresses[member] for member in one.members])
        marked = marked_pages(pages, on_page, limits)
        if marked:
            marked = most_frequent(marked)
            by_kind.setdefault((one.site, marked[0].type), []).append((one, marked))
    templates = []
    for (site, _), members in by_kind.items():
        variants = [one for one, _ in members]
        if cluster is not None and cluster not in {one.id for one in variants}:
            continue
        if any(addresses[member] in annotated for one in variants for member in one.members):
            why = "people have annotated its pages: learn without --from-embedded"
            templates.append(SelfAnnotatedTemplate(site, variants, addresses, None, why))
            continue
        try:
            found = examples_of([page for _, marked in members for page in marked], limits)
        except ExampleError as error:
            templates.append(SelfAnnotatedTemplate(site, variants, addresses, None, str(error)))
        else:
            templates.append(SelfAnnotatedTemplate(site, variants, addresses, found))
    if not templates:
        where = "No page" if cluster is None else f"No page of {cluster}"
        raise ExampleError(
            f"{where} carries a record as JSON-LD, microdata, RDFa or Open Graph: give --examples FILE."
        )
    return templates
